#include "tests/atomic/linearizable.hpp"
#include "repeats.hpp"

#include <gtest/gtest.h>

#include <random>

namespace atomic_test {
namespace {

// An operation from begin_ns to end_ns, in a packet of its own.
Done make(haul_atomic_code code, std::uint64_t begin_ns, std::uint64_t end_ns,
          std::uint64_t operand, std::uint64_t old, std::uint64_t compare = 0) {
  static std::uint32_t packet = 0;
  Done done;
  done.code = static_cast<std::uint8_t>(code);
  done.begin_ns = begin_ns;
  done.end_ns = end_ns;
  done.operand = operand;
  done.compare = compare;
  done.old = old;
  done.packet = ++packet;
  return done;
}

Done add(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t old) {
  return make(HAUL_ATOMIC_ADD, begin_ns, end_ns, 1, old);
}
Done swap(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t value, std::uint64_t old) {
  return make(HAUL_ATOMIC_SWAP, begin_ns, end_ns, value, old);
}
Done read(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t old) {
  return make(HAUL_ATOMIC_READ, begin_ns, end_ns, 0, old);
}
Done write(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t value) {
  return make(HAUL_ATOMIC_WRITE, begin_ns, end_ns, value, 0);
}

using History = std::vector<Done>;

// The second in the same packet as the first, behind it.
History packet_of(Done first, Done second) {
  second.packet = first.packet;
  second.index = 1;
  return {first, second};
}

TEST(linearizable, a_counter_in_any_order_of_ends) {
  const History history = {add(0, 100, 2), add(10, 90, 0), add(20, 30, 1), add(101, 102, 3)};
  const Verdict verdict = check_counter(0, history);
  EXPECT_EQ(verdict.kind, Verdict::right) << verdict.why;
  EXPECT_EQ(verdict.finally, std::vector<std::uint64_t>{4});
  EXPECT_EQ(check_any(0, history).kind, Verdict::right);
}

TEST(linearizable, a_counter_wraps_at_its_width) {
  History history = {add(0, 1, 0xffffffff), add(2, 3, 0)};
  for (Done& done : history) done.width = 4;
  const Verdict verdict = check_counter(0xffffffff, history);
  EXPECT_EQ(verdict.kind, Verdict::right) << verdict.why;
  EXPECT_EQ(verdict.finally, std::vector<std::uint64_t>{1});
}

TEST(linearizable, a_counter_executed_twice_is_refused) {
  // The second execution of the first one's packet took 1.
  const History history = {add(0, 1, 0), add(2, 3, 2)};
  EXPECT_EQ(check_counter(0, history).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, history).kind, Verdict::wrong);
}

TEST(linearizable, a_lost_update_is_refused) {
  const History history = {add(0, 1, 0), add(0, 1, 0)};
  EXPECT_EQ(check_counter(0, history).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, history).kind, Verdict::wrong);
  const History swaps = {swap(0, 1, 7, 0), swap(0, 1, 8, 0)};
  EXPECT_EQ(check_chain(0, swaps).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, swaps).kind, Verdict::wrong);
}

TEST(linearizable, an_order_against_time_is_refused) {
  const History history = {add(0, 10, 1), add(11, 20, 0)};
  EXPECT_EQ(check_counter(0, history).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, history).kind, Verdict::wrong);
  const History swaps = {swap(0, 10, 7, 8), swap(11, 20, 8, 0)};
  EXPECT_EQ(check_chain(0, swaps).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, swaps).kind, Verdict::wrong);
  // Against time far apart, with right ones in between.
  const History far = {add(50, 60, 0), add(0, 100, 1), add(0, 100, 2), add(0, 40, 3)};
  EXPECT_EQ(check_counter(0, far).kind, Verdict::wrong);
}

TEST(linearizable, an_order_against_that_of_a_packet_is_refused) {
  EXPECT_EQ(check_counter(0, packet_of(add(0, 9, 0), add(0, 9, 1))).kind, Verdict::right);
  const History history = packet_of(add(0, 9, 1), add(0, 9, 0));
  EXPECT_EQ(check_counter(0, history).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, history).kind, Verdict::wrong);
  const History swaps = packet_of(swap(0, 9, 7, 8), swap(0, 9, 8, 0));
  EXPECT_EQ(check_chain(0, swaps).kind, Verdict::wrong);
  // A read in front of a write in its packet cannot have seen it.
  EXPECT_EQ(check_any(0, packet_of(read(0, 9, 5), write(0, 9, 5))).kind, Verdict::wrong);
  EXPECT_EQ(check_any(0, packet_of(write(0, 9, 5), read(0, 9, 5))).kind, Verdict::right);
}

TEST(linearizable, a_chain_executed_twice_is_refused) {
  // 7 was put there again, above 8.
  EXPECT_EQ(check_chain(0, {swap(0, 1, 7, 0), swap(2, 3, 8, 7), swap(4, 5, 9, 7)}).kind,
            Verdict::wrong);
  EXPECT_EQ(check_chain(0, {swap(0, 1, 7, 0), swap(2, 3, 8, 7), swap(4, 5, 9, 8)}).kind,
            Verdict::right);
}

