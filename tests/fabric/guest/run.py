#!/usr/bin/env python3
"""Runs fabric_overlap in a guest of QEMU with four CPUs, where haul's thread finds a free core.

Usage: run.py --build DIRECTORY [--guest DIRECTORY]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from guests import archive, children, machine, program  # noqa: E402
from guests.bundle import bundle  # noqa: E402
from guests.problem import Problem  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "haul"
CPUS = 4
LIMIT_SECONDS = 540  # on a slow and busy host
SKIPPED = 77


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("--guest", default=str(CACHE / "nic-guest"), help="where make_guest.sh put the guest")
    return parser.parse_args()


def missing(guest):
    """What keeps the guest from being started, or None."""
    if shutil.which(machine.QEMU) is None:
        return f"{machine.QEMU} is missing; install qemu-system-x86"
    if not (pathlib.Path(guest) / "stamp").is_file():
        return "no guest was made; run `make nic-guest`"
    return None


def words_of(guest, initrd):
    """What the guest says, line by line, until it ends."""
    command = machine.bare() + ["-m", "2G", "-cpu", "max", "-smp", str(CPUS), "-accel", "tcg,thread=multi"]
    command += ["-kernel", os.path.join(guest, "vmlinuz"), "-initrd", initrd]
    command += ["-append", "console=ttyS0 quiet panic=-1 mitigations=off nowatchdog random.trust_cpu=on"]
    qemu = children.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # (Killed, it ends the loop.)
    timer = threading.Timer(LIMIT_SECONDS, qemu.kill)
    timer.start()
    try:
        for line in qemu.stdout:
            yield line.decode(errors="replace").rstrip()
    finally:
        timer.cancel()
        children.end(qemu)


def main():
    settings = arguments()
    lacking = missing(settings.guest)
    if lacking:
        print(f"skipped: {lacking}")
        return SKIPPED
    programs = ["tests/fabric_overlap", "lib/libhaul.so.0", "lib/libhaul-fi.so"]
    said, results = [], {}
    with tempfile.TemporaryDirectory(prefix="haul-overlap-guest-") as folder:
        initrd = os.path.join(folder, "initrd")
        files = bundle(settings.build, programs, {"start.sh": (HERE / "start.sh").read_bytes()})
        archive.add_to(os.path.join(settings.guest, "initrd"), files, initrd)
        for line in words_of(settings.guest, initrd):
            said.append(line)
            if line.startswith("HAUL: "):
                name, _, value = line.removeprefix("HAUL: ").partition(" ")
                results[name] = value
    if "done" not in results:
        raise Problem(f"The guest did not end in order; it last said: {' / '.join(said[-3:])}.")
    print("\n".join(said))
    good = results.get("cpus") == str(CPUS) and results.get("auto") == "0" and results.get("off") not in (None, "0")
    print("passed" if good else "FAILED: auto must pass, and off must not")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(program.run("run.py", main, "Interrupted."))
