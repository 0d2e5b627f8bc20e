// A host responder's memory: the windows of its node, the sessions and results of its clients.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "atomic/responder/responder.hpp"
#include "atomic/wire/tables.h"
#include "atomic/wire/wire_packet.hpp"

namespace haul::atomics {

// serve() is called by one thread; windows come and go by others, which exclude it by a lock of
// theirs.
class Tables {
 public:
  // False: no memory.
  bool open(unsigned sessions) noexcept;

  void add_window(unsigned index, const window_entry& window, char* memory) noexcept;
  void remove_window(unsigned index) noexcept;

  // Serves one packet of `bytes` bytes; true: it is its answer now, sealed.
  bool serve(WirePacket* packet, std::size_t bytes, std::uint64_t source,
             std::uint32_t now_s) noexcept;

  std::uint64_t count_of(unsigned event) const noexcept {
    return events_[event].load(std::memory_order_relaxed);
  }

  // For wire/serve.h.
  void count_event(unsigned event) noexcept {
    events_[event].store(events_[event].load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  }
  window_entry* find_window(unsigned index) noexcept {
    return index < max_windows ? &windows_[index] : nullptr;
  }
  char* find_page(unsigned index, std::uint64_t offset) noexcept;
  session_entry* find_session(unsigned slot) noexcept {
    return slot < sessions_ ? &session_[slot] : nullptr;
  }
  result_entry* find_results(unsigned slot, unsigned sequence) noexcept {
    return slot < sessions_ ? &result_[slot * WIRE_RESULTS + sequence % WIRE_RESULTS] : nullptr;
  }
  unsigned sessions() const noexcept { return sessions_; }

 private:
  window_entry windows_[max_windows] = {};
  char* memory_[max_windows] = {};
  unsigned sessions_ = 0;
  std::unique_ptr<session_entry[]> session_;
  std::unique_ptr<result_entry[]> result_;
  std::atomic<std::uint64_t> events_[SERVE_EVENTS] = {};
};

// Executes operations on a window that is mapped here at `memory`, as a responder would.
void execute_here(const window_entry& window, char* memory, wire_operation* operations,
                  std::size_t count) noexcept;

}  // namespace haul::atomics
