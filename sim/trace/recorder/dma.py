"""Checks the tracer's account of DMA against what QEMU counts by itself (record.py --check-dma).

The guest stands still when begin() and end() look, so both counts are of the same stretch, up to what
was under way at its ends: requests handed over before it, or not yet reaped at its end.
"""

import os
import struct

NET_HEADER = 12  # virtio-net puts it before each packet; the dump leaves it out


def _disks(guest):
    """Bytes (read from disk, written to disk) by disk, in the order of the devices."""
    stats = guest.monitor.ask("query-blockstats") or []
    return [(one["stats"]["rd_bytes"], one["stats"]["wr_bytes"]) for one in stats]


def _sizes(guest):
    return {way: os.path.getsize(guest.dump(way)) for way in ("rx", "tx") if os.path.exists(guest.dump(way))}


def begin(guest):
    if guest.settings.check_dma:
        guest.counted = {"disks": _disks(guest), "dumps": _sizes(guest)}


def _packets(path, first, last):
    """(packets, bytes) between two places of a dump in pcap's format, which begins with 24 bytes."""
    packets = total = 0
    with open(path, "rb") as file:
        file.seek(max(first, 24))
        content = file.read(last - max(first, 24))
    at = 0
    while at + 16 <= len(content):
        kept, length = struct.unpack_from("<II", content, at + 8)
        packets, total, at = packets + 1, total + length, at + 16 + kept
    return packets, total


def end(guest):
    """Leaves lines in guest.dma_lines: what the tracer saw of each queue, and what QEMU counted."""
    if not guest.settings.check_dma:
        return
    before = guest.counted
    lines = [f"{name}: {counts['requests']} requests, device read {counts['read']}, wrote {counts['written']} bytes"
             for name, counts in guest.dma.items()]
    for number, (old, new) in enumerate(zip(before["disks"], _disks(guest))):
        lines.append(f"QEMU, disk {number}: read {new[0] - old[0]}, written {new[1] - old[1]} bytes")
    for way, last in _sizes(guest).items():
        packets, total = _packets(guest.dump(way), before["dumps"][way], last)
        lines.append(f"QEMU, network {way}: {packets} packets, {total + NET_HEADER * packets} bytes with headers")
    guest.dma_lines = lines
