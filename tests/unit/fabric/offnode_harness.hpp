// Two endpoints that talk over an offnode network, as if on different nodes.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/pages/sealed.hpp"
#include "fabric/protocol/operation.hpp"
#include "fabric/transport/offnode/carrier/carrier.hpp"
#include "fabric/transport/offnode/network.hpp"

namespace haul::fabric::offnode_test {

// A test that waits longer has failed.
inline constexpr std::uint64_t patience_ns = 30'000'000'000;

inline bool has_libfabric() {
  static void* const library = dlopen("libfabric.so.1", RTLD_NOW);
  return library != nullptr;
}

// One endpoint's network, and what it has told.
struct Side {
  Address address;
  std::unique_ptr<OffnodeNetwork> network;
  Inbox* inbox = nullptr;
  Outbox* outbox = nullptr;
  std::vector<NetworkEvent> ends;  // refused, ended, died

  explicit Side(const char* carrier) {
    os::random_bytes(address.id, sizeof address.id);
    address.host = 1;
    Error error;
    network = open_offnode(carrier, &address, &error);
    EXPECT_STREQ(error.sentence, "");
  }
  void turn() {
    network->turn();
    if (network->news.load() == 0) return;
    NetworkEvent event;
    while (network->next(event)) {
      if (event.what == NetworkEvent::What::opened) {
        EXPECT_EQ(event.address.host, 0u);
        inbox = event.inbox;
      } else if (event.what == NetworkEvent::What::connected) {
        outbox = event.outbox;
      } else {
        ends.push_back(event);
      }
    }
  }
};

// Turns all sides until `done`; false if that takes too long.
template <class Done>
bool turn_until(std::initializer_list<Side*> sides, Done done) {
  const std::uint64_t end = now_ns() + patience_ns;
  while (!done()) {
    if (now_ns() > end) return false;
    for (Side* side : sides) side->turn();
  }
  return true;
}

inline bool connect(Side& from, Side& to) {
  from.network->connect(to.address);
  return turn_until({&from, &to}, [&] { return from.outbox != nullptr || !from.ends.empty(); }) &&
         from.outbox != nullptr;
}

// Two sides that have met, and what each calls the other.
struct Readers {
  explicit Readers(const char* carrier) : a(carrier), b(carrier) {
    EXPECT_TRUE(connect(a, b) && connect(b, a));
    to_b.address = b.address;
    to_a.address = a.address;
  }
  // What a lends to b.
  MemoryPlace lend(void* at, std::size_t bytes) {
    const iovec whole{at, bytes};
    bool huge = true;
    const MemoryPlace place = a.network->access().describe(to_b, &whole, 1, &huge);
    EXPECT_FALSE(huge);
    return place;
  }
  // Of a's memory, by b: 1, or an error.
  int read(const MemoryPlace& place, std::uint64_t offset, const std::vector<iovec>& to) {
    std::size_t bytes = 0;
    for (const iovec& piece : to) bytes += piece.iov_len;
    DirectAccess& access = b.network->access();
    const std::int64_t ticket = access.start(to_a, DirectAccess::Direction::pull, to.data(),
                                             to.size(), place, offset, bytes, false);
    if (ticket <= 0) return static_cast<int>(ticket);
    int state = 0;
    EXPECT_TRUE(turn_until({&a, &b}, [&] { return (state = access.test(ticket)) != 0; }));
    return state;
  }
  static constexpr std::size_t size = (std::size_t{3} << 20) + 17;
  Side a, b;
  Peer to_a, to_b;
};

inline std::vector<std::byte> random_bytes(std::size_t size) {
  std::mt19937_64 random(size);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Each test runs on every carrier that is here: GetParam().
class CarrierTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    has_libfabric();  // loads it, as the program that uses haul would have
    if (OffnodeCarrier::available(GetParam()).empty()) {
      GTEST_SKIP() << "there is no libfabric with " << GetParam()
                   << " here (tcp alone needs version 2); the other carriers are tested";
    }
  }
};

inline std::string title_of(const testing::TestParamInfo<const char*>& info) {
  std::string title = info.param;
  for (char& letter : title) letter = isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return title;
}
inline const auto all_carriers = testing::Values("tcp;ofi_rxm", "tcp", OffnodeCarrier::socket_name);

}  // namespace haul::fabric::offnode_test
