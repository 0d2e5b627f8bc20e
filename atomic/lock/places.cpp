#include "atomic/lock/places.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "atomic/lock/directory.hpp"
#include "atomic/window/name.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul::atomics::lock {

namespace {

bool is_same_window(const haul_atomic_window_name& a, const haul_atomic_window_name& b) noexcept {
  return a.key == b.key && a.window == b.window && a.port == b.port && a.kind == b.kind &&
         std::strncmp(a.host, b.host, sizeof a.host) == 0;
}

}  // namespace

bool is_usable(const haul_atomic_lock_place& place, std::uint64_t bytes) noexcept {
  return is_name(place.window) && place.offset % 8 == 0 && place.window.bytes >= bytes &&
         place.offset <= place.window.bytes - bytes;
}

bool Places::open(Carrier& carrier, Window& own, const haul_atomic_lock_options& options) noexcept {
  carrier_ = &carrier;
  own_ = &own;
  // A member does without a neighbour that does not answer, long before the lease is over.
  neighbour_patience_ns_ = options.lease_ns / 4;
  has_directory_ = options.members == nullptr;
  places_.reset(new (std::nothrow) Place[options.count + 1]);
  if (!places_) return false;
  count_ = options.count + 1;
  places_[0].at = *options.home;
  places_[0].known = true;
  for (unsigned i = 0; i < options.count && !has_directory_; ++i) {
    places_[i + 1].at = options.members[i];
    places_[i + 1].known = true;
  }
  return true;
}

Places::~Places() {
  for (unsigned i = 0; i < count_; ++i) drop(places_[i]);
}

void Places::settle(unsigned rank, std::uint64_t own_offset) noexcept {
  own_rank_ = static_cast<int>(rank);
  Place& place = place_of(own_rank_);
  drop(place);
  place.at.window = own_->name();
  place.at.offset = own_offset;
  place.known = true;
}

void Places::disconnect(Place& place) noexcept {
  if (place.connection != nullptr) carrier_->disconnect(place.connection);
  place.connection = nullptr;
}

void Places::drop(Place& place) noexcept {
  disconnect(place);
  // Another member may have the rank by now.
  if (&place != &places_[0]) doubt(static_cast<int>(&place - places_.get()) - 1);
}

bool Places::doubt(int place) noexcept {
  if (!has_directory_ || place == own_rank_) return false;
  place_of(place).known = false;
  return true;
}

std::uint64_t Places::clock_ns() const noexcept {
  return now_ns();
}

bool Places::is_own(const Place& place) const noexcept {
  return place.known && is_same_window(place.at.window, own_->name());
}

void Places::send(int to, const haul_atomic_operation* operations, unsigned count) noexcept {
  to_ = to;
  packet_count_ = count;
  begun_ns_ = now_ns();
  for (unsigned i = 0; i < count; ++i) packet_[i] = operations[i];
  Place& place = place_of(to);
  place.used = ++packets_;
  if (to == home) home_failure_.code = Code::ok;
  place.known ? begin(place) : look_up(to);
}

// The place is known.
void Places::begin(Place& place) noexcept {
  if (is_own(place)) {
    for (unsigned i = 0; i < packet_count_; ++i) {
      packet_[i].address += place.at.window.address + place.at.offset;
    }
    own_->run(packet_, packet_count_);
    stage_ = Stage::done;
    return;
  }
  if (place.connection != nullptr && submit(place)) return;
  // Its owner was restarted, or has heard nothing for a long time: connect once more.
  disconnect(place);
  connect(place);
}

void Places::connect(Place& place) noexcept {
  for (;;) {
    Expected<RemoteConnection*> made = carrier_->begin_connect(place.at.window);
    if (made) {
      place.connection = *made;
      stage_ = Stage::connecting;
      return;
    }
    // The node has no more connections: one to a neighbour is given up for this one.
    if (made.error().code == Code::no_memory && drop_one_for(place)) continue;
    fail(made.error());
    return;
  }
}

// Gives up the connection to the neighbour that was not met for longest. False: there is none.
bool Places::drop_one_for(const Place& place) noexcept {
  Place* oldest = nullptr;
  for (unsigned i = 1; i < count_; ++i) {
    Place& one = places_[i];
    if (one.connection == nullptr || &one == &place) continue;
    if (oldest == nullptr || one.used < oldest->used) oldest = &one;
  }
  if (oldest == nullptr) return false;
  // Where it is stays known: nobody said that it is elsewhere.
  disconnect(*oldest);
  return true;
}

void Places::fail(const Error& error) noexcept {
  failure_ = error.code;
  stage_ = Stage::failed;
  if (to_ == home) home_failure_ = error;
}

// Why a packet failed that the home may have got.
Error Places::explain(Code code, const haul_atomic_window_name& at) const noexcept {
  switch (code) {
    case Code::peer_gone:
      return failure_at(at, code,
                        "is the lock's home, and does not know this member any more; try again, or "
                        "open the home's node with more sessions if it has more clients");
    case Code::stale:
      // Not HAUL_ESTALE, which says that another member has the lock.
      return failure_at(at, Code::peer_gone,
                        "no longer has the window of the lock's home, so it was restarted; open "
                        "the lock again by the home's new name");
    case Code::fault:
      return make_error(code, 0,
                        "the lock's words are not within the window at %s port %u; give the "
                        "home's name and offset as its owner tells them",
                        at.host, at.port);
    default: return carrier_->refusal(code, at);
  }
}

