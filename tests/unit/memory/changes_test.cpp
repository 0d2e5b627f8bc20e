// When haul hears that memory has changed, against real changes.
#include "memory/changes.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "base/os/pages/userfault.hpp"
#include "sizes.hpp"

namespace haul {
namespace {

// Hears of changes as slowly as it is told to.
class SlowListener final : public ChangeListener {
 public:
  void memory_changed(std::uintptr_t, std::uintptr_t) noexcept override {
    heard = true;
    while (slow) std::this_thread::yield();
  }
  void changes_lost() noexcept override {}

  std::atomic<bool> slow{false}, heard{false};
};

// The program goes on as soon as the kernel's message has been read, before the listeners know what
// it says: who asks then must be told to wait.
TEST(Changes, AreUnderWayUntilAllListenersHaveHeard) {
  if (os::open_memory_events() < 0) GTEST_SKIP() << "no userfaultfd for this user";
  static SlowListener listener;
  ASSERT_TRUE(listen_to_changes(listener));
  void* const memory =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool settles = true;
  ASSERT_TRUE(watch_changes(reinterpret_cast<std::uintptr_t>(memory), page, &settles));
  EXPECT_FALSE(settles);
  EXPECT_FALSE(changes_under_way());
  listener.slow = true;
  munmap(memory, page);
  EXPECT_TRUE(changes_under_way());
  while (!listener.heard) std::this_thread::yield();
  EXPECT_TRUE(changes_under_way());
  listener.slow = false;
  for (int turn = 0; turn < 5000 && changes_under_way(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(changes_under_way());
}

class CountingListener final : public ChangeListener {
 public:
  void memory_changed(std::uintptr_t, std::uintptr_t) noexcept override { ++told; }
  void changes_lost() noexcept override {}

  std::atomic<unsigned> told{0};
};

TEST(Changes, AreToldToSixtyFourAtATimeAndWhoLeavesMakesRoom) {
  CountingListener listeners[100];
  unsigned room = 0;
  while (room < 100 && listen_to_changes(listeners[room])) ++room;
  EXPECT_GE(room, 60u);
  ASSERT_LT(room, 100u);
  EXPECT_TRUE(listen_to_changes(listeners[room - 1])) << "it does already";
  end_listening(listeners[3]);
  EXPECT_TRUE(listen_to_changes(listeners[room - 1])) << "and takes no second place";
  EXPECT_TRUE(listen_to_changes(listeners[room]));
  EXPECT_FALSE(listen_to_changes(listeners[3]));
  for (CountingListener& listener : listeners) end_listening(listener);
}

// What no event tells of, whoever brings it about tells himself: at once, and to all.
TEST(Changes, CanBeToldOf) {
  class : public ChangeListener {
   public:
    void memory_changed(std::uintptr_t from, std::uintptr_t to) noexcept override {
      begin = from;
      end = to;
    }
    void changes_lost() noexcept override {}
    std::uintptr_t begin = 0, end = 0;
  } one, other;
  ASSERT_TRUE(listen_to_changes(one) && listen_to_changes(other));
  tell_of_change(4 * page, 7 * page);
  end_listening(one);
  tell_of_change(8 * page, 9 * page);
  end_listening(other);
  EXPECT_EQ(one.begin, 4 * page);
  EXPECT_EQ(one.end, 7 * page);
  EXPECT_EQ(other.begin, 8 * page);
  EXPECT_EQ(other.end, 9 * page);
}

// Who has left may be destroyed at once: he who is being told is waited for.
TEST(Changes, AreNotToldToWhoHasLeft) {
  if (os::open_memory_events() < 0) GTEST_SKIP() << "no userfaultfd for this user";
  static SlowListener slow;
  static CountingListener counting;
  ASSERT_TRUE(listen_to_changes(slow) && listen_to_changes(counting));
  const auto change = [] {
    void* const memory =
        mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool settles = false;
    ASSERT_TRUE(watch_changes(reinterpret_cast<std::uintptr_t>(memory), page, &settles));
    munmap(memory, page);
  };
  const auto told_of = [] {
    while (changes_under_way()) std::this_thread::yield();
  };
  change();
  told_of();
  EXPECT_EQ(counting.told, 1u);
  slow.heard = false;
  slow.slow = true;
  change();
  while (!slow.heard) std::this_thread::yield();
  std::atomic<bool> left{false};
  std::thread leaver([&] {
    end_listening(slow);
    left = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(left);
  slow.slow = false;
  leaver.join();
  end_listening(counting);
  told_of();
  EXPECT_EQ(counting.told, 2u);
  slow.heard = false;
  change();
  told_of();
  EXPECT_FALSE(slow.heard);
  EXPECT_EQ(counting.told, 2u);
}

}  // namespace
}  // namespace haul
