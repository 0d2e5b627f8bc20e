#include "bench/transparent/small_calls.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "bench/kit/buffer.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "bench/transparent/preload.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t most_bytes = 4096;

// What a worker gives back.
struct SmallCallTime {
  double ns;
};

// Nanoseconds of one call in a worker with these variables.
double small_call_ns(std::size_t bytes, const tools::Environment& environment) {
  const SharedBlock block(sizeof(SmallCallTime));
  Child child = start_worker("small-calls", static_cast<unsigned>(bytes), block, environment);
  child.finish("a process that calls memcpy()");
  return block.as<SmallCallTime>().ns;
}

Row measure_small_calls(const SuiteRun& session, std::size_t bytes,
                        const tools::Environment& preloaded) {
  Samples without, with;
  const auto timed = [bytes](Samples& samples, const tools::Environment& environment) {
    return [&samples, environment, bytes](bool measured) {
      const double ns = small_call_ns(bytes, environment);
      if (measured) samples.push_back(ns);
    };
  };
  interleave(session.options.quick ? 5 : 15, {timed(without, {}), timed(with, preloaded)});
  constexpr double hundredths = 100;  // of a nanosecond: a call takes few
  const auto rounded = [](double ns) { return std::round(ns * hundredths) / hundredths; };
  Row row = {{"dst", "in cache"},
             {"size_bytes", bytes},
             {"memcpy_ns", rounded(median(without))},
             {"preload_ns", rounded(median(with))}};
  put_ratio(row, "preload_ratio", ratio_of(with, without));
  row["repetitions"] = with.size();
  return row;
}

}  // namespace

void work_as_small_caller(unsigned bytes, int block_fd) {
  const SharedBlock block(block_fd, sizeof(SmallCallTime));
  if (bytes > most_bytes) throw tools::CommandFailure("only `haul bench` can start a worker");
  using Copy = void*(void* dst, const void* src, std::size_t length);
  // Through a pointer that the compiler knows nothing about, as another file's call.
  Copy* volatile unknown = std::memcpy;
  Copy* const copy = unknown;
  // Source and destination never alias modulo 4 KiB.
  constexpr std::size_t shift_bytes = 2112;
  alignas(4096) static std::byte from[most_bytes], room[shift_bytes + most_bytes];
  std::byte* const to = room + shift_bytes;
  constexpr std::uint64_t seed = 1;
  write_content(from, bytes, seed);
  constexpr unsigned calls = 20'000, batches = 61;
  Samples batch_ns;
  for (unsigned batch = 0; batch < batches; ++batch) {
    batch_ns.push_back(timed_ns([&] {
      for (unsigned i = 0; i < calls; ++i) copy(to, from, bytes);
    }));
  }
  check_content(to, bytes, seed);
  block.as<SmallCallTime>().ns = median(batch_ns) / calls;
}

void race_small_calls(SuiteRun& session, std::vector<Row>& rows) {
  try {
    const tools::Environment preloaded = transparent_environment("");
    for (const std::size_t bytes : {std::size_t{64}, most_bytes})
      add_placed(session, rows, measure_small_calls(session, bytes, preloaded));
  } catch (const tools::CommandFailure& failure) {
    session.options.note(fmt::format("small calls left out: {}", failure.what()));
  }
}

}  // namespace haul::bench
