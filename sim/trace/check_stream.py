#!/usr/bin/env python3
"""Checks a raw stream of the tracer (stream.h) and says what is in it.

Usage: zstdcat FILE | check_stream.py [--symbols KALLSYMS] [--profile N]

Exits 1 when the stream breaks stream.h: identifiers out of order, lengths that cannot be, addresses
that do not agree, a missing or false end. About a million records a second.
"""

import argparse
import bisect
import collections
import struct
import sys

MAGIC = b"BCISIMRAW"
STATIC, EXEC, MEMORY, DEVICE, END = 1, 2, 3, 4, 5
NOT_MEMORY = 2**64 - 1
KERNEL = 1 << 63
# Where Linux maps all memory in order, and its own code (x86-64, nokaslr, loaded at 16 MB).
DIRECT_MAP, DIRECT_MAP_END = 0xFFFF888000000000, 0xFFFFC88000000000
KERNEL_TEXT, KERNEL_TEXT_END = 0xFFFFFFFF80000000, 0xFFFFFFFFA0000000
ROUTINES = """copy_user_generic_unrolled copy_user_short_string copy_user_generic_string
 copy_user_enhanced_fast_string __copy_user_nocache __memcpy memcpy memcpy_erms memcpy_orig __memmove memmove
 memset __memset memset_erms memset_orig clear_page_orig clear_page_rep clear_page_erms copy_page copy_page_regs
 csum_partial csum_partial_copy_generic csum_and_copy_from_user csum_and_copy_to_user skb_copy_bits
 skb_copy_and_csum_bits clear_user_rep_good clear_user_original __clear_user""".split()
TIMER = ("asm_sysvec_apic_timer_interrupt", "asm_sysvec_irq_work")
IRET = b"\x48\xcf"


class Broken(Exception):
    pass


def agree(virtual, physical):
    """Whether Linux can have mapped one to the other."""
    if DIRECT_MAP <= virtual < DIRECT_MAP_END:
        return virtual - DIRECT_MAP == physical
    if KERNEL_TEXT <= virtual < KERNEL_TEXT_END:
        return virtual - KERNEL_TEXT == physical
    return (virtual ^ physical) & 4095 == 0


