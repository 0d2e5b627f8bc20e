// Progress of, and doorbells for, several endpoints.
#include "fabric/endpoint/waiting/progress_group.hpp"

#include <algorithm>

#include "fabric/endpoint/transfer/endpoint_state.hpp"
#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

void ProgressGroup::add(EndpointState& endpoint, WaitObject* wait) noexcept {
  if (std::find(members_.begin(), members_.end(), &endpoint) != members_.end()) return;
  members_.push_back(&endpoint);
  if (wait != nullptr && !wait->yields()) wait->watch(endpoint.doorbell());
  if (armed_ > 0) endpoint.arm();
}

void ProgressGroup::remove(EndpointState& endpoint, WaitObject* wait) noexcept {
  if (std::erase(members_, &endpoint) == 0) return;
  if (armed_ > 0) endpoint.disarm();
  if (wait != nullptr && !wait->yields()) wait->unwatch(endpoint.doorbell());
}

bool ProgressGroup::progress() noexcept {
  bool active = false;
  for (EndpointState* member : members_) active |= member->progress();
  return active;
}

void ProgressGroup::watch(WaitObject& wait) noexcept {
  for (EndpointState* member : members_) wait.watch(member->doorbell());
}

bool ProgressGroup::expects_bulk() noexcept {
  return std::any_of(members_.begin(), members_.end(),
                     [](EndpointState* member) { return member->expects_bulk(); });
}

unsigned ProgressGroup::node_processes() const noexcept {
  unsigned most = 1;
  for (const EndpointState* member : members_) most = std::max(most, member->node_processes());
  return most;
}

bool ProgressGroup::idle() const noexcept {
  return std::all_of(members_.begin(), members_.end(),
                     [](const EndpointState* member) { return member->idle(); });
}

std::uint64_t ProgressGroup::left_ns() const noexcept {
  std::uint64_t least = 0;
  for (const EndpointState* member : members_) {
    if (member->idle()) continue;
    const std::uint64_t left = member->left_ns();
    if (left == 0) return 0;
    least = least == 0 ? left : std::min(least, left);
  }
  return least;
}

void ProgressGroup::arm() noexcept {
  if (armed_++ > 0) return;
  for (EndpointState* member : members_) member->arm();
}

void ProgressGroup::disarm() noexcept {
  if (--armed_ > 0) return;
  for (EndpointState* member : members_) member->disarm();
}

}  // namespace haul::fabric
