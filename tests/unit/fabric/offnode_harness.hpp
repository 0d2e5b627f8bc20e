// Two endpoints that talk over an offnode network, as if on different nodes.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/sealed.hpp"
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