bool Places::submit(Place& place) noexcept {
  haul_atomic_operation absolute[HAUL_ATOMIC_MAX_BATCH];
  for (unsigned i = 0; i < packet_count_; ++i) {
    absolute[i] = packet_[i];
    absolute[i].address += place.at.window.address + place.at.offset;
  }
  failure_ = carrier_->submit(*place.connection, absolute, packet_count_, 0, &ticket_);
  stage_ = failure_ == Code::ok ? Stage::submitted : Stage::failed;
  return failure_ == Code::ok;
}

// Asks the home where a member is.
void Places::look_up(int to) noexcept {
  Place& at_home = places_[0];
  for (unsigned i = 0; i < directory::words; ++i) {
    entry_[i] = haul_atomic_operation{};
    entry_[i].code = HAUL_ATOMIC_READ;
    entry_[i].width = 8;
    entry_[i].address = at_home.at.window.address + at_home.at.offset +
                        directory::entry_of(static_cast<unsigned>(to)) + 8 * i;
  }
  if (is_own(at_home)) {
    own_->run(entry_, directory::words);
    heard_look_up();
    return;
  }
  // A member that meets another one has spoken to the home before.
  failure_ = at_home.connection == nullptr
                 ? Code::peer_gone
                 : carrier_->submit(*at_home.connection, entry_, directory::words, 0, &ticket_);
  stage_ = failure_ == Code::ok ? Stage::looking_up : Stage::failed;
}

void Places::heard_look_up() noexcept {
  Place& place = place_of(to_);
  std::uint64_t entry[directory::words];
  for (unsigned i = 0; i < directory::words; ++i) entry[i] = entry_[i].old;
  haul_atomic_lock_place found{};
  if (!directory::parse(entry, &found) || !is_usable(found, HAUL_ATOMIC_LOCK_MEMBER_BYTES)) {
    failure_ = Code::peer_gone;  // nobody, or half-written
    stage_ = Stage::failed;
    return;
  }
  if (!is_same_window(found.window, place.at.window)) disconnect(place);
  place.at = found;
  place.known = true;
  begin(place);
}

bool Places::end(Code result, Code* code) noexcept {
  *code = result;
  // Unless the carrier has said why.
  if (to_ == home && result != Code::ok && home_failure_.code == Code::ok) {
    home_failure_ = explain(result, places_[0].at.window);
  }
  stage_ = Stage::none;
  if (result != Code::ok) drop(place_of(to_));
  return true;
}

void Places::give_up() noexcept {
  Code code = Code::ok;
  // An answer that nobody will collect would keep its place in the home's connection for ever.
  if (stage_ == Stage::looking_up) drop(places_[0]);
  end(Code::timed_out, &code);
}

bool Places::answered(haul_atomic_operation* operations, unsigned count, Code* code) noexcept {
  Code status = Code::ok;
  if (stage_ == Stage::looking_up &&
      carrier_->test(*places_[0].connection, ticket_, entry_, directory::words, &status) != 0) {
    if (status != Code::ok) return end(status, code);
    heard_look_up();
  }
  if (stage_ == Stage::connecting) {
    switch (carrier_->look(*place_of(to_).connection)) {
      case Session::State::open: submit(place_of(to_)); break;
      case Session::State::greeting: break;
      default: {
        const Place& place = place_of(to_);
        fail(carrier_->refusal(carrier_->reason(*place.connection), place.at.window));
      }
    }
  }
  if (stage_ == Stage::submitted &&
      carrier_->test(*place_of(to_).connection, ticket_, packet_, packet_count_, &status) != 0) {
    if (status != Code::ok) return end(status, code);
    stage_ = Stage::done;
  }
  if (stage_ == Stage::failed) return end(failure_, code);
  if (stage_ == Stage::done) {
    for (unsigned i = 0; i < std::min(count, packet_count_); ++i) {
      operations[i].old = packet_[i].old;
      operations[i].status = packet_[i].status;
      // Words that are not there: a place that is none.
      const auto result = static_cast<Code>(packet_[i].status);
      if (result != Code::ok && result != Code::again) return end(result, code);
    }
    return end(Code::ok, code);
  }
  if (to_ != home && now_ns() - begun_ns_ > neighbour_patience_ns_) {
    give_up();
    *code = Code::timed_out;
    return true;
  }
  return false;
}

Code Places::run(int place, haul_atomic_operation* operations, unsigned count) noexcept {
  constexpr std::uint64_t nap_ns = 20'000;
  Code code = Code::ok;
  send(place, operations, count);
  while (!answered(operations, count, &code)) {
    if (now_ns() - begun_ns_ > carrier_->spin_ns()) os::sleep_ns(nap_ns);
  }
  return code;
}

bool Places::is_there(unsigned rank) noexcept {
  haul_atomic_operation look{};
  look.code = HAUL_ATOMIC_READ;
  look.width = 8;
  look.address = QueueNode::next;
  return run(static_cast<int>(rank), &look, 1) == Code::ok;
}

}  // namespace haul::atomics::lock
