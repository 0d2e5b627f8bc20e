// One process's memory in another's copies: rights, bounds, withdrawal, death.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "service/fake.hpp"

namespace haul::service_test {
namespace {

constexpr Space space = 0x0705;
constexpr std::uint64_t index = 0xFEDCBA9876543210;
constexpr std::uint32_t both = wire::may_read | wire::may_write;

class Grants : public testing::Test {
 protected:
  Service service_;
  Fake owner_{service_.path()};
  Fake user_{service_.path()};

  Job from_grant(std::uint64_t offset, std::size_t length) {
    Job job = Fake::copy_job(user_.arena_address(), offset, length);
    job.src_space = space;
    return job;
  }
  Job to_grant(std::uint64_t offset, std::size_t length) {
    Job job = Fake::copy_job(offset, user_.arena_address(), length);
    job.dst_space = space;
    return job;
  }
  void expect_bound(std::uint32_t rights, std::uint64_t length) {
    const wire::Bound bound = user_.bind(owner_, index, space);
    EXPECT_EQ(bound.code, 0);
    EXPECT_EQ(bound.rights, rights);
    EXPECT_EQ(bound.length, length);
  }
};

TEST_F(Grants, CopyFromAndTo) {
  paint(owner_.arena() + mib, 2 * mib, 1);
  owner_.grant(index, owner_.arena_address(mib), 2 * mib, both);
  expect_bound(both, 2 * mib);
  ASSERT_EQ(user_.run(from_grant(0, 2 * mib)), Code::ok);
  EXPECT_TRUE(painted(user_.arena(), 2 * mib, 1));
  paint(user_.arena(), 1000, 2);
  ASSERT_EQ(user_.run(to_grant(77, 1000)), Code::ok);
  EXPECT_TRUE(painted(owner_.arena() + mib + 77, 1000, 2));
}

TEST_F(Grants, PrivateMemoryOfBoth) {
  if (owner_.welcome().reaches_memory == 0) GTEST_SKIP() << owner_.welcome().why;
  std::vector<std::uint8_t> theirs(300'000), ours(300'000);
  paint(theirs.data(), theirs.size(), 3);
  owner_.grant(index, reinterpret_cast<std::uintptr_t>(theirs.data()), theirs.size(),
               wire::may_read);
  expect_bound(wire::may_read, theirs.size());
  Job job = from_grant(0, ours.size());
  job.dst = reinterpret_cast<std::uintptr_t>(ours.data());
  ASSERT_EQ(user_.run(job), Code::ok);
  EXPECT_EQ(ours, theirs);
}

TEST_F(Grants, RightsAndBounds) {
  owner_.grant(index, owner_.arena_address(), 4096, wire::may_read);
  expect_bound(wire::may_read, 4096);
  std::memset(owner_.arena(), 9, 8192);
  EXPECT_EQ(user_.run(from_grant(0, 4096)), Code::ok);
  EXPECT_EQ(user_.run(from_grant(1, 4096)), Code::fault);
  EXPECT_EQ(user_.run(from_grant(4096, 1)), Code::fault);
  EXPECT_EQ(user_.run(from_grant(~std::uint64_t{0}, 2)), Code::fault);
  EXPECT_EQ(user_.run(from_grant(owner_.arena_address(), 2)), Code::fault);
  std::memset(user_.arena(), 1, 4096);
  EXPECT_EQ(user_.run(to_grant(0, 16)), Code::permission);
  EXPECT_EQ(owner_.arena()[0], 9);
  Job fill = to_grant(0, 16);
  fill.operation = Operation::fill;
  EXPECT_EQ(user_.run(fill), Code::permission);
  EXPECT_EQ(owner_.arena()[0], 9);
  // Write alone does not let it be read.
  owner_.grant(index, owner_.arena_address(), 4096, wire::may_write);
  expect_bound(wire::may_write, 4096);
  EXPECT_EQ(user_.run(to_grant(0, 16)), Code::ok);
  EXPECT_EQ(owner_.arena()[0], 1);
  EXPECT_EQ(user_.run(from_grant(0, 16)), Code::permission);
}

TEST_F(Grants, UnknownOnesAreNotBound) {
  owner_.grant(index, owner_.arena_address(), 4096, both);
  EXPECT_EQ(user_.bind(owner_, index + 1, space).code, static_cast<int>(Code::permission));
  EXPECT_EQ(user_.bind(user_, index, space).code, static_cast<int>(Code::permission));
  EXPECT_EQ(user_.run(from_grant(0, 1)), Code::permission);
  // What was bound too early is good once it is granted.
  EXPECT_EQ(user_.bind(owner_, index + 2, space).code, static_cast<int>(Code::permission));
  EXPECT_EQ(user_.run(from_grant(0, 1)), Code::permission);
  owner_.grant(index + 2, owner_.arena_address(), 4096, both);
  expect_bound(both, 4096);
  EXPECT_EQ(user_.run(from_grant(0, 1)), Code::ok);
  expect_bound(both, 4096);
  EXPECT_EQ(user_.run(from_grant(0, 1)), Code::ok);
  // Another space of the same slot takes its place.
  EXPECT_EQ(user_.bind(owner_, index, space + 256).code, 0);
  EXPECT_EQ(user_.run(from_grant(0, 1)), Code::closed);
  Job job = from_grant(0, 1);
  job.src_space = space + 256;
  EXPECT_EQ(user_.run(job), Code::ok);
  wire::Unbind unbind;
  unbind.space = space + 256;
  EXPECT_TRUE(user_.send(unbind));
  EXPECT_EQ(user_.bind(owner_, index, 3).code, 0);  // heard
  EXPECT_EQ(user_.run(job), Code::closed);
}

TEST_F(Grants, WithdrawnAmidACopy) {
  FakeOptions options;
  options.arena_bytes = 512 * mib;
  Fake owner(service_.path(), options), user(service_.path(), options);
  std::memset(owner.arena(), 5, 512 * mib);
  owner.grant(index, owner.arena_address(), 512 * mib, wire::may_read);
  ASSERT_EQ(user.bind(owner, index, space).code, 0);
  Job job = Fake::copy_job(user.arena_address(), 0, 512 * mib);
  job.src_space = space;
  const std::uint64_t seq = user.submit(job);
  while (user.arena()[mib] != 5 && !user.ended(seq)) {
  }
  wire::Withdraw withdraw;
  withdraw.index = index;
  ASSERT_TRUE(owner.send(withdraw));
  wire::Withdrawn withdrawn;
  ASSERT_TRUE(owner.receive(&withdrawn));
  // From now on nobody reads there: what is written now is never seen.
  std::memset(owner.arena(), 6, 512 * mib);
  ASSERT_EQ(user.wait(seq), Code::permission);
  const std::uint64_t good = user.good_bytes(seq);
  EXPECT_LT(good, 512 * mib);
  for (std::uint64_t i = 0; i < 512 * mib; i += 1024) ASSERT_EQ(user.arena()[i], i < good ? 5 : 0);
}

TEST_F(Grants, ItsOwnerLeavesAmidACopy) {
  FakeOptions options;
  options.arena_bytes = 512 * mib;
  auto owner = std::make_unique<Fake>(service_.path(), options);
  Fake user(service_.path(), options);
  std::memset(owner->arena(), 5, 512 * mib);
  owner->grant(index, owner->arena_address(), 512 * mib, wire::may_read);
  ASSERT_EQ(user.bind(*owner, index, space).code, 0);
  Job job = Fake::copy_job(user.arena_address(), 0, 512 * mib);
  job.src_space = space;
  const std::uint64_t seq = user.submit(job);
  while (user.arena()[mib] != 5 && !user.ended(seq)) {
  }
  owner.reset();
  EXPECT_EQ(user.wait(seq), Code::peer_gone);
  EXPECT_LT(user.good_bytes(seq), 512 * mib);
  EXPECT_EQ(user.run(job), Code::peer_gone);
  EXPECT_EQ(user.bind(owner_, index, 9).code, static_cast<int>(Code::permission));
}

TEST_F(Grants, BadOnesBreakTheRules) {
  const struct {
    std::uint64_t address, length;
    std::uint32_t rights;
  } bad[] = {{4096, 0, both},
             {4096, 4096, 0},
             {4096, 4096, 4},
             {~0ull - 10, 4096, both},
             {1, 1ull << 47, both}};
  for (const auto& wrong : bad) {
    Fake client(service_.path());
    client.grant(index, wrong.address, wrong.length, wrong.rights);
    EXPECT_TRUE(client.closed());
    EXPECT_EQ(client.refused().code, static_cast<int>(Code::invalid));
  }
  Fake greedy(service_.path());
  for (unsigned i = 0; i < 4096; ++i) greedy.grant(i, 4096, 1, both);
  greedy.grant(7, 8192, 1, both);  // replaced: not one more
  wire::Withdraw withdraw;
  withdraw.index = 8;
  ASSERT_TRUE(greedy.send(withdraw));
  wire::Withdrawn withdrawn;
  ASSERT_TRUE(greedy.receive(&withdrawn));
  greedy.grant(8, 4096, 1, both);
  greedy.grant(5000, 4096, 1, both);
  EXPECT_TRUE(greedy.closed());
}

}  // namespace
}  // namespace haul::service_test
