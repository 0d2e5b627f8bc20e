"""An asyncio service answers with snapshots of 64 MiB: how long does its loop stand still while one is copied?

The copy is made in the loop, by a thread (asyncio.to_thread), or by haul. A stall is the longest time between two turns
of the loop; what a turn takes while nothing is copied is measured, too.
"""

import asyncio
import time

import numpy as np

import haul
from figures import arguments, quartiles, told, write

NBYTES = 64 << 20


async def answer(target, source, way):
    if way == "in the loop":
        target[:] = source
    elif way == "to_thread()":
        await asyncio.to_thread(np.copyto, target, source)
    elif way == "haul":
        await haul.copy(target, source)
    else:
        await asyncio.sleep(0.02)


async def longest_stall(answering):
    """The longest time between two turns until the answer is there, in seconds."""
    longest, last = 0.0, time.perf_counter()
    while not answering.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await answering
    return longest


async def measure(rounds):
    source = np.random.default_rng(1).integers(0, 256, NBYTES, dtype=np.uint8)
    target = np.empty_like(source)
    stalls = {"nothing": [], "in the loop": [], "to_thread()": [], "haul": []}
    took = {way: [] for way in stalls}
    for round_number in range(rounds + 1):
        for way in stalls:
            target[::4096] = 0
            begun = time.perf_counter()
            stall = await longest_stall(asyncio.ensure_future(answer(target, source, way)))
            if round_number > 0:  # the first round makes pages and threads
                stalls[way].append(stall)
                took[way].append(time.perf_counter() - begun)
            if way != "nothing" and not np.array_equal(target, source):
                raise SystemExit("responses: WRONG bytes in a response")
    return stalls, took


def main():
    options = arguments(__doc__)
    stalls, took = asyncio.run(measure(options.rounds))
    for way, found in stalls.items():
        print(f"{way:12} stalls the loop {told(found, ' ms', 1e3)}, worst {max(found) * 1e3:.3g} ms; "
              f"the answer takes {told(took[way], ' ms', 1e3)}")
    print("every byte of each response is right")
    write(options.json, {way: {"stall_s": quartiles(found), "worst_s": max(found)} for way, found in stalls.items()})


if __name__ == "__main__":
    main()
