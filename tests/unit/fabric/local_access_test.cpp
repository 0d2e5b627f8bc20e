// Moving bytes between two processes directly: which ways are offered, and that they carry.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "base/machine/huge_pages.hpp"
#include "faults.hpp"
#include "local_harness.hpp"
#include "sizes.hpp"

namespace haul::fabric::local_test {
namespace {

unsigned char pattern(std::size_t index) {
  return static_cast<unsigned char>(index * 7 + index / 251);
}

void fill(unsigned char* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = pattern(i);
}

bool holds_pattern(const unsigned char* at, std::size_t bytes, std::size_t from = 0) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != pattern(from + i)) return false;
  }
  return true;
}

// What a helping process tells of a buffer of its own.
struct Offer {
  MemoryPlace place;
  bool huge = false;
};

// A process that joins `to` and offers a buffer filled with the pattern; at the end it says whether
// the buffer holds what `pushed` should have left there: the pattern everywhere.
bool offer_buffer(Child& self, const Address& to, bool in_arena, std::size_t bytes) {
  // Of small pages whatever the system's default is.
  void* private_memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(private_memory, bytes, MADV_NOHUGEPAGE);
  auto* buffer = static_cast<unsigned char*>(in_arena ? haul_alloc(bytes) : private_memory);
  fill(buffer, bytes / 2);
  const auto network = open_local();
  Joined joined;
  if (network == nullptr) return false;
  if (!self.tell(network->address()) || !join(*network, to, &joined)) return false;
  const auto peer = peer_at(to);
  Offer offer;
  const iovec pieces{buffer, bytes};
  offer.place = network->access().describe(*peer, &pieces, 1, &offer.huge);
  char done = 0;
  return self.tell(offer) && self.hear(&done) && holds_pattern(buffer, bytes);
}

int finish(DirectAccess& access, std::int64_t ticket) {
  if (ticket <= 0) return static_cast<int>(ticket);
  int state = 0;
  return eventually([&] { return (state = access.test(ticket)) != 0; }) ? state : -FI_ETIMEDOUT;
}

// The first half is pulled into three pieces, the second pushed from one.
void pull_and_push(bool in_arena) {
  constexpr std::size_t bytes = 4 * mib, half = bytes / 2;
  const auto a = open_local();
  Child child([&](Child& self) { return offer_buffer(self, a->address(), in_arena, bytes); });
  Address other;
  Joined joined;
  ASSERT_TRUE(child.hear(&other));
  ASSERT_TRUE(join(*a, other, &joined));
  Offer offer;
  ASSERT_TRUE(child.hear(&offer));
  const auto peer = peer_at(other);
  DirectAccess& access = a->access();
  if (access.ways(*peer, offer.place, bytes, true) == MessageWays(MessageWay::pieces)) {
    child.kill_it();
    GTEST_SKIP() << "not reached: " << a->find(other)->reach->why();
  }
  EXPECT_EQ(offer.place.arena, in_arena ? 1u : 0u);
  std::vector<unsigned char> pulled(half + 2), pushed(half);
  const iovec pieces[] = {{pulled.data(), 1000},
                          {pulled.data() + 1001, mib},
                          {pulled.data() + 1002 + mib, half - mib - 1000}};
  EXPECT_GE(finish(access, access.start(*peer, DirectAccess::Direction::pull, pieces, 3,
                                        offer.place, 0, half, true)),
            0);
  EXPECT_TRUE(holds_pattern(pulled.data(), 1000));
  EXPECT_TRUE(holds_pattern(pulled.data() + 1001, mib, 1000));
  EXPECT_TRUE(holds_pattern(pulled.data() + 1002 + mib, half - mib - 1000, 1000 + mib));

  for (std::size_t i = 0; i < half; ++i) pushed[i] = pattern(half + i);
  const iovec whole{pushed.data(), half};
  EXPECT_GE(finish(access, access.start(*peer, DirectAccess::Direction::push, &whole, 1,
                                        offer.place, half, half, true)),
            0);
  // Outside of the arena nothing is reached.
  if (in_arena) {
    MemoryPlace outside = offer.place;
    outside.address = ~std::uint64_t{0} - 100;
    EXPECT_EQ(access.ways(*peer, outside, bytes, true), MessageWays(MessageWay::pieces));
    EXPECT_LT(
        access.start(*peer, DirectAccess::Direction::pull, &whole, 1, outside, 200, half, false),
        0);
  }
  child.tell(char{1});
  EXPECT_TRUE(child.succeeded());
}