class Statistics:
    def __init__(self, symbols):
        self.names, self.starts = [], []
        self.entries = {}
        if symbols:
            self._read(symbols)
        self.user = self.interrupt = self.timer = self.idle = 0
        self.loads = self.stores = self.not_memory = 0
        self.load_bytes = self.store_bytes = 0
        self.device = collections.Counter()
        self.calls = collections.Counter()
        self.by_function = collections.Counter()
        self.interrupts = collections.Counter()
        self.repeats = collections.Counter()  # one instruction twice in a row, by its first bytes

    def _read(self, path):
        with open(path, encoding="ascii", errors="replace") as file:
            rows = [line.split() for line in file]
        text = sorted((int(row[0], 16), row[2]) for row in rows if row[1] in "tTwW")
        self.starts = [address for address, _ in text]
        self.names = [name for _, name in text]
        self.entries = {address: name for address, name in text if name in ROUTINES}
        self.interrupt_entries = {address: name for address, name in text if name.startswith("asm_sysvec_")
                                  or name in ("asm_common_interrupt", "asm_exc_page_fault")}

    def function(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return self.names[at] if at >= 0 and address >= KERNEL else "user"


def read_stream(stream, statistics, profile):
    buffer, at = stream.read(1 << 22), 0
    if buffer[:9] != MAGIC:
        raise Broken("it does not begin with the mark of a stream")
    if struct.unpack_from("<I", buffer, 9)[0] != 1:
        raise Broken("it is of another version")
    at = 13
    addresses, codes, physicals, entries = [], [], [], []
    executed, last, count_by_id = 0, None, []
    nest = []  # interrupts under way
    number = struct.Struct("<I")
    memory = struct.Struct("<QQHB")
    interrupt_entries = getattr(statistics, "interrupt_entries", {})
    while True:
        if at + 64 > len(buffer):
            buffer = buffer[at:] + stream.read(1 << 22)
            at = 0
            if not buffer:
                raise Broken("it has no end: the recording was cut")
        tag = buffer[at]
        at += 1
        if tag == EXEC:
            (which,) = number.unpack_from(buffer, at)
            at += 4
            if which >= len(addresses):
                raise Broken(f"execution {executed} is of instruction {which}, which was not described")
            executed += 1
            count_by_id[which] += 1
            entry = entries[which]
            if which == last:
                statistics.repeats[codes[which][:2].hex()] += 1
            elif entry is not None:
                statistics.calls[entry] += 1
            address = addresses[which]
            name = interrupt_entries.get(address)
            if name is not None:
                nest.append(name)
                statistics.interrupts[name] += 1
            if nest and nest[-1] != "asm_exc_page_fault":
                statistics.interrupt += 1
                statistics.timer += nest[-1] in TIMER
            if nest and codes[which] == IRET:
                nest.pop()
            last = which
        elif tag == MEMORY:
            virtual, physical, size, store = memory.unpack_from(buffer, at)
            at += 19
            if last is None:
                raise Broken("it refers to memory before any instruction")
            if not 1 <= size <= 512 or store > 1:
                raise Broken(f"a reference of {size} bytes, kind {store}")
            if physical == NOT_MEMORY:
                statistics.not_memory += 1
            elif not agree(virtual, physical) or (physical & 4095) + size > 4096:
                raise Broken(f"a reference of {size} bytes at {virtual:#x} lies at {physical:#x}")
            if store:
                statistics.stores += 1
                statistics.store_bytes += size
            else:
                statistics.loads += 1
                statistics.load_bytes += size
        elif tag == STATIC:
            which, virtual, physical, size = struct.unpack_from("<IQQB", buffer, at)
            at += 21
            code = buffer[at:at + size]
            at += size
            if which != len(addresses):
                raise Broken(f"instruction {which} is described out of order")
            if not 1 <= size <= 15 or physical != NOT_MEMORY and not agree(virtual, physical):
                raise Broken(f"instruction {which} of {size} bytes at {virtual:#x} lies at {physical:#x}")
            addresses.append(virtual)
            physicals.append(physical)
            codes.append(code)
            entries.append(statistics.entries.get(virtual))
            count_by_id.append(0)
        elif tag == DEVICE:
            physical, size, wrote = struct.unpack_from("<QIB", buffer, at)
            at += 13
            if wrote > 1:
                raise Broken(f"a device's access of kind {wrote}")
            statistics.device["written" if wrote else "read"] += size
            statistics.device["writes" if wrote else "reads"] += 1
        elif tag == END:
            (said,) = struct.unpack_from("<Q", buffer, at)
            at += 8
            if said != executed:
                raise Broken(f"its end says {said} instructions, it has {executed}")
            if buffer[at:] or stream.read(1):
                raise Broken("something follows its end")
            break
        else:
            raise Broken(f"a record of kind {tag}, after {executed} instructions")
    kernel = 0
    for address, times in zip(addresses, count_by_id):
        if address >= KERNEL:
            kernel += times
        if profile:
            statistics.by_function[statistics.function(address)] += times
    statistics.user = executed - kernel
    return executed, len(addresses), sum(physical == NOT_MEMORY for physical in physicals)


def main():
    parser = argparse.ArgumentParser(description="Checks a raw stream and says what is in it.")
    parser.add_argument("--symbols", help="the guest's /proc/kallsyms")
    parser.add_argument("--profile", type=int, default=0, help="say the N functions with most instructions")
    chosen = parser.parse_args()
    found = Statistics(chosen.symbols)
    try:
        executed, statics, nowhere = read_stream(sys.stdin.buffer, found, chosen.profile)
    except (Broken, struct.error, IndexError) as error:
        cause = error if isinstance(error, Broken) else "it ends within a record"
        print(f"check_stream.py: The stream is broken: {cause}; record it again.", file=sys.stderr)
        return 1

    def share(part):
        return f"{part} ({100 * part / max(executed, 1):.2f} %)"

    print(f"instructions {executed}, described {statics} (not in memory: {nowhere})")
    print(f"user {share(found.user)}, interrupts {share(found.interrupt)}, of these timer {share(found.timer)}")
    print(f"loads {found.loads} ({found.load_bytes} bytes), stores {found.stores} ({found.store_bytes} bytes),"
          f" not memory {found.not_memory}")
    print(f"devices: {dict(found.device)}")
    print(f"repeated at once, by first bytes: {dict(found.repeats.most_common(8))}")
    if chosen.symbols:
        print(f"interrupts: {dict(found.interrupts)}")
        print("entries of copy routines:", ", ".join(f"{name} {times}" for name, times in found.calls.most_common()))
    for name, times in found.by_function.most_common(chosen.profile):
        print(f"  {100 * times / executed:6.2f} %  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
