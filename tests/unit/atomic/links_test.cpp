// Linked operations: the next one only if this one found what it compares with.
#include "unit/atomic/service.hpp"

namespace haul::atomics::test {
namespace {

constexpr unsigned linked = WIRE_LINK;

class Links : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(asker.hello(service), WIRE_OK); }
  // Of each operation.
  std::vector<unsigned> results(std::initializer_list<wire_operation> operations) {
    const WirePacket answer = asker.run(service, operations);
    std::vector<unsigned> found;
    for (unsigned i = 0; i < answer.header.count; ++i) {
      found.push_back(answer.operations[i].result);
      if (found.back() == WIRE_SKIPPED) {
        EXPECT_EQ(answer.operations[i].operand, 0u);
      }
    }
    return found;
  }
  using Results = std::vector<unsigned>;
  Service service;
  Asker asker{5};
};

TEST_F(Links, AMatchGoesOnAndAMismatchSkipsAllBehindIt) {
  service.memory.word(0) = 7;
  EXPECT_EQ(results({operation(WIRE_READ, 0, 0, 7, 8, linked), operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_DONE, WIRE_DONE}));
  EXPECT_EQ(results({operation(WIRE_READ, 0, 0, 8, 8, linked), operation(WIRE_ADD, 8, 1),
                     operation(WIRE_ADD, 8, 1), operation(WIRE_ADD, 16, 1, 0, 8, linked)}),
            (Results{WIRE_DONE, WIRE_SKIPPED, WIRE_SKIPPED, WIRE_SKIPPED}));
  EXPECT_EQ(service.memory.word(8), 1u);
  EXPECT_EQ(service.memory.word(16), 0u);
}

TEST_F(Links, WithoutOneTheNextIsExecutedWhatever) {
  EXPECT_EQ(results({operation(WIRE_READ, 0, 0, 99), operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_DONE, WIRE_DONE}));
  EXPECT_EQ(service.memory.word(8), 1u);
}

TEST_F(Links, AChainBreaksWhereItDoesNotMatch) {
  for (unsigned broken = 0; broken < 4; ++broken) {
    for (std::size_t at = 0; at < 48; at += 8) service.memory.word(at) = 0;
    const auto step = [&](unsigned i) {
      return operation(WIRE_ADD, i * 8, 1, i == broken ? 5 : 0, 8, linked);
    };
    Results wanted;
    for (unsigned i = 0; i < 5; ++i) wanted.push_back(i <= broken ? WIRE_DONE : WIRE_SKIPPED);
    EXPECT_EQ(results({step(0), step(1), step(2), step(3), operation(WIRE_ADD, 32, 1)}), wanted);
    for (unsigned i = 0; i < 5; ++i) {
      EXPECT_EQ(service.memory.word(i * 8), i <= broken ? 1u : 0u) << broken << " " << i;
    }
  }
}

TEST_F(Links, ACompareAndSwapThatSwappedMatches) {
  service.memory.word(0) = 3;
  EXPECT_EQ(results({operation(WIRE_CAS, 0, 4, 3, 8, linked), operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_DONE, WIRE_DONE}));
  EXPECT_EQ(results({operation(WIRE_CAS, 0, 5, 3, 8, linked), operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_DONE, WIRE_SKIPPED}));
  EXPECT_EQ(service.memory.word(0), 4u);
  EXPECT_EQ(service.memory.word(8), 1u);
}

TEST_F(Links, OfFourBytesCompareFour) {
  // A compare of -1 comes with its sign.
  const std::uint64_t minus_one = ~std::uint64_t{0};
  service.memory.word(0) = 0x11111111ffffffff;
  EXPECT_EQ(results({operation(WIRE_CAS, 0, 4, minus_one, 4, linked), operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_DONE, WIRE_DONE}));
  EXPECT_EQ(service.memory.word(0), 0x1111111100000004u);
  service.memory.word(16) = 9ull << 32 | 0xffffffff;
  EXPECT_EQ(results({operation(WIRE_READ, 16, 0, minus_one, 8, linked | WIRE_GUARDED, 9),
                     operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_DONE, WIRE_DONE}));
  // Eight bytes are all compared.
  service.memory.word(24) = 5;
  EXPECT_EQ(
      results({operation(WIRE_READ, 24, 0, 1ull << 32 | 5, 8, linked), operation(WIRE_ADD, 8, 1)}),
      (Results{WIRE_DONE, WIRE_SKIPPED}));
  EXPECT_EQ(service.memory.word(8), 2u);
}

TEST_F(Links, ARefusedOperationBreaksThem) {
  EXPECT_EQ(results({operation(WIRE_READ, 3, 0, 0, 8, linked), operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_UNALIGNED, WIRE_SKIPPED}));
  service.memory.word(0) = 9ull << 32;
  EXPECT_EQ(results({operation(WIRE_READ, 0, 0, 0, 8, linked | WIRE_GUARDED, 8),
                     operation(WIRE_ADD, 8, 1)}),
            (Results{WIRE_STALE, WIRE_SKIPPED}));
  EXPECT_EQ(service.memory.word(8), 0u);
}

TEST_F(Links, TheCpuObeysThemToo) {
  service.memory.word(0) = 7;
  wire_operation operations[] = {operation(WIRE_ADD, 0, 1, 7, 8, linked),
                                 operation(WIRE_ADD, 0, 1, 7, 8, linked), operation(WIRE_ADD, 0, 1),
                                 operation(WIRE_ADD, 0, 1)};
  execute_here({window_key, window_address, 4096}, service.memory.begin(), operations, 4);
  const Results found{operations[0].result, operations[1].result, operations[2].result,
                      operations[3].result};
  EXPECT_EQ(found, (Results{WIRE_DONE, WIRE_DONE, WIRE_SKIPPED, WIRE_SKIPPED}));
  EXPECT_EQ(service.memory.word(0), 9u);
}

TEST_F(Links, ADuplicateRepeatsWhatWasSkipped) {
  const WirePacket question =
      asker.request({operation(WIRE_READ, 0, 0, 1, 8, linked), operation(WIRE_ADD, 8, 1)});
  WirePacket first = question, again = question;
  ASSERT_TRUE(asker.ask(service, &first));
  service.memory.word(0) = 1;  // now it would match
  ASSERT_TRUE(asker.ask(service, &again));
  EXPECT_EQ(again.operations[1].result, WIRE_SKIPPED);
  EXPECT_EQ(service.memory.word(8), 0u);
}

}  // namespace
}  // namespace haul::atomics::test
