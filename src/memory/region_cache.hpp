// The regions that are registered with one device, and when they are registered (paper 001, III-B).
//
// Deferred: a side of a copy is registered when its bytes are about to be moved, not before.
// Progressive: where nothing is known, a request's first page is registered, then as much again as
// has been, up to 1,024 pages at a time, so that the device begins early and works while the kernel
// fetches the next pages. Cached: what has been registered stays so while the budget lasts, and a
// buffer that comes again is registered in one piece.
//
// What is cached holds only as long as the addresses mean the same pages (memory/changes.hpp).
// Memory of which that cannot be told, and all memory where HAUL_MEMORY_REGISTER says so, is
// registered for each use and given back after it.
//
// Of a device that moves other memory, too, only slower, memory is registered whole
// (acquire_whole()): what comes again and can stay registered; and what comes for the first time,
// for that use alone, where that pays. Where one registration must hold all that is asked for, and
// whoever asks can register for himself what cannot stay so, that is acquire_lasting().
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/changes.hpp"
#include "memory/registrar.hpp"
#include "memory/sightings.hpp"

namespace haul {

// HAUL_MEMORY_REGISTER.
enum class Registering : std::uint8_t { cached, overlapped, blocking };

struct RegisteredUse {
  std::uint64_t region = 0;
  std::size_t bytes = 0;  // that are registered from the address on, of those that were wanted
  std::uint32_t place = 0;
};

// acquire(), acquire_both(), acquire_whole(), acquire_lasting(), release(), tidy(), spare() and
// close() by one thread at a time; the others by any.
class RegionCache final : public ChangeListener {
 public:
  // Registers memory from `address` on: `wanted` bytes are about to be moved, `before` of the same
  // request have been, and `behind` will be. ok, or why the registrar refuses; timed_out: changes
  // of memory are under way for a tenth of a second. Then nothing is in use. Blocks for as long as
  // registering takes.
  Code acquire(Registrar& registrar, std::uintptr_t address, std::size_t wanted, std::size_t before,
               std::size_t behind, RegisteredUse* use) noexcept;
  // Both sides of a copy of so many bytes, where each is registered already, with one question to
  // the kernel for the two. False: nothing is in use, and each is to be acquired by itself.
  bool acquire_both(std::uintptr_t dst, std::uintptr_t src, std::size_t bytes,
                    RegisteredUse* dst_use, RegisteredUse* src_use) noexcept;
  // Registers all of [address, address + bytes) for the request `asker`, if that is worth it: it is
  // registered already; another request had it moved before, and it can stay registered; it pays
  // for this use (Registrar::pays_once()); or HAUL_MEMORY_REGISTER asks for each use. Otherwise not
  // ok, and nothing is in use. Of a registrar for which no parts are worth it
  // (Registrar::least_bytes()).
  Code acquire_whole(Registrar& registrar, std::uintptr_t address, std::size_t bytes,
                     std::uint64_t asker, RegisteredUse* use) noexcept;
  // Registers all of [address, address + wanted) in one piece, and of the `behind` bytes that will
  // be wanted next as many as acquire() would, unless one registration has it already; only if it
  // stays registered after the use. Otherwise not ok, and nothing is in use. Of a registrar that
  // registers a page as often as it is asked to.
  Code acquire_lasting(Registrar& registrar, std::uintptr_t address, std::size_t wanted,
                       std::size_t before, std::size_t behind, RegisteredUse* use) noexcept;
  // The copy that used it has ended; or that used the other, too (nullptr: there is none).
  void release(const RegisteredUse& use, const RegisteredUse* other = nullptr) noexcept;
  // Where the registration begins that is in use.
  std::uintptr_t begin_of(const RegisteredUse& use) noexcept;
  // Unpins what has changed, of a registrar that unpins late; the others have done so. One look at
  // a word where nothing has.
  void tidy() noexcept;
  // Unpins all that is not in use, for who needs room.
  void spare() noexcept;

  // Is all of it registered, as far as that is known now? Takes no system call.
  bool holds(std::uintptr_t address, std::size_t bytes) noexcept;

  // For a child of fork, whose regions are the parent's.
  void forget() noexcept;
  // Unpins all and is told nothing more, so that the cache and its registrar may be destroyed.
  // Nothing is in use.
  void close() noexcept;
  // In a child of fork: it is told nothing more, and leaves alone what is the parent's. Nothing but
  // its memory may be used afterwards.
  void abandon() noexcept;

  void memory_changed(std::uintptr_t begin, std::uintptr_t end) noexcept override;
  void changes_lost() noexcept override;

 private:
  static constexpr std::uint32_t room = 256;

  struct Entry {
    std::uintptr_t begin = 0, end = 0;  // end 0: the place is free
    std::uint64_t region = 0;           // 0: being registered
    std::uint64_t used_at = 0;          // a count of uses
    std::uint32_t users = 0;
    bool once = false;   // not for others than those who use it now
    bool stale = false;  // the same, since it has changed

    // (Memory that is in use stays what it is as long as the copy is under way.)
    bool serves() const noexcept { return lasts() || (region != 0 && users != 0 && !stale); }
    bool lasts() const noexcept { return end != 0 && region != 0 && !once && !stale; }
  };

  Entry* find(std::uintptr_t address) noexcept;
  RegisteredUse use(Entry& entry, std::uintptr_t address, std::size_t wanted) noexcept;
  bool leave(const RegisteredUse& use) noexcept;
  bool holds_locked(std::uintptr_t address, std::size_t bytes) noexcept;
  Entry* reserve(std::uintptr_t begin, std::uintptr_t end) noexcept;
  void replace_within(const Entry& whole) noexcept;
  std::uint64_t take_out(Entry& entry) noexcept;
  enum class Keep : std::uint8_t {
    if_possible,
    only,     // nothing that could not stay registered
    in_one,   // the same, in one registration, whoever uses a part of it
    watched,  // for this use; it is heard of when the memory changes before it comes again
  };
  Code prepare(Registrar& registrar) noexcept;
  void judge(std::uintptr_t begin, std::uintptr_t end, Sightings::Seen verdict) noexcept;
  Code acquire(Registrar& registrar, std::uintptr_t address, std::size_t wanted, std::size_t before,
               std::size_t behind, Keep keep, RegisteredUse* use) noexcept;
  Code pin(Entry& entry, Keep keep) noexcept;
  void drop_unused(bool all) noexcept;

  // Held for the table alone, never while memory is registered.
  pthread_mutex_t table_lock_ = PTHREAD_MUTEX_INITIALIZER;
  // Held while the registrar works. The table's may be taken within.
  pthread_mutex_t registrar_lock_ = PTHREAD_MUTEX_INITIALIZER;
  Registrar* registrar_ = nullptr;  // one, from the first acquire() on
  bool listens_ = false;
  Entry* entries_ = nullptr;  // room for them, mapped by the first acquire()
  std::uint32_t in_use_ = 0;  // entries from there on are free
  std::uint64_t uses_ = 0;
  std::uint64_t pinned_bytes_ = 0;
  Sightings sightings_;
  std::atomic<bool> late_{false};  // regions have changed that unpins_late() has kept
};

}  // namespace haul
