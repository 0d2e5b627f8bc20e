// Guarded words: stamps refuse who is older than whoever touched the word last.
#include "unit/atomic/model.hpp"
#include "unit/atomic/service.hpp"

namespace haul::atomics::test {
namespace {

constexpr std::uint64_t word_of(std::uint32_t stamp, std::uint32_t value) {
  return std::uint64_t{stamp} << 32 | value;
}

enum class By { responder, cpu };

class Guarded : public testing::TestWithParam<By> {
 protected:
  void SetUp() override { ASSERT_EQ(asker.hello(service), WIRE_OK); }
  wire_operation run(unsigned code, std::uint32_t stamp, std::uint64_t operand = 0,
                     std::uint64_t compare = 0) {
    const wire_operation one = operation(code, 0, operand, compare, 8, WIRE_GUARDED, stamp);
    if (GetParam() == By::responder) return asker.run(service, {one}).operations[0];
    wire_operation done = one;
    execute_here({window_key, window_address, 4096}, service.memory.begin(), &done, 1);
    return done;
  }
  std::uint64_t& word() { return service.memory.word(0); }
  Service service;
  Asker asker{5};
};

TEST_P(Guarded, EveryOperationActsOnTheValueAndLeavesItsStamp) {
  for (unsigned code = WIRE_READ; code <= WIRE_XOR; ++code) {
    for (const std::uint64_t value : samples) {
      for (const std::uint64_t operand : samples) {
        const auto low = static_cast<std::uint32_t>(value);
        word() = word_of(10, low);
        const Outcome wanted = model(code, low, operand, value, 0xffffffff);
        const wire_operation done = run(code, 11, operand, value);
        ASSERT_EQ(done.result, WIRE_DONE) << code;
        ASSERT_EQ(done.operand, wanted.old) << code;
        ASSERT_EQ(word(), word_of(11, static_cast<std::uint32_t>(wanted.word))) << code;
      }
    }
  }
}

TEST_P(Guarded, AnOlderStampIsRefusedWhateverItAsks) {
  for (unsigned code = WIRE_READ; code <= WIRE_XOR; ++code) {
    word() = word_of(10, 5);
    const wire_operation done = run(code, 9, 1, 5);
    EXPECT_EQ(done.result, WIRE_STALE) << code;
    EXPECT_EQ(done.operand, 0u) << code;
    EXPECT_EQ(word(), word_of(10, 5)) << code;
  }
  if (GetParam() == By::responder) {
    EXPECT_EQ(service.count(REFUSED_STALE), 8u);
  }
}

TEST_P(Guarded, AnEqualStampIsAccepted) {
  word() = word_of(10, 5);
  EXPECT_EQ(run(WIRE_ADD, 10, 1).result, WIRE_DONE);
  EXPECT_EQ(word(), word_of(10, 6));
}

TEST_P(Guarded, AReadStampsToo) {
  word() = word_of(10, 5);
  EXPECT_EQ(run(WIRE_READ, 12).operand, 5u);
  EXPECT_EQ(word(), word_of(12, 5));
  // What the reader has seen the older holder cannot change.
  EXPECT_EQ(run(WIRE_WRITE, 11, 6).result, WIRE_STALE);
  EXPECT_EQ(word(), word_of(12, 5));
}

TEST_P(Guarded, ACompareAndSwapThatDoesNotSwapStamps) {
  word() = word_of(10, 5);
  EXPECT_EQ(run(WIRE_CAS, 11, 6, 4).operand, 5u);
  EXPECT_EQ(word(), word_of(11, 5));
}

TEST_P(Guarded, StampsAreComparedModuloTheirRange) {
  struct Case {
    std::uint32_t there, mine;
    bool accepted;
  };
  const Case cases[] = {{0xffffffff, 0, true},          {0xffffffff, 5, true},
                        {0, 0xffffffff, false},         {5, 0xfffffff0, false},
                        {0xfffffff0, 0xfffffff1, true}, {0, 0x7fffffff, true},
                        {0, 0x80000000, false},         {0x80000000, 0, false},
                        {0x7fffffff, 0x80000000, true}, {0x80000000, 0x7fffffff, false}};
  for (const Case& one : cases) {
    word() = word_of(one.there, 1);
    EXPECT_EQ(run(WIRE_ADD, one.mine, 1).result, one.accepted ? WIRE_DONE : WIRE_STALE)
        << one.there << " " << one.mine;
    EXPECT_EQ(word(), one.accepted ? word_of(one.mine, 2) : word_of(one.there, 1));
  }
}

TEST_P(Guarded, AddingDoesNotCarryIntoTheStamp) {
  word() = word_of(10, 0xffffffff);
  EXPECT_EQ(run(WIRE_ADD, 10, 1).operand, 0xffffffffu);
  EXPECT_EQ(word(), word_of(10, 0));
  EXPECT_EQ(run(WIRE_WRITE, 10, ~std::uint64_t{0}).operand, 0u);
  EXPECT_EQ(word(), word_of(10, 0xffffffff));
}

INSTANTIATE_TEST_SUITE_P(, Guarded, testing::Values(By::responder, By::cpu), [](const auto& by) {
  return by.param == By::responder ? "ByResponder" : "ByCpu";
});

}  // namespace
}  // namespace haul::atomics::test
