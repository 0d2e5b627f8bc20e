// RMA and atomics between matchers: every size class and path, several targets, keys and rights,
// every atomic on every datatype against the CPU's own arithmetic.
#include <complex>
#include <limits>

#include "fabric/protocol/atomic_ops.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace haul::fabric::test {
namespace {

using Form = AtomicRequest::Form;

ssize_t rma(World& world, bool write, void* local, std::size_t bytes, std::uint64_t key,
            std::uint64_t address, void* context, std::uint64_t flags = FI_COMPLETION,
            std::uint64_t data = 0) {
  const iovec piece{local, bytes};
  const fi_rma_iov target{address, bytes, key};
  RmaRequest request;
  request.is_write = write;
  request.pieces = &piece;
  request.count = 1;
  request.targets = &target;
  request.target_count = 1;
  request.flags = flags;
  request.data = data;
  request.context = context;
  return world[0].matcher.rma(world[0].peer(world[1]), request);
}

TEST(Rma, WritesAndReadsEverySizeOnEveryPath) {
  const Reachability ways[] = {{},
                               {.pull = true, .claims = false},
                               {.pull = true, .push = true, .delay = 2},
                               {.pull = true, .claims = false, .fail_after = 1}};
  for (const Reachability& reach : ways) {
    World world(2);
    world[0].network.reach = world[1].network.reach = reach;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{32}, std::size_t{1000}, 16 * kib,
                                    16 * kib + 1, 64 * kib, 300 * kib}) {
      SCOPED_TRACE(bytes);
      world[0].network.starts = world[1].network.starts = 0;
      auto data = pattern(bytes, bytes);
      int context = 0;
      ASSERT_EQ(rma(world, true, data.data(), bytes, 7, 4096, &context), 0);
      world.settle();
      const CompletionNotice written = world[0].take(&context);
      EXPECT_EQ(written.error, 0);
      EXPECT_EQ(written.flags, std::uint64_t{FI_RMA | FI_WRITE});
      EXPECT_EQ(std::memcmp(world[1].region.data() + 4096, data.data(), bytes), 0);
      ASSERT_EQ(world[1].completions.size(), 1u);  // for counters: no entry wanted
      EXPECT_FALSE(world[1].completions[0].wanted);
      EXPECT_EQ(world[1].completions[0].event, Event::remote_write);
      world[1].completions.clear();

      std::vector<std::byte> got(bytes);
      ASSERT_EQ(rma(world, false, got.data(), bytes, 7, 4096, &context), 0);
      world.settle();
      EXPECT_EQ(world[0].take(&context).error, 0);
      EXPECT_EQ(got, data);
      world[1].completions.clear();
    }
    EXPECT_TRUE(world[0].matcher.flushed());
    EXPECT_TRUE(world[1].matcher.flushed());
  }
}

TEST(Rma, DataOfAWriteReachesTheTarget) {
  World world(2);
  auto data = pattern(100 * kib, 1);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, 100 * kib}) {
    int context = 0;
    ASSERT_EQ(
        rma(world, true, data.data(), bytes, 7, 0, &context, FI_COMPLETION | FI_REMOTE_CQ_DATA, 99),
        0);
    world.settle();
    ASSERT_EQ(world[1].completions.size(), 1u);
    const CompletionNotice seen = world[1].completions[0];
    EXPECT_TRUE(seen.wanted);
    EXPECT_EQ(seen.data, 99u);
    EXPECT_EQ(seen.flags, std::uint64_t{FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA});
    EXPECT_EQ(seen.length, bytes);
    EXPECT_EQ(world[0].take(&context).error, 0);
    world[1].completions.clear();
  }
}

TEST(Rma, WrongKeysRightsAndBoundsFailAtTheInitiatorAlone) {
  World world(2);
  std::vector<std::byte> data(100 * kib);
  const std::size_t end = world[1].region.size();
  for (const std::size_t bytes : {std::size_t{16}, 100 * kib}) {
    for (const bool write : {true, false}) {
      int context = 0;
      const auto fails_with = [&](std::uint64_t key, std::uint64_t address) {
        EXPECT_EQ(rma(world, write, data.data(), bytes, key, address, &context), 0);
        world.settle();
        return world[0].take(&context).error;
      };
      EXPECT_EQ(fails_with(8, 0), FI_EKEYREJECTED);
      EXPECT_EQ(fails_with(7, end - bytes + 1), FI_EINVAL);
      EXPECT_EQ(fails_with(7, ~std::uint64_t{0}), FI_EINVAL);
      EXPECT_EQ(fails_with(7, end - bytes), 0);
      world[1].rights = write ? FI_REMOTE_READ : FI_REMOTE_WRITE;
      EXPECT_EQ(fails_with(7, 0), FI_EACCES);
      world[1].rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    }
  }
}

