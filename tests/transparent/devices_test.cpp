// Deferred calls beside an engine that keeps memory registered (`uring`, which pins for real). Each
// watches memory by a userfaultfd of its own, and of a range the kernel lets one watch: so what is
// registered is not deferred, what is deferred is registered for one use, and every byte is where
// it belongs.
#include <gtest/gtest.h>
#include <haul/haul.h>
#include <sys/resource.h>

#include <memory>
#include <random>

#include "transparent/deferrals.hpp"

namespace {

using namespace transparent;

constexpr std::size_t size = 4 * mib;

// libhaul reads its settings when it is loaded: this is set before the program runs itself again.
const bool chosen =
    setenv("HAUL_PLAN_ENGINE", "uring", 1) == 0 && setenv("HAUL_PLAN_MOVER", "caller", 1) == 0;

void copy_by_device(const Memory& to, const Memory& from) {
  const haul_request request = haul_request_copy(to.data(), from.data(), size);
  haul_ticket ticket{};
  CHILD_CHECK(haul_submit(&request, 1, &ticket) == 1);
  CHILD_CHECK(haul_wait(ticket) == 0);
}

haul_engine_info uring() {
  haul_engine_info info{};
  info.size = sizeof info;
  for (unsigned index = 0; haul_engine(index, &info) == 0; ++index)
    if (std::strcmp(info.name, "uring") == 0) break;
  return info;
}

// Does the kernel let this user have the engine? (It is opened by the first copy.)
bool opens() {
  const Memory from(size), to(size);
  from.fill(1);
  for (int turn = 0; turn < 2000; ++turn) {
    copy_by_device(to, from);
    if (std::strstr(uring().status, "opened") == nullptr) break;
    usleep(1000);
  }
  return uring().available != 0;
}

// (Elsewhere other programs of the user may have locked all that it may.)
bool may_lock_much() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return geteuid() == 0 || limit.rlim_cur >= 256 * mib;
}

void in_child_with_uring(void (*body)()) {
  const int end = run_child([body] {
    if (!opens()) _exit(77);
    body();
  });
  if (end == 77) GTEST_SKIP() << "no io_uring for this user";
  EXPECT_EQ(end, 0);
}

bool all_zero(const Memory& memory) {
  for (std::size_t at = 0; at < size; ++at)
    if (memory.data()[at] != 0) return false;
  return true;
}

// Areas of memory, and of each what it must hold: fill(seed), or zeros where the seed is 0.
class Areas {
 public:
  explicit Areas(unsigned seed) : random_(seed) {
    for (std::size_t i = 0; i < count; ++i) renew(i);
  }

  void act() {
    const std::size_t from = random_() % count, to = random_() % count;
    switch (random_() % 10) {
      case 0: renew(to); break;
      case 1: give_back(to); break;
      case 2: write(to); break;
      case 3: check(to); break;
      case 4:
      case 5:
      case 6:
        if (from != to) copy_by_device(*areas_[to], *areas_[from]);
        seeds_[to] = seeds_[from];
        break;
      default:
        if (from != to) call_memcpy(areas_[to]->data(), areas_[from]->data(), size);
        seeds_[to] = seeds_[from];
        break;
    }
  }

  void check(std::size_t i) const {
    CHILD_CHECK(seeds_[i] != 0 ? areas_[i]->holds(seeds_[i], size) : all_zero(*areas_[i]));
  }
  void check() const {
    for (std::size_t i = 0; i < count; ++i) check(i);
  }

 private:
  static constexpr std::size_t count = 4;

  void renew(std::size_t i) {
    areas_[i].reset();
    areas_[i] = std::make_unique<Memory>(size);
    seeds_[i] = 0;
  }
  void give_back(std::size_t i) {
    CHILD_CHECK(madvise(areas_[i]->data(), size, MADV_DONTNEED) == 0);
    seeds_[i] = 0;
  }
  void write(std::size_t i) {
    seeds_[i] = 1 + random_() % 1000;
    areas_[i]->fill(seeds_[i]);
  }

  std::mt19937 random_;
  std::unique_ptr<Memory> areas_[count];
  std::uint64_t seeds_[count] = {};
};

TEST(Devices, EveryByteIsWhereItBelongs) {
  ASSERT_TRUE(chosen);
  in_child_with_uring([] {
    const std::uint64_t begun = deferrals_begun(), chunks = uring().chunks;
    for (unsigned seed = 1; seed <= 3; ++seed) {
      Areas areas(seed);
      for (int turn = 0; turn < 60; ++turn) areas.act();
      areas.check();
    }
    if (may_lock_much()) CHILD_CHECK(uring().chunks > chunks);
    if (plan_is("deferred") && can_defer()) CHILD_CHECK(deferrals_begun() > begun);
  });
}

// What is deferred is there for a device that reads it at once.
TEST(Devices, ReadWhatIsDeferred) {
  in_child_with_uring([] {
    for (unsigned turn = 1; turn <= 8; ++turn) {
      const Memory from(size), deferred(size), last(size);
      from.fill(turn);
      call_memcpy(deferred.data(), from.data(), size);
      copy_by_device(last, deferred);
      CHILD_CHECK(last.holds(turn, size));
      CHILD_CHECK(deferred.holds(turn, size));
    }
  });
}

// What is copied over memory that a device keeps is there for its next copy, pages that were given
// back in between too.
TEST(Devices, KeepWhatIsCopiedOver) {
  in_child_with_uring([] {
    const Memory kept(size), other(size);
    for (unsigned turn = 1; turn <= 32; ++turn) {
      const Memory from(size);
      from.fill(turn);
      call_memcpy(kept.data(), from.data(), size);
      copy_by_device(other, kept);
      CHILD_CHECK(other.holds(turn, size));
      if (turn % 2 == 0) CHILD_CHECK(madvise(kept.data(), size, MADV_DONTNEED) == 0);
    }
  });
}

}  // namespace
