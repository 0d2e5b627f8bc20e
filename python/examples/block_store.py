"""A store of 10 MB blocks (a KV cache, tensors) whose one thread polls for requests: how long does a small request take
while blocks move?

A reader asks for blocks, which the store copies into memory that both share; another client asks for 64 bytes at a time
and measures. The store copies on its poll thread, or by haul, and goes on polling.
"""

import multiprocessing
import time
from multiprocessing import connection, shared_memory

import numpy as np

import haul
from figures import arguments, quartiles, told, write

BLOCK_BYTES, BLOCKS = 10_000_000, 8
SMALL_REQUESTS = 400


def serve(small, bulk, name):
    """The store. Requests on `bulk` are (way, block number), on `small` a key; None ends it."""
    window = shared_memory.SharedMemory(name)
    slot = np.frombuffer(window.buf, np.uint8, BLOCK_BYTES)
    blocks = [np.random.default_rng(n).integers(0, 256, BLOCK_BYTES, dtype=np.uint8) for n in range(BLOCKS)]
    values = {key: bytes([key]) * 64 for key in range(256)}
    ticket = None
    while True:
        # (While a block moves, this thread looks for its end, too.)
        for client in connection.wait([small, bulk], 0.0005 if ticket is not None else None):
            request = client.recv()
            if request is None:
                del slot
                window.close()
                return
            if client is small:
                small.send_bytes(values[request])
                continue
            way, number = request
            if way == "memcpy":
                slot[:] = blocks[number]
                bulk.send(number)
            else:
                ticket = haul.copy(slot, blocks[number])
        if ticket is not None and ticket.done():
            ticket.wait()
            ticket = None
            bulk.send(number)


def read_blocks(bulk, name, orders):
    """Asks for blocks in the way that was ordered last. A reader that compared every byte would take the CPU from who
    measures: it looks at a byte of each 64 KiB, and at all bytes of the last block of a turn."""
    window = shared_memory.SharedMemory(name)
    slot = np.frombuffer(window.buf, np.uint8, BLOCK_BYTES)
    known = [np.random.default_rng(n).integers(0, 256, BLOCK_BYTES, dtype=np.uint8) for n in range(BLOCKS)]
    way, number = orders.recv(), 0
    while way != "end":
        block = known[number % BLOCKS]
        if way != "idle":
            bulk.send((way, number % BLOCKS))
            bulk.recv()
            if not np.array_equal(slot[::65536], block[::65536]):
                orders.send("WRONG")
            number += 1
        if orders.poll(0.002 if way != "idle" else None):
            if way != "idle" and not np.array_equal(slot, block):
                orders.send("WRONG")
            way = orders.recv()
            orders.send(number)
    del slot
    window.close()


def small_requests(small):
    times = []
    for n in range(SMALL_REQUESTS):
        begun = time.perf_counter()
        small.send(n % 256)
        value = small.recv_bytes()
        times.append(time.perf_counter() - begun)
        if value != bytes([n % 256]) * 64:
            raise SystemExit("block_store: WRONG value")
        time.sleep(0.0005)
    return np.percentile(times, 99)


def main():
    options = arguments(__doc__)
    window = shared_memory.SharedMemory(create=True, size=BLOCK_BYTES)
    small, small_served = multiprocessing.Pipe()
    bulk, bulk_served = multiprocessing.Pipe()
    orders, orders_heard = multiprocessing.Pipe()
    store = multiprocessing.Process(target=serve, args=(small_served, bulk_served, window.name))
    reader = multiprocessing.Process(target=read_blocks, args=(bulk, window.name, orders_heard))
    store.start()
    reader.start()
    p99 = {"idle": [], "memcpy": [], "haul": []}
    moved = dict.fromkeys(p99, 0)
    orders.send("idle")
    for round_number in range(options.rounds + 1):
        for way, found in p99.items():
            orders.send(way)
            before = orders.recv()
            taken = small_requests(small)
            orders.send("idle")
            count = orders.recv()
            if "WRONG" in (before, count):
                raise SystemExit("block_store: WRONG bytes in a block")
            moved[way] += count - before
            if round_number > 0:
                found.append(taken)
    orders.send("end")
    small.send(None)
    for process in (reader, store):
        process.join()
    window.unlink()
    for way, found in p99.items():
        ratio = np.divide(found, p99["idle"])
        print(f"{way:7} p99 of a small request {told(found, ' us', 1e6)}, {told(ratio)} of idle; {moved[way]} blocks moved")
    print("every byte of each block is right")
    write(options.json, {way: {"p99_s": quartiles(found), "blocks": moved[way]} for way, found in p99.items()})


if __name__ == "__main__":
    main()
