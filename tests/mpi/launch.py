"""Runs one MPI job within a time limit, reads what the test program says, and leaves no process behind."""

import os
import re
import signal
import subprocess
import tempfile
import time
import uuid

# Launchers that are told to stop clean up after themselves, given the time.
STOP_GRACE_S = 3
# Daemons of launchers end a moment after the launcher.
END_GRACE_S = 2
# Variables that would change what an MPI does. FI_LOG_* are for whoever looks for a fault.
FOREIGN = ("OMPI_", "PMIX_", "PRTE_", "MPIR_", "I_MPI_", "FI_", "HYDRA_", "UCX_", "HAUL_TEST_")


# What a launcher, an MPI or a C library says of a signal or of an error's class, however it words the rest.
TELLING = re.compile(r"signal[^\d\n]{0,12}(\d+)|(segmentation fault|bus error|floating point exception|"
                     r"illegal instruction|aborted|killed)|(MPI_ERR_\w+)", re.IGNORECASE)
SIGNALS = {"segmentation fault": "11", "bus error": "7", "floating point exception": "8", "illegal instruction": "4",
           "aborted": "6", "killed": "9"}
BYTES = re.compile(r"byte \d+ of (\d+) is 0x[0-9a-f]+, not 0x[0-9a-f]+")


class Cause:
    """What a case fails of, to be compared with how it fails elsewhere: the kind (`assertion`, `exit code N`, `does
    not end`, `skip`) and the reason in words that do not depend on the rank that was the first to say it."""

    def __init__(self, kind, reason="", rank=None):
        self.kind = kind
        self.reason = reason
        self.rank = rank  # which one said it; each expects bytes of its own

    def __eq__(self, other):
        return (self.kind, self.reason) == (other.kind, other.reason)

    def words(self):
        return f"{self.kind}: {self.reason}"

    def without_bytes(self):
        """The same of whichever bytes: for a fault that depends on time."""
        return Cause(self.kind, BYTES.sub(r"a byte of \1 is wrong", self.reason))

    @staticmethod
    def of_assertion(sentence):
        told = re.match(r"rank (\d+) of ", sentence)
        return Cause("assertion", re.sub(r"^rank \d+ of ", "a rank of ", sentence), told and told.group(1))

    @staticmethod
    def of_exit(exit_code, output):
        found = [said for line in foreign_lines(output) for said in TELLING.findall(line)]
        words = {f"signal {number or SIGNALS[name.lower()]}" if not error else error for number, name, error in found}
        return Cause(f"exit code {exit_code}", ", ".join(sorted(words)))


class Outcome:
    """bad_case: the first case that failed, crashed or hung; None if all went well. message: how; cause: of what."""

    def __init__(self, output, exit_code, timed_out, left_over):
        self.skipped = {}
        self.bad_case = None
        self.message = ""
        self.cause = None
        running = "(start)"
        finished = False
        for line in output.splitlines():
            verb, _, rest = line.partition(" ")
            case, _, detail = rest.partition(": ")
            if verb == "begin":
                running = rest
            elif verb == "ok" and case == running:
                running = "(finalize)"
            elif verb == "skip":
                self.skipped[case] = detail
                running = "(finalize)"
            elif verb == "FAIL" and self.bad_case is None:
                self.bad_case, self.message, self.cause = case, detail, Cause.of_assertion(detail)
            elif verb == "passed":
                finished = True
        if self.bad_case is not None:
            return
        if timed_out:
            self.bad_case, self.message, self.cause = running, "does not end", Cause("does not end")
        elif exit_code != 0 or not finished:
            self.bad_case, self.message = running, f"exit code {exit_code}: {last_words(output)}"
            self.cause = Cause.of_exit(exit_code, output)
        elif left_over:
            self.bad_case, self.message = "(end)", f"{left_over} processes are left behind"
            self.cause = Cause("processes left behind")


def foreign_lines(output):
    """Those that are not the program's own, without what frames them."""
    own = ("begin ", "ok ", "skip ", "passed ", "---", "===")
    return [line.strip() for line in output.splitlines() if line.strip() and not line.startswith(own)]


def last_words(output):
    """What is most likely to say why."""
    return " / ".join(foreign_lines(output)[-6:])[:700]


class Launcher:
    def __init__(self, scratch):
        self.scratch = scratch
        self.base = {name: value for name, value in os.environ.items()
                     if not name.startswith(FOREIGN) or name.startswith("FI_LOG_")}

    def run(self, command, additions, limit_s):
        mark = f"HAUL_TEST_RUN={uuid.uuid4()}"
        environment = dict(self.base, TMPDIR=str(self.scratch), **additions)
        environment.update([mark.split("=", 1)])
        timed_out = False
        shared_before = shared_files()
        # A file, not a pipe: a process that is left behind must not keep this one waiting for its end.
        with tempfile.TemporaryFile(dir=self.scratch) as output:
            # Where MPIs may drop what they write when they crash.
            job = subprocess.Popen(command, env=environment, cwd=self.scratch, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
            try:
                job.wait(limit_s)
            except subprocess.TimeoutExpired:
                timed_out = True
                os.killpg(job.pid, signal.SIGTERM)
                try:
                    job.wait(STOP_GRACE_S)
                except subprocess.TimeoutExpired:
                    os.killpg(job.pid, signal.SIGKILL)
                    job.wait()
            except BaseException:
                os.killpg(job.pid, signal.SIGKILL)
                kill_marked(mark, 0)
                raise
            left_over = kill_marked(mark, END_GRACE_S)
            output.seek(0)
            text = output.read().decode(errors="replace")
        outcome = Outcome(text, job.returncode, timed_out, left_over)
        # An MPI whose ranks were killed does not remove what it had made.
        if outcome.bad_case is not None:
            remove_unused(shared_files() - shared_before)
        return outcome


def belongs_to_me(entry):
    try:
        return entry.stat(follow_symlinks=False).st_uid == os.getuid()
    except OSError:
        return False  # it has just been removed


def shared_files():
    """This user's files of shared memory."""
    with os.scandir("/dev/shm") as entries:
        return {entry.path for entry in entries if belongs_to_me(entry)}


def remove_unused(files):
    """Removes those that no living process has open or mapped: other jobs may have made some of them."""
    used = set()
    for name in os.listdir("/proc") if files else []:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/maps", encoding="utf-8", errors="replace") as maps:
                used.update(line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/dev/shm/" in line)
            used.update(os.readlink(entry.path) for entry in os.scandir(f"/proc/{name}/fd"))
        except OSError:
            continue  # gone, or another user's
    for file in files - used:
        try:
            os.unlink(file)
        except OSError:
            continue  # its owner has just removed it


def marked(mark):
    """The living processes whose environment has the mark: those of one job, wherever they went."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # gone, or another user's
    return found


def kill_marked(mark, grace_s):
    """Waits for the job's processes to end, kills what is left, and returns how many that were."""
    until = time.monotonic() + grace_s
    left = marked(mark)
    while left and time.monotonic() < until:
        time.sleep(0.05)
        left = marked(mark)
    for process in left:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            continue  # it has just ended
    return len(left)
