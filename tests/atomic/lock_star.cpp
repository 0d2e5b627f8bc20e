#include "tests/atomic/lock_star.hpp"

namespace atomic_test {

Star::Star(unsigned members, const FaultRates& rates) {
  const FaultRates half{rates.drop / 2, rates.duplicate / 2, rates.reorder / 2};
  switch_.ip("link add switch type bridge");
  switch_.ip("link set switch up");
  for (unsigned i = 0; i < members; ++i) add(address(i), half);
  add(home_address(), half);
}

void Star::add(const std::string& address, const FaultRates& rates) {
  const std::string port = "port" + std::to_string(hosts_.size());
  hosts_.push_back(std::make_unique<haul::bench::Namespace>());
  const std::string unused = "10.0.2." + std::to_string(hosts_.size()) + "/32";
  cables_.push_back(
      std::make_unique<BadCable>(CableEnd{*hosts_.back(), interface(), address + "/24"},
                                 CableEnd{switch_, port, unused}, rates, false));
  switch_.ip("link set " + port + " master switch");
}

BadCable::Counts Star::counts() const {
  BadCable::Counts sum{};
  for (const auto& cable : cables_) {
    for (const unsigned way : {0u, 1u}) {
      const BadCable::Counts counts = cable->counts(way);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i];
    }
  }
  return sum;
}

}  // namespace atomic_test
