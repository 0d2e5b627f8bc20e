#include "tests/atomic/lock_board.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

#include "tools/failure.hpp"

namespace atomic_test {

int make_board() {
  const int descriptor = memfd_create("lock_soak", 0);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(Board)) != 0) {
    throw haul::tools::CommandFailure("making the board failed");
  }
  return descriptor;
}

std::shared_ptr<Board> map_board(int descriptor) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) throw haul::tools::CommandFailure("mapping the board failed");
  return {static_cast<Board*>(memory), [](Board* board) { munmap(board, sizeof(Board)); }};
}

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

}  // namespace atomic_test
