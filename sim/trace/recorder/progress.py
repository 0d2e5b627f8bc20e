"""A line on stderr that says how far a recording is; nothing when stderr is no terminal."""

import sys
import time


class Progress:
    def __init__(self, wanted):
        self._wanted = wanted
        self._terminal = sys.stderr.isatty()
        self._last = 0.0
        self._began = None

    def show(self, guests):
        now = time.monotonic()
        if not self._terminal or now - self._last < 0.5:
            return
        self._last = now
        recorded = sum(guest.recorded for guest in guests)
        if recorded and self._began is None:
            self._began = now, recorded
        parts = [
            f"{guest.name} {guest.recorded / 1e6:.0f} of {self._wanted / 1e6:.0f} M"
            if guest.state in ("recording", "done") else f"{guest.name} {guest.state}"
            for guest in guests
        ]
        if self._began and now > self._began[0]:
            parts.append(f"{(recorded - self._began[1]) / (now - self._began[0]) / 1e6:.1f} M instructions/s")
        sys.stderr.write("\r\033[K" + ", ".join(parts))
        sys.stderr.flush()

    def end(self):
        if self._terminal and self._last:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
