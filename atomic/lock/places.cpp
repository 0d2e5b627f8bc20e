#include "atomic/lock/places.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/clock.hpp"

namespace haul::atomics::lock {

namespace {

bool is_same_window(const haul_window_name& a, const haul_window_name& b) noexcept {
  return a.key == b.key && a.window == b.window && a.port == b.port &&
         std::strncmp(a.host, b.host, sizeof a.host) == 0;
}

}  // namespace

bool Places::open(Client& client, Window& own, const haul_lock_options& options) noexcept {
  client_ = &client;
  own_ = &own;
  count_ = options.count + 1;
  // A neighbour that does not answer is done without, long before the lease is over.
  neighbour_patience_ns_ = options.lease_ns / 4;
  places_.reset(new (std::nothrow) Place[count_]);
  if (!places_) return false;
  places_[0].name = options.home->window;
  places_[0].offset = options.home->offset;
  for (unsigned i = 0; i < options.count; ++i) {
    places_[i + 1].name = options.members[i].window;
    places_[i + 1].offset = options.members[i].offset;
  }
  return true;
}

Places::~Places() {
  for (unsigned i = 0; i < count_; ++i) drop(places_[i]);
}

void Places::drop(Place& place) noexcept {
  if (place.connection != nullptr) client_->disconnect(place.connection);
  place.connection = nullptr;
}

bool Places::is_own(const Place& place) const noexcept {
  return is_same_window(place.name, own_->name());
}

void Places::send(int to, const haul_atomic_operation* operations, unsigned count) noexcept {
  Place& place = place_of(to);
  to_ = to;
  packet_count_ = count;
  failure_ = Code::ok;
  begun_ns_ = now_ns();
  for (unsigned i = 0; i < count; ++i) {
    packet_[i] = operations[i];
    packet_[i].address += place.name.address + place.offset;
  }
  if (is_own(place)) {
    own_->run(packet_, count);
    stage_ = Stage::done_here;
    return;
  }
  stage_ = Stage::connecting;
  if (place.connection != nullptr) {
    const Code code = client_->submit(*place.connection, packet_, count, 0, &ticket_);
    if (code == Code::ok) {
      stage_ = Stage::submitted;
      return;
    }
    drop(place);  // its owner was restarted, or heard nothing for long: once more
  }
  Expected<Connection*> made = client_->begin_connect(place.name);
  if (made) {
    place.connection = *made;
  } else {
    failure_ = made.error().code;
  }
}

bool Places::end(Code result, Code* code) noexcept {
  *code = result;
  stage_ = Stage::none;
  if (result != Code::ok) drop(place_of(to_));
  return true;
}

bool Places::answered(haul_atomic_operation* operations, unsigned count, Code* code) noexcept {
  Place& place = place_of(to_);
  if (failure_ != Code::ok) return end(failure_, code);
  if (stage_ == Stage::connecting) {
    switch (client_->look(*place.connection)) {
      case Session::State::open: {
        const Code submitted =
            client_->submit(*place.connection, packet_, packet_count_, 0, &ticket_);
        if (submitted != Code::ok) return end(submitted, code);
        stage_ = Stage::submitted;
        break;
      }
      case Session::State::greeting: break;
      default: return end(Code::peer_gone, code);
    }
  }
  if (stage_ == Stage::submitted) {
    Code status = Code::ok;
    if (client_->test(*place.connection, ticket_, packet_, packet_count_, &status) != 0) {
      if (status != Code::ok) return end(status, code);
      stage_ = Stage::done_here;
    }
  }
  if (stage_ == Stage::done_here) {
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
    return end(Code::timed_out, code);
  }
  return false;
}

}  // namespace haul::atomics::lock
