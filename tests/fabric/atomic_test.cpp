// Every atomic operation on every datatype that the provider claims, against a model; and their
// order, sizes and refusals.
#include <gtest/gtest.h>

#include <algorithm>

#include "atomic_model.hpp"
#include "sides.hpp"
#include "transfer.hpp"

namespace fabric_test {
namespace {

const Wish atomic_wish{.caps = FI_ATOMIC | FI_RMA | FI_MSG | FI_TAGGED};

enum class Family { base, fetch, compare };
constexpr Family families[] = {Family::base, Family::fetch, Family::compare};

bool belongs(Family family, fi_op op) {
  const bool compares = op >= FI_CSWAP && op <= FI_MSWAP;
  if (family == Family::compare) return compares;
  if (family == Family::base && op == FI_ATOMIC_READ) return false;
  return !compares;
}

std::uint64_t query_flag(Family family) {
  switch (family) {
    case Family::base: return 0;
    case Family::fetch: return FI_FETCH_ATOMIC;
    case Family::compare: return FI_COMPARE_ATOMIC;
  }
  return 0;
}

int valid(fid_ep* ep, Family family, fi_datatype type, fi_op op, std::size_t* count) {
  switch (family) {
    case Family::base: return fi_atomicvalid(ep, type, op, count);
    case Family::fetch: return fi_fetch_atomicvalid(ep, type, op, count);
    case Family::compare: return fi_compare_atomicvalid(ep, type, op, count);
  }
  return -FI_EOPNOTSUPP;
}

enum class Form { plain, vector, msg, inject };

template <typename T>
struct Case {
  Pair& pair;
  Region& region;
  fi_datatype type;
  fi_op op;

  void run(Family family, Form form, std::size_t count) {
    SCOPED_TRACE(std::string(fi_tostr(&op, FI_TYPE_ATOMIC_OP)) + " " +
                 fi_tostr(&type, FI_TYPE_ATOMIC_TYPE) + ", family " +
                 std::to_string(static_cast<int>(family)) + ", form " +
                 std::to_string(static_cast<int>(form)) + ", " + std::to_string(count));
    std::vector<T> before(count), operand(count), compare(count), result(count), wanted;
    for (std::size_t i = 0; i < count; ++i) {
      before[i] = sample_value<T>(i * 3 + 1);
      operand[i] = sample_value<T>(i * 7 + 2);
      compare[i] = i % 2 == 0 ? before[i] : sample_value<T>(i * 11 + 5);
    }
    wanted = before;
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(model_atomic(op, wanted[i], operand[i], compare[i]))
          << "claimed, but no such operation";
    auto* target = reinterpret_cast<T*>(region.data() + 64);
    std::copy(before.begin(), before.end(), target);
    Op done;
    const ssize_t status = call(family, form, count, operand, compare, result, done);
    ASSERT_EQ(status, 0) << fi_strerror(static_cast<int>(-status));
    if (form == Form::inject) {
      EXPECT_TRUE(
          pair.a.await_until([&] { return std::equal(wanted.begin(), wanted.end(), target); }));
      return;
    }
    const Completion completed = pair.a.await(done);
    ASSERT_EQ(completed.err, 0) << fi_strerror(completed.err);
    EXPECT_NE(completed.flags & FI_ATOMIC, 0u);
    EXPECT_TRUE(pair.a.await_until([&] {
      return std::equal(wanted.begin(), wanted.end(), target);
    })) << "the target is not what the model says";
    if (family != Family::base) {
      EXPECT_TRUE(std::equal(before.begin(), before.end(), result.begin()))
          << "what was fetched is not what was there";
    }
  }

