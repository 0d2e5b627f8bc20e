"""Arrays whose memory is haul's."""

from __future__ import annotations

import math

from ._haul import Memory

TYPE_CHECKING = False  # (Type checkers take it for True; importing typing takes longer than haul does.)
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy


def empty(shape: int | Sequence[int], dtype: Any = float) -> numpy.ndarray[Any, Any]:
    """A numpy array in memory of haul.Memory, which other processes' copies reach at the speed of memory.

    shape: an int or a tuple of ints. dtype: anything numpy.dtype() takes, but for types that hold Python objects
    (TypeError). The array is C-contiguous, and zeroed. Allocate buffers, not small objects: each takes whole pages.
    Raises haul.Error where no memory is left, ImportError without numpy.
    """
    import numpy

    dtype = numpy.dtype(dtype)
    if dtype.hasobject:
        raise TypeError(f"haul cannot hold Python objects, and {dtype} has some; choose another dtype")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes == 0:
        return numpy.empty(shape, dtype)
    return numpy.ndarray(shape, dtype, Memory(nbytes))
