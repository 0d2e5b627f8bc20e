// Numbers as bytes: fixed ones little-endian, variable ones in groups of 7 bits (LEB128), signed
// ones folded first (0, -1, 1, -2, ... become 0, 1, 2, 3, ...). And the checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace bcisim {

using Bytes = std::vector<std::uint8_t>;

// A frame that breaks the format's rules. The reader adds the file and the offset and throws it on
// as TraceError; what() is a clause: "its path leads to an unknown instruction".
class FrameError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename Number>
void put_fixed(Bytes& to, Number number) {
  for (unsigned i = 0; i < sizeof number; ++i)
    to.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

template <typename Number>
Number get_fixed(const std::uint8_t* from) {
  Number number = 0;
  for (unsigned i = 0; i < sizeof number; ++i)
    number = static_cast<Number>(number | static_cast<Number>(from[i]) << (8 * i));
  return number;
}

inline void put_varint(Bytes& to, std::uint64_t number) {
  while (number >= 0x80) {
    to.push_back(static_cast<std::uint8_t>(number | 0x80));
    number >>= 7;
  }
  to.push_back(static_cast<std::uint8_t>(number));
}

// Signed numbers are held in 64 bits that wrap around: any difference of two addresses is one.
inline void put_signed(Bytes& to, std::uint64_t number) {
  put_varint(to, (number << 1) ^ (0 - (number >> 63)));
}

// Takes a column apart. Throws FrameError when it ends early or a number is longer than 64 bits.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::uint8_t> bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool empty() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint8_t byte() {
    if (at_ == end_) [[unlikely]]
      fail();
    return *at_++;
  }
  std::uint64_t varint() {
    const std::uint8_t first = byte();
    if (first < 0x80) return first;
    std::uint64_t number = first & 0x7f;
    for (unsigned shift = 7; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      if (shift == 63 && next > 1) break;
      number |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return number;
    }
    throw FrameError("a number in it is longer than 64 bits");
  }
  std::uint64_t signed_varint() {
    const std::uint64_t folded = varint();
    return (folded >> 1) ^ (0 - (folded & 1));
  }
  std::span<const std::uint8_t> bytes(std::uint64_t count) {
    if (count > left()) fail();
    const std::span<const std::uint8_t> taken(at_, static_cast<std::size_t>(count));
    at_ += count;
    return taken;
  }

 private:
  [[noreturn]] static void fail() { throw FrameError("a part of it ends early"); }

  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
};

// CRC-32 as in zlib and PNG (polynomial edb88320, reflected). `so_far` continues an earlier one.
inline std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t so_far = 0) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0);
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t crc = ~so_far;
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xff];
  return ~crc;
}

}  // namespace bcisim
