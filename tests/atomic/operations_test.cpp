// Every operation, batches, links and guarded words, over every carrier and by the CPU of whoever
// has mapped the window.
#include <vector>

#include "atomic/node.hpp"
#include "unit/atomic/model.hpp"

namespace atomic_test {
namespace {

using haul::atomics::test::model;
using haul::atomics::test::Outcome;
using haul::atomics::test::samples;

class Operations : public OnCarrier {
 protected:
  // Here and there: the same operations, by the network and by the CPU.
  template <class Test>
  void both_ways(Test test) {
    for (const bool by_cpu : {false, true}) {
      SCOPED_TRACE(by_cpu ? "by the CPU" : "by the network");
      test([&](std::vector<haul_atomic_operation>& operations) {
        return by_cpu ? haul_atomic_window_run(window.get(), operations.data(), operations.size())
                      : haul_atomic_run(remote.get(), operations.data(), operations.size());
      });
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(Operations, SingleOnes) {
  std::uint64_t old = 0;
  word() = 10;
  ASSERT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 5, &old), 0);
  EXPECT_EQ(old, 10u);
  EXPECT_EQ(word(), 15u);
  ASSERT_EQ(haul_atomic_fetch_write(remote.get(), at(0), 7, &old), 0);
  EXPECT_EQ(old, 15u);
  ASSERT_EQ(haul_atomic_compare_swap(remote.get(), at(0), 8, 6, &old), 0);
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(word(), 7u);
  ASSERT_EQ(haul_atomic_compare_swap(remote.get(), at(0), 8, 7, &old), 0);
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(word(), 8u);
  ASSERT_EQ(haul_atomic_read(remote.get(), at(0), &old), 0);
  EXPECT_EQ(old, 8u);
  ASSERT_EQ(haul_atomic_write(remote.get(), at(8), 99), 0);
  EXPECT_EQ(word(8), 99u);
  ASSERT_EQ(haul_atomic_fetch_add(remote.get(), at(0), 1, nullptr), 0);
  EXPECT_EQ(word(), 9u);
}

TEST_P(Operations, AllDoWhatTheModelDoes) {
  both_ways([&](auto run) {
    for (unsigned code = HAUL_ATOMIC_READ; code <= HAUL_ATOMIC_XOR; ++code) {
      for (const std::uint64_t operand : samples) {
        const std::uint64_t before = 0x0123456789abcdef;
        const std::uint64_t compare = operand % 2 == 0 ? before : operand;
        const std::uint64_t low_compare = operand % 2 == 0 ? before & 0xffffffff : operand;
        word(64) = word(72) = before;
        std::vector<haul_atomic_operation> operations = {
            operation(code, at(64), operand, compare),
            operation(code, at(72), operand, low_compare, 4)};
        ASSERT_EQ(run(operations), 0) << haul_last_error();
        const Outcome wide = model(code, before, operand, compare, ~0ull);
        const Outcome low = model(code, before, operand, low_compare, 0xffffffff);
        EXPECT_EQ(operations[0].status, 0);
        EXPECT_EQ(operations[0].old, wide.old) << code;
        EXPECT_EQ(word(64), wide.word) << code;
        EXPECT_EQ(operations[1].status, 0);
        EXPECT_EQ(operations[1].old, low.old) << code;
        EXPECT_EQ(word(72), (before & 0xffffffff00000000) | low.word) << code;
      }
    }
  });
}

TEST_P(Operations, BatchesOfEverySize) {
  both_ways([&](auto run) {
    word(4096) = 0;
    std::uint64_t value = 0;
    for (std::size_t count = 1; count <= HAUL_ATOMIC_MAX_BATCH; ++count) {
      std::vector<haul_atomic_operation> operations(count, operation(HAUL_ATOMIC_ADD, at(4096), 3));
      ASSERT_EQ(run(operations), 0) << haul_last_error();
      for (const haul_atomic_operation& one : operations) {
        EXPECT_EQ(one.status, 0);
        EXPECT_EQ(one.old, value);
        value += 3;
      }
    }
    EXPECT_EQ(word(4096), value);
  });
}

TEST_P(Operations, LinksSkipWhatIsBehindAMismatch) {
  both_ways([&](auto run) {
    word(0) = 5;
    word(8) = 0;
    std::vector<haul_atomic_operation> operations = {
        operation(HAUL_ATOMIC_CAS, at(0), 6, 5, 8, HAUL_ATOMIC_LINK),
        operation(HAUL_ATOMIC_ADD, at(8), 1, 0, 8, HAUL_ATOMIC_LINK),
        operation(HAUL_ATOMIC_CAS, at(0), 7, 5, 8, HAUL_ATOMIC_LINK),
        operation(HAUL_ATOMIC_ADD, at(8), 1), operation(HAUL_ATOMIC_ADD, at(8), 1)};
    EXPECT_REFUSED(HAUL_EAGAIN, run(operations));
    const int wanted[] = {0, 0, 0, HAUL_EAGAIN, HAUL_EAGAIN};
    for (std::size_t i = 0; i < operations.size(); ++i) EXPECT_EQ(operations[i].status, wanted[i]);
    EXPECT_EQ(operations[2].old, 6u);
    EXPECT_EQ(word(0), 6u);
    EXPECT_EQ(word(8), 1u);
  });
}

TEST_P(Operations, GuardedWordsRefuseOlderTokens) {
  both_ways([&](auto run) {
    word(16) = 0;
    const auto one = [&](unsigned code, std::uint64_t token, std::uint64_t operand, int status,
                         std::uint64_t old) {
      std::vector<haul_atomic_operation> operations = {
          operation(code, at(16), operand, 0, 8, HAUL_ATOMIC_GUARDED, token)};
      EXPECT_EQ(run(operations), status);
      EXPECT_EQ(operations[0].status, status);
      EXPECT_EQ(operations[0].old, old);
    };
    one(HAUL_ATOMIC_WRITE, 5, 70, 0, 0);
    one(HAUL_ATOMIC_ADD, 5, 1, 0, 70);
    one(HAUL_ATOMIC_ADD, 4, 1, HAUL_ESTALE, 0);
    // Its low half alone counts.
    one(HAUL_ATOMIC_READ, 9ull << 32 | 6, 0, 0, 71);
    one(HAUL_ATOMIC_WRITE, 5, 1, HAUL_ESTALE, 0);
    EXPECT_EQ(word(16), 6ull << 32 | 71);
  });
  // What one side has stamped the other may not change.
  haul_atomic_operation here = operation(HAUL_ATOMIC_READ, at(16), 0, 0, 8, HAUL_ATOMIC_GUARDED, 8);
  haul_atomic_operation there = operation(HAUL_ATOMIC_ADD, at(16), 1, 0, 8, HAUL_ATOMIC_GUARDED, 7);
  EXPECT_EQ(haul_atomic_window_run(window.get(), &here, 1), 0);
  EXPECT_REFUSED(HAUL_ESTALE, haul_atomic_run(remote.get(), &there, 1));
  there.token = 10;
  here.token = 9;
  EXPECT_EQ(haul_atomic_run(remote.get(), &there, 1), 0);
  EXPECT_REFUSED(HAUL_ESTALE, haul_atomic_window_run(window.get(), &here, 1));
  if (GetParam().is_fabric()) return;
  EXPECT_GE(counter_of(server, "refused operations: stale token"), 1u);
}

TEST_P(Operations, RefusedOnesSayWhyAndTouchNothing) {
  both_ways([&](auto run) {
    struct Case {
      haul_atomic_operation asked;
      int status;
    };
    const Case cases[] = {
        {operation(HAUL_ATOMIC_ADD, at(8192), 1), HAUL_EFAULT},
        {operation(HAUL_ATOMIC_ADD, at(0) - 8, 1), HAUL_EFAULT},
        {operation(HAUL_ATOMIC_ADD, 0, 1), HAUL_EFAULT},
        {operation(HAUL_ATOMIC_ADD, at(4), 1), HAUL_EINVAL},
        {operation(HAUL_ATOMIC_ADD, at(2), 1, 0, 4), HAUL_EINVAL},
        {operation(0, at(0), 1), HAUL_EINVAL},
        {operation(9, at(0), 1), HAUL_EINVAL},
        {operation(HAUL_ATOMIC_ADD, at(0), 1, 0, 2), HAUL_EINVAL},
        {operation(HAUL_ATOMIC_ADD, at(0), 1, 0, 8, 4), HAUL_EINVAL},
        {operation(HAUL_ATOMIC_ADD, at(0), 1, 0, 4, HAUL_ATOMIC_GUARDED), HAUL_EINVAL},
    };
    for (const Case& one : cases) {
      std::vector<haul_atomic_operation> operations = {one.asked};
      EXPECT_REFUSED(one.status, run(operations));
      EXPECT_EQ(operations[0].status, one.status);
      EXPECT_EQ(operations[0].old, 0u);
    }
    for (std::size_t offset = 0; offset < 8192; offset += 8) ASSERT_EQ(word(offset), 0u);
  });
  if (GetParam().is_fabric()) return;
  EXPECT_EQ(counter_of(server, "refused operations: argument"), 10u);
}

class Responders : public OnCarrier {};

TEST_P(Responders, CountWhatTheyServe) {
  haul_atomic_operation operations[3];
  for (auto& one : operations) one = operation(HAUL_ATOMIC_ADD, at(0), 1);
  const std::uint64_t packets = counter_of(server, "served packets");
  const std::uint64_t served = counter_of(server, "served operations");
  for (int i = 0; i < 10; ++i) ASSERT_EQ(haul_atomic_run(remote.get(), operations, 3), 0);
  EXPECT_EQ(counter_of(server, "served packets"), packets + 10);
  EXPECT_EQ(counter_of(server, "served operations"), served + 30);
  EXPECT_GE(counter_of(server, "served hellos"), 1u);
  if (description_of(client).find("replies by xdp") != std::string::npos) {
    const bool by_map = GetParam().hearing != HAUL_ATOMIC_HEAR_SOCKET;
    EXPECT_EQ(counter_of(client, "replies completed") > 0, by_map);
  }
}

INSTANTIATE_TEST_SUITE_P(, Operations, testing::ValuesIn(carriers), name_of_carrier);
INSTANTIATE_TEST_SUITE_P(, Responders, testing::ValuesIn(responder_carriers()), name_of_carrier);

}  // namespace
}  // namespace atomic_test
