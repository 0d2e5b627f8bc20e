"""One recording: the machines of a workload run until each has recorded its window."""

import os
import selectors
import shutil
import socket
import tempfile
import time

from guests import children
from guests.problem import Problem
from recorder import dma
from recorder.guest import Guest

BOOT_SECONDS = 600  # up to the mark, on a slow and busy host
STALL_SECONDS = 600  # without a million instructions more


class Session:
    """record() leaves either every trace of the workload or none, and no processes or files beside."""

    def __init__(self, settings, progress):
        self._settings, self._progress = settings, progress
        self._guests = []
        self._selector = selectors.DefaultSelector()

    def record(self):
        settings = self._settings
        folder = tempfile.mkdtemp(prefix="bcisim-")
        try:
            os.makedirs(settings.output, exist_ok=True)
            self._start(folder)
            self._run()
            for guest in self._guests:
                os.replace(guest.partial, guest.output)
                if settings.keep_symbols:
                    shutil.copyfile(guest.symbols, os.path.join(settings.output, guest.name + ".kallsyms"))
            return self._guests
        except OSError as error:
            what = f" ({error.filename})" if error.filename else ""
            raise Problem(f"The recording failed: {error.strerror}{what}; check space and rights there and in"
                          f" {tempfile.gettempdir()}.") from error
        finally:
            for guest in self._guests:
                guest.end()
            shutil.rmtree(folder, ignore_errors=True)
            self._progress.end()

    def _start(self, folder):
        settings = self._settings
        machines = settings.workload.machines
        links = socket.socketpair() if len(machines) == 2 else (None,)
        for machine, name, link in zip(machines, settings.workload.traces(), links):
            place = os.path.join(folder, machine.role)
            os.mkdir(place)
            guest = Guest(machine, name, settings, link, place)
            self._guests.append(guest)
            guest.start()
            self._watch(guest.control, lambda guest=guest: self._on_control(guest))
            self._watch(guest.qemu.stdout, lambda guest=guest: self._on_text(guest, guest.qemu.stdout, guest.console))
            self._watch(guest.qemu.stderr, lambda guest=guest: self._on_text(guest, guest.qemu.stderr, guest.warnings))

    def _watch(self, source, callback):
        self._selector.register(source, selectors.EVENT_READ, callback)

    def _run(self):
        self._moved = time.monotonic()
        while any(guest.state != "done" for guest in self._guests):
            self._step()
        for guest in self._guests:
            children.end(guest.qemu)
        while any(guest.converter.poll() is None for guest in self._guests):
            self._step()
        for guest in self._guests:
            self._check_converter(guest)
            if not os.path.exists(guest.partial):
                raise Problem(f"The converter ended without writing {guest.partial}; let its --convert name {{out}}.")

    def _step(self):
        for key, _ in self._selector.select(timeout=0.5):
            key.data()
        for guest in self._guests:
            self._check_converter(guest)
            if guest.state != "done" and guest.qemu.poll() is not None:
                raise Problem(f"QEMU ended while {guest.name} was {guest.state} ({self._end_of(guest)}); run it again.")
        self._progress.show(self._guests)
        waited = time.monotonic() - self._moved
        if any(guest.state == "booting" for guest in self._guests):
            if waited > BOOT_SECONDS:
                raise Problem(f"The load did not run within {BOOT_SECONDS} s; the guests last said:"
                              f" {' / '.join(guest.said() for guest in self._guests)}; see recorder/session.py.")
        elif waited > STALL_SECONDS:
            raise Problem(f"Nothing moved for {STALL_SECONDS} s; the guests last said:"
                          f" {' / '.join(guest.said() for guest in self._guests)}; is the host overloaded?")

    @staticmethod
    def _end_of(guest):
        code = guest.qemu.returncode
        cause = f"by signal {-code}" if code < 0 else f"with code {code}"
        return cause + (": " + guest.warnings[-1].strip() if guest.warnings else "")

    def _check_converter(self, guest, too_early=False):
        """A converter that ended badly ends the recording, and so does one that ended too early: of
        that the tracer tells, because a converter that has read the end may be ahead of "done"."""
        converter = guest.converter
        if converter is None or converter.poll() is None:
            return
        if converter.returncode == 0 and not too_early:
            return
        self._drain(guest)
        code = converter.returncode
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        said = guest.complaints[-1].strip() if guest.complaints else "it said nothing; is the disk full?"
        raise Problem(f"The converter of {guest.name} ended {how} before the trace was complete: {said}")

    def _drain(self, guest):
        """The rest of what an ended converter said."""
        stream = guest.converter.stderr
        if not stream.closed:
            rest = os.read(stream.fileno(), 65536).decode(errors="replace")
            guest.complaints += [line for line in rest.splitlines() if line.strip()]

    def _on_text(self, guest, stream, lines):
        piece = os.read(stream.fileno(), 65536)
        if not piece:
            self._selector.unregister(stream)
            return
        # Pieces may end within a line; only last lines are of interest, and those come whole.
        text = (lines.pop() if lines and not lines[-1].endswith("\n") else "") + piece.decode(errors="replace")
        lines += [line for line in text.splitlines(keepends=True) if line.strip()]
        for line in lines[:-1] + [line for line in lines[-1:] if line.endswith("\n")]:
            if line.startswith("HAUL: error "):
                cause = line[len("HAUL: error "):].strip()
                raise Problem(f"The guest {guest.name} gave up: {cause}.")
            if "Kernel panic" in line:
                raise Problem(f"The guest {guest.name} broke down: {line.strip()}; see KERNEL_ARGUMENTS in"
                              " recorder/guest.py.")
        del lines[:-20]

    def _on_control(self, guest):
        lines = guest.lines_from_plugin()
        if lines is None:
            self._selector.unregister(guest.control)
            return
        for line in lines:
            self._moved = time.monotonic()
            word, _, rest = line.partition(" ")
            if word == "mark":
                self._on_mark(guest)
            elif word == "begin":
                guest.state = "recording"
                guest.began = time.monotonic()
                dma.begin(guest)
                guest.tell_plugin("go")
            elif word == "progress":
                guest.recorded = int(rest)
            elif word == "dma":
                name, *counts = rest.split()
                guest.dma[name] = {key: int(value) for key, value in (count.split("=") for count in counts)}
            elif word == "done":
                guest.recorded = int(rest)
                guest.state = "done"
                guest.ended = time.monotonic()
                dma.end(guest)
                guest.tell_plugin("go")
            elif word == "error":
                self._on_plugin_error(guest, rest)

    def _on_mark(self, guest):
        guest.state = "marked"
        guest.read_symbols()
        guest.start_converter()
        stream = guest.converter.stderr
        self._watch(stream, lambda: self._on_text(guest, stream, guest.complaints))
        for queue in guest.monitor.virtqueues():
            guest.tell_plugin("queue " + " ".join(str(field) for field in queue))
        guest.tell_plugin("go")

    def _on_plugin_error(self, guest, cause):
        # A pipe that broke has a cause of its own: the converter's.
        if guest.converter is not None:
            try:
                guest.converter.wait(timeout=10)
            except children.subprocess.TimeoutExpired:
                pass
            self._check_converter(guest, too_early=True)
        raise Problem(f"The tracer of {guest.name} stopped: {cause}")
