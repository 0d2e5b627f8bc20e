// The program brings its own malloc(), with a lock that is not recursive, and copies while it holds
// it: whoever called malloc() in that copy would wait for ever.
#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "transparent/support.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

class Locked {
 public:
  Locked() { pthread_mutex_lock(&lock); }
  ~Locked() { pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  const Locked locked;
  return __libc_malloc(size);
}
void free(void* block) {
  const Locked locked;
  __libc_free(block);
}
void* calloc(std::size_t count, std::size_t size) {
  const Locked locked;
  return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) {
  const Locked locked;
  return __libc_realloc(block, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  const Locked locked;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  *block = memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
}

namespace {

using namespace transparent;

// As a realloc() that moves a block.
void* copy_under_lock(const void* from, std::size_t size) {
  const Locked locked;
  void* const to = __libc_malloc(size);
  call_memcpy(to, from, size);
  return to;
}

TEST(Allocator, MayCopyWhileItHoldsItsLock) {
  EXPECT_EQ(run_child([] {
              const Memory from(4 * mib);
              from.fill(1);
              for (int turn = 0; turn < 40; ++turn) {
                void* const block = copy_under_lock(from.data(), 4 * mib);
                CHILD_CHECK(static_cast<std::uint64_t*>(block)[77] == Memory::word(1, 77));
                free(block);
              }
            }),
            0);
}

TEST(Allocator, MayDoSoOnThreadsOfTheProgram) {
  EXPECT_EQ(run_child([] {
              static const Memory from(4 * mib);
              from.fill(1);
              std::thread threads[3];
              for (std::thread& thread : threads)
                thread = std::thread([] {
                  for (int turn = 0; turn < 20; ++turn) {
                    copy_works();
                    free(copy_under_lock(from.data(), 4 * mib));
                  }
                });
              for (std::thread& thread : threads) thread.join();
            }),
            0);
}

}  // namespace
