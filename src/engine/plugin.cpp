#include "engine/plugin.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "base/os/os.hpp"
#include "base/os/plugin.hpp"
#include "base/thread/own_threads.hpp"
#include "engine/registry.hpp"
#include "engine/spaces.hpp"
#include "engine/try_out.hpp"

namespace haul {
namespace {

constexpr char here = 0;  // in this library
constinit std::atomic<void (*)() noexcept> device_opened{nullptr};

struct ChannelsText {
  char text[24] = {};
};
ChannelsText channels_text(unsigned channels) noexcept {
  ChannelsText result;
  if (channels > 1) std::snprintf(result.text, sizeof result.text, ", %u channels", channels);
  return result;
}

void add_remark(const DeviceTable* table, EngineStatus& status) noexcept {
  if (table == nullptr || table->remark == nullptr) return;
  const std::size_t said = std::strlen(status.sentence);
  table->remark(status.sentence + said, sizeof status.sentence - said);
}

}  // namespace

void on_device_opened(void (*function)() noexcept) noexcept {
  device_opened.store(function, std::memory_order_relaxed);
}

const DeviceTable* PluginEngine::find_table() noexcept {
  void* const plugin = os::open_plugin(file_, &here);
  if (plugin == nullptr) {
    std::snprintf(why_, sizeof why_, "%s cannot be loaded; %s", file_, remedy_);
    return nullptr;
  }
  auto* const function = reinterpret_cast<OpenDevice*>(dlsym(plugin, "haul_open_device"));
  const DeviceTable* const table =
      function != nullptr ? function(knob_text(devices_), why_, sizeof why_) : nullptr;
  if (function == nullptr || (table != nullptr && table->size != sizeof(DeviceTable))) {
    std::snprintf(why_, sizeof why_,
                  "%s is not of this version of haul; install both libraries together", file_);
    return nullptr;
  }
  return table;
}

// What comes of an opened device's first copies. (Devices with memory of their own are opened and
// tried by the plug-in, and no part of what they register is worth it by itself.)
const DeviceTable* PluginEngine::try_to_open() noexcept {
  const DeviceTable* const table = find_table();
  if (table == nullptr) return nullptr;
  if (memory_ == Memory::apart) {
    device_facts_.emulated = table->emulated;
    least_bytes_ = table->least_pin_bytes;
    return table;
  }
  const TryOut tried = try_out(*table);
  if (tried.refusal != nullptr) {
    std::snprintf(why_, sizeof why_, "the device %s is not used: %s", table->name, tried.refusal);
    return nullptr;
  }
  device_facts_ = tried.facts;
  // A piece of its own costs a start, and hides the registering of what comes after it.
  constexpr double page_bytes = 4096;
  const plan::DeviceFacts& facts = tried.facts;
  const double moved_bytes = facts.startup_ns * facts.bytes_per_ns;
  const double pinned_bytes =
      facts.pin_page_ns > 0 ? facts.startup_ns / facts.pin_page_ns * page_bytes : 0;
  least_bytes_ = std::max(table->least_pin_bytes,
                          static_cast<std::size_t>(std::max(moved_bytes, pinned_bytes)));
  return table;
}

void* PluginEngine::open(void* engine) noexcept {
  os::name_thread("haul-open");
  auto& self = *static_cast<PluginEngine*>(engine);
  self.table_ = self.try_to_open();
  Stage opening = Stage::opening;  // (or dead: this is a child's copy of the variable)
  self.stage_.compare_exchange_strong(
      opening, self.table_ != nullptr ? Stage::ready : Stage::refused, std::memory_order_release);
  auto* const opened = device_opened.load(std::memory_order_relaxed);
  if (self.available() && opened != nullptr) opened();
  if (!os::end_process_elsewhere()) os::detach_self();
  return nullptr;
}

bool PluginEngine::pays_once(std::size_t bytes) const noexcept {
  if (table_ == nullptr || table_->pays_once == nullptr) return false;
  const auto movers = static_cast<unsigned>(knob_number(Knob::mover_cores));
  return table_->pays_once(bytes, std::max(movers, 1u));
}

bool PluginEngine::wanted() const noexcept {
  return *knob_text(devices_) != '\0';
}

unsigned PluginEngine::channels() const noexcept {
  const Stage stage = stage_.load(std::memory_order_acquire);
  const bool opened = stage == Stage::ready || stage == Stage::dead;
  return opened && table_ != nullptr ? table_->channels : 1;
}

void PluginEngine::begin_to_open() noexcept {
  Stage closed = Stage::closed;
  // (Looked at first: each submit that wants the engine while it is not there comes here.)
  if (stage_.load(std::memory_order_relaxed) != closed) return;
  if (!stage_.compare_exchange_strong(closed, Stage::opening)) return;
  pthread_t thread;
  if (os::start_thread(&thread, open, this) != 0) stage_.store(Stage::closed);
}

EngineStatus PluginEngine::status() const noexcept {
  EngineStatus status;
  switch (stage_.load(std::memory_order_acquire)) {
    case Stage::closed:
      std::snprintf(status.sentence, sizeof status.sentence,
                    memory_ == Memory::apart
                        ? "not opened; haul_space_open_device() opens %s, if it is there"
                        : "not opened; HAUL_PLAN_ENGINE=%s opens it, if it is there",
                    facts().name);
      break;
    case Stage::opening:
      std::snprintf(status.sentence, sizeof status.sentence, "being opened; ask again");
      break;
    case Stage::ready:
      status.available = true;
      if (table_->describe != nullptr) {
        constexpr char ready[] = "ready: ";
        std::memcpy(status.sentence, ready, sizeof ready);
        table_->describe(status.sentence + sizeof ready - 1,
                         sizeof status.sentence - (sizeof ready - 1));
        break;
      }
      std::snprintf(status.sentence, sizeof status.sentence,
                    "ready: %s%s%s; %.1f us for a short copy, %.1f bytes/ns", table_->name,
                    channels_text(table_->channels).text,
                    table_->emulated ? ", which is no hardware" : "",
                    device_facts_.startup_ns / 1000, device_facts_.bytes_per_ns);
      if (registers()) {
        const std::size_t said = std::strlen(status.sentence);
        std::snprintf(status.sentence + said, sizeof status.sentence - said,
                      ", %.2f us to register a page", device_facts_.pin_page_ns / 1000);
      }
      add_remark(table_, status);
      break;
    case Stage::refused: std::memcpy(status.sentence, why_, sizeof status.sentence); break;
    case Stage::dead:
      if (table_ != nullptr && table_->describe != nullptr) {
        table_->describe(status.sentence, sizeof status.sentence);
        break;
      }
      std::snprintf(status.sentence, sizeof status.sentence, "dead; restart the program");
      add_remark(table_, status);
      break;
    case Stage::inherited:
      std::snprintf(status.sentence, sizeof status.sentence,
                    "the parent's, since a device does not survive a fork; copy in the parent, or "
                    "exec a program");
      break;
  }
  return status;
}

bool PluginEngine::is_mine(Space space) const noexcept {
  const DeviceMemory memory = device_memory(space);
  return memory && &engine_at(memory.engine) == this;
}

bool PluginEngine::reaches(Operation operation, Space dst, Space src) const noexcept {
  if (memory_ == Memory::apart) {
    if (operation != Operation::copy) return false;
    return is_mine(dst) ? src == self_space || is_mine(src) : dst == self_space && is_mine(src);
  }
  if (operation == Operation::fill) return dst == self_space && available() && table_->fills;
  return dst == self_space && src == self_space;
}

namespace {

// What open_memory() has a thread of haul's do, with signals blocked, since a driver makes threads.
struct Opening {
  const DeviceTable* table;
  const char* which;
  Code code = Code::ok;
  std::uint64_t region = 0;
  char why[Error::sentence_bytes] = {};

