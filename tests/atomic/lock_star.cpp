#include "tests/atomic/lock_star.hpp"

namespace atomic_test {
namespace {

constexpr char interface[] = "haul0";

}  // namespace

Star::Star(unsigned members, const FaultRates& rates) {
  std::vector<CableEnd> ends;
  for (unsigned i = 0; i <= members; ++i) {
    hosts_.push_back(std::make_unique<haul::bench::Namespace>());
    const std::string its = i < members ? address(i) : home_address();
    ends.push_back({*hosts_.back(), interface, its + "/24"});
  }
  cable_ = std::make_unique<BadCable>(ends, rates, false);
}

std::string Star::responder(const std::string& kind, const std::string& address) {
  return kind + ":" + (kind.rfind("xdp-", 0) == 0 ? interface : address);
}

BadCable::Counts Star::counts() const {
  BadCable::Counts sum{};
  for (unsigned way = 0; way < hosts_.size(); ++way) {
    const BadCable::Counts counts = cable_->counts(way);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
  }
  return sum;
}

}  // namespace atomic_test
