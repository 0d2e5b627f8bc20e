#!/usr/bin/env python3
"""Records the traces of one workload: one for each of its machines.

Usage: record.py WORKLOAD [options]       record.py --list

The guests (guest/make_guest.sh) run in QEMU with the tracer (plugin/), whose stream goes through a pipe
into `bcisim convert`. README.md says what is recorded and what is not.
"""

import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "scripts")]

from guests import machine, program  # noqa: E402
from guests.problem import Problem  # noqa: E402
from recorder.progress import Progress  # noqa: E402
from recorder.session import Session  # noqa: E402
from recorder.workloads import WORKLOADS  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "haul"
BUILD = HERE.parent.parent / "build"


def count(text):
    """A number of instructions: 1000, 5M, 2G."""
    scale = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:].upper(), 1)
    try:
        return int(float(text[:-1] if scale != 1 else text) * scale)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of instructions; write 100000 or 20M")


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """One line, as for every other failure."""
        self.exit(2, f"record.py: {message}; see record.py --help\n")


def arguments():
    parser = Parser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("workload", nargs="?", choices=sorted(WORKLOADS), help="what to record")
    parser.add_argument("--list", action="store_true", help="say which workloads there are, and their traces")
    parser.add_argument("-n", "--instructions", type=count, default=count("100M"), help="of each machine (100M)")
    parser.add_argument("--skip", type=count, default=count("2M"),
                        help="instructions between the mark and the recording, at its speed (2M)")
    parser.add_argument("-o", "--output", default=str(CACHE / "traces"), help="directory of the traces")
    parser.add_argument("--suffix", default=".trace", help="of the traces' names (.trace)")
    parser.add_argument("--missing", action="store_true", help="do nothing when the workload's traces are there")
    parser.add_argument("--convert", metavar="COMMAND",
                        help="what reads the stream from its standard input; {out}, {symbols} and {meta} stand for"
                             " the trace, the guest's kallsyms and '--meta KEY=VALUE ...'"
                             " (bcisim convert - --symbols {symbols} {meta} -o {out})")
    parser.add_argument("--bcisim", default=str(BUILD / "release/bin/bcisim"), help="the simulator's program")
    parser.add_argument("--tools", default=str(BUILD / "sim-tracer"), help="where `make -C sim tracer` put its parts")
    parser.add_argument("--guest", default=str(CACHE / "sim"), 
                        help="where make_guest.sh put the guest; made if not there")
    parser.add_argument("--icount", default="0",
                        help="the guest's clock advances by 2^N ns for each instruction; off: it is the host's (0)")
    parser.add_argument("--keep-symbols", action="store_true", help="leave NAME.kallsyms beside each trace")
    parser.add_argument("--check-dma", action="store_true", help="count DMA in a second way, too, and say both")
    chosen = parser.parse_args()
    if not chosen.list and chosen.workload is None:
        parser.error("name a workload, or --list")
    return chosen


def prepare(settings):
    """Finds what is needed; says what is missing."""
    settings.workload = WORKLOADS[settings.workload]
    machine.need()
    settings.plugin = os.path.join(settings.tools, "libbcisim_tracer.so")
    settings.mark = os.path.join(settings.tools, "mark")
    settings.scripts = str(HERE / "guest")
    for path in (settings.plugin, settings.mark):
        if not os.path.exists(path):
            raise Problem(f"The tracer's part {path} is missing; run `make -C sim tracer`, or name --tools.")
        if "," in path:
            raise Problem(f"QEMU takes no path with a comma ({path}); build elsewhere.")
    if settings.instructions < 1:
        raise Problem("There must be at least one instruction to record; give -n 20M or the like.")
    if settings.skip < 0:
        raise Problem("There cannot be fewer than no instructions to skip; give --skip 2M or the like.")
    settings.convert = shlex.split(
        settings.convert or f"{shlex.quote(settings.bcisim)} convert - --symbols {{symbols}} {{meta}} -o {{out}}")
    if shutil.which(settings.convert[0]) is None:
        raise Problem(f"The converter {settings.convert[0]} is missing; build it, or name --bcisim or --convert.")
    made = subprocess.run([str(HERE / "guest/make_guest.sh"), settings.guest], stdout=subprocess.DEVNULL, check=False)
    if made.returncode != 0:
        raise Problem("The guest could not be made; its cause stands above.")
    settings.meta = {"instructions": settings.instructions, "skip": settings.skip, "icount": settings.icount}
    with open(os.path.join(settings.guest, "versions"), encoding="utf-8") as file:
        settings.meta.update(line.strip().split("=", 1) for line in file if "=" in line)


def main():
    settings = arguments()
    if settings.list:
        for workload in WORKLOADS.values():
            print(f"{workload.name}: {workload.what}; traces {', '.join(workload.traces())}")
        return 0
    if settings.missing and all(
        os.path.exists(os.path.join(settings.output, name + settings.suffix))
        for name in WORKLOADS[settings.workload].traces()
    ):
        return 0
    prepare(settings)
    for guest in Session(settings, Progress(settings.instructions)).record():
        print(f"{guest.output}: {guest.recorded} instructions in {guest.ended - guest.began:.1f} s")
        for line in guest.dma_lines:
            print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(program.run("record.py", main, "Interrupted; nothing was written."))
