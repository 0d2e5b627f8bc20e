// Locks.
#include <algorithm>
#include <new>
#include <optional>

#include "atomic/api/handles.hpp"
#include "atomic/lock/directory.hpp"
#include "atomic/lock/member.hpp"
#include "atomic/lock/places.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

using namespace haul::atomics;
using haul::Code;
using haul::make_error;
using haul::now_ns;
using lock::Member;
using lock::MemberFacts;
using lock::Places;

// Used by one thread at a time; nothing of it is shared.
struct haul_atomic_lock {
  Places places;
  Carrier* carrier;
  std::uint64_t spin_ns;
  std::optional<Member> member;  // from the end of haul_atomic_lock_open() on
  std::uint64_t directory_id;    // 0: no directory
  std::uint32_t rank;
  bool started;
};

namespace {

constexpr std::uint64_t default_lease_ns = 1'000'000'000;
constexpr std::uint64_t least_lease_ns = 10'000'000, most_lease_ns = 3'600'000'000'000;
constexpr std::uint64_t never = ~std::uint64_t{0};

const char* complete(const haul_atomic_window* own, haul_atomic_lock_options* options) noexcept {
  if (options->lease_ns == 0) options->lease_ns = default_lease_ns;
  const bool directory = options->members == nullptr;
  if (options->home == nullptr) return "home is NULL";
  if (options->count == 0 || options->count > HAUL_ATOMIC_LOCK_MAX_MEMBERS) {
    return "count is not 1 to 4096";
  }
  if (options->rank >= options->count &&
      !(directory && options->rank == HAUL_ATOMIC_LOCK_ANY_RANK)) {
    return "rank is not below count";
  }
  if (options->lease_ns < least_lease_ns || options->lease_ns > most_lease_ns) {
    return "lease_ns is not 10 ms to 1 hour";
  }
  const std::uint64_t home_bytes = directory ? HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(options->count)
                                             : std::uint64_t{HAUL_ATOMIC_LOCK_HOME_BYTES};
  if (!lock::is_usable(*options->home, home_bytes)) {
    return "home is not aligned to 8, or not within its window";
  }
  if (directory) {
    const haul_atomic_lock_place own_place{from_c(own)->name(), options->own_offset};
    return lock::is_usable(own_place, HAUL_ATOMIC_LOCK_MEMBER_BYTES)
               ? ""
               : "own_offset is not aligned to 8, or not within the window";
  }
  for (std::uint32_t i = 0; i < options->count; ++i) {
    if (!lock::is_usable(options->members[i], HAUL_ATOMIC_LOCK_MEMBER_BYTES)) {
      return "a member's place is not aligned to 8, or not within its window";
    }
  }
  if (options->members[options->rank].window.key != from_c(own)->name().key) {
    return "members[rank] is not in `own`; give the window that this member's words lie in";
  }
  options->own_offset = options->members[options->rank].offset;
  return "";
}

// Explains how an action ended. If the home failed, its failure is the reason.
int explain(const haul_atomic_lock* lock, Code code) noexcept {
  if (code != Code::ok && lock->places.home_failure().code != Code::ok) {
    return fail(lock->places.home_failure());
  }
  switch (code) {
    case Code::ok: return 0;
    case Code::again: return fail(code, "the lock is held; try later, or acquire it");
    case Code::timed_out:
      return fail(code,
                  "the lock did not become free in time, as its holder has not released it; wait "
                  "longer");
    case Code::stale:
      return fail(code,
                  "the lease was over and another member has taken the lock; renew it in time, or "
                  "ask for a longer lease");
    default:
      return fail(make_error(code, 0, "the lock fails (%s); open it again", haul::describe(code)));
  }
}

int check_lock(const haul_atomic_lock* lock) noexcept {
  if (lock == nullptr) return refuse("lock is NULL");
  if (lock->carrier->is_here()) return 0;
  return fail(Code::stale,
              "this lock was opened by the process that forked this one; open it here");
}

Member::Goal goal_of(haul_atomic_lock_action action) noexcept {
  switch (action) {
    case HAUL_ATOMIC_LOCK_ACQUIRE: return Member::Goal::acquire;
    case HAUL_ATOMIC_LOCK_TRY: return Member::Goal::try_once;
    case HAUL_ATOMIC_LOCK_RELEASE: return Member::Goal::release;
    case HAUL_ATOMIC_LOCK_RENEW: return Member::Goal::renew;
  }
  return Member::Goal::none;
}

// Spins, then naps for longer and longer, because what it waits for is written to memory, which
// wakes nobody.
int run(haul_atomic_lock* lock, haul_atomic_lock_action action, std::uint64_t timeout_ns,
        std::uint64_t* token) noexcept {
  constexpr std::uint64_t first_nap_ns = 10'000, longest_nap_ns = 500'000;
  const int started = haul_atomic_lock_start(lock, action, timeout_ns);
  if (started != 0) return started;
  const std::uint64_t since = now_ns();
  std::uint64_t nap_ns = first_nap_ns;
  for (;;) {
    const int result = haul_atomic_lock_test(lock, token);
    if (result != 0) return std::min(result, 0);
    if (now_ns() - since < lock->spin_ns) {
      __builtin_ia32_pause();
      continue;
    }
    haul::os::sleep_ns(nap_ns);
    nap_ns = std::min(longest_nap_ns, nap_ns + nap_ns / 4);
  }
}

// Enters this member into the home's directory.
int join(haul_atomic_lock* lock, const Window* own, const haul_atomic_lock_options& options,
         std::uint64_t id) noexcept {
  const haul_atomic_lock_place place{own->name(), options.own_offset};
  const Code code = lock::directory::join(lock->places, options.count, id, place, &lock->rank);
  if (code == Code::again && lock->places.home_failure().code == Code::ok) {
    return fail(
        make_error(code, 0,
                   "all %u places of the lock's directory have members; close some, or make "
                   "the home larger",
                   options.count));
  }
  if (code != Code::ok) return explain(lock, code);
  lock->directory_id = id;
  lock->places.settle(lock->rank, options.own_offset);
  return 0;
}

}  // namespace

