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
  char name[64] = {};                 // of the device, for people
  // As an asynchronous engine's (engine.hpp). A piece is within this process and not checked.
  Submitted (*submit)(const Piece& piece, std::uint64_t tag, Outcome& outcome) = nullptr;
  std::size_t (*poll)(unsigned channel, Finished* finished, std::size_t most) = nullptr;
  bool (*stop)(unsigned channel) = nullptr;
  // As an engine's that registers() memory; nullptr: it need not be registered.
  Code (*pin)(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) = nullptr;
  void (*unpin)(std::uint64_t region) = nullptr;
  bool pins_sources = true;         // else destinations alone
  std::size_t least_pin_bytes = 0;  // see Registrar::least_bytes()
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
  const char* spaces_text() const noexcept override { return "this process"; }
  bool reaches(Operation operation, Space dst, Space src) const noexcept override;
  unsigned channels() const noexcept override;
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
  std::size_t least_bytes() const noexcept override { return least_bytes_; }
  Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept override;
  void unpin(std::uint64_t region) noexcept override;
  void forget() noexcept override;

 protected:
  // `file`: the plug-in; `remedy`: what to install where it is not there; `devices`: what the
  // plug-in's function is given.
  constexpr PluginEngine(const char* file, const char* remedy, Knob devices) noexcept
      : file_(file), remedy_(remedy), devices_(devices) {}
  ~PluginEngine() = default;

  // Opens the plug-in and its device; nullptr and `why_` if there is none. On a thread of its own.
  virtual const DeviceTable* find_table() noexcept;

  char why_[sizeof EngineStatus::sentence] = {};

 private:
  enum class Stage : std::uint8_t { closed, opening, ready, refused, dead };

  static void* open(void* engine) noexcept;
  const DeviceTable* try_to_open() noexcept;

  const char* file_;
  const char* remedy_;
  Knob devices_;
  std::atomic<Stage> stage_{Stage::closed};
  // All are written before `stage_` (release) is ready or refused.
  const DeviceTable* table_ = nullptr;
  plan::DeviceFacts device_facts_;
  std::size_t least_bytes_ = 0;
};

// An engine that is nothing but its plug-in.
class DevicePlugin final : public PluginEngine {
 public:
  constexpr DevicePlugin(const char* name, const char* file, const char* remedy,
                         Knob devices) noexcept
      : PluginEngine(file, remedy, devices),
        facts_{.name = name, .synchronous = false, .device = true, .checked = false} {}

  const EngineFacts& facts() const noexcept override { return facts_; }

 private:
  EngineFacts facts_;
};

}  // namespace haul
