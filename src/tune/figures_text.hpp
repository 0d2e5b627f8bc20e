// The text of the calibration's file: lines of key=value, decimals with three places whatever the
// program's locale.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace haul::tune {

inline constexpr std::size_t file_bytes = 2048;  // of a good file, with room to spare

class FiguresWriter {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) noexcept {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(text_ + size_, sizeof text_ - size_, format, arguments);
    va_end(arguments);
    if (written > 0) size_ = std::min(size_ + static_cast<std::size_t>(written), sizeof text_ - 1);
  }
  // "key=0.125".
  void add_thousandths(const char* key, std::uint64_t thousandths) noexcept {
    add("%s=%" PRIu64 ".%03u\n", key, thousandths / 1000,
        static_cast<unsigned>(thousandths % 1000));
  }
  const char* text() const noexcept { return text_; }
  std::size_t size() const noexcept { return size_; }

 private:
  char text_[file_bytes] = {};
  std::size_t size_ = 0;
};

// Parses the text. Each step returns whether the text went on as it must.
class FiguresReader {
 public:
  FiguresReader(const char* text, std::size_t size) noexcept : at_(text), end_(text + size) {}

  bool skip(const char* word) noexcept {
    const std::size_t length = strlen(word);
    if (static_cast<std::size_t>(end_ - at_) < length || memcmp(at_, word, length) != 0) {
      return false;
    }
    at_ += length;
    return true;
  }
  // At most `places` digits, at least one.
  bool digits(unsigned places, std::uint64_t& value) noexcept {
    const char* start = at_;
    value = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      if (at_ - start == static_cast<std::ptrdiff_t>(places)) return false;
      value = value * 10 + static_cast<std::uint64_t>(*at_ - '0');
    }
    return at_ != start;
  }
  bool hex16(std::uint64_t& value) noexcept {
    value = 0;
    if (end_ - at_ < 16) return false;
    for (const char* stop = at_ + 16; at_ != stop; ++at_) {
      const char c = *at_;
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) return false;
      value = value << 4 | static_cast<std::uint64_t>(digit);
    }
    return true;
  }
  // "key=0.125" and the line's end.
  bool thousandths(const char* key, std::uint64_t& value) noexcept {
    std::uint64_t whole = 0, fraction = 0;
    if (!skip(key) || !skip("=") || !digits(10, whole) || !skip(".")) return false;
    const char* start = at_;
    if (!digits(3, fraction) || at_ - start != 3 || !skip("\n")) return false;
    value = whole * 1000 + fraction;
    return true;
  }
  // "key=123" and the line's end.
  bool number(const char* key, std::uint64_t& value) noexcept {
    return skip(key) && skip("=") && digits(12, value) && skip("\n");
  }
  bool ended() const noexcept { return at_ == end_; }
  const char* position() const noexcept { return at_; }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace haul::tune
