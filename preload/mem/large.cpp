#include "preload/mem/large.hpp"

#include <atomic>

#include "base/extent.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/pages.hpp"
#include "base/os/filter.hpp"
#include "base/os/os.hpp"
#include "base/private.hpp"
#include "base/thread/stack_mark.hpp"
#include "base/thread/uncancelled.hpp"
#include "preload/defer/defer.hpp"
#include "preload/defer/distance.hpp"
#include "preload/defer/pending.hpp"
#include "preload/mem/call.hpp"
#include "preload/mem/choice.hpp"
#include "preload/mem/front.hpp"
#include "preload/mem/profile.hpp"
#include "preload/mem/sites.hpp"
#include "preload/mem/together.hpp"
#include "preload/protect/protect.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {

constinit Front front{};

namespace {

// Whether this library does anything at all. A filter that the program was started with is looked
// at when the first call asks.
enum class Activity : std::uint8_t { unknown, active, aside };
constinit std::atomic<Activity> activity{Activity::unknown};

// Set while this thread is within a large call: what haul itself calls, and signal handlers that
// interrupt it, get libc's functions. A fault's handler may leave by siglongjmp(), hence the mark.
constinit thread_local const StackMark* inside = nullptr;

class InsideCall {
 public:
  InsideCall() noexcept { inside = &mark_; }
  ~InsideCall() { inside = nullptr; }
  InsideCall(const InsideCall&) = delete;
  InsideCall& operator=(const InsideCall&) = delete;

 private:
  StackMark mark_;
};

bool may_enter() noexcept {
  Activity now = activity.load(std::memory_order_relaxed);
  if (now == Activity::aside) return false;
  // A handler's own stack may have room for libc's functions, which need none, and no more.
  if (os::on_alternate_stack()) return false;
  if (now == Activity::unknown) {
    const Activity found = os::filter_kills() ? Activity::aside : Activity::active;
    // (Another thread may have installed a filter meanwhile: that is never undone.)
    activity.compare_exchange_strong(now, found, std::memory_order_relaxed);
    now = activity.load(std::memory_order_relaxed);
  }
  if (now == Activity::aside) return false;
  return inside == nullptr || StackMark::left_behind(inside, stack_pointer());
}

// ---- before libc is known ----

void copy_early(void* dst, const void* src, std::size_t length) noexcept {
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(length) : : "memory");
}
void copy_early_backward(void* dst, const void* src, std::size_t length) noexcept {
  char* to = static_cast<char*>(dst) + length - 1;
  const char* from = static_cast<const char*>(src) + length - 1;
  asm volatile("std; rep movsb; cld" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
}
void set_early(void* dst, int value, std::size_t length) noexcept {
  asm volatile("rep stosb" : "+D"(dst), "+c"(length) : "a"(value) : "memory");
}

// ---- afterwards ----

std::size_t make_pages(const LargeCall& call, std::size_t done) noexcept {
  const Uncancelled uncancelled;
  return haul_private_make_pages(call.dst, call.dst + call.length, call.dst + done,
                                 call.length - done);
}

// The pages first, as far as they are missing, then libc. In pieces of a MiB at least: a piece that
// is shorter than a core's cache libc may move by `rep movsb`, which takes three times as long
// where the two sides are aligned differently (Zen 3).
void by_caller(const LargeCall& call) noexcept {
  constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  std::size_t done = 0;
  for (std::size_t ready = 0; done < call.length;) {
    ready += make_pages(call, ready);
    if (ready < call.length && ready - done < piece_bytes) continue;
    call.by_libc(done, ready - done);
    done = ready;
  }
}

// Are the destination's pages missing? The first whole one may be there for the sake of what lies
// before it.
Pages look(const LargeCall& call) noexcept {
  const auto is_new = [](std::uintptr_t at) {
    return !os::is_resident(at & ~(os::page_bytes - 1));
  };
  return is_new(call.dst + call.length / 2) ? Pages::missing : Pages::there;
}

struct Choice {
  Site* site;
  Pages pages;
  Way way, usual;
};
Choice choice_for(const LargeCall& call, std::uintptr_t site_address) noexcept {
  const Uncancelled uncancelled;
  Choice chosen{};
  chosen.pages = profiling() ? look_closely(call.dst, call.length) : look(call);
  chosen.site = site_of(site_address);
  chosen.usual = chosen.pages == Pages::missing ? Way::caller : Way::libc;
  chosen.way = choose(chosen.site, chosen.pages, call.length, call.operation);
  // A mover that is at a deferred call would have this one wait.
  if (chosen.way == Way::together && any_pending()) chosen.way = chosen.usual;
  // (Protected memory is served by a handler of faults.)
  if ((chosen.way == Way::together || chosen.way == Way::protected_) && !may_share(site_address))
    chosen.way = chosen.usual;
  if (chosen.way == Way::deferred && !may_defer(site_address)) {
    chosen.way = chosen.usual;
    if (chosen.site != nullptr)
      note_refused(chosen.site->kind(chosen.pages, call.length).tally(Way::deferred));
  }
  return chosen;
}

bool share(const LargeCall& call) noexcept {
  const Uncancelled uncancelled;
  return move_together(call.operation, call.dst, call.src_or_value, call.length);
}

bool put_off(const LargeCall& call, const Choice& chosen, std::uintptr_t site_address) noexcept {
  const Uncancelled uncancelled;
  WayTally* const tally = chosen.site == nullptr
                              ? nullptr
                              : &chosen.site->kind(chosen.pages, call.length).tally(Way::deferred);
  const NotDeferred result = defer(call, chosen.pages, is_calm(site_address), tally);
  count_touches(touches_served());
  switch (result) {
    case NotDeferred::deferred: return true;
    case NotDeferred::no_userfault: count_refusal(NotShared::no_userfault); break;
    case NotDeferred::not_private: count_refusal(NotShared::not_private); break;
    case NotDeferred::no_mover: count_refusal(NotShared::no_mover); break;
    case NotDeferred::pages_stay: break;  // that is how most memory is
  }
  if (tally != nullptr) note_refused(*tally);
  return false;
}

bool put_off_protected(const LargeCall& call, const Choice& chosen) noexcept {
  const Uncancelled uncancelled;
  WayTally* const tally =
      chosen.site == nullptr ? nullptr
                             : &chosen.site->kind(chosen.pages, call.length).tally(Way::protected_);
  const NotProtected result = protect(call.dst, call.src_or_value, call.length, front.copy, tally);
  count_touches(touches_served() + protected_touches());
  switch (result) {
    case NotProtected::protected_: return true;
    case NotProtected::handled: count_refusal(NotShared::handled_faults); break;
    case NotProtected::not_private: count_refusal(NotShared::not_private); break;
    case NotProtected::no_mover: count_refusal(NotShared::no_mover); break;
    case NotProtected::not_writable: count_refusal(NotShared::not_writable); break;
  }
  return false;
}

// A profile asks for all calls' distances; else they are asked for where a call could be deferred,
// and was not.
bool wants_distance(const Choice& chosen, const LargeCall& call) noexcept {
  if (!profiling() && (returns_early(chosen.way) || !may_defer_unasked(chosen.pages, call.length)))
    return false;
  return is_sampled(chosen.site->kind(chosen.pages, call.length)) &&
         (profiling() || chosen.pages == Pages::missing || lies_on_huge_pages(call));
}

void measure_distance(const LargeCall& call, Site& site, std::uintptr_t site_address) noexcept {
  const Uncancelled uncancelled;
  const std::uintptr_t src = call.operation == Operation::copy ? call.src_or_value : 0;
  sample_distance({call.dst, src, call.length}, site.distances[size_class(call.length)],
                  is_calm(site_address));
}

// While bytes are moved by this thread alone, cancellation is as the program has it: the handler of
// a fault may leave by siglongjmp(), and then nobody would enable it again.
void carry_out(const LargeCall& call, std::uintptr_t site_address) noexcept {
  const InsideCall guard;
  // A profile compares with the program's CPU time.
  const auto clock = profiling() ? thread_cpu_ns : now_ns;
  Choice chosen = choice_for(call, site_address);
  const std::uint64_t begun = clock();
  if ((chosen.way == Way::together && !share(call)) ||
      (chosen.way == Way::deferred && !put_off(call, chosen, site_address)) ||
      (chosen.way == Way::protected_ && !put_off_protected(call, chosen)))
    chosen.way = chosen.usual;  // the same bytes once more
  if (chosen.way == Way::caller) {
    by_caller(call);
  } else if (chosen.way == Way::libc) {
    call.by_libc(0, call.length);
  }
  note(chosen.site, chosen.pages, call.length, chosen.way, clock() - begun);
  if (chosen.site != nullptr && wants_distance(chosen, call))
    measure_distance(call, *chosen.site, site_address);
}

}  // namespace

