// haul's threads allocate nothing: malloc may be the program's own, and glibc's reserves 64 MiB of
// addresses in each thread that calls it. This program's own malloc tells who calls.
#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <cstdlib>

#include "e2e/service_support.hpp"

namespace {

std::atomic<unsigned> calls_of_hauls{0};
std::atomic<char> caller[16];

// (Not used where a sanitizer has the malloc.)
[[maybe_unused]] void note_caller() noexcept {
  char name[16] = {};
  prctl(PR_GET_NAME, name, 0, 0, 0);
  if (std::strncmp(name, "haul-", 5) != 0) return;
  for (std::size_t i = 0; i < sizeof name; ++i) caller[i] = name[i];
  ++calls_of_hauls;
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  note_caller();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note_caller();
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  note_caller();
  return __libc_realloc(block, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note_caller();
  return __libc_memalign(alignment, bytes);
}
}
constexpr bool watched = true;
#else
constexpr bool watched = false;
#endif

namespace {

using namespace e2e;

void none_has_allocated() {
  char name[16];
  for (std::size_t i = 0; i < sizeof name; ++i) name[i] = caller[i];
  if (calls_of_hauls != 0) std::fprintf(stderr, "malloc was called by %s\n", name);
  CHILD_EQUAL(calls_of_hauls.load(), 0u);
}

class NoMalloc : public testing::Test {
 protected:
  void SetUp() override {
    if (!watched) GTEST_SKIP() << "a sanitizer's runtime has a malloc of its own";
  }
};

// The machine is looked at, the distance measured, the calibration made, stored and loaded.
void use_a_mover() {
  CHILD_CHECK(wake_and_see());
  copy_works(mib, 1);
  haul_state state{};
  state.size = sizeof state;
  for (int turn = 0; turn < 2000 && state.round_trip_ns == 0; ++turn) {
    copy_works(4 * mib, 2);
    CHILD_EQUAL(haul_query(&state), 0);
    sleep_ms(1);
  }
  std::thread([] { copy_works(mib, 4); }).join();
  copy_works(4 * mib, 3);
}

TEST_F(NoMalloc, WithAMoverAndCalibration) {
  EXPECT_EQ(run_child([] {
              always_mover();
              setenv("HAUL_TUNE_BACKGROUND", "on", 1);
              const std::string file =
                  testing::TempDir() + "haul-no-malloc-" + std::to_string(getpid());
              setenv("HAUL_TUNE_CACHE", file.c_str(), 1);
              use_a_mover();
              // (A machine that is too busy to be measured stores nothing.)
              for (int turn = 0; turn < 300 && access(file.c_str(), F_OK) != 0; ++turn)
                sleep_ms(10);
              unlink(file.c_str());
              none_has_allocated();
              CHILD_EQUAL(haul_shutdown(), 0);
              none_has_allocated();
              return 0;
            }),
            0);
}

TEST_F(NoMalloc, InAForksChild) {
  EXPECT_EQ(run_child([] {
              always_mover();
              CHILD_CHECK(wake_and_see());
              CHILD_EQUAL(run_child([] {
                            use_a_mover();
                            none_has_allocated();
                            return 0;
                          }),
                          0);
              none_has_allocated();
              return 0;
            }),
            0);
}

TEST_F(NoMalloc, WhereMoversRetireAndComeBack) {
  EXPECT_EQ(run_child([] {
              always_mover();
              for (int round = 0; round < 5; ++round) {
                std::thread([] { CHILD_CHECK(wake_and_see()); }).join();
                sleep_ms(300);
              }
              none_has_allocated();
              return 0;
            }),
            0);
}

TEST_F(NoMalloc, AsAClientOfTheService) {
  Service service;
  ASSERT_TRUE(service.start());
  EXPECT_EQ(run_child([&service] {
              service.use();
              CHILD_CHECK(attach());
              copy_works(4 * mib, 1);
              const Shared src(4 * mib), dst(4 * mib);
              src.fill(2);
              CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), src.size())), 0);
              none_has_allocated();
              return 0;
            }),
            0);
}

}  // namespace
