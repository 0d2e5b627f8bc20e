// Copies by an engine that must have memory registered (`uring`, which pins for real), while the
// program changes what lies at its addresses: every byte is where it belongs, whatever the cache of
// registered memory holds.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

constexpr std::size_t page = 4096;

haul_engine_info uring() {
  return engine_now("uring");
}

void choose_uring(const char* mover, const char* registering) {
  always_mover();
  setenv("HAUL_PLAN_MOVER", mover, 1);
  setenv("HAUL_PLAN_ENGINE", "uring", 1);
  setenv("HAUL_MEMORY_REGISTER", registering, 1);
}

void copy(void* dst, const void* src, std::size_t bytes) {
  const haul_request request = haul_request_copy(dst, src, bytes);
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
}

// Does the kernel let this user have the engine? (It is opened by the first copy.)
bool opens() {
  std::vector<char> from(mib, 'a'), to(mib);
  for (int turn = 0; turn < 2000; ++turn) {
    copy(to.data(), from.data(), mib);
    if (std::strstr(uring().status, "opened") == nullptr) break;
    sleep_ms(1);
  }
  return uring().available != 0;
}

// A program's address range of which some is mapped, and a mirror of what each byte must be.
class Mirror {
 public:
  explicit Mirror(unsigned seed) : random_(seed), bytes_(pages * page), mapped_(pages, true) {
    base_ = static_cast<std::uint8_t*>(map(nullptr, pages, 0));
    std::memset(base_, 0, pages * page);
  }

  void act() {
    const std::size_t first = random_() % pages;
    const std::size_t count = 1 + random_() % (pages - first);
    switch (random_() % 12) {
      case 0: unmap(first, count); break;
      case 1: remap(first, count); break;
      case 2: give_back(first, count); break;
      case 3: swap_pages(); break;
      case 4: write(first, count); break;
      case 5: fork_once(); break;
      default: copy_some(); break;
    }
  }

  void check() const {
    for (std::size_t at = 0; at < pages; ++at) {
      if (!mapped_[at]) continue;
      CHILD_EQUAL(std::memcmp(base_ + at * page, &bytes_[at * page], page), 0);
    }
  }

 private:
  static constexpr std::size_t pages = 96;

  static void* map(void* at, std::size_t count, int flags) {
    return mmap(at, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
                0);
  }
  bool is_mapped(std::size_t first, std::size_t count) const {
    for (std::size_t at = first; at < first + count; ++at)
      if (!mapped_[at]) return false;
    return true;
  }
  void zero(std::size_t first, std::size_t count) {
    std::memset(&bytes_[first * page], 0, count * page);
    for (std::size_t at = first; at < first + count; ++at) mapped_[at] = true;
  }

