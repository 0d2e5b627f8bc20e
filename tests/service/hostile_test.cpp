// A client that writes garbage wherever it can. The service survives, and the others' bytes are
// right.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/machine/clock.hpp"
#include "service/fake.hpp"

namespace haul::service_test {
namespace {

class Hostile : public testing::Test {
 protected:
  void expect_honest_work(unsigned seed) {
    paint(honest_.arena(), 100'000, seed);
    ASSERT_EQ(
        honest_.run(Fake::copy_job(honest_.arena_address(mib), honest_.arena_address(), 100'000)),
        Code::ok);
    ASSERT_TRUE(painted(honest_.arena() + mib, 100'000, seed));
  }
  // The job must get its client dropped.
  void expect_dropped(const Job& job, const Extras* extras = nullptr) {
    Fake liar(service_.path());
    liar.submit(job_of(liar, job), 0, extras);
    EXPECT_TRUE(liar.closed());
    EXPECT_EQ(liar.refused().code, static_cast<int>(Code::invalid));
    EXPECT_NE(liar.refused().sentence[0], '\0');
    expect_honest_work(1);
  }
  static Job job_of(Fake& client, Job job) {
    if (job.dst == 0) job.dst = client.arena_address();
    if (job.src_or_pattern == 0) job.src_or_pattern = client.arena_address(8 * mib);
    return job;
  }
  Service service_;
  Fake honest_{service_.path()};
};

TEST_F(Hostile, PlansThatDoNotAddUp) {
  Job job = Fake::copy_job(std::uint64_t{0}, 0, 65536);
  for (const Chunks& chunks : {
           Chunks{65536, 4096, 31, 0, 12},  // too many
           Chunks{65536, 4096, 31, 7, 12},  // far too many
           Chunks{65536, 65536, 2, 0, 12},  // longer than the whole
           Chunks{65536, 4096, 2, 6, 12},   // too deep a taper
           Chunks{65536, 65536, 0, 0, 2},   // blocks too small
           Chunks{65536, 65536, 0, 0, 31},  // ... too large
           Chunks{std::size_t{1} << 47, 4096, 0, 0, 12},
           Chunks{~std::size_t{0}, 4096, 3, 1, 12},
           Chunks{65536, ~std::size_t{0} / 2, 3, 2, 12},
           Chunks{65536, 40000, 1, 2, 6},
       }) {
    job.chunks = chunks;
    expect_dropped(job);
  }
}

TEST_F(Hostile, FieldsThatDoNotExist) {
  Job job = Fake::copy_job(std::uint64_t{0}, 0, 4096);
  job.dst_affinity = static_cast<Affinity>(3);
  expect_dropped(job);
  job = Fake::copy_job(std::uint64_t{0}, 0, 4096);
  job.src_affinity = static_cast<Affinity>(3);
  expect_dropped(job);
  job = Fake::copy_job(std::uint64_t{0}, 0, 4096);
  job.operation = Operation::fill;
  for (const unsigned width : {0u, 3u, 5u, 15u}) {
    job.pattern_bytes = static_cast<std::uint8_t>(width);
    expect_dropped(job);
  }
  job = Fake::copy_job(std::uint64_t{0}, 0, 4096);
  job.segment_count = 1;
  job.segment_first = Ring::segment_slots;
  expect_dropped(job);
  job.segment_first = 1;
  job.segment_count = Ring::segment_slots;
  expect_dropped(job);
  job.segment_first = ~0u;
  job.segment_count = 2;
  expect_dropped(job);
}

TEST_F(Hostile, SegmentsThatDoNotCover) {
  for (const auto& [first, second] :
       {std::pair<std::uint64_t, std::uint64_t>{1, 2000}, {0, 5000}, {0, ~0ull}, {~0ull, 100}}) {
    Fake liar(service_.path());
    liar.ring().reserve_segments(2);
    liar.ring().segments(0)[0] = Segment{first, liar.arena_address(), liar.arena_address(mib)};
    liar.ring().segments(0)[1] = Segment{second, liar.arena_address(), liar.arena_address(mib)};
    Job job = Fake::copy_job(std::uint64_t{0}, 0, 4096);
    job.segment_count = 2;
    liar.submit(job);
    EXPECT_TRUE(liar.closed());
    EXPECT_EQ(liar.refused().code, static_cast<int>(Code::invalid));
    expect_honest_work(2);
  }
}

TEST_F(Hostile, NotificationsElsewhere) {
  std::atomic<std::uint64_t> own{0};
  Extras extras;
  extras.notify = &own;
  expect_dropped(Fake::copy_job(std::uint64_t{0}, 0, 64), &extras);
  for (const std::uint64_t address : {std::uint64_t{8}, ~std::uint64_t{7}}) {
    extras.notify = reinterpret_cast<std::atomic<std::uint64_t>*>(address);
    expect_dropped(Fake::copy_job(std::uint64_t{0}, 0, 64), &extras);
  }
  Fake liar(service_.path());
  for (const std::uint64_t offset : {std::uint64_t{4}, 16 * mib - 4, 16 * mib}) {
    Fake other(service_.path());
    extras.notify = reinterpret_cast<std::atomic<std::uint64_t>*>(other.arena_address(offset));
    other.submit(Fake::copy_job(other.arena_address(), other.arena_address(mib), 64), 0, &extras);
    EXPECT_TRUE(other.closed()) << offset;
  }
}

// Addresses are the client's own affair: those that are no memory fail.
TEST_F(Hostile, AddressesThatAreNone) {
  Fake client(service_.path());
  for (const std::uint64_t address :
       {std::uint64_t{1}, ~std::uint64_t{0} - 4096, std::uint64_t{1} << 47, std::uint64_t{1} << 56,
        std::uint64_t{0xffffffffff600000}}) {
    const Code in = client.run(Fake::copy_job(client.arena_address(), address, 4096));
    EXPECT_TRUE(in == Code::fault || in == Code::permission) << static_cast<int>(in);
    const Code out = client.run(Fake::copy_job(address, client.arena_address(), 4096));
    EXPECT_TRUE(out == Code::fault || out == Code::permission) << static_cast<int>(out);
  }
  // Out of the arena's end: its part moves, the rest is not the arena's.
  Job job = Fake::copy_job(client.arena_address(16 * mib - 4096), client.arena_address(), 8192);
  EXPECT_NE(client.run(job), Code::timed_out);
  expect_honest_work(3);
}

TEST_F(Hostile, SpacesThatAreNone) {
  Fake client(service_.path());
  for (const Space space : {1u, 255u, 256u, ~0u}) {
    Job job = Fake::copy_job(client.arena_address(), 0, 64);
    job.src_space = space;
    EXPECT_EQ(client.run(job), Code::closed);
    job = Fake::copy_job(0, client.arena_address(), 64);
    job.dst_space = space;
    EXPECT_EQ(client.run(job), Code::closed);
  }
}

// Everything of the table at random, while the service works on it.
void vandalise(const std::string& path, std::uint32_t seed, unsigned rounds) {
  std::mt19937_64 random(seed);
  for (unsigned round = 0; round < rounds; ++round) {
    FakeOptions options;
    options.rings = 2;
    options.arena_bytes = mib;
    options.hello = false;
    Fake vandal(path, options);
    if (!vandal.say_hello()) _exit(1);
    const auto words = [&](std::uint64_t offset, std::uint64_t bytes, unsigned count) {
      auto* at = reinterpret_cast<std::atomic<std::uint64_t>*>(vandal.table() + offset);
      for (unsigned i = 0; i < count; ++i) {
        std::uint64_t value = random();
        switch (random() % 5) {
          case 0: value %= 4096; break;
          case 1: value = ~std::uint64_t{0} - value % 8; break;
          case 2: value = (value % 4) << 32 | (value >> 8 & 0xffff); break;
          case 3: value = vandal.arena_address(value % (2 * mib)); break;
          default: break;
        }
        at[random() % (bytes / 8)].store(value, std::memory_order_relaxed);
      }
    };
    for (unsigned step = 0; step < 30; ++step) {
      // Sound requests that are spoilt after they were published.
      Job job = Fake::copy_job(vandal.arena_address(random() % (mib / 2)),
                               vandal.arena_address(random() % (mib / 2)), random() % 65536);
      job.fence = random() % 8 == 0;
      job.checked = true;
      if (random() % 3 == 0) job.chunks = Chunks::cut(job.chunks.length, 8192, 4096, 12);
      job.seq = Ring::first_seq + random() % 300;
      job.segment_count = random() % 4 == 0 ? static_cast<std::uint32_t>(random() % 40) : 0;
      job.segment_first = static_cast<std::uint32_t>(random() % 2048);
      Extras extras;
      extras.post = true;
      if (vandal.ring().has_room()) vandal.ring().publish(job, random() % 2 ? &extras : nullptr);
      words(ring_offset(random() % 2), sizeof(Ring), 40);
      // The lines of parameters begin behind the completion queue: hit them more often.
      const std::uint64_t lines = sizeof(Ring) - sizeof(Segment) * Ring::segment_slots;
      words(ring_offset(random() % 2), lines, 200);
      if (random() % 4 == 0) {
        words(offsetof(Board, shared), 128, 2);
        vandal.board().shared[0].fetch_or(3);
      }
      vandal.ring_bell();
      if (random() % 8 == 0) {
        std::uint8_t packet[128];
        for (std::uint8_t& byte : packet) byte = static_cast<std::uint8_t>(random());
        const auto kind = static_cast<std::uint32_t>(random() % 20);
        std::memcpy(packet, &kind, sizeof kind);
        // Not the kind that stops it, which only a monitor may send anyhow.
        os::send_packet(vandal.fd(), packet, 4 + random() % 124);
      }
    }
    // Some leave amid everything.
    if (random() % 2 == 0) usleep(static_cast<unsigned>(random() % 300));
  }
}

TEST_F(Hostile, RandomGarbageInEveryField) {
  constexpr unsigned vandals = 2, rounds = 150;
  std::vector<pid_t> children;
  for (unsigned i = 0; i < vandals; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      // Its own memory is hit too.
      signal(SIGSEGV, SIG_DFL);
      vandalise(service_.path(), 100 + i, rounds);
      _exit(0);
    }
    children.push_back(child);
  }
  unsigned done = 0, copies = 0;
  while (done < vandals) {
    expect_honest_work(copies++);
    if (HasFatalFailure()) break;
    for (pid_t& child : children) {
      int status = 0;
      if (child != 0 && waitpid(child, &status, WNOHANG) == child) {
        child = 0;
        ++done;
        EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0);
      }
    }
    ASSERT_TRUE(service_.alive());
  }
  for (const pid_t child : children) {
    if (child != 0) kill(child, SIGKILL);
    if (child != 0) waitpid(child, nullptr, 0);
  }
  EXPECT_GT(copies, 10u);
  expect_honest_work(7);
}

// Words that never stand still, written as fast as another core can.
TEST_F(Hostile, WordsThatNeverStandStill) {
  const pid_t child = fork();
  if (child == 0) {
    Fake restless(service_.path());
    const std::uint64_t end = now_ns() + 1'000'000'000;
    Job job = Fake::copy_job(restless.arena_address(), restless.arena_address(mib), 4096);
    std::uint64_t seq = restless.submit(job);
    const Tenancy tenancy = restless.ring().tenancy(seq);
    while (now_ns() < end) {
      for (unsigned i = 0; i < 1000; ++i) {
        tenancy.claims->claim.store(i % 2 == 0 ? 0 : 1);
        tenancy.claims->done.store(i);
        tenancy.claims->sleepers.store(i);
        tenancy.state->word.store(i);
      }
      restless.ring_bell();
    }
    _exit(0);
  }
  int status = 0;
  unsigned copies = 0;
  while (waitpid(child, &status, WNOHANG) == 0) expect_honest_work(copies++);
  EXPECT_GT(copies, 10u);
}

TEST_F(Hostile, AFloodOfPackets) {
  const pid_t child = fork();
  if (child == 0) {
    Fake flood(service_.path());
    wire::Grant grant;
    grant.address = 4096;
    grant.length = 4096;
    grant.rights = 1;
    const std::uint64_t end = now_ns() + 500'000'000;
    while (now_ns() < end) {
      grant.index = grant.index % 1000 + 1;
      flood.send(grant);
      flood.send(wire::Bell{});
      wire::Withdraw withdraw;  // answered, and nobody reads
      if (now_ns() > end - 200'000'000) flood.send(withdraw);
    }
    _exit(0);
  }
  int status = 0;
  unsigned copies = 0;
  while (waitpid(child, &status, WNOHANG) == 0) expect_honest_work(copies++);
  EXPECT_GT(copies, 10u);
  expect_honest_work(1);
}

TEST_F(Hostile, HolesInTheTableAndTheArena) {
  Fake client(service_.path());
  for (unsigned i = 0; i < 50; ++i) {
    const std::uint64_t seq = client.submit(
        Fake::copy_job(client.arena_address(), client.arena_address(8 * mib), 4 * mib));
    os::punch_hole(client.usual_fds()[1], 0, 16 * mib);
    if (i % 10 == 9) os::punch_hole(client.table_fd(), ring_offset(0), sizeof(Ring));
    if (i % 10 == 9) client.ring().begin(0, 77);
    (void)seq;
  }
  expect_honest_work(4);
}

TEST_F(Hostile, GoneAmidACopy) {
  for (unsigned i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      FakeOptions options;
      options.arena_bytes = 256 * mib;
      Fake client(service_.path(), options);
      std::vector<std::uint8_t> own(16 * mib);
      client.submit(
          Fake::copy_job(client.arena_address(128 * mib), client.arena_address(), 100 * mib));
      client.submit(Fake::copy_job(client.arena(), own.data(), own.size()));
      usleep(1000 * (i % 5));
      kill(getpid(), SIGKILL);
    }
    waitpid(child, nullptr, 0);
    expect_honest_work(i);
  }
  while (service_.stats().clients != 1) {
  }
}

}  // namespace
}  // namespace haul::service_test
