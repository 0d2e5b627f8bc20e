#include "model/machine.hpp"

#include "model/fast/core.hpp"
#include "model/misses/core.hpp"
#include "model/stepped/core.hpp"

namespace bcisim {
namespace {

template <class Core>
class MachineOf final : public Machine {
 public:
  explicit MachineOf(const Configuration& configuration)
      : core_(configuration.parameters, configuration.replay.scheme),
        replay_(configuration.replay) {}

  void warm(const Checkpoint& checkpoint) override { core_.warm(checkpoint); }
  void play(const Chunk& chunk, const std::vector<StaticInstruction>& statics) override {
    replay_.play(chunk, statics, core_);
  }
  Result result() const override { return core_.result(); }
  Result finish() override {
    core_.finish();
    return core_.result();
  }

 private:
  Core core_;
  Replay replay_;
};

}  // namespace

std::unique_ptr<Machine> make_machine(Model model, const Configuration& configuration) {
  switch (model) {
    case Model::stepped: return std::make_unique<MachineOf<SteppedCore>>(configuration);
    case Model::misses: return std::make_unique<MachineOf<MissCore>>(configuration);
    case Model::fast: break;
  }
  return std::make_unique<MachineOf<FastCore>>(configuration);
}

}  // namespace bcisim
