from collections.abc import Generator
from typing import Any

import haul._typing


class Ticket:
    """
    One copy or fill that is under way; made by haul.copy() and haul.fill().

    It keeps both sides' memory alive until the bytes are there, also where nobody holds the ticket
    any more. `await ticket` waits in asyncio, trio and anyio; `with ticket:` waits at the block's end.
    Any thread may use it.
    """

    def done(self) -> bool:
        """
        Whether it has ended, well or not. Never blocks; wait() then says how it ended.
        """

    def wait(self, timeout: float | None = None) -> None:
        """
        Waits until every byte is there, and helps to copy; without the GIL where that may take long.

        timeout: seconds, or None for no limit. Raises TimeoutError after that (the copy goes on), haul.Error
        where the copy failed, and what a signal's handler raises (KeyboardInterrupt; the copy goes on).
        """

    def wait_range(self, offset: int, length: int, timeout: float | None = None) -> None:
        """
        Waits until bytes [offset, offset + length) of the destination are there; they are moved first.

        offset, length: bytes, within the copy; else ValueError. timeout, and what is raised: as wait().
        """

    def range_done(self, offset: int, length: int) -> bool:
        """
        Whether bytes [offset, offset + length) are there. Never blocks; raises as wait_range() does.
        """

    def progress(self) -> int:
        """
        How many bytes from the front are there now, also of a copy that failed. Never blocks.
        """

    @property
    def nbytes(self) -> int:
        """The copy's length in bytes."""

    @property
    def _completion(self) -> int: ...

    def __enter__(self) -> Ticket: ...

    def __exit__(self, *exception: object) -> None: ...

    def __await__(self) -> Generator[Any, None, Ticket]: ...

    def __repr__(self) -> str: ...

class Space:
    """
    The memory of another process (haul.process()) or of a GPU (haul.device()), open for copies.
    """

    def extent(self, address: int, nbytes: int) -> Extent:
        """
        nbytes bytes of it from an address on, in that space's addresses. ValueError past 2**56.
        """

    def close(self) -> None:
        """
        Closes it: copies that have not begun fail with ECLOSED. It is closed with its last extent, too.
        """

    def __enter__(self) -> Space: ...

    def __exit__(self, *exception: object) -> None: ...

class Extent:
    """
    A range of another space, as a side of a copy. Slices are extents: extent[4096:8192].
    """

    @property
    def nbytes(self) -> int:
        """Its length in bytes."""

    def __len__(self) -> int: ...

    def __getitem__(self, arg: slice, /) -> Extent: ...

    def close(self) -> None:
        """Closes its space."""

class Grant:
    """
    Memory that other processes of the user may name in their copies; made by haul.share().

    It lasts as long as this object: keep it until others have what they want, and close() it, or leave its
    `with` block. Pass it on through multiprocessing (a Queue, a Pipe, an argument of Process), where it
    arrives as a haul.Extent (a child of fork gets it as it is, and haul.attach() makes an Extent of it there),
    or over a Unix socket: send(), and haul.attach() there.
    """

    def fileno(self) -> int:
        """
        The descriptor that stands for it; it is the grant's, so do not close it.
        """

    @property
    def index(self) -> int:
        """The number that goes with the descriptor."""

    @property
    def nbytes(self) -> int:
        """How many bytes are shared."""

    @property
    def _type_name(self) -> str: ...

    def close(self) -> None:
        """
        Takes the grant back: when it returns, nobody reads or writes there any more, and the memory is let go.
        Waits for the service. Raises haul.Error: ETIMEDOUT where the service does not answer for 5 s (the memory
        is kept; close it again), EINVAL in a child of fork, which has granted nothing.
        """

    def __enter__(self) -> Grant: ...

    def __exit__(self, *exception: object) -> None: ...

def _share(memory: object, read: bool, write: bool) -> Grant: ...

def _open_grant(descriptor: int, index: int) -> Extent: ...

def process(pid: int) -> Space:
    """
    Opens the memory of another process: haul.process(pid).extent(address, nbytes) is a side of copies.

    The kernel asks for the right to ptrace it, each time. Raises haul.Error (EPERM, EPEER, ENOTSUP).
    """

def device(name: str = 'cuda:0') -> Space:
    """
    Opens the memory of a GPU. Arrays with `__dlpack__` on a GPU need no such call.

    name: cuda:0 to cuda:63. May take seconds, without the GIL. Raises haul.Error: ENOTSUP (no such GPU,
    driver or engine), EINVAL (a name of another form), EIO (it cannot be used).
    """

