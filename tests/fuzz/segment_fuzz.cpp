// libFuzzer on what a hostile peer can do to a matcher: packets of its choice through a real ring,
// and bytes of its choice anywhere in the shared segment, between the victim's own requests. The
// sanitizers watch that nothing outside is read or written.
#include <cstdint>
#include <cstring>

#include "unit/fabric/harness.hpp"

namespace {

using namespace haul::fabric;
using haul::fabric::test::World;

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  void take(void* to, std::size_t bytes) {
    const std::size_t got = bytes < left_ ? bytes : left_;
    std::memset(to, 0, bytes);
    std::memcpy(to, at_, got);
    at_ += got;
    left_ -= got;
  }
  template <class T>
  T take() {
    T value;
    take(&value, sizeof value);
    return value;
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

void write_packet(RingOutbox& outbox, Input& input) {
  Header header;
  input.take(static_cast<void*>(&header), offsetof(Header, ready));
  const bool bulk = header.kind == PacketKind::data;
  const Outbox::Slot slot =
      outbox.reserve(header.payload % 4096, bulk ? Outbox::Lane::bulk : Outbox::Lane::eager);
  if (slot.header == nullptr) return;
  std::memcpy(static_cast<void*>(slot.header), &header, offsetof(Header, ready));
  outbox.commit();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  setenv("HAUL_LOG_LEVEL", "error", 0);
  Input input(data, size);
  World world(2);
  test::Node& victim = world[1];
  victim.network.observed = true;
  // The victim's own: receives, a message under way, a read that awaits its answer.
  std::vector<std::byte> buffer(std::size_t{40} << 10);
  victim.receive(nullptr, buffer.data(), 100, 1, nullptr);
  victim.receive(nullptr, buffer.data() + 100, 20000, 2, nullptr);
  victim.send(world[0], buffer.data(), buffer.size(), 3, nullptr);
  const iovec piece{buffer.data() + 30000, 1000};
  const fi_rma_iov target{0, 1000, 7};
  RmaRequest read;
  read.pieces = &piece;
  read.count = 1;
  read.targets = &target;
  read.target_count = 1;
  victim.matcher.rma(victim.peer(world[0]), read);
  world[0].send(victim, "hi", 3, 9, nullptr, 0);
  test::Channel& channel = world[0].network.outbound[2];
  while (!input.empty()) {
    switch (input.take<std::uint8_t>() % 4) {
      case 0: write_packet(*channel.outbox, input); break;
      case 1: {
        const auto offset = input.take<std::uint32_t>() % segment_bytes;
        reinterpret_cast<std::uint8_t*>(channel.segment.get())[offset] = input.take<std::uint8_t>();
        break;
      }
      case 2: victim.matcher.progress(); break;
      default: victim.receive(nullptr, buffer.data(), 64, input.take<std::uint8_t>(), nullptr);
    }
  }
  victim.matcher.progress();
  return 0;
}