TEST(Rma, SeveralTargetsEndOnce) {
  World world(2);
  auto data = pattern(60 * kib, 5);
  const fi_rma_iov targets[] = {{500000, 10, 7}, {200000, 40 * kib, 7}, {0, 20 * kib - 10, 7}};
  const iovec pieces[] = {{data.data(), 30 * kib}, {data.data() + 30 * kib, 30 * kib}};
  for (const bool write : {true, false}) {
    int context = 0;
    std::vector<std::byte> got(60 * kib);
    const iovec into[] = {{got.data(), 1}, {got.data() + 1, got.size() - 1}};
    RmaRequest request;
    request.is_write = write;
    request.pieces = write ? pieces : into;
    request.count = 2;
    request.targets = targets;
    request.target_count = 3;
    request.flags = FI_COMPLETION;
    request.context = &context;
    ASSERT_EQ(world[0].matcher.rma(world[0].peer(world[1]), request), 0);
    world.settle();
    EXPECT_EQ(world[0].take(&context).error, 0);
    EXPECT_EQ(world[0].take(&context).error, -1);
    if (!write) {
      EXPECT_EQ(got, data);
    }
  }
  EXPECT_EQ(std::memcmp(world[1].region.data() + 200000, data.data() + 10, 40 * kib), 0);
}

// ---- atomics ----

struct Element {
  alignas(16) std::byte bytes[32] = {};
};

// The result of one operation on doubles or 64-bit integers, by plain arithmetic.
template <class T>
T expected(fi_op operation, T old, T operand, T comparand) {
  switch (static_cast<int>(operation)) {
    case FI_MIN: return std::min(old, operand);
    case FI_MAX: return std::max(old, operand);
    case FI_SUM: return static_cast<T>(old + operand);
    case FI_PROD:
      // (The product of two of 16 bits does not fit an int.)
      if constexpr (sizeof(T) < sizeof(int))
        return static_cast<T>(unsigned(old) * unsigned(operand));
      return static_cast<T>(old * operand);
    case FI_LOR: return T(old != T(0) || operand != T(0));
    case FI_LAND: return T(old != T(0) && operand != T(0));
    case FI_LXOR: return T((old != T(0)) != (operand != T(0)));
    case FI_ATOMIC_READ: return old;
    case FI_ATOMIC_WRITE: return operand;
    case FI_CSWAP: return comparand == old ? operand : old;
    case FI_CSWAP_NE: return comparand != old ? operand : old;
    case FI_CSWAP_LE: return comparand <= old ? operand : old;
    case FI_CSWAP_LT: return comparand < old ? operand : old;
    case FI_CSWAP_GE: return comparand >= old ? operand : old;
    case FI_CSWAP_GT: return comparand > old ? operand : old;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (static_cast<int>(operation)) {
      case FI_BOR: return static_cast<T>(old | operand);
      case FI_BAND: return static_cast<T>(old & operand);
      case FI_BXOR: return static_cast<T>(old ^ operand);
      case FI_MSWAP: return static_cast<T>((operand & comparand) | (old & ~comparand));
      default: break;
    }
  }
  ADD_FAILURE() << "no such operation " << operation;
  return old;
}

template <class T>
void every_operation(fi_datatype datatype) {
  World world(2);
  const T values[] = {T(0), T(1), T(3), T(100), static_cast<T>(-2)};
  for (const Form form : {Form::base, Form::fetch, Form::compare}) {
    for (int op = FI_MIN; op <= FI_MSWAP; ++op) {
      const auto operation = static_cast<fi_op>(op);
      std::size_t most = 0;
      if (atomic_supported(form, operation, datatype, &most) != 0) continue;
      EXPECT_GE(most, 128u);
      for (const T old : values) {
        for (const T operand : values) {
          const T comparand = values[2];
          auto* target = reinterpret_cast<T*>(world[1].region.data() + 64);
          target[0] = old;
          target[1] = operand;
          T operands[2] = {operand, old};
          T comparands[2] = {comparand, comparand};
          T results[2] = {};
          const fi_ioc operand_piece{operands, 2}, comparand_piece{comparands, 2};
          const fi_ioc result_piece{results, 2};
          const fi_rma_ioc where{64, 2, 7};
          int context = 0;
          AtomicRequest request;
          request.form = form;
          request.operation = operation;
          request.datatype = datatype;
          request.operands = &operand_piece;
          request.operand_count = 1;
          request.comparands = &comparand_piece;
          request.comparand_count = form == Form::compare ? 1 : 0;
          request.results = &result_piece;
          request.result_count = form == Form::base ? 0 : 1;
          request.targets = &where;
          request.target_count = 1;
          request.flags = FI_COMPLETION;
          request.context = &context;
          ASSERT_EQ(world[0].matcher.atomic(world[0].peer(world[1]), request), 0);
          world.settle();
          ASSERT_EQ(world[0].take(&context).error, 0);
          EXPECT_EQ(target[0], expected(operation, old, operand, comparand)) << "op " << op;
          EXPECT_EQ(target[1], expected(operation, operand, old, comparand)) << "op " << op;
          if (form != Form::base) {
            EXPECT_EQ(results[0], old) << "op " << op;
            EXPECT_EQ(results[1], operand) << "op " << op;
          }
          world[1].completions.clear();
        }
      }
    }
  }
}

