// A network between one Session and a responder's tables, in which nothing happens but what the
// test says: packets are lost, repeated, delayed and so overtake each other, by a seeded generator.
#pragma once

#include <haul/atomic.h>

#include <functional>
#include <map>
#include <random>

#include "atomic/client/session.hpp"
#include "unit/atomic/service.hpp"

namespace haul::atomics::test {

// In percent, for each packet of either direction.
struct Weather {
  unsigned lost = 0, repeated = 0, late = 0;
  std::uint64_t late_ns = 0;  // at most so much later
};

inline haul_atomic_operation ask_for(std::uint8_t code, std::uint64_t offset,
                                     std::uint64_t operand = 0) {
  haul_atomic_operation made{};
  made.code = code;
  made.width = 8;
  made.address = window_address + offset;
  made.operand = operand;
  return made;
}

class Network final : public Outlet {
 public:
  Network(Service& service, const Weather& weather, unsigned seed,
          std::uint64_t timeout_ns = 1'000'000'000'000)
      : service_(service), weather_(weather), random_(seed), timeout_ns_(timeout_ns) {
    renew();
  }

  // Another client, of another number; what the last one sent is still under way.
  void renew() {
    Session::Names names;
    names.id = random_() | 1;
    names.window = window_index;
    names.key = window_key;
    names.cookie = 4;
    session_ = std::make_unique<Session>(*this, names, timeout_ns_);
  }

  Session& session() { return *session_; }
  std::uint64_t now_ns() const { return now_ns_; }
  std::uint64_t sent() const { return sent_; }
  bool is_cut = false;  // nothing arrives any more

  void send(const WirePacket& packet) noexcept override {
    ++sent_;
    EXPECT_TRUE(intact(packet, packet_bytes(packet)));
    post({true, packet});
  }

  // The next thing that is due happens: a packet arrives, or the session looks at the clock.
  // False: nothing is due ever.
  bool step() {
    const std::uint64_t arrival = way_.empty() ? never : way_.begin()->first;
    const std::uint64_t alarm = session_->next_ns();
    if (arrival == never && alarm == never) return false;
    now_ns_ = std::max(now_ns_, std::min(arrival, alarm));
    if (alarm <= arrival) {
      session_->tick(now_ns_);
      return true;
    }
    Letter letter = way_.begin()->second;
    way_.erase(way_.begin());
    if (is_cut) return true;
    if (letter.is_question) {
      before_serving();
      const std::size_t bytes = packet_bytes(letter.packet);
      if (service_.tables.serve(&letter.packet, bytes, source, service_.now_s)) {
        letter.is_question = false;
        post(letter);
      }
    } else {
      session_->heard(letter.packet, now_ns_);
    }
    return true;
  }
  // Until it is so.
  template <class Condition>
  void until(Condition condition) {
    while (!condition()) ASSERT_TRUE(step()) << "nothing is under way, and nobody asks again";
  }
  void settle() {
    while (step()) continue;
  }
  void open() {
    session_->greet(now_ns_);
    until([this] { return session_->state() != Session::State::greeting; });
    ASSERT_EQ(session_->state(), Session::State::open);
  }
  std::uint64_t submit(std::initializer_list<haul_atomic_operation> operations,
                       std::uint64_t tag = 0) {
    std::uint64_t ticket = 0;
    EXPECT_EQ(session_->submit(operations.begin(), operations.size(), tag, now_ns_, &ticket),
              Code::ok);
    return ticket;
  }

  std::function<void()> before_serving = [] {};

 private:
  struct Letter {
    bool is_question;
    WirePacket packet;
  };
  static constexpr std::uint64_t never = ~std::uint64_t{0}, usual_ns = 5'000,
                                 source = 0x0a0000010001;

  bool happens(unsigned percent) { return random_() % 100 < percent; }
  void post(const Letter& letter) {
    const unsigned copies = happens(weather_.lost) ? 0 : happens(weather_.repeated) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
      std::uint64_t delay = usual_ns;
      if (happens(weather_.late)) delay += random_() % weather_.late_ns;
      way_.emplace(now_ns_ + delay, letter);
    }
  }

  Service& service_;
  const Weather weather_;
  std::mt19937_64 random_;
  const std::uint64_t timeout_ns_;
  std::unique_ptr<Session> session_;
  std::multimap<std::uint64_t, Letter> way_;  // by when they arrive
  std::uint64_t now_ns_ = 1'000'000'000, sent_ = 0;
};

}  // namespace haul::atomics::test