class Plan:
    """
    What haul's planner would do with a request now, and why; made by haul.explain().
    """

    @property
    def scheme(self) -> str:
        """
        SCNI or MCNI (the CPU of the caller, or of a mover), SCI or MCI (a device driven by them).
        """

    @property
    def mover(self) -> str:
        """caller, thread or service."""

    @property
    def engine(self) -> str:
        """
        The engine that moves the bytes, such as cpu; none where no engine can.
        """

    @property
    def chunks(self) -> int:
        """Pieces that the request is cut into."""

    @property
    def chunk_bytes(self) -> int:
        """Bytes of the largest piece."""

    @property
    def inline_below_bytes(self) -> int | None:
        """Requests of fewer bytes are the caller's; None: all are."""

    @property
    def mover_from_bytes(self) -> int | None:
        """Copies of so many bytes and more are the mover's; None: none are."""

    @property
    def reasons(self) -> tuple:
        """One sentence each."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

def engines() -> list:
    """
    What can move bytes here: a list of dicts with name, available, spaces (what it reaches, in words), status
    ("ready", or why not and what to do about it), chunks and bytes (moved so far by this process).
    """

def state() -> dict:
    """
    This process's movers, its link to the node's service, and counters: a dict. Times in nanoseconds.
    """

def wake() -> None:
    """
    Wakes or starts the mover ahead of a burst of copies. Raises haul.Error where there can be none.
    """

def tune() -> None:
    """
    Measures this machine (a fraction of a second, without the GIL) and stores the figures for later processes.
    """

def copy(dst: haul._typing.Side, src: haul._typing.Side, *, dst_affinity: haul._typing.Affinity = 'cacheable', src_affinity: haul._typing.Affinity = 'cacheable', mover: haul._typing.Mover = 'auto', fence: bool = False, checked: bool = False, nonblock: bool = False) -> Ticket:
    """
    Copies all of src to dst, byte by byte, and returns a Ticket; long copies go on while the program computes.

    dst: a writable, C-contiguous object with the buffer protocol or `__dlpack__`, a haul.Extent, or a list of these,
    filled in order. src: likewise; it may be read-only, and may have gaps (a slice of columns), if its stretches
    without gaps have 64 bytes or more. Shapes need not agree, sizes must: elements are taken in row-major order,
    or, where both sides are column-major arrays of one shape, as they lie. Two objects in one piece may overlap.

    dst_affinity, src_affinity: what the copy does to the caches on that side (a hint). mover: who moves the bytes;
    by default haul's planner decides (haul.explain()). fence: start only after all earlier copies of this thread.
    checked: memory that is not mapped makes wait() raise EFAULT instead of ending the process; slower. nonblock:
    raise EAGAIN where 256 requests of the thread are under way, instead of copying here.

    Nothing has moved where it raises: ValueError (sizes differ, dst is read-only or not contiguous, pieces overlap),
    TypeError (element types differ, and neither is bytes; an object without memory), BufferError (an exporter
    refuses), haul.Error. (A part has moved where one of more than 1024 pieces raises haul.Error, as with nonblock.)
    What goes wrong later Ticket.wait() raises. Any thread may call.
    """

def fill(dst: haul._typing.Side, value: complex | bytes = 0, *, dst_affinity: haul._typing.Affinity = 'cacheable', mover: haul._typing.Mover = 'auto', fence: bool = False, checked: bool = False, nonblock: bool = False) -> Ticket:
    """
    Fills dst with a value, and returns a Ticket.

    dst: as for copy(). value: of dst's element type (a list's first one), which has 1, 2, 4 or 8 bytes; or a bytes
    object of that length, repeated from dst's first byte on. The others as for copy(). Raises as copy(), and
    ValueError where the value is none of that type.
    """

def explain(dst: haul._typing.Side, src: haul._typing.Side | None = None, value: complex | bytes | None = None, *, dst_affinity: haul._typing.Affinity = 'cacheable', src_affinity: haul._typing.Affinity = 'cacheable', mover: haul._typing.Mover = 'auto', fence: bool = False, checked: bool = False, nonblock: bool = False) -> Plan:
    """
    What haul would do now with copy(dst, src, ...), or, without src, with fill(dst, value, ...), and why: a Plan.

    Moves nothing. print(haul.explain(dst, src)) gives the reasons. Raises as copy() and fill().
    """

class Memory:
    """
    Memory(nbytes): zeroed, writable, page-aligned memory for the buffers of large copies.

    The node's service (`haul serve`) and MPI messages reach it at the speed of memory. It has the buffer
    protocol: memoryview(memory), numpy.frombuffer(memory, dtype). A child of fork shares it with its
    parent. nbytes: at least 1, taken in whole pages of 4096. Raises haul.Error where none is left.
    """

    def __init__(self, nbytes: int) -> None: ...

    @property
    def nbytes(self) -> int:
        """Its length in bytes, as it was asked for."""

    def __len__(self) -> int: ...

def _queue() -> int:
    """
    The descriptor of this thread's completion queue, which is used from now on.
    """

def _anyone_waits(waits: bool) -> None:
    """
    Whether anybody listens for this thread's numbers: else _reap() forgets them.
    """

def _arm() -> bool:
    """Arms the descriptor. True: entries are waiting already."""

def _reap() -> list[int]:
    """
    The numbers of tickets of this thread that have ended since the last call.
    """

def _finish() -> None: ...

def version() -> str:
    """The version of the libhaul that is loaded, such as "0.1.0"."""
