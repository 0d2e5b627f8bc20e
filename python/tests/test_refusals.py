"""Whatever is wrong with an argument raises before a byte has moved."""

import os
import sys

import numpy as np
import pytest

import haul

ONES = np.ones(1000, np.uint8)


def read_only():
    array = np.zeros(1000, np.uint8)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("target", "source", "error", "words"),
    [
        (np.zeros(999, np.uint8), ONES, ValueError, "999 bytes and the source 1000"),
        (read_only(), ONES, ValueError, "read-only"),
        (bytes(1000), ONES, ValueError, "read-only"),
        (np.zeros(2000, np.uint8)[::2], ONES, ValueError, "not contiguous"),
        (np.zeros((10, 100), np.uint8, "F"), ONES, ValueError, "not contiguous"),
        (np.zeros(250, np.float32), np.ones(250, np.int32), TypeError, "float32 and the source int32"),
        (np.zeros(250, np.float32), np.ones(125, np.float64), TypeError, "float32 and the source float64"),
        (np.zeros(125, "M8[s]"), np.ones(125, "f8"), TypeError, "does not convert"),
        (np.zeros(125, "M8[s]"), np.ones(125, "M8[ms]"), TypeError, "does not convert"),
        (np.zeros(1000, np.uint8), np.ones((1000, 2), np.uint8)[:, 0], ValueError, "stretches of 1 bytes"),
        (np.zeros(1000, np.uint8), 5, TypeError, "buffer protocol or __dlpack__"),
        (None, ONES, TypeError, "NoneType"),
        (np.zeros(1000, np.uint8), "text", TypeError, "str"),
        ([np.zeros(500, np.uint8), None], ONES, TypeError, "NoneType"),
        ([np.zeros(500, np.uint8), np.zeros(400, np.uint8)], ONES, ValueError, "900 bytes"),
        (np.zeros(4, object), np.zeros(4, object), TypeError, "Python objects"),
        (np.zeros(4, [("Oh", "i4"), ("x", "O")]), np.ones(48, np.uint8), TypeError, "Python objects"),
    ],
)
def test_copy_refuses(target, source, error, words):
    before = bytes(target.tobytes()) if isinstance(target, np.ndarray) else None
    with pytest.raises(error, match=words):
        haul.copy(target, source)
    if before is not None:
        assert target.tobytes() == before


def test_pieces_that_overlap():
    data = np.arange(100_000, dtype=np.uint8)
    before = data.copy()
    with pytest.raises(ValueError, match="overlap"):
        haul.copy([data[:1000], data[500:1500]], np.ones(2000, np.uint8))
    with pytest.raises(ValueError, match="overlap"):
        haul.copy([data[:1000], data[2000:3000]], [data[500:1500], data[5000:6000]])
    with pytest.raises(ValueError, match="overlap"):
        haul.fill([data[:1000], data[500:1500]], 1)
    table = data.reshape(100, 1000)
    with pytest.raises(ValueError, match="overlap"):
        haul.copy(data[:10_000], table[:, :100])
    assert np.array_equal(data, before)
    haul.copy([data[:1000], data[2000:3000]], [data[1000:2000], data[1000:2000]]).wait()


@pytest.mark.parametrize(
    ("target", "value", "error"),
    [
        (np.zeros(10, np.uint8), 256, ValueError),
        (np.zeros(10, np.int8), -129, ValueError),
        (np.zeros(10, np.float32), "one", ValueError),
        (np.zeros(10, np.uint8), 1.5, ValueError),
        (np.zeros(10, np.complex64), 1, TypeError),
        (np.zeros(10, np.uint8), b"abc", ValueError),
        (np.zeros(10, np.uint8), b"abcd", ValueError),
        (np.zeros(10, np.uint8), b"", ValueError),
        (np.zeros(10, np.uint8)[::2], 1, ValueError),
        (b"0123456789", 1, ValueError),
    ],
)
def test_fill_refuses(target, value, error):
    before = bytes(target)
    with pytest.raises(error):
        haul.fill(target, value)
    assert bytes(target) == before


@pytest.mark.parametrize(
    "options",
    [{"dst_affinity": "warm"}, {"src_affinity": 3}, {"mover": "nobody"}],
)
def test_unknown_words(options):
    with pytest.raises(ValueError, match="pass "):
        haul.copy(bytearray(4), b"abcd", **options)
    with pytest.raises(TypeError):
        haul.copy(bytearray(4), b"abcd", hurry=True)


def test_what_haul_refuses_has_code_name_and_sentence():
    with pytest.raises(haul.Error) as caught:
        haul.process(-5)
    assert caught.value.code < 0 and caught.value.name.startswith("E") and str(caught.value)