extern "C" int haul_atomic_lock_open(haul_atomic_node* node, haul_atomic_window* own,
                                     const haul_atomic_lock_options* options,
                                     haul_atomic_lock** lock) {
  const haul::Uncancelled guard;
  if (node == nullptr || own == nullptr || options == nullptr || lock == nullptr) {
    return refuse("node, own, options or lock is NULL");
  }
  *lock = nullptr;
  if (options->size != sizeof *options) {
    return refuse("options.size is not sizeof(haul_atomic_lock_options); set it");
  }
  if (const int gone = check_here(node); gone != 0) return gone;
  haul_atomic_lock_options complete_options = *options;
  const char* wrong = complete(own, &complete_options);
  if (wrong[0] != '\0') return refuse(wrong);
  std::uint64_t random[2] = {};
  if (!haul::os::random_bytes(random, sizeof random)) {
    return fail(Code::io, "the kernel gives no random numbers; is /dev/urandom there?");
  }
  auto* made = new (std::nothrow) haul_atomic_lock{};
  if (made == nullptr ||
      !made->places.open(from_c(node)->carrier(), *from_c(own), complete_options)) {
    delete made;
    return fail(Code::no_memory, "no memory for a lock; free some");
  }
  made->carrier = &from_c(node)->carrier();
  made->spin_ns = made->carrier->spin_ns();
  made->rank = complete_options.rank;
  if (complete_options.members == nullptr) {
    const int joined = join(made, from_c(own), complete_options, random[1] | 1);
    if (joined != 0) {
      delete made;
      return joined;
    }
  }
  MemberFacts facts;
  facts.rank = made->rank;
  facts.count = complete_options.count;
  facts.lease_ns = complete_options.lease_ns;
  // Of 48 bits; half of them are room to count in.
  facts.first_tag = (random[0] & 0x7fffffffffff) | 1;
  auto* words =
      reinterpret_cast<std::uint64_t*>(from_c(own)->memory() + complete_options.own_offset);
  made->member.emplace(made->places, facts, words);
  *lock = made;
  return 0;
}

