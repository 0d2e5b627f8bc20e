// What a match costs when lists are long, as a count of the entries that are looked at in vain.
#include <algorithm>
#include <numeric>
#include <random>

#include "base/sanitizer.hpp"
#include "fabric/protocol/matching/index/tag_table.hpp"
#include "harness.hpp"
#include "matching_support.hpp"

namespace haul::fabric::test {
namespace {

constexpr std::size_t crowd = 10'000;

struct Shape {
  const char* name;
  bool directed;
  std::vector<std::uint64_t> ignores;
  std::uint64_t (*tag)(std::uint64_t);
};
std::uint64_t tag_in_a_row(std::uint64_t i) {
  return i;
}
// Such tags meet in one place of a table that takes their lowest bits, or their highest.
std::uint64_t tag_far_apart(std::uint64_t i) {
  return (i << 16 & 0xfff0000) | (i >> 12 << 40);
}
const Shape shapes[] = {
    {"exact", true, {0}, tag_in_a_row},
    {"any_source", false, {0}, tag_in_a_row},
    {"far_apart", true, {0}, tag_far_apart},
    {"open_mpi", true, {mpi_ignores[0]}, tag_in_a_row},
    {"mpich_any_source", false, {mpi_ignores[2]}, tag_in_a_row},
    {"intel_any_source", false, {mpi_ignores[6]}, tag_in_a_row},
    {"by_turns", true, {0, mpi_ignores[0], mpi_ignores[2]}, tag_in_a_row},
};

class Scale : public testing::TestWithParam<Shape> {
 protected:
  World world{2};
  std::vector<std::size_t> turns = std::vector<std::size_t>(crowd);
  std::uint64_t got = 0;
  std::vector<int> contexts = std::vector<int>(crowd);

