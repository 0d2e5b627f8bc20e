// Sections that a fork must not come amid: what is half-made there (a descriptor that no variable
// holds yet, memory that is just becoming shared) could not be told in the child.
//
// No lock: a section is not entered while a fork is under way, and who forks waits, for a while,
// for those that were entered before, and holds up nobody afterwards.
#pragma once

#include <cstdint>

namespace haul {

class Unforked {
 public:
  // Entered, unless a fork is under way: then its owner does without, or tries again later.
  Unforked() noexcept;
  ~Unforked();
  Unforked(const Unforked&) = delete;
  Unforked& operator=(const Unforked&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  bool entered_;
};

// A fork is under way: returns when no section is entered, or at deadline_ns (now_ns() terms). A
// section lasts a few system calls, and has signals blocked.
void begin_fork(std::uint64_t deadline_ns) noexcept;
// Ends what this thread has begun in this process; nothing if that was in the process's parent.
void end_fork() noexcept;
// In the child: nobody is in a section, and no fork is under way.
void forget_forks() noexcept;

}  // namespace haul
