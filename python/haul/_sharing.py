"""Grants between processes: over a Unix socket, and in what multiprocessing sends."""

from __future__ import annotations

import copyreg

from ._haul import Extent, Grant, _open_grant, _share, copy

TYPE_CHECKING = False  # (Type checkers take it for True; importing typing takes longer than haul does.)
if TYPE_CHECKING:
    import socket as _socket
    from typing import Any

    import numpy

    from ._typing import Memory

# What goes over a socket beside the descriptor: the grant's index, and how long the description after it is.
_HEAD = "<8sQI"
_MAGIC = b"haulgrnt"
_LONGEST_DESCRIPTION = 4096


def share(memory: Memory, *, read: bool = True, write: bool = False) -> Grant:
    """Lets other processes of this user copy from `memory` (read), to it (write) or both, and returns a haul.Grant.

    memory: a contiguous object with the buffer protocol or `__dlpack__`, which is kept until the grant is closed or
    dropped: keep the grant until others have what they want. The node's service (`haul serve`) does the copying:
    haul.Error (ENOTSUP) says that none runs. Memory of haul.empty() is copied at the speed of memory. Waits for the
    service, up to 2.5 s. Raises haul.Error, ValueError (gaps, read-only memory with `write`) and TypeError.
    """
    grant = _share(memory, read, write)
    dtype = getattr(getattr(memory, "dtype", None), "str", None)
    if not isinstance(dtype, str):
        dtype = grant._type_name
    shape = getattr(memory, "shape", None)
    if not dtype or shape is None:
        dtype, shape = "|u1", (grant.nbytes,)
    grant._described = [int(length) for length in shape], dtype
    return grant


def send(socket: _socket.socket, grant: Grant) -> None:
    """Sends a grant over a connected Unix socket; haul.attach(socket) receives it.

    Blocks as the socket does. Raises ValueError where the grant was taken back, OSError where the socket fails.
    """
    import json
    import socket as sockets
    import struct

    shape, dtype = grant._described
    description = json.dumps({"shape": shape, "dtype": dtype}).encode()
    head = struct.pack(_HEAD, _MAGIC, grant.index, len(description))
    sockets.send_fds(socket, [head + description], [grant.fileno()])


def attach(source: _socket.socket | Grant | tuple[int, int]) -> Extent:
    """Opens what another process has granted, and returns a haul.Extent, with the shape and dtype where they are known.

    source: a connected Unix socket on which haul.send() sends, a Grant that a child of fork has from its parent, or a
    pair (descriptor, index). Raises haul.Error: EPERM (there is no such grant any more: who shared it has closed or
    dropped it), ENOTSUP (no service); ConnectionError where no grant comes over the socket. Blocks as the socket does.
    """
    if isinstance(source, Grant):
        return _described_extent(source.fileno(), source.index, *source._described)
    if isinstance(source, tuple):
        descriptor, index = source
        return _open_grant(descriptor, index)
    import json
    import os
    import socket as sockets
    import struct

    head = struct.calcsize(_HEAD)
    message, descriptors, _, _ = sockets.recv_fds(source, head + _LONGEST_DESCRIPTION, 1)
    try:
        if len(message) < head or len(descriptors) != 1:
            raise ConnectionError("the peer closed the socket, or sent no grant; it has to call haul.send()")
        magic, index, length = struct.unpack_from(_HEAD, message)
        if magic != _MAGIC or length != len(message) - head:
            raise ConnectionError("what came over the socket is no grant; the peer has to call haul.send()")
        description = json.loads(message[head:])
        return _described_extent(descriptors[0], index, description["shape"], description["dtype"])
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def fetch(extent: Extent | Grant, out: numpy.ndarray[Any, Any] | None = None) -> numpy.ndarray[Any, Any]:
    """Copies a granted array here, in one copy, and returns a numpy array of its shape and dtype; waits for it.

    out: an array of that size to copy to, or None for a new one (of haul.empty()). Raises as haul.attach() and
    haul.copy(), and haul.Error where the copy fails (EPERM: the grant was taken back; EPEER: its process is gone).
    """
    if isinstance(extent, Grant):
        extent = attach(extent)
    if out is None:
        from ._memory import empty

        out = empty(tuple(getattr(extent, "shape", (extent.nbytes,))), getattr(extent, "dtype", "u1"))
    copy(out, extent).wait()
    return out


def _described_extent(descriptor, index, shape, dtype):
    extent = _open_grant(descriptor, index)
    extent.shape = tuple(shape)
    extent.dtype = dtype
    return extent


def _rebuild(duplicate, index, shape, dtype):
    import os

    descriptor = duplicate.detach()
    try:
        return _described_extent(descriptor, index, shape, dtype)
    finally:
        os.close(descriptor)


def _reduce(grant):
    from multiprocessing import reduction

    return _rebuild, (reduction.DupFd(grant.fileno()), grant.index, *grant._described)


copyreg.pickle(Grant, _reduce)
