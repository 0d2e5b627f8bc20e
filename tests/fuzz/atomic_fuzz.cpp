// libFuzzer on a responder: packets of a stranger's choice (atomic_packets.hpp) to the tables that
// the host responders serve by. The sanitizers watch that nothing outside is read or written.
#include <cstdlib>
#include <memory>
#include <new>

#include "atomic/responder/tables.hpp"
#include "fuzz/atomic_packets.hpp"

namespace {

using namespace haul::atomics;
using test::Sender;

void demand(bool holds) {
  if (!holds) std::abort();
}

// Memory of its length and no more, so that one byte too far is seen.
struct FreePacket {
  void operator()(WirePacket* packet) const { operator delete (packet, std::align_val_t{64}); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto take = [&](void* to, std::size_t bytes) {
    const std::size_t got = bytes < size ? bytes : size;
    std::memset(to, 0, bytes);
    if (got != 0) std::memcpy(to, data, got);
    data += got;
    size -= got;
  };
  constexpr std::size_t pages = (Sender::window_bytes + 4095) / 4096;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(4096, pages * 4096)), &std::free);
  std::memset(memory.get(), 0, pages * 4096);
  Tables tables;
  demand(tables.open(Sender::sessions));
  tables.add_window(Sender::window, {Sender::key, Sender::address, Sender::window_bytes},
                    memory.get());
  Sender sender;
  while (size != 0) {
    Sender::Letter letter = sender.write(take);
    const std::unique_ptr<WirePacket, FreePacket> packet(
        static_cast<WirePacket*>(operator new (letter.size, std::align_val_t{64})));
    std::memcpy(static_cast<void*>(packet.get()), letter.bytes, letter.size);
    std::uint32_t now_s = 5;
    take(&now_s, 1);
    if (!tables.serve(packet.get(), letter.size, letter.source(), now_s)) continue;
    // An answer is as long as its question, whole, and never answered itself.
    wire_header asked;
    std::memcpy(&asked, letter.bytes, sizeof asked);
    demand(intact(*packet, letter.size));
    demand(packet->header.kind == (asked.kind | WIRE_REPLY));
    demand(packet->header.count == asked.count && packet->header.sequence == asked.sequence &&
           packet->header.cookie == asked.cookie && packet->header.session == asked.session);
    std::memcpy(letter.bytes, packet.get(), letter.size);
    sender.read(letter);
    demand(!tables.serve(packet.get(), letter.size, letter.source(), now_s));
  }
  // What lies in the last page behind the window's end.
  for (std::size_t i = Sender::window_bytes; i < pages * 4096; ++i) demand(memory.get()[i] == 0);
  return 0;
}
