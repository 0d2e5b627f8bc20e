// The fork handlers' counts where a signal handler forks amid the handlers of another fork: the
// inner child has called the child's handlers, and then goes on with the outer fork.
#include "fabric/transport/control/fork_window.hpp"

#include <gtest/gtest.h>

#include "fabric/transport/control/fork_count.hpp"

namespace haul::fabric {
namespace {

TEST(ForkCount, TakesBackOnlyWhatWasCountedInThisProcess) {
  ForkCount count;
  ForkCount::Own own = 0;
  count.begin(own);
  count.begin(own);
  EXPECT_EQ(count.all(), 2u);
  EXPECT_TRUE(count.forget(own));
  EXPECT_EQ(count.all(), 0u);
  // The outer fork ends here, while another thread forks.
  ForkCount::Own other = 0;
  count.begin(other);
  count.end(own);
  EXPECT_EQ(count.all(), 1u);
  count.end(other);
  EXPECT_EQ(count.all(), 0u);
  // Or it makes a child.
  EXPECT_FALSE(count.forget(own));
  count.begin(own);
  count.end(own);
  EXPECT_EQ(count.all(), 0u);
}

TEST(ForkWindow, IsClosedInTheParent) {
  fork_window::open();
  EXPECT_TRUE(fork_window::is_open());
  fork_window::open();
  fork_window::close();
  EXPECT_TRUE(fork_window::is_open());
  fork_window::close();
  EXPECT_FALSE(fork_window::is_open());
}

TEST(ForkWindow, StaysClosedInAChildThatIsTheParentOfTheOuterFork) {
  fork_window::open();
  fork_window::open();
  fork_window::stands_still();
  EXPECT_TRUE(fork_window::close_in_child());
  EXPECT_FALSE(fork_window::is_open());
  fork_window::close();
  EXPECT_FALSE(fork_window::is_open());
  fork_window::open();
  EXPECT_TRUE(fork_window::is_open());
  fork_window::close();
  EXPECT_FALSE(fork_window::is_open());
}

// Whoever changes something there does not know that it is copied.
TEST(ForkWindow, GivesNoConsistentCopyToTheOuterForksChildOfTheInnerChild) {
  fork_window::open();
  fork_window::stands_still();
  EXPECT_TRUE(fork_window::close_in_child());
  EXPECT_FALSE(fork_window::close_in_child());
  EXPECT_FALSE(fork_window::is_open());
}

}  // namespace
}  // namespace haul::fabric
