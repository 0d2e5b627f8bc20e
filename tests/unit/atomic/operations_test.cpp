// Every operation at every width against a model, by the responder and by the CPU
// (haul_atomic_window_run's way); places that an operation may not act on.
#include "unit/atomic/model.hpp"
#include "unit/atomic/service.hpp"

namespace haul::atomics::test {
namespace {

constexpr std::uint64_t half = 0xffffffff;

// Who executes.
enum class By { responder, cpu };

class Operations : public testing::TestWithParam<By> {
 protected:
  void SetUp() override { ASSERT_EQ(asker.hello(service), WIRE_OK); }
  wire_operation run(const wire_operation& operation) {
    if (GetParam() == By::responder) {
      const WirePacket answer = asker.run(service, {operation});
      EXPECT_EQ(answer.header.status, WIRE_OK);
      return answer.operations[0];
    }
    wire_operation one = operation;
    execute_here({window_key, window_address, window_bytes}, service.memory.begin(), &one, 1);
    return one;
  }
  static constexpr std::size_t window_bytes = 2 * Memory::page;
  Service service{4, window_bytes};
  Asker asker{5};
};

TEST_P(Operations, DoWhatTheModelDoes) {
  // The last word of the first page: its neighbours must stay.
  constexpr std::size_t at = Memory::page - 8;
  for (unsigned code = WIRE_READ; code <= WIRE_XOR; ++code) {
    for (const std::uint64_t word : samples) {
      for (const std::uint64_t operand : samples) {
        for (const std::uint64_t compare : {word, word & half, ~word}) {
          SCOPED_TRACE(testing::Message() << "code " << code << " word " << word << " operand "
                                          << operand << " compare " << compare);
          service.memory.word(at) = word;
          const Outcome wide = model(code, word, operand, compare, ~0ull);
          wire_operation done = run(operation(code, at, operand, compare));
          ASSERT_EQ(done.result, WIRE_DONE);
          ASSERT_EQ(done.operand, wide.old);
          ASSERT_EQ(service.memory.word(at), wide.word);

          service.memory.word(at) = word;
          const Outcome low = model(code, word & half, operand, compare, half);
          done = run(operation(code, at, operand, compare, 4));
          ASSERT_EQ(done.result, WIRE_DONE);
          ASSERT_EQ(done.operand, low.old);
          ASSERT_EQ(service.memory.word(at), (word & ~half) | low.word);

          service.memory.word(at) = word;
          const Outcome high = model(code, word >> 32, operand, compare, half);
          done = run(operation(code, at + 4, operand, compare, 4));
          ASSERT_EQ(done.result, WIRE_DONE);
          ASSERT_EQ(done.operand, high.old);
          ASSERT_EQ(service.memory.word(at), (word & half) | high.word << 32);
          ASSERT_EQ(service.memory.word(at - 8), 0u);
          ASSERT_EQ(service.memory.word(at + 8), 0u);
        }
      }
    }
  }
}

TEST_P(Operations, ReachEveryWordOfTheWindow) {
  for (std::size_t at = 0; at < window_bytes; at += 8) {
    ASSERT_EQ(run(operation(WIRE_WRITE, at, at + 1)).result, WIRE_DONE);
  }
  for (std::size_t at = 0; at < window_bytes; at += 8) {
    ASSERT_EQ(service.memory.word(at), at + 1);
    ASSERT_EQ(run(operation(WIRE_READ, at)).operand, at + 1);
  }
  EXPECT_TRUE(service.memory.fences_stand());
}

TEST_P(Operations, RefuseWhatIsOutsideUnalignedOrUnknown) {
  struct Case {
    wire_operation asked;
    wire_result result;
  };
  const auto guarded = static_cast<unsigned>(WIRE_GUARDED);
  wire_operation wrapped = operation(WIRE_ADD, 0, 1);
  wrapped.address = 0;
  const std::uint64_t before_it = ~std::uint64_t{0} - 7;
  const Case cases[] = {
      {operation(WIRE_ADD, window_bytes, 1), WIRE_OUTSIDE},
      {operation(WIRE_ADD, window_bytes, 1, 0, 4), WIRE_OUTSIDE},
      {operation(WIRE_ADD, window_bytes + 4096, 1), WIRE_OUTSIDE},
      {operation(WIRE_ADD, before_it, 1), WIRE_OUTSIDE},
      {operation(WIRE_ADD, 1ull << 44, 1), WIRE_OUTSIDE},
      {wrapped, WIRE_OUTSIDE},
      {operation(WIRE_ADD, 4, 1), WIRE_UNALIGNED},
      {operation(WIRE_ADD, 1, 1), WIRE_UNALIGNED},
      {operation(WIRE_ADD, 2, 1, 0, 4), WIRE_UNALIGNED},
      {operation(WIRE_ADD, 4093, 1), WIRE_UNALIGNED},
      {operation(0, 0, 1), WIRE_UNKNOWN},
      {operation(9, 0, 1), WIRE_UNKNOWN},
      {operation(255, 0, 1), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 0), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 1), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 2), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 16), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 8, 4), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 8, 0x80), WIRE_UNKNOWN},
      {operation(WIRE_ADD, 0, 1, 0, 4, guarded), WIRE_UNKNOWN},
  };
  std::uint64_t refused = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::Message()
                 << "code " << +one.asked.code << " width " << +one.asked.width << " flags "
                 << +one.asked.flags << " at " << one.asked.address - window_address);
    const wire_operation done = run(one.asked);
    EXPECT_EQ(done.result, one.result);
    EXPECT_EQ(done.operand, 0u);
    if (GetParam() == By::responder) {
      EXPECT_EQ(service.count(REFUSED_OPERATIONS), ++refused);
      EXPECT_EQ(service.count(SERVED_OPERATIONS), 0u);
    }
  }
  for (std::size_t at = 0; at < window_bytes; at += 8) ASSERT_EQ(service.memory.word(at), 0u);
  EXPECT_TRUE(service.memory.fences_stand());
}

