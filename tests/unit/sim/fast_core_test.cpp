// The fast model against cycles worked out by hand.
#include <gtest/gtest.h>

#include <map>

#include "model/fast/core.hpp"
#include "unit/sim/micro_cases.hpp"

namespace bcisim {
namespace {

// It takes accesses in program order, so that what comes later in the program but earlier in time
// finds the caches as they are later. Cases that are about just that, and what it makes of them.
const std::map<std::string, std::uint64_t> out_of_order{
    // The copy reads what the load after it asked for before: it asks itself, 5 cycles later.
    {"a load of the source", 644},
};

TEST(SimFastCore, TakesTheCyclesWorkedOutByHand) {
  std::size_t excepted = 0;
  for (test::MicroCase one : test::micro_cases()) {
    if (const auto found = out_of_order.find(one.name); found != out_of_order.end()) {
      one.cycles = found->second;
      ++excepted;
    }
    test::expect_case<FastCore>(one);
  }
  EXPECT_EQ(excepted, out_of_order.size());
}

}  // namespace
}  // namespace bcisim
