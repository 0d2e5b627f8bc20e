// The words of a lock wherever they lie: in a window that is mapped here, or behind a connection
// that is made when it is first needed and again when it is lost.
#pragma once

#include <haul/atomic.h>

#include <cstdint>
#include <memory>

#include "atomic/client/client.hpp"
#include "atomic/lock/member.hpp"
#include "atomic/window/window.hpp"

namespace haul::atomics::lock {

class Places final : public Reach {
 public:
  // Copies what it needs. `own` is the member's window. False: no memory.
  bool open(Client& client, Window& own, const haul_lock_options& options) noexcept;
  ~Places();

  void send(int place, const haul_atomic_operation* operations, unsigned count) noexcept override;
  bool answered(haul_atomic_operation* operations, unsigned count, Code* code) noexcept override;

 private:
  struct Place {
    haul_window_name name{};
    std::uint64_t offset = 0;
    Connection* connection = nullptr;  // nullptr: of this window, or not made
  };
  Place& place_of(int place) noexcept { return places_[static_cast<std::size_t>(place + 1)]; }
  bool is_own(const Place& place) const noexcept;
  void drop(Place& place) noexcept;
  bool end(Code result, Code* code) noexcept;

  Client* client_ = nullptr;
  Window* own_ = nullptr;
  std::unique_ptr<Place[]> places_;  // home, then the members by rank
  unsigned count_ = 0;
  std::uint64_t neighbour_patience_ns_ = 0;

  // The packet that is out.
  enum class Stage : std::uint8_t { none, done_here, connecting, submitted };
  Stage stage_ = Stage::none;
  int to_ = home;
  haul_atomic_operation packet_[HAUL_ATOMIC_MAX_BATCH];
  unsigned packet_count_ = 0;
  Code failure_ = Code::ok;
  std::uint64_t ticket_ = 0, begun_ns_ = 0;
};

}  // namespace haul::atomics::lock
