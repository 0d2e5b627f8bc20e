#include "atomic/responder/tables.hpp"

#include <new>

struct responder {
  haul::atomics::Tables* tables;  // nullptr: executes on `memory` alone
  char* memory;
};

#include "atomic/wire/serve.h"

SERVE_INLINE void count_event(struct responder* self, __u32 event) {
  if (self->tables != nullptr) self->tables->count_event(event);
}
SERVE_INLINE struct window_entry* find_window(struct responder* self, __u32 window) {
  return self->tables->find_window(window);
}
SERVE_INLINE char* find_page(struct responder* self, __u32 window, __u64 offset) {
  if (self->tables != nullptr) return self->tables->find_page(window, offset);
  return self->memory + (offset & ~__u64{4095});
}
SERVE_INLINE struct session_entry* find_session(struct responder* self, __u32 slot) {
  return self->tables->find_session(slot);
}
SERVE_INLINE struct result_entry* find_results(struct responder* self, __u32 slot, __u32 sequence) {
  return self->tables->find_results(slot, sequence);
}
SERVE_INLINE __u32 session_slots(struct responder* self) {
  return self->tables->sessions();
}

namespace haul::atomics {

bool Tables::open(unsigned sessions) noexcept {
  session_.reset(new (std::nothrow) session_entry[sessions]{});
  result_.reset(new (std::nothrow) result_entry[std::size_t{sessions} * WIRE_RESULTS]{});
  if (!session_ || !result_) return false;
  sessions_ = sessions;
  return true;
}

void Tables::add_window(unsigned index, const window_entry& window, char* memory) noexcept {
  memory_[index] = memory;
  windows_[index] = window;
}

void Tables::remove_window(unsigned index) noexcept {
  windows_[index] = window_entry{};
  memory_[index] = nullptr;
}

char* Tables::find_page(unsigned index, std::uint64_t offset) noexcept {
  if (index >= max_windows || memory_[index] == nullptr) return nullptr;
  return memory_[index] + (offset & ~std::uint64_t{4095});
}

bool Tables::serve(WirePacket* packet, std::size_t bytes, std::uint64_t source,
                   std::uint32_t now_s) noexcept {
  responder self{this, nullptr};
  if (::serve(&self, &packet->header, static_cast<__u32>(bytes),
              reinterpret_cast<const char*>(packet) + bytes, source, now_s) == SERVE_DROP) {
    return false;
  }
  seal(packet);
  return true;
}

void execute_here(const window_entry& window, char* memory, wire_operation* operations,
                  std::size_t count) noexcept {
  responder self{nullptr, memory};
  bool skip = false;
  for (std::size_t i = 0; i < count; ++i) {
    wire_operation& op = operations[i];
    op.result = WIRE_SKIPPED;
    if (skip) continue;
    op.result = execute(&self, &window, 0, &op);
    skip = is_broken_link(&op);
  }
}

}  // namespace haul::atomics
