// An epoll set that is told from the program's.
#include "base/net/epoll.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "base/os/os.hpp"

namespace haul::os {
namespace {

class EpollTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(Epoll::open(&epoll), 0); }
  void TearDown() override { epoll.close(); }
  Epoll epoll;
  epoll_event events[4] = {};
};

TEST_F(EpollTest, tells_of_what_was_added_by_its_name) {
  const int event = event_fd();
  ASSERT_EQ(epoll.add(event, 7), 0);
  EXPECT_EQ(epoll.add(event, 7), -EEXIST);
  EXPECT_EQ(epoll.wait(events, 4, 0), 0);
  event_signal(event);
  ASSERT_EQ(epoll.wait(events, 4, 1000), 1);
  EXPECT_EQ(std::uint64_t{events[0].data.u64}, 7u);  // (the structure is packed)
  epoll.remove(event);
  EXPECT_EQ(epoll.wait(events, 4, 0), 0);
  close_fd(event);
}

TEST_F(EpollTest, rings_until_it_is_quiet) {
  epoll.ring();
  ASSERT_EQ(epoll.wait(events, 4, 1000), 1);
  EXPECT_EQ(std::uint64_t{events[0].data.u64}, Epoll::own_event);
  EXPECT_TRUE(epoll.intact()) << "looking changes nothing";
  EXPECT_EQ(epoll.wait(events, 4, 0), 1);
  epoll.quiet();
  EXPECT_EQ(epoll.wait(events, 4, 0), 0);
}

TEST_F(EpollTest, closed_by_the_program_it_is_lost) {
  const int number = epoll.get();
  ASSERT_GE(number, 3);
  close(number);
  EXPECT_FALSE(epoll.intact());
  EXPECT_EQ(epoll.wait(events, 4, 1000), -EBADF);
  EXPECT_LT(epoll.add(0, 7), 0);
}

TEST_F(EpollTest, another_set_at_its_number_is_left_alone) {
  const int number = epoll.get();
  const int others = epoll_create1(EPOLL_CLOEXEC);
  ASSERT_EQ(dup2(others, number), number);
  close(others);
  EXPECT_FALSE(epoll.intact());
  EXPECT_EQ(epoll.wait(events, 4, 1000), -EBADF);
  const int event = event_fd();
  EXPECT_LT(epoll.add(event, 7), 0);
  epoll.close();
  epoll_event added{};
  EXPECT_EQ(epoll_ctl(number, EPOLL_CTL_ADD, event, &added), 0) << "it was closed, or added to";
  close(number);
  close_fd(event);
}

}  // namespace
}  // namespace haul::os
