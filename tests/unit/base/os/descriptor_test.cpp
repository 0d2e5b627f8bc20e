// Descriptors that know their file, and calls that are no cancellation points.
#include "base/os/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul {
namespace {

bool open_at(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

TEST(Descriptor, KnowsItsFileUntilTheProgramPutsAnotherThere) {
  os::Descriptor own = os::Descriptor::of(os::event_fd());
  ASSERT_TRUE(own.valid());
  EXPECT_TRUE(own.intact());
  EXPECT_EQ(own.get(), own.number());
  const int number = own.number();
  const int program = open("/dev/null", O_RDONLY);
  ASSERT_EQ(dup2(program, number), number);
  EXPECT_FALSE(own.intact());
  EXPECT_EQ(own.get(), -1);
  own.close();
  EXPECT_FALSE(own.valid());
  EXPECT_TRUE(open_at(number)) << "the program's file was closed";
  close(number);
  close(program);
}

TEST(Descriptor, TwoEventsAreTold) {
  os::Descriptor own = os::Descriptor::of(os::event_fd());
  const int other = os::event_fd();
  ASSERT_EQ(dup2(other, own.number()), own.number());
  EXPECT_FALSE(own.intact());
  close(own.number());
  close(other);
}

TEST(Descriptor, ClosesItsOwn) {
  os::Descriptor own = os::Descriptor::of(os::event_fd());
  const int number = own.number();
  own.close();
  EXPECT_FALSE(open_at(number));
  own.close();  // nothing is left to close
  EXPECT_EQ(own.get(), -1);
  EXPECT_FALSE(os::Descriptor::of(-1).valid());
}

TEST(Descriptor, NoneLiesAtTheStandardStreams) {
  const int saved = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  const int made[] = {os::event_fd(), os::pidfd_open(getpid()), os::bind_abstract("haul-test-low")};
  for (const int fd : made) {
    EXPECT_GT(fd, STDERR_FILENO);
    close(fd);
  }
  char text[16];
  EXPECT_GT(os::read_file("/proc/self/comm", text, sizeof text), 0);
  EXPECT_FALSE(open_at(STDIN_FILENO));
  if (saved >= 0) {
    dup2(saved, STDIN_FILENO);
    close(saved);
  }
}

// Runs in a thread with a cancellation pending, and notes how far it came.
void* call_wrappers(void* reached) {
  auto& step = *static_cast<int*>(reached);
  pthread_cancel(pthread_self());
  char text[16];
  os::read_file("/proc/self/comm", text, sizeof text);
  step = 1;
  os::sleep_ns(1000);
  const int fd = os::event_fd();
  os::event_signal(fd);
  os::event_clear(fd);
  os::pidfd_alive(fd);
  os::close_fd(fd);
  step = 2;
  pthread_testcancel();
  step = 3;
  return nullptr;
}

TEST(Uncancelled, TheRequestStaysPendingThroughTheWrappers) {
  int step = 0;
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, call_wrappers, &step), 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(step, 2);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

void* note_policy(void* policy) {
  *static_cast<int*>(policy) = sched_getscheduler(0);
  return nullptr;
}

void* start_from_fifo(void* policy) {
  const sched_param urgent{.sched_priority = 10};
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &urgent) != 0) return nullptr;
  pthread_t thread{};
  if (os::start_thread(&thread, note_policy, policy) == 0) os::join_thread(thread);
  return policy;
}

TEST(StartThread, SchedulesOrdinarilyWhateverItsMakerHas) {
  int policy = -1;
  pthread_t maker{};
  ASSERT_EQ(pthread_create(&maker, nullptr, start_from_fifo, &policy), 0);
  void* started = nullptr;
  pthread_join(maker, &started);
  if (started == nullptr) GTEST_SKIP() << "this user may not have SCHED_FIFO";
  EXPECT_EQ(policy, SCHED_OTHER);
}

}  // namespace
}  // namespace haul
