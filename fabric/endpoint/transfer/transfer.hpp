// What the transferring calls have in common.
#pragma once

#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/transfer/endpoint.hpp"

namespace haul::fabric {

// Flags of requests that belong to capabilities that are not offered.
inline constexpr std::uint64_t refused_flags = FI_TRIGGER | FI_MULTICAST | FI_COMMIT_COMPLETE;

inline std::size_t total_bytes(const iovec* pieces, std::size_t count) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

// 0 or -FI_E*: whether a request may have these flags and this many pieces, and may be injected.
inline ssize_t check_request(const EndpointState& state, std::uint64_t flags, const iovec* pieces,
                             std::size_t count) noexcept {
  if ((flags & refused_flags) != 0) return -FI_EOPNOTSUPP;
  if (count > max_pieces || (pieces == nullptr && count > 0)) return -FI_EINVAL;
  if ((flags & FI_INJECT) != 0 && total_bytes(pieces, count) > state.inject_size())
    return -FI_EMSGSIZE;
  return 0;
}

// Hands a request to the matcher, again after progress if it has no room. Callers that get
// -FI_EAGAIN come again and again: they give their core away in time, as callers that poll do.
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

inline ssize_t submit_send(EndpointState& state, fi_addr_t name,
                           const SendRequest& request) noexcept {
  const int refusal = state.allows(FI_SEND | (request.tagged ? FI_TAGGED : FI_MSG));
  if (refusal != 0) return refusal;
  const ssize_t error = check_request(state, request.flags, request.pieces, request.count);
  if (error != 0) return error;
  return submit_to(state, name, [&](Peer& peer) { return state.matcher().send(peer, request); });
}

inline ssize_t submit_receive(EndpointState& state, fi_addr_t name,
                              const ReceiveRequest& request) noexcept {
  const int refusal = state.allows(FI_RECV | (request.tagged ? FI_TAGGED : FI_MSG));
  if (refusal != 0) return refusal;
  // Nothing of FI_INJECT: it is for what is sent.
  const ssize_t error =
      check_request(state, request.flags & ~FI_INJECT, request.pieces, request.count);
  if (error != 0) return error;
  return submit(state, [&]() noexcept -> ssize_t {
    Peer* source = nullptr;
    if (!state.source(name, &source)) return -FI_EINVAL;
    return state.matcher().receive(source, request);
  });
}

}  // namespace haul::fabric
