"""Runs a program in a Python of its own."""

import os
import subprocess
import sys
import textwrap


def run(program, *, environment=None, path=(), timeout=60):
    """Returns the finished process, with its output as text. The program finds this folder's modules."""
    environment = {**os.environ, **(environment or {})}
    environment["PYTHONPATH"] = os.pathsep.join([*path, os.path.dirname(__file__)])
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def output_of(program, **options):
    """What it prints. It has to end well, and to say nothing on standard error."""
    finished = run(program, **options)
    assert finished.returncode == 0 and finished.stderr == "", (finished.returncode, finished.stderr)
    return finished.stdout
