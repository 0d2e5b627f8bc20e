// Engines that need a foreign library: the code that uses it is a plug-in, libhaul-NAME.so, and
// libhaul holds an engine of that name that opens it and forwards.
//
// A plug-in is opened late, once a process, by a thread of its own (begin_to_open()), since foreign
// libraries take long to start, make threads, and change where their first thread may run. Until it
// is ready the planner does without the engine. It is never closed: such libraries are not made for
// that. A child of fork has the plug-in's memory and none of its threads or devices, so there the
// engine is dead.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/knobs.hpp"
#include "engine/engine.hpp"

namespace haul {

// What a plug-in offers, for good. It is installed together with libhaul, of the same version:
// `size` says whether it is.
struct DeviceTable {
  std::uint32_t size = sizeof(DeviceTable);
  bool fills = false;  // copies only, else
  // It is no hardware: threads that stand for a device, for tests.
  bool emulated = false;
  unsigned channels = 1;
  std::size_t most_bytes = SIZE_MAX;  // of a piece
  // Of a piece: a shorter one the plug-in's CPU copies.
  std::size_t least_moved_bytes = 0;
  char name[64] = {};  // of the device, for people
  // As an asynchronous engine's (engine.hpp). A piece is within this process and not checked.
  Submitted (*submit)(const Piece& piece, std::uint64_t tag, Outcome& outcome) = nullptr;
  std::size_t (*poll)(unsigned channel, Finished* finished, std::size_t most) = nullptr;
  bool (*stop)(unsigned channel) = nullptr;
  // As an engine's that registers() memory; nullptr: it need not be registered.
  Code (*pin)(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) = nullptr;
  void (*unpin)(std::uint64_t region) = nullptr;
  bool pins_sources = true;         // else destinations alone
  std::size_t least_pin_bytes = 0;  // see Registrar::least_bytes()
  bool pins_by_choice = false;      // see Engine::registers_by_choice(), Registrar::unpins_late()
  // As Registrar::pays_once(), if so many threads copy what is not registered; nullptr: never.
  bool (*pays_once)(std::size_t bytes, unsigned threads) = nullptr;
  // As an engine's whose devices have memory of their own. Such a table is no device yet: each one
  // is opened, tried and measured by open_memory(), which any thread calls, one at a time. A piece
  // then has at least one side there, with its region. ok and *region, or why not.
  Code (*open_memory)(const char* which, std::uint64_t* region, char* sentence,
                      std::size_t sentence_bytes) = nullptr;
  bool (*take_staging)(StagingCopy* copy) = nullptr;
  // Do none of the devices that were opened work any more? Then the engine is dead.
  bool (*is_dead)() = nullptr;
  // What the devices are now, for people, or why they do not work any more; nullptr: what `name`
  // and the first copies say. Calls nothing of the foreign library.
  void (*describe)(char* text, std::size_t text_bytes) = nullptr;
  // What is added to the sentence that `name` and the first copies make, or that it is dead; may
  // say nothing. As describe().
  void (*remark)(char* text, std::size_t text_bytes) = nullptr;
};

// The plug-in's one function, haul_open_device(): opens the device that the arguments name (of the
// engine's knob). Blocks for up to seconds. nullptr, and why not and the remedy, if there is none.
using OpenDevice = const DeviceTable*(const char* arguments, char* sentence,
                                      std::size_t sentence_bytes);

// Has this called, on the thread that opened it, whenever an engine has become available.
void on_device_opened(void (*function)() noexcept) noexcept;

class PluginEngine : public Engine {
 public:
  EngineStatus status() const noexcept override;
  bool available() const noexcept override {
    return stage_.load(std::memory_order_acquire) == Stage::ready;
  }
  const char* spaces_text() const noexcept override {
    return memory_ == Memory::apart ? "this process and its devices' memory" : "this process";
  }
  bool reaches(Operation operation, Space dst, Space src) const noexcept override;
  unsigned channels() const noexcept override;
  bool has_memory() const noexcept override { return memory_ == Memory::apart; }
  Expected<std::uint64_t> open_memory(const char* which) noexcept override;
  bool take_staging(StagingCopy* copy) noexcept override {
    return table_ != nullptr && table_->take_staging != nullptr && table_->take_staging(copy);
  }
  std::size_t most_bytes() const noexcept override {
    return table_ != nullptr ? table_->most_bytes : SIZE_MAX;
  }
  plan::DeviceFacts device_facts() const noexcept override { return device_facts_; }
  bool wanted() const noexcept override;
  void begin_to_open() noexcept override;
  Submitted submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept override;
  std::size_t poll(unsigned channel, Finished* finished, std::size_t most) noexcept override;
  bool stop(unsigned channel) noexcept override;
  bool registers() const noexcept override { return table_ != nullptr && table_->pin != nullptr; }
  bool registers_sources() const noexcept override {
    return table_ != nullptr && table_->pins_sources;
  }
  bool registers_by_choice() const noexcept override {
    return table_ != nullptr && table_->pins_by_choice;
  }
  std::size_t least_bytes() const noexcept override { return least_bytes_; }
  bool pays_once(std::size_t bytes) const noexcept override;
  bool unpins_late() const noexcept override { return registers_by_choice(); }
  Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept override;
  void unpin(std::uint64_t region) noexcept override;
  void forget() noexcept override;

 protected:
  // What its devices move: this process's memory; or their own, which lies apart from it
  // (DeviceTable::open_memory).
  enum class Memory : std::uint8_t { processes, apart };

  // `file`: the plug-in; `remedy`: what to install where it is not there; `devices`: what the
  // plug-in's function is given.
  constexpr PluginEngine(const char* file, const char* remedy, Knob devices,
                         Memory memory = Memory::processes) noexcept
      : file_(file), remedy_(remedy), devices_(devices), memory_(memory) {}
  ~PluginEngine() = default;

  // Opens the plug-in and its device; nullptr and `why_` if there is none. On a thread of its own.
  virtual const DeviceTable* find_table() noexcept;

  char why_[sizeof EngineStatus::sentence] = {};

 private:
  // inherited: this is a child of fork, and what was opened is the parent's.
  enum class Stage : std::uint8_t { closed, opening, ready, refused, dead, inherited };

  static void* open(void* engine) noexcept;
  const DeviceTable* try_to_open() noexcept;
  void die() noexcept;
  bool has_died(const Outcome& outcome) const noexcept;
  bool is_mine(Space space) const noexcept;

  const char* file_;
  const char* remedy_;
  Knob devices_;
  Memory memory_;
  std::atomic<Stage> stage_{Stage::closed};
  // All are written before `stage_` (release) is ready or refused.
  const DeviceTable* table_ = nullptr;
  plan::DeviceFacts device_facts_;
  std::size_t least_bytes_ = 0;
};

// An engine that is nothing but its plug-in.
class DevicePlugin final : public PluginEngine {
 public:
  using PluginEngine::Memory;

  constexpr DevicePlugin(const char* name, const char* file, const char* remedy, Knob devices,
                         Memory memory = Memory::processes) noexcept
      : PluginEngine(file, remedy, devices, memory),
        facts_{.name = name, .synchronous = false, .device = true, .checked = false} {}

  const EngineFacts& facts() const noexcept override { return facts_; }

 private:
  EngineFacts facts_;
};

}  // namespace haul
