// The engine nic by a card that this program drives itself (VFIO): exact placement, on a wire that
// loses, repeats and reorders frames, too; registered memory; who else wants the card; and when it
// stops. About the card whose PCI address E2E_NIC_VFIO has, bound to vfio-pci, as in the guest of
// devices/nic/guest/. Needs root.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>
#include <string>
#include <thread>

#include "nic_device.hpp"

namespace {

using namespace e2e;

const char* card() {
  return getenv("E2E_NIC_VFIO");
}
std::string knob(const std::string& words) {
  return "vfio " + words + " " + card();
}

bool write_file(const std::string& path, const std::string& words) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = write(fd, words.data(), words.size()) == static_cast<ssize_t>(words.size());
  close(fd);
  return written;
}

class Vfio : public testing::Test {
 protected:
  template <class Body>
  void in_child(const char* words, Body body, int status = 0) {
    if (card() == nullptr) GTEST_SKIP() << "E2E_NIC_VFIO names no card";
    EXPECT_EQ(run_child([&] {
                Device device;
                CHILD_CHECK(device.open(knob(words)));
                body(device);
                return 0;
              }),
              status);
  }
  static void copy_some(const Device& device, std::size_t bytes, unsigned turns) {
    const Registered to(device, bytes), from(device, bytes);
    for (std::size_t at = 0; at < bytes; ++at) from.data()[at] = Buffer::expected(bytes, at);
    copy_between(device, to, from.data(), from.region(), turns);
  }
};

TEST_F(Vfio, PlacesExactly) {
  in_child("", [](const Device& device) {
    copy_some(device, mib, 60);
    copy_some(device, 64 * kib, 200);
  });
}
TEST_F(Vfio, PlacesExactlyByBuffersOfEachSize) {
  for (const char* words : {"buffer=256", "buffer=512", "buffer=1024", "buffer=2048"})
    in_child(words, [](const Device& device) { copy_some(device, 256 * kib, 30); });
}
TEST_F(Vfio, PlacesExactlyByShortFrames) {
  in_child("fragment=1 buffer=256", [](const Device& device) { copy_some(device, 64 * kib, 30); });
}
TEST_F(Vfio, PlacesExactlyWhereFramesAreLostRepeatedAndOvertaken) {
  for (const char* words : {"trial=5", "trial=20 fragment=3000", "trial=5 plugged"})
    in_child(words, [](const Device& device) { copy_some(device, 256 * kib, 20); });
}
TEST_F(Vfio, PlacesExactlyByAPlug) {
  in_child("plugged", [](const Device& device) { copy_some(device, mib, 30); });
}

