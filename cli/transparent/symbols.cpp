#include "cli/transparent/symbols.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace haul::cli {
namespace {

std::string plain_name(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
  std::string name = status == 0 && demangled ? demangled.get() : symbol;
  return name.substr(0, name.find('('));
}

// An address that the linker gave out, as an offset in the file; -1 if nothing is loaded there.
std::uint64_t offset_of(Elf* elf, std::uint64_t address) {
  std::size_t count = 0;
  elf_getphdrnum(elf, &count);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD)
      continue;
    if (address >= header.p_vaddr && address - header.p_vaddr < header.p_filesz)
      return address - header.p_vaddr + header.p_offset;
  }
  return ~std::uint64_t{0};
}

}  // namespace

std::vector<Symbols::Function> Symbols::read(const std::string& file) {
  std::vector<Function> functions;
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return functions;
  elf_version(EV_CURRENT);
  Elf* const elf = elf_begin(fd, ELF_C_READ, nullptr);
  for (Elf_Scn* section = nullptr; elf != nullptr && (section = elf_nextscn(elf, section));) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_entsize == 0 ||
        (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM))
      continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    for (std::size_t i = 0; data != nullptr && i < header.sh_size / header.sh_entsize; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr ||
          GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0)
        continue;
      const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
      const std::uint64_t begin = offset_of(elf, symbol.st_value);
      if (name != nullptr && begin + 1 != 0)
        functions.push_back({begin, begin + symbol.st_size, name});
    }
  }
  elf_end(elf);
  close(fd);
  std::ranges::stable_sort(functions, {}, &Function::begin);
  return functions;
}

std::string Symbols::name_at(const std::string& file, std::uint64_t offset) {
  auto found = files_.find(file);
  if (found == files_.end()) found = files_.emplace(file, read(file)).first;
  const std::vector<Function>& functions = found->second;
  auto at = std::ranges::upper_bound(functions, offset, {}, &Function::begin);
  // Several names may begin at one place.
  while (at != functions.begin()) {
    --at;
    if (offset < at->end) return plain_name(at->name.c_str());
    if (at->begin + (std::uint64_t{1} << 20) < offset) break;
  }
  return "";
}

}  // namespace haul::cli
