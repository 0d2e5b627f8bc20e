import asyncio
import os
import threading

import numpy as np
import pytest

import haul
from stalled import stalled

NBYTES = 2 << 20

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one CPU only: no mover, so no copy is ever under way"
)


def pair(seed, nbytes=NBYTES):
    return np.zeros(nbytes, np.uint8), np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


async def copy_one(seed, nbytes=NBYTES):
    target, source = pair(seed, nbytes)
    ticket = haul.copy(target, source)
    assert await ticket is ticket
    assert np.array_equal(target, source)


async def copy_many():
    await asyncio.gather(*(copy_one(seed, 1 + seed * 50_000) for seed in range(50)))
    await copy_one(1)


@pytest.mark.parametrize("debug", [False, True])
def test_asyncio(debug):
    asyncio.run(copy_many(), debug=debug)
    asyncio.run(copy_many())  # another loop, the same thread


def test_asyncio_in_other_threads():
    threads = [threading.Thread(target=lambda: asyncio.run(copy_many())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_ticket_of_a_thread_that_has_ended():
    for _ in range(5):
        box = []
        with stalled(NBYTES) as memory:

            def make():
                asyncio.run(copy_one(1))
                box.append(haul.copy(np.ones(NBYTES, np.uint8), memory.buffer, mover="dedicated"))

            async def until(ticket):
                return await ticket

            async def hear():
                asyncio.get_running_loop().call_later(0.05, memory.arrive)
                await asyncio.wait_for(until(box[0]), 20)

            for target in (make, lambda: asyncio.run(hear())):
                thread = threading.Thread(target=target)
                thread.start()
                thread.join(30)
                assert not thread.is_alive()
            assert box[0].done()


def test_many_pieces_in_a_thread_that_awaits():
    async def run():
        await copy_one(1)
        source = np.random.default_rng(3).integers(0, 256, (40_000, 96), dtype=np.uint8)
        target = np.zeros((40_000, 64), np.uint8)
        await haul.copy(target, source[:, :64])
        assert np.array_equal(target, source[:, :64])

    asyncio.run(run())


def test_what_waits_lets_others_run():
    async def run():
        with stalled(NBYTES) as memory:
            await haul.copy(*pair(1))  # from now on this thread's copies have numbers
            target = np.ones(NBYTES, np.uint8)
            ticket = haul.copy(target, memory.buffer, mover="dedicated")
            waiting = asyncio.ensure_future(until(ticket))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not waiting.done()
            given_up = asyncio.ensure_future(until(ticket))
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(until(ticket), 0.05)
            memory.arrive()
            await waiting
            assert not target.any()

    async def until(ticket):
        return await ticket

    asyncio.run(run())


def test_a_ticket_of_another_thread():
    async def run():
        with stalled(NBYTES) as memory:
            tickets = []
            target = np.ones(NBYTES, np.uint8)
            thread = threading.Thread(
                target=lambda: tickets.append(haul.copy(target, memory.buffer, mover="dedicated"))
            )
            thread.start()
            thread.join()
            asyncio.get_running_loop().call_later(0.05, memory.arrive)
            await tickets[0]
            assert not target.any()

    asyncio.run(run())


def test_failures_are_raised():
    async def run():
        await haul.copy(*pair(1))
        ticket = haul.copy(bytearray(NBYTES), haul.process(os.getpid()).extent(4096, NBYTES))
        with pytest.raises(haul.Error) as caught:
            await ticket
        assert caught.value.name == "EFAULT"

    asyncio.run(run())


def test_without_a_loop():
    class Resumes:
        def __await__(self):
            yield from ticket.__await__()

    with stalled(NBYTES) as memory:
        ticket = haul.copy(np.ones(NBYTES, np.uint8), memory.buffer, mover="dedicated")
        with pytest.raises(RuntimeError, match=r"ticket\.wait\(\)"):
            next(Resumes().__await__())
        memory.arrive()
        ticket.wait()
    with pytest.raises(StopIteration):
        next(ticket.__await__())


def test_trio():
    trio = pytest.importorskip("trio")

    async def many():
        async with trio.open_nursery() as nursery:
            for seed in range(50):
                nursery.start_soon(copy_one, seed, 1 + seed * 50_000)
        await copy_one(1)
        with stalled(NBYTES) as memory:
            ticket = haul.copy(np.ones(NBYTES, np.uint8), memory.buffer, mover="dedicated")

            async def until():
                await ticket

            with trio.move_on_after(0.05) as scope:
                await until()
            assert scope.cancelled_caught
            memory.arrive()
            await until()

    trio.run(many)
    trio.run(many)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio(backend):
    anyio = pytest.importorskip("anyio")
    pytest.importorskip(backend)

    async def many():
        async with anyio.create_task_group() as tasks:
            for seed in range(20):
                tasks.start_soon(copy_one, seed, 1 + seed * 50_000)

    anyio.run(many, backend=backend)
