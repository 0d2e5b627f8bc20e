#include "devices/cuda/trial.hpp"

#include <emmintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "devices/cuda/results.hpp"

namespace haul::cuda {
namespace {

constexpr unsigned usual_slots = 4;
constexpr std::size_t usual_slot_bytes = std::size_t{2} << 20;
constexpr std::size_t trial_bytes = std::size_t{16} << 20, least_trial_bytes = 64 << 10;
constexpr std::uint64_t patience_ns = 5'000'000'000;  // for one copy
constexpr int rounds = 3;
constexpr double worth_it = 1.1;  // what streaming must gain, since it leaves nothing in the caches

std::uint64_t clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// memcpy() past the caches, about as haul's own copies with the affinity non-cacheable are made,
// which this library has not.
void copy_streaming(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  const std::size_t head = std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % 16);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + 16 <= bytes; at += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  _mm_sfence();
  std::memcpy(to + at, from + at, bytes - at);
}

class FirstGpuCopies {
 public:
  FirstGpuCopies(Gpu& gpu, const Driver& driver, char* sentence, std::size_t sentence_bytes)
      : gpu_(gpu), driver_(driver), sentence_(sentence), sentence_bytes_(sentence_bytes) {}

  ~FirstGpuCopies() {
    if (leaves_memory_) return;  // a GPU that does not end may still use it
    const InContext current(driver_, gpu_.context());
    if (current.result() == success && device_ != 0) driver_.free(device_);
    if (host_ != nullptr) munmap(host_, 2 * bytes_);
  }
  FirstGpuCopies(const FirstGpuCopies&) = delete;
  FirstGpuCopies& operator=(const FirstGpuCopies&) = delete;

  bool run(const CudaChoices& choices) {
    const unsigned slots = choices.slots != 0 ? choices.slots : usual_slots;
    const std::size_t first = choices.slot_bytes != 0 ? choices.slot_bytes : usual_slot_bytes;
    if (!gpu_.set_slots(slots, first) && !gpu_.set_slots(2, 64 << 10))
      return refuse("there is no pinned memory for its slots; raise ulimit -l");
    gpu_.limit_slots(choices.slots != 0 ? choices.slots : StagingSlots::most);
    if (!allocate()) return false;
    if (!copies_are_right()) return false;
    if (!measure(&gpu_.figures.in, &gpu_.figures.out, false) || !try_streaming()) return false;
    return measure_pinned();
  }

 private:
  unsigned char* source() const { return host_; }
  unsigned char* destination() const { return host_ + bytes_; }

  bool refuse(const char* why) {
    if (gpu_.is_dead()) why = gpu_.why();
    std::snprintf(sentence_, sentence_bytes_, "GPU %d is not used: %s", gpu_.ordinal(), why);
    return false;
  }

  bool allocate() {
    Result result = success;
    {
      const InContext current(driver_, gpu_.context());
      result = current.result();
      for (bytes_ = trial_bytes; result == success; bytes_ /= 4) {
        result = driver_.alloc(&device_, bytes_);
        if (result != out_of_memory || bytes_ / 4 < least_trial_bytes) break;
        result = success;
      }
    }
    if (result != success) {
      device_ = 0;
      char why[160];
      describe_result(result, "it gives no memory to try it with", why, sizeof why);
      return refuse(why);
    }
    void* const at = mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) return refuse("there is no memory to try it with");
    host_ = static_cast<unsigned char*>(at);
    for (std::size_t i = 0; i < bytes_; ++i)
      source()[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return true;
  }

  // There and back at odd places, through slots.
  bool copies_are_right() {
    constexpr std::size_t shift = 3;
    std::memset(destination(), 0, bytes_);
    if (!copy(GpuWay::in, source() + shift, bytes_ - shift, false) ||
        !copy(GpuWay::out, destination() + shift, bytes_ - shift, false))
      return false;
    if (std::memcmp(source() + shift, destination() + shift, bytes_ - shift) != 0)
      return refuse("its copies have wrong bytes; see dmesg, and test its memory");
    return true;
  }

