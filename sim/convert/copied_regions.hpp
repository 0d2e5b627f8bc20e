// What a copy routine copied, from the references that it made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/event.hpp"
#include "format/instruction.hpp"

namespace bcisim {

// A stretch of virtual memory, every byte of which was referred to.
class CopiedRegion {
 public:
  // Of references in the order in which they were made; sorts them. Nothing when they leave gaps.
  static std::optional<CopiedRegion> cover(std::vector<Reference>& references);

  std::uint64_t address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  bool ascending() const { return ascending_; }  // the first reference was to its beginning

  void keep_first(std::uint64_t bytes) { bytes_ = bytes; }
  void keep_last(std::uint64_t bytes) {
    address_ += bytes_ - bytes;
    bytes_ = bytes;
  }

  std::vector<std::uint64_t> physical_pages() const;

 private:
  struct Page {
    std::uint64_t virtual_page, physical_page;
  };
  std::uint64_t address_ = 0, bytes_ = 0;
  bool ascending_ = true;
  std::vector<Page> pages_;  // ascending
};

}  // namespace bcisim
