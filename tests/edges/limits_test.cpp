// Limits on what a process may have, set before or after haul starts: copies go on, inline if need
// be, the program keeps what the limit leaves it, and nothing ends by a signal.
#include <grp.h>
#include <gtest/gtest.h>
#include <haul/atomic.h>
#include <pthread.h>
#include <sys/resource.h>

#include <thread>

#include "room_support.hpp"

#if defined(__SANITIZE_ADDRESS__)
// Its look for leaks at exit() makes a process, which a limit forbids.
extern "C" __attribute__((used)) const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

namespace {

using namespace edges;

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  CHILD_EQUAL(setrlimit(resource, &both), 0);
}

// What a program does with haul, under the limit. Only copies must work.
int use() {
  copy_works(100, 1);
  copy_works(mib, 2);
  haul_wake();
  copy_works(4 * mib, 3);
  haul_free(haul_alloc(mib));
  haul_reap_eventfd();
  std::thread([] { copy_works(mib, 4); }).join();
  copy_works(4 * mib, 5);
  std::exit(0);
}

// `set` before haul's first call, and after it.
template <class Set>
void expect_copies_under(Set set) {
  EXPECT_EQ(run_child([&] {
              always_mover();
              set();
              return use();
            }),
            0)
      << "set before the first call";
  EXPECT_EQ(run_child([&] {
              always_mover();
              copy_works(mib, 6);
              haul_wake();
              set();
              return use();
            }),
            0)
      << "set after the first call";
}

TEST(Limits, NoDescriptorButTheStreams) {
  if (sanitizer) GTEST_SKIP() << "sanitizers open files of their own";
  expect_copies_under([] { limit(RLIMIT_NOFILE, 3); });
}

TEST(Limits, NoFileOfAnySize) {
  expect_copies_under([] { limit(RLIMIT_FSIZE, 0); });
}

TEST(Limits, NoLockedMemory) {
  expect_copies_under([] { limit(RLIMIT_MEMLOCK, 0); });
}

TEST(Limits, NoPendingSignalsNorRealTime) {
  expect_copies_under([] {
    limit(RLIMIT_SIGPENDING, 0);
    limit(RLIMIT_RTPRIO, 0);
    limit(RLIMIT_CORE, 0);
  });
}

// Little data: what is left is 64 MiB, which copies leave to the program.
TEST(Limits, LittleData) {
  if (sanitizer) GTEST_SKIP() << "sanitizers reserve terabytes";
  expect_copies_under([] { limit(RLIMIT_DATA, 96 * mib); });
}

TEST(Limits, LittleAddressSpace) {
  if (sanitizer) GTEST_SKIP() << "sanitizers reserve terabytes";
  expect_copies_under([] {
    long pages = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    CHILD_EQUAL(std::fscanf(file, "%ld", &pages), 1);
    std::fclose(file);
    limit(RLIMIT_AS, static_cast<rlim_t>(pages) * 4096 + 64 * mib);
    // A thread of the program's must find room for its stack.
    const rlimit stack{1 * mib, RLIM_INFINITY};
    setrlimit(RLIMIT_STACK, &stack);
  });
}

