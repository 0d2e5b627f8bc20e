#!/usr/bin/env python3
"""Builds the MPI test programs with each MPI and runs them on a transport.

  tests/mpi/run.py --transport haul --provider-dir build/release/lib
  tests/mpi/run.py --transport native --mpi intel --ranks 2 --only pt2pt
  tests/mpi/run.py --transport 'ofi:tcp;ofi_rxm' --only matching:cancel

What fails on the transport is tried again on the MPI's own shared memory, with as many ranks, and, if haul is the
transport, on libfabric's own TCP provider. What fails there of the same cause (the assertion's sentence with its bytes,
the exit code and the signal, a hang), or is lacking there as well, is listed and forgiven. What fails there of another
cause may hide a fault of haul's: it is forgiven if somebody has looked and has written down in otherwise.txt whose fault
it is. All else fails the run.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

import launch

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = ["pt2pt", "matching", "load", "datatypes", "partitioned", "collectives", "reductions", "topology",
            "rma", "rma_ops", "atomics", "threads", "processes"]
FEATURES = {"HAVE_PARTITIONED": "MPI_Psend_init", "HAVE_PERSISTENT_COLLECTIVES": "MPI_Allreduce_init"}
C_FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Wshadow", "-Wconversion",
           "-Wno-sign-conversion"]
# A case that fails is left out and the others are run again, this often at most.
MOST_RERUNS = 8
# What fails elsewhere of another cause, and was found to be the MPI's own fault.
OTHERWISE = HERE / "otherwise.txt"
# A fault of an MPI may show up only now and then.
REFERENCE_ATTEMPTS = 5


def stop(sentence):
    print(f"test-mpi: {sentence}", file=sys.stderr)
    sys.exit(2)


def known_faults():
    """The lines of otherwise.txt: (MPI, program, case, pattern of cause and message on haul, whose fault it is)."""
    faults = []
    for number, line in enumerate(OTHERWISE.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        place, *rest = (part.strip() for part in line.split(" | "))
        if len(place.split()) != 3 or len(rest) != 2 or not all(rest):
            stop(f"{OTHERWISE}:{number} is not 'MPI PROGRAM CASE | PATTERN | WHOSE FAULT'; mend it")
        faults.append((*place.split(), re.compile(rest[0]), rest[1]))
    return faults


class Peer:
    """One MPI: its words from scripts/peers.sh, its programs, and what is known of its reference runs."""

    def __init__(self, name, provider_dir, work, shared):
        self.name = name
        self.shared = shared
        self.provider_dir = provider_dir
        self.work = work / name
        self.references = {}
        self.known_words = {}
        self.title = " ".join(self.words("native")["MPI_TITLE"])

    def words(self, transport):
        """What scripts/peers.sh says about running on the transport."""
        if transport not in self.known_words:
            environment = dict(os.environ, PROVIDER=transport.removeprefix("ofi:"))
            environment["DIR"] = str(self.provider_dir) if transport == "haul" else ""
            answer = subprocess.run([ROOT / "scripts/peers.sh", "env", self.name], env=environment, text=True,
                                    capture_output=True)
            if answer.returncode != 0:
                stop(answer.stderr.strip().removeprefix("haul: "))
            lines = (line.split("=", 1) for line in answer.stdout.splitlines())
            self.known_words[transport] = {variable: shlex.split(shlex.split(value)[0] if value else "")
                                           for variable, value in lines}
        return self.known_words[transport]

    def tcp(self):
        """The name of libfabric's own TCP provider, under this MPI."""
        return "ofi:tcp" if self.name == "intel" else "ofi:tcp;ofi_rxm"

    def command(self, program, transport, ranks, arguments):
        """The command line and what it needs in its environment."""
        words = self.words(transport)
        road = "NATIVE" if transport == "native" else "OFI"
        command = (words["MPI_LAUNCH"] + words["MPI_CROWD_ARGS"] + words[f"MPI_{road}_ARGS"] +
                   ["-n", str(ranks), str(self.work / program)] + arguments)
        assignments = words["MPI_ENV"] + words["MPI_CROWD_ENV"] + words[f"MPI_{road}_ENV"]
        additions = dict(word.split("=", 1) for word in assignments)
        if transport == "haul":
            additions["HAUL_TEST_PROVIDER_LIBRARY"] = "libhaul-fi.so"
            if self.shared:
                additions["LD_PRELOAD"] = str(self.provider_dir / "libhaul-malloc.so")
        if transport == "ofi:tcp":
            # Intel MPI uses the one-sided calls of a provider that it does not know, but not of this one.
            additions["MPIR_CVAR_CH4_OFI_ENABLE_RMA"] = "1"
        return command, additions

    def has(self, function):
        source = self.work / f"has_{function}.c"
        source.write_text(f"#include <mpi.h>\nint main(void) {{ return {function} == 0; }}\n")
        build = subprocess.run(self.words("native")["MPI_CC"] + [source, "-w", "-o", source.with_suffix("")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return build.returncode == 0

    def compile(self, program, features):
        """Builds the program unless it is there; returns whether it could, and what the compiler said."""
        sources = [HERE / f"{program}.c", HERE / "harness.c"]
        if '#include "windows.h"' in sources[0].read_text():
            sources.append(HERE / "windows.c")
        command = [str(word) for word in self.words("native")["MPI_CC"] + C_FLAGS + features + sources]
        # Anything that goes into the program makes it anew: the flags by their text, the files by their times.
        recipe = self.work / f"{program}.recipe"
        target = self.work / program
        inputs = sources + list(HERE.glob("*.h"))
        if (target.exists() and recipe.exists() and recipe.read_text() == shlex.join(command) and
                all(file.stat().st_mtime < target.stat().st_mtime for file in inputs)):
            return True, ""
        build = subprocess.run(command + ["-o", target], text=True, capture_output=True)
        if build.returncode == 0:
            recipe.write_text(shlex.join(command))
        return build.returncode == 0, build.stderr

    def build(self, programs):
        self.work.mkdir(parents=True, exist_ok=True)
        features = [f"-D{macro}" for macro, function in FEATURES.items() if self.has(function)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for built, said in pool.map(lambda program: self.compile(program, features), programs):
                if not built:
                    stop(f"{self.title} cannot build a test program; is its installation whole? It says:\n{said}")
                if said:
                    print(said, file=sys.stderr)


class Run:
    """One invocation: its settings, and what is to be said at the end."""

    def __init__(self, options, launcher):
        self.options = options
        self.launcher = launcher
        self.failures = []
        self.forgiven = []
        self.faults = known_faults()

    def launch(self, peer, program, transport, ranks, arguments, limit_s):
        command, additions = peer.command(program, transport, ranks, arguments)
        return self.launcher.run(command, additions, limit_s)

    def references(self, peer, transport, program, ranks, case):
        """How the case ends on another transport, attempt by attempt, as (cause, message): made as they are asked
        for, and remembered."""
        lacking = (transport, program, None, case)  # what an MPI lacks, it lacks for any number of ranks
        known = peer.references.get(lacking) or peer.references.setdefault((transport, program, ranks, case), [])
        yield from list(known)
        while len(known) < REFERENCE_ATTEMPTS and not (known and known[0][0].kind == "skip"):
            outcome = self.launch(peer, program, transport, ranks, [case], self.options.case_limit)
            if outcome.bad_case is not None:
                known.append((outcome.cause, outcome.message))
            elif case in outcome.skipped:
                known.append((launch.Cause("skip", outcome.skipped[case]), outcome.skipped[case]))
                peer.references[lacking] = known
            else:
                known.append((launch.Cause("ok"), ""))
            yield known[-1]

    def excuse(self, peer, program, ranks, case, cause, message):
        """Why what went wrong with a case is no fault of the transport, and None; or None, and what is to be added to the
        message. Like causes first."""
        transport = self.options.transport
        if transport == "native":
            return (message if cause.kind == "skip" else None), None
        if case.startswith("("):
            return None, None
        places = {"natively": "native"}
        if transport == "haul":
            places["on libfabric's TCP provider"] = peer.tcp()
        otherwise = None
        for where, other in places.items():
            seen = []
            for found, said in self.references(peer, other, program, ranks, case):
                # Another rank expects other bytes. And where the bytes differ from one time to the next elsewhere,
                # too, they say nothing.
                varies = found.rank != cause.rank or any(
                    one.without_bytes() == found.without_bytes() and one != found for one in seen)
                if found == cause or (varies and found.without_bytes() == cause.without_bytes()):
                    return f"{message} | {'lacking' if cause.kind == 'skip' else 'fails'} {where}, too: {said}", None
                if found.kind != "ok" and otherwise is None:
                    otherwise = f"fails {where}, too, but of another cause: {said}"
                seen.append(found)
        if otherwise is None:
            return None, None
        for mpi, of, name, pattern, whose in self.faults:
            if (mpi, of, name) == (peer.name, program, case) and pattern.search(f"{cause.words()} {message}"):
                return f"{message} | {otherwise} | {whose}", None
        return None, f"{otherwise}; find out whose fault it is, and if it is the MPI's own, write that into {OTHERWISE.name}"

    def judge(self, peer, program, ranks, case, cause, message):
        """Sorts what went wrong with a case into forgiven and failed; returns whether it failed."""
        where = f"{peer.name} {program} {ranks} ranks, {case}"
        excuse, addition = self.excuse(peer, program, ranks, case, cause, message)
        if excuse is None:
            self.failures.append(f"{where}: {'skipped: ' if cause.kind == 'skip' else ''}{message}" +
                                 (f" | {addition}" if addition else ""))
            return True
        self.forgiven.append(f"{where}: {excuse}")
        return False

    def run_program(self, peer, program, ranks, cases):
        """Runs it, without the cases that failed, until nothing fails; returns the cell of the table."""
        left_out = []
        failed = 0
        forgiven = 0
        for _ in range(MOST_RERUNS):
            arguments = cases + [f"-{case}" for case in left_out]
            outcome = self.launch(peer, program, self.options.transport, ranks, arguments,
                                  self.options.time_limit)
            if outcome.bad_case is None:
                for case, reason in outcome.skipped.items():
                    bad = self.judge(peer, program, ranks, case, launch.Cause("skip", reason), reason)
                    failed += bad
                    forgiven += not bad
                break
            bad = self.judge(peer, program, ranks, outcome.bad_case, outcome.cause, outcome.message)
            failed += bad
            forgiven += not bad
            if outcome.bad_case.startswith("(") or outcome.bad_case in left_out:
                break
            left_out.append(outcome.bad_case)
        if failed:
            return "FAIL"
        return f"ok-{forgiven}" if forgiven else "ok"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", default="haul", help="haul (default), native, or ofi:PROVIDER")
    parser.add_argument("--provider-dir", type=pathlib.Path, help="where libhaul-fi.so lies")
    parser.add_argument("--memory", choices=["private", "shared"], default="private",
                        help="of haul: where malloc takes large allocations from")
    parser.add_argument("--mpi", help="openmpi4,openmpi5,mpich5,intel (default: those that are there)")
    parser.add_argument("--ranks", default="2,3,4,8", help="how many (default: %(default)s)")
    parser.add_argument("--only", help="PROGRAM or PROGRAM:CASE, separated by commas")
    parser.add_argument("--work", type=pathlib.Path, help="keep the built programs here")
    parser.add_argument("--time-limit", type=float, default=60, help="seconds a program may take")
    parser.add_argument("--case-limit", type=float, default=20, help="seconds a case may take elsewhere")
    options = parser.parse_args()
    if options.transport == "haul":
        if options.provider_dir is None:
            stop("where is the provider? Give --provider-dir, such as build/release/lib")
        options.provider_dir = options.provider_dir.resolve()
        if not (options.provider_dir / "libhaul-fi.so").exists():
            stop(f"there is no libhaul-fi.so in {options.provider_dir}; build haul with libfabric-dev installed")
    elif options.transport != "native" and not options.transport.startswith("ofi:"):
        stop(f"there is no transport '{options.transport}'; use haul, native or ofi:PROVIDER")
    return options


def chosen_cases(only):
    """Which programs, each with the cases that are named; none named: all."""
    if only is None:
        return {program: [] for program in PROGRAMS}
    chosen = {}
    for word in only.split(","):
        program, _, case = word.partition(":")
        if program not in PROGRAMS:
            stop(f"there is no test program '{program}'; there are {', '.join(PROGRAMS)}")
        chosen.setdefault(program, []).extend([case] if case else [])
    return chosen


def main():
    # As an interrupt from the keyboard: the running job is killed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_arguments()
    cases = chosen_cases(options.only)
    ranks = [int(count) for count in options.ranks.split(",")]
    names = options.mpi.split(",") if options.mpi else subprocess.run(
        [ROOT / "scripts/peers.sh", "list"], text=True, capture_output=True, check=True).stdout.split()
    if not names:
        stop("no MPI is installed; run scripts/peers.sh, or install openmpi-bin and libopenmpi-dev")
    # Short, as MPIs put sockets below it, whose paths may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="haul-mpi-") as scratch:
        run = Run(options, launch.Launcher(pathlib.Path(scratch)))
        work = options.work.resolve() if options.work else pathlib.Path(scratch) / "programs"
        for name in names:
            peer = Peer(name, options.provider_dir, work, options.memory == "shared")
            peer.build(cases)
            print(f"{peer.title} on {options.transport}", flush=True)
            for program in cases:
                cells = []
                for count in ranks:
                    cells.append(f"{count}: {run.run_program(peer, program, count, cases[program]):<6}")
                print(f"  {program:<12} ranks {' '.join(cells)}", flush=True)
    if run.forgiven:
        print("\nListed, as the MPI fails or lacks them elsewhere, too (ok-N above: N of them):")
        print("\n".join(f"  {line}" for line in run.forgiven))
    if run.failures:
        print("\nFailed:")
        print("\n".join(f"  {line}" for line in run.failures))
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
