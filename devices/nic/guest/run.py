#!/usr/bin/env python3
"""Runs the engine nic in a guest of QEMU, on an emulated gigabit card whose cable returns to it (paper 004).

Usage: run.py [options]
"""

import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent.parent / "scripts")]

from guests import archive, machine, program  # noqa: E402
from guests.bundle import bundle  # noqa: E402
from guests.problem import Problem  # noqa: E402
from machine_with_card import MachineWithCard  # noqa: E402
from steps import STEPS  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "haul"
BUILD = HERE.parent.parent.parent / "build/release"
BOOT_SECONDS, STEP_SECONDS = 300, 600  # on a slow and busy host


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"run.py: {message}; see run.py --help\n")


def arguments():
    parser = Parser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=str(BUILD), help="the build directory (build/release)")
    parser.add_argument("--guest", default=str(CACHE / "nic-guest"),
                        help="where make_guest.sh put the guest; made if not there")
    parser.add_argument("--card", default="e1000", choices=("e1000", "e1000e"), help="which card QEMU emulates (e1000)")
    parser.add_argument("--quick", action="store_true", help="a part of the tests, and no figures: a minute")
    parser.add_argument("--only", metavar="TEXT", default="", help="the steps whose names hold it")
    parser.add_argument("--list", action="store_true", help="say which steps there are")
    parser.add_argument("--console", action="store_true", help="show all that the guest says")
    return parser.parse_args()


def make_guest(folder):
    made = subprocess.run([str(HERE / "make_guest.sh"), folder], stdout=subprocess.DEVNULL, check=False)
    if made.returncode != 0:
        raise Problem("The guest could not be made; its cause stands above.")


class Run:
    """The steps of one start of the guest."""

    def __init__(self, settings, steps):
        self._settings, self._steps = settings, steps
        self.failed = 0

    def go(self):
        settings = self._settings
        first = self._steps[0]
        scripts = {
            "start.sh": (HERE / "start.sh").read_bytes(),
            "steps.sh": "".join(step.script(settings.quick) for step in self._steps).encode(),
        }
        programs = sorted({step.program for step in self._steps}) + ["lib/libhaul.so.0", "lib/libhaul-nic.so"]
        with tempfile.TemporaryDirectory(prefix="haul-nic-guest-") as folder:
            initrd = os.path.join(folder, "initrd")
            archive.add_to(os.path.join(settings.guest, "initrd"), bundle(settings.build, programs, scripts), initrd)
            self._machine = MachineWithCard(settings.card, settings.guest, initrd, first.counting, first.iommu)
            self._begun_steps = 0
            try:
                self._listen()
            finally:
                self._machine.end()
        return self.failed

    def _listen(self):
        waiting = "the guest's boot"
        limit = BOOT_SECONDS
        said = []
        began = begun = time.monotonic()
        while True:
            line = self._machine.line(max(begun + limit - time.monotonic(), 0))
            if line is None:
                raise Problem(f"No end of {waiting} within {limit} s; the guest last said: {' / '.join(said[-3:])};"
                              " is the host overloaded?")
            if self._settings.console:
                print(line, flush=True)
            word, _, rest = line.removeprefix("HAUL: ").partition(" ") if line.startswith("HAUL: ") else ("", "", "")
            if word == "step":
                if waiting == "the guest's boot":
                    print(f"booted in {time.monotonic() - began:.1f} s", flush=True)
                self._begun_steps += 1
                waiting, limit, said, begun = rest, STEP_SECONDS, [], time.monotonic()
                self._show(f"{self._begun_steps} of {len(self._steps)}: {rest}")
            elif word == "end":
                self._show("")
                self._report(waiting, int(rest), said, time.monotonic() - begun)
                waiting, said, begun = "the next step", [], time.monotonic()
            elif word == "error":
                raise Problem(f"The guest gave up: {rest}.")
            elif word == "done":
                return
            elif "Kernel panic" in line:
                raise Problem(f"The guest broke down: {line}; see KERNEL_ARGUMENTS in machine_with_card.py.")
            else:
                said.append(line)

    def _show(self, text):
        """What runs now, on a terminal."""
        if sys.stderr.isatty() and not self._settings.console:
            sys.stderr.write("\r\033[K" + text)
            sys.stderr.flush()

    def _report(self, name, status, said, seconds):
        counting = self._steps[0].counting
        counts = {"OK": 0, "FAILED": 0, "SKIPPED": 0}
        for line in said:
            found = re.match(r"\[ +(OK|FAILED|SKIPPED) +\] \S+ \(", line)
            if found:
                counts[found[1]] += 1
        if status == 0 and counts["OK"] == 0 and not counting:
            said.append("No test of this step ran.")
            status = 1
        # (A pipe tells nothing of its first program's end; its table begins with the columns' names.)
        if status == 0 and counting and not any(line.startswith("cores ") for line in said):
            status = 1
        what = "" if counting else f" {counts['OK']} tests, {counts['SKIPPED']} skipped,"
        print(f"{'passed' if status == 0 else 'FAILED'}: {name}:{what} {seconds:.1f} s", flush=True)
        if status != 0:
            self.failed += 1
        if (status != 0 or counting) and not self._settings.console:
            print("\n".join(said), flush=True)


def main():
    settings = arguments()
    steps = [step for step in STEPS if settings.only in step.name and (step.quick_tests or not settings.quick)]
    if settings.list:
        print("\n".join(step.name for step in STEPS))
        return 0
    if not steps:
        raise Problem(f"No step's name holds '{settings.only}'; --list says which there are.")
    machine.need()
    make_guest(settings.guest)
    failed = 0
    for counting, iommu in itertools.product((False, True), repeat=2):
        some = [step for step in steps if (step.counting, step.iommu) == (counting, iommu)]
        if some:
            failed += Run(settings, some).go()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(program.run("run.py", main, "Interrupted."))
