// Feature gate: is this a build that instruments memory accesses (ASan, TSan)? Code that hides its
// accesses from the compiler (inline assembly, flushes, non-temporal stores) checks this constant
// and takes an instrumented path instead, so that the tool sees every access.
#pragma once

namespace haul {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool accesses_are_checked = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr bool accesses_are_checked = true;
#else
inline constexpr bool accesses_are_checked = false;
#endif
#else
inline constexpr bool accesses_are_checked = false;
#endif

}  // namespace haul
