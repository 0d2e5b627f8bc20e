// Reads the mark through the kernel, since its memory may be unmapped by now.
#include "base/thread/stack_mark.hpp"

#include <cerrno>

#include "base/os/os.hpp"

namespace haul {
namespace {

constexpr std::uintptr_t nearby_bytes = 64 * 1024;

}  // namespace

bool StackMark::left_behind(const StackMark* mark, std::uintptr_t now) noexcept {
  std::uintptr_t seen[2] = {};
  static_assert(sizeof seen == sizeof *mark);
  const iovec here{seen, sizeof seen}, there{const_cast<StackMark*>(mark), sizeof seen};
  const ssize_t got = os::read_process(os::thread_id(), &here, 1, &there, 1);
  if (got == -EFAULT) return true;
  if (got != sizeof seen) return false;  // a filter refuses the call: unknown
  if (seen[1] != check_of(mark, seen[0])) return true;
  return now >= seen[0] && now - seen[0] < nearby_bytes && !os::on_alternate_stack();
}

}  // namespace haul