// What the program may still have after haul's threads were made, in all sizes down to a page: a
// thread of haul's that called malloc would cost 64 MiB, which glibc reserves for each.
TEST(Limits, FewAddressesGoToHaul) {
  if (sanitizer) GTEST_SKIP() << "sanitizers reserve terabytes";
  EXPECT_EQ(
      run_child([] {
        always_mover();
        long pages = 0;
        std::FILE* file = std::fopen("/proc/self/statm", "r");
        CHILD_EQUAL(std::fscanf(file, "%ld", &pages), 1);
        std::fclose(file);
        limit(RLIMIT_AS, static_cast<rlim_t>(pages) * 4096 + 400 * mib);
        CHILD_CHECK(wake_and_see());
        copy_works(mib, 1);
        haul_state state = state_now();
        for (int turn = 0; turn < 2000 && state.round_trip_ns == 0; ++turn) {
          sleep_ms(1);
          state = state_now();
        }
        // Not all of it need lie in one piece.
        std::size_t left = 0;
        for (std::size_t size = 64 * mib; size >= 4 * kib; size /= 2) {
          while (mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            left += size;
        }
        if (left < 390 * mib) std::fprintf(stderr, "%zu MiB are left\n", left / mib);
        CHILD_CHECK(left >= 390 * mib);
        return 0;
      }),
      0);
}

TEST(Limits, ThreadsAndMemoryFindRoomInFewAddresses) {
  if (sanitizer) GTEST_SKIP() << "sanitizers need addresses";
  EXPECT_EQ(run_child([] {
              always_mover();
              copy_works(mib, 1);
              const std::size_t before = kib_of("/proc/self/status", "VmSize:");
              rlimit limit{};
              limit.rlim_cur = limit.rlim_max = (before + 400 * kib) * kib;
              CHILD_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
              // A child, which begins with no ring and no mover.
              return run_child([] {
                copy_works(mib, 2);
                CHILD_EQUAL(haul_free(haul_alloc(mib)), 0);
                with_threads(
                    8, [](unsigned) { use_a_ring(); }, [] {});
                void* most =
                    mmap(nullptr, 256 * mib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHILD_CHECK(most != MAP_FAILED);
                return 0;
              });
            }),
            0);
}

// A real-time program, with all its memory locked, does not find arenas of malloc's among it, nor
// all of a ring that it uses little.
TEST(Limits, LittleIsLockedWhereAllIs) {
  if (sanitizer) GTEST_SKIP() << "sanitizers need memory";
  const int status = run_child([] {
    always_mover();
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (unprivileged() && limit.rlim_cur < 1024 * mib) return skip_status;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return skip_status;
    const Buffer src(mib), dst(mib);
    src.fill(4);
    const std::size_t locked = locked_kib(), resident = resident_kib();
    CHILD_EQUAL(haul_wait(copy_by_mover(dst.data(), src.data(), mib)), 0);
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
    CHILD_CHECK(locked_kib() <= locked + 4 * kib);
    CHILD_CHECK(resident_kib() <= resident + 3 * kib);
    CHILD_EQUAL(haul_free(haul_alloc(4 * kib)), 0);
    CHILD_CHECK(resident_kib() <= resident + 5 * kib);
    CHILD_CHECK(locked_kib() <= locked + 6 * kib);
    // Rings come to rest all the same. (glibc keeps the stacks, which are locked as well.)
    with_threads(
        100, [](unsigned) {}, [] {});
    const std::size_t with_stacks = resident_kib();
    with_threads(
        100, [](unsigned) { use_a_ring(); }, [] {});
    const std::size_t after = resident_kib();
    if (after > with_stacks + 8 * kib)
      std::fprintf(stderr, "resident: %zu, %zu KiB\n", with_stacks, after);
    CHILD_CHECK(after <= with_stacks + 8 * kib);
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "this user may lock little of its memory";
  EXPECT_EQ(status, 0);
}

// A stack of the least size is enough for every call.
TEST(Limits, AThreadWithTheSmallestStack) {
  if (sanitizer) GTEST_SKIP() << "sanitizers need more stack";
  EXPECT_EQ(run_child([] {
              always_mover();
              pthread_attr_t attributes;
              pthread_attr_init(&attributes);
              CHILD_EQUAL(pthread_attr_setstacksize(&attributes, 32 * kib), 0);
              pthread_t thread;
              CHILD_EQUAL(pthread_create(
                              &thread, &attributes,
                              [](void*) -> void* {
                                static unsigned char src[64 * 1024], dst[64 * 1024];
                                src[0] = src[sizeof src - 1] = 7;
                                for (int round = 0; round < 3; ++round) {
                                  std::memset(dst, 0, sizeof dst);
                                  CHILD_EQUAL(haul_wait(haul_copy(dst, src, sizeof src)), 0);
                                  CHILD_EQUAL(std::memcmp(dst, src, sizeof src), 0);
                                  haul_wake();
                                  haul_free(haul_alloc(mib));
                                  haul_reap_eventfd();
                                }
                                CHILD_EQUAL(haul_shutdown(), 0);
                                return nullptr;
                              },
                              nullptr),
                          0);
              CHILD_EQUAL(pthread_join(thread, nullptr), 0);
              return 0;
            }),
            0);
}

// Ordinary users may have no further thread or process: nor may haul.
void allow_no_further_thread() {
  if (geteuid() == 0) {
    CHILD_EQUAL(setgroups(0, nullptr), 0);
    CHILD_EQUAL(setresgid(65534, 65534, 65534), 0);
    CHILD_EQUAL(setresuid(65534, 65534, 65534), 0);
  }
  limit(RLIMIT_NPROC, 1);
}

TEST(Limits, NoFurtherThread) {
  EXPECT_EQ(run_child([] {
              always_mover();
              allow_no_further_thread();
              copy_works(100, 1);
              copy_works(mib, 2);
              haul_wake();
              copy_works(4 * mib, 3);
              std::exit(0);
              return 0;
            }),
            0);
}

TEST(Limits, NoFurtherThreadForAResponder) {
  EXPECT_EQ(run_child([] {
              allow_no_further_thread();
              for (const char* responder : {"poll:127.0.0.1", "block:127.0.0.1"}) {
                haul_atomic_node* node = nullptr;
                CHILD_EQUAL(haul_atomic_node_open(responder, nullptr, &node), HAUL_ENOMEM);
                CHILD_CHECK(std::strstr(haul_last_error(), "ulimit -u") != nullptr);
              }
              return 0;
            }),
            0);
}

}  // namespace