TEST_F(LocalProcesses, CopiesThroughTheMappedArena) {
  pull_and_push(true);
}

// The child's pages exist, and this process has mapped none of them: writing takes a fault for many
// of them.
TEST_F(LocalProcesses, WritesToPagesThatExistFaultTogether) {
  constexpr std::size_t bytes = 4 * mib, half = bytes / 2;
  const auto a = open_local();
  Child child([&](Child& self) { return offer_buffer(self, a->address(), true, bytes); });
  Address other;
  Joined joined;
  ASSERT_TRUE(child.hear(&other));
  ASSERT_TRUE(join(*a, other, &joined));
  Offer offer;
  ASSERT_TRUE(child.hear(&offer));
  const auto peer = peer_at(other);
  std::vector<unsigned char> data(bytes);
  fill(data.data(), bytes);
  const auto push = [&](std::size_t offset) {
    const iovec piece{data.data() + offset, half};
    return finish(a->access(), a->access().start(*peer, DirectAccess::Direction::push, &piece, 1,
                                                 offer.place, offset, half, false));
  };
  const long before = faults();
  EXPECT_GE(push(0), 0);
  EXPECT_LT(faults() - before, static_cast<long>(half / page / 4));
  EXPECT_GE(push(half), 0);
  child.tell(char{1});
  EXPECT_TRUE(child.succeeded());
}

// Private memory of one's own needs neither the kernel nor a trial, whatever its length.
TEST_F(LocalProcesses, CopiesItsOwnMemoryByHand) {
  const auto a = open_local();
  Joined joined;
  ASSERT_TRUE(join(*a, a->address(), &joined));
  const auto peer = peer_at(a->address());
  DirectAccess& access = a->access();
  a->find(a->address())->reach->lose_kernel("a test says so");
  std::vector<unsigned char> from(mib), to(mib);
  fill(from.data(), mib);
  const iovec source{from.data(), mib}, target{to.data(), mib};
  bool huge = false;
  const MemoryPlace place = access.describe(*peer, &source, 1, &huge);
  EXPECT_EQ(place.arena, 0u);
  EXPECT_EQ(access.ways(*peer, place, 4096, false), MessageWay::direct);
  EXPECT_GE(finish(access, access.start(*peer, DirectAccess::Direction::pull, &target, 1, place, 0,
                                        mib, false)),
            0);
  EXPECT_TRUE(holds_pattern(to.data(), mib));
}

TEST_F(LocalProcesses, CopiesByTheKernel) {
  pull_and_push(false);
}

TEST_F(LocalProcesses, ArenaThatIsMadeLaterIsReachedToo) {
  const auto a = open_local();
  Child child([&](Child& self) {
    const auto network = open_local();
    Joined joined;
    if (network == nullptr || !self.tell(network->address()) ||
        !join(*network, a->address(), &joined)) {
      return false;
    }
    // Only now: the Introduction could not name it.
    auto* buffer = static_cast<unsigned char*>(haul_alloc(mib));
    fill(buffer, mib);
    const auto peer = peer_at(a->address());
    Offer offer;
    const iovec pieces{buffer, mib};
    offer.place = network->access().describe(*peer, &pieces, 1, &offer.huge);
    char done = 0;
    return self.tell(offer) && self.hear(&done);
  });
  Address other;
  Joined joined;
  ASSERT_TRUE(child.hear(&other));
  ASSERT_TRUE(join(*a, other, &joined));
  Offer offer;
  ASSERT_TRUE(child.hear(&offer));
  ASSERT_EQ(offer.place.arena, 1u);
  const auto peer = peer_at(other);
  EXPECT_TRUE(eventually([&] {
    return a->access().ways(*peer, offer.place, mib, false) != MessageWays(MessageWay::pieces);
  }));
  std::vector<unsigned char> pulled(mib);
  const iovec pieces{pulled.data(), mib};
  EXPECT_GE(finish(a->access(), a->access().start(*peer, DirectAccess::Direction::pull, &pieces, 1,
                                                  offer.place, 0, mib, false)),
            0);
  EXPECT_TRUE(holds_pattern(pulled.data(), mib));
  child.tell(char{1});
  EXPECT_TRUE(child.succeeded());
}

