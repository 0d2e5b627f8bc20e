// What the soak knows of every message: its place in its stream (a source and a class of tags), its
// bytes, and in which order receives must have taken the messages of a stream.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "rank.hpp"

namespace rank_test {

inline constexpr std::uint64_t classes = 4;
inline constexpr std::uint64_t sequence_bits = 48;
inline constexpr std::uint64_t sequence_mask = (std::uint64_t{1} << sequence_bits) - 1;

// A tag says all: the source, the class and the number of the message in its stream.
struct Label {
  std::uint64_t source, group, sequence;
  std::uint64_t tag() const { return source << 56 | group << sequence_bits | sequence; }
  static Label of(std::uint64_t tag) {
    return {tag >> 56, tag >> sequence_bits & 0xff, tag & sequence_mask};
  }
};

// The bytes of a message follow from its label, the receiver's rank and the place.
inline void fill_payload(void* memory, std::size_t size, std::uint64_t tag, std::uint64_t to) {
  auto* bytes = static_cast<unsigned char*>(memory);
  std::uint64_t word = (tag * 0x9e3779b97f4a7c15u) ^ (to + 1) * 0xbf58476d1ce4e5b9u;
  for (std::size_t at = 0; at < size; at += 8, word += 0x94d049bb133111ebu)
    std::memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
}

inline bool payload_is(const void* memory, std::size_t size, std::uint64_t tag, std::uint64_t to) {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  std::uint64_t word = (tag * 0x9e3779b97f4a7c15u) ^ (to + 1) * 0xbf58476d1ce4e5b9u;
  for (std::size_t at = 0; at < size; at += 8, word += 0x94d049bb133111ebu)
    if (std::memcmp(bytes + at, &word, size - at < 8 ? size - at : 8) != 0) return false;
  return true;
}

// Receives are numbered as they are posted. Of one stream, the receive with the smaller number has
// taken the earlier message; and every message comes exactly once. Both are checked as soon as no
// earlier receive is open.
class ReceiveOrder {
 public:
  explicit ReceiveOrder(std::size_t sources) : streams_(sources * classes) {}

  std::uint64_t begin() {
    open_.insert(next_);
    return next_++;
  }
  // It ended without a message.
  void drop(std::uint64_t number) {
    open_.erase(number);
    settle();
  }
  void take(std::uint64_t number, const Label& label) {
    const std::uint64_t index = label.source * classes + label.group;
    if (label.group >= classes || index >= streams_.size())
      give_up("a message of a stream that does not exist: tag %#llx",
              static_cast<unsigned long long>(label.tag()));
    streams_[index].taken.emplace(number, label.sequence);
    ++streams_[index].received;
    open_.erase(number);
    settle();
  }
  std::uint64_t received(std::uint64_t source, std::uint64_t group) const {
    return streams_[source * classes + group].received;
  }
  // How many receives ago the oldest open one was posted.
  std::uint64_t oldest() const { return open_.empty() ? next_ : *open_.begin(); }
  std::uint64_t posted() const { return next_; }

 private:
  struct Stream {
    std::map<std::uint64_t, std::uint64_t> taken;  // number of the receive -> of the message
    std::uint64_t expected = 0;
    std::uint64_t received = 0;
  };

  void settle() {
    const std::uint64_t limit = oldest();
    if (limit == settled_) return;
    settled_ = limit;
    for (Stream& stream : streams_)
      while (!stream.taken.empty() && stream.taken.begin()->first < limit) {
        if (stream.taken.begin()->second != stream.expected)
          give_up("stream %zu: message %llu was taken where %llu was next",
                  static_cast<std::size_t>(&stream - streams_.data()),
                  static_cast<unsigned long long>(stream.taken.begin()->second),
                  static_cast<unsigned long long>(stream.expected));
        ++stream.expected;
        stream.taken.erase(stream.taken.begin());
      }
  }

  std::vector<Stream> streams_;
  std::set<std::uint64_t> open_;
  std::uint64_t next_ = 0, settled_ = 0;
};

}  // namespace rank_test
