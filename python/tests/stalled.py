"""Memory that does not arrive before a test lets it: a copy of it is under way for as long as the test wants."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import struct
import time

import pytest

import haul

_USERFAULTFD = 323
_USER_MODE_ONLY = 1
_UFFDIO_API = 0xC018AA3F
_UFFDIO_REGISTER = 0xC020AA00
_UFFDIO_ZEROPAGE = 0xC020AA04
_REGISTER_MODE_MISSING = 1
_PAGE = 4096


class Stalled:
    """`buffer` is an anonymous mapping of zeroes whose first page is missing until arrive() is called."""

    def __init__(self, nbytes):
        self.buffer = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self.buffer))
        for page in range(_PAGE, nbytes, _PAGE):
            self.buffer[page] = 0
        self._faults = ctypes.CDLL(None, use_errno=True).syscall(_USERFAULTFD, os.O_CLOEXEC | _USER_MODE_ONLY)
        if self._faults < 0:
            pytest.skip("the kernel gives no userfaultfd; memory cannot be withheld")
        fcntl.ioctl(self._faults, _UFFDIO_API, bytearray(struct.pack("<QQQ", 0xAA, 0, 0)))
        fcntl.ioctl(
            self._faults,
            _UFFDIO_REGISTER,
            bytearray(struct.pack("<QQQQ", self._address, _PAGE, _REGISTER_MODE_MISSING, 0)),
        )

    def arrive(self):
        if self._faults >= 0:
            fcntl.ioctl(self._faults, _UFFDIO_ZEROPAGE, bytearray(struct.pack("<QQQq", self._address, _PAGE, 0, 0)))
            os.close(self._faults)
            self._faults = -1


def wait_for_mover():
    """Without a mover the caller copies, and would wait for itself."""
    deadline = time.monotonic() + 30
    while haul.state()["mover"] != "awake":
        try:
            haul.wake()
        except haul.Error as error:
            if error.name != "EAGAIN":
                pytest.skip("no mover can run here: one CPU only")
        if time.monotonic() > deadline:
            pytest.skip("another process leases the core of the mover")
        time.sleep(0.01)


@contextlib.contextmanager
def stalled(nbytes):
    wait_for_mover()
    memory = Stalled(nbytes)
    try:
        yield memory
    finally:
        memory.arrive()