TEST_F(Vfio, MovesWhatIsRegisteredAlone) {
  in_child("", [](const Device& device) {
    const Registered one(device, 64 * kib), other(device, 64 * kib);
    const auto copies = [&](std::size_t at, std::size_t bytes, std::uint64_t to,
                            std::uint64_t from) {
      return device.copy(one.data() + at, other.data(), bytes, to, from).good_bytes;
    };
    CHILD_EQUAL(copies(0, 8192, one.region(), other.region()), 8192);
    CHILD_EQUAL(copies(0, 8192, one.region(), 0), 0);
    CHILD_EQUAL(copies(0, 8192, 0, other.region()), 0);
    CHILD_EQUAL(copies(0, 8192, other.region(), other.region()), 0);
    CHILD_EQUAL(copies(0, 8192, 12345, other.region()), 0);
    CHILD_EQUAL(copies(60 * kib, 8192, one.region(), other.region()), 0);
    for (unsigned turn = 0; turn < 500; ++turn) {
      const Registered more(device, 8192), again(device, 4096);
      CHILD_CHECK(more.region() != again.region());
    }
    void* const nowhere = mmap(nullptr, 64 * kib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::uint64_t region = 0;
    CHILD_EQUAL(static_cast<int>(device.table().pin(reinterpret_cast<std::uintptr_t>(nowhere),
                                                    64 * kib, &region)),
                static_cast<int>(haul::Code::fault));
  });
}

// (Root's memory is not limited.)
TEST_F(Vfio, RegisteredMemoryCountsAgainstTheLimit) {
  in_child("", [](const Device& device) {
    const rlimit limit{2 * mib, 2 * mib};
    CHILD_EQUAL(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    CHILD_EQUAL(setresuid(1000, 1000, 1000), 0);
    const Buffer more(4 * mib);
    std::memset(more.data(), 1, more.size());
    const auto address = reinterpret_cast<std::uintptr_t>(more.data());
    std::uint64_t region = 0;
    CHILD_EQUAL(static_cast<int>(device.table().pin(address, 4 * mib, &region)),
                static_cast<int>(haul::Code::no_memory));
    CHILD_EQUAL(static_cast<int>(device.table().pin(address, mib / 2, &region)), 0);
    device.table().unpin(region);
    copy_some(device, 256 * kib, 3);
  });
}

TEST_F(Vfio, SaysWhatIsGoodWhenTheCardStops) {
  in_child("", [](const Device& device) {
    const Registered to(device, mib), from(device, mib);
    for (std::size_t at = 0; at < mib; ++at) from.data()[at] = Buffer::expected(3, at);
    const auto copy = [&] {
      return device.copy(to.data(), from.data(), mib, to.region(), from.region());
    };
    CHILD_EQUAL(copy().good_bytes, mib);
    std::memset(to.data(), 0, mib);
    // It may not access memory any more: the second byte-pair of its configuration, bit 2.
    const std::string path = std::string("/sys/bus/pci/devices/") + card() + "/config";
    std::thread later([&] {
      const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
      const std::uint16_t command = 0x0002;
      CHILD_EQUAL(pwrite(fd, &command, sizeof command, 4), sizeof command);
      close(fd);
    });
    haul::Outcome outcome;
    do {
      std::memset(to.data(), 0, mib);
      outcome = copy();
    } while (outcome.code == haul::Code::ok);
    later.join();
    CHILD_EQUAL(static_cast<int>(outcome.code), static_cast<int>(haul::Code::io));
    CHILD_EQUAL(std::memcmp(to.data(), from.data(), outcome.good_bytes), 0);
    // From now on it writes nothing.
    std::memset(to.data(), 0x55, mib);
    usleep(100'000);
    for (std::size_t at = 0; at < mib; ++at) CHILD_EQUAL(to.data()[at], 0x55);
    CHILD_EQUAL(copy().good_bytes, 0);
  });
}

TEST_F(Vfio, IsOneProgramsAndFreeWhenThatIsKilled) {
  constexpr int killed = 1000 + SIGKILL;
  const auto body = [](const Device& device) {
    copy_some(device, 64 * kib, 3);
    const pid_t other = start_child([] {
      Device second;
      std::string why;
      CHILD_CHECK(second.open(knob(""), &why));
      CHILD_CHECK(why.find("another program has the card") != std::string::npos);
      return 0;
    });
    CHILD_EQUAL(end_of(other), 0);
    copy_some(device, 64 * kib, 3);
    kill(getpid(), SIGKILL);
  };
  in_child("", body, killed);
  in_child("", [](const Device& device) { copy_some(device, 64 * kib, 3); });
}

TEST_F(Vfio, SaysWhyNot) {
  if (card() == nullptr) GTEST_SKIP() << "E2E_NIC_VFIO names no card";
  const auto refused = [](const std::string& words, const char* text) {
    EXPECT_EQ(run_child([&] {
                Device device;
                std::string why;
                CHILD_CHECK(device.open(words, &why) && !device.is_open());
                if (why.find(text) == std::string::npos) std::fprintf(stderr, "%s\n", why.c_str());
                CHILD_CHECK(why.find(text) != std::string::npos);
                return 0;
              }),
              0)
        << words;
  };
  refused("vfio", "goes with one card");
  refused("vfio 0000:77:00.0", "there is no PCI device 0000:77:00.0");
  refused("vfio 0000:00:00.0", "which haul has no driver of");
  refused("vfio buffer=300 " + std::string(card()), "buffer=300");
  const std::string driver = "/sys/bus/pci/drivers/vfio-pci/";
  ASSERT_TRUE(write_file(driver + "unbind", card()));
  refused(knob(""), "echo vfio-pci >devices/A/driver_override");
  ASSERT_TRUE(write_file(driver + "bind", card()));
  EXPECT_EQ(run_child([] {
              CHILD_EQUAL(setresuid(1000, 1000, 1000), 0);
              Device device;
              std::string why;
              CHILD_CHECK(device.open(knob(""), &why) && !device.is_open());
              CHILD_CHECK(why.find("Permission denied") != std::string::npos);
              return 0;
            }),
            0);
}

class VfioByLibrary : public testing::TestWithParam<const char*> {
 protected:
  static haul_engine_info opened(const std::string& words) {
    const haul_engine_info info = open_engine("nic", GetParam(), "HAUL_ENGINE_NIC", words.c_str());
    if (info.available == 0) std::fprintf(stderr, "nic: %s\n", info.status);
    CHILD_EQUAL(info.available, 1);
    return info;
  }
  static void copy_many(unsigned turns) {
    const std::uint64_t before = engine_now("nic").bytes;
    std::mt19937_64 random(5);
    for (unsigned turn = 0; turn < turns; ++turn)
      copy_one(1 + random() % (turn % 10 == 0 ? 6 * mib : 100 * kib), random(), random() & 63);
    CHILD_CHECK(engine_now("nic").bytes > before);
  }
  void SetUp() override {
    if (card() == nullptr) GTEST_SKIP() << "E2E_NIC_VFIO names no card";
  }
};
INSTANTIATE_TEST_SUITE_P(By, VfioByLibrary, testing::Values("thread", "caller"));

TEST_P(VfioByLibrary, CopiesWhateverItIsGiven) {
  EXPECT_EQ(run_child([] {
              const haul_engine_info info = opened(knob(""));
              CHILD_CHECK(std::strstr(info.status, "VFIO") != nullptr);
              CHILD_CHECK(std::strstr(info.status, "no hardware") == nullptr);
              copy_many(60);
              return 0;
            }),
            0);
}
TEST_P(VfioByLibrary, CopiesWhereFramesAreLostRepeatedAndOvertaken) {
  EXPECT_EQ(run_child([] {
              opened(knob("trial=5"));
              copy_many(20);
              return 0;
            }),
            0);
}
// Memory that is mapped anew at an address is registered anew.
TEST_P(VfioByLibrary, HearsOfChangesOfMemory) {
  EXPECT_EQ(run_child([] {
              opened(knob(""));
              const std::uint64_t before = engine_now("nic").bytes;
              for (unsigned turn = 0; turn < 30; ++turn) copy_one(256 * kib, turn, 3);
              CHILD_CHECK(engine_now("nic").bytes > before);
              return 0;
            }),
            0);
}
TEST_P(VfioByLibrary, AChildOfForkDoesWithout) {
  EXPECT_EQ(run_child([] {
              opened(knob(""));
              const pid_t child = start_child([] {
                for (unsigned turn = 0; turn < 3; ++turn) copy_one(mib, turn, 1);
                CHILD_EQUAL(engine_now("nic").available, 0);
                return 0;
              });
              for (unsigned turn = 0; turn < 30; ++turn) copy_one(mib, turn, 1);
              CHILD_EQUAL(end_of(child), 0);
              copy_many(10);
              CHILD_EQUAL(engine_now("nic").available, 1);
              return 0;
            }),
            0);
}

}  // namespace
