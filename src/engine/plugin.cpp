#include "engine/plugin.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/os/os.hpp"
#include "base/os/plugin.hpp"
#include "base/thread/own_threads.hpp"
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

const DeviceTable* PluginEngine::try_to_open() noexcept {
  const DeviceTable* const table = find_table();
  if (table == nullptr) return nullptr;
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
                    "not opened; HAUL_PLAN_ENGINE=%s opens it, if it is there", facts().name);
      break;
    case Stage::opening:
      std::snprintf(status.sentence, sizeof status.sentence, "being opened; ask again");
      break;
    case Stage::ready:
      status.available = true;
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
      break;
    case Stage::refused: std::memcpy(status.sentence, why_, sizeof status.sentence); break;
    case Stage::dead:
      std::snprintf(status.sentence, sizeof status.sentence,
                    "dead, or the parent's; restart the program");
      break;
  }
  return status;
}

bool PluginEngine::reaches(Operation operation, Space dst, Space src) const noexcept {
  if (operation == Operation::fill) return dst == self_space && available() && table_->fills;
  return dst == self_space && src == self_space;
}

Submitted PluginEngine::submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) noexcept {
  if (!available()) return Submitted::dead;
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
  const Submitted answer = table_->submit(piece, tag, outcome);
  if (answer == Submitted::dead) stage_.store(Stage::dead);
  return answer;
}

std::size_t PluginEngine::poll(unsigned channel, Finished* finished, std::size_t most) noexcept {
  return table_ != nullptr ? table_->poll(channel, finished, most) : 0;
}

bool PluginEngine::stop(unsigned channel) noexcept {
  stage_.store(Stage::dead);
  return table_ == nullptr || table_->stop(channel);
}

Code PluginEngine::pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept {
  return registers() ? table_->pin(address, bytes, region) : Code::not_supported;
}

void PluginEngine::unpin(std::uint64_t region) noexcept {
  if (registers()) table_->unpin(region);
}

void PluginEngine::forget() noexcept {
  if (stage_.exchange(Stage::dead) == Stage::closed) stage_.store(Stage::closed);
}

}  // namespace haul
