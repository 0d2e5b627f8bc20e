// What an endpoint and its aliases share: the matcher, the network, and where completions go.
#pragma once

#include <rdma/fabric.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/endpoint/waiting/poll_backoff.hpp"
#include "fabric/protocol/matcher.hpp"
#include "fabric/transport/network.hpp"

namespace haul::fabric {

class AddressVector;
class FabricCompletionQueue;
class Counter;
class Domain;
class EventQueue;

// The inject_size of programs that ask for none. Programs whose own limits are below inject_size
// are known to inject more than their receivers post, so it is the value that they find elsewhere;
// and an injected message that cannot leave at once has to be copied first, so it is no longer than
// what goes unasked.
inline constexpr std::size_t usual_inject_bytes = 4096;
inline std::size_t usual_inject_size() noexcept {
  return std::min(message_limits().near.eager_bytes, usual_inject_bytes);
}

// Everything is called under the domain's data lock, unless its comment says otherwise.
class EndpointState final : public Sink, public Regions {
 public:
  // 0 or -FI_E*. The endpoint is disabled.
  static int open(Domain& domain, const fi_info& info,
                  std::unique_ptr<EndpointState>& state) noexcept;
  // Says good-bye to peers: waits up to two seconds for what they must still be told.
  ~EndpointState() override;

  Domain& domain() const noexcept { return domain_; }
  const Address& name() const noexcept { return network_->address(); }
  Matcher& matcher() noexcept { return *matcher_; }
  std::uint64_t caps() const noexcept { return caps_; }
  std::size_t queue_size() const noexcept { return queue_size_; }
  std::size_t inject_size() const noexcept { return inject_size_; }

  // ---- before it is enabled ----
  int bind(AddressVector& vector) noexcept;
  int bind(EventQueue& events) noexcept;  // also later
  int bind(FabricCompletionQueue& queue, std::uint64_t flags) noexcept;
  int bind(Counter& counter, std::uint64_t flags) noexcept;
  int enable() noexcept;
  // FI_COMPLETION where it is implied: completions are not selective.
  std::uint64_t send_completion() const noexcept { return selective_send_ ? 0 : FI_COMPLETION; }
  std::uint64_t receive_completion() const noexcept {
    return selective_receive_ ? 0 : FI_COMPLETION;
  }

  // ---- transfers ----
  // Whether it is enabled and has all of these capabilities: 0 or -FI_E*.
  int allows(std::uint64_t caps) const noexcept {
    return (active_caps_ & caps) == caps ? 0 : refusal();
  }
  // nullptr: the name is none of the address vector's.
  Peer* peer(fi_addr_t name) noexcept {
    keep_up();
    return name < known_.size() ? known_[name].peer : nullptr;
  }
  // *source: nullptr for any. False: no such name. A message that is there already may complete the
  // receive at once, and names its sender as the address vector does now.
  bool source(fi_addr_t name, Peer** source) noexcept {
    keep_up();
    *source = nullptr;
    if ((caps_ & FI_DIRECTED_RECV) == 0 || name == FI_ADDR_UNSPEC) return true;
    *source = peer(name);
    return *source != nullptr;
  }
  bool progress() noexcept {
    ++turns_;
    keep_up();
    return matcher_->progress();
  }
  bool idle() const noexcept { return matcher_->idle(); }
  std::uint64_t left_ns() const noexcept { return matcher_->left_ns(); }
  bool expects_bulk() noexcept { return matcher_->expects_bulk(); }
  // A request was handed to the matcher: the domain's thread, if there is one, may have to go on.
  void posted() noexcept {
    if (automatic_) [[unlikely]]
      tell_progress_thread();
    if (bulk_requests_ != nullptr && *bulk_requests_ != seen_bulk_requests_) [[unlikely]]
      tell_overlap_thread();
  }
  // Processes of this node that it knows of, this one among them.
  unsigned node_processes() const noexcept;
  PollBackoff& backoff() noexcept { return backoff_; }

  // ---- sleeping ----
  int doorbell() noexcept { return network_->doorbell(); }
  void arm() noexcept;
  void disarm() noexcept;

  // ---- Sink, Regions ----
  void complete(const CompletionNotice& completion) noexcept override;
  bool room(Event event) noexcept override;
  void* resolve(std::uint64_t key, std::uint64_t address, std::uint64_t bytes, std::uint64_t access,
                int* error) noexcept override;

 private:
  static constexpr std::size_t event_count = 6;  // of Event
  struct Known {
    Peer* peer = nullptr;
    std::uint32_t version = 0;
  };

  EndpointState(Domain& domain, const fi_info& info,
                std::unique_ptr<EndpointNetwork> network) noexcept;
  int refusal() const noexcept;
  std::uint32_t generation() const noexcept;
  void keep_up() noexcept {
    if (seen_generation_ != generation()) look_up();
  }
  void look_up() noexcept;
  void flush() noexcept;
  void tell_progress_thread() noexcept;
  void tell_overlap_thread() noexcept;
  FabricCompletionQueue* queue_of(Event event) const noexcept;
  void fail(FabricCompletionQueue& queue, const CompletionNotice& completion, int error) noexcept;

  Domain& domain_;
  std::uint64_t& turns_;  // the domain's
  const bool automatic_;
  const std::uint64_t caps_;
  const std::size_t queue_size_;
  const std::size_t inject_size_;
  std::uint64_t active_caps_ = 0;  // caps_, once it is enabled
  AddressVector* vector_ = nullptr;
  FabricCompletionQueue* send_queue_ = nullptr;
  FabricCompletionQueue* receive_queue_ = nullptr;
  Counter* counters_[event_count] = {};  // by Event
  bool selective_send_ = false, selective_receive_ = false;
  EventQueue* events_ = nullptr;
  unsigned armed_ = 0;
  std::uint32_t seen_generation_ = 0;
  std::vector<Known> known_;                      // by fi_addr_t
  const std::uint64_t* bulk_requests_ = nullptr;  // the matcher's; nullptr: nobody asks
  std::uint64_t seen_bulk_requests_ = 0;
  PollBackoff backoff_;
  std::unique_ptr<EndpointNetwork> network_;
  std::unique_ptr<Matcher> matcher_;
};

}  // namespace haul::fabric
