// A fully associative translation look-aside buffer with true LRU and the lock bits of paper 003,
// IV: the pages of a copy under way stay.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/parameters.hpp"

namespace bcisim {

class Tlb {
 public:
  explicit Tlb(unsigned entries) : pages_(entries, none), used_(entries, 0), locks_(entries, 0) {}

  // The translation of an address: another physical page behind the same virtual one is another.
  static std::uint64_t page_of(std::uint64_t address, std::uint64_t physical) {
    constexpr std::uint64_t virtual_bits = (std::uint64_t{1} << 36) - 1;
    const unsigned shift = is_in_large_page(address) ? large_page_shift : page_shift;
    return (address >> shift & virtual_bits) | (physical >> shift) << 36;
  }
  // Linux on x86-64 maps all of memory, its descriptors of pages and its own code by pages of 2 MB.
  static constexpr bool is_in_large_page(std::uint64_t address) {
    return (address >= 0xffff888000000000 && address < 0xffffc88000000000) ||
           (address >= 0xffffea0000000000 && address < 0xffffeb0000000000) ||
           (address >= 0xffffffff80000000 && address < 0xffffffffa0000000);
  }
  // Was the translation there? It is now.
  bool touch(std::uint64_t address, std::uint64_t physical) {
    Recent& recent = recent_[address / page_bytes % recent_.size()];
    const std::uint64_t small_page = address / page_bytes, small_physical = physical / page_bytes;
    if (recent.small_page == small_page && recent.small_physical == small_physical &&
        pages_[recent.index] == recent.page) {
      used_[recent.index] = ++clock_;
      return true;
    }
    recent = {small_page, small_physical, page_of(address, physical), 0};
    const bool was_there = touch(recent.page);
    recent.index = last_;
    return was_there;
  }
  bool touch(std::uint64_t page);
  // Adds to, or takes from, the locks of a translation that is there. Copies may share pages.
  void lock(std::uint64_t page) { change_locks(page, 1); }
  void unlock(std::uint64_t page) { change_locks(page, -1); }
  // The OS takes a translation away: false, and it stays, while it is locked (the OS then locks the
  // page itself).
  bool invalidate(std::uint64_t page);
  // How often a locked translation had to make room, since all were locked: the OS is invoked then.
  std::uint64_t locked_evictions() const { return locked_evictions_; }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  static constexpr unsigned page_shift = 12, large_page_shift = 21;
  void change_locks(std::uint64_t page, int by);
  unsigned index_of(std::uint64_t page) const;  // pages_.size(): not there
  unsigned victim() const;

  std::vector<std::uint64_t> pages_, used_;
  std::vector<std::uint16_t> locks_;
  // A short way to translations used lately.
  struct Recent {
    std::uint64_t small_page = none, small_physical = none, page = none;
    unsigned index = 0;
  };
  std::array<Recent, 128> recent_{};
  std::uint64_t clock_ = 0;
  std::uint64_t locked_evictions_ = 0;
  unsigned last_ = 0;  // the entry touched last
};

}  // namespace bcisim
