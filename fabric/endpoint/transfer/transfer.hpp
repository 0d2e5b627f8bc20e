// What all calls that transfer have in common.
#pragma once

#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/transfer/endpoint.hpp"

namespace haul::fabric {

// Flags that belong to capabilities which are not offered.
inline constexpr std::uint64_t refused_flags = FI_TRIGGER | FI_MULTICAST | FI_COMMIT_COMPLETE;

inline std::size_t total_bytes(const iovec* pieces, std::size_t count) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

inline iovec piece_of(const void* buffer, std::size_t bytes) noexcept {
  return {const_cast<void*>(buffer), bytes};
}

// 0 or -FI_E*: whether the endpoint has these capabilities, and a request may have these flags and
// this many pieces, and may be injected.
inline ssize_t check_request(const EndpointState& state, std::uint64_t caps, std::uint64_t flags,
                             const iovec* pieces, std::size_t count) noexcept {
  if (const int refusal = state.allows(caps); refusal != 0) return refusal;
  if ((flags & refused_flags) != 0) return -FI_EOPNOTSUPP;
  if (count > max_pieces || (pieces == nullptr && count > 0)) return -FI_EINVAL;
  if ((flags & FI_INJECT) != 0 && total_bytes(pieces, count) > state.inject_size())
    return -FI_EMSGSIZE;
  return 0;
}

// Hands a request to the matcher, and once more after progress if it had no room. Callers that get
// -FI_EAGAIN usually try again at once, so the backoff makes them give their core away in time, as
// it does for callers that poll.
template <class Post>
ssize_t submit(EndpointState& state, Post post) noexcept {
  {
    Guard guard(state.domain().lock);
    ssize_t done = post();
    if (done != -FI_EAGAIN) [[likely]] {
      state.posted();
      return done;
    }
    if (state.progress()) done = post();
    if (done != -FI_EAGAIN) {
      state.posted();
      state.backoff().reset();
      return done;
    }
  }
  if (state.backoff().exhausted()) state.backoff().give_way();
  return -FI_EAGAIN;
}

// The same for a request to a peer: post(peer).
template <class Post>
ssize_t submit_to(EndpointState& state, fi_addr_t name, Post post) noexcept {
  return submit(state, [&]() noexcept -> ssize_t {
    Peer* peer = state.peer(name);
    return peer != nullptr ? post(*peer) : -FI_EINVAL;
  });
}

}  // namespace haul::fabric