  ssize_t call(Family family, Form form, std::size_t count, std::vector<T>& operand,
               std::vector<T>& compare, std::vector<T>& result, Op& done) {
    fid_ep* ep = pair.a.ep.get();
    const std::uint64_t address = region.address() + 64, key = region.key();
    const std::size_t cut = form == Form::plain ? count : count / 2;
    const auto halves = [&](std::vector<T>& values) {
      return std::vector<fi_ioc>{{values.data(), cut}, {values.data() + cut, count - cut}};
    };
    const auto operands = halves(operand), compares = halves(compare);
    auto results = halves(result);
    const fi_rma_ioc target{address, count, key};
    const fi_msg_atomic msg{operands.data(), nullptr, 2, pair.to_b, &target, 1, type, op, &done, 0};
    const bool reads = op == FI_ATOMIC_READ;
    return pair.a.post([&]() -> ssize_t {
      switch (family) {
        case Family::base:
          if (form == Form::inject)
            return fi_inject_atomic(ep, operand.data(), count, pair.to_b, address, key, type, op);
          if (form == Form::plain)
            return fi_atomic(ep, operand.data(), count, nullptr, pair.to_b, address, key, type, op,
                             &done);
          if (form == Form::vector)
            return fi_atomicv(ep, operands.data(), nullptr, 2, pair.to_b, address, key, type, op,
                              &done);
          return fi_atomicmsg(ep, &msg, 0);
        case Family::fetch:
          if (form == Form::plain)
            return fi_fetch_atomic(ep, reads ? nullptr : operand.data(), count, nullptr,
                                   result.data(), nullptr, pair.to_b, address, key, type, op,
                                   &done);
          if (form == Form::vector)
            return fi_fetch_atomicv(ep, operands.data(), nullptr, 2, results.data(), nullptr, 2,
                                    pair.to_b, address, key, type, op, &done);
          return fi_fetch_atomicmsg(ep, &msg, results.data(), nullptr, 2, 0);
        case Family::compare:
          if (form == Form::plain)
            return fi_compare_atomic(ep, operand.data(), count, nullptr, compare.data(), nullptr,
                                     result.data(), nullptr, pair.to_b, address, key, type, op,
                                     &done);
          if (form == Form::vector)
            return fi_compare_atomicv(ep, operands.data(), nullptr, 2, compares.data(), nullptr, 2,
                                      results.data(), nullptr, 2, pair.to_b, address, key, type, op,
                                      &done);
          return fi_compare_atomicmsg(ep, &msg, compares.data(), nullptr, 2, results.data(),
                                      nullptr, 2, 0);
      }
      return -FI_EINVAL;
    });
  }
};

class Atomics : public testing::TestWithParam<fi_datatype> {
 protected:
  // What is claimed for the type, in every form, with one element and with as many as may be.
  template <typename T>
  void check() {
    if (!offered(atomic_wish)) GTEST_SKIP() << "no atomics";
    Pair pair(atomic_wish);
    ASSERT_TRUE(pair.ready());
    Region region(pair.b, 256 * kib, remote, 7);
    ASSERT_EQ(region.status(), 0);
    int claimed = 0;
    for (int number = FI_MIN; number <= FI_MSWAP; ++number) {
      const auto op = static_cast<fi_op>(number);
      for (const Family family : families) {
        std::size_t limit = 0;
        const int status = valid(pair.a.ep.get(), family, GetParam(), op, &limit);
        fi_atomic_attr attr{};
        const int queried =
            fi_query_atomic(pair.a.domain, GetParam(), op, &attr, query_flag(family));
        EXPECT_EQ(queried == 0, status == 0) << "the two ways to ask differ";
        if (status != 0) {
          T nothing{};
          if (provider_is_haul() && belongs(family, op)) {
            EXPECT_FALSE(model_atomic(op, nothing, nothing, nothing))
                << "a CPU can do " << fi_tostr(&op, FI_TYPE_ATOMIC_OP);
          }
          continue;
        }
        EXPECT_TRUE(belongs(family, op)) << "claimed in the wrong family";
        EXPECT_GT(limit, 0u);
        EXPECT_EQ(attr.size, sizeof(T));
        EXPECT_EQ(attr.count, limit);
        ++claimed;
        Case<T> one{pair, region, GetParam(), op};
        const std::size_t most = std::min(limit, std::size_t{4096} / sizeof(T));
        one.run(family, Form::plain, 1);
        one.run(family, Form::plain, most);
        const bool vectors = pair.a.info->tx_attr->iov_limit >= 2 && most >= 2;
        // Debian's providers forget their own ioc limits on a few of these.
        if (vectors) one.run(family, Form::vector, std::min<std::size_t>(most, 7));
        if (vectors) one.run(family, Form::msg, std::min<std::size_t>(most, 6));
        if (family == Family::base && sizeof(T) * 2 <= pair.a.info->tx_attr->inject_size)
          one.run(family, Form::inject, std::min<std::size_t>(most, 2));
        if (HasFatalFailure()) return;
      }
    }
    if (provider_is_haul()) {
      EXPECT_GT(claimed, 0);
    }
  }
};

TEST_P(Atomics, every_operation_is_as_the_model_says) {
  switch (static_cast<int>(GetParam())) {
    case FI_INT8: return check<std::int8_t>();
    case FI_UINT8: return check<std::uint8_t>();
    case FI_INT16: return check<std::int16_t>();
    case FI_UINT16: return check<std::uint16_t>();
    case FI_INT32: return check<std::int32_t>();
    case FI_UINT32: return check<std::uint32_t>();
    case FI_INT64: return check<std::int64_t>();
    case FI_UINT64: return check<std::uint64_t>();
    case FI_FLOAT: return check<float>();
    case FI_DOUBLE: return check<double>();
    case FI_FLOAT_COMPLEX: return check<std::complex<float>>();
    case FI_DOUBLE_COMPLEX: return check<std::complex<double>>();
    case FI_LONG_DOUBLE: return check<long double>();
    case FI_LONG_DOUBLE_COMPLEX: return check<std::complex<long double>>();
    case FI_INT128: return check<Int128>();
    case FI_UINT128: return check<Uint128>();
    default: FAIL();
  }
}

INSTANTIATE_TEST_SUITE_P(Atomic, Atomics,
                         testing::Values(FI_INT8, FI_UINT8, FI_INT16, FI_UINT16, FI_INT32,
                                         FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT, FI_DOUBLE,
                                         FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX, FI_LONG_DOUBLE,
                                         FI_LONG_DOUBLE_COMPLEX, FI_INT128, FI_UINT128),
                         [](const testing::TestParamInfo<fi_datatype>& which) {
                           return std::string("datatype_") +
                                  std::to_string(static_cast<int>(which.param));
                         });

TEST(Atomic, what_cannot_be_is_refused) {
  if (!offered(atomic_wish)) GTEST_SKIP() << "no atomics";
  Pair pair(atomic_wish);
  ASSERT_TRUE(pair.ready());
  Region region(pair.b, 1024, remote, 7);
  fid_ep* ep = pair.a.ep.get();
  std::size_t count = 0;
  EXPECT_NE(fi_atomicvalid(ep, FI_DOUBLE, FI_BOR, &count), 0);
  EXPECT_NE(fi_atomicvalid(ep, FI_DOUBLE_COMPLEX, FI_MIN, &count), 0);
  EXPECT_NE(fi_atomicvalid(ep, FI_INT32, FI_CSWAP, &count), 0);
  EXPECT_NE(fi_compare_atomicvalid(ep, FI_INT32, FI_SUM, &count), 0);
  fi_atomic_attr attr{};
  EXPECT_NE(
      fi_query_atomic(pair.a.domain, FI_INT32, FI_SUM, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
      0);
  double value = 1;
  Op op;
  EXPECT_EQ(pair.a.post([&] {
    return fi_atomic(ep, &value, 1, nullptr, pair.to_b, region.address(), region.key(), FI_DOUBLE,
                     FI_BOR, &op);
  }),
            -FI_EOPNOTSUPP);
  ASSERT_EQ(fi_atomicvalid(ep, FI_INT64, FI_SUM, &count), 0);
  const std::vector<std::int64_t> many(count + 1);
  EXPECT_LT(pair.a.post([&] {
    return fi_atomic(ep, many.data(), many.size(), nullptr, pair.to_b, region.address(),
                     region.key(), FI_INT64, FI_SUM, &op);
  }),
            0);
}

TEST(Atomic, memory_that_is_not_granted) {
  if (!offered(atomic_wish)) GTEST_SKIP() << "no atomics";
  if (!provider_is_haul()) GTEST_SKIP() << "others need not enforce it";
  Pair pair(atomic_wish);
  ASSERT_TRUE(pair.ready());
  Region only_reads(pair.b, 64, FI_REMOTE_READ, 7), only_writes(pair.b, 64, FI_REMOTE_WRITE, 8);
  std::uint64_t operand = 1, result = 0;
  const auto error_of = [&](Region& region, std::uint64_t past, std::uint64_t wrong, bool fetch) {
    Op op;
    EXPECT_EQ(pair.a.post([&] {
      return fetch
                 ? fi_fetch_atomic(pair.a.ep.get(), &operand, 1, nullptr, &result, nullptr,
                                   pair.to_b, region.address() + past, region.key() + wrong,
                                   FI_UINT64, FI_SUM, &op)
                 : fi_atomic(pair.a.ep.get(), &operand, 1, nullptr, pair.to_b,
                             region.address() + past, region.key() + wrong, FI_UINT64, FI_SUM, &op);
    }),
              0);
    return pair.a.await(op).err;
  };
  const auto refused = [](int error) { return error == FI_EACCES || error == FI_EKEYREJECTED; };
  EXPECT_TRUE(refused(error_of(only_reads, 0, 0, false)));
  EXPECT_TRUE(refused(error_of(only_writes, 0, 0, true)));
  EXPECT_TRUE(refused(error_of(only_writes, 64, 0, false)));
  EXPECT_TRUE(refused(error_of(only_writes, 0, 77, false)));
  EXPECT_EQ(error_of(only_writes, 0, 0, false), 0);
}

class AtomicSides : public testing::TestWithParam<Surrounding> {};

// Both sides add to one word at a time, and each addition returns another value.
TEST_P(AtomicSides, additions_of_two_sides_are_all_counted) {
  if (!offered(atomic_wish)) GTEST_SKIP() << "no atomics";
  constexpr std::uint64_t rounds = 2000;
  const auto add = [](Node& node, fi_addr_t to, std::uint64_t address, std::uint64_t key) {
    std::uint64_t one = 1, last = 0, result = 0;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      Op op;
      ASSERT_EQ(node.post([&] {
        return fi_fetch_atomic(node.ep.get(), &one, 1, nullptr, &result, nullptr, to, address, key,
                               FI_UINT64, FI_SUM, &op);
      }),
                0);
      ASSERT_EQ(node.await(op).err, 0);
      if (i > 0) {
        ASSERT_GT(result, last);
      }
      last = result;
    }
  };
  run_sides(
      GetParam(), atomic_wish,
      [&](Node& node, fi_addr_t peer, Link& link) {
        const auto address = link.get<std::uint64_t>(), key = link.get<std::uint64_t>();
        link.meet();
        add(node, peer, address, key);
        link.meet();
        std::uint64_t total = 0;
        Op op;
        ASSERT_EQ(node.post([&] {
          return fi_read(node.ep.get(), &total, 8, nullptr, peer, address, key, &op);
        }),
                  0);
        ASSERT_EQ(node.await(op).err, 0);
        EXPECT_EQ(total, 2 * rounds);
        link.meet();
      },
      [&](Node& node, fi_addr_t, Link& link) {
        Region region(node, 64, remote, 9);
        link.put(region.address());
        link.put(region.key());
        const fi_addr_t self = node.insert(node.name());
        link.meet();
        add(node, self, region.address(), region.key());
        link.meet();
        link.meet();
      });
}

INSTANTIATE_TEST_SUITE_P(Atomic, AtomicSides,
                         testing::Values(Surrounding::one_process, Surrounding::two_processes),
                         [](const testing::TestParamInfo<Surrounding>& which) {
                           return name_of(which.param);
                         });

}  // namespace
}  // namespace fabric_test
