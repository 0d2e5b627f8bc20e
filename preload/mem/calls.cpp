// The functions that the program calls instead of libc's. None of them may use a stack frame, a
// lock or another function below the threshold. (bcopy() and bzero() are what old programs call;
// the compilers of new ones turn them into the others. The _chk forms come from _FORTIFY_SOURCE.)
#include <cstddef>
#include <cstdint>

#include "preload/mem/front.hpp"
#include "preload/mem/large.hpp"

extern "C" [[noreturn]] void __chk_fail() noexcept;  // libc's: "buffer overflow detected"

namespace {

using namespace haul::preload;

#define HAUL_SITE reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

[[gnu::always_inline]] inline void* copy(void* dst, const void* src, std::size_t length,
                                         std::uintptr_t site) noexcept {
  if (length < front.from_bytes()) [[likely]]
    return front.copy(dst, src, length);
  return large_copy(dst, src, length, site);
}

[[gnu::always_inline]] inline void* move(void* dst, const void* src, std::size_t length,
                                         std::uintptr_t site) noexcept {
  if (length < front.from_bytes()) [[likely]]
    return front.move(dst, src, length);
  return large_move(dst, src, length, site);
}

[[gnu::always_inline]] inline void* set(void* dst, int value, std::size_t length,
                                        std::uintptr_t site) noexcept {
  if (length < front.from_bytes()) [[likely]]
    return front.set(dst, value, length);
  return large_set(dst, value, length, site);
}

void* behind(void* dst, std::size_t length) noexcept {
  return static_cast<char*>(dst) + length;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void* memcpy(void* dst, const void* src, std::size_t length) {
  return copy(dst, src, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void* memmove(void* dst, const void* src, std::size_t length) {
  return move(dst, src, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void* memset(void* dst, int value, std::size_t length) {
  return set(dst, value, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void* mempcpy(void* dst, const void* src, std::size_t length) {
  copy(dst, src, length, HAUL_SITE);
  return behind(dst, length);
}
[[gnu::visibility("default")]] void* __mempcpy(void* dst, const void* src, std::size_t length) {
  copy(dst, src, length, HAUL_SITE);
  return behind(dst, length);
}
[[gnu::visibility("default")]] void bcopy(const void* src, void* dst, std::size_t length) {
  move(dst, src, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void bzero(void* dst, std::size_t length) {
  set(dst, 0, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void __bzero(void* dst, std::size_t length) {
  set(dst, 0, length, HAUL_SITE);
}

[[gnu::visibility("default")]] void* __memcpy_chk(void* dst, const void* src, std::size_t length,
                                                  std::size_t room) {
  if (length > room) [[unlikely]]
    __chk_fail();
  return copy(dst, src, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void* __memmove_chk(void* dst, const void* src, std::size_t length,
                                                   std::size_t room) {
  if (length > room) [[unlikely]]
    __chk_fail();
  return move(dst, src, length, HAUL_SITE);
}
[[gnu::visibility("default")]] void* __mempcpy_chk(void* dst, const void* src, std::size_t length,
                                                   std::size_t room) {
  if (length > room) [[unlikely]]
    __chk_fail();
  copy(dst, src, length, HAUL_SITE);
  return behind(dst, length);
}
[[gnu::visibility("default")]] void* __memset_chk(void* dst, int value, std::size_t length,
                                                  std::size_t room) {
  if (length > room) [[unlikely]]
    __chk_fail();
  return set(dst, value, length, HAUL_SITE);
}

}  // extern "C"
