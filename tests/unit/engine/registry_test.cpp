// The engines of this build, found by number and by name, and their counters.
#include "engine/registry.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace haul {
namespace {

TEST(Registry, NumbersAndNamesAgree) {
  ASSERT_EQ(engine_count(), 10u);
  const char* names[] = {"cpu",    "cma", "fault", "uffd",  "procmem",
                         "dmadev", "dsa", "nic",   "uring", "cuda"};
  for (std::size_t index = 0; index < engine_count(); ++index) {
    EXPECT_STREQ(engine_at(index).facts().name, names[index]);
    EXPECT_EQ(engine_by_name(names[index]), &engine_at(index));
  }
  EXPECT_EQ(engine_by_name("auto"), nullptr);
  EXPECT_EQ(engine_by_name(""), nullptr);
  EXPECT_EQ(engine_by_name(nullptr), nullptr);
}

TEST(Registry, CountsFromManyThreadsAddUp) {
  const EngineCounters before = engine_counters(1);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 20; ++thread) {
    threads.emplace_back([] {
      for (int chunk = 0; chunk < 1000; ++chunk) count_moved(1, 3);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine_counters(1).chunks - before.chunks, 20'000u);
  EXPECT_EQ(engine_counters(1).bytes - before.bytes, 60'000u);
  count_moved(max_engines, 1);
  EXPECT_EQ(engine_counters(max_engines).chunks, 0u);
}

}  // namespace
}  // namespace haul