  void SetUp() override {
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    std::shuffle(turns.begin(), turns.end(), std::mt19937_64(18));
  }
  std::uint64_t passed() { return world[1].matcher.statistics().passed_over.load(); }
  void post(std::size_t i) {
    const auto& ignores = GetParam().ignores;
    Node* source = GetParam().directed ? &world[0] : nullptr;
    ASSERT_EQ(world[1].receive(source, &got, sizeof got, GetParam().tag(i), &contexts[i],
                               ignores[i % ignores.size()]),
              0);
  }
  void send(std::size_t i) {
    const std::uint64_t tag = GetParam().tag(i);
    ASSERT_EQ(world[0].send(world[1], &tag, sizeof tag, tag, nullptr, FI_INJECT), 0);
    world[0].matcher.progress();
    world[1].matcher.progress();
  }
  void expect_only(std::size_t i) {
    ASSERT_EQ(world[1].completions.size(), 1u);
    ASSERT_EQ(world[1].completions[0].context, &contexts[i]);
    ASSERT_EQ(world[1].completions[0].error, 0);
    ASSERT_EQ(got, GetParam().tag(i));
    world[1].completions.clear();
  }
};
INSTANTIATE_TEST_SUITE_P(All, Scale, testing::ValuesIn(shapes),
                         [](const auto& at) { return std::string(at.param.name); });

// One walk finds out that the list is long; from then on a match looks at one entry or two.
TEST_P(Scale, AMessageFindsItsReceiveAmongTenThousand) {
  for (std::size_t i = 0; i < crowd; ++i) post(i);
  for (const std::size_t i : turns) {
    send(i);
    expect_only(i);
    if (HasFatalFailure()) return;
  }
  EXPECT_LE(passed(), crowd + 2 * crowd * GetParam().ignores.size());
}

TEST_P(Scale, AReceiveFindsItsMessageAmongTenThousand) {
  for (std::size_t i = 0; i < crowd; ++i) send(i);
  ASSERT_EQ(world[1].matcher.statistics().unexpected_messages.load(), crowd);
  for (const std::size_t i : turns) {
    post(i);
    expect_only(i);
    if (HasFatalFailure()) return;
  }
  EXPECT_LE(passed(), crowd * GetParam().ignores.size() + 2 * crowd);
}

// Nor do probes in between: of any tag, and of a tag that no message has.
TEST_P(Scale, ProbesDoNotMakeItSlower) {
  for (std::size_t i = 0; i < crowd; ++i) send(i);
  const std::uint64_t ignore = GetParam().ignores[0], no_tag = (1u << 20) + 1;
  for (const std::size_t i : turns) {
    ASSERT_EQ(world[1].receive(nullptr, nullptr, 0, 0, nullptr, ~ignore, FI_PEEK), 0);
    ASSERT_EQ(world[1].receive(nullptr, nullptr, 0, no_tag, nullptr, ignore, FI_PEEK), 0);
    ASSERT_EQ(world[1].completions.size(), 2u);
    ASSERT_EQ(world[1].completions[0].error, 0);
    ASSERT_EQ(world[1].completions[1].error, FI_ENOMSG);
    world[1].completions.clear();
    post(i);
    expect_only(i);
    if (HasFatalFailure()) return;
  }
  EXPECT_LE(passed(), crowd * (GetParam().ignores.size() + 2) + 6 * crowd);
}

// Programs cancel in the order of posting, or in the opposite one.
TEST(ScaleCancel, ThousandsAreCancelledFromEitherEndWithoutAWalk) {
  World world(2);
  std::uint64_t got = 0;
  std::vector<int> contexts(crowd);
  for (const bool backwards : {false, true}) {
    for (std::size_t i = 0; i < crowd; ++i) {
      Node* source = i % 2 == 0 ? &world[0] : nullptr;
      ASSERT_EQ(world[1].receive(source, &got, sizeof got, i, &contexts[i]), 0);
    }
    const std::uint64_t before = world[1].matcher.statistics().passed_over.load();
    for (std::size_t n = 0; n < crowd; n += 2) {
      // Of each list in turn, so that the other one is never searched in vain: any source first.
      const std::size_t i = backwards ? crowd - 1 - n : n + 1;
      ASSERT_EQ(world[1].matcher.cancel(&contexts[i]), 0);
      ASSERT_EQ(world[1].take(&contexts[i]).error, FI_ECANCELED);
    }
    for (std::size_t n = 0; n < crowd; n += 2) {
      const std::size_t i = backwards ? crowd - 2 - n : n;
      ASSERT_EQ(world[1].matcher.cancel(&contexts[i]), 0);
      ASSERT_EQ(world[1].take(&contexts[i]).error, FI_ECANCELED);
    }
    EXPECT_EQ(world[1].matcher.statistics().passed_over.load(), before);
  }
}

TEST(ScaleMemory, ShortListsHaveNoTables) {
  const std::size_t before = Refusal::asked();
  World world(2);
  std::uint64_t got = 0;
  for (std::uint64_t i = 0; i < long_walk; ++i) {
    ASSERT_EQ(world[1].receive(nullptr, &got, sizeof got, i, nullptr), 0);
    ASSERT_EQ(world[0].send(world[1], &got, sizeof got, 100 + i, nullptr, 0), 0);
  }
  world.settle();
  for (std::uint64_t i = long_walk; i-- > 0;) {
    ASSERT_EQ(world[0].send(world[1], &got, sizeof got, i, nullptr, 0), 0);
    world.settle();
    ASSERT_EQ(world[1].receive(nullptr, &got, sizeof got, 100 + i, nullptr), 0);
  }
  EXPECT_EQ(world[1].completions.size(), 2 * long_walk);
  EXPECT_EQ(Refusal::asked(), before);
}

TEST(ScaleMemory, WithoutMemoryListsAreWalked) {
  if (accesses_are_checked) GTEST_SKIP() << "a sanitizer gives memory out here, and refuses none";
  constexpr std::uint64_t many = 300;
  World world(2);
  std::uint64_t got = 0;
  std::vector<int> contexts(2 * many);
  const Refusal refusal;
  const std::size_t before = Refusal::asked();
  for (std::uint64_t i = 0; i < many; ++i) {
    ASSERT_EQ(world[1].receive(nullptr, &got, sizeof got, i, &contexts[i]), 0);
    ASSERT_EQ(world[0].send(world[1], &got, sizeof got, many + i, nullptr, 0), 0);
    world.settle();
  }
  for (std::uint64_t i = many; i-- > 0;) {
    ASSERT_EQ(world[0].send(world[1], &got, sizeof got, i, nullptr, 0), 0);
    world.settle();
    EXPECT_EQ(world[1].take(&contexts[i]).error, 0);
    ASSERT_EQ(world[1].receive(nullptr, &got, sizeof got, many + i, &contexts[many + i]), 0);
    EXPECT_EQ(world[1].take(&contexts[many + i]).error, 0);
  }
  EXPECT_GT(Refusal::asked(), before);
  EXPECT_GE(world[1].matcher.statistics().passed_over.load(), many * (many - 1));
}

// Whoever knows which tags meet in one endpoint's table knows nothing of another's.
TEST(ScaleHostile, TagsThatMeetInOneTableDoNotInAnother) {
  constexpr std::uint64_t places = 1024;
  const TagHash known(TagSalt{{1, 0x9e3779b97f4a7c15u, 2, 0xd1342543de82ef95u}});
  const TagHash other(TagSalt{{3, 0xaf251af3b0f025b5u, 4, 0xb564ef22ec7aece5u}});
  std::vector<unsigned> used(places);
  unsigned found = 0;
  for (std::uint64_t tag = 0; found < places; ++tag) {
    if (known(nullptr, 0, tag) % places != 7) continue;
    ++found;
    ++used[other(nullptr, 0, tag) % places];
  }
  EXPECT_LE(*std::max_element(used.begin(), used.end()), 12u);
}

}  // namespace
}  // namespace haul::fabric::test
