#include "engine/try_out.hpp"

#include <algorithm>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"

namespace haul {
namespace {

constexpr std::uint64_t copy_patience_ns = 3'000'000'000;  // for one copy
using os::page_bytes;
constexpr std::size_t long_bytes = std::size_t{256} << 10, short_bytes = 64;
constexpr unsigned rounds = 7;

class FirstCopies {
 public:
  explicit FirstCopies(const DeviceTable& table) noexcept : table_(table) {}

  TryOut run() noexcept {
    TryOut result;
    result.facts.emulated = table_.emulated;
    memory_ = static_cast<std::uint8_t*>(os::map_anonymous(2 * long_bytes));
    if (memory_ == nullptr) return refuse("there is no memory to try it with");
    for (std::size_t i = 0; i < long_bytes; ++i)
      source()[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    std::memset(destination(), 1, long_bytes);
    if (table_.pin != nullptr && !pin(&result.facts.pin_page_ns))
      return refuse("it cannot register memory (raise ulimit -l)");
    const std::size_t length = std::min(long_bytes, table_.most_bytes);
    const std::size_t least = std::max(short_bytes, table_.least_moved_bytes);
    const std::uint64_t short_ns = median_of_copies(least);
    const std::uint64_t long_ns = median_of_copies(length);
    if (short_ns == 0 || long_ns == 0) return refuse(failure_);
    while (++channel_ < table_.channels)
      if (median_of_copies(least) == 0) return refuse(failure_);
    for (const std::uint64_t region : regions_)
      if (region != 0) table_.unpin(region);
    os::unmap(memory_, 2 * long_bytes);
    const double moving_ns = static_cast<double>(std::max(long_ns, short_ns + 1) - short_ns);
    result.facts.startup_ns = static_cast<double>(short_ns);
    result.facts.bytes_per_ns = static_cast<double>(length) / moving_ns;
    return result;
  }

 private:
  std::uint8_t* source() const noexcept { return memory_; }
  std::uint8_t* destination() const noexcept { return memory_ + long_bytes; }

  TryOut refuse(const char* why) noexcept {
    bool stopped = true;
    for (unsigned channel = 0; channel < table_.channels; ++channel)
      stopped = table_.stop(channel) && stopped;
    // (Of a device that goes on all the same, the memory is left to it.)
    if (stopped && memory_ != nullptr) os::unmap(memory_, 2 * long_bytes);
    return TryOut{why, {}};
  }

  bool pin(double* page_ns) noexcept {
    const std::uint64_t begun = now_ns();
    for (unsigned side = table_.pins_sources ? 0 : 1; side < 2; ++side) {
      const auto address = reinterpret_cast<std::uintptr_t>(memory_ + side * long_bytes);
      if (table_.pin(address, long_bytes, &regions_[side]) != Code::ok) return false;
    }
    *page_ns = static_cast<double>(now_ns() - begun) /
               ((table_.pins_sources ? 2.0 : 1.0) * long_bytes / page_bytes);
    return true;
  }

  // 0: one failed.
  std::uint64_t median_of_copies(std::size_t length) noexcept {
    std::uint64_t times[rounds];
    for (std::uint64_t& time : times) {
      std::memset(destination(), 0, length);
      const std::uint64_t begun = now_ns();
      if (!copy(length)) return 0;
      time = std::max<std::uint64_t>(now_ns() - begun, 1);
      if (std::memcmp(destination(), source(), length) != 0) {
        failure_ = "its copies have wrong bytes";
        return 0;
      }
    }
    std::sort(times, times + rounds);
    return times[rounds / 2];
  }

  bool copy(std::size_t length) noexcept {
    constexpr std::uint64_t tag = 5;
    Piece piece;
    piece.dst = reinterpret_cast<std::uintptr_t>(destination());
    piece.src = reinterpret_cast<std::uintptr_t>(source());
    piece.length = piece.whole_bytes = length;
    piece.src_region = regions_[0];
    piece.dst_region = regions_[1];
    piece.channel = channel_;
    Outcome outcome;
    failure_ = "it does not take a copy";
    const std::uint64_t deadline = now_ns() + copy_patience_ns;
    Submitted answer = Submitted::full;
    // (A queue that other processes share may be full.)
    while (answer == Submitted::full && now_ns() < deadline)
      answer = table_.submit(piece, tag, outcome);
    if (answer == Submitted::dead || answer == Submitted::full) return false;
    if (answer == Submitted::accepted) {
      Finished finished;
      failure_ = "it does not finish a copy in three seconds";
      while (table_.poll(channel_, &finished, 1) == 0)
        if (now_ns() > deadline) return false;
      failure_ = "it reports a copy that nobody gave it";
      if (finished.tag != tag) return false;
      outcome = finished.outcome;
    }
    failure_ = "its copies fail";
    return outcome.code == Code::ok && outcome.good_bytes == length;
  }

  const DeviceTable& table_;
  unsigned channel_ = 0;
  std::uint8_t* memory_ = nullptr;
  std::uint64_t regions_[2] = {0, 0};
  const char* failure_ = "";
};

}  // namespace

TryOut try_out(const DeviceTable& table) noexcept {
  return FirstCopies(table).run();
}

}  // namespace haul
