// Packets over TCP connections of our own. This carrier works also where libfabric has no provider
// that can be opened: under Intel MPI with FI_PROVIDER_PATH set, and where FI_PROVIDER hides
// ofi_rxm. Each direction between two endpoints is a connection; a packet is its length and its
// bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/net/epoll.hpp"
#include "base/os/descriptor.hpp"
#include "fabric/transport/offnode/carrier/carrier.hpp"

namespace haul::fabric {

class SocketCarrier final : public OffnodeCarrier {
 public:
  static Expected<std::unique_ptr<OffnodeCarrier>> open(const os::InetAddress& local) noexcept;
  ~SocketCarrier() override;

  int insert(const std::uint8_t* name, std::size_t bytes, fi_addr_t* address) noexcept override;
  int send(Departure& departure, fi_addr_t address) noexcept override;
  bool poll(User& user) noexcept override;
  void let_go(Landing& landing) noexcept override;

 private:
  // The name: where to connect.
  struct Name {
    os::InetAddress address;
    std::uint16_t port = 0;
  };
  struct Outgoing {
    os::Descriptor fd;
    bool connected = false;
    int error = 0;                 // -FI_E*, once it has failed
    Departure* current = nullptr;  // partly sent
    std::size_t sent = 0;          // of it, with its length
  };
  struct Incoming {
    os::Descriptor fd;
    std::uint64_t name = 0;      // in epoll_
    Landing* landing = nullptr;  // being filled
    std::size_t filled = 0, parsed = 0;
  };
  // The names in epoll_ of the listener and of the first incoming connection.
  static constexpr std::uint64_t listener_name = os::Epoll::own_event + 1;
  static constexpr std::uint64_t first_name = listener_name + 1;
  SocketCarrier() noexcept = default;
  int set_up(const os::InetAddress& local) noexcept;
  bool push(Outgoing& outgoing) noexcept;
  bool watch() noexcept;
  bool accept() noexcept;
  bool receive(Incoming& incoming, User& user) noexcept;
  bool make_room(Incoming& incoming) noexcept;
  bool parse(Incoming& incoming, User& user) noexcept;
  void end(Incoming& incoming) noexcept;
  Landing* take_landing() noexcept;

  os::Descriptor listener_;
  os::Epoll epoll_;  // the listener and what comes in
  std::uint64_t next_name_ = first_name;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::vector<Outgoing*> stuck_;  // with a current packet
  std::vector<std::unique_ptr<Incoming>> incoming_;
  std::vector<std::unique_ptr<Landing>> landings_;
  std::vector<Landing*> free_landings_;
  Departure* gone_ = nullptr;  // sent, or failed; departed() is still to be called
  Departure** last_gone_ = &gone_;
  void finish(Departure& departure, int error) noexcept;
};

}  // namespace haul::fabric
