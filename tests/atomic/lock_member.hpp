// A member of the lock soak: a process that takes the lock again and again, and while it has it
// adds 1 to the shared word with its token, in two steps that another holder could come between.
#pragma once

#include <haul/atomic.h>

#include <cstdint>
#include <string>

namespace atomic_test {

// What all members and their referee know.
struct LockFacts {
  haul_atomic_window_name home{};
  unsigned members = 4;
  std::uint64_t lease_ns = 100'000'000;
  std::uint64_t seed = 1;
  bool guarded = true;  // false: the control, in which tokens are not used

  std::uint64_t word_offset() const { return HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(members); }
  std::uint64_t home_bytes() const { return word_offset() + 8; }
};

struct MemberFacts {
  LockFacts lock;
  std::string responder;
  unsigned slot = 0;
  unsigned life = 0;  // counts the processes in this slot
  int board = -1;     // descriptor
};

// A lock handle and what it needs; failures are tools::CommandFailure.
class LockHandle {
 public:
  LockHandle(const LockFacts& facts, const std::string& responder);
  ~LockHandle();
  LockHandle(const LockHandle&) = delete;
  LockHandle& operator=(const LockHandle&) = delete;

  haul_atomic_lock* lock() const { return lock_; }
  void reopen();
  std::uint64_t count_of(const char* counter) const;  // of its node
  // An operation on the shared word: HAUL_ESTALE or 0.
  int run(haul_atomic_code code, std::uint64_t token, std::uint32_t operand, std::uint32_t* old);

 private:
  void open();

  const LockFacts facts_;
  haul_atomic_node* node_ = nullptr;
  haul_atomic_window* window_ = nullptr;
  haul_atomic_remote* remote_ = nullptr;
  haul_atomic_lock* lock_ = nullptr;
};

// The life of a member, until the board says stop. The exit status: 0, or 1 with a complaint.
int live_as_member(const MemberFacts& facts);

}  // namespace atomic_test
