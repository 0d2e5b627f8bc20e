#include "preload/mem/profile.hpp"

#include <atomic>

#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"

namespace haul::preload {
namespace {

constinit std::atomic<bool> recording{false};
constinit std::atomic<unsigned> short_calls{0};
constinit std::atomic<std::uint64_t> one_in{0};

constexpr std::size_t always_from_bytes = std::size_t{256} << 10;
constexpr unsigned short_calls_per_question = 8;

bool is_huge(std::uintptr_t page) noexcept {
  os::Descriptor map = os::Descriptor::of(os::open_page_map());
  const bool huge = map.valid() && os::huge_bytes(map.number(), page, os::page_bytes) > 0;
  map.close();
  return huge;
}

}  // namespace

void begin_profile() noexcept {
  recording.store(true, std::memory_order_relaxed);
}

bool profiling() noexcept {
  return recording.load(std::memory_order_relaxed);
}

Pages look_closely(std::uintptr_t dst, std::size_t length) noexcept {
  if (length < always_from_bytes &&
      short_calls.fetch_add(1, std::memory_order_relaxed) % short_calls_per_question != 0)
    return Pages::unasked;
  const std::uintptr_t page = (dst + length / 2) & ~(os::page_bytes - 1);
  if (!os::is_resident(page)) return Pages::missing;
  return length >= os::huge_page_bytes && is_huge(page) ? Pages::huge : Pages::there;
}

void set_sampling(std::uint64_t every) noexcept {
  one_in.store(every, std::memory_order_relaxed);
}

bool is_sampled(CallClass& kind) noexcept {
  constexpr std::uint32_t always = 4;
  const std::uint64_t every = one_in.load(std::memory_order_relaxed);
  if (every == 0) return false;
  const std::uint32_t before = kind.seen.fetch_add(1, std::memory_order_relaxed);
  return before < always || before % every == 0;
}

}  // namespace haul::preload
