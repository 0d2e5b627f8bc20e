// Text of files and file names as a terminal may show it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace bcisim::cli {

// Characters of Unicode that hide or change the text around them: controls (terminals obey even
// those of C1), marks of direction, separators of lines and paragraphs.
constexpr bool is_harmful(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
         character == 0x200e || character == 0x200f ||
         (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

// The text with its harmful characters, and the bytes that are no UTF-8, as \xNN. Every text that
// comes from a file or names one is passed through here before it is printed; Table does so itself.
inline std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) -> std::uint32_t {
      return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    };
    const std::uint32_t first = byte(at);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    std::uint32_t character = length == 1 ? first : first & (0x7fu >> length);
    bool is_good = first < 0x80 || (first >= 0xc0 && first < 0xf8);
    for (std::size_t i = 1; is_good && i < length; ++i) {
      is_good = (byte(at + i) & 0xc0) == 0x80;
      character = character << 6 | (byte(at + i) & 0x3f);
    }
    // The longer ways to write a shorter one, surrogates, and what is beyond Unicode.
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    is_good = is_good && character >= least[length] && character <= 0x10ffff &&
              (character < 0xd800 || character > 0xdfff);
    const std::size_t taken = is_good ? length : 1;
    if (is_good && !is_harmful(character)) {
      shown += text.substr(at, taken);
    } else {
      for (std::size_t i = 0; i < taken; ++i) shown += fmt::format("\\x{:02x}", byte(at + i));
    }
    at += taken;
  }
  return shown;
}

}  // namespace bcisim::cli
