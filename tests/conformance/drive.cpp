#include "conformance/drive.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "conformance/gpu.hpp"
#include "device/dsa_model.hpp"
#include "engine/fault/fault.hpp"
#include "engine/registry.hpp"

namespace haul::conformance {
namespace {

// Before any knob is read, since all are read at once.
const int device_is_named = setenv("HAUL_ENGINE_DMADEV", "dma_skeleton0", 1);

// A device that meets page faults and ends late and in any order, which costs no byte. (Never
// destroyed, as its engine is.)
haul_model::DsaModel& dsa_model() {
  static auto& model = *new haul_model::DsaModel(
      haul_model::DsaPath::portal,
      {.seed = 5, .most_transfer = 1 << 18, .held = 2, .faults_at_new_pages = true, .p_fault = 10});
  return model;
}
const int model_is_named = setenv("HAUL_ENGINE_DSA", dsa_model().knob().c_str(), 1);
const int gpu_is_named = setenv("HAUL_ENGINE_CUDA", gpu_knob().c_str(), 1);

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {{"cpu"},
                                           {"cma"},
                                           {"fault"},
                                           {"fault", "delay=3"},
                                           {"fault", "seed=7,delay=5"},
                                           {"dmadev"},
                                           {"dsa"},
                                           {"nic"},
                                           {"uring"},
                                           {"cuda"}};
  return all;
}

std::vector<Subject> subjects_that_check(bool check) {
  std::vector<Subject> some;
  for (const Subject& subject : subjects()) {
    if (engine_by_name(subject.engine)->facts().checked == check) some.push_back(subject);
  }
  return some;
}

std::vector<Subject> subjects_that_reach_peers() {
  constexpr Space some_peer = 1;
  std::vector<Subject> some;
  for (const Subject& subject : subjects()) {
    if (engine_by_name(subject.engine)->reaches(Operation::copy, some_peer, self_space)) {
      some.push_back(subject);
    }
  }
  return some;
}

std::string subject_name(const Subject& subject) {
  std::string name = subject.engine;
  for (const char* at = subject.schedule; *at != '\0'; ++at) {
    if (at == subject.schedule) name += '_';
    name += *at == '=' || *at == ',' ? '_' : *at;
  }
  return name;
}

// A thread that stands for a device, or the looped ports, if `haul nic setup` has made some. (A
// plug-in opens in the background, once.)
static void open_plugin(Engine& engine) {
  engine.begin_to_open();
  const auto opens = [&engine] {
    return std::strstr(engine.status().sentence, "being opened") != nullptr;
  };
  for (int turn = 0; turn < 10'000 && opens(); ++turn) usleep(1000);
}

Engine* prepare(const Subject& subject, std::string& why) {
  Engine* engine = engine_by_name(subject.engine);
  if (engine == nullptr) {
    why = "no such engine in this build";
    return nullptr;
  }
  if (engine == &fault_engine()) configure_fault(subject.schedule);
  if (engine == &dsa_engine()) {
    static const bool started = (dsa_model().start(), true);
    if (!started) return nullptr;
  }
  if (engine == &dmadev_engine() || engine == &dsa_engine() || engine == &nic_engine() ||
      engine == &uring_engine())
    open_plugin(*engine);
  if (engine == &dsa_engine()) dsa_model().misbehave();
  if (engine->has_memory() && !open_gpu(why)) return nullptr;
  const EngineStatus status = engine->status();
  if (!status.available) {
    why = status.sentence;
    return nullptr;
  }
  return engine;
}

RegisteredSides::RegisteredSides(Engine& engine, const Piece& piece)
    : engine_(engine), piece_(piece) {
  // (Where that is a choice, every other piece is.)
  static unsigned pieces = 0;
  if (!engine.registers() || piece.length == 0 ||
      (engine.registers_by_choice() && ++pieces % 2 == 0))
    return;
  if (piece.dst_space == self_space) pin(piece.dst, &piece_.dst_region);
  if (piece.operation == Operation::copy && piece.src_space == self_space &&
      engine.registers_sources())
    pin(piece.src, &piece_.src_region);
}

RegisteredSides::~RegisteredSides() {
  if (!engine_.registers()) return;
  for (const std::uint64_t region : {piece_.dst_region, piece_.src_region})
    if (region != 0) engine_.unpin(region);
}

void RegisteredSides::pin(std::uintptr_t address, std::uint64_t* region) {
  constexpr std::uintptr_t page = 4096;
  const std::uintptr_t begin = address & ~(page - 1);
  const std::uintptr_t end = (address + piece_.length + page - 1) & ~(page - 1);
  const Code code = engine_.pin(begin, end - begin, region);
  // (A neighbour that is under way may have a page of it.)
  if (code == Code::no_memory && engine_.registers_by_choice()) return;
  EXPECT_EQ(code, Code::ok);
}

// To the GPU, unseen, and from there to where the piece goes.
static Outcome run_by_gpu(Engine& engine, const Piece& piece) {
  const std::vector<std::uint8_t> nothing(piece.length);
  const GpuTwin gpu(nothing.data(), piece.length);
  Piece there = piece, back = piece;
  there.dst = back.src = gpu.address();
  there.dst_space = back.src_space = gpu.space();
  there.watermark = {};
  const Outcome outcome = run(engine, there);
  EXPECT_EQ(outcome.code, Code::ok);
  EXPECT_EQ(outcome.good_bytes, piece.length);
  return run(engine, back);
}

Outcome run(Engine& engine, const Piece& piece) {
  constexpr std::uint64_t tag = 0x1234;
  const bool within_process = piece.dst_space == self_space && piece.src_space == self_space;
  if (engine.has_memory() && within_process && piece.operation == Operation::copy &&
      !piece.checked && !overlaps(piece.dst, piece.src, piece.length))
    return run_by_gpu(engine, piece);
  Outcome outcome;
  const bool fills = piece.operation == Operation::fill;
  const bool may_refuse = (engine.facts().device || engine.registers()) &&
                          (fills ? !engine.reaches(Operation::fill, self_space, self_space)
                                 : overlaps(piece.dst, piece.src, piece.length));
  if (may_refuse) {
    EXPECT_EQ(engine.submit(piece, tag, outcome), Submitted::finished);
    EXPECT_EQ(outcome.code, Code::not_supported);
    EXPECT_EQ(outcome.good_bytes, 0u);
    return run(cpu_engine(), piece);
  }
  const RegisteredSides sides(engine, piece);
  const Submitted answer = engine.submit(sides.piece(), tag, outcome);
  if (answer == Submitted::finished) return outcome;
  if (answer == Submitted::dead) return Outcome{0, Code::io};
  EXPECT_EQ(answer, Submitted::accepted) << "an idle engine is not full";
  EXPECT_FALSE(engine.facts().synchronous) << "a synchronous engine finishes in submit()";
  Finished finished[4];
  for (int polls = 0; polls < 100'000'000; ++polls) {
    stage(engine);
    const std::size_t count = engine.poll(0, finished, 4);
    if (count == 0) continue;
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(finished[0].tag, tag);
    return finished[0].outcome;
  }
  ADD_FAILURE() << "the engine never finished the piece";
  return Outcome{0, Code::timed_out};
}

std::uint64_t between(Random& random, std::uint64_t lowest, std::uint64_t highest) {
  return std::uniform_int_distribution<std::uint64_t>(lowest, highest)(random);
}

std::size_t random_size(Random& random, std::size_t highest) {
  const auto bits = static_cast<std::uint64_t>(std::bit_width(highest));
  const std::size_t size = random() & ((std::uint64_t{1} << between(random, 0, bits)) - 1);
  return size <= highest ? size : highest;
}

void scramble(Random& random, std::uint8_t* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count; done += 8) {
    const std::uint64_t word = random();
    std::memcpy(bytes + done, &word, count - done < 8 ? count - done : 8);
  }
}

std::uint64_t pattern_at(std::uint64_t pattern, unsigned pattern_bytes, std::size_t phase) {
  std::uint64_t result = 0;
  for (unsigned byte = 0; byte < 8; ++byte) {
    const std::uint64_t value = pattern >> (phase + byte) % pattern_bytes * 8 & 0xff;
    result |= value << byte * 8;
  }
  return result;
}

}  // namespace haul::conformance
