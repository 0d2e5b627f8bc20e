// Memory that a program reads and the kernel lends to nobody (memfd_secret, vvar): a checked copy
// reads it as the program does, and still reports what is not there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

// nullptr: the kernel has none.
unsigned char* secret_memory(std::size_t bytes) {
  const long fd = syscall(SYS_memfd_secret, 0);
  if (fd < 0 || ftruncate(static_cast<int>(fd), static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
  return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
}

int checked_copy(void* dst, const void* src, std::size_t bytes, std::size_t* good) {
  haul_request request = haul_request_copy(dst, src, bytes);
  request.flags = HAUL_CHECKED;
  haul_ticket ticket;
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  const int result = haul_wait(ticket);
  haul_progress(ticket, good);
  return result;
}

TEST(SecretMemory, IsCopiedByACheckedRequest) {
  const int status = run_child([] {
    quiet_environment();
    unsigned char* const secret = secret_memory(mib);
    if (secret == nullptr) return skip_status;
    const Buffer plain(mib);
    std::size_t good = 0;
    for (std::size_t at = 0; at < mib; ++at) secret[at] = Buffer::expected(1, at);
    CHILD_EQUAL(checked_copy(plain.data(), secret, mib, &good), 0);
    CHILD_EQUAL(std::memcmp(plain.data(), secret, mib), 0);
    plain.fill(2);
    CHILD_EQUAL(checked_copy(secret, plain.data(), mib, &good), 0);
    CHILD_EQUAL(std::memcmp(plain.data(), secret, mib), 0);
    // Within it.
    CHILD_EQUAL(checked_copy(secret + mib / 2, secret, mib / 2, &good), 0);
    CHILD_EQUAL(std::memcmp(plain.data(), secret + mib / 2, mib / 2), 0);
    // To where it ends, to the byte.
    CHILD_EQUAL(mprotect(secret + mib / 2, mib / 2, PROT_NONE), 0);
    plain.clear();
    CHILD_EQUAL(checked_copy(plain.data(), secret + 100, mib - 100, &good), HAUL_EFAULT);
    CHILD_EQUAL(good, mib / 2 - 100);
    CHILD_EQUAL(std::memcmp(plain.data(), secret + 100, good), 0);
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "this kernel has no memfd_secret";
  EXPECT_EQ(status, 0);
}

TEST(SecretMemory, TheKernelsOwnPagesAreCopiedByACheckedRequest) {
  const int status = run_child([] {
    quiet_environment();
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    CHILD_CHECK(maps != nullptr);
    char line[512];
    unsigned long begin = 0, end = 0;
    while (begin == 0 && std::fgets(line, sizeof line, maps) != nullptr) {
      if (std::strstr(line, "[vdso]") != nullptr) std::sscanf(line, "%lx-%lx", &begin, &end);
    }
    std::fclose(maps);
    if (begin == 0) return skip_status;
    const Buffer plain(4096);
    std::size_t good = 0;
    const void* const page = reinterpret_cast<const void*>(begin);
    CHILD_EQUAL(checked_copy(plain.data(), page, 4096, &good), 0);
    CHILD_EQUAL(std::memcmp(plain.data(), page, 4096), 0);
    return 0;
  });
  if (status == skip_status) GTEST_SKIP() << "this kernel shows no vdso";
  EXPECT_EQ(status, 0);
}

}  // namespace
