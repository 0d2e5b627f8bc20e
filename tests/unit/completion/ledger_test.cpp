// The failure ledger: the lowest offset counts, observing lets go, and it never grows without
// bound.
#include "completion/ledger.hpp"

#include <gtest/gtest.h>

namespace haul {
namespace {

TEST(Ledger, KeepsTheLowestOffset) {
  ledger_record(1, 1000, Code::io, 500);
  ledger_record(1, 1000, Code::fault, 300);
  ledger_record(1, 1000, Code::permission, 400);
  Failure failure;
  ASSERT_TRUE(ledger_find(1, 1000, &failure));
  EXPECT_EQ(failure.code, Code::fault);
  EXPECT_EQ(failure.good_bytes, 300u);
  EXPECT_FALSE(ledger_find(2, 1000, &failure)) << "another ring";
  EXPECT_FALSE(ledger_find(1, 1001, &failure)) << "another request";
}

TEST(Ledger, AnObservedFailureIsNotCountedAndStillKnown) {
  const std::uint64_t before = ledger_unobserved();
  ledger_record(3, 7, Code::io, 0);
  EXPECT_EQ(ledger_unobserved(), before + 1);
  ledger_observe(3, 7);
  ledger_observe(3, 7);
  EXPECT_EQ(ledger_unobserved(), before);
  Failure failure;
  EXPECT_TRUE(ledger_find(3, 7, &failure));
}

TEST(Ledger, ThousandsUnobservedAreAllKept) {
  for (std::uint64_t seq = 1; seq <= 20000; ++seq) ledger_record(4, seq, Code::io, seq);
  for (std::uint64_t seq = 1; seq <= 20000; ++seq) {
    Failure failure;
    ASSERT_TRUE(ledger_find(4, seq, &failure)) << seq;
    ASSERT_EQ(failure.good_bytes, seq);
    ledger_observe(4, seq);
  }
  EXPECT_FALSE(ledger_forgot(4, 1));
}

// Runs last: it makes the ledger forget.
TEST(LedgerZ, ForgetsHonestlyWhenFull) {
  for (std::uint64_t seq = 1; seq <= ledger_capacity + 5000; ++seq)
    ledger_record(5, seq, Code::io, 0);
  EXPECT_TRUE(ledger_forgot(5, 1));
  EXPECT_FALSE(ledger_forgot(5, ledger_capacity + 5001)) << "later requests are not in doubt";
  EXPECT_FALSE(ledger_forgot(6, 1)) << "nor are other rings";
  EXPECT_LE(ledger_unobserved(), ledger_capacity);
  unsigned known = 0;
  for (std::uint64_t seq = 1; seq <= ledger_capacity + 5000; ++seq) {
    Failure failure;
    if (ledger_find(5, seq, &failure)) ++known;
  }
  EXPECT_GT(known, ledger_capacity / 2);
}

}  // namespace
}  // namespace haul