def test_an_exporter_that_raises():
    class Exporter:
        def __dlpack__(self, **options):
            raise RuntimeError("no")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(TypeError, match="source .*: no; pass") as caught:
        haul.copy(bytearray(4), Exporter())
    assert isinstance(caught.value.__cause__, RuntimeError)


class Exporter:
    """Has DLPack, and nothing else."""

    def __init__(self, numbers, error=None):
        self.numbers, self.error = numbers, error

    def __dlpack__(self, **options):
        if self.error is not None:
            raise self.error
        return self.numbers.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize(
    ("raised", "arrives"),
    [(KeyboardInterrupt, KeyboardInterrupt), (MemoryError, MemoryError), (BufferError("no"), BufferError)],
)
def test_what_an_exporter_raises_is_told(raised, arrives):
    with pytest.raises(arrives):
        haul.copy(bytearray(4), Exporter(None, raised))


def test_a_value_that_raises():
    class Value:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        haul.fill(np.zeros(10, np.uint8), Value())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="before 3.12 no class of Python's has a buffer")
def test_a_buffer_that_is_never_given():
    class OnADevice(Exporter):
        def __buffer__(self, flags):
            raise BufferError("the numbers are elsewhere")

    target = bytearray(4)
    haul.copy(target, OnADevice(np.arange(4, dtype=np.uint8))).wait()
    assert target == b"\0\1\2\3"


@pytest.mark.parametrize(
    ("target", "source", "agree"),
    [
        (["f4:200"], ["i4:100", "i4:100"], False),
        (["i4:10", "i4:10", "f4:10"], ["i4:20", "f4:5", "f4:5"], True),
        (["i4:10", "f4:10"], ["i4:11", "f4:9"], False),
        (["i4:10", "u1:0", "f4:10"], ["u1:0", "u1:40", "f4:10", "f8:0"], True),
    ],
)
def test_lists_agree_where_their_bytes_meet(target, source, agree):
    sides = [
        [np.ones(int(length), dtype) for dtype, length in (piece.split(":") for piece in side)]
        for side in (target, source)
    ]
    for piece in sides[0]:
        piece[:] = 0
    if agree:
        haul.copy(*sides).wait()
        assert all(piece.view(np.uint8).any() for piece in sides[0] if piece.size)
        return
    with pytest.raises(TypeError, match="does not convert"):
        haul.copy(*sides)
    assert not any(piece.any() for piece in sides[0])


def test_ranges_of_other_spaces_that_are_too_long():
    space = haul.process(os.getpid())
    for address, nbytes in ((0, 1 << 63), (1 << 56, 1), (1, 1 << 56), (2**64 - 1, 2**64 - 1)):
        with pytest.raises(ValueError, match="2\\*\\*56"):
            space.extent(address, nbytes)
    endless = [space.extent(0, 1 << 56)] * 256
    with pytest.raises(ValueError, match="2\\*\\*64"):
        haul.copy(endless, [])


def test_a_list_of_several_spaces():
    here, there = np.arange(100_000, dtype=np.uint8), np.arange(100_000, 200_000).astype(np.uint8)
    target = np.zeros(200_000, np.uint8)
    with haul.process(os.getpid()) as space:
        haul.copy(target, [here, space.extent(there.ctypes.data, there.nbytes)]).wait()
    assert np.array_equal(target, np.concatenate([here, there]))


def test_empty_and_memory():
    array = haul.empty((3, 5), "f4")
    assert array.shape == (3, 5) and array.dtype == np.float32 and not array.any() and array.flags.writeable
    assert haul.empty(0).shape == (0,) and haul.empty((0, 4)).shape == (0, 4)
    with pytest.raises(TypeError):
        haul.empty(3, object)
    with pytest.raises(haul.Error) as caught:
        haul.Memory(0)
    assert caught.value.name == "EINVAL"
    with pytest.raises(haul.Error) as caught:
        haul.Memory(1 << 55)
    assert caught.value.name == "ENOMEM"
    with pytest.raises(TypeError):
        haul.Memory(-1)
    memory = haul.Memory(5000)
    assert len(memory) == memory.nbytes == 5000
    view = memoryview(memory)
    del memory
    view[0] = 7
    assert view[0] == 7 and view.nbytes == 5000


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="this numpy has no strings of any length")
def test_strings_of_any_length_lie_elsewhere():
    texts = np.array(["a", "b" * 100], np.dtypes.StringDType())
    with pytest.raises((TypeError, ValueError)):
        haul.copy(np.zeros_like(texts), texts)
