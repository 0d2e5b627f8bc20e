// The library's constructor, and the two functions by which a program restricts its system calls.
#include <dlfcn.h>
#include <sys/syscall.h>

#include <cstdarg>
#include <cstdlib>

#include "base/knobs.hpp"
#include "preload/defer/distance.hpp"
#include "preload/defer/guards.hpp"
#include "preload/defer/pending.hpp"
#include "preload/mem/choice.hpp"
#include "preload/mem/front.hpp"
#include "preload/mem/large.hpp"
#include "preload/mem/profile.hpp"
#include "preload/mem/sites.hpp"
#include "preload/mem/together.hpp"
#include "preload/protect/fault_handler.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {
namespace {

template <class Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

using PrctlFunction = int(int operation, unsigned long, unsigned long, unsigned long,
                          unsigned long);
using SyscallFunction = long(long number, long, long, long, long, long, long);
constinit PrctlFunction* next_prctl = nullptr;
constinit SyscallFunction* next_syscall = nullptr;

constexpr int set_seccomp = 22;  // PR_SET_SECCOMP

void stand_aside_for_good() noexcept {
  stand_aside();
  part_from_mover();
}

[[gnu::constructor]] void start() noexcept {
  next_prctl = next<PrctlFunction>("prctl");
  next_syscall = next<SyscallFunction>("syscall");
  Front found{};
  found.copy = next<CopyFunction>("memcpy");
  found.move = next<CopyFunction>("memmove");
  found.set = next<SetFunction>("memset");
  if (found.copy == nullptr || found.move == nullptr || found.set == nullptr) return;
  const char* report = knob_text(Knob::transparent_report);
  make_table(*report != '\0' ? report : nullptr);
  switch (knob_number(Knob::transparent_plan)) {
    case 1: fix_way(Way::libc); break;
    case 2: fix_way(Way::caller); break;
    case 3: fix_way(Way::together); break;
    case 4: fix_way(Way::deferred); break;
    case 5:
      fix_way(Way::libc);
      begin_profile();
      break;
    case 6: defer_only_if_asked(); break;
    case 7:
      fix_way(Way::protected_);
      expect_faults();
      break;
    default: break;
  }
  set_sampling(knob_number(Knob::transparent_sample));
  know_process();
  const std::size_t from_bytes = knob_number(Knob::transparent_from_bytes);
  front.copy = found.copy;
  front.move = found.move;
  front.set = found.set;
  front.threshold.store(from_bytes, std::memory_order_release);
}

[[gnu::destructor]] void end() noexcept {
  end_distances();
  count_touches(touches_served() + protected_touches());
  remove_empty_table();
}

}  // namespace
}  // namespace haul::preload

using namespace haul::preload;

// As libc's. A filter that the program installs may kill it for any system call that its author did
// not expect, so from then on this library makes none, and the mover's threads, which filters for
// all threads reach, are gone before. (large.cpp looks at one that was there before.)
extern "C" [[gnu::visibility("default")]] int prctl(int operation, ...) {
  std::va_list list;
  va_start(list, operation);
  unsigned long arguments[4];
  for (unsigned long& argument : arguments) argument = va_arg(list, unsigned long);
  va_end(list);
  if (operation == set_seccomp) stand_aside_for_good();
  const long all[] = {operation};
  note_huge_pages(SYS_prctl, all);
  PrctlFunction* function = next_prctl != nullptr ? next_prctl : next<PrctlFunction>("prctl");
  return function(operation, arguments[0], arguments[1], arguments[2], arguments[3]);
}

extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_seccomp) stand_aside_for_good();
  note_huge_pages(number, arguments);
  note_signals(number, arguments);
  if (watched_count() != 0) [[unlikely]]
    settle_before(number, arguments);
  SyscallFunction* function =
      next_syscall != nullptr ? next_syscall : next<SyscallFunction>("syscall");
  const auto call = [&] {
    return function(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                    arguments[5]);
  };
  if (!begins_settling(number, arguments)) return call();
  const long result = call();
  end_fork();
  return result;
}
