// The plug-in of the engine nic by its own table, on veth pairs or a looped card: exact placement
// in registered memory by AF_XDP, among strangers' frames and copies of its own, and when the ports
// go. Needs root.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "devices/nic/frame.h"
#include "nic_device.hpp"

namespace {

using namespace e2e;

// What else may come to a looped port: junk, frames that look like ours, and copies of ours, which
// have the right key.
class Strangers {
 public:
  // `hears`: the port's frames can be heard, which XDP keeps to itself.
  Strangers(const Ports& ports, unsigned pair, bool hears) : hears_(hears) {
    std::atomic<bool> begun{false};
    thread_ = std::thread([this, &ports, &begun, pair] {
      ports.enter();
      const int out = bound(if_nametoindex(Ports::out(pair).c_str()));
      const int in = bound(if_nametoindex(Ports::in(pair).c_str()));
      // (A port that receives without registered memory has tried one frame already.)
      for (const std::uint64_t sequence : {1u, 0u}) forge(out, pair, sequence);
      begun = true;
      talk(out, in);
    });
    while (!begun) sched_yield();
  }
  ~Strangers() {
    end_ = true;
    thread_.join();
    CHILD_CHECK(junk_ > (looped_card() != nullptr ? 10 : 100));
    CHILD_CHECK(!hears_ || repeated_ > 100);
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

 private:
  static int bound(unsigned interface) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(interface);
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    CHILD_EQUAL(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  // The very next fragment, but for the key.
  static void forge(int fd, unsigned pair, std::uint64_t sequence) {
    constexpr std::uint32_t bytes = 1474;
    std::vector<unsigned char> frame(sizeof(nic_header) + bytes, 0xee);
    nic_header header{};
    std::memset(header.addresses, 0xff, sizeof header.addresses);
    header.ethertype = htons(NIC_ETHERTYPE);
    header.lane = static_cast<std::uint16_t>(pair);
    header.bytes = bytes;
    header.key = 1;
    header.sequence = sequence;
    std::memcpy(frame.data(), &header, sizeof header);
    CHILD_EQUAL(send(fd, frame.data(), frame.size(), 0), frame.size());
  }

  void talk(int fd, int heard) {
    std::vector<unsigned char> seen(65536), junk(2000);
    std::mt19937_64 random(8);
    while (!end_) {
      const ssize_t bytes = recv(heard, seen.data(), seen.size(), 0);
      if (hears_ && bytes > 40 &&
          send(fd, seen.data(), static_cast<std::size_t>(bytes), 0) == bytes)
        ++repeated_;
      for (unsigned char& byte : junk) byte = static_cast<unsigned char>(random());
      nic_header header{};
      std::memset(header.addresses, 0xff, sizeof header.addresses);
      header.ethertype = htons(random() % 3 == 0 ? ETH_P_IPV6 : NIC_ETHERTYPE);
      header.lane = static_cast<std::uint16_t>(random() % 4);
      header.bytes = static_cast<std::uint32_t>(random() % 1500);
      header.key = random();
      header.sequence = random() % 1000;
      if (random() % 4 != 0) std::memcpy(junk.data(), &header, sizeof header);
      if (send(fd, junk.data(), 20 + random() % 1400, 0) > 0) ++junk_;
    }
    close(fd);
    close(heard);
  }

  const bool hears_;
  std::thread thread_;
  std::atomic<bool> end_{false};
  std::atomic<unsigned> junk_{0}, repeated_{0};
};

class Plugin : public testing::Test {
 protected:
  template <class Body>
  void in_child(const char* words, unsigned mtu, Body body) {
    if (const char* const why = cannot(); why != nullptr) GTEST_SKIP() << why;
    const Ports ports(3, mtu);
    ASSERT_TRUE(ports.made());
    const int status = run_child([&] {
      Device device;
      if (!device.open(ports.knob(words))) return skip_status;
      body(device, ports);
      return 0;
    });
    if (status == skip_status) GTEST_SKIP() << "haul was built without the engine nic";
    EXPECT_EQ(status, 0);
  }
};

TEST_F(Plugin, PlacesExactlyInRegisteredMemory) {
  in_child("xdp", 61540, [](const Device& device, const Ports&) {
    const Registered to(device, mib);
    copy_into(device, to, 100);
  });
}
TEST_F(Plugin, PlacesExactlyByOrdinaryFrames) {
  in_child("xdp", 1500, [](const Device& device, const Ports&) {
    const Registered to(device, 64 * kib);
    copy_into(device, to, 200);
  });
}
TEST_F(Plugin, PlacesExactlyWhereFramesAreLostRepeatedAndOvertaken) {
  in_child("xdp trial=5", 9000, [](const Device& device, const Ports&) {
    const Registered to(device, mib);
    copy_into(device, to, 60);
  });
}
TEST_F(Plugin, PlacesExactlyAmongStrangersFrames) {
  in_child("xdp", 1500, [](const Device& device, const Ports& ports) {
    const Registered to(device, 256 * kib);
    const Strangers strangers(ports, static_cast<unsigned>(to.region() - 1), false);
    copy_into(device, to, 60);
  });
}
TEST_F(Plugin, CopiesAmongStrangersFrames) {
  in_child("packet", 1500, [](const Device& device, const Ports& ports) {
    // (What goes out of a card comes back: what was heard and sent again would be heard for ever.)
    const Strangers strangers(ports, 0, looped_card() == nullptr);
    const Buffer from(256 * kib), to(256 * kib);
    for (unsigned turn = 0; turn < turns_here(60); ++turn) {
      from.fill(turn);
      CHILD_EQUAL(device.copy(to.data() + 5, from.data(), to.size() - 5, 0).good_bytes,
                  to.size() - 5);
      CHILD_EQUAL(std::memcmp(to.data() + 5, from.data(), to.size() - 5), 0);
    }
  });
}

TEST_F(Plugin, RegistersAsMuchAsThereArePortsAndAgainWhatWasGivenBack) {
  if (looped_card() != nullptr) GTEST_SKIP() << one_card;
  in_child("xdp", 61540, [](const Device& device, const Ports&) {
    for (unsigned turn = 0; turn < 3; ++turn) {
      const Registered one(device, 64 * kib), other(device, 128 * kib);
      CHILD_CHECK(one.region() != other.region());
      const Buffer more(64 * kib);
      std::uint64_t region = 0;
      CHILD_EQUAL(static_cast<int>(device.table().pin(reinterpret_cast<std::uintptr_t>(more.data()),
                                                      more.size(), &region)),
                  static_cast<int>(haul::Code::no_memory));
      copy_into(device, one, 5);
      copy_into(device, other, 5);
      // A piece beyond its region is refused, and one without a region takes the common port.
      CHILD_EQUAL(device.copy(other.data(), more.data(), 100, one.region()).good_bytes, 0);
      CHILD_EQUAL(device.copy(other.data(), more.data(), 100, 0).good_bytes, 100);
    }
    void* const nowhere = mmap(nullptr, 64 * kib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::uint64_t region = 0;
    CHILD_EQUAL(static_cast<int>(device.table().pin(reinterpret_cast<std::uintptr_t>(nowhere),
                                                    64 * kib, &region)),
                static_cast<int>(haul::Code::fault));
  });
}

TEST_F(Plugin, SaysWhatIsGoodWhenThePortGoes) {
  in_child("xdp", 1500, [](const Device& device, const Ports& ports) {
    const Registered to(device, mib);
    const Buffer from(mib);
    from.fill(4);
    copy_into(device, to, 3);
    std::memset(to.data(), 0, to.size());
    std::thread later([&] { ports.remove(to.region() - 1); });
    haul::Outcome outcome;
    do {
      outcome = device.copy(to.data(), from.data(), to.size(), to.region());
    } while (outcome.code == haul::Code::ok);
    later.join();
    CHILD_EQUAL(static_cast<int>(outcome.code), static_cast<int>(haul::Code::io));
    CHILD_EQUAL(std::memcmp(to.data(), from.data(), outcome.good_bytes), 0);
    CHILD_EQUAL(device.copy(to.data(), from.data(), mib, to.region()).good_bytes, 0);
  });
}

}  // namespace
