import array
import ctypes
import mmap

import numpy as np
import pytest

import haul

SIZES = [1, 7, 64, 4096, 65_537, 300_000, 1 << 20, (9 << 20) + 5]


def pattern(nbytes, seed=1):
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


@pytest.mark.parametrize("nbytes", SIZES)
@pytest.mark.parametrize("mover", ["auto", "caller", "dedicated"])
def test_every_byte_arrives_and_no_other(nbytes, mover):
    source = pattern(nbytes)
    around = pattern(nbytes + 32, seed=2)
    before = around.copy()
    haul.copy(around[16:-16], source, mover=mover).wait()
    assert np.array_equal(around[16:-16], source)
    assert np.array_equal(around[:16], before[:16]) and np.array_equal(around[-16:], before[-16:])


@pytest.mark.parametrize(
    "make",
    [
        bytearray,
        lambda data: memoryview(bytearray(data)),
        lambda data: array.array("B", data),
        lambda data: (ctypes.c_uint8 * len(data)).from_buffer_copy(data),
        lambda data: np.frombuffer(bytearray(data), np.uint8),
    ],
    ids=["bytearray", "memoryview", "array", "ctypes", "numpy"],
)
def test_objects_with_a_buffer(make):
    source = pattern(5000).tobytes()
    target = make(bytes(5000))
    haul.copy(target, source).wait()
    assert bytes(memoryview(target).cast("B")) == source
    back = bytearray(5000)
    haul.copy(back, target).wait()
    assert back == source


def test_a_mapping_stays_mapped_while_it_is_copied():
    source = mmap.mmap(-1, 1 << 20)
    source[:3] = b"abc"
    target = bytearray(1 << 20)
    haul.copy(target, source).wait()
    assert target[:3] == b"abc"
    source.close()


class OnlyDLPack:
    """A tensor as other libraries have it: without the buffer protocol."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", "c8", "?"])
def test_dlpack_on_either_side(dtype):
    source = pattern(8000).astype(dtype)
    target = np.zeros_like(source)
    haul.copy(OnlyDLPack(target), OnlyDLPack(source)).wait()
    assert np.array_equal(target, source)
    target[:] = 0
    haul.copy(target, OnlyDLPack(source)).wait()
    assert np.array_equal(target, source)


def test_dlpack_that_is_read_only_is_no_destination():
    target = np.zeros(100, np.float32)
    target.flags.writeable = False
    with pytest.raises((ValueError, TypeError)):
        haul.copy(OnlyDLPack(target), np.ones(100, np.float32))


def test_a_slice_of_columns_is_packed():
    whole = pattern(3000 * 512).reshape(3000, 512)
    target = np.empty((3000, 100), np.uint8)
    haul.copy(target, whole[:, 17:117]).wait()
    assert np.array_equal(target, whole[:, 17:117])


def test_gaps_in_several_dimensions_and_backwards():
    whole = pattern(20 * 30 * 40 * 8).view("f8").reshape(20, 30, 40)
    part = whole[::2, ::-1, 3:33]
    target = np.empty(part.shape, "f8")
    haul.copy(target, part).wait()
    assert target.tobytes() == part.tobytes()
    repeated = np.broadcast_to(whole[0], (5, 30, 40))
    target = np.empty(repeated.shape, "f8")
    haul.copy(target, repeated).wait()
    assert target.tobytes() == repeated.tobytes()


def test_dlpack_with_gaps():
    whole = pattern(300 * 256 * 4).view("f4").reshape(300, 256)
    target = np.empty((300, 64), "f4")
    haul.copy(target, OnlyDLPack(whole[:, 64:128])).wait()
    assert target.tobytes() == whole[:, 64:128].tobytes()


def test_column_major_arrays_of_one_shape_are_taken_as_they_lie():
    source = np.asfortranarray(pattern(300 * 200).reshape(300, 200))
    target = np.empty_like(source)
    assert target.flags.f_contiguous
    haul.copy(target, source).wait()
    assert np.array_equal(target, source)


def test_lists_are_filled_in_order():
    sources = [pattern(n, seed=n) for n in (10, 70_000, 1, 4096)]
    total = sum(map(len, sources))
    targets = [np.zeros(n, np.uint8) for n in (total - 300_00, 300_00)]
    haul.copy(targets, sources).wait()
    assert np.array_equal(np.concatenate(targets), np.concatenate(sources))


def test_more_pieces_than_one_request_holds():
    sources = [pattern(100 + i % 7, seed=i) for i in range(5000)]
    target = bytearray(sum(map(len, sources)))
    ticket = haul.copy(target, sources)
    ticket.wait()
    assert ticket.progress() >= 0 and bytes(target) == b"".join(each.tobytes() for each in sources)


def test_overlap_of_two_pieces_is_a_move():
    data = pattern(1 << 20)
    expected = data.copy()
    expected[1000:] = data[:-1000].copy()
    haul.copy(data[1000:], data[:-1000]).wait()
    assert np.array_equal(data, expected)


def test_dates():
    source = np.arange(1000).view("M8[s]")
    target = np.zeros_like(source)
    haul.copy(target, source).wait()
    assert np.array_equal(target, source)


def test_shapes_need_not_agree():
    source = pattern(240)
    target = np.zeros((2, 3, 40), np.uint8)
    haul.copy(target, source).wait()
    assert np.array_equal(target.ravel(), source)
    haul.copy(np.zeros((), "f8"), np.ones(1, "f8")).wait()


@pytest.mark.parametrize("size", [np.zeros(0), bytearray(), []])
def test_nothing_is_copied_at_once(size):
    ticket = haul.copy(size, size)
    assert ticket.done() and ticket.nbytes == 0
    ticket.wait()


def test_affinities_and_flags_move_the_same_bytes():
    source = pattern(1 << 20)
    for dst_affinity in ("cacheable", "non-cacheable", "neutral"):
        for options in ({}, {"fence": True}, {"checked": True}, {"nonblock": True}):
            target = np.zeros_like(source)
            haul.copy(target, source, dst_affinity=dst_affinity, src_affinity="neutral", **options).wait()
            assert np.array_equal(target, source)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(7, "u1"), (-3, "i4"), (1.5, "f4"), (1.5, "f2"), (2.25, "f8"), (True, "?"), (2**63, "u8"), (np.float32(3), "f4")],
)
def test_fill_with_a_value(value, dtype):
    target = np.zeros(100_003, dtype)
    haul.fill(target, value).wait()
    assert (target == np.dtype(dtype).type(value)).all()


def test_fill_with_bytes_zeroes_and_lists():
    target = bytearray(b"x" * 4000)
    haul.fill(target, b"abcd").wait()
    assert target == b"abcd" * 1000
    haul.fill(target).wait()
    assert target == bytes(4000)
    pieces = [np.zeros(100, "i2"), np.zeros(3, "i2")]
    haul.fill(pieces, -2).wait()
    assert all((piece == -2).all() for piece in pieces)


def test_explain_says_why():
    source, target = np.zeros(4 << 20, np.uint8), np.zeros(4 << 20, np.uint8)
    plan = haul.explain(target, source)
    assert plan.engine == "cpu" and plan.scheme in ("SCNI", "MCNI")
    assert plan.reasons and all(reason in str(plan) for reason in plan.reasons)
    assert haul.explain(target, source, mover="caller").mover == "caller"
    assert haul.explain(target, value=1).engine == "cpu"
    with pytest.raises(TypeError):
        haul.explain(target, source, 1)
