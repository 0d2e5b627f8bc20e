// What the library may not change about a program's memory: where the program wants no huge pages,
// how many mappings it has, and how much memory it takes.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cinttypes>
#include <string>
#include <vector>

#include "transparent/support.hpp"

namespace {

using namespace transparent;

// A field of smaps in KiB, summed over the mappings that begin in the range; of all by default.
std::size_t smaps_kib(const char* field, const void* begin = nullptr,
                      const void* end = reinterpret_cast<void*>(~std::uintptr_t{0})) {
  std::FILE* file = std::fopen("/proc/self/smaps", "r");
  CHILD_CHECK(file != nullptr);
  char line[512];
  std::size_t sum = 0;
  bool inside = false;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    std::uintptr_t from, to;
    std::size_t kib_here;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
      inside = from >= reinterpret_cast<std::uintptr_t>(begin) &&
               from < reinterpret_cast<std::uintptr_t>(end);
    if (inside && std::string(line).rfind(field, 0) == 0 &&
        std::sscanf(line + std::strlen(field), ": %zu kB", &kib_here) == 1)
      sum += kib_here;
  }
  std::fclose(file);
  return sum;
}

std::size_t huge_kib(const Memory& memory) {
  return smaps_kib("AnonHugePages", memory.data(), memory.data() + memory.size());
}

std::size_t mappings() {
  std::FILE* file = std::fopen("/proc/self/maps", "r");
  CHILD_CHECK(file != nullptr);
  std::size_t lines = 0;
  for (int c; (c = std::fgetc(file)) != EOF;) lines += c == '\n';
  std::fclose(file);
  return lines;
}

bool on_request() {
  std::FILE* file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  char text[64] = {};
  if (file == nullptr) return false;
  const bool read = std::fgets(text, sizeof text, file) != nullptr;
  std::fclose(file);
  return read && std::strstr(text, "[madvise]") != nullptr;
}

constexpr std::size_t size = 16 * mib;

TEST(Pages, NewMemoryIsPutOnHugePagesWhereTheSystemGivesThemOnRequest) {
  if (!on_request()) GTEST_SKIP() << "this kernel has no huge pages on request";
  EXPECT_EQ(
      run_child([] {
        const Memory from(size), to(size);
        from.fill(1);
        call_memcpy(to.data(), from.data(), size);
        if (plan_is("libc") || plan_is("profile") || plan_is("protected")) {
          CHILD_CHECK(huge_kib(to) == 0 && to.holds(1, size));
        } else if (plan_is("deferred")) {  // whose bytes come later
          usleep(300'000);
          CHILD_CHECK(to.holds(1, size) && huge_kib(to) * kib >= 2 * mib);
        } else {
          // Two that meet at a page may leave it small.
          CHILD_CHECK(huge_kib(to) * kib >= (plan_is("together") ? size / 2 : size - 4 * mib));
        }
      }),
      0);
}

TEST(Pages, WhereTheProgramForbidsHugePagesThereAreNone) {
  EXPECT_EQ(run_child([] {
              const Memory from(size), to(size);
              from.fill(1);
              CHILD_CHECK(madvise(to.data(), size, MADV_NOHUGEPAGE) == 0);
              call_memcpy(to.data(), from.data(), size);
              CHILD_CHECK(to.holds(1, size) && huge_kib(to) == 0);
            }),
            0);
}

TEST(Pages, AProcessThatForbidsHugePagesGetsNone) {
  EXPECT_EQ(run_child([] {
              CHILD_CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
              const Memory from(size), to(size);
              from.fill(1);
              call_memcpy(to.data(), from.data(), size);
              CHILD_CHECK(to.holds(1, size) && huge_kib(to) == 0);
            }),
            0);
}

TEST(Pages, WhatIsNoPartOfTheDestinationStaysUntouched) {
  EXPECT_EQ(run_child([] {
              // Within 2 MiB blocks that the copy does not fill.
              const Memory from(size), to(size);
              from.fill(1);
              const std::uint64_t before = smaps_kib("Rss", to.data(), to.data() + 1);
              call_memcpy(to.data() + 3 * mib, from.data(), 5 * mib);
              // (Waits until a deferred call is done.)
              CHILD_CHECK(mprotect(to.data(), size, PROT_READ | PROT_WRITE) == 0);
              const std::uint64_t now = smaps_kib("Rss", to.data(), to.data() + 1);
              CHILD_CHECK(before == 0);
              CHILD_CHECK(now >= 5 * kib && now <= 5 * kib + 40);
            }),
            0);
}

TEST(Pages, AProgramsMappingsAreAsMany) {
  EXPECT_EQ(run_child([] {
              // A mover, and what it needs, is made once.
              copy_for_a_while();
              for (int turn = 0; turn < 16; ++turn) copy_works(4 * mib);
              const Memory from(size), to(8 * size);
              from.fill(1);
              const std::size_t before = mappings();
              for (std::size_t i = 0; i < 8; ++i)
                call_memcpy(to.data() + i * size, from.data(), size);
              // (Protected memory is free when it has been touched.)
              for (std::size_t i = 0; plan_is("protected") && i < 8; ++i)
                CHILD_CHECK(to.data()[i * size + 8192] == from.data()[8192]);
              // (A page whose first use is waited for is a mapping of its own, for a second.)
              for (int turn = 0; turn < 50 && mappings() != before; ++turn) usleep(100'000);
              CHILD_CHECK(mappings() == before);
            }),
            0);
}

// The highest that a process has had, in KiB.
std::size_t peak_kib() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  CHILD_CHECK(file != nullptr);
  char line[256];
  std::size_t peak = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) std::sscanf(line, "VmHWM: %zu kB", &peak);
  std::fclose(file);
  return peak;
}

// Many blocks of malloc()'s that are filled by copies, a third of them freed on the way.
std::size_t peak_of_copies(void* (*copy)(void*, const void*, std::size_t)) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  EXPECT_EQ(run_child([&] {
              const Memory from(4 * mib);
              from.fill(1);
              std::vector<void*> blocks;
              for (int turn = 0; turn < 96; ++turn) {
                blocks.push_back(std::malloc(4 * mib));
                copy(blocks.back(), from.data(), 4 * mib);
                if (turn % 3 != 2) continue;
                std::free(blocks.back());
                blocks.pop_back();
              }
              const std::size_t peak = peak_kib();
              CHILD_CHECK(write(ends[1], &peak, sizeof peak) == sizeof peak);
            }),
            0);
  std::size_t peak = 0;
  if (read(ends[0], &peak, sizeof peak) != sizeof peak) peak = 0;
  close(ends[0]);
  close(ends[1]);
  return peak;
}

TEST(Pages, AProgramTakesNoMoreMemory) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(libc, nullptr);
  using Copy = void*(void*, const void*, std::size_t);
  const std::size_t without = peak_of_copies(reinterpret_cast<Copy*>(dlsym(libc, "memcpy")));
  const std::uint64_t before = taken_over();
  const std::size_t with = peak_of_copies(call_memcpy);
  EXPECT_EQ(taken_over(), before + 96);
  ASSERT_GT(without, 200'000u);
  EXPECT_LE(with, without + without / 50);
}

}  // namespace
