"""How every guest of QEMU is started here: nothing in it but what its owner names."""

import shutil

from guests.problem import Problem

QEMU = "qemu-system-x86_64"


def need():
    """Says so when QEMU is missing."""
    if shutil.which(QEMU) is None:
        raise Problem(f"{QEMU} is missing; install the package qemu-system-x86.")


def bare():
    """The command of a machine without devices, screen and user's configuration, which ends when it would restart;
    its console is QEMU's standard input and output."""
    command = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    return command + ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