  static void* run(void* opening) noexcept {
    auto& self = *static_cast<Opening*>(opening);
    os::name_thread("haul-open");
    self.code = self.table->open_memory(self.which, &self.region, self.why, sizeof self.why);
    return nullptr;
  }
};

}  // namespace

Expected<std::uint64_t> PluginEngine::open_memory(const char* which) noexcept {
  if (!has_memory()) return Engine::open_memory(which);
  if (!available()) {
    return make_error(Code::not_supported, 0, "The engine %s is not available: %s", facts().name,
                      status().sentence);
  }
  Opening opening{table_, which};
  pthread_t thread;
  const int refused = -os::start_thread(&thread, Opening::run, &opening);
  if (refused != 0) {
    return make_error(Code::no_memory, refused, "No thread can be made to open %s (%s).",
                      facts().name, describe_errno(refused));
  }
  os::join_thread(thread);
  if (opening.code != Code::ok) return make_error(opening.code, 0, "%s", opening.why);
  return opening.region;
}

// Says once why, since requests fail that the CPU cannot take over.
void PluginEngine::die() noexcept {
  if (stage_.exchange(Stage::dead) == Stage::dead || memory_ != Memory::apart) return;
  log(LogLevel::warning, "The engine %s is dead: %s", facts().name, status().sentence);
}

Submitted PluginEngine::submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept {
  if (!available()) return Submitted::dead;
  if (has_memory() && (!space_open(piece.dst_space) || !space_open(piece.src_space))) {
    outcome = Outcome{0, Code::closed};
    return Submitted::finished;
  }
  const bool one_direction =
      piece.operation == Operation::copy && overlaps(piece.dst, piece.src, piece.length);
  if (piece.checked || one_direction ||
      !reaches(piece.operation, piece.dst_space, piece.src_space)) {
    outcome = Outcome{0, Code::not_supported};
    return Submitted::finished;
  }
  if (piece.length == 0) {
    outcome = Outcome{};
    return Submitted::finished;
  }
  Piece named = piece;
  if (piece.dst_space != self_space) named.dst_region = device_memory(piece.dst_space).region;
  if (piece.src_space != self_space) named.src_region = device_memory(piece.src_space).region;
  const Submitted answer = table_->submit(named, tag, outcome);
  if (answer == Submitted::dead || (answer == Submitted::finished && has_died(outcome))) die();
  return answer;
}

std::size_t PluginEngine::poll(unsigned channel, Finished* finished, std::size_t most) noexcept {
  if (table_ == nullptr) return 0;
  const std::size_t count = table_->poll(channel, finished, most);
  if (count != 0 && has_died(finished[count - 1].outcome)) die();
  return count;
}

// A device that has died says so by what it had, or is given then; nothing may come after that.
bool PluginEngine::has_died(const Outcome& outcome) const noexcept {
  return outcome.code == Code::io && table_->is_dead != nullptr && table_->is_dead();
}

bool PluginEngine::stop(unsigned channel) noexcept {
  const bool stopped = table_ == nullptr || table_->stop(channel);
  stage_.store(Stage::dead);
  return stopped;
}

Code PluginEngine::pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept {
  return registers() ? table_->pin(address, bytes, region) : Code::not_supported;
}

void PluginEngine::unpin(std::uint64_t region) noexcept {
  if (registers()) table_->unpin(region);
}

void PluginEngine::forget() noexcept {
  if (stage_.exchange(Stage::inherited) == Stage::closed) stage_.store(Stage::closed);
}

}  // namespace haul
