// The kernel's symbols, from a copy of its /proc/kallsyms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bcisim {

class Symbols {
 public:
  struct Symbol {
    std::uint64_t address = 0;
    std::string name;
    std::uint64_t end = 0;  // address of the next symbol
  };

  // Takes functions alone (types t, T, w, W). Throws TraceError when the file cannot be read, is of
  // another format or hides the addresses.
  static Symbols read(const std::string& path);

  // All, by address; those of one address in the file's order.
  const std::vector<Symbol>& all() const { return symbols_; }

  // "tcp_recvmsg+0x123"; nothing when no function is near.
  std::optional<std::string> name_of(std::uint64_t address) const;

 private:
  std::vector<Symbol> symbols_;
};

}  // namespace bcisim
