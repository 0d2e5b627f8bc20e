// What becomes of memory that others remember: the one place where haul learns that a range of this
// process's addresses is not the memory any more that it was.
//
// The kernel tells it, by a userfaultfd that watches the ranges and holds nobody's accesses: of
// munmap(), mremap(), mmap() over what was there, brk(), and madvise() that gives pages back,
// whoever calls them, the C library and bare system calls included. The call waits until haul's
// thread "haul-memory" has read that, some 20 us. No function of the program is replaced, no code
// patched, no signal handled.
//
// Who remembers memory asks changes_under_way() before using what it remembers. A change that is
// under way is known to the kernel from before the moment at which its effect can be seen, so
// whoever sees new memory at an address and asks then is told either to wait or that its memory is
// gone. One case is left to time: madvise() is told of before the pages go, and nothing tells when
// they have gone, so what is registered there within a second afterwards is not remembered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

// What is told of changes, until the process ends or it asks to be told no more.
class ChangeListener {
 public:
  // [begin, end) is not what it was. On haul's thread, which then lets the program go on: must not
  // wait for memory of the program's, nor for a lock that is held while somebody does.
  virtual void memory_changed(std::uintptr_t begin, std::uintptr_t end) noexcept = 0;
  // Nothing will be told any more: the program has closed the descriptor.
  virtual void changes_lost() noexcept = 0;

 protected:
  ~ChangeListener() = default;
};

// At most 64 at a time, each once. False: there is no room.
bool listen_to_changes(ChangeListener& listener) noexcept;

// Tells a listener nothing more. Once this returns, nobody is telling it anything either, so it may
// be destroyed. Waits for who tells it now: not for a listener itself, nor under a lock that it
// takes.
void end_listening(ChangeListener& listener) noexcept;

// The same in a child of fork, in which nobody tells anything: waits for nothing.
void end_listening_in_child(ChangeListener& listener) noexcept;

// Watches whole pages, which may be watched already, and all of the mappings that they lie in,
// until those are unmapped: a mapping of which a part is watched would be two, which mremap() does
// not move together. False: it cannot be told what becomes of them (memory of files and shared
// memory, which others change, memory that the program watches itself, or the kernel refuses).
// `settles`: changes of it were told of less than a second ago. Makes the thread at first. Some
// microseconds.
bool watch_changes(std::uintptr_t begin, std::size_t bytes, bool* settles) noexcept;

// Is a change under way that can be seen and is not told of yet? Two system calls, once something
// is watched. (Where nothing can be told any more, changes_lost() has said so.)
bool changes_under_way() noexcept;

// Tells the listeners of a change that the kernel does not see: [begin, end) will not hold what
// whoever reaches its pages without its addresses finds there. Blocks as long as they take.
void tell_of_change(std::uintptr_t begin, std::uintptr_t end) noexcept;

// For a child of fork, in which nothing is watched.
void forget_changes() noexcept;

}  // namespace haul