TEST(OddWindow, AWordThatSticksOutIsOutside) {
  Service service(4, 12);
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  const WirePacket answer = asker.run(
      service,
      {operation(WIRE_ADD, 0, 1), operation(WIRE_ADD, 8, 1), operation(WIRE_ADD, 8, 1, 0, 4)});
  EXPECT_EQ(answer.operations[0].result, WIRE_DONE);
  EXPECT_EQ(answer.operations[1].result, WIRE_OUTSIDE);
  EXPECT_EQ(answer.operations[2].result, WIRE_DONE);
  EXPECT_EQ(service.memory.word(8), 1u);
}

TEST(Batch, IsExecutedInItsOrder) {
  Service service;
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  WirePacket packet = asker.request({});
  packet.header.count = WIRE_MAX_OPERATIONS;
  std::uint64_t word = 3;
  std::uint64_t olds[WIRE_MAX_OPERATIONS];
  service.memory.word(0) = word;
  for (unsigned i = 0; i < WIRE_MAX_OPERATIONS; ++i) {
    // Adding and exclusive-or do not commute.
    const wire_code code = i % 2 == 0 ? WIRE_ADD : WIRE_XOR;
    packet.operations[i] = operation(code, 0, 7 * i + 5);
    olds[i] = word;
    word = model(code, word, 7 * i + 5, 0, ~0ull).word;
  }
  seal(&packet);
  ASSERT_TRUE(asker.ask(service, &packet));
  ASSERT_TRUE(intact(packet, header_bytes + 16 * sizeof(wire_operation)));
  for (unsigned i = 0; i < WIRE_MAX_OPERATIONS; ++i) {
    EXPECT_EQ(packet.operations[i].operand, olds[i]) << i;
    EXPECT_EQ(packet.operations[i].result, WIRE_DONE) << i;
  }
  EXPECT_EQ(service.memory.word(0), word);
  EXPECT_EQ(service.count(SERVED_OPERATIONS), 16u);
  EXPECT_EQ(service.count(SERVED_PACKETS), 1u);
}

TEST(Batch, OneRefusedOperationDoesNotStopTheOthers) {
  Service service;
  Asker asker(5);
  ASSERT_EQ(asker.hello(service), WIRE_OK);
  const WirePacket answer = asker.run(
      service, {operation(WIRE_ADD, 0, 1), operation(WIRE_ADD, 3, 1), operation(WIRE_ADD, 0, 1)});
  EXPECT_EQ(answer.operations[1].result, WIRE_UNALIGNED);
  EXPECT_EQ(answer.operations[2].operand, 1u);
  EXPECT_EQ(service.memory.word(0), 2u);
}

INSTANTIATE_TEST_SUITE_P(, Operations, testing::Values(By::responder, By::cpu), [](const auto& by) {
  return by.param == By::responder ? "ByResponder" : "ByCpu";
});

}  // namespace
}  // namespace haul::atomics::test
