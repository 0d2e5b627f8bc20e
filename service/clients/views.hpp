// Which parts of the clients' arenas are mapped here, and which are given up for others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>

#include "base/os/descriptor.hpp"
#include "service/clients/undertaker.hpp"

namespace haul::service {

inline constexpr std::uint64_t page_bytes = 4096;

class Views;

// One client's arena as it lies here: addresses reserved for the whole, views mapped into them.
class ArenaViews {
 public:
  bool open() const { return file_.valid(); }
  std::uint64_t base() const { return base_; }  // in the client
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t mapped_bytes() const { return mapped_bytes_; }

 private:
  friend class Views;
  struct View {
    ArenaViews* arena;
    std::uint64_t number;
    std::uint64_t bytes;
    bool pinned;
  };
  using Order = std::list<View>;

  os::Descriptor file_;
  std::uint64_t base_ = 0, bytes_ = 0;
  std::byte* reserved_ = nullptr;
  std::unordered_map<std::uint64_t, Order::iterator> views_;
  std::uint64_t mapped_bytes_ = 0;
};

// All of them, in order of their last use. One thread. A view lies at one place for as long as it
// is mapped, and pages of it are faulted in as they are touched.
class Views {
 public:
  explicit Views(std::uint64_t budget_bytes);
  ~Views();
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  // Takes over the sealed memfd, which is at least `bytes` long; `base` and `bytes` are whole
  // pages. False if there are no addresses left (fd is closed).
  bool attach(ArenaViews& arena, int fd, std::uint64_t base, std::uint64_t bytes);
  // Nothing of the arena may be pinned.
  void detach(ArenaViews& arena);

  // Where byte `offset` (< bytes()) of the arena lies, mapped until unpin(); *length is shortened
  // to what lies behind it contiguously. nullptr: no memory or no addresses for it.
  std::byte* pin(ArenaViews& arena, std::uint64_t offset, std::size_t* length);
  void unpin();

  // Takes over a whole mapping, to undo it in the background.
  void bury(void* at, std::size_t bytes) { undertaker_.unmap(at, bytes); }

  std::uint64_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t mapped_bytes() const { return mapped_bytes_; }
  std::uint64_t maps() const { return maps_; }
  std::uint64_t evictions() const { return evictions_; }

 private:
  using View = ArenaViews::View;
  std::byte* pin_once(ArenaViews& arena, std::uint64_t offset, std::size_t* length);
  bool evict_oldest();

  static constexpr unsigned max_pinned = 4;
  struct Once {
    void* at;
    std::size_t bytes;
  };

  const std::uint64_t budget_bytes_;
  const std::uint64_t view_bytes_;
  ArenaViews::Order by_use_;  // the latest at the end
  View* pinned_[max_pinned] = {};
  unsigned pinned_count_ = 0;
  Once once_[max_pinned] = {};  // without a budget
  unsigned once_count_ = 0;
  std::uint64_t mapped_bytes_ = 0, maps_ = 0, evictions_ = 0;
  Undertaker undertaker_;
};

}  // namespace haul::service
