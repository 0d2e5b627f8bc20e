// Which huge pages a request may have made, that each question leads on, and what is left alone.
#include "memory/new_pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "base/knobs.hpp"
#include "base/machine/pages.hpp"
#include "sizes.hpp"
#include "unit/spinners.hpp"

namespace haul {
namespace {

constexpr std::size_t block = 2 * mib, spare = 16 * kib;
constexpr std::uintptr_t base = std::uintptr_t{1} << 32;

TEST(HugeRange, IsWhatIsOverwrittenWhole) {
  EXPECT_EQ(huge_range({base, base + 4 * block}), (AddressRange{base, base + 4 * block}));
  EXPECT_EQ(huge_range({base + mib, base + 4 * block + mib}),
            (AddressRange{base + block, base + 4 * block}));
  EXPECT_EQ(huge_range({base + mib, base + block + mib}).bytes(), 0u);
  EXPECT_EQ(huge_range({base, base + mib}).bytes(), 0u);
  EXPECT_EQ(huge_range({base + mib, base + mib}).bytes(), 0u);
}

TEST(HugeRange, MayLackALittleOfTheFirstAndOfTheLast) {
  const AddressRange all{base, base + 2 * block};
  EXPECT_EQ(huge_range({base + 16, base + 2 * block - 16}), all) << "an allocator's header";
  EXPECT_EQ(huge_range({base + spare, base + 2 * block - spare}), all);
  EXPECT_EQ(huge_range({base + spare + 1, base + 2 * block}),
            (AddressRange{base + block, base + 2 * block}));
  EXPECT_EQ(huge_range({base, base + 2 * block - spare - 1}), (AddressRange{base, base + block}));
  EXPECT_EQ(huge_range({base + spare, base + block - spare}), (AddressRange{base, base + block}));
}

TEST(HugeRange, MayBeginWhereAddressesDo) {
  EXPECT_EQ(huge_range({4 * kib, 2 * block}), (AddressRange{0, 2 * block}));
  EXPECT_EQ(huge_range({spare + 1, 2 * block}), (AddressRange{block, 2 * block}));
}

// A mapping whose first byte lies at a multiple of 2 MiB.
class Mapping {
 public:
  Mapping(std::size_t bytes, int flags, int file = -1) : bytes_(bytes) {
    constexpr int rights = PROT_READ | PROT_WRITE;
    void* const room = mmap(nullptr, bytes + block, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    room_ = reinterpret_cast<std::uintptr_t>(room);
    at_ = (room_ + block - 1) & ~(block - 1);
    EXPECT_NE(mmap(reinterpret_cast<void*>(at_), bytes, rights, flags | MAP_FIXED, file, 0),
              MAP_FAILED);
  }
  ~Mapping() { munmap(reinterpret_cast<void*>(room_), bytes_ + block); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::uintptr_t at() const { return at_; }
  AddressRange range() const { return {at_, at_ + bytes_}; }
  std::size_t resident_pages() const {
    std::size_t count = 0;
    for (std::uintptr_t page = at_; page < at_ + bytes_; page += os::page_bytes)
      count += os::is_resident(page) ? 1 : 0;
    return count;
  }

 private:
  std::size_t bytes_;
  std::uintptr_t room_ = 0, at_ = 0;
};

constexpr int private_memory = MAP_PRIVATE | MAP_ANONYMOUS;
std::uint64_t next_request = 1;

// Asks for all of it, as a copy would; how often.
std::size_t make_all(const AddressRange& range) {
  NewPages pages(range, ++next_request);
  std::size_t questions = 0;
  for (std::uintptr_t at = range.begin; at < range.end; ++questions) {
    const std::size_t ready = pages.make(at, range.end - at);
    EXPECT_GE(ready, 1u);
    EXPECT_LE(ready, range.end - at);
    if (ready == 0 || ready > range.end - at) return questions;
    for (std::uintptr_t i = at; i < at + ready; i += os::page_bytes)
      *reinterpret_cast<volatile char*>(i) = 1;
    at += ready;
  }
  return questions;
}

TEST(NewPages, LeadOnFromAnyPlace) {
  const Mapping memory(16 * mib, private_memory);
  for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, std::size_t{4095}, mib + 17}) {
    for (const std::size_t length : {mib, mib + 1, 3 * mib - 4095, 9 * mib + 5}) {
      madvise(reinterpret_cast<void*>(memory.at()), 16 * mib, MADV_DONTNEED);
      const AddressRange range{memory.at() + begin, memory.at() + begin + length};
      make_all(range);
      EXPECT_LE(make_all(range), 6u) << "a question for each 2 MiB that are there";
    }
  }
}

TEST(NewPages, AreThereBeforeTheyAreWritten) {
  const Mapping memory(mib, private_memory);
  NewPages pages(memory.range(), ++next_request);
  const std::size_t ready = pages.make(memory.at(), mib);
  EXPECT_GE(memory.resident_pages(), ready / os::page_bytes);
}

TEST(NewPages, OfSmallRequestsAreNoMatter) {
  const Mapping memory(mib, private_memory);
  NewPages pages({memory.at(), memory.at() + mib - 1}, ++next_request);
  EXPECT_EQ(pages.make(memory.at(), mib - 1), mib - 1);
  EXPECT_EQ(memory.resident_pages(), 0u);
}

TEST(NewPages, ThatNobodyMayWriteAreLeftToTheFault) {
  const Mapping memory(4 * mib, private_memory);
  mprotect(reinterpret_cast<void*>(memory.at()), 4 * mib, PROT_READ);
  NewPages pages(memory.range(), ++next_request);
  EXPECT_GE(pages.make(memory.at(), 4 * mib), 1u);
  EXPECT_EQ(memory.resident_pages(), 0u);
  munmap(reinterpret_cast<void*>(memory.at()), 4 * mib);
  NewPages nowhere(memory.range(), ++next_request);
  EXPECT_GE(nowhere.make(memory.at(), 4 * mib), 1u);
}

std::uint64_t huge_made_in(const Mapping& memory, const AddressRange& range) {
  const std::uint64_t before = huge_bytes_made();
  EXPECT_GE(range.begin, memory.at());
  make_all(range);
  return huge_bytes_made() - before;
}

// However busy the machine is.
TEST(NewPages, AreHugeWhereTheSystemGivesThoseOnRequest) {
  if (!os::huge_pages_on_request()) GTEST_SKIP() << "this kernel has no huge pages on request";
  setenv("HAUL_MEMORY_HUGE", "on", 1);
  reread_knobs();
  const Mapping memory(16 * mib, private_memory);
  const std::uint64_t made = huge_made_in(memory, memory.range());
  unsetenv("HAUL_MEMORY_HUGE");
  reread_knobs();
  if (made == 0) GTEST_SKIP() << "the kernel gives no huge pages now";
  EXPECT_EQ(made, 16 * mib);
  EXPECT_EQ(huge_made_in(memory, memory.range()), 0u) << "they are there";
}

TEST(NewPages, AreNotHugeWhileTheMachineIsBusy) {
  const Spinners spinners;
  const Mapping memory(16 * mib, private_memory);
  EXPECT_EQ(huge_made_in(memory, memory.range()), 0u);
  EXPECT_EQ(memory.resident_pages(), 16 * mib / os::page_bytes);
}

TEST(NewPages, AreNotHugeByTheKnob) {
  setenv("HAUL_MEMORY_HUGE", "off", 1);
  reread_knobs();
  const Mapping memory(16 * mib, private_memory);
  EXPECT_EQ(huge_made_in(memory, memory.range()), 0u);
  NewPages pages({memory.at(), memory.at() + 16 * mib}, ++next_request);
  EXPECT_EQ(pages.make(memory.at(), 16 * mib), 16 * mib) << "nor asked for";
  unsetenv("HAUL_MEMORY_HUGE");
  reread_knobs();
}

TEST(NewPages, AreNotHugeWhereTheProgramForbidsIt) {
  const Mapping memory(16 * mib, private_memory);
  madvise(reinterpret_cast<void*>(memory.at()), 16 * mib, MADV_NOHUGEPAGE);
  EXPECT_EQ(huge_made_in(memory, memory.range()), 0u);
}

TEST(NewPages, AreNotHugeInSharedMemoryAndFiles) {
  const Mapping shared(16 * mib, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_EQ(huge_made_in(shared, shared.range()), 0u);
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    const int file = memfd_create("new_pages", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(file, 16 * mib), 0);
    const Mapping mapped(16 * mib, kind, file);
    EXPECT_EQ(huge_made_in(mapped, mapped.range()), 0u) << kind;
    close(file);
  }
}

}  // namespace
}  // namespace haul
