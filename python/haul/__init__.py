"""haul moves bulk memory without stalling the program that asked.

    import haul, numpy
    source, target = numpy.ones(1 << 22), haul.empty(1 << 22)
    ticket = haul.copy(target, source)     # returns at once; a dedicated core moves the bytes
    compute()                              # touch neither array
    ticket.wait()                          # every byte is there (or: await ticket)

Sides of a copy are objects with the buffer protocol or with `__dlpack__` (arrays, tensors, bytes, memoryviews),
haul.Extent, or lists of these. haul copies bytes: it converts no types. Sizes are in bytes, times in seconds.

Importing starts no thread. A copy that is under way when the process forks is finished first; the child's tickets have
ended. Free-threaded builds of CPython are supported; subinterpreters are refused with an ImportError.
"""

import atexit as _atexit

from ._errors import Error
from ._haul import (
    Extent,
    Grant,
    Memory,
    Plan,
    Space,
    Ticket,
    copy,
    device,
    engines,
    explain,
    fill,
    process,
    state,
    tune,
    version,
    wake,
)
from ._haul import _finish
from ._memory import empty
from ._sharing import attach, fetch, send, share

__version__ = version()
__all__ = [
    "Error",
    "Extent",
    "Grant",
    "Lock",
    "Memory",
    "Plan",
    "Space",
    "Ticket",
    "attach",
    "copy",
    "device",
    "empty",
    "engines",
    "explain",
    "fetch",
    "fill",
    "process",
    "send",
    "share",
    "state",
    "tune",
    "version",
    "wake",
]

_atexit.register(_finish)


TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import atomic as atomic
    from .atomic import Lock


# Remote atomics are a library of their own, loaded when they are first named.
def __getattr__(name: str) -> object:
    if name in ("atomic", "Lock"):
        import importlib

        atomic = importlib.import_module(".atomic", __name__)
        return atomic if name == "atomic" else atomic.Lock
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
