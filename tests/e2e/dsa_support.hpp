// What the tests of the engine dsa share: a program whose copies go to a device model.
#pragma once

#include <gtest/gtest.h>
#include <haul/haul.h>

#include <cstring>
#include <memory>
#include <string>

#include "device/dsa_model.hpp"
#include "support.hpp"

namespace e2e {

inline haul_engine_info dsa() {
  return engine_now("dsa");
}

// Asks for the engine until it is open, or has been refused.
inline haul_engine_info opened_dsa(const char* mover, const std::string& knob) {
  // (Twice as long as a model may finish nothing, which on a busy machine happens to good ones.)
  setenv("HAUL_MOVER_PATIENCE_MS", "10000", 0);
  return open_engine("dsa", mover, "HAUL_ENGINE_DSA", knob.c_str());
}

// In a child: a model with that conduct, opened; body(model). The child's end, skip_status where
// haul was built without the plug-in. (The model outlives the child's exit(): haul may wait for
// it.)
template <class Body>
int with_dsa(const char* mover, haul_model::DsaPath path, const haul_model::DsaConduct& conduct,
             Body body, unsigned seconds = 60) {
  return run_child(
      [&] {
        auto& model = *new haul_model::DsaModel(path, conduct);
        model.start();
        const haul_engine_info info = opened_dsa(mover, model.knob());
        if (std::strstr(info.status, "cannot be loaded") != nullptr) return skip_status;
        if (info.available == 0) std::fprintf(stderr, "dsa: %s\n", info.status);
        CHILD_EQUAL(info.available, 1);
        model.misbehave();
        body(model);
        // What no device would do, the plug-in has not asked for.
        CHILD_EQUAL(model.counts().refused, 0);
        CHILD_EQUAL(model.counts().dropped, 0);
        return 0;
      },
      seconds);
}

#define SKIP_OR_GOOD(call)                                                                \
  do {                                                                                    \
    const int status_ = (call);                                                           \
    if (status_ == skip_status) GTEST_SKIP() << "haul was built without libaccel-config"; \
    EXPECT_EQ(status_, 0);                                                                \
  } while (false)

// For children that meet a device that is stuck.
class ShortPatience {
 public:
  ShortPatience() { setenv("HAUL_MOVER_PATIENCE_MS", "400", 1); }
  ~ShortPatience() { unsetenv("HAUL_MOVER_PATIENCE_MS"); }
  ShortPatience(const ShortPatience&) = delete;
  ShortPatience& operator=(const ShortPatience&) = delete;
};

inline bool by_portal(const haul_model::DsaModel& model) {
  return model.knob().find("shared") == std::string::npos;
}

class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed * 2 + 88172645463325252) {}
  std::uint64_t operator()() {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

// Bytes from some place among 4 MiB that repeat nowhere near.
inline const unsigned char* noise(std::size_t at) {
  static const Buffer& bytes = []() -> const Buffer& {
    static const Buffer made(5 * mib);
    made.fill(77);
    return made;
  }();
  return bytes.data() + at;
}

// A copy or fill at odd places, submitted, and later compared with what it should be.
class SomeRequest {
 public:
  SomeRequest(RandomNumbers& random, std::size_t most_bytes)
      : length_(1 + random() % most_bytes),
        shift_(random() % 64),
        source_shift_(random() % 64),
        fills_(random() % 3 == 0),
        pattern_(random()),
        pattern_bytes_(static_cast<std::uint8_t>(1u << random() % 4)),
        from_(length_ + 64),
        to_(length_ + 64) {
    if (!fills_) std::memcpy(from_.data(), noise(pattern_ % mib), from_.size());
    const haul_request request =
        fills_ ? haul_request_fill(to_.data() + shift_, pattern_, pattern_bytes_, length_)
               : haul_request_copy(to_.data() + shift_, from_.data() + source_shift_, length_);
    CHILD_EQUAL(haul_submit(&request, 1, &ticket_), 1);
  }
  const haul_ticket& ticket() const { return ticket_; }
  std::size_t length() const { return length_; }
  void is_right() const {
    const unsigned char* const begin = to_.data() + shift_;
    for (std::size_t at = 0; at < shift_; ++at) CHILD_EQUAL(to_[at], 0);
    for (std::size_t at = shift_ + length_; at < to_.size(); ++at) CHILD_EQUAL(to_[at], 0);
    if (!fills_) {
      CHILD_EQUAL(std::memcmp(begin, from_.data() + source_shift_, length_), 0);
      return;
    }
    const std::size_t first = length_ < pattern_bytes_ ? length_ : pattern_bytes_;
    CHILD_EQUAL(std::memcmp(begin, &pattern_, first), 0);
    CHILD_EQUAL(std::memcmp(begin, begin + first, length_ - first), 0);
  }

 private:
  std::size_t length_, shift_, source_shift_;
  bool fills_;
  std::uint64_t pattern_;
  std::uint8_t pattern_bytes_;
  Buffer from_, to_;
  haul_ticket ticket_{};
};

// Many requests, several at once, all of which end well. The bytes of those that nobody waited for:
// a thread that waits helps, with its CPU.
inline std::uint64_t many_requests(std::uint64_t seed, unsigned rounds) {
  RandomNumbers random(seed);
  std::uint64_t bytes = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    std::unique_ptr<SomeRequest> requests[6];
    for (auto& request : requests)
      request = std::make_unique<SomeRequest>(random, round % 8 == 0 ? 3 * mib : 100 * kib);
    for (auto& request : requests) {
      if (round % 4 != 3) {
        ends_without_help(request->ticket());
        bytes += request->length();
      }
      CHILD_EQUAL(haul_wait(request->ticket()), 0);
      request->is_right();
    }
  }
  return bytes;
}

// A copy that the device has when it gets stuck: it is waited for, the engine is given up, and when
// the device goes on the copy is whole. meanwhile() comes between.
template <class Meanwhile>
void copy_while_stuck(haul_model::DsaModel& model, Meanwhile meanwhile) {
  model.stick();
  const Buffer from(mib), to(mib);
  from.fill(10);
  const haul_request request = haul_request_copy(to.data(), from.data(), mib);
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  for (int turn = 0; turn < 5000 && dsa().available != 0; ++turn) {
    CHILD_EQUAL(haul_test(ticket), 0);
    sleep_ms(1);
  }
  CHILD_EQUAL(dsa().available, 0);
  meanwhile();
  CHILD_EQUAL(haul_test(ticket), 0);
  model.release();
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(to.data(), from.data(), mib), 0);
}

}  // namespace e2e