  // (What is unmapped is kept for this, or the kernel would put other things there.)
  void unmap(std::size_t first, std::size_t count) {
    munmap(base_ + first * page, count * page);
    mmap(base_ + first * page, count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
         0);
    for (std::size_t at = first; at < first + count; ++at) mapped_[at] = false;
    if (random_() % 8 != 0) remap(first, count);
  }
  void remap(std::size_t first, std::size_t count) {
    map(base_ + first * page, count, MAP_FIXED);
    zero(first, count);
  }
  void give_back(std::size_t first, std::size_t count) {
    if (!is_mapped(first, count)) return;
    madvise(base_ + first * page, count * page, MADV_DONTNEED);
    zero(first, count);
  }
  // mremap(): a page changes places with another. (It moves no two mappings at once.)
  void swap_pages() {
    const std::size_t one = random_() % pages, other = random_() % pages;
    if (one == other || !mapped_[one] || !mapped_[other]) return;
    void* const aside = map(nullptr, 1, 0);
    const auto move = [](void* from, void* to) {
      CHILD_CHECK(mremap(from, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    };
    move(base_ + one * page, aside);
    move(base_ + other * page, base_ + one * page);
    move(aside, base_ + other * page);
    std::swap_ranges(&bytes_[one * page], &bytes_[one * page] + page, &bytes_[other * page]);
  }
  void write(std::size_t first, std::size_t count) {
    for (std::size_t at = first; at < first + count; ++at) {
      if (!mapped_[at]) continue;
      const auto value = static_cast<std::uint8_t>(random_());
      std::memset(base_ + at * page, value, page);
      std::memset(&bytes_[at * page], value, page);
    }
  }
  // The child sees what the parent has, and copies for itself.
  void fork_once() {
    const pid_t child = fork();
    if (child == 0) {
      check();
      copy_some();
      check();
      _exit(0);
    }
    int status = 0;
    CHILD_EQUAL(waitpid(child, &status, 0), child);
    CHILD_EQUAL(status, 0);
  }
  void copy_some() {
    const std::size_t most = (random_() % 4 == 0 ? pages / 2 : pages / 12) * page;
    const std::size_t length = 1 + random_() % most;
    const std::size_t dst = random_() % (pages * page - length);
    const std::size_t src = random_() % (pages * page - length);
    const auto touches = [&](std::size_t at) {
      return is_mapped(at / page, (at + length - 1) / page - at / page + 1);
    };
    if (!touches(dst) || !touches(src)) return;
    copy(base_ + dst, base_ + src, length);
    std::memmove(&bytes_[dst], &bytes_[src], length);
  }

  std::mt19937 random_;
  std::uint8_t* base_ = nullptr;
  std::vector<std::uint8_t> bytes_;
  std::vector<bool> mapped_;
};

struct Setting {
  const char* mover;
  const char* registering;
};

class Registration : public testing::TestWithParam<Setting> {};

TEST_P(Registration, IsRightWhateverBecomesOfTheMemory) {
  const int status = run_child([] {
    choose_uring(GetParam().mover, GetParam().registering);
    if (!opens()) return skip_status;
    constexpr unsigned seed = 20261127;
    Mirror mirror(seed);
    for (int turn = 0; turn < 1500; ++turn) {
      mirror.act();
      mirror.check();
    }
    CHILD_CHECK(uring().chunks > 30);  // (waiters and movers help)
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "no io_uring for this user";
  EXPECT_EQ(status, 0);
}

// `haul info` and `haul bench` know by the engine's sentence that it registers memory.
TEST(RegistrationIsTold, ByTheEngineThatNeedsIt) {
  const int status = run_child([] {
    choose_uring("caller", "cached");
    if (!opens()) return skip_status;
    CHILD_CHECK(std::strstr(uring().status, " us to register a page") != nullptr);
    CHILD_CHECK(std::strstr(engine_now("cpu").status, "register") == nullptr);
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "no io_uring for this user";
  EXPECT_EQ(status, 0);
}

// haul's thread that is told of changes does not keep a process alive.
TEST(RegistrationEnds, WithTheProgramsThreads) {
  const int status = run_child([] {
    choose_uring("caller", "cached");
    if (!opens()) return skip_status;
    syscall(SYS_exit, 0);  // (pthread_exit() would unwind GoogleTest's frames)
    return 1;
  });
  if (status == skip_status) GTEST_SKIP() << "no io_uring for this user";
  EXPECT_EQ(status, 0);
}

// A program that closes all descriptors takes haul's watch with it: copies stay right.
TEST(RegistrationEnds, WhereTheProgramClosesDescriptors) {
  const int status = run_child([] {
    choose_uring("caller", "cached");
    if (!opens()) return skip_status;
    const Buffer from(mib), to(mib);
    copy(to.data(), from.data(), mib);
    for (int fd = 3; fd < 64; ++fd) close(fd);
    for (unsigned turn = 0; turn < 20; ++turn) {
      madvise(to.data(), mib, MADV_DONTNEED);
      from.fill(turn);
      copy(to.data(), from.data(), mib);
      CHILD_EQUAL(std::memcmp(to.data(), from.data(), mib), 0);
    }
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "no io_uring for this user";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Registration,
                         testing::Values(Setting{"caller", "cached"}, Setting{"thread", "cached"},
                                         Setting{"caller", "overlapped"},
                                         Setting{"thread", "blocking"}),
                         [](const auto& setting) {
                           return std::string(setting.param.mover) + "_" +
                                  setting.param.registering;
                         });

}  // namespace
