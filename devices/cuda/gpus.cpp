#include "devices/cuda/gpus.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "devices/cuda/driver.hpp"
#include "devices/cuda/results.hpp"
#include "devices/cuda/trial.hpp"

namespace haul::cuda {
namespace {

// (As many as haul registers with a device at a time.)
constexpr unsigned most_registered = 256;

// Never destroyed: the driver may use its memory as long as the process lives.
struct Gpus {
  Driver driver;
  CudaChoices choices;
  int found = 0;
  Gpu gpus[most_gpus];
  // A bit a GPU that is open. Release, by who has opened it; acquire by others.
  std::atomic<unsigned> open{0};
  pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
  // What haul has registered, by where it begins; under `registering`, which is held for the table
  // alone.
  pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
  std::uintptr_t registered[most_registered] = {};
};
Gpus* own = nullptr;

bool is_open(int ordinal) {
  return (own->open.load(std::memory_order_acquire) >> ordinal & 1) != 0;
}

// Calls act(gpu) for each that is open, until it answers true.
template <class Act>
bool any_open(Act act) {
  for (int ordinal = 0; ordinal < own->found; ++ordinal)
    if (is_open(ordinal) && act(own->gpus[ordinal])) return true;
  return false;
}

// A region that names a GPU's memory.
std::uint64_t region_of(int ordinal) {
  return static_cast<std::uint64_t>(ordinal) + 1;
}
Gpu& gpu_of(std::uint64_t region) {
  return own->gpus[region - 1];
}

// Puts `to` where `from` stands in the table. False: it does not.
bool replace_registered(std::uintptr_t from, std::uintptr_t to) {
  pthread_mutex_lock(&own->registering);
  std::uintptr_t* const end = own->registered + most_registered;
  std::uintptr_t* const found = std::find(own->registered, end, from);
  if (found != end) *found = to;
  pthread_mutex_unlock(&own->registering);
  return found != end;
}

Submitted refuse(Code code, Outcome& outcome) {
  outcome = Outcome{0, code};
  return Submitted::finished;
}

// -1: `which` is no number of a GPU.
int parse_ordinal(const char* which) {
  if (*which == '\0') return 0;
  if (*which < '0' || *which > '9') return -1;
  char* end = nullptr;
  errno = 0;
  const long number = std::strtol(which, &end, 10);
  return *end == '\0' && errno == 0 && number < own->found ? static_cast<int>(number) : -1;
}

// A thread of its own opens a GPU, since the driver's first calls may take more stack than haul's
// threads have.
struct GpuOpening {
  int ordinal;
  char* sentence;
  std::size_t sentence_bytes;
  bool opened = false;
};

void* open_gpu(void* argument) {
  auto& opening = *static_cast<GpuOpening*>(argument);
  Gpu& gpu = own->gpus[opening.ordinal];
  if (!gpu.is_idle()) {
    std::snprintf(opening.sentence, opening.sentence_bytes,
                  "GPU %d has not ended its first copies yet; see dmesg, restart the program",
                  opening.ordinal);
    return nullptr;
  }
  opening.opened =
      gpu.open(own->driver, opening.ordinal, opening.sentence, opening.sentence_bytes) &&
      try_gpu(gpu, own->driver, own->choices, opening.sentence, opening.sentence_bytes);
  if (opening.opened) {
    own->open.fetch_or(1u << opening.ordinal, std::memory_order_release);
  } else if (gpu.is_idle()) {
    // (One that does not end what it has may still use its slots: they are left to it.)
    gpu.close();
    new (&gpu) Gpu;
  }
  return nullptr;
}

// A side in a GPU's memory, and one in this process's.
struct CopySides {
  Pointer device;
  std::uintptr_t host;
  std::uint64_t gpu_region, host_region;
};

Submitted copy_with_host(const Piece& piece, GpuWay way, const CopySides& sides, std::uint64_t tag,
                         Outcome& outcome) {
  Gpu& gpu = gpu_of(sides.gpu_region);
  if (!gpu.has_room(way)) return Submitted::full;
  Pointer pinned = 0;
  const Code code = gpu.examine(sides.device, sides.host, piece.length, &pinned);
  if (code != Code::ok) return refuse(code, outcome);
  GpuCopy copy;
  copy.tag = tag;
  copy.device = sides.device;
  copy.host = sides.host;
  copy.length = piece.length;
  copy.whole_bytes = piece.whole_bytes;
  copy.watermark = piece.watermark;
  copy.context = copy.source_context = gpu.context();
  // What haul itself has pinned counts only for pieces that name it: it may be given back, or be
  // other memory than it was.
  copy.straight = sides.host_region != 0 || (pinned != 0 && !replace_registered(pinned, pinned));
  gpu.take(way, copy);
  return Submitted::accepted;
}

Submitted copy_within(const Piece& piece, std::uint64_t tag, Outcome& outcome) {
  Gpu& gpu = gpu_of(piece.dst_region);
  Gpu& source = gpu_of(piece.src_region);
  if (!gpu.has_room(GpuWay::within)) return Submitted::full;
  Code code = gpu.examine(piece.dst, 0, piece.length, nullptr);
  if (code == Code::ok) code = source.examine(piece.src, 0, piece.length, nullptr);
  if (code != Code::ok) return refuse(code, outcome);
  GpuCopy copy;
  copy.tag = tag;
  copy.device = piece.dst;
  copy.host = piece.src;
  copy.length = piece.length;
  copy.watermark = piece.watermark;
  copy.context = gpu.context();
  copy.source_context = source.context();
  gpu.take(GpuWay::within, copy);
  return Submitted::accepted;
}

}  // namespace

bool start_gpus(const CudaChoices& choices, char* sentence, std::size_t sentence_bytes) {
  alignas(Gpus) static unsigned char room[sizeof(Gpus)];
  own = new (room) Gpus;
  own->choices = choices;
  const char* const library = choices.library[0] != '\0' ? choices.library : nullptr;
  if (!load_driver(library, own->driver, sentence, sentence_bytes)) return false;
  int count = 0;
  Result result = own->driver.device_count(&count);
  if (result == success && count == 0) result = no_device;
  if (result != success) {
    describe_result(result, "no GPU is there", sentence, sentence_bytes);
    return false;
  }
  own->found = count < most_gpus ? count : most_gpus;
  return true;
}

bool gpus_are_emulated() {
  return own->driver.emulated;
}

Code open_gpu_memory(const char* which, std::uint64_t* region, char* sentence,
                     std::size_t sentence_bytes) {
  const int ordinal = parse_ordinal(which);
  if (ordinal < 0) {
    std::snprintf(sentence, sentence_bytes,
                  "\"%.40s\" is no GPU's number here; say 0 to %d, as CUDA counts them", which,
                  own->found - 1);
    return Code::invalid;
  }
  pthread_mutex_lock(&own->opening);
  GpuOpening opening{ordinal, sentence, sentence_bytes, is_open(ordinal)};
  pthread_t thread;
  if (!opening.opened) {
    if (pthread_create(&thread, nullptr, open_gpu, &opening) == 0) {
      pthread_join(thread, nullptr);
    } else {
      std::snprintf(sentence, sentence_bytes, "no thread can be made to open GPU %d", ordinal);
    }
  }
  if (opening.opened && own->gpus[ordinal].is_dead()) {
    std::snprintf(sentence, sentence_bytes, "%s", own->gpus[ordinal].why());
    opening.opened = false;
  }
  pthread_mutex_unlock(&own->opening);
  *region = region_of(ordinal);
  return opening.opened ? Code::ok : Code::io;
}

Submitted submit_to_gpu(const Piece& piece, std::uint64_t tag, Outcome& outcome) {
  const bool to_gpu = piece.dst_space != self_space, from_gpu = piece.src_space != self_space;
  const bool dead = (to_gpu && gpu_of(piece.dst_region).is_dead()) ||
                    (from_gpu && gpu_of(piece.src_region).is_dead());
  if (dead) return gpus_are_dead() ? Submitted::dead : refuse(Code::io, outcome);
  if (to_gpu && from_gpu) return copy_within(piece, tag, outcome);
  if (to_gpu) {
    return copy_with_host(piece, GpuWay::in,
                          {piece.dst, piece.src, piece.dst_region, piece.src_region}, tag, outcome);
  }
  return copy_with_host(piece, GpuWay::out,
                        {piece.src, piece.dst, piece.src_region, piece.dst_region}, tag, outcome);
}

std::size_t poll_gpus(unsigned, Finished* finished, std::size_t most) {
  std::size_t count = 0;
  any_open([&](Gpu& gpu) {
    count += gpu.poll(finished + count, most - count);
    return count == most;
  });
  return count;
}

bool take_staging_of_gpus(StagingCopy* copy) {
  return any_open([copy](Gpu& gpu) { return gpu.take_staging(copy); });
}

bool gpus_are_dead() {
  return !any_open([](const Gpu& gpu) { return !gpu.is_dead(); });
}

bool stop_gpus(unsigned) {
  bool stopped = true;
  any_open([&](Gpu& gpu) {
    stopped = gpu.stop() && stopped;
    return false;
  });
  return stopped;
}

Code register_with_gpus(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) {
  // (Before it is, so that no piece takes it for the program's.)
  if (!replace_registered(0, address)) return Code::no_memory;
  Result result = no_device;
  any_open([&](Gpu& gpu) {
    if (gpu.is_dead()) return false;
    const InContext current(own->driver, gpu.context());
    result = current.result();
    if (result == success)
      result = own->driver.host_register(reinterpret_cast<void*>(address), bytes, host_portable);
    return true;
  });
  if (result == success) {
    *region = address;
    return Code::ok;
  }
  replace_registered(address, 0);
  // (What is registered in part may be haul's own, of which more is given back then.)
  if (result == already_registered) return Code::no_memory;
  const Code code = failure_of_piece(result);
  return code != Code::ok ? code : Code::io;
}

void unregister_with_gpus(std::uint64_t region) {
  any_open([&](Gpu& gpu) {
    if (gpu.is_dead()) return false;
    const InContext current(own->driver, gpu.context());
    if (current.result() == success) own->driver.host_unregister(reinterpret_cast<void*>(region));
    return true;
  });
  replace_registered(region, 0);
}

bool registering_pays_once(std::size_t bytes, unsigned threads) {
  bool pays = false;
  any_open([&](const Gpu& gpu) {
    const GpuFigures& measured = gpu.figures;
    if (measured.pin == 0 || measured.pinned_in == 0) return true;
    const auto length = static_cast<double>(bytes);
    const double staging_ns = length / (std::max(measured.in, measured.out) * threads);
    const double straight_ns =
        measured.pin_start_ns + length / measured.pin + length / measured.pinned_in;
    pays = straight_ns < staging_ns;
    return true;
  });
  return pays;
}

void describe_gpus(char* text, std::size_t text_bytes) {
  const Gpu* shown = nullptr;
  any_open([&](const Gpu& gpu) {
    if (shown == nullptr || gpu.is_dead()) shown = &gpu;
    return gpu.is_dead();
  });
  const char* const no_hardware = own->driver.emulated ? ", no hardware" : "";
  if (shown == nullptr) {
    std::snprintf(text, text_bytes, "%d GPU%s%s, none opened yet", own->found,
                  own->found == 1 ? "" : "s", no_hardware);
  } else if (shown->is_dead()) {
    std::snprintf(text, text_bytes, "%s", shown->why());
  } else {
    auto& gpu = const_cast<Gpu&>(*shown);
    const GpuFigures& figures = gpu.figures;
    const GpuStream& in = gpu.stream(GpuWay::in);
    std::snprintf(
        text, text_bytes,
        "GPU %d of %d, %s%s; %.1f bytes/ns to it and %.1f from it through %u slots of %zu "
        "KiB, %.1f and %.1f registered",
        gpu.ordinal(), own->found, gpu.name(), no_hardware, figures.in, figures.out, in.slots(),
        in.slot_bytes() >> 10, figures.pinned_in, figures.pinned_out);
  }
}

}  // namespace haul::cuda
