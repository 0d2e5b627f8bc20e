// Programs that have little, or give something up.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <string>

#include "transparent/support.hpp"

namespace {

using namespace transparent;

void limit(int what, rlim_t value) {
  const rlimit now{value, value};
  CHILD_CHECK(setrlimit(static_cast<__rlimit_resource>(what), &now) == 0);
}

std::size_t address_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  CHILD_CHECK(file != nullptr && std::fscanf(file, "%zu", &pages) == 1);
  std::fclose(file);
  return pages * 4096;
}

TEST(Limits, FewAddressesAreLeft) {
  for (const std::size_t rest : {std::size_t{0}, 64 * kib, 4 * mib}) {
    EXPECT_EQ(run_child([&] {
                const Memory from(4 * mib), to(4 * mib);
                from.fill(5);
                limit(RLIMIT_AS, address_bytes() + rest);
                for (int turn = 0; turn < 4; ++turn) {
                  call_memset(to.data(), 0, 4 * mib);
                  call_memcpy(to.data(), from.data(), 4 * mib);
                  CHILD_CHECK(to.holds(5, 4 * mib));
                }
              }),
              0)
        << rest;
  }
}

TEST(Limits, NoThreadMayBeMade) {
  EXPECT_EQ(run_child([] {
              // (Root may have as many as it likes.)
              if (getuid() == 0) CHILD_CHECK(setresuid(65534, 65534, 65534) == 0);
              limit(RLIMIT_NPROC, 0);
              for (int turn = 0; turn < 4; ++turn) copy_works(4 * mib);
            }),
            0);
}

TEST(Limits, AUserNamespaceMayBeMadeAfterTheLibraryCame) {
  const int status = run_child([] {
    if (unshare(CLONE_NEWUSER) != 0) {
      CHILD_CHECK(errno != EINVAL);  // that would be a thread of the library's
      _exit(77);
    }
    for (int turn = 0; turn < 4; ++turn) copy_works(4 * mib);
  });
  if (status == 77) GTEST_SKIP() << "the kernel refuses a user namespace";
  EXPECT_EQ(status, 0);
}

TEST(Limits, EveryDescriptorMayBeClosed) {
  for (const bool copied_before : {false, true}) {
    EXPECT_EQ(run_child([&] {
                if (copied_before) copy_works(4 * mib);
                syscall(SYS_close_range, 0u, ~0u, 0u);
                for (int turn = 0; turn < 6; ++turn) copy_works(4 * mib);
                // What the library opened meanwhile, it has closed, or it is not where a program
                // looks for its streams.
                const int first = dup(memfd_create("first", 0));
                CHILD_CHECK(first >= 0 && first <= 2);
              }),
              0);
  }
}

// (Whether a filter kills cannot be found out then, so the library stands aside.)
TEST(Limits, NoDescriptorMayBeOpened) {
  EXPECT_EQ(run_child([] {
              limit(RLIMIT_NOFILE, 0);
              for (int turn = 0; turn < 4; ++turn) copy_works(4 * mib, false);
            }),
            0);
}

// The table of --report is a file, too, which is made before main(): it must not cost the program
// its life.
TEST(Limits, NoFileMayGrow) {
  EXPECT_EQ(run_child([] {
              limit(RLIMIT_FSIZE, 4096);
              execl("/bin/true", "true", nullptr);
            }),
            0);
}

TEST(Limits, TheTablesDirectoryMayBeGone) {
  EXPECT_EQ(run_child([] {
              setenv(report_variable, "/proc/nonexistent/tables", 1);
              execl("/bin/true", "true", nullptr);
            }),
            0);
}

// What is watched becomes one mapping with its watched neighbours, so that ending a watch takes a
// mapping more than the process may have. Whoever unmaps the memory would wait for ever for a
// thread that had gone to rest.
TEST(Limits, NoMappingMayBeMade) {
  EXPECT_EQ(
      run_child([] {
        constexpr std::size_t size = 8 * mib, room = std::size_t{1} << 30;
        const Memory from(size), to(3 * size);
        from.fill(6);
        copy_works(size);  // makes threads, which need mappings
        void* const all =
            mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHILD_CHECK(all != MAP_FAILED);
        auto* const split = static_cast<unsigned char*>(all);
        // Every second page: until the kernel refuses. A few are for what follows.
        std::size_t made = 0;
        while ((made + 1) * 8192 <= room && mprotect(split + made * 8192, 4096, PROT_READ) == 0)
          ++made;
        constexpr std::size_t spare = 8;
        CHILD_CHECK(made > spare);
        for (std::size_t i = made - spare; i < made; ++i)
          mprotect(split + i * 8192, 4096, PROT_NONE);
        for (const std::size_t which : {1, 0, 2})
          call_memcpy(to.data() + which * size, from.data(), size);
        for (std::size_t i = made - spare; i < made; ++i)
          mprotect(split + i * 8192, 4096, PROT_READ);
        usleep(100'000);
        for (const std::size_t which : {0, 1, 2})
          for (std::size_t i = 0; i < size / 8; i += 512) {
            std::uint64_t word;
            __builtin_memcpy(&word, to.data() + which * size + 8 * i, 8);
            CHILD_CHECK(word == Memory::word(6, i));
          }
      }),
      0);
}

}  // namespace