TEST(LocalAccess, OfTheKernelsCopiesOfSmallPagesThePlannerSaysWhatTheyAreWorth) {
  const auto a = open_local(kernel_from(mib, 16 * mib)), b = open_local();
  std::thread other([&] {
    Joined joined;
    join(*b, a->address(), &joined);
  });
  Joined joined;
  const bool met = join(*a, b->address(), &joined);
  other.join();
  ASSERT_TRUE(met);
  const auto peer = peer_at(b->address());
  MemoryPlace place;
  place.pieces = 1;
  place.address = reinterpret_cast<std::uintptr_t>(&place);
  const auto ways = [&](std::size_t bytes, bool huge) {
    return a->access().ways(*peer, place, bytes, huge);
  };
  const bool kernel = a->find(b->address())->reach->has_kernel();
  const MessageWays pieces = MessageWay::pieces,
                    rarely =
                        kernel ? MessageWays(MessageWay::pieces, {MessageWay::direct}) : pieces,
                    mostly =
                        kernel ? MessageWays(MessageWay::direct, {MessageWay::pieces}) : pieces;
  EXPECT_EQ(ways(mib - 1, false), pieces);
  EXPECT_EQ(ways(mib, false), rarely);
  EXPECT_EQ(ways(16 * mib, false), mostly);
  EXPECT_EQ(ways(64 * kib, true), pieces);
  EXPECT_EQ(ways(mib / 2, true), mostly);
}

// All three ways are open to a message that might have gone in parts no more; what the user has
// chosen stays.
TEST(LocalAccess, OfCopiesThroughMappingsAllWaysAreTried) {
  HaulPrivateMessageLimits limits = message_limits();
  limits.stream_from_bytes = 8 * mib;
  for (const bool fixed : {false, true}) {
    limits.stream_fixed = fixed;
    const auto network = open_local(limits);
    const auto ways = [&](std::size_t bytes) {
      return network->access().mapped_ways(*peer_at(Address()), bytes);
    };
    EXPECT_EQ(ways(in_parts_bytes), MessageWay::direct);
    const MessageWays direct = fixed ? MessageWays(MessageWay::direct, {MessageWay::pieces})
                                     : MessageWays(MessageWay::direct,
                                                   {MessageWay::pieces, MessageWay::streamed}),
                      streamed = fixed ? MessageWays(MessageWay::streamed, {MessageWay::pieces})
                                       : MessageWays(MessageWay::streamed,
                                                     {MessageWay::pieces, MessageWay::direct});
    EXPECT_EQ(ways(in_parts_bytes + 1), direct);
    EXPECT_EQ(ways(8 * mib - 1), direct);
    EXPECT_EQ(ways(8 * mib), streamed);
    EXPECT_EQ(network->access().mapped_ways(*peer_at(network->address()), mib), MessageWay::direct)
        << "copies of one's own memory have no other way";
  }
}

TEST(LocalAccess, ClaimsAreSharedByBothSides) {
  const auto a = open_local(), b = open_local();
  Joined at_b;
  a->connect(b->address());
  ASSERT_TRUE(join(*b, a->address(), &at_b));
  await(*a, What::connected);
  await(*a, What::opened);
  const auto b_of_a = peer_at(b->address()), a_of_b = peer_at(a->address());
  for (unsigned i = 0; i < DirectAccess::claim_count; ++i) {
    std::atomic<std::uint64_t>* senders = a->access().claim(*b_of_a, true, i);
    std::atomic<std::uint64_t>* receivers = b->access().claim(*a_of_b, false, i);
    ASSERT_NE(senders, nullptr);
    ASSERT_NE(receivers, nullptr);
    senders->store(100 + i);
    EXPECT_EQ(receivers->load(), 100 + i);
  }
  EXPECT_EQ(a->access().claim(*b_of_a, true, DirectAccess::claim_count), nullptr);
}

