// The rows of the knobs' table, in the order of Knob. For knobs.cpp alone: others ask knob_rows().
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/knobs.hpp"

namespace haul {

inline constexpr std::size_t knob_count = static_cast<std::size_t>(Knob::count_);
inline constexpr std::uint64_t kib = 1024;
inline constexpr std::uint64_t mib = kib * kib;
inline constexpr std::uint64_t unbounded = ~std::uint64_t{0};

inline constexpr KnobRow rows[] = {
    {Knob::log_level, KnobKind::choice, "HAUL_LOG_LEVEL", "warning", "error|warning|info|debug", 0,
     0, false,
     "Diagnostics on standard error up to this level (default warning); info tells of each "
     "fallback, debug of each waking and falling asleep of the mover."},
    {Knob::copy_block_bytes, KnobKind::bytes, "HAUL_COPY_BLOCK_BYTES", "4K", "", 64, mib, true,
     "The grain in bytes at which a ticket reports progress (a power of two from 64 to 1M, default "
     "4K); a smaller one lets a reader start earlier and costs the mover more stores."},
    {Knob::mover_cores, KnobKind::number, "HAUL_MOVER_CORES", "1", "", 0, 16, false,
     "How many cores may move memory for this process (0 to 16, default 1); with 0 the caller's "
     "thread copies."},
    {Knob::mover_spin_us, KnobKind::number, "HAUL_MOVER_SPIN_US", "10000", "", 0, 100000, false,
     "Microseconds for which an idle mover spins before it sleeps (0 to 100000, default 10000); "
     "longer spares wake-ups and costs CPU time."},
    {Knob::mover_cpu, KnobKind::text, "HAUL_MOVER_CPU", "auto", "auto", 0, 65535, false,
     "The CPU number to which the mover is pinned, or auto (the default): the nearest allowed CPU "
     "that shares no core with the caller."},
    {Knob::mover_lease, KnobKind::choice, "HAUL_MOVER_LEASE", "on", "on|off", 0, 0, false,
     "Whether processes take turns at the mover's core (on or off, default on); off lets each "
     "process spin a core of its own."},
    {Knob::mover_patience_ms, KnobKind::number, "HAUL_MOVER_PATIENCE_MS", "5000", "", 0, 3600000,
     false,
     "Milliseconds for which fork(), exit() and haul_shutdown() wait while nothing in flight makes "
     "progress, and twice as long as a device may finish nothing before it is stopped and the CPU "
     "does what it had (0 to 3600000, default 5000); then they leave it, and say so."},
    {Knob::plan_mover, KnobKind::choice, "HAUL_PLAN_MOVER", "auto", "auto|caller|thread|service", 0,
     0, false,
     "Who moves the bytes: auto (the default) plans each request, caller is always the calling "
     "thread, thread always a dedicated core of the process, service the node's service wherever "
     "it reaches."},
    {Knob::plan_engine, KnobKind::choice, "HAUL_PLAN_ENGINE", "auto",
     "auto|cpu|cma|fault|dmadev|dsa|nic|uring|cuda", 0, 0, false,
     "Which engine moves the bytes: auto (the default) plans each request, a name forces that "
     "engine wherever it reaches."},
    {Knob::plan_inline_bytes, KnobKind::text, "HAUL_PLAN_INLINE_BYTES", "auto", "auto", 0,
     unbounded - 1, false,
     "Requests of fewer bytes than this are copied by the caller at once; auto (the default) takes "
     "the figure from the calibration."},
    {Knob::engine_fault, KnobKind::text, "HAUL_ENGINE_FAULT", "", "", 0, 0, false,
     "The schedule of faults that the engine fault injects (default empty: none); for tests."},
    {Knob::engine_dmadev, KnobKind::text, "HAUL_ENGINE_DMADEV", "", "", 0, 0, false,
     "Devices that the engine dmadev has DPDK look for, beside those of Linux' idxd driver "
     "(default empty: none), separated by blanks: PCI addresses such as 0000:00:04.0, bound to a "
     "driver of DPDK's, or dma_skeleton0, a thread that stands for a device."},
    {Knob::engine_dsa, KnobKind::text, "HAUL_ENGINE_DSA", "", "", 0, 0, false,
     "The work queues of Linux' idxd driver that the engine dsa takes (default empty: the first "
     "one for users that can be opened), such as wq0.1, or wq0.0,wq1.0, which share the requests; "
     "with the word verify behind a queue, as in 'wq0.1 verify', the device compares what it has "
     "moved, and the CPU puts right what is wrong; for tests the file of a stand-in for a device, "
     "memory of one page or a pipe, with what it is like: depth=N batch=N transfer=BYTES shared "
     "block_on_fault."},
    {Knob::engine_nic, KnobKind::text, "HAUL_ENGINE_NIC", "", "", 0, 0, false,
     "The looped network ports of the engine nic (default empty: the veth pairs that haul nic "
     "setup makes), separated by blanks: eth1, a port whose output returns to its own input, or "
     "eth1>eth2, two ports on one cable; words that may stand with them: packet (the default) or "
     "xdp, how frames are received, netns=NAME, where the ports are, and for tests fragment=BYTES "
     "and trial=PERCENT, of frames lost, repeated and overtaken; or vfio 0000:00:03.0, a card that "
     "the program drives itself, bound to vfio-pci; with plugged where its output returns by a "
     "plug and not within it, and buffer=BYTES (256, 512, 1024 or 2048) of its receive buffers."},
    {Knob::engine_cuda, KnobKind::text, "HAUL_ENGINE_CUDA", "", "", 0, 0, false,
     "How the engine cuda reaches GPUs (default empty: as it finds them), words separated by "
     "blanks: library=PATH, the CUDA driver's library if it is not libcuda.so.1; slots=N "
     "slot_bytes=BYTES, the pinned memory through which pageable memory is copied, in each "
     "direction (2 to 16 slots of 4K to 64M, in K or M)."},
    {Knob::tune_cache, KnobKind::text, "HAUL_TUNE_CACHE", "", "", 0, 0, false,
     "Path of the calibration file (default empty: one file a machine in haul/ below the XDG cache "
     "directory)."},
    {Knob::tune_background, KnobKind::choice, "HAUL_TUNE_BACKGROUND", "on", "on|off", 0, 0, false,
     "Whether a process without a calibration file measures one in the background, at most 0.5 s "
     "of CPU time, and again where it is disturbed or outdated (on or off, default on)."},
    {Knob::memory_arena_bytes, KnobKind::bytes, "HAUL_MEMORY_ARENA_BYTES", "256G", "", 64 * mib,
     1024 * kib* mib, false,
     "Address space reserved for haul_alloc(), and so the most that it can give out (64M to 1024G, "
     "default 256G); it costs nothing until it is used."},
    {Knob::memory_shared_from_bytes, KnobKind::bytes, "HAUL_MEMORY_SHARED_FROM_BYTES", "64K", "",
     16 * kib, 1024 * mib, false,
     "Allocations of at least this many bytes are born shared under `haul run --mpi "
     "--memory=shared` (16K to 1G, default 64K), so that messages from or to them are copied "
     "once."},
    {Knob::memory_huge, KnobKind::choice, "HAUL_MEMORY_HUGE", "auto", "auto|on|off", 0, 0, false,
     "Whether a copy or fill of 1 MiB or more that is the first to write to memory makes its pages "
     "beforehand, huge ones where it overwrites them whole: auto (the default; no huge ones while "
     "more than two threads for each CPU want to run), on, off."},
    {Knob::memory_register, KnobKind::choice, "HAUL_MEMORY_REGISTER", "cached",
     "cached|overlapped|blocking", 0, 0, false,
     "When memory is registered with a device or a network card that needs that: cached (the "
     "default) once, beside the copying of what comes before it, and until it is unmapped or "
     "changed otherwise; overlapped the same for each copy, which watches no memory; blocking each "
     "copy's whole memory before it begins, for measurements."},
    {Knob::memory_registered_bytes, KnobKind::bytes, "HAUL_MEMORY_REGISTERED_BYTES", "256M", "", 0,
     1024 * kib* mib, false,
     "How much memory stays registered with a device, or each way with a network card, while no "
     "copy uses it (0 to 1024G, default 256M); it counts for the limit of locked memory (ulimit "
     "-l)."},
    {Knob::service_use, KnobKind::choice, "HAUL_SERVICE_USE", "auto", "auto|off|demand", 0, 0,
     false,
     "Whether to use the node's service: auto (the default) where one runs, off never, demand "
     "starts `haul serve` if none runs (it ends after a minute without clients)."},
    {Knob::service_socket, KnobKind::text, "HAUL_SERVICE_SOCKET", "", "", 0, 0, false,
     "Path of the service's socket (default empty: haul/service.sock below XDG_RUNTIME_DIR or "
     "/run/user/UID, else /tmp/haul-UID/service.sock)."},
    {Knob::service_weight, KnobKind::number, "HAUL_SERVICE_WEIGHT", "10", "", 1, 100, false,
     "This process's share of the service while others want it too, in proportion to theirs (1 to "
     "100, default 10)."},
    {Knob::service_map_bytes, KnobKind::bytes, "HAUL_SERVICE_MAP_BYTES", "64G", "", 0,
     1024 * kib* mib, false,
     "How much of its clients' memory the service keeps mapped (default 64G of addresses); with 0 "
     "it maps and unmaps for each piece."},
    {Knob::fabric_collapse, KnobKind::choice, "HAUL_FABRIC_COLLAPSE", "on", "on|off", 0, 0, false,
     "Whether message buffers of 1 MiB or more that are used again and again are put on huge pages "
     "(on or off, default on): the kernel then copies them between processes three times faster."},
    {Knob::fabric_eager_bytes, KnobKind::text, "HAUL_FABRIC_EAGER_BYTES", "auto", "auto", 4 * kib,
     64 * kib, false,
     "Messages of up to this many bytes are sent unasked (4K to 64K); auto (the default) takes the "
     "figure from the calibration."},
    {Knob::fabric_part_bytes, KnobKind::text, "HAUL_FABRIC_PART_BYTES", "auto", "auto", 1 * kib,
     32 * kib, false,
     "Messages of more than this many bytes that are sent unasked leave in parts of it (1K to "
     "32K), so that the receiver copies one out while the next is copied in; auto (the default) "
     "takes what `haul tune` found best, or else 8K."},
    {Knob::fabric_cell_bytes, KnobKind::text, "HAUL_FABRIC_CELL_BYTES", "auto", "auto", 0, 8 * kib,
     false,
     "From how many bytes on what is sent unasked is written to cells, which sender and receiver "
     "pass to and fro, so that the lines of an answer need not change their core (0 to 8K; 0: "
     "never); auto (the default) takes what `haul tune` found best, or else 2K."},
    {Knob::fabric_piece_bytes, KnobKind::text, "HAUL_FABRIC_PIECE_BYTES", "auto", "auto", 4 * kib,
     32 * kib, false,
     "Messages that were asked for, and that no side can copy directly, leave in pieces of this "
     "many bytes (4K to 32K); auto (the default) takes what `haul tune` found best, or else 32K."},
    {Knob::fabric_own_ahead, KnobKind::choice, "HAUL_FABRIC_OWN_AHEAD", "auto", "auto|on|off", 0, 0,
     false,
     "Whether a sender takes the lines that it will write next from the receiver's core ahead of "
     "time; auto (the default) does what `haul tune` found best, or else does."},
    {Knob::fabric_demote, KnobKind::choice, "HAUL_FABRIC_DEMOTE", "auto", "auto|on|off", 0, 0,
     false,
     "Whether a sender puts small packets into the shared cache once they are written, where the "
     "processor can; auto (the default) does what `haul tune` found best, or else does."},
    {Knob::fabric_copy_in, KnobKind::choice, "HAUL_FABRIC_COPY_IN", "auto",
     "auto|strings|vectors|prefetching", 0, 0, false,
     "How a sender copies into memory that it shares with the receiver: strings (rep movsb, where "
     "the processor is fast at it, else vectors), vectors, or prefetching (vectors that ask ahead "
     "for what they read); auto (the default) does what `haul tune` found best, or else strings."},
    {Knob::fabric_copy_out, KnobKind::choice, "HAUL_FABRIC_COPY_OUT", "auto",
     "auto|strings|vectors|prefetching", 0, 0, false,
     "How a receiver copies out of memory that it shares with the sender: strings, vectors or "
     "prefetching, as for HAUL_FABRIC_COPY_IN; auto (the default) does what `haul tune` found "
     "best, "
     "or else strings."},
    {Knob::fabric_kernel_bytes, KnobKind::text, "HAUL_FABRIC_KERNEL_BYTES", "auto", "auto", 0,
     unbounded - 1, false,
     "Messages between pages of 4 KiB are copied once, by the kernel, from this many bytes on; "
     "auto (the default) takes the figure from the calibration and tries both ways around it."},
    {Knob::fabric_stream_bytes, KnobKind::text, "HAUL_FABRIC_STREAM_BYTES", "auto", "auto", 0,
     unbounded - 1, false,
     "Messages that are copied through mappings are written past the caches from this many bytes "
     "on and shorter ones are not; auto (the default): from a quarter of the last-level cache on "
     "and wherever trials find that sooner, but not where they find it slower."},
    {Knob::fabric_offnode, KnobKind::text, "HAUL_FABRIC_OFFNODE", "auto", "", 0, 0, false,
     "What carries messages to other nodes: a libfabric provider such as tcp;ofi_rxm, socket, auto "
     "(the default: the best that there is), or off; a name must be the same on all nodes."},
    {Knob::fabric_overlap, KnobKind::choice, "HAUL_FABRIC_OVERLAP", "auto", "auto|on|off", 0, 0,
     false,
     "Whether large messages go on while an MPI program computes, by a thread of haul's in each of "
     "its processes: auto (the default) where a core is free for it, on also where none is, off "
     "never."},
    {Knob::fabric_register, KnobKind::choice, "HAUL_FABRIC_REGISTER", "auto", "auto|always", 0, 0,
     false,
     "Whether memory that other nodes read, or that is read into from there, is registered as "
     "HAUL_MEMORY_REGISTER says: auto (the default) where the libfabric provider asks for "
     "registered memory, or pins it; always also where registering is free, for tests."},
    {Knob::fabric_report, KnobKind::text, "HAUL_FABRIC_REPORT", "", "", 0, 0, false,
     "Set by `haul run --report`: the abstract socket to which endpoints report what they sent "
     "(default empty: none)."},
    {Knob::transparent_plan, KnobKind::choice, "HAUL_TRANSPARENT_PLAN", "auto",
     "auto|libc|caller|together|deferred|profile|blocking|protected", 0, 0, false,
     "How a program under `haul run --transparent` copies: auto (the default) tries and takes what "
     "is fastest at each place, libc is always its own function, caller makes missing pages first, "
     "together shares each call with a mover, deferred lets copies and fills of new memory and of "
     "huge pages return before their bytes are there, profile is libc and looks closely (`haul "
     "profile`), blocking is auto without deferring, protected lets all copies return early by "
     "mprotect() and SIGSEGV, for measurements: system calls on such memory fail."},
    {Knob::transparent_from_bytes, KnobKind::bytes, "HAUL_TRANSPARENT_FROM_BYTES", "1M", "",
     32 * kib, unbounded - 1, false,
     "Calls of a program under `haul run --transparent` of fewer bytes than this are left to libc "
     "(32K or more, default 1M)."},
    {Knob::transparent_sample, KnobKind::number, "HAUL_TRANSPARENT_SAMPLE", "16", "", 0, 1 << 20,
     false,
     "Of the large calls at each place of a program, the first four and then one in so many are "
     "watched for the time until their destination is used and their source is written: all under "
     "`haul profile`, else copies into new memory that could be deferred (0: none; default 16)."},
    {Knob::transparent_report, KnobKind::text, "HAUL_TRANSPARENT_REPORT", "", "", 0, 0, false,
     "Set by `haul run --transparent --report`: the directory in which each process leaves what it "
     "counted (default empty: none)."},
};
static_assert(sizeof rows / sizeof rows[0] == knob_count);

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < knob_count; ++i) {
    if (static_cast<std::size_t>(rows[i].knob) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

}  // namespace haul
