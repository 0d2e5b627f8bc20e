// An asynchronous engine around the cpu engine that delays, cuts short, fails and dies as its
// schedule says.
#include "engine/fault/fault.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "engine/fault/schedule.hpp"
#include "engine/registry.hpp"

namespace haul {
namespace {

// A piece that was accepted. It moves a share of its bytes at each poll, so that what is good of it
// grows as on a device.
struct Slot {
  bool ready = false;
  Piece piece;
  std::uint64_t tag = 0;
  fault::Fate fate;
  std::size_t goal_bytes = 0;    // how much will be moved in all
  std::size_t good_bytes = 0;    // how much has been
  std::uint32_t polls_left = 0;  // 0: its turn, once due_ns has come
  std::uint64_t due_ns = 0;
};

class FaultEngine final : public Engine {
 public:
  const EngineFacts& facts() const noexcept override {
    static constexpr EngineFacts facts{
        .name = "fault", .synchronous = false, .device = false, .checked = false};
    return facts;
  }

  EngineStatus status() const noexcept override {
    prepare();
    // Relaxed: for people to read.
    if (dead_.load(std::memory_order_relaxed)) {
      return EngineStatus{
          .available = false,
          .sentence =
              "dead, as its schedule asked; restart the program or change HAUL_ENGINE_FAULT"};
    }
    if (unusable_) {
      return EngineStatus{.available = true,
                          .sentence =
                              "ready, but passes everything through: its schedule is invalid; "
                              "correct HAUL_ENGINE_FAULT"};
    }
    if (schedule_.empty()) {
      return EngineStatus{.available = true,
                          .sentence =
                              "ready, and passes everything through; set HAUL_ENGINE_FAULT to see "
                              "it fail"};
    }
    return EngineStatus{.available = true, .sentence = "ready to fail as HAUL_ENGINE_FAULT says"};
  }

  const char* spaces_text() const noexcept override { return "this process"; }

  bool reaches(Operation operation, Space dst, Space src) const noexcept override {
    return cpu_engine().reaches(operation, dst, src);
  }

  Submitted submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept override {
    prepare();
    if (piece.checked || !reaches(piece.operation, piece.dst_space, piece.src_space)) {
      outcome = Outcome{.good_bytes = 0, .code = Code::not_supported};
      return Submitted::finished;
    }
    if (dead_.load(std::memory_order_relaxed)) return Submitted::dead;
    if (held_ == fault_slots) return Submitted::full;
    Slot& slot = slots_[held_++];
    slot = Slot{};
    slot.piece = piece;
    slot.tag = tag;
    slot.fate = fault::fate_of(schedule_, ++pieces_);
    slot.goal_bytes = share(piece.length, slot.fate.good_percent, 100);
    slot.polls_left = slot.fate.delay_polls + 1;
    if (slot.fate.delay_us != 0) slot.due_ns = now_ns() + slot.fate.delay_us * 1000ull;
    return Submitted::accepted;
  }

  std::size_t poll(unsigned, Finished* finished, std::size_t max) noexcept override {
    prepare();
    if (!dead_.load(std::memory_order_relaxed)) advance_all();
    std::size_t count = 0;
    while (count < max) {
      const std::size_t index = next_to_report();
      if (index == held_) break;
      Slot& slot = slots_[index];
      if (std::exchange(slot.fate.strays, false)) {
        finished[count++] = Finished{~slot.tag, Outcome{}};
        continue;
      }
      const Code code = slot.ready ? slot.fate.code : Code::io;
      const std::size_t excess = slot.fate.exceeds ? 1 : 0;
      finished[count++] = Finished{slot.tag, Outcome{slot.good_bytes + excess, code}};
      --held_;
      for (std::size_t later = index; later < held_; ++later) slots_[later] = slots_[later + 1];
    }
    return count;
  }

  bool stop(unsigned) noexcept override {
    dead_.store(true, std::memory_order_relaxed);
    held_ = 0;
    return true;
  }

  void forget() noexcept override { held_ = 0; }

  void configure(const char* text) noexcept {
    held_ = 0;
    pieces_ = 0;
    read(text != nullptr ? text : knob_text(Knob::engine_fault));
    // Release: pairs with the acquire in prepare().
    prepared_.store(ready, std::memory_order_release);
  }

 private:
  enum Prepared : std::uint8_t { raw, being_read, ready };

