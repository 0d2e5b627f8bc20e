// Names of places in programs and libraries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace haul::cli {

// Reads the symbol tables of ELF files, each once. Where haul was built without libelf, or a file
// cannot be read or has no symbols, there are no names.
class Symbols {
 public:
  // The function, without its arguments, that holds this offset of the file; "" if there is none.
  std::string name_at(const std::string& file, std::uint64_t offset);

 private:
  struct Function {
    std::uint64_t begin = 0, end = 0;  // offsets in the file
    std::string name;
  };
  static std::vector<Function> read(const std::string& file);

  std::map<std::string, std::vector<Function>> files_;  // sorted by begin
};

}  // namespace haul::cli