TEST(Atomics, EveryOperationOnEveryOrderedType) {
  every_operation<std::int8_t>(FI_INT8);
  every_operation<std::uint8_t>(FI_UINT8);
  every_operation<std::int16_t>(FI_INT16);
  every_operation<std::uint16_t>(FI_UINT16);
  every_operation<std::int32_t>(FI_INT32);
  every_operation<std::uint32_t>(FI_UINT32);
  every_operation<std::int64_t>(FI_INT64);
  every_operation<std::uint64_t>(FI_UINT64);
  every_operation<float>(FI_FLOAT);
  every_operation<double>(FI_DOUBLE);
  every_operation<long double>(FI_LONG_DOUBLE);
}

TEST(Atomics, ComplexAndWideTypes) {
  const std::complex<double> a(1, 2), b(3, -4);
  Element target, result;
  std::memcpy(target.bytes, &a, sizeof a);
  apply_atomic(FI_PROD, FI_DOUBLE_COMPLEX, 1, target.bytes, &b, nullptr, result.bytes);
  std::complex<double> now, before;
  std::memcpy(static_cast<void*>(&now), target.bytes, sizeof now);
  std::memcpy(static_cast<void*>(&before), result.bytes, sizeof before);
  EXPECT_EQ(now, a * b);
  EXPECT_EQ(before, a);
  const std::uint64_t wide[2] = {~std::uint64_t{0}, 0}, one[2] = {1, 0};
  std::memcpy(target.bytes, wide, sizeof wide);
  apply_atomic(FI_SUM, FI_UINT128, 1, target.bytes, one, nullptr, nullptr);
  std::uint64_t sum[2];
  std::memcpy(sum, target.bytes, sizeof sum);
  EXPECT_EQ(sum[0], 0u);
  EXPECT_EQ(sum[1], 1u);
  EXPECT_NE(atomic_supported(Form::fetch, FI_MIN, FI_DOUBLE_COMPLEX, nullptr), 0);
  EXPECT_NE(atomic_supported(Form::fetch, FI_BOR, FI_DOUBLE, nullptr), 0);
  EXPECT_NE(atomic_supported(Form::base, FI_ATOMIC_READ, FI_UINT64, nullptr), 0);
  EXPECT_NE(atomic_supported(Form::base, FI_CSWAP, FI_UINT64, nullptr), 0);
  EXPECT_NE(atomic_supported(Form::fetch, FI_SUM, static_cast<fi_datatype>(99), nullptr), 0);
}

TEST(Atomics, AreRefusedWithoutRightsOrAlignment) {
  World world(2);
  std::uint64_t operand = 1, result = 0;
  const fi_ioc operand_piece{&operand, 1}, result_piece{&result, 1};
  fi_rma_ioc where{64, 1, 7};
  int context = 0;
  AtomicRequest request;
  request.form = Form::fetch;
  request.operands = &operand_piece;
  request.operand_count = 1;
  request.results = &result_piece;
  request.result_count = 1;
  request.targets = &where;
  request.target_count = 1;
  request.flags = FI_COMPLETION;
  request.context = &context;
  const auto fails_with = [&] {
    EXPECT_EQ(world[0].matcher.atomic(world[0].peer(world[1]), request), 0);
    world.settle();
    return world[0].take(&context).error;
  };
  EXPECT_EQ(fails_with(), 0);
  where.addr = 65;
  EXPECT_EQ(fails_with(), FI_EINVAL);
  where.addr = world[1].region.size();
  EXPECT_EQ(fails_with(), FI_EINVAL);
  where.addr = 64;
  where.key = 1;
  EXPECT_EQ(fails_with(), FI_EKEYREJECTED);
  where.key = 7;
  world[1].rights = FI_REMOTE_READ;
  EXPECT_EQ(fails_with(), FI_EACCES);
  where.count = 2;  // more than there are operands
  EXPECT_EQ(world[0].matcher.atomic(world[0].peer(world[1]), request), -FI_EINVAL);
}

}  // namespace
}  // namespace haul::fabric::test
