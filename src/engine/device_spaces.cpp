#include "engine/device_spaces.hpp"

#include <cstdio>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "engine/registry.hpp"
#include "engine/spaces.hpp"

namespace haul {
namespace {

constexpr std::uint64_t patience_ns = 60'000'000'000, look_ns = 200'000;

// (A status is "being opened" until it is ready or refused.)
bool await_open(Engine& engine) noexcept {
  engine.begin_to_open();
  const std::uint64_t deadline = now_ns() + patience_ns;
  while (!engine.available() && std::strstr(engine.status().sentence, "being opened") != nullptr) {
    if (now_ns() >= deadline) return false;
    os::sleep_ns(look_ns);
  }
  return engine.available();
}

}  // namespace

Expected<Space> open_device_space(const char* device) noexcept {
  char name[16];
  const char* const colon = std::strchr(device, ':');
  const std::size_t length =
      colon != nullptr ? static_cast<std::size_t>(colon - device) : std::strlen(device);
  std::snprintf(name, sizeof name, "%.*s", static_cast<int>(length < 15 ? length : 15), device);
  Engine* const engine = engine_by_name(name);
  if (engine == nullptr || length >= sizeof name || !engine->has_memory()) {
    return make_error(Code::invalid, 0,
                      "\"%.40s\" names no engine whose device has memory; say cuda, or cuda:1 for "
                      "the second GPU.",
                      device);
  }
  if (!await_open(*engine)) {
    return make_error(Code::not_supported, 0, "The engine %s is not available: %s", name,
                      engine->status().sentence);
  }
  const Expected<std::uint64_t> region = engine->open_memory(colon != nullptr ? colon + 1 : "");
  if (!region) return region.error();
  std::uint8_t index = 0;
  while (&engine_at(index) != engine) ++index;
  return open_memory_space({index, *region});
}

}  // namespace haul
