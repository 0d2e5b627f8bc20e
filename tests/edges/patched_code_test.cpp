// Programs whose libraries overwrite mmap(), munmap() and madvise() while threads run: MPIs and
// libfabric's memory monitor put a jump over the first 13 bytes to keep books of unmapped memory.
// A thread of haul's that is inside one of them then would run half an instruction.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "e2e/load.hpp"
#include "e2e/support.hpp"

namespace {

using namespace e2e;

// Not inlined, nor to be patched themselves: by syscall(), which nobody overwrites.
void* other_mmap(void* at, size_t bytes, int access, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, access, flags, fd, offset));
}
int other_munmap(void* at, size_t bytes) {
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}
int other_madvise(void* at, size_t bytes, int advice) {
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}

class Patch {
 public:
  Patch(void* function, void* other) : at_(reinterpret_cast<off_t>(function)) {
    std::memcpy(before_.data(), function, before_.size());
    after_ = {'\x49', '\xbb', 0, 0, 0, 0, 0, 0, 0, 0, '\x41', '\xff', '\xe3'};  // mov, jmp *%r11
    std::memcpy(after_.data() + 2, &other, sizeof other);
  }
  bool put(int memory) const { return write(memory, after_); }
  bool take_back(int memory) const { return write(memory, before_); }

 private:
  using Code = std::array<char, 13>;
  bool write(int memory, const Code& code) const {
    return pwrite(memory, code.data(), code.size(), at_) == static_cast<ssize_t>(code.size());
  }
  off_t at_;
  Code before_{}, after_{};
};

// The program's own thread calls none of them meanwhile: whoever is inside is haul's.
int patch_while_haul_starts_and_ends() {
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  CHILD_EQUAL(memory >= 0, true);
  const std::array patches{
      Patch(reinterpret_cast<void*>(&mmap), reinterpret_cast<void*>(&other_mmap)),
      Patch(reinterpret_cast<void*>(&munmap), reinterpret_cast<void*>(&other_munmap)),
      Patch(reinterpret_cast<void*>(&madvise), reinterpret_cast<void*>(&other_madvise))};
  Buffer src(mib), dst(mib);
  always_mover();
  const haul_ticket ticket = haul_copy(dst.data(), src.data(), dst.size());
  for (int round = 0; round < 300; ++round) {
    for (const Patch& patch : patches) CHILD_EQUAL(patch.put(memory), true);
    for (const Patch& patch : patches) CHILD_EQUAL(patch.take_back(memory), true);
  }
  CHILD_EQUAL(haul_wait(ticket), 0);
  return 0;
}

TEST(PatchedCode, HaulsThreadsAreNotInIt) {
  SKIP_UNDER_SANITIZERS();
  for (int child = 0; child < 100; ++child)
    ASSERT_EQ(run_child(patch_while_haul_starts_and_ends), 0);
}

}  // namespace
