import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import haul
from stalled import stalled

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one CPU only: no mover, so no copy is ever under way"
)

NBYTES = 8 << 20


def test_a_copy_under_way(memory_that_waits):
    target = np.ones(NBYTES, np.uint8)
    ticket = haul.copy(target, memory_that_waits.buffer, mover="dedicated")
    assert not ticket.done() and ticket.nbytes == NBYTES and "under way" in repr(ticket)
    assert not ticket.range_done(0, 4096)
    time.sleep(0.05)  # the mover stands before the first page by now, so who waits need not
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match="goes on"):
        ticket.wait(timeout=0.1)
    assert 0.1 <= time.monotonic() - begun
    with pytest.raises(TimeoutError, match="goes on"):
        ticket.wait_range(0, 4096, timeout=0.1)
    assert 0.2 <= time.monotonic() - begun
    ticket.wait_range(NBYTES // 2, 4096, timeout=30)
    assert ticket.range_done(NBYTES // 2, 4096) and not target[NBYTES // 2 : NBYTES // 2 + 4096].any()
    memory_that_waits.arrive()
    ticket.wait()
    assert ticket.done() and ticket.progress() == NBYTES and not target.any()
    ticket.wait_range(5, 0)
    assert ticket.range_done(0, NBYTES)


def test_ranges_outside_the_copy():
    ticket = haul.copy(bytearray(100), bytes(100))
    for offset, length in ((0, 101), (101, 0), (50, 51), (1 << 63, 1 << 63)):
        with pytest.raises(ValueError, match="within"):
            ticket.wait_range(offset, length)
        with pytest.raises(ValueError, match="within"):
            ticket.range_done(offset, length)
    with pytest.raises(TypeError):
        ticket.wait_range(-1, 5)
    with pytest.raises(ValueError, match="not a number"):
        haul.copy(bytearray(100), bytes(100)).wait(float("nan"))


def test_memory_cannot_go_away_under_a_copy(memory_that_waits):
    target = bytearray(NBYTES)
    view = memoryview(target)
    ticket = haul.copy(view, memory_that_waits.buffer, mover="dedicated")
    with pytest.raises(BufferError):
        target.extend(b"more")
    with pytest.raises(BufferError):
        view.release()
    with pytest.raises(BufferError):
        memory_that_waits.buffer.close()
    memory_that_waits.arrive()
    ticket.wait()
    view.release()
    target.extend(b"more")


class Watched(np.ndarray):
    pass


def test_who_drops_the_ticket_loses_nothing(memory_that_waits):
    target = np.ones(NBYTES, np.uint8).view(Watched)
    gone = weakref.ref(target)
    address = target.ctypes.data
    haul.copy(target, memory_that_waits.buffer, mover="dedicated")
    del target
    gc.collect()
    assert gone() is not None and gone().ctypes.data == address
    memory_that_waits.arrive()
    deadline = time.monotonic() + 30
    while gone() is not None and time.monotonic() < deadline:
        haul.copy(bytearray(1), b"x")  # looks whether abandoned copies have ended
        gc.collect()
    assert gone() is None


def test_with_waits_at_the_end():
    source, target = np.ones(NBYTES, np.uint8), np.zeros(NBYTES, np.uint8)
    with haul.copy(target, source) as ticket:
        assert isinstance(ticket, haul.Ticket)
    assert ticket.done() and target.all()


@pytest.mark.parametrize("wait", [haul.Ticket.wait, lambda ticket: ticket.wait_range(0, 4096)])
def test_a_signal_ends_a_wait_and_not_the_copy(memory_that_waits, wait):
    target = np.ones(NBYTES, np.uint8)
    ticket = haul.copy(target, memory_that_waits.buffer, mover="dedicated")
    time.sleep(0.05)
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        wait(ticket)
    assert not ticket.done()
    memory_that_waits.arrive()
    ticket.wait()
    assert not target.any()


def test_others_run_while_one_waits(memory_that_waits):
    ticket = haul.copy(np.ones(NBYTES, np.uint8), memory_that_waits.buffer, mover="dedicated")
    time.sleep(0.05)
    count = 0
    waiter = threading.Thread(target=ticket.wait)
    waiter.start()
    for _ in range(1000):
        count += 1
    assert waiter.is_alive() and count == 1000
    memory_that_waits.arrive()
    waiter.join(30)
    assert not waiter.is_alive()


@pytest.mark.parametrize("options", [{"mover": "caller"}, {"fence": True}])
def test_others_run_while_a_copy_is_made_here(memory_that_waits, options):
    haul.copy(np.ones(NBYTES, np.uint8), np.ones(NBYTES, np.uint8)).wait()  # by the mover, as the next one might be
    pending = haul.copy(np.ones(NBYTES, np.uint8), memory_that_waits.buffer, mover="dedicated") if "fence" in options else None
    source = bytes(NBYTES) if pending else memory_that_waits.buffer
    work = threading.Thread(target=lambda: haul.copy(np.ones(NBYTES, np.uint8), source, **options).wait())
    work.start()
    time.sleep(0.2)  # whoever held the GIL would not come back from here
    memory_that_waits.arrive()
    work.join(30)
    assert not work.is_alive()
    if pending:
        pending.wait()


def test_what_was_begun_ends_before_a_refusal():
    pieces = [np.ones(4096, np.uint8)] * 6000
    target = np.zeros(6000 * 4096, np.uint8)
    before = target.copy()
    try:
        haul.copy(target, pieces, mover="dedicated", nonblock=True).wait()
    except haul.Error as error:
        assert error.name == "EAGAIN"
        before = target.copy()
        time.sleep(0.05)
        assert np.array_equal(target, before)
    else:
        assert target.all() and not before.any()


def test_many_threads_wait_for_one_ticket():
    source, target = np.ones(NBYTES, np.uint8), np.zeros(NBYTES, np.uint8)
    for _ in range(20):
        ticket = haul.copy(target, source)
        threads = [threading.Thread(target=ticket.wait) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ticket.done()


def test_a_failure_is_told_each_time():
    process = haul.process(os.getpid())
    ticket = haul.copy(bytearray(NBYTES), process.extent(4096, NBYTES))
    for _ in range(2):
        with pytest.raises(haul.Error) as caught:
            ticket.wait()
        assert caught.value.name == "EFAULT"
    assert ticket.done() and ticket.progress() < NBYTES
    with pytest.raises(haul.Error):
        ticket.wait_range(0, 1)


@pytest.fixture
def memory_that_waits():
    with stalled(NBYTES) as memory:
        yield memory
