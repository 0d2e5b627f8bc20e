"""Programs that are started around a guest; none outlives the one that starts it."""

import ctypes
import os
import signal
import subprocess

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with(parent):
    """In the child, before exec: the kernel kills it should its parent be killed."""

    def prepare():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def start(command, **options):
    """Popen in a session of its own: Ctrl-C reaches the parent, which ends its children in order."""
    return subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with(os.getpid()), **options)


def end(child):
    """Ends a child and what it started; returns when it is gone. Harmless when it is."""
    if child is None or child.returncode is not None:
        return
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()
