// The words of a lock wherever they lie: in a window that is mapped here, or behind a connection
// that is made when it is first needed, and again when it is lost or was given up for another's.
// With a directory the home says where a member is (directory.hpp).
#pragma once

#include <haul/atomic.h>

#include <cstdint>
#include <memory>

#include "atomic/client/carrier.hpp"
#include "atomic/lock/member.hpp"
#include "atomic/window/window.hpp"

namespace haul::atomics::lock {

// Whether [place, place + bytes) is aligned, and within its window.
bool is_usable(const haul_atomic_lock_place& place, std::uint64_t bytes) noexcept;

class Places final : public Courier {
 public:
  // Copies what it needs. `own` is the member's window. False: no memory.
  bool open(Carrier& carrier, Window& own, const haul_atomic_lock_options& options) noexcept;
  ~Places();
  // With a directory: this member is `rank`, its words are at this offset of its own window.
  void settle(unsigned rank, std::uint64_t own_offset) noexcept;

  void send(int place, const haul_atomic_operation* operations, unsigned count) noexcept override;
  bool answered(haul_atomic_operation* operations, unsigned count, Code* code) noexcept override;
  bool has_left() const noexcept override { return stage_ >= Stage::submitted; }
  void give_up() noexcept override;
  bool doubt(int place) noexcept override;
  std::uint64_t clock_ns() const noexcept override;
  // Sends, and waits for the answer.
  Code run(int place, haul_atomic_operation* operations, unsigned count) noexcept;

  // Whether a member's window answers. Waits for a quarter of a lease at most.
  bool is_there(unsigned rank) noexcept;

  // How the latest packet to the home failed, with cause and remedy; code ok: it did not.
  const Error& home_failure() const noexcept { return home_failure_; }

 private:
  struct Place {
    haul_atomic_lock_place at{};
    bool known = false;
    RemoteConnection* connection = nullptr;  // nullptr: not made, or of our own window
    std::uint64_t used = 0;                  // by which packet last
  };
  Place& place_of(int place) noexcept { return places_[static_cast<unsigned>(place + 1)]; }
  bool is_own(const Place& place) const noexcept;
  void disconnect(Place& place) noexcept;
  void drop(Place& place) noexcept;

  void begin(Place& place) noexcept;
  void connect(Place& place) noexcept;
  bool drop_one_for(const Place& place) noexcept;
  bool submit(Place& place) noexcept;
  void look_up(int place) noexcept;
  void heard_look_up() noexcept;
  bool end(Code result, Code* code) noexcept;
  void fail(const Error& error) noexcept;
  Error explain(Code code, const haul_atomic_window_name& home_window) const noexcept;

  Carrier* carrier_ = nullptr;
  Window* own_ = nullptr;
  std::unique_ptr<Place[]> places_;  // home, then the members by rank
  unsigned count_ = 0;
  bool has_directory_ = false;
  int own_rank_ = home;  // of which the place needs no looking up; home: not known yet
  std::uint64_t neighbour_patience_ns_ = 0;

  // The packet that is out; its addresses are offsets until it is submitted.
  enum class Stage : std::uint8_t { none, looking_up, connecting, failed, submitted, done };
  Stage stage_ = Stage::none;
  int to_ = home;
  haul_atomic_operation packet_[HAUL_ATOMIC_MAX_BATCH];
  unsigned packet_count_ = 0;
  haul_atomic_operation entry_[HAUL_ATOMIC_MAX_BATCH];  // being looked up
  Code failure_ = Code::ok;
  Error home_failure_;
  std::uint64_t ticket_ = 0, begun_ns_ = 0, packets_ = 0;
};

}  // namespace haul::atomics::lock
