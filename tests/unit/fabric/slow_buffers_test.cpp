// What kind of memory a buffer lies in, and what is counted of it.
#include "fabric/transport/slow_buffers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <haul/haul.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

namespace haul::fabric {
namespace {

constexpr std::size_t message = std::size_t{64} << 10;
char without_bytes[2 * message];           // .bss
char with_bytes[2 * message] = {1, 2, 3};  // .data

struct Look {
  std::unique_ptr<SlowBuffers> buffers = std::make_unique<SlowBuffers>();
  SlowBuffer worst[8];
  SlowBuffer others;

  void note(void* at, std::size_t bytes = message, bool sent = true) {
    const iovec piece{at, bytes};
    buffers->note(&piece, 1, bytes, sent);
  }
  std::size_t fill(std::size_t room = 8) { return buffers->fill(worst, room, &others); }
  MemoryKind only() {
    return fill() == 1 ? static_cast<MemoryKind>(worst[0].kind) : MemoryKind::count_;
  }
};

MemoryKind kind_at(void* at) {
  Look look;
  look.note(at);
  return look.only();
}

void* map(int rights, int flags, int fd) {
  return mmap(nullptr, 2 * message, rights, flags, fd, 0);
}

TEST(SlowBuffers, StaticDataHasItsModulesName) {
  Look look;
  look.note(without_bytes);
  look.note(with_bytes);
  EXPECT_EQ(look.only(), MemoryKind::static_data);  // one segment
  EXPECT_NE(std::string(look.worst[0].name).find("haul_fabric_unit_tests"), std::string::npos)
      << look.worst[0].name;
  EXPECT_EQ(look.worst[0].sent_messages, 2u);
  Look library;
  library.note(reinterpret_cast<void*>(stdout));
  EXPECT_EQ(library.only(), MemoryKind::static_data);
  EXPECT_NE(std::string(library.worst[0].name).find("libc"), std::string::npos);
}

TEST(SlowBuffers, StacksAreThoseOfTheThreadThatAsks) {
  char here[message];
  EXPECT_EQ(kind_at(here), MemoryKind::stack);
  MemoryKind other = MemoryKind::count_;
  std::thread([&] {
    char there[message];
    other = kind_at(there);
  }).join();
  EXPECT_EQ(other, MemoryKind::stack);
}

[[gnu::noinline]] void note_deeper(Look& look, unsigned frames) {
  char here[message];
  asm volatile("" : : "r"(here) : "memory");
  look.note(here);
  if (frames != 0) note_deeper(look, frames - 1);
}

TEST(SlowBuffers, AStackThatGrowsIsOneEntry) {
  Look look;
  note_deeper(look, 40);
  EXPECT_EQ(look.only(), MemoryKind::stack);
  EXPECT_EQ(look.worst[0].sent_messages, 41u);
  EXPECT_GE(look.worst[0].end - look.worst[0].begin, 41 * message);
}

TEST(SlowBuffers, MallocsBlocksByTheirSize) {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  void* small = malloc(2 * message);
  void* large = malloc(std::size_t{64} << 20);  // more than earlier tests have freed
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EQ(kind_at(small), MemoryKind::heap);
#endif
  EXPECT_EQ(kind_at(large), MemoryKind::anonymous);
  free(large);
  free(small);
}

TEST(SlowBuffers, MappingsByWhatIsBehindThem) {
  void* anonymous = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  EXPECT_EQ(kind_at(anonymous), MemoryKind::anonymous);
  void* shared = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
  EXPECT_EQ(kind_at(shared), MemoryKind::shared);
  const int memory = memfd_create("a name", 0);
  ASSERT_EQ(ftruncate(memory, 2 * message), 0);
  void* of_memory = map(PROT_READ | PROT_WRITE, MAP_SHARED, memory);
  EXPECT_EQ(kind_at(of_memory), MemoryKind::shared);
  char path[] = "/tmp/haul-slow-buffers-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_EQ(ftruncate(file, 2 * message), 0);
  void* of_file = map(PROT_READ, MAP_PRIVATE, file);
  Look look;
  look.note(of_file);
  EXPECT_EQ(look.only(), MemoryKind::file);
  EXPECT_EQ(std::string("/tmp/") + look.worst[0].name, path);
  void* arena = haul_alloc(2 * message);
  ASSERT_NE(arena, nullptr);
  EXPECT_EQ(kind_at(arena), MemoryKind::arena);
  haul_free(arena);
  unlink(path);
  for (void* at : {anonymous, shared, of_memory, of_file}) munmap(at, 2 * message);
  close(memory);
  close(file);
  // What is gone is not guessed at.
  EXPECT_EQ(kind_at(anonymous), MemoryKind::unknown);
}

// Freed and mapped again by another owner: what comes later is not counted as what was there.
TEST(SlowBuffers, WhatTakesAnothersPlaceIsLookedUp) {
  const auto take = [](void* at, int fd) {
    return mmap(at, 2 * message, PROT_READ,
                MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0) | (at != nullptr ? MAP_FIXED : 0), fd,
                0);
  };
  char* at = static_cast<char*>(take(nullptr, -1));
  const int file = open("/proc/self/exe", O_RDONLY);
  Look look;
  look.note(at + 16);
  take(at, file);
  look.note(at);
  look.note(at);
  take(at, -1);
  look.note(at + 16);
  ASSERT_EQ(look.fill(), 2u);
  const SlowBuffer& first = look.worst[0];
  const SlowBuffer& second = look.worst[1];
  EXPECT_EQ(first.sent_messages, 2u);
  EXPECT_EQ(second.sent_messages, 2u);
  EXPECT_EQ(first.kind + second.kind,
            static_cast<int>(MemoryKind::anonymous) + static_cast<int>(MemoryKind::file));
  munmap(at, 2 * message);
  close(file);
}

// A program that sends from ever new places is not held up for ever.
TEST(SlowBuffers, LooksAreBounded) {
  constexpr std::size_t many = 2000;
  char* at =
      static_cast<char*>(mmap(nullptr, many * 64, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Look look;
  for (std::size_t i = 0; i < many; ++i) look.note(at + i * 64);
  EXPECT_EQ(look.only(), MemoryKind::anonymous);
  EXPECT_EQ(look.worst[0].sent_messages, many);
  munmap(at, many * 64);
}

TEST(SlowBuffers, SeveralRangesAreAKindOfTheirOwn) {
  Look look;
  const iovec pieces[2] = {{without_bytes, message / 2}, {with_bytes, message / 2}};
  look.buffers->note(pieces, 2, message, false);
  look.buffers->note(pieces, 0, message, false);
  look.note(without_bytes, message, false);
  ASSERT_EQ(look.fill(), 2u);
  EXPECT_EQ(look.worst[0].received_messages + look.worst[1].received_messages, 2u);
}

TEST(SlowBuffers, TheWorstComeFirstAndTheRestIsAddedUp) {
  constexpr std::size_t many = 40, apart = std::size_t{4} << 20;
  char* range = static_cast<char*>(
      mmap(nullptr, many * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  Look look;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < many; ++i) {
    char* at = range + i * apart;
    mprotect(at, message, PROT_READ);  // a mapping of its own
    for (std::size_t times = 0; times <= i % 20; ++times) look.note(at);
    bytes += (i % 20 + 1) * message;
  }
  ASSERT_EQ(look.fill(3), 3u);
  EXPECT_EQ(look.worst[0].sent_messages, 20u);
  EXPECT_EQ(look.worst[1].sent_messages, 19u);
  EXPECT_EQ(look.worst[2].sent_messages, 18u);
  EXPECT_EQ(look.worst[0].bytes + look.worst[1].bytes + look.worst[2].bytes + look.others.bytes,
            bytes);
  munmap(range, many * apart);
}

}  // namespace
}  // namespace haul::fabric
