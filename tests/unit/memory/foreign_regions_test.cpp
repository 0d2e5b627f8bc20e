// Regions of another library, which the kernel pins for real (io_uring): whatever the program does
// with its memory, the pages that a region names are those that the program sees there.
#include "memory/foreign_regions.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/os/pages/userfault.hpp"
#include "base/os/uring.hpp"
#include "sizes.hpp"

namespace haul {
namespace {

// Pins by a ring, whose threads read pinned pages by their region alone.
class PinningLibrary {
 public:
  static constexpr unsigned most = 256;

  PinningLibrary() : in_use_(most) {
    refused_ = ring_.open(8, most);
    file_ = os::Descriptor::of(os::make_sealed("haul-test", std::size_t{1} << 20));
  }
  ~PinningLibrary() {
    ring_.close();
    file_.close();
  }
  int refused() const { return refused_; }
  HaulPrivateRegistrar registrar() { return {this, pin, unpin, 0}; }

  // What a card would read of a region.
  std::vector<std::byte> read(std::uint64_t region, std::uintptr_t address, std::size_t bytes) {
    const auto index = static_cast<unsigned>(region - 1);
    EXPECT_EQ(ring_.start(true, file_, 0, address, static_cast<std::uint32_t>(bytes), index, 1), 0);
    std::uint64_t tag = 0;
    std::int32_t result = 0;
    while (!ring_.finished(&tag, &result)) usleep(10);
    EXPECT_EQ(result, static_cast<std::int32_t>(bytes));
    std::vector<std::byte> seen(bytes);
    EXPECT_EQ(pread(file_.get(), seen.data(), bytes, 0), static_cast<ssize_t>(bytes));
    return seen;
  }

  unsigned pins = 0, pinned = 0;

 private:
  static int pin(void* self, std::uintptr_t address, std::size_t bytes,
                 std::uint64_t* region) noexcept {
    auto& library = *static_cast<PinningLibrary*>(self);
    unsigned index = 0;
    while (index < most && library.in_use_[index]) ++index;
    if (index == most) return ENOMEM;
    const int error = library.ring_.set_buffer(index, address, bytes);
    if (error != 0) return -error;
    library.in_use_[index] = true;
    ++library.pins;
    ++library.pinned;
    *region = index + 1;
    return 0;
  }
  static void unpin(void* self, std::uint64_t region) noexcept {
    auto& library = *static_cast<PinningLibrary*>(self);
    const auto index = static_cast<unsigned>(region - 1);
    EXPECT_TRUE(library.in_use_[index]);
    library.in_use_[index] = false;
    --library.pinned;
    EXPECT_EQ(library.ring_.set_buffer(index, 0, 0), 0);
  }

  int refused_ = 0;
  os::Uring ring_;
  os::Descriptor file_;
  std::vector<bool> in_use_;
};

// Pages that are mapped anew, moved, given back, written, and copied by fork.
class ChangingPages {
 public:
  static constexpr std::size_t count = 96;

  ChangingPages() : at_(map(nullptr, count, 0)) {}
  ~ChangingPages() { munmap(at_, count * page); }
  ChangingPages(const ChangingPages&) = delete;
  ChangingPages& operator=(const ChangingPages&) = delete;

  std::byte* at(std::size_t which) const { return at_ + which * page; }
  void change(std::mt19937& random) {
    const std::size_t first = random() % count, other = random() % count;
    const std::size_t some = 1 + random() % (count - first);
    switch (random() % 8) {
      case 0: map(at(first), some, MAP_FIXED); break;
      case 1:
        munmap(at(first), some * page);
        map(at(first), some, MAP_FIXED);
        break;
      case 2: swap(first, other); break;
      case 3: fork_and_write(first, some, random); break;
      default: break;
    }
    write(first, some, random);
  }

 private:
  static std::byte* map(void* at, std::size_t pages, int flags) {
    return static_cast<std::byte*>(
        mmap(at, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0));
  }
  void swap(std::size_t one, std::size_t other) const {
    if (one == other) return;
    std::byte* const aside = map(nullptr, 1, 0);
    const auto move = [](void* from, void* to) {
      EXPECT_EQ(mremap(from, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
    };
    move(at(one), aside);
    move(at(other), at(one));
    move(aside, at(other));
  }
  void write(std::size_t first, std::size_t some, std::mt19937& random) const {
    for (std::size_t i = first; i < first + some; ++i)
      std::memset(at(i), static_cast<int>(random() & 0xff), page);
  }
  // The parent writes while the child has its pages, too.
  void fork_and_write(std::size_t first, std::size_t some, std::mt19937& random) const {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(pipes[1]);
      char word = 0;
      const bool ends = read(pipes[0], &word, 1) == 0;
      munmap(at_, count * page);
      _exit(ends ? 0 : 1);
    }
    close(pipes[0]);
    write(first, some, random);
    close(pipes[1]);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }

  std::byte* const at_;
};

TEST(ForeignRegions, NameThePagesThatAreThereWhateverBecomesOfThem) {
  if (os::open_memory_events() < 0) GTEST_SKIP() << "no userfaultfd for this user";
  PinningLibrary library;
  if (library.refused() != 0) GTEST_SKIP() << "no io_uring for this user";
  const HaulPrivateRegistrar registrar = library.registrar();
  HaulPrivateRegions* const regions = haul_private_open_regions(&registrar);
  ASSERT_NE(regions, nullptr);
  ChangingPages pages;
  std::mt19937 random(4711);
  unsigned held = 0;
  const std::uint64_t end = now_ns() + 1'000'000'000;
  while (now_ns() < end && !HasFailure()) {
    if (random() % 3 == 0) pages.change(random);
    const std::size_t first = random() % ChangingPages::count;
    const std::size_t some = 1 + random() % (ChangingPages::count - first);
    const std::size_t skew = some == 1 ? 0 : random() % page, bytes = some * page - skew;
    const auto address = reinterpret_cast<std::uintptr_t>(pages.at(first)) + skew;
    HaulPrivateHold hold;
    if (!haul_private_hold_region(regions, address, bytes, 0, 0, &hold)) continue;
    ++held;
    EXPECT_LE(hold.begin, address);
    const std::vector<std::byte> seen = library.read(hold.region, address, bytes);
    EXPECT_EQ(std::memcmp(seen.data(), reinterpret_cast<void*>(address), bytes), 0);
    haul_private_release_region(regions, &hold);
    if (random() % 8 == 0) haul_private_tidy_regions(regions, random() % 16 == 0);
  }
  EXPECT_GT(held, 100u);
  EXPECT_LT(library.pins, held) << "none was used twice";
  RecordProperty("held", static_cast<int>(held));
  RecordProperty("pins", static_cast<int>(library.pins));
  haul_private_close_regions(regions, false);
  EXPECT_EQ(library.pinned, 0u);
}

}  // namespace
}  // namespace haul
