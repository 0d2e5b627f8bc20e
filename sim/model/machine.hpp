// A core of one of the models with the scheme that it runs under: something that plays a trace.
#pragma once

#include <memory>

#include "model/replay.hpp"
#include "model/result.hpp"

namespace bcisim {

struct Configuration {
  Parameters parameters;
  ReplayOptions replay;
  bool operator==(const Configuration&) const = default;
};

class Machine {
 public:
  virtual ~Machine() = default;
  // Before the first chunk.
  virtual void warm(const Checkpoint& checkpoint) = 0;
  virtual void play(const Chunk& chunk, const std::vector<StaticInstruction>& statics) = 0;
  // Of what has been played.
  virtual Result result() const = 0;
  // After the last.
  virtual Result finish() = 0;
};

enum class Model { fast, stepped, misses };

// The parameters are right (why_wrong()).
std::unique_ptr<Machine> make_machine(Model model, const Configuration& configuration);

}  // namespace bcisim