TEST(linearizable, a_stale_read_is_refused) {
  EXPECT_EQ(check_any(1, {write(0, 10, 2), read(5, 8, 1)}).kind, Verdict::right);
  EXPECT_EQ(check_any(1, {write(0, 10, 2), read(11, 12, 1)}).kind, Verdict::wrong);
  // The write has not ended, but it has been seen.
  EXPECT_EQ(check_any(1, {write(0, 10, 2), read(1, 2, 2), read(3, 4, 1)}).kind, Verdict::wrong);
  EXPECT_EQ(check_any(1, {write(0, 10, 2), read(1, 3, 2), read(2, 4, 1)}).kind, Verdict::right);
}

TEST(linearizable, a_write_executed_again_later_is_refused) {
  const History history = {write(0, 1, 2), write(2, 3, 3), read(4, 5, 2)};
  EXPECT_EQ(check_any(0, history).kind, Verdict::wrong);
}

TEST(linearizable, compare_and_swap_as_its_old_value_says) {
  const auto cas = [](std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t old) {
    return make(HAUL_ATOMIC_CAS, begin_ns, end_ns, 9, old, 5);
  };
  EXPECT_EQ(check_any(5, {cas(0, 1, 5), read(2, 3, 9)}).kind, Verdict::right);
  EXPECT_EQ(check_any(4, {cas(0, 1, 4), read(2, 3, 4)}).kind, Verdict::right);
  EXPECT_EQ(check_any(5, {cas(0, 1, 5), read(2, 3, 5)}).kind, Verdict::wrong);
  EXPECT_EQ(check_any(5, {cas(0, 4, 5), cas(1, 3, 5)}).kind, Verdict::wrong);
}

TEST(linearizable, halves_of_a_word_are_words) {
  Done low = add(0, 1, 0xffffffff), high = add(2, 3, 1);
  low.width = high.width = 4;
  high.half = 1;
  EXPECT_EQ(check_any(0x1ffffffff, {low, high, read(4, 5, 0x200000000)}).kind, Verdict::right);
  EXPECT_EQ(check_any(0x1ffffffff, {low, high, read(4, 5, 0x300000000)}).kind, Verdict::wrong);
}

TEST(linearizable, too_many_at_once_is_undecided) {
  History history;
  for (std::uint64_t i = 0; i < 65; ++i) history.push_back(write(0, 10, i));
  EXPECT_EQ(check_any(0, history).kind, Verdict::undecided);
}

// Histories made from an order: always right; with one old value changed, mostly seen.
class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  History make_history(std::size_t count, std::uint64_t* word) {
    History history;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t at = 100 * i + 1000;
      Done done = make(static_cast<haul_atomic_code>(1 + random_() % 8), at - random_() % 1000,
                       at + random_() % 1000, random_(), 0, random_() % 2 ? *word : random_());
      done.width = random_() % 4 ? 8 : 4;
      done.half = done.width == 4 ? random_() % 2 : 0;
      done.operand &= mask_of(done);
      const Effect effect = effect_of(done, *word);
      done.old = effect.old;
      *word = effect.next;
      history.push_back(done);
    }
    std::shuffle(history.begin(), history.end(), random_);
    return history;
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
};

// Adds of 1 by holders one after the other: the word is {stamp, value}.
Done guarded_add(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint32_t stamp,
                 std::uint64_t old, bool stale = false) {
  Done done = make(HAUL_ATOMIC_ADD, begin_ns, end_ns, 1, old);
  done.guarded = true;
  done.stale = stale;
  done.stamp = stamp;
  return done;
}

TEST(linearizable, guarded_words_refuse_who_comes_behind_a_newer_one) {
  const Done older = guarded_add(0, 10, 7, 0), newer = guarded_add(20, 30, 8, 1);
  const Done refused = guarded_add(40, 50, 7, 0, true), late = guarded_add(40, 50, 7, 2);
  EXPECT_EQ(check_any(0, {older, newer, refused}).kind, Verdict::right);
  // Executed, though a newer one was there.
  EXPECT_EQ(check_any(0, {older, newer, late}).kind, Verdict::wrong);
  // Refused, though none was.
  EXPECT_EQ(check_any(0, {older, refused}).kind, Verdict::wrong);
  // Both at once: in whichever order.
  const Done beside = guarded_add(15, 35, 7, 0, true);
  EXPECT_EQ(check_any(0, {older, newer, beside}).kind, Verdict::right);
  // Across the wrap of stamps.
  EXPECT_EQ(check_any(0xffffffffull << 32, {guarded_add(0, 10, 0, 0)}).kind, Verdict::right);
  EXPECT_EQ(check_any(0, {guarded_add(0, 10, 0xffffffff, 0)}).kind, Verdict::wrong);
}

TEST(linearizable, random_histories_of_every_operation) {
  constexpr unsigned rounds = testing_haul::repeats(200);
  unsigned seen = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    Maker maker(i);
    std::uint64_t word = 0;
    History history = maker.make_history(200, &word);
    const Verdict verdict = check_any(0, history);
    ASSERT_EQ(verdict.kind, Verdict::right) << "seed " << i << ": " << verdict.why;
    EXPECT_NE(std::find(verdict.finally.begin(), verdict.finally.end(), word),
              verdict.finally.end());
    history[maker.random()() % history.size()].old ^= 1;
    if (check_any(0, history).kind == Verdict::wrong) ++seen;
  }
  // A changed value may happen to be possible in another order.
  EXPECT_GE(seen, rounds - rounds / 20);
}

}  // namespace
}  // namespace atomic_test
