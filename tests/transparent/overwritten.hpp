// A call into huge pages that are there, which is under way when it has begun (plan deferred), and
// what must be found there.
#pragma once

#include <fstream>

#include "transparent/deferrals.hpp"

namespace transparent {

inline constexpr std::size_t huge = 2 * mib, blocks = 5, room = (blocks + 2) * huge;
inline constexpr unsigned char old = 0xd0;

// Of the mapping that has this address.
inline std::size_t huge_bytes_at(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<unsigned long>(address);
      inside = begin <= at && at < end;
    } else if (inside && line.rfind("AnonHugePages:", 0) == 0) {
      return std::strtoul(line.c_str() + 14, nullptr, 10) * kib;
    }
  }
  return 0;
}

// Huge pages that hold old bytes, and a call that overwrites all but `before` of them at the front
// and `behind` at the end, which is under way when the constructor returns. A value below 0: a copy
// of words.
class Overwritten {
 public:
  explicit Overwritten(std::size_t before = 0, std::size_t behind = 0, int value = -1)
      : from_(room), length_(room - before - behind), before_(before), value_(value) {
    void* const map =
        mmap(nullptr, room + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_CHECK(map != MAP_FAILED);
    mapped_ = static_cast<unsigned char*>(map);
    base_ = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(map) + huge - 1) &
                                             ~(huge - 1));
    madvise(base_, room, MADV_HUGEPAGE);
    std::memset(base_, old, room);
    mprotect(base_, room, PROT_READ | PROT_WRITE);  // waits for it
    is_huge_ = huge_bytes_at(base_ + huge) >= room;
    if (value < 0) from_.fill(3);
  }
  ~Overwritten() { munmap(mapped_, room + huge); }
  Overwritten(const Overwritten&) = delete;
  Overwritten& operator=(const Overwritten&) = delete;

  // (While the kernel changes a mapping it moves no page, so not all are deferred.)
  void begin() {
    if (value_ < 0) {
      call_memcpy(to(), from_.data(), length_);
    } else {
      call_memset(to(), value_, length_);
    }
  }
  bool is_huge() const { return is_huge_; }
  unsigned char* base() const { return base_; }
  unsigned char* to() const { return base_ + before_; }
  unsigned char* from() const { return from_.data(); }
  std::size_t length() const { return length_; }
  bool right(std::size_t begin, std::size_t end) const {
    for (; begin < end && begin % 8 != 0; ++begin)
      if (to()[begin] != byte(begin)) return false;
    for (; begin + 8 <= end; begin += 8) {
      std::uint64_t found;
      __builtin_memcpy(&found, to() + begin, 8);
      if (found != word(begin)) return false;
    }
    for (; begin < end; ++begin)
      if (to()[begin] != byte(begin)) return false;
    return true;
  }
  bool right() const {
    for (std::size_t i = 0; i < before_; ++i)
      if (base_[i] != old) return false;
    for (std::size_t i = before_ + length_; i < room; ++i)
      if (base_[i] != old) return false;
    return right(0, length_);
  }
  unsigned char byte(std::size_t at) const {
    return static_cast<unsigned char>(word(at) >> at % 8 * 8);
  }
  std::uint64_t word(std::size_t at) const {
    return value_ < 0 ? Memory::word(3, at / 8)
                      : static_cast<std::uint64_t>(value_) * 0x0101010101010101u;
  }

 private:
  Memory from_;
  std::size_t length_, before_;
  int value_;
  bool is_huge_ = false;
  unsigned char *mapped_ = nullptr, *base_ = nullptr;
};

}  // namespace transparent
