"""A machine with one emulated network card, whose cable returns to it, and what is heard from its console."""

import os
import selectors
import socket
import subprocess
import time

from guests import children, machine
from guests.problem import Problem

MEMORY = "768M"
# Each look at the random numbers' device, at a watchdog, and each mitigation costs emulated time.
KERNEL_ARGUMENTS = "console=ttyS0 quiet panic=-1 mitigations=off nowatchdog random.trust_cpu=on no_timer_check"
# The clock counts instructions, one a nanosecond, and goes on at once where the guest only waits. The kernel copies in
# loops: the emulator counts a repeated string instruction as often as it repeats.
COUNTING = ["-icount", "shift=0,sleep=off"]
COUNTING_ARGUMENTS = " clearcpuid=112 tsc=reliable"
# With an IOMMU, which is there for what programs own: the kernel's drivers go past it.
IOMMU = ["-machine", "q35", "-device", "intel-iommu,intremap=on"]
IOMMU_ARGUMENTS = " intel_iommu=on iommu=pt"
SLOT = "3"  # of the card: 0000:00:03.0


def looped_cable():
    """A socket whose datagrams come back to it, and which hears nobody else; a full one makes its sender wait, so that
    the cable loses nothing. It has no name in the file system, and ends with whoever holds it."""
    cable = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    cable.bind("")
    cable.connect(cable.getsockname())
    return cable


class MachineWithCard:
    def __init__(self, card, guest, initrd, counting, iommu):
        self._lines, self._pending, self.warnings = [], b"", b""
        cable = looped_cable()
        words = KERNEL_ARGUMENTS + (COUNTING_ARGUMENTS if counting else "")
        words += IOMMU_ARGUMENTS if iommu else ""
        command = machine.bare() + ["-m", MEMORY, "-cpu", "qemu64,+rdrand"]
        command += IOMMU if iommu else []
        if counting:
            command += ["-smp", "1", "-accel", "tcg,thread=single", *COUNTING]
        else:
            command += ["-smp", "2", "-accel", "tcg,thread=multi"]
        command += ["-kernel", os.path.join(guest, "vmlinuz"), "-initrd", initrd, "-append", words]
        command += ["-netdev", f"dgram,id=cable,local.type=fd,local.str={cable.fileno()}"]
        command += ["-device", f"{card},netdev=cable,addr={SLOT}"]
        try:
            self._qemu = children.start(command, pass_fds=[cable.fileno()], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        finally:
            cable.close()
        self._selector = selectors.DefaultSelector()
        for stream in (self._qemu.stdout, self._qemu.stderr):
            self._selector.register(stream, selectors.EVENT_READ)

    def line(self, seconds):
        """The console's next line; None when none came in this time."""
        deadline = time.monotonic() + seconds
        while not self._lines:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for key, _ in self._selector.select(left):
                self._read(key.fileobj)
        return self._lines.pop(0)

    def _read(self, stream):
        piece = os.read(stream.fileno(), 65536)
        if stream is self._qemu.stderr:
            self.warnings += piece
            if not piece:
                self._selector.unregister(stream)
            return
        if not piece:
            self.warnings += self._qemu.stderr.read()
            self._qemu.wait()
            said = self.warnings.decode(errors="replace").strip().splitlines()
            raise Problem(f"QEMU ended with status {self._qemu.returncode} ({said[-1] if said else 'it said nothing'});"
                          " run it again, with --console to see the guest's words.")
        *lines, self._pending = (self._pending + piece).split(b"\n")
        self._lines += [line.decode(errors="replace").rstrip("\r") for line in lines]

    def end(self):
        children.end(self._qemu)
