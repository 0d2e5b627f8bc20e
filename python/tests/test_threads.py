"""Threads that use haul at once: meant for interpreters without a GIL, where nothing else keeps them apart."""

import asyncio
import contextlib
import gc
import sys
import threading

import numpy as np

import haul
import haul.atomic
from programs import output_of

THREADS = 6
ROUNDS = 40
NBYTES = 1 << 19


def together(work, count=THREADS):
    """Runs work(number) in so many threads, which begin at once, and raises what the first of them raised."""
    barrier = threading.Barrier(count)
    failures = []

    def run(number):
        barrier.wait(30)
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def random_bytes(seed, nbytes=NBYTES):
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def test_the_modules_leave_the_gil_as_it_is():
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert output_of("""
        import sys, haul, haul.atomic
        print(getattr(sys, "_is_gil_enabled", lambda: True)())
    """) == f"{enabled}\n"


def test_all_copy_and_drop():
    def work(number):
        source = random_bytes(number)
        for turn in range(ROUNDS):
            target = np.zeros_like(source)
            ticket = haul.copy(target, source)
            if turn % 3 == 0:
                del ticket
                haul.fill(bytearray(100), 7).wait()
                continue
            ticket.wait()
            assert np.array_equal(target, source)

    together(work)


def test_one_ticket_is_used_by_all():
    for turn in range(ROUNDS):
        source, target = random_bytes(turn), np.zeros(NBYTES, np.uint8)
        ticket = haul.copy(target, source)

        def work(number):
            while not ticket.range_done(0, 4096):
                assert 0 <= ticket.progress() <= NBYTES and "haul.Ticket" in repr(ticket)
            ticket.wait_range(number * 4096, 4096)
            ticket.wait()
            assert ticket.done() and np.array_equal(target, source)

        together(work)


def test_what_one_drops_another_lets_go():
    sources = [random_bytes(seed) for seed in range(8)]
    tickets = []
    ended = threading.Event()

    def work(number):
        if number == 0:
            for turn in range(ROUNDS * 8):
                source = sources[turn % 8]
                tickets.append((haul.copy(np.zeros_like(source), source), source))
            ended.set()
            return
        while not ended.is_set() or tickets:
            with contextlib.suppress(IndexError):
                ticket, source = tickets.pop()
                if number % 2:
                    ticket.wait()
                del ticket, source

    together(work, 4)
    assert not tickets


def test_each_has_an_event_loop():
    async def copies(number):
        async def one(seed):
            source = random_bytes(seed)
            target = np.zeros_like(source)
            await haul.copy(target, source)
            assert np.array_equal(target, source)

        await asyncio.gather(*(one(number * 100 + seed) for seed in range(12)))

    together(lambda number: [asyncio.run(copies(number)) for _ in range(3)])


def test_a_thread_ends_with_copies_under_way():
    source = random_bytes(1, 4 << 20)
    for _ in range(ROUNDS // 4):
        kept = []

        def work(number):
            target = np.zeros_like(source)
            kept.append((haul.copy(target, source), target))
            haul.copy(np.zeros_like(source), source)

        together(work)
        for ticket, target in kept:
            ticket.wait()
            assert np.array_equal(target, source)


def test_memory_is_made_and_dropped_by_all():
    def work(number):
        for turn in range(ROUNDS):
            array = haul.empty((1 + turn, 1000), np.int32)
            haul.fill(array, number).wait()
            assert (array == number).all()
            part = array[turn // 2]
            del array
            if turn % 10 == 0:
                gc.collect()
            assert (part == number).all()

    together(work)
