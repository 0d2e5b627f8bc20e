// The ring of a completion queue: order, growth, and failures that are taken out of the middle.
#include "fabric/endpoint/completion/completion_ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace haul::fabric {
namespace {

void add(CompletionRing& ring, std::uint64_t tag) {
  CompletionEntry* entry = ring.add();
  ASSERT_NE(entry, nullptr);
  entry->shown.tag = tag;
}

TEST(CompletionRing, keeps_everything_in_order_while_it_grows) {
  CompletionRing ring(1);
  ASSERT_TRUE(ring.valid());
  // Its front is not at its memory's front when it grows.
  for (std::uint64_t tag = 0; tag < 50; ++tag) add(ring, tag);
  ring.drop(40);
  for (std::uint64_t tag = 50; tag < 1000; ++tag) add(ring, tag);
  ASSERT_EQ(ring.size(), 960u);
  for (std::size_t i = 0; i < ring.size(); ++i) EXPECT_EQ(ring.at(i).shown.tag, 40 + i);
  ring.drop(960);
  EXPECT_TRUE(ring.empty());
}

TEST(CompletionRing, behaves_as_a_deque) {
  CompletionRing ring(64);
  std::deque<std::uint64_t> model;
  std::minstd_rand random(7);
  for (std::uint64_t step = 0; step < 20000; ++step) {
    switch (random() % 5) {
      case 0:
      case 1:
      case 2:
        if (model.size() > 500) break;
        add(ring, step);
        model.push_back(step);
        break;
      case 3: {
        const std::size_t count = random() % (model.size() / 2 + 1);
        ring.drop(count);
        model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(count));
        break;
      }
      default: {
        if (model.empty()) break;
        const std::size_t index = random() % model.size();
        ring.erase(index);
        model.erase(model.begin() + static_cast<std::ptrdiff_t>(index));
      }
    }
    ASSERT_EQ(ring.size(), model.size());
    if (model.empty()) continue;
    ASSERT_EQ(ring.at(0).shown.tag, model.front());
    ASSERT_EQ(ring.at(model.size() - 1).shown.tag, model.back());
    const std::size_t middle = model.size() / 2;
    ASSERT_EQ(ring.at(middle).shown.tag, model[middle]);
  }
}

}  // namespace
}  // namespace haul::fabric
