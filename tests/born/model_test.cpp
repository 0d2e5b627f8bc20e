// Random calls against a shadow of what the memory must hold: each allocation has a pattern that
// names it, which other calls, threads and children must leave alone.
#include <malloc.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "born/support.hpp"

namespace {

using namespace born;
using Random = std::mt19937_64;

struct Owned {
  unsigned char* at = nullptr;
  std::size_t bytes = 0;
  std::uint64_t seed = 0;
};

// Only some words are looked at: first, last, and one each page.
unsigned char byte_of(std::uint64_t seed, std::size_t at) {
  return static_cast<unsigned char>((seed * 0x9e3779b97f4a7c15u + at / 512 * 0xd6e8feb86659fd93u) >>
                                    56);
}

void write_all(const Owned& one, std::size_t from = 0) {
  for (std::size_t at = from; at < one.bytes; at += 512) one.at[at] = byte_of(one.seed, at);
}

bool is_right(const Owned& one, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 512)
    if (one.at[at] != byte_of(one.seed, at)) return false;
  return true;
}

class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed) {}
  ~Model() {
    for (Owned& one : all_) std::free(one.at);
  }

  // One call. False: some memory does not hold what it must.
  bool step() {
    const std::uint64_t what = random_() % 100;
    if (all_.size() < 4 || (what < 35 && all_.size() < 60)) return allocate();
    Owned& one = all_[random_() % all_.size()];
    if (!is_right(one, one.bytes)) return false;
    if (what < 65) return release(one);
    if (what < 85) return resize(one);
    if (what < 90) return give_up(one);
    if (what < 92) return fork_off();
    if (what < 93) return fork_and_exec();
    if (what < 95) return move_away(one);
    one.seed = random_();
    write_all(one);
    return true;
  }

 private:
  std::size_t size() {
    // As many of each power of two, from 1 KiB to 16 MiB; often whole pages.
    const std::size_t bytes = (std::size_t{1} << (10 + random_() % 14)) + random_() % 5000;
    return random_() % 3 == 0 ? bytes & ~std::size_t{4095} : bytes;
  }

  bool allocate() {
    Owned one{nullptr, std::max<std::size_t>(size(), 1), random_()};
    bool zero = false;
    switch (random_() % 4) {
      case 0:
        one.at = static_cast<unsigned char*>(std::calloc(1, one.bytes));
        zero = true;
        break;
      case 1: {
        void* at = nullptr;
        if (posix_memalign(&at, std::size_t{16} << random_() % 18, one.bytes) != 0) return false;
        one.at = static_cast<unsigned char*>(at);
        break;
      }
      default: one.at = static_cast<unsigned char*>(std::malloc(one.bytes)); break;
    }
    if (one.at == nullptr || malloc_usable_size(one.at) < one.bytes) return false;
    for (std::size_t at = 0; zero && at < one.bytes; at += 64)
      if (one.at[at] != 0) return false;
    write_all(one);
    all_.push_back(one);
    return true;
  }

  bool release(Owned& one) {
    std::free(one.at);
    one = all_.back();
    all_.pop_back();
    return true;
  }

  bool resize(Owned& one) {
    const std::size_t bytes = std::max<std::size_t>(size(), 1), before = one.bytes;
    one.at = static_cast<unsigned char*>(std::realloc(one.at, bytes));
    if (one.at == nullptr) return false;
    one.bytes = bytes;
    if (!is_right(one, std::min(before, bytes))) return false;
    write_all(one);
    return true;
  }

  // Whole pages within it, which then read as zero.
  bool give_up(Owned& one) {
    const auto number = reinterpret_cast<std::uintptr_t>(one.at);
    const std::uintptr_t begin = (number + 4095) & ~std::uintptr_t{4095};
    const std::uintptr_t end = (number + one.bytes) & ~std::uintptr_t{4095};
    if (end <= begin || !is_shared(one.at, one.bytes)) return true;
    auto* const at = reinterpret_cast<unsigned char*>(begin);
    if (madvise(at, end - begin, MADV_DONTNEED) != 0) return false;
    for (std::size_t i = 0; i < end - begin; i += 256)
      if (at[i] != 0) return false;
    write_all(one);
    return true;
  }

  // The child finds all as it was, ruins it, and goes on with calls of its own.
  bool fork_off() {
    const std::uint64_t seed = random_();
    const pid_t child = transparent::start_child([&] {
      for (const Owned& one : all_) CHILD_CHECK(is_right(one, one.bytes));
      random_.seed(seed);
      for (Owned& one : all_) {
        one.seed = ~one.seed;
        write_all(one);
      }
      for (int i = 0; i < 20; ++i) CHILD_CHECK(random_() % 100 == 0 || step_without_fork());
      for (const Owned& one : all_) CHILD_CHECK(is_right(one, one.bytes));
    });
    // The child has its copy by now, whatever happens here.
    rewrite_some();
    if (transparent::end_of(child) != 0) return false;
    for (const Owned& one : all_)
      if (!is_right(one, one.bytes)) return false;
    return true;
  }

  void rewrite_some() {
    for (Owned& one : all_) {
      if (random_() % 2 == 0) continue;
      one.seed = random_();
      write_all(one);
    }
  }

  bool fork_and_exec() {
    const pid_t child = transparent::start_child([] { execl("/bin/true", "true", nullptr); });
    rewrite_some();
    if (transparent::end_of(child) != 0) return false;
    for (const Owned& one : all_)
      if (!is_right(one, one.bytes)) return false;
    return true;
  }

  // Its pages get another place, larger or not, and leave zeroes.
  bool move_away(Owned& one) {
    const std::size_t bytes = one.bytes & ~std::size_t{4095};
    if (bytes == 0 || !is_shared(one.at, one.bytes)) return true;
    const std::size_t wanted = bytes + random_() % 3 * mib;
    void* const moved = mremap(one.at, bytes, wanted, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return false;
    if (moved == one.at) return wanted == bytes && is_right(one, one.bytes);
    const Owned there{static_cast<unsigned char*>(moved), bytes, one.seed};
    bool right = is_right(there, bytes);
    for (std::size_t at = bytes; at < wanted; at += 512) right = right && there.at[at] == 0;
    for (std::size_t at = 0; at < bytes; at += 512) right = right && one.at[at] == 0;
    munmap(moved, wanted);
    write_all(one);
    return right;
  }

  bool step_without_fork() {
    if (all_.size() < 4) return allocate();
    Owned& one = all_[random_() % all_.size()];
    return is_right(one, one.bytes) && (random_() % 2 == 0 ? resize(one) : release(one));
  }

  Random random_;
  std::vector<Owned> all_;
};

// HAUL_TEST_SEED repeats a run; HAUL_TEST_SECONDS makes it longer.
TEST(BornModel, RandomCallsLeaveEveryByteAsItMustBe) {
  const char* const given = std::getenv("HAUL_TEST_SEED");
  const char* const wanted = std::getenv("HAUL_TEST_SECONDS");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(wanted != nullptr ? std::atoi(wanted) : 3);
  bool stop = false, other_is_right = true;
  // Another thread does the same beside it, with allocations of its own.
  std::thread other([&] {
    Model model(seed + 1);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && other_is_right)
      other_is_right = model.step();
  });
  Model model(seed);
  std::uint64_t steps = 0;
  // (Some steps in any case: a busy machine may give this process no time until the end.)
  while (std::chrono::steady_clock::now() < end || steps < 100) {
    ASSERT_TRUE(model.step()) << "HAUL_TEST_SEED=" << seed << ", step " << steps;
    ++steps;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  other.join();
  EXPECT_TRUE(other_is_right) << "HAUL_TEST_SEED=" << seed << ", the other thread";
}

}  // namespace
