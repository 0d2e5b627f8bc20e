// Exactly once, whatever the network does: what a client was told is what was done. And the
// controls: without what the responder remembers, the same weather gives wrong sums.
#include <set>

#include "unit/atomic/network.hpp"

namespace haul::atomics::test {
namespace {

struct Case {
  const char* name;
  Weather weather;
};
constexpr std::uint64_t ms = 1'000'000;
const Case cases[] = {{"Fine", {0, 0, 0, 0}},
                      {"Lossy", {10, 0, 0, 0}},
                      {"Repeating", {0, 30, 0, 0}},
                      {"Reordering", {0, 0, 30, ms}},
                      {"Delaying", {0, 10, 20, 40 * ms}},
                      {"Stormy", {10, 10, 20, 5 * ms}},
                      {"Hopeless", {60, 30, 50, 20 * ms}}};

class ExactlyOnce : public testing::TestWithParam<Case> {};

// What many fetch&adds of 1 came to.
struct Sum {
  std::uint64_t acknowledged = 0, executed = 0, word = 0;
  bool each_old_value_once = true;
};

// `outstanding` at most at a time, collected in any order.
Sum add_many(Network& network, Service& service, unsigned count, std::size_t outstanding,
             unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> tickets;
  std::set<std::uint64_t> olds;
  Sum sum;
  Session& session = network.session();
  unsigned submitted = 0;
  const std::uint64_t before = service.count(SERVED_OPERATIONS);
  while (submitted < count || !tickets.empty()) {
    while (submitted < count && tickets.size() < outstanding) {
      tickets.push_back(network.submit({ask_for(HAUL_ATOMIC_ADD, 0, 1)}));
      ++submitted;
    }
    const std::size_t pick = random() % tickets.size();
    if (session.find(tickets[pick]) != Session::Found::answered) {
      if (network.step()) continue;
      ADD_FAILURE() << "nobody asks again";
      return sum;
    }
    haul_atomic_operation done{};
    EXPECT_EQ(session.collect(tickets[pick], &done, 1), Code::ok);
    EXPECT_EQ(done.status, 0);
    sum.each_old_value_once &= olds.insert(done.old).second;
    ++sum.acknowledged;
    tickets[pick] = tickets.back();
    tickets.pop_back();
  }
  network.settle();  // stragglers, too
  sum.executed = service.count(SERVED_OPERATIONS) - before;
  sum.word = service.memory.word(0);
  return sum;
}

TEST_P(ExactlyOnce, OneAtATimeAndManyAtATime) {
  for (const std::size_t outstanding : {1u, 7u, 63u}) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(testing::Message() << outstanding << " outstanding, seed " << seed);
      Service service;
      Network network(service, GetParam().weather, seed);
      network.open();
      constexpr unsigned count = 2000;
      const Sum sum = add_many(network, service, count, outstanding, seed);
      EXPECT_EQ(sum.acknowledged, count);
      EXPECT_EQ(sum.executed, count);
      EXPECT_EQ(sum.word, count);
      EXPECT_TRUE(sum.each_old_value_once);
    }
  }
}

TEST_P(ExactlyOnce, ThroughSessionsThatComeAndGo) {
  // Late copies of a finished session's packets arrive while others live.
  Service service(8);
  Network network(service, GetParam().weather, 4);
  std::uint64_t acknowledged = 0;
  for (int client = 0; client < 100; ++client) {
    network.open();
    for (int i = 0; i < 10; ++i) {
      const std::uint64_t ticket = network.submit({ask_for(HAUL_ATOMIC_ADD, 0, 1)});
      network.until([&] { return network.session().find(ticket) == Session::Found::answered; });
      ASSERT_EQ(network.session().collect(ticket, nullptr, 0), Code::ok);
      ++acknowledged;
    }
    network.session().leave();
    network.renew();
    // Lost good-byes leave sessions behind; a minute frees their slots.
    service.now_s += SESSION_IDLE_S / 4;
  }
  network.settle();
  EXPECT_EQ(service.memory.word(0), acknowledged);
  EXPECT_EQ(service.count(SERVED_OPERATIONS), acknowledged);
}

TEST_P(ExactlyOnce, BatchesAreWholeAndInOrder) {
  Service service;
  Network network(service, GetParam().weather, 5);
  network.open();
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t ticket =
        network.submit({ask_for(HAUL_ATOMIC_ADD, 8, 3), ask_for(HAUL_ATOMIC_READ, 8),
                        ask_for(HAUL_ATOMIC_SWAP, 16, i)});
    network.until([&] { return network.session().find(ticket) == Session::Found::answered; });
    haul_atomic_operation done[3]{};
    ASSERT_EQ(network.session().collect(ticket, done, 3), Code::ok);
    ASSERT_EQ(done[0].old, 3 * i);
    ASSERT_EQ(done[1].old, 3 * i + 3);
    ASSERT_EQ(done[2].old, i == 0 ? 0 : i - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(, ExactlyOnce, testing::ValuesIn(cases),
                         [](const auto& one) { return one.param.name; });

// The control: a responder that forgets its results between packets.
TEST(ExactlyOnceControl, AForgetfulResponderIsWrong) {
  Service service;
  Network network(service, {10, 10, 20, 5 * ms}, 6);
  network.open();
  network.before_serving = [&] {
    for (unsigned i = 0; i < 4 * WIRE_RESULTS; ++i) {
      *service.tables.find_results(i / WIRE_RESULTS, i % WIRE_RESULTS) = result_entry{};
    }
  };
  const Sum sum = add_many(network, service, 2000, 7, 6);
  EXPECT_EQ(sum.acknowledged, 2000u);
  EXPECT_GT(sum.word, 2000u);
  EXPECT_EQ(sum.executed, sum.word);
}

// And one that knows its results only, not which sequence they are of.
TEST(ExactlyOnceControl, AResponderThatConfusesSequencesIsWrong) {
  Service service;
  Network network(service, {10, 10, 20, 40 * ms}, 7);
  network.open();
  network.before_serving = [&] {
    for (unsigned i = 0; i < 4 * WIRE_RESULTS; ++i) {
      service.tables.find_results(i / WIRE_RESULTS, i % WIRE_RESULTS)->state &= 0xffffffff;
    }
  };
  const Sum sum = add_many(network, service, 2000, 63, 7);
  EXPECT_NE(sum.word, 2000u);
}

}  // namespace
}  // namespace haul::atomics::test