  // One copy to the end. (The trial's own memory cannot fault.)
  bool copy(GpuWay way, unsigned char* host, std::size_t bytes, bool straight) {
    GpuCopy wanted;
    wanted.device = device_;
    wanted.host = reinterpret_cast<std::uintptr_t>(host);
    wanted.length = wanted.whole_bytes = bytes;
    wanted.straight = straight;
    wanted.context = wanted.source_context = gpu_.context();
    gpu_.take(way, wanted);
    const std::uint64_t deadline = clock_ns() + patience_ns;
    Finished finished{};
    while (gpu_.poll(&finished, 1) == 0) {
      StagingCopy staging;
      if (gpu_.take_staging(&staging)) {
        auto* const to = reinterpret_cast<unsigned char*>(staging.dst);
        const auto* const from = reinterpret_cast<const unsigned char*>(staging.src);
        if (staging.streams) {
          copy_streaming(to, from, staging.bytes);
        } else {
          std::memcpy(to, from, staging.bytes);
        }
        staging.done->store(1, std::memory_order_release);
      } else if (clock_ns() > deadline) {
        leaves_memory_ = !gpu_.stop();
        return refuse("it does not finish a copy in 5 s; see dmesg");
      }
    }
    return finished.outcome.code == Code::ok || refuse("its copies fail; see dmesg");
  }

  // The better of some copies each way.
  bool measure(double* in, double* out, bool straight) {
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t begun = clock_ns();
      if (!copy(GpuWay::in, source(), bytes_, straight)) return false;
      const std::uint64_t turned = clock_ns();
      if (!copy(GpuWay::out, destination(), bytes_, straight)) return false;
      const std::uint64_t ended = clock_ns();
      const auto speed = [this](std::uint64_t ns) {
        return static_cast<double>(bytes_) / static_cast<double>(std::max<std::uint64_t>(ns, 1));
      };
      *in = std::max(*in, speed(turned - begun));
      *out = std::max(*out, speed(ended - turned));
    }
    return true;
  }

  bool try_streaming() {
    GpuStream& out = gpu_.stream(GpuWay::out);
    double in = 0, streamed = 0;
    out.stream_out(true);
    if (!measure(&in, &streamed, false)) return false;
    const bool faster = streamed > gpu_.figures.out * worth_it;
    out.stream_out(faster);
    if (faster) gpu_.figures.out = streamed;
    return true;
  }

  Result set_registered(bool registered, std::size_t bytes) {
    const InContext current(driver_, gpu_.context());
    if (current.result() != success) return current.result();
    return registered ? driver_.host_register(host_, bytes, host_portable)
                      : driver_.host_unregister(host_);
  }

  // What cannot be registered goes through slots, always.
  bool measure_pinned() {
    const double short_ns = measure_pinning(least_trial_bytes),
                 long_ns = measure_pinning(2 * bytes_);
    if (bytes_ == trial_bytes && short_ns > 0 && long_ns > short_ns) {
      gpu_.figures.pin = (2.0 * trial_bytes - least_trial_bytes) / (long_ns - short_ns);
      gpu_.figures.pin_start_ns = short_ns - least_trial_bytes / gpu_.figures.pin;
    }
    if (set_registered(true, 2 * bytes_) != success) return true;
    const bool measured = measure(&gpu_.figures.pinned_in, &gpu_.figures.pinned_out, true);
    if (!leaves_memory_) set_registered(false, 2 * bytes_);
    return measured;
  }

  // Registering and giving back so many bytes: the better of two times, since a driver's first call
  // takes longer. 0: they cannot be registered.
  double measure_pinning(std::size_t bytes) {
    double best = 0;
    for (int round = 0; round < 2; ++round) {
      const std::uint64_t begun = clock_ns();
      if (set_registered(true, bytes) != success) return 0;
      if (set_registered(false, bytes) != success) return 0;
      const auto ns = static_cast<double>(clock_ns() - begun);
      best = round == 0 ? ns : std::min(best, ns);
    }
    return best;
  }

  Gpu& gpu_;
  const Driver& driver_;
  char* sentence_;
  std::size_t sentence_bytes_;
  std::size_t bytes_ = 0;  // of each side
  Pointer device_ = 0;
  unsigned char* host_ = nullptr;
  bool leaves_memory_ = false;
};

}  // namespace

bool try_gpu(Gpu& gpu, const Driver& driver, const CudaChoices& choices, char* sentence,
             std::size_t sentence_bytes) {
  return FirstGpuCopies(gpu, driver, sentence, sentence_bytes).run(choices);
}

}  // namespace haul::cuda
