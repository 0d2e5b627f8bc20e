// A client that writes its packets by hand, for what the library never sends.
#pragma once

#include <haul/atomic.h>
#include <netinet/in.h>

#include <cstdint>

#include "atomic/wire/packet.h"

namespace atomic_test {

// Of an interface of this namespace.
void mac_of(const char* interface, unsigned char (&mac)[6]);

class HandmadeClient {
 public:
  // Of this window; its socket is in the caller's namespace.
  explicit HandmadeClient(const haul_atomic_window_name& name);
  ~HandmadeClient();
  HandmadeClient(const HandmadeClient&) = delete;
  HandmadeClient& operator=(const HandmadeClient&) = delete;

  // Both: false, there is no answer, or a refusal.
  bool hello();
  bool fetch_add(std::uint64_t address, std::uint64_t* old);

  // IP options in each packet that follows, or none.
  void put_options(bool some);
  // From now on packets leave as frames with a VLAN's tag 0.
  void tag_frames(const char* interface, const unsigned char (&to)[6]);

 private:
  struct Question {
    wire_header header{};
    wire_operation operation{};
  };
  bool ask(wire_kind kind, unsigned count);
  void send_tagged(const void* data, std::size_t bytes) const;

  int socket_ = -1, frames_ = -1;
  sockaddr_in peer_{}, own_{};
  unsigned char eth_[18] = {};  // with the tag
  Question question_, answer_;
};

}  // namespace atomic_test
