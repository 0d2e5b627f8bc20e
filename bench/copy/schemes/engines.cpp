#include "bench/copy/schemes/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/os/os.hpp"
#include "bench/kit/buffer.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr int opening_patience_ms = 3000;
constexpr std::uint64_t look_again_ns = 1'000'000;

std::vector<haul_engine_info> engines_now() {
  std::vector<haul_engine_info> engines;
  for (unsigned i = 0;; ++i) {
    haul_engine_info engine{};
    engine.size = sizeof engine;
    if (haul_engine(i, &engine) != 0) return engines;
    engines.push_back(engine);
  }
}

bool says(const haul_engine_info& engine, std::string_view words) {
  return std::string_view(engine.status).find(words) != std::string_view::npos;
}

haul_engine_info engine_now(const std::string& name) {
  for (const haul_engine_info& engine : engines_now())
    if (name == engine.name) return engine;
  throw tools::CommandFailure(fmt::format("there is no engine {}; haul info lists them", name));
}

}  // namespace

std::vector<haul_engine_info> settled_engines() {
  std::vector<haul_engine_info> engines;
  const auto opens = [](const haul_engine_info& engine) { return says(engine, "being opened"); };
  for (int waited_ms = 0; waited_ms < opening_patience_ms; ++waited_ms) {
    engines = engines_now();
    if (std::none_of(engines.begin(), engines.end(), opens)) break;
    os::sleep_ns(look_again_ns);
  }
  return engines;
}

bool is_device(const haul_engine_info& engine) {
  return engine.available != 0 && says(engine, "for a short copy");
}

bool is_hardware(const haul_engine_info& engine) {
  return !says(engine, "which is no hardware");
}

bool registers_memory(const haul_engine_info& engine) {
  return says(engine, "to register a page");
}

haul_engine_info open_engine(const std::string& name) {
  constexpr std::size_t bytes = std::size_t{64} << 10;
  const Buffer from(bytes);
  Buffer to(bytes);
  haul_engine_info engine = engine_now(name);
  for (int waited_ms = 0; engine.available == 0; ++waited_ms) {
    if (waited_ms == opening_patience_ms || (waited_ms > 0 && !says(engine, "opened")))
      throw tools::CommandFailure(fmt::format("engine {}: {}", name, engine.status));
    const haul_request request = haul_request_copy(to.data(), from.data(), bytes);
    haul_ticket ticket{};
    tools::require(haul_submit(&request, 1, &ticket), "haul_submit()");
    tools::require(haul_wait(ticket), "haul_wait()");
    os::sleep_ns(look_again_ns);
    engine = engine_now(name);
  }
  return engine;
}

}  // namespace haul::bench
