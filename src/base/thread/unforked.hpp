// Sections that no fork may interrupt, because the child could not recognise what is half-made in
// them (a descriptor that no variable holds yet, memory that is just becoming shared).
//
// There is no lock, only two counts. A section raises its count and then looks whether a fork is
// under way; if so it lowers the count again and is not entered. A fork raises its count and then
// waits, for a while, until no section is entered; sections that come later find the fork. All of
// this is sequentially consistent, so one of the two always sees the other. Nobody is held up after
// the fork.
#pragma once

#include <cstdint>

namespace haul {

class Unforked {
 public:
  // Enters, unless a fork is under way: the caller must then do without, or try again later.
  Unforked() noexcept;
  ~Unforked();
  Unforked(const Unforked&) = delete;
  Unforked& operator=(const Unforked&) = delete;
  explicit operator bool() const noexcept { return entered_; }

 private:
  bool entered_;
};

// Notes that a fork is under way, and waits until no section is entered or deadline_ns (on
// now_ns()'s clock) is over. A section lasts a few system calls and has signals blocked.
void begin_fork(std::uint64_t deadline_ns) noexcept;
// Ends a fork that this thread has begun in this process; does nothing if it was begun in the
// parent.
void end_fork() noexcept;
// For the child: no thread is in a section, and no fork is under way.
void forget_forks() noexcept;

}  // namespace haul
