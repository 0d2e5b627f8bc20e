#include "atomic/lock/places.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "atomic/lock/directory.hpp"
#include "atomic/window/name.hpp"
#include "base/clock.hpp"
#include "base/os.hpp"

namespace haul::atomics::lock {

namespace {

bool is_same_window(const haul_window_name& a, const haul_window_name& b) noexcept {
  return a.key == b.key && a.window == b.window && a.port == b.port && a.kind == b.kind &&
         std::strncmp(a.host, b.host, sizeof a.host) == 0;
}

}  // namespace

bool is_usable(const haul_lock_place& place, std::uint64_t bytes) noexcept {
  return is_name(place.window) && place.offset % 8 == 0 && place.window.bytes >= bytes &&
         place.offset <= place.window.bytes - bytes;
}

bool Places::open(Carrier& carrier, Window& own, const haul_lock_options& options) noexcept {
  carrier_ = &carrier;
  own_ = &own;
  // A neighbour that does not answer is done without, long before the lease is over.
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
  Place& place = place_of(static_cast<int>(rank));
  drop(place);
  place.at.window = own_->name();
  place.at.offset = own_offset;
  place.known = true;
}

void Places::drop(Place& place) noexcept {
  if (place.connection != nullptr) carrier_->disconnect(place.connection);
  place.connection = nullptr;
  // Another may have the rank by now.
  if (has_directory_ && &place != &places_[0] && !is_own(place)) place.known = false;
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
  if (place.connection != nullptr) {
    // Its owner was restarted, or has heard nothing for long: once more.
    carrier_->disconnect(place.connection);
    place.connection = nullptr;
  }
  connect(place);
}

void Places::connect(Place& place) noexcept {
  Expected<Connection*> made = carrier_->begin_connect(place.at.window);
  if (made) {
    place.connection = *made;
    stage_ = Stage::connecting;
  } else {
    failure_ = made.error().code;
    stage_ = Stage::failed;
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
  // Whoever meets another member has spoken to the home before.
  failure_ = at_home.connection == nullptr
                 ? Code::peer_gone
                 : carrier_->submit(*at_home.connection, entry_, directory::words, 0, &ticket_);
  stage_ = failure_ == Code::ok ? Stage::looking_up : Stage::failed;
}

void Places::heard_look_up() noexcept {
  Place& place = place_of(to_);
  std::uint64_t entry[directory::words];
  for (unsigned i = 0; i < directory::words; ++i) entry[i] = entry_[i].old;
  if (!directory::parse(entry, &place.at) || !is_usable(place.at, HAUL_LOCK_MEMBER_BYTES)) {
    failure_ = Code::peer_gone;  // nobody, or half-written
    stage_ = Stage::failed;
    return;
  }
  place.known = true;
  begin(place);
}

bool Places::end(Code result, Code* code) noexcept {
  *code = result;
  stage_ = Stage::none;
  if (result != Code::ok) drop(place_of(to_));
  return true;
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
      default: return end(Code::peer_gone, code);
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
    // An answer that nobody will collect would keep its place in the home's connection for ever.
    if (stage_ == Stage::looking_up) drop(places_[0]);
    return end(Code::timed_out, code);
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
  look.address = Node::next;
  return run(static_cast<int>(rank), &look, 1) == Code::ok;
}

}  // namespace haul::atomics::lock
