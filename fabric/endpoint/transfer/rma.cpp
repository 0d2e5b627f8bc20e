// Remote memory access (fi_rma).
#include "fabric/endpoint/transfer/transfer.hpp"

namespace haul::fabric {

namespace {

ssize_t submit_rma(fid_ep* endpoint, fi_addr_t name, const RmaRequest& request) noexcept {
  EndpointState& state = Endpoint::of(endpoint).state();
  const int refusal = state.allows(FI_RMA | (request.is_write ? FI_WRITE : FI_READ));
  if (refusal != 0) return refusal;
  const ssize_t error = check_request(state, request.flags, request.pieces, request.count);
  if (error != 0) return error;
  return submit_to(state, name, [&](Peer& peer) { return state.matcher().rma(peer, request); });
}

// To or from one range of the peer's.
ssize_t access_range(fid_ep* endpoint, bool is_write, const iovec* pieces, std::size_t count,
                     fi_addr_t name, std::uint64_t address, std::uint64_t key, std::uint64_t data,
                     std::uint64_t flags, void* context) noexcept {
  if (pieces == nullptr && count > 0) return -FI_EINVAL;
  const fi_rma_iov target = {address, total_bytes(pieces, count), key};
  RmaRequest request;
  request.is_write = is_write;
  request.pieces = pieces;
  request.count = count;
  request.targets = &target;
  request.target_count = 1;
  request.data = data;
  request.flags = flags;
  request.context = context;
  return submit_rma(endpoint, name, request);
}

ssize_t access_ranges(fid_ep* endpoint, bool is_write, const fi_msg_rma* message,
                      std::uint64_t flags) noexcept {
  if (message->rma_iov_count > max_pieces || message->iov_count > max_pieces) return -FI_EINVAL;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < message->rma_iov_count; ++i) bytes += message->rma_iov[i].len;
  if (bytes != total_bytes(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  RmaRequest request;
  request.is_write = is_write;
  request.pieces = message->msg_iov;
  request.count = message->iov_count;
  request.targets = message->rma_iov;
  request.target_count = message->rma_iov_count;
  request.data = message->data;
  request.flags = flags;
  request.context = message->context;
  return submit_rma(endpoint, message->addr, request);
}

// What is read into cannot be given back before the read is done.
constexpr std::uint64_t without_inject(std::uint64_t flags) noexcept {
  return flags & ~FI_INJECT;
}

ssize_t read(fid_ep* endpoint, void* buffer, std::size_t bytes, void*, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) noexcept {
  const iovec piece = {buffer, bytes};
  return access_range(endpoint, false, &piece, 1, from, address, key, 0,
                      without_inject(Endpoint::of(endpoint).send_flags()), context);
}

ssize_t read_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                    fi_addr_t from, std::uint64_t address, std::uint64_t key,
                    void* context) noexcept {
  return access_range(endpoint, false, pieces, count, from, address, key, 0,
                      without_inject(Endpoint::of(endpoint).send_flags()), context);
}

ssize_t read_message(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  return access_ranges(endpoint, false, message,
                       without_inject(Endpoint::of(endpoint).send_flags(flags)));
}

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return access_range(endpoint, true, &piece, 1, to, address, key, 0,
                      Endpoint::of(endpoint).send_flags(), context);
}

ssize_t write_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, void* context) noexcept {
  return access_range(endpoint, true, pieces, count, to, address, key, 0,
                      Endpoint::of(endpoint).send_flags(), context);
}

ssize_t write_message(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  return access_ranges(endpoint, true, message, Endpoint::of(endpoint).send_flags(flags));
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t bytes, fi_addr_t to,
               std::uint64_t address, std::uint64_t key) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return access_range(endpoint, true, &piece, 1, to, address, key, 0, FI_INJECT, nullptr);
}

ssize_t write_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*,
                   std::uint64_t data, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                   void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return access_range(endpoint, true, &piece, 1, to, address, key, data,
                      Endpoint::of(endpoint).send_flags() | FI_REMOTE_CQ_DATA, context);
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, std::uint64_t data,
                    fi_addr_t to, std::uint64_t address, std::uint64_t key) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return access_range(endpoint, true, &piece, 1, to, address, key, data,
                      FI_INJECT | FI_REMOTE_CQ_DATA, nullptr);
}

}  // namespace

fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = read_vector,
    .readmsg = read_message,
    .write = write,
    .writev = write_vector,
    .writemsg = write_message,
    .inject = inject,
    .writedata = write_data,
    .injectdata = inject_data,
};

}  // namespace haul::fabric
