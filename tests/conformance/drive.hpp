// How the suite drives an engine: by the contract alone.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace haul::conformance {

// One implementation under test. `schedule` is for the engine fault.
struct Subject {
  const char* engine;
  const char* schedule = "";
};

// cpu, cma, fault with schedules under which every piece succeeds, dmadev, dsa and nic on no
// hardware, and uring.
const std::vector<Subject>& subjects();
// Those of them that check addresses, and those that reach peers.
std::vector<Subject> subjects_that_check(bool check);
std::vector<Subject> subjects_that_reach_peers();
std::string subject_name(const Subject& subject);

// The engine, alive and with its counters at the start; nullptr and `why` where this machine
// refuses it.
Engine* prepare(const Subject& subject, std::string& why);

// A piece whose memory is registered, where the engine wants that, for as long as the object lives.
class RegisteredSides {
 public:
  RegisteredSides(Engine& engine, const Piece& piece);
  ~RegisteredSides();
  RegisteredSides(const RegisteredSides&) = delete;
  RegisteredSides& operator=(const RegisteredSides&) = delete;
  const Piece& piece() const { return piece_; }

 private:
  void pin(std::uintptr_t address, std::uint64_t* region);

  Engine& engine_;
  Piece piece_;
};

// Submits and polls until the engine has told how the piece ended. A refusal by a dead engine is io
// with nothing moved. What a device refuses, a fill or sides that overlap, the CPU does.
Outcome run(Engine& engine, const Piece& piece);

// A seed of its own for each test, the same in every run; printed with SCOPED_TRACE by who uses it.
using Random = std::mt19937_64;
std::uint64_t between(Random& random, std::uint64_t lowest, std::uint64_t highest);
// Mostly small, sometimes up to highest: every power of two is as likely as the next.
std::size_t random_size(Random& random, std::size_t highest);
void scramble(Random& random, std::uint8_t* bytes, std::size_t count);

// The 8-byte pattern of a piece that begins `phase` bytes into its request.
std::uint64_t pattern_at(std::uint64_t pattern, unsigned pattern_bytes, std::size_t phase);

}  // namespace haul::conformance
