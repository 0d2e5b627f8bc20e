// A line goes to and fro between two cores, a few hundred times.
#include "mover/round_trip.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/os.hpp"

namespace haul {
namespace {

constexpr unsigned exchanges = 201;
constexpr std::uint64_t limit_ns = 1'000'000;

struct Table {
  alignas(64) std::atomic<std::uint32_t> serve{0};
  alignas(64) std::atomic<std::uint32_t> answer{0};
  int cpu = -1;
  std::uint64_t until_ns = 0;
};

void* answer_body(void* argument) noexcept {
  Table& table = *static_cast<Table*>(argument);
  if (table.cpu >= 0) os::pin_thread(static_cast<unsigned>(table.cpu));
  table.answer.store(1, std::memory_order_release);
  std::uint32_t seen = 1;
  for (unsigned turn = 0; seen <= exchanges; ++turn) {
    const std::uint32_t served = table.serve.load(std::memory_order_acquire);
    if (served > seen) {
      seen = served;
      table.answer.store(served, std::memory_order_release);
    } else if (turn % 256 == 255 && now_ns() > table.until_ns) {
      break;
    }
  }
  return nullptr;
}

bool await(const std::atomic<std::uint32_t>& word, std::uint32_t value,
           std::uint64_t until_ns) noexcept {
  for (unsigned turn = 0; word.load(std::memory_order_acquire) < value; ++turn) {
    if (turn % 256 == 255 && now_ns() > until_ns) return false;
  }
  return true;
}

}  // namespace

double round_trip_ns(int own_cpu, int other) noexcept {
  if (other == own_cpu) other = -1;
  Table table;
  table.cpu = other;
  table.until_ns = now_ns() + limit_ns;
  pthread_t thread;
  if (os::start_thread(&thread, answer_body, &table) < 0) return 0;
  std::uint64_t times[exchanges];
  unsigned count = 0;
  if (await(table.answer, 1, table.until_ns)) {
    for (; count < exchanges; ++count) {
      const std::uint64_t begin = ticks();
      table.serve.store(count + 2, std::memory_order_release);
      if (!await(table.answer, count + 2, table.until_ns)) break;
      times[count] = ticks() - begin;
    }
  }
  pthread_join(thread, nullptr);
  if (count < exchanges / 4) return 0;
  std::nth_element(times, times + count / 2, times + count);
  return static_cast<double>(times[count / 2]) / ticks_per_ns();
}

}  // namespace haul
