#include "bench/remote/lock_ring.hpp"

#include <fmt/format.h>

#include "base/machine/clock.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned home_host = 1, first_member_host = 2;
constexpr std::uint64_t ring_timeout_ns = 60'000'000'000;
constexpr char bridge[] = "bridge";

}  // namespace

struct LockRing::Member {
  Namespace space;
  Node node;
  Window window;
  Lock lock;
  Doing doing = Doing::nothing;
  std::uint64_t since_ns = 0;
  unsigned passes_left = 0;
};

// What is known while the members take turns.
struct LockRing::Turns {
  unsigned hold_passes = 0;  // passes of the loop for which a member keeps the lock
  const Member* holder = nullptr;
  std::uint64_t last_token = 0, now_ns = 0;
  Samples cycles_us;
};

std::string LockRing::address_of(unsigned host) const {
  return fmt::format("10.89.0.{}", host);
}

LockRing::LockRing(unsigned members, Cores cores) : cores_(cores) {
  switch_.ip(fmt::format("link add {} type bridge stp_state 0", bridge));
  switch_.ip(fmt::format("link set {} up", bridge));
  const auto plug_in = [&](const Namespace& space, unsigned host) {
    const std::string port = fmt::format("port{}", host);
    join(space, atomic_interface, address_of(host) + "/24", switch_, port,
         fmt::format("10.90.{}.1/24", host));
    switch_.ip(fmt::format("link set {} master {}", port, bridge));
  };
  plug_in(home_, home_host);
  for (unsigned i = 0; i < members; ++i)
    plug_in(members_.emplace_back(std::make_unique<Member>())->space, first_member_host + i);
}

LockRing::~LockRing() {
  close_lock();
}

void LockRing::place(PacketSteering placement) {
  steer(home_, atomic_interface, placement, cores_.home);
  for (const auto& member : members_)
    steer(member->space, atomic_interface, placement, cores_.client);
}

void LockRing::open_members(const std::string& responder) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = *members_[i];
    member.node.reset();
    const bool is_xdp = responder.starts_with("xdp");
    const auto host = first_member_host + static_cast<unsigned>(i);
    member.node = open_node(
        member.space, fmt::format("{}:{}", responder, is_xdp ? atomic_interface : address_of(host)),
        cores_.client);
  }
}

void LockRing::open_lock(const ResponderChoice& responder) {
  close_lock();
  home_node_ = open_node(home_,
                         fmt::format("{}:{}", responder.word,
                                     responder.is_host ? address_of(home_host) : atomic_interface),
                         cores_.home);
  home_window_ = make_window(home_node_, 4096);
  const haul_atomic_lock_place home{name_of(home_window_), 0};
  std::vector<haul_atomic_lock_place> places;
  for (const auto& member : members_) {
    member->window = make_window(member->node, 4096);
    places.push_back({name_of(member->window), 0});
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    haul_atomic_lock_options options{};
    options.rank = static_cast<std::uint32_t>(i);
    options.count = static_cast<std::uint32_t>(members_.size());
    options.home = &home;
    options.members = places.data();
    members_[i]->lock = join_lock(members_[i]->node, members_[i]->window, options);
  }
}

void LockRing::close_lock() {
  for (const auto& member : members_) member->lock.reset();
  for (const auto& member : members_) member->window.reset();
  home_window_.reset();
  home_node_.reset();
}

haul_atomic_lock_counts LockRing::counts() const {
  haul_atomic_lock_counts sum{};
  for (const auto& member : members_) {
    haul_atomic_lock_counts one{};
    tools::require(haul_atomic_lock_stats(member->lock.get(), &one), "haul_atomic_lock_stats()");
    sum.acquired += one.acquired;
    sum.handed += one.handed;
    sum.taken_over += one.taken_over;
  }
  return sum;
}

// Tests one member once, and does what follows from the result.
void LockRing::go_on(Member& member, Turns& turns) {
  if (member.doing == Doing::holding) {
    if (member.passes_left-- > 0) return;
    turns.holder = nullptr;  // from here on another may have it
    start(member, Doing::releasing, HAUL_ATOMIC_LOCK_RELEASE);
    return;
  }
  std::uint64_t token = 0;
  const int done = haul_atomic_lock_test(member.lock.get(), &token);
  tools::require(done, "haul_atomic_lock_test()");
  if (done == 0) return;
  if (member.doing == Doing::acquiring) {
    if (turns.holder != nullptr)
      throw tools::CommandFailure("two members held the lock at once; this is a bug of haul");
    if (token <= turns.last_token)
      throw tools::CommandFailure("a fencing token did not grow; this is a bug of haul");
    turns.last_token = token;
    turns.holder = &member;
    member.doing = Doing::holding;
    member.passes_left = turns.hold_passes;
    if (turns.hold_passes == 0) go_on(member, turns);
    return;
  }
  turns.now_ns = now_ns();
  turns.cycles_us.push_back(static_cast<double>(turns.now_ns - member.since_ns) / 1e3);
  member.doing = Doing::nothing;
}

void LockRing::start(Member& member, Doing doing, haul_atomic_lock_action action) {
  tools::require(haul_atomic_lock_start(member.lock.get(), action, ring_timeout_ns),
                 "haul_atomic_lock_start()");
  member.doing = doing;
}

void LockRing::run(unsigned contenders, const Limit& limit, Turns& turns) {
  const std::uint64_t begin = turns.now_ns = now_ns();
  turns.cycles_us.reserve(limit.count + contenders);
  for (unsigned busy = 1; busy > 0;) {
    busy = 0;
    for (unsigned i = 0; i < contenders; ++i) {
      Member& member = *members_[i];
      if (member.doing != Doing::nothing) go_on(member, turns);
      if (member.doing == Doing::nothing && turns.cycles_us.size() < limit.count &&
          turns.now_ns - begin < limit.ns) {
        member.since_ns = turns.now_ns = now_ns();
        start(member, Doing::acquiring, HAUL_ATOMIC_LOCK_ACQUIRE);
      }
      if (member.doing != Doing::nothing) ++busy;
    }
    if (now_ns() - begin > limit.ns + ring_timeout_ns)
      throw tools::CommandFailure("nobody got the lock for a minute; this is a bug of haul");
  }
}

LockRing::Times LockRing::contend(unsigned contenders, const Limit& limit) {
  constexpr std::size_t checked_cycles = 20;
  Turns checked;
  checked.hold_passes = 3;  // so that the other members are looked at meanwhile
  run(contenders, {checked_cycles * contenders, limit.ns / 4}, checked);
  const haul_atomic_lock_counts before = counts();
  Turns turns;
  turns.last_token = checked.last_token;
  const std::uint64_t begin = now_ns();
  run(contenders, limit, turns);
  const haul_atomic_lock_counts after = counts();
  const std::size_t cycles = turns.cycles_us.size();
  if (after.acquired - before.acquired != cycles)
    throw tools::CommandFailure(
        "a lock was acquired more or fewer times than asked; this is a bug of haul");
  Times times;
  times.rate_per_s = static_cast<double>(cycles) * 1e9 / static_cast<double>(turns.now_ns - begin);
  times.handed_share =
      static_cast<double>(after.handed - before.handed) / static_cast<double>(cycles);
  times.cycles_us = std::move(turns.cycles_us);
  return times;
}

}  // namespace haul::bench