// From now on the kernel refuses this process the memory of others.
bool forbid_process_memory() {
  const auto number = [](long call) { return static_cast<std::uint32_t>(call); };
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number(SYS_process_vm_readv), 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number(SYS_process_vm_writev), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(LocalProcesses, RefusedKernelWayIsNotOffered) {
  const auto a = open_local();
  Child child([&](Child& self) {
    if (!forbid_process_memory()) return false;
    const auto network = open_local();
    Joined joined;
    if (network == nullptr || !self.tell(network->address()) ||
        !join(*network, a->address(), &joined)) {
      return false;
    }
    const auto peer = peer_at(a->address());
    MemoryPlace place;
    place.pieces = 1;
    place.address = reinterpret_cast<std::uintptr_t>(&place);
    return network->access().ways(*peer, place, 16 * mib, true) ==
               MessageWays(MessageWay::pieces) &&
           std::strstr(network->find(a->address())->reach->why(), "refuses") != nullptr &&
           send_number(*joined.outbox, 9);
  });
  Address other;
  Joined joined;
  ASSERT_TRUE(child.hear(&other));
  ASSERT_TRUE(join(*a, other, &joined));
  EXPECT_EQ(receive_number(*joined.inbox), 9u);
  EXPECT_TRUE(child.succeeded());
}

// ---- huge pages ----

class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    at_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(at_, 1, bytes);
  }
  ~Memory() { munmap(at_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  unsigned char* at() { return static_cast<unsigned char*>(at_); }

 private:
  void* at_;
  std::size_t bytes_;
};

TEST(HugePages, BufferThatIsUsedAgainAndAgainIsMovedThere) {
  Memory memory(16 * mib);
  const int page_map = os::open_page_map();
  const auto start = (reinterpret_cast<std::uintptr_t>(memory.at()) + 2 * mib) & ~(2 * mib - 1);
  if (os::huge_bytes(page_map, start, 8 * mib) != 0 ||
      os::collapse_to_huge(start + 8 * mib, os::huge_page_bytes) != 0 || page_map < 0 ||
      os::huge_bytes(page_map, start + 8 * mib, 2 * mib) != static_cast<std::int64_t>(2 * mib)) {
    os::close_fd(page_map);
    GTEST_SKIP() << "this kernel has no MADV_COLLAPSE, no PAGEMAP_SCAN, no huge page to spare, or "
                    "puts everything on huge pages";
  }
  HugePages pages;
  auto* buffer = reinterpret_cast<unsigned char*>(start) + 100;
  fill(buffer, 4 * mib);
  for (std::uint32_t use = 1; use < HugePages::uses_before_collapse; ++use)
    ASSERT_FALSE(pages.use(buffer, 4 * mib)) << use;
  EXPECT_TRUE(pages.use(buffer, 4 * mib));
  EXPECT_TRUE(holds_pattern(buffer, 4 * mib));
  EXPECT_EQ(os::huge_bytes(page_map, start + 100, 4 * mib), static_cast<std::int64_t>(4 * mib));
  // What lies there already is known at the first use.
  EXPECT_TRUE(pages.use(buffer + 1000, mib));
  EXPECT_FALSE(pages.use(buffer + 6 * mib, mib));
  EXPECT_FALSE(pages.use(buffer, HugePages::smallest_bytes - 1));
  os::close_fd(page_map);
}

TEST(HugePages, MemoryThatIsGoneIsNoTrouble) {
  HugePages pages;
  void* at = mmap(nullptr, 4 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  munmap(at, 4 * mib);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(pages.use(at, 4 * mib));
}

}  // namespace
}  // namespace haul::fabric::local_test
