// When haul hears that memory has changed, against real changes.
#include "memory/changes.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "base/os/userfault.hpp"

namespace haul {
namespace {

constexpr std::size_t page = 4096;

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

}  // namespace
}  // namespace haul