  static std::size_t share(std::size_t bytes, std::uint64_t numerator,
                           std::uint64_t denominator) noexcept {
    return static_cast<std::size_t>(static_cast<unsigned __int128>(bytes) * numerator /
                                    denominator);
  }

  // Reads the knob on first use. Any thread may call this; the rest of the engine belongs to the
  // mover that drives it.
  void prepare() const noexcept {
    if (prepared_.load(std::memory_order_acquire) == ready) return;
    std::uint8_t seen = raw;
    if (prepared_.compare_exchange_strong(seen, being_read, std::memory_order_acquire)) {
      const_cast<FaultEngine*>(this)->configure(nullptr);
    } else {
      while (prepared_.load(std::memory_order_acquire) != ready) cpu_relax();
    }
  }

  void read(const char* text) noexcept {
    Expected<fault::Schedule> schedule = fault::parse_schedule(text);
    unusable_ = !schedule;
    schedule_ = fault::Schedule{};
    if (schedule) {
      schedule_ = *schedule;
    } else {
      log(LogLevel::warning,
          "HAUL_ENGINE_FAULT is invalid, so the engine fault passes everything through: %s",
          schedule.error().sentence);
    }
    random_ = schedule_.seed;
    dead_.store(false, std::memory_order_relaxed);
  }

  void advance_all() noexcept {
    for (std::size_t index = 0; index < held_; ++index) {
      Slot& slot = slots_[index];
      if (slot.ready) continue;
      advance(slot);
      if (slot.ready && slot.fate.dies) {
        slot.ready = false;  // it ends as the others do, with its good bytes
        dead_.store(true, std::memory_order_relaxed);
        return;
      }
    }
  }

  // The first slot whose piece has finished; with a seed, the first one from a random slot on.
  // held_ if there is none.
  std::size_t next_to_report() noexcept {
    const std::size_t from =
        schedule_.seeded && held_ != 0 ? fault::next_random(random_) % held_ : 0;
    const bool dead = dead_.load(std::memory_order_relaxed);
    for (std::size_t step = 0; step < held_; ++step) {
      const std::size_t index = (from + step) % held_;
      if (dead || slots_[index].ready) return index;
    }
    return held_;
  }

  static void advance(Slot& slot) noexcept {
    if (slot.polls_left != 0) --slot.polls_left;
    const std::uint64_t shares = slot.fate.delay_polls + std::uint64_t{1};
    slot.ready =
        !slot.fate.stalls && slot.polls_left == 0 && (slot.due_ns == 0 || now_ns() >= slot.due_ns);
    if (slot.ready) {
      move_to(slot, slot.goal_bytes);
    } else if (slot.piece.operation != Operation::copy ||
               !overlaps(slot.piece.dst, slot.piece.src, slot.piece.length)) {
      // Overlapping ranges move at once, at the end. Others stop at whole lines before the last
      // share.
      const std::uint64_t last = slot.polls_left != 0 ? slot.polls_left : 1;
      if (shares > last) {
        move_to(slot, share(slot.goal_bytes, shares - last, shares) & ~std::size_t{63});
      }
    }
  }

  static void move_to(Slot& slot, std::size_t bytes) noexcept {
    if (bytes <= slot.good_bytes) return;
    Piece part = slot.piece;
    part.dst += slot.good_bytes;
    part.src += slot.good_bytes;
    part.length = bytes - slot.good_bytes;
    part.whole_bytes = slot.piece.whole_bytes != 0 ? slot.piece.whole_bytes : slot.piece.length;
    part.watermark.first_bytes += slot.good_bytes;
    Outcome outcome;
    cpu_engine().submit(part, 0, outcome);
    slot.good_bytes += outcome.good_bytes;
  }

  Slot slots_[fault_slots];  // the first held_, in the order of their acceptance
  std::size_t held_ = 0;
  fault::Schedule schedule_;
  std::uint64_t pieces_ = 0;
  std::uint64_t random_ = 0;
  bool unusable_ = false;
  std::atomic<bool> dead_{false};
  mutable std::atomic<std::uint8_t> prepared_{raw};
};

constinit FaultEngine engine;

}  // namespace

Engine& fault_engine() noexcept {
  return engine;
}

void configure_fault(const char* schedule) noexcept {
  engine.configure(schedule);
}

}  // namespace haul
