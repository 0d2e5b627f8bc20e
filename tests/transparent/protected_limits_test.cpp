// What plan protected cannot keep up, or must leave alone: stacks, a process without descriptors,
// and system calls.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <thread>

#include "transparent/under_protection.hpp"

namespace transparent {
namespace {

// Where an array of this size was, functions that are called next have their frames, and a fault
// there would have the kernel put the signal's.
constexpr std::size_t array_bytes = 2 * mib;
[[gnu::noinline]] void use_stack(std::size_t bytes = array_bytes + mib) {
  volatile unsigned char frame[512] = {};
  if (bytes > sizeof frame) use_stack(bytes - sizeof frame);
  frame[0] = 1;
}

// The stack that a touch needs for its signal may not be protected itself.
TEST(Protected, StacksOfThreads) {
  IN_CHILD({
    const Memory from(2 * mib);
    from.fill(20);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8 * mib);
    struct Meeting {
      const Memory& from;
      pthread_barrier_t barrier;
      unsigned char* volatile at = nullptr;
    } meeting{from, {}, nullptr};
    pthread_barrier_init(&meeting.barrier, nullptr, 2);
    const auto body = [](void* context) -> void* {
      auto& [source, barrier, at] = *static_cast<Meeting*>(context);
      const auto with_array = [&] {
        unsigned char array[array_bytes];
        at = array;
        pthread_barrier_wait(&barrier);  // the main thread copies
        pthread_barrier_wait(&barrier);
        asm volatile("" : : "r"(array) : "memory");
      };
      with_array();
      use_stack();
      return nullptr;
    };
    pthread_t thread;
    CHILD_CHECK(pthread_create(&thread, &attributes, body, &meeting) == 0);
    pthread_barrier_wait(&meeting.barrier);
    call_memcpy(meeting.at, from.data(), array_bytes);
    pthread_barrier_wait(&meeting.barrier);
    pthread_join(thread, nullptr);
  });
}

TEST(Protected, TheMainThreadsStack) {
  IN_CHILD({
    const Memory from(array_bytes);
    from.fill(21);
    use_stack();  // now it is there
    const auto with_array = [&] {
      unsigned char array[array_bytes];
      std::thread([&] { call_memcpy(array, from.data(), array_bytes); }).join();
      asm volatile("" : : "r"(array) : "memory");
    };
    with_array();
    use_stack();
  });
}

// The mover opens a file for each stretch: what it could not move comes all the same, but for what
// the program has taken away without libc.
TEST(Protected, DescriptorsRunOut) {
  IN_CHILD(for (int turn = 0; turn < 4; ++turn) {
    const UnderProtection copy(31);
    rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    constexpr std::size_t gone = size / 2;  // a page of the source
    if (turn % 2 != 0) unmap_unseen(copy.from() + gone, 4096);
    CHILD_CHECK(copy.right(size - mib, size));
    setrlimit(RLIMIT_NOFILE, &before);
    CHILD_CHECK(copy.right(0, gone) && copy.right(gone + 4096, size));
  });
}

// Paper 000's limit, which the guide names: the kernel serves nobody there.
TEST(Protected, SystemCallsFailOrSeeTheBytes) {
  IN_CHILD({
    const UnderProtection copy(30);
    int ends[2];
    CHILD_CHECK(pipe(ends) == 0);
    std::uint64_t word = 0;
    const ssize_t written = write(ends[1], copy.to() + size / 2, 8);
    if (written < 0) {
      CHILD_CHECK(plan_is("protected") && errno == EFAULT);
    } else {
      CHILD_CHECK(read(ends[0], &word, 8) == 8 && word == Memory::word(30, size / 16));
    }
    CHILD_CHECK(copy.right());
  });
}

}  // namespace
}  // namespace transparent
