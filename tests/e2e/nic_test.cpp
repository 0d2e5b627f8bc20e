// The engine nic by libhaul, on veth pairs or a looped card: the bytes are right, on a wire that
// loses, repeats and reorders frames and when a port goes down; the program's threads stay where
// they are. Needs root.
#include <gtest/gtest.h>
#include <net/if.h>

#include <random>
#include <string>
#include <thread>

#include "nic_support.hpp"

namespace {

using namespace e2e;

haul_engine_info nic() {
  return engine_now("nic");
}

// Waits until it is open, or has been refused.
haul_engine_info opened(const char* mover, const std::string& knob) {
  return open_engine("nic", mover, "HAUL_ENGINE_NIC", knob.c_str());
}

bool opens(const char* mover, const std::string& knob) {
  const haul_engine_info info = opened(mover, knob);
  if (std::strstr(info.status, "cannot be loaded") != nullptr) return false;
  if (info.available == 0) std::fprintf(stderr, "nic: %s\n", info.status);
  CHILD_EQUAL(info.available, 1);
  CHILD_EQUAL(std::strstr(info.status, "no hardware") != nullptr, looped_card() == nullptr);
  return true;
}

void copy_many(unsigned most_turns) {
  const unsigned turns = turns_here(most_turns);
  const std::uint64_t before = nic().bytes;
  std::mt19937_64 random(5);
  for (unsigned turn = 0; turn < turns; ++turn) {
    const std::size_t length = 1 + random() % (turn % 10 == 0 ? 6 * mib : 100 * kib);
    copy_one(length, random(), random() & 63);
  }
  // (How much of it is the mover's to decide: what the engine has no room for the CPU copies.)
  CHILD_CHECK(nic().bytes > before);
}

class Nic : public testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  void in_child(const char* words, unsigned mtu, Body body) {
    if (const char* const why = cannot(); why != nullptr) GTEST_SKIP() << why;
    const Ports ports(3, mtu);
    ASSERT_TRUE(ports.made());
    const int status = run_child([&] {
      if (!opens(GetParam(), ports.knob(words))) return skip_status;
      body(ports);
      return 0;
    });
    if (status == skip_status) GTEST_SKIP() << "haul was built without the engine nic";
    EXPECT_EQ(status, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(By, Nic, testing::Values("thread", "caller"));

TEST_P(Nic, CopiesWhateverItIsGiven) {
  in_child("packet", 61540, [](const Ports&) { copy_many(150); });
}
TEST_P(Nic, CopiesThroughPortsOfOrdinaryFrames) {
  in_child("packet", 1500, [](const Ports&) { copy_many(60); });
}
TEST_P(Nic, CopiesWhereFramesAreLostRepeatedAndOvertaken) {
  in_child("packet trial=5", looped_card() != nullptr ? 9000 : 1500,
           [](const Ports&) { copy_many(40); });
}

TEST_P(Nic, TakesThePortsThatAreNamed) {
  if (looped_card() != nullptr) GTEST_SKIP() << one_card;
  in_child("out2>in2 out1>in1", 9000, [](const Ports&) {
    CHILD_CHECK(std::strstr(nic().status, "out2>in2") != nullptr);
    copy_many(20);
  });
}
// The loopback interface is a port whose output returns to its own input.
TEST_P(Nic, TakesASinglePortThatIsLooped) {
  if (looped_card() != nullptr) GTEST_SKIP() << one_card;
  in_child("lo", 9000, [](const Ports&) {
    CHILD_CHECK(std::strstr(nic().status, "port lo") != nullptr);
    copy_many(20);
  });
}

TEST_P(Nic, LosesNothingWhenThePortGoesDown) {
  in_child("packet", 1500, [](const Ports& ports) {
    std::thread later([&] {
      sleep_ms(50);
      ports.down();
    });
    for (unsigned turn = 0; turn < 2000 && nic().available != 0; ++turn) copy_one(mib, turn, 1);
    later.join();
    CHILD_EQUAL(nic().available, 0);
    copy_one(3 * mib, 7, 9);
  });
}

TEST_P(Nic, AChildOfForkDoesWithout) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer does not survive a fork of threads";
  in_child("packet", 9000, [](const Ports&) {
    const pid_t child = start_child([] {
      for (unsigned turn = 0; turn < 3; ++turn) copy_one(mib, turn, 1);
      CHILD_EQUAL(nic().available, 0);
      return 0;
    });
    for (unsigned turn = 0; turn < 30; ++turn) copy_one(mib, turn, 1);
    CHILD_EQUAL(end_of(child), 0);
    copy_many(20);
    CHILD_EQUAL(nic().available, 1);
  });
}

// Each program has a key of its own.
TEST_P(Nic, ServesTwoProgramsAtOnce) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer does not survive a fork of threads";
  if (const char* const why = cannot(); why != nullptr) GTEST_SKIP() << why;
  const Ports ports(1, 1500);
  ASSERT_TRUE(ports.made());
  const auto program = [&] {
    if (!opens(GetParam(), ports.knob("packet"))) return skip_status;
    copy_many(40);
    return 0;
  };
  const pid_t one = start_child(program), other = start_child(program);
  const int status = end_of(one);
  EXPECT_EQ(end_of(other), status);
  if (status == skip_status) GTEST_SKIP() << "haul was built without the engine nic";
  EXPECT_EQ(status, 0);
}

TEST_P(Nic, TheProgramsThreadsStayWhereTheyAre) {
  if (looped_card() != nullptr) GTEST_SKIP() << one_card;
  in_child("packet", 61540, [](const Ports& ports) {
    CHILD_EQUAL(if_nametoindex("out0"), 0);
    std::thread([] { CHILD_EQUAL(if_nametoindex("out0"), 0); }).join();
    std::thread([&] {
      ports.enter();
      CHILD_CHECK(if_nametoindex("out0") != 0);
    }).join();
  });
}

TEST(NoNic, HasOneWayOfReceiving) {
  for (const char* knob : {"xdp vfio 0000:00:03.0", "packet lo xdp"}) {
    EXPECT_EQ(run_child([knob] {
                const haul_engine_info info = opened("thread", knob);
                CHILD_EQUAL(info.available, 0);
                CHILD_CHECK(std::strstr(info.status, "two ways of receiving") != nullptr);
                return 0;
              }),
              0)
        << knob;
  }
}

TEST(NoNic, IsSaidAndTheCpuCopies) {
  for (const char* knob :
       {"netns=haul-no-such-place", "no_such_port", "lo>no_such_port", "trial=x", "xdp lo",
        "netns=../x", "trial=99", "vfio", "vfio lo", "vfio ../0000:00:00.0",
        "vfio 0000:00:03.0 0000:00:04.0", "vfio buffer=100 0000:00:03.0"}) {
    EXPECT_EQ(run_child([knob] {
                const haul_engine_info info = opened("thread", knob);
                CHILD_EQUAL(info.available, 0);
                CHILD_CHECK(std::strlen(info.status) > 20);
                CHILD_CHECK(std::strstr(info.status, "opened") == nullptr);
                return 0;
              }),
              0)
        << knob;
  }
}

}  // namespace
