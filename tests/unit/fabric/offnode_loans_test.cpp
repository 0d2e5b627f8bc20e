// Memory that stays registered with a libfabric provider between messages: when it is registered,
// and that what arrives is what is there now. Providers over tcp register for nothing, so they are
// told to do it as one that pins.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/knobs.hpp"
#include "base/os/pages/userfault.hpp"
#include "fabric/transport/offnode/carrier/libfabric_carrier.hpp"
#include "unit/fabric/offnode_harness.hpp"

using namespace haul;
using namespace haul::fabric;
using namespace haul::fabric::offnode_test;

namespace {

constexpr std::size_t size = Readers::size;

void set(const char* variable, const char* value) {
  setenv(variable, value, 1);
  reread_knobs();
}

class OffnodeLoansTest : public CarrierTest {
 protected:
  void SetUp() override {
    if (os::open_memory_events() < 0) GTEST_SKIP() << "no userfaultfd for this user";
    CarrierTest::SetUp();
    set("HAUL_FABRIC_REGISTER", "always");
  }
  void TearDown() override {
    for (const char* variable :
         {"HAUL_FABRIC_REGISTER", "HAUL_MEMORY_REGISTER", "HAUL_MEMORY_REGISTERED_BYTES"})
      unsetenv(variable);
    reread_knobs();
  }
};

// Memory of its own, at addresses at which there was none before: what becomes of those is
// remembered for a second. The message does not begin with a page.
constexpr std::size_t skew = 4096 + 123;
struct Pages {
  explicit Pages(std::size_t wanted = size, int sharing = MAP_PRIVATE)
      : bytes(wanted + 2 * skew), at(map(bytes, sharing)) {}
  ~Pages() { munmap(at, bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* message() const { return at + skew; }
  void fill(unsigned char with) const {
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(with + i / 512 % 64);
  }
  const std::size_t bytes;
  std::byte* const at;

 private:
  static std::byte* map(std::size_t bytes, int sharing) {
    constexpr std::size_t each = std::size_t{64} << 20, count = 256;
    static auto* fresh = static_cast<std::byte*>(
        mmap(nullptr, count * each, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    static const std::byte* const end = fresh + count * each;
    EXPECT_TRUE(fresh != end && bytes < each);
    void* const there =
        mmap(fresh, bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    EXPECT_NE(there, MAP_FAILED);
    fresh += each;
    return static_cast<std::byte*>(there);
  }
};

// A pair, and how often each side has registered memory.
struct LoanPair : Readers {
  using Readers::Readers;
  std::uint64_t lent() { return registrations(*a.network->find(b.address)->heard_by); }
  std::uint64_t read_into() { return registrations(*b.network->find(a.address)->outbox.carrier()); }
  static std::uint64_t registrations(const OffnodeCarrier& carrier) {
    return static_cast<const LibfabricCarrier&>(carrier).registrations();
  }
  // A message: lent, read, and taken back.
  void send(const std::byte* from, std::byte* to, std::size_t bytes = size) {
    const MemoryPlace place = lend(const_cast<std::byte*>(from), bytes);
    ASSERT_EQ(place.pieces, 1u);
    std::memset(to, 0xee, bytes);
    EXPECT_EQ(read(place, 0, {{to, bytes}}), 1);
    EXPECT_EQ(std::memcmp(from, to, bytes), 0);
    a.network->access().withdraw(to_b, place);
  }
};

TEST_P(OffnodeLoansTest, TheSecondMessageOfABufferRegistersNothing) {
  LoanPair pair(GetParam());
  const Pages from, to;
  from.fill(1);
  pair.send(from.message(), to.message());
  const std::uint64_t lent = pair.lent(), read_into = pair.read_into();
  EXPECT_EQ(lent, 1u);
  EXPECT_GE(read_into, 2u) << "a part at a time";
  for (unsigned char turn = 2; turn < 6; ++turn) {
    from.fill(turn);
    pair.send(from.message(), to.message());
  }
  // A part of it, wherever that begins.
  pair.send(from.message() + 1000003, to.message(), size / 2);
  EXPECT_EQ(pair.lent(), lent);
  EXPECT_EQ(pair.read_into(), read_into);
}

TEST_P(OffnodeLoansTest, LoansOfOneRegistrationEndOneByOne) {
  LoanPair pair(GetParam());
  const Pages from, to;
  from.fill(7);
  const MemoryPlace first = pair.lend(from.message(), size);
  const MemoryPlace second = pair.lend(from.message() + 77, size / 2);
  EXPECT_EQ(pair.lent(), 1u);
  EXPECT_EQ(first.arena, second.arena);
  pair.a.network->access().withdraw(pair.to_b, first);
  // A page of the first one alone: the registration does not outlive the second.
  ASSERT_EQ(munmap(from.at + size / 4096 * 4096, 4096), 0);
  EXPECT_EQ(pair.read(second, 0, {{to.message(), size / 2}}), 1);
  EXPECT_EQ(std::memcmp(from.message() + 77, to.message(), size / 2), 0);
  pair.a.network->access().withdraw(pair.to_b, second);
  pair.send(from.message(), to.message(), size / 2);
  EXPECT_EQ(pair.lent(), 2u);
  EXPECT_LT(pair.read(second, 0, {{to.message(), size / 2}}), 0);
}

// What has changed is registered anew; nobody reads the pages that were there.
struct MemoryChange {
  const char* name;
  void (*make)(const Pages& pages);
};
constexpr MemoryChange changes[] = {
    {"munmap",
     [](const Pages& pages) {
       munmap(pages.at, pages.bytes);
       ASSERT_EQ(mmap(pages.at, pages.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                 pages.at);
     }},
    {"mmap over a page of it",
     [](const Pages& pages) {
       ASSERT_EQ(mmap(pages.at + (size_t{1} << 20), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                 pages.at + (size_t{1} << 20));
     }},
    {"mremap",
     [](const Pages& pages) {
       void* const other =
           mmap(nullptr, pages.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       ASSERT_EQ(mremap(other, pages.bytes, pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pages.at),
                 pages.at);
     }},
    {"madvise", [](const Pages& pages) { madvise(pages.at, pages.bytes, MADV_DONTNEED); }},
};

TEST_P(OffnodeLoansTest, WhatWasMappedAnewIsRegisteredAnew) {
  LoanPair pair(GetParam());
  for (const MemoryChange& change : changes) {
    for (const bool lender : {true, false}) {
      SCOPED_TRACE(std::string(change.name) + (lender ? ", lent" : ", read into"));
      const Pages from, to;
      from.fill(1);
      pair.send(from.message(), to.message());
      pair.send(from.message(), to.message());
      const std::uint64_t lent = pair.lent(), read_into = pair.read_into();
      change.make(lender ? from : to);
      from.fill(9);
      pair.send(from.message(), to.message());
      EXPECT_EQ(pair.lent(), lent + lender);
      EXPECT_EQ(pair.read_into() > read_into, !lender);
    }
  }
}

TEST_P(OffnodeLoansTest, AChildOfForkLeavesRegistrationsToItsParent) {
  LoanPair pair(GetParam());
  const Pages from, to;
  from.fill(1);
  pair.send(from.message(), to.message());
  const std::uint64_t lent = pair.lent(), read_into = pair.read_into();
  const MemoryPlace held = pair.lend(from.message(), size);
  const pid_t child = fork();
  if (child == 0) {
    // As the control thread's fork handler does.
    pair.a.network->forked();
    pair.b.network->forked();
    pair.a.network->access().withdraw(pair.to_b, held);
    munmap(from.at, from.bytes);
    pair.a.network.reset();
    pair.b.network.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  from.fill(2);
  EXPECT_EQ(pair.read(held, 0, {{to.message(), size}}), 1);
  EXPECT_EQ(std::memcmp(from.message(), to.message(), size), 0);
  pair.a.network->access().withdraw(pair.to_b, held);
  pair.send(from.message(), to.message());
  EXPECT_EQ(pair.lent(), lent);
  EXPECT_EQ(pair.read_into(), read_into);
}

// The switches, and memory of which nobody tells.
TEST_P(OffnodeLoansTest, WhatMayNotStayIsRegisteredForEachMessage) {
  constexpr std::uint64_t messages = 3;
  constexpr std::uint64_t part = std::size_t{512} << 10, parts = (size + part - 1) / part;
  const auto registered = [](const Pages& from, const Pages& to, std::uint64_t parts_registered) {
    LoanPair pair(GetParam());
    from.fill(1);
    for (std::uint64_t i = 0; i < messages; ++i) pair.send(from.message(), to.message());
    // (Once, however often the provider says "not now", as it does until it is connected.)
    EXPECT_EQ(pair.read_into(), messages * parts_registered);
    // Nothing is readable afterwards.
    const MemoryPlace place = pair.lend(from.message(), size);
    pair.a.network->access().withdraw(pair.to_b, place);
    EXPECT_LT(pair.read(place, 0, {{to.message(), size}}), 0);
    return pair.lent();
  };
  {
    const Pages from(size, MAP_SHARED), to(size, MAP_SHARED);
    EXPECT_EQ(registered(from, to, parts), messages + 1);
  }
  const Pages from, to;
  set("HAUL_MEMORY_REGISTERED_BYTES", "0");
  EXPECT_EQ(registered(from, to, parts), messages + 1);
  set("HAUL_MEMORY_REGISTERED_BYTES", "1G");
  set("HAUL_MEMORY_REGISTER", "overlapped");
  EXPECT_EQ(registered(from, to, parts), messages + 1);
  set("HAUL_MEMORY_REGISTER", "cached");
  set("HAUL_FABRIC_REGISTER", "auto");
  EXPECT_EQ(registered(from, to, 0), messages + 1) << "it costs nothing here";
}

TEST_P(OffnodeLoansTest, MoreBuffersThanAreRemembered) {
  constexpr std::size_t count = 300, each = std::size_t{128} << 10;
  LoanPair pair(GetParam());
  const Pages from(count * each), to(count * each);
  from.fill(3);
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<MemoryPlace> places;
    for (std::size_t i = 0; i < count; ++i) {
      places.push_back(pair.lend(from.message() + i * each, each));
      ASSERT_EQ(places.back().pieces, 1u);
    }
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(pair.read(places[i], 0, {{to.message() + i * each, each}}), 1);
      pair.a.network->access().withdraw(pair.to_b, places[i]);
    }
    EXPECT_EQ(std::memcmp(from.message(), to.message(), count * each), 0);
    memset(to.at, 0, to.bytes);
  }
}

TEST_P(OffnodeLoansTest, ANewCarrierKnowsNothingOfAnOldOnesMemory) {
  const Pages from, to;
  for (unsigned char turn = 0; turn < 3; ++turn) {
    LoanPair pair(GetParam());
    from.fill(turn);
    pair.send(from.message(), to.message());
    pair.send(from.message(), to.message());
    EXPECT_EQ(pair.lent(), 1u);
    // One is not taken back, and memory changes while nobody is there.
    pair.lend(from.message(), size);
  }
  changes[0].make(from);
}

INSTANTIATE_TEST_SUITE_P(Carriers, OffnodeLoansTest, testing::Values("tcp;ofi_rxm", "tcp"),
                         title_of);

}  // namespace
