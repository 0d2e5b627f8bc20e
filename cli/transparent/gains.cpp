#include "cli/transparent/gains.hpp"
#include "bench/kit/stats.hpp"

#include <haul/haul.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

using preload::Pages;

// The ways below a MiB stay libc's, as do those below 4 MiB into pages that are there.
constexpr std::size_t first_class_new = 2, first_class_there = 3;
constexpr unsigned rounds = 9;
// An allocator's header lies in front of a block.
constexpr std::size_t header_bytes = 16;

class FreshBlock {
 public:
  explicit FreshBlock(std::size_t bytes) : bytes_(bytes), at_(os::map_anonymous(bytes)) {
    if (at_ == nullptr)
      throw tools::CommandFailure("there is not enough memory to measure with; free some");
  }
  ~FreshBlock() { os::unmap(at_, bytes_); }
  FreshBlock(const FreshBlock&) = delete;
  FreshBlock& operator=(const FreshBlock&) = delete;
  char* data() const { return static_cast<char*>(at_); }

 private:
  std::size_t bytes_;
  void* at_;
};

double copy_ns(preload::Way way, char* dst, const char* src, std::size_t bytes) {
  const std::uint64_t begun = now_ns();
  if (way == preload::Way::libc) {
    std::memcpy(dst, src, bytes);
  } else {
    haul_request request = haul_request_copy(dst, src, bytes);
    request.flags = way == preload::Way::caller ? HAUL_INLINE : HAUL_DEDICATED;
    haul_ticket ticket;
    tools::require(haul_submit(&request, 1, &ticket), "haul_submit()");
    tools::require(haul_wait(ticket), "haul_wait()");
  }
  const auto taken = static_cast<double>(now_ns() - begun);
  if (std::memcmp(dst, src, bytes) != 0) throw tools::CommandFailure("a copy went wrong");
  return taken;
}

Gain measure(Pages pages, std::size_t bytes) {
  const std::size_t room = bytes + header_bytes;
  const FreshBlock source(bytes), resident(pages == Pages::missing ? 1 : room);
  std::memset(source.data(), 7, bytes);
  if (pages != Pages::missing) std::memset(resident.data(), 1, room);
  (void)haul_wake();
  std::vector<double> times[preload::way_count];
  for (unsigned round = 0; round < rounds; ++round) {
    for (const preload::Way way :
         {preload::Way::libc, preload::Way::caller, preload::Way::together}) {
      std::vector<double>& taken = times[static_cast<std::size_t>(way)];
      if (pages != Pages::missing) {
        taken.push_back(copy_ns(way, resident.data() + header_bytes, source.data(), bytes));
      } else {
        const FreshBlock fresh(room);
        fresh.data()[0] = 1;
        taken.push_back(copy_ns(way, fresh.data() + header_bytes, source.data(), bytes));
      }
    }
  }
  const double libc = bench::median(times[0]);
  return {bench::median(times[1]) / libc, bench::median(times[2]) / libc,
          libc / static_cast<double>(bytes)};
}

}  // namespace

double Gains::spared_ns(const KindCount& kind) {
  const auto of_way = [&](preload::Way way) { return kind.ways[static_cast<std::size_t>(way)]; };
  const WayCount libc = of_way(preload::Way::libc), caller = of_way(preload::Way::caller),
                 together = of_way(preload::Way::together);
  WayCount others = caller;
  others.add(together);
  others.add(of_way(preload::Way::deferred));
  others.add(of_way(preload::Way::protected_));
  if (others.calls == 0) return 0;
  const auto per_byte = [](double ns, std::uint64_t bytes) {
    return ns / static_cast<double>(bytes);
  };
  double libc_ns = 0;  // for a byte
  if (libc.bytes != 0) {
    libc_ns = per_byte(static_cast<double>(libc.ns), libc.bytes);
  } else {
    const Gain& gain = of(kind.pages, kind.size_class);
    libc_ns = caller.bytes + together.bytes == 0
                  ? gain.libc_ns
                  : per_byte(static_cast<double>(caller.ns) / gain.caller +
                                 static_cast<double>(together.ns) / gain.together,
                             caller.bytes + together.bytes);
  }
  return libc_ns * static_cast<double>(others.bytes) - static_cast<double>(others.ns);
}

const Gain& Gains::of(Pages pages, std::size_t size_class) {
  const Pages asked = pages == Pages::missing ? pages : Pages::there;
  const auto [at, is_new] = known_.try_emplace({asked, size_class});
  const std::size_t first = asked == Pages::missing ? first_class_new : first_class_there;
  if (is_new && size_class >= first) {
    // The middle of the class.
    at->second = measure(
        asked, std::min(2 * preload::least_bytes << (2 * size_class), std::size_t{128} << 20));
    // Pages that are there are libc's unless the work is shared.
    if (asked == Pages::there) at->second.caller = 1;
  }
  return at->second;
}

}  // namespace haul::cli
