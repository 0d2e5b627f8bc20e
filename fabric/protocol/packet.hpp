// What travels between endpoints: packets of one 64-byte header, and a payload where they have one.
// A header that comes from a peer is hostile input: it is copied out of shared memory once, and
// every field is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::fabric {

enum class PacketKind : std::uint8_t {
  none = 0,
  message,        // a whole message (eager), or its begin; payload inline or behind the header
  more,           // what follows of a message in parts
  request,        // rendezvous, sender to receiver: here is a message, its bytes are still with me
  write,          // RMA, whole; payload behind the header
  write_request,  // RMA rendezvous: as request, for a region instead of a receive
  read,           // RMA: send me these bytes of a region
  answer,         // to `read`: as request, for the operation that asked
  atomic,         // base, fetch or compare; operands behind the header
  clear,          // receiver to sender: send its bytes as `data`, or copy your share yourself
  data,           // a piece of a message, of a write or of what a read asked for
  finish,         // done with your memory or your request, or failed (detail: FI_E*)
  share,     // sender to receiver: my share is copied (data: chunks), or cannot be (detail: FI_E*)
  result,    // what an atomic fetched, behind the header; or its failure (detail: FI_E*)
  throttle,  // detail 1: send me requests only, I keep too much; 0: no longer
  pad,       // the transport's own: fills the end of the ring, where the next packet does not fit
};
inline constexpr PacketKind last_kind = PacketKind::pad;

enum PacketFlag : std::uint8_t {
  packet_tagged = 1u << 0,    // message, request: for the tagged queue
  packet_data = 1u << 1,      // `data` carries remote CQ data
  packet_reply = 1u << 2,     // message, request: `finish` when it is delivered
  packet_inlined = 1u << 3,   // the payload is in the header's last bytes
  packet_huge = 1u << 4,      // request and its like: the pages of its place are huge
  packet_split = 1u << 5,     // clear: copy chunks from the back, by claims
  packet_alone = 1u << 7,     // clear, split: all chunks are yours
  packet_streamed = 1u << 2,  // clear, split: write your chunks past the caches
  packet_mappable = 1u << 2,  // clear, not split: a mapping could have served as well
  // message: of far.length bytes, the rest comes as `more`, at once. request: its first
  // in_parts_bytes come so.
  packet_parts = 1u << 6,
};

// Where bytes lie in the sender's process.
struct MemoryPlace {
  std::uint64_t address = 0;  // in its address space, or offset within its arena
  std::uint32_t pieces = 0;   // 1: contiguous, may be reached by address; 0: may not
  // On this node, 1: address is an offset in the arena that it handed over. Off it: the key by
  // which the offnode carrier knows the memory.
  std::uint32_t arena = 0;
};
static_assert(sizeof(MemoryPlace) == 16);

struct Header {
  PacketKind kind = PacketKind::none;
  std::uint8_t flags = 0;
  std::uint16_t detail = 0;   // atomic: operation, datatype and form. finish, result, share: FI_E*.
                              // request and its like: the claim. clear: log2 of its chunks
  std::uint32_t payload = 0;  // bytes of payload, wherever it lies; the highest byte is the
                              // transport's own
  // message, request: the tag. RMA and atomic requests: the key. Else: the token of the operation
  // that the packet is for.
  std::uint64_t tag = 0;
  // Remote CQ data. data, result: where the payload lies in the whole. share: chunks. clear: what
  // of the message is not wanted, since it came along with the request.
  std::uint64_t data = 0;
  union {
    std::uint8_t bytes[32];
    struct {
      std::uint64_t length;  // of the whole
      std::uint64_t token;   // the operation's name at the sender of this packet
      MemoryPlace place;     // request, clear: the sender's memory. RMA, atomic: target address
    } far;
  };
  std::uint64_t ready = 0;  // the transport's own

  Header() noexcept : bytes{} {}
};
static_assert(sizeof(Header) == 64);
inline constexpr std::size_t inline_capacity = sizeof Header::bytes;
inline constexpr std::size_t in_parts_bytes = std::size_t{64} << 10;  // the most that come in parts

}  // namespace haul::fabric