extern "C" int haul_atomic_lock_close(haul_atomic_lock* lock) {
  const haul::Uncancelled guard;
  if (lock == nullptr) return 0;
  const int wrong = check_lock(lock);
  if (wrong != 0) return wrong;
  lock->member->hurry(now_ns());
  // An action under way ends first: a queue node that is left half-way costs the others a lease.
  while (!lock->member->step(now_ns())) haul::os::sleep_ns(10'000);
  if (lock->member->holds()) run(lock, HAUL_ATOMIC_LOCK_RELEASE, never, nullptr);
  // A home that did not answer is not asked again.
  if (lock->directory_id != 0 && lock->places.home_failure().code == Code::ok) {
    lock::directory::leave(lock->places, lock->directory_id, lock->rank);
  }
  delete lock;
  return 0;
}

extern "C" int haul_atomic_lock_start(haul_atomic_lock* lock, haul_atomic_lock_action action,
                                      uint64_t timeout_ns) {
  const haul::Uncancelled guard;
  const int wrong = check_lock(lock);
  if (wrong != 0) return wrong;
  const std::uint64_t now = now_ns();
  const std::uint64_t until = timeout_ns > never - now ? never : now + timeout_ns;
  if (lock->member->begin(goal_of(action), now, until) != Code::ok) {
    return refuse("this does not fit the lock's state: it is held, not held, or busy");
  }
  lock->started = true;
  return 0;
}

extern "C" int haul_atomic_lock_test(haul_atomic_lock* lock, uint64_t* token) {
  const haul::Uncancelled guard;
  const int wrong = check_lock(lock);
  if (wrong != 0) return wrong;
  if (!lock->started)
    return refuse("nothing was started on this lock; call haul_atomic_lock_start()");
  Member& member = *lock->member;
  if (!member.step(now_ns())) return 0;
  if (member.result() != Code::ok) return explain(lock, member.result());
  if (token != nullptr && member.holds()) *token = member.token();
  return 1;
}

extern "C" int haul_atomic_lock_cancel(haul_atomic_lock* lock) {
  const haul::Uncancelled guard;
  const int wrong = check_lock(lock);
  if (wrong == 0) lock->member->hurry(now_ns());
  return wrong;
}

extern "C" int haul_atomic_lock_acquire(haul_atomic_lock* lock, uint64_t timeout_ns,
                                        uint64_t* token) {
  const haul::Uncancelled guard;
  return run(lock, HAUL_ATOMIC_LOCK_ACQUIRE, timeout_ns, token);
}

extern "C" int haul_atomic_lock_try(haul_atomic_lock* lock, uint64_t* token) {
  const haul::Uncancelled guard;
  return run(lock, HAUL_ATOMIC_LOCK_TRY, never, token);
}

extern "C" int haul_atomic_lock_release(haul_atomic_lock* lock) {
  const haul::Uncancelled guard;
  return run(lock, HAUL_ATOMIC_LOCK_RELEASE, never, nullptr);
}

extern "C" int haul_atomic_lock_renew(haul_atomic_lock* lock) {
  const haul::Uncancelled guard;
  return run(lock, HAUL_ATOMIC_LOCK_RENEW, never, nullptr);
}

extern "C" uint64_t haul_atomic_lock_remaining(const haul_atomic_lock* lock) {
  const haul::Uncancelled guard;
  if (check_lock(lock) != 0 || !lock->member->holds()) return 0;
  const std::uint64_t now = now_ns(), until = lock->member->safe_until_ns();
  return until > now ? until - now : 0;
}

extern "C" int haul_atomic_lock_stats(const haul_atomic_lock* lock,
                                      haul_atomic_lock_counts* counts) {
  const haul::Uncancelled guard;
  const int wrong = check_lock(lock);
  if (wrong != 0) return wrong;
  if (counts == nullptr) return refuse("counts is NULL");
  const Member::Counts& from = lock->member->counts();
  *counts = {from.acquired, from.handed, from.taken_over, from.requeued, from.forced, from.skipped};
  return 0;
}