void* large_copy(void* dst, const void* src, std::size_t length, std::uintptr_t site) noexcept {
  if (front.is_early()) [[unlikely]] {
    copy_early(dst, src, length);
    return dst;
  }
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  const auto from = reinterpret_cast<std::uintptr_t>(src);
  if (!may_enter() || overlaps(to, from, length)) return front.copy(dst, src, length);
  carry_out({Operation::copy, to, from, length}, site);
  return dst;
}

void* large_move(void* dst, const void* src, std::size_t length, std::uintptr_t site) noexcept {
  const auto to = reinterpret_cast<std::uintptr_t>(dst);
  const auto from = reinterpret_cast<std::uintptr_t>(src);
  if (front.is_early()) [[unlikely]] {
    if (to - from < length) {
      copy_early_backward(dst, src, length);
    } else {
      copy_early(dst, src, length);
    }
    return dst;
  }
  if (overlaps(to, from, length)) return front.move(dst, src, length);
  return large_copy(dst, src, length, site);
}

void* large_set(void* dst, int value, std::size_t length, std::uintptr_t site) noexcept {
  if (front.is_early()) [[unlikely]] {
    set_early(dst, value, length);
    return dst;
  }
  if (!may_enter()) return front.set(dst, value, length);
  carry_out({Operation::fill, reinterpret_cast<std::uintptr_t>(dst),
             static_cast<std::uintptr_t>(static_cast<unsigned char>(value)), length},
            site);
  return dst;
}

void stand_aside() noexcept {
  activity.store(Activity::aside, std::memory_order_relaxed);
}

}  // namespace haul::preload
