// Remote memory access (fi_rma).
#include "fabric/endpoint/transfer/transfer.hpp"

namespace haul::fabric {

namespace {

ssize_t submit_rma(fid_ep* endpoint, fi_addr_t name, const RmaRequest& request) noexcept {
  EndpointState& state = Endpoint::of(endpoint).state();
  const ssize_t error = check_request(state, FI_RMA | (request.is_write ? FI_WRITE : FI_READ),
                                      request.flags, request.pieces, request.count);
  if (error != 0) return error;
  return submit_to(state, name, [&](Peer& peer) { return state.matcher().rma(peer, request); });
}

// To or from one range of the peer's memory.
ssize_t access_range(fid_ep* endpoint, fi_addr_t name, std::uint64_t address, std::uint64_t key,
                     RmaRequest&& request) noexcept {
  if (request.pieces == nullptr && request.count > 0) return -FI_EINVAL;
  const fi_rma_iov target = {address, total_bytes(request.pieces, request.count), key};
  request.targets = &target;
  request.target_count = 1;
  return submit_rma(endpoint, name, request);
}

ssize_t access_ranges(fid_ep* endpoint, bool is_write, const fi_msg_rma* message,
                      std::uint64_t flags) noexcept {
  if (message->rma_iov_count > max_pieces || message->iov_count > max_pieces) return -FI_EINVAL;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < message->rma_iov_count; ++i) bytes += message->rma_iov[i].len;
  if (bytes != total_bytes(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  const RmaRequest request{.is_write = is_write,
                           .pieces = message->msg_iov,
                           .count = message->iov_count,
                           .targets = message->rma_iov,
                           .target_count = message->rma_iov_count,
                           .data = message->data,
                           .flags = flags,
                           .context = message->context};
  return submit_rma(endpoint, message->addr, request);
}

// A read cannot be injected: its buffer is in use until the bytes have come.
constexpr std::uint64_t without_inject(std::uint64_t flags) noexcept {
  return flags & ~FI_INJECT;
}

ssize_t read_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                    fi_addr_t from, std::uint64_t address, std::uint64_t key,
                    void* context) noexcept {
  return access_range(endpoint, from, address, key,
                      {.pieces = pieces,
                       .count = count,
                       .flags = without_inject(Endpoint::of(endpoint).send_flags()),
                       .context = context});
}

ssize_t read(fid_ep* endpoint, void* buffer, std::size_t bytes, void* descriptor, fi_addr_t from,
             std::uint64_t address, std::uint64_t key, void* context) noexcept {
  const iovec piece = {buffer, bytes};
  return read_vector(endpoint, &piece, &descriptor, 1, from, address, key, context);
}

ssize_t read_message(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  return access_ranges(endpoint, false, message,
                       without_inject(Endpoint::of(endpoint).send_flags(flags)));
}

ssize_t write_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, void* context) noexcept {
  return access_range(endpoint, to, address, key,
                      {.is_write = true,
                       .pieces = pieces,
                       .count = count,
                       .flags = Endpoint::of(endpoint).send_flags(),
                       .context = context});
}

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t bytes, void* descriptor,
              fi_addr_t to, std::uint64_t address, std::uint64_t key, void* context) noexcept {
  const iovec piece = piece_of(buffer, bytes);
  return write_vector(endpoint, &piece, &descriptor, 1, to, address, key, context);
}

ssize_t write_message(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  return access_ranges(endpoint, true, message, Endpoint::of(endpoint).send_flags(flags));
}

// A write of one buffer with these flags.
ssize_t write_with(fid_ep* endpoint, const void* buffer, std::size_t bytes, std::uint64_t data,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key, std::uint64_t flags,
                   void* context) noexcept {
  const iovec piece = piece_of(buffer, bytes);
  return access_range(endpoint, to, address, key,
                      {.is_write = true,
                       .pieces = &piece,
                       .count = 1,
                       .data = data,
                       .flags = flags,
                       .context = context});
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t bytes, fi_addr_t to,
               std::uint64_t address, std::uint64_t key) noexcept {
  return write_with(endpoint, buffer, bytes, 0, to, address, key, FI_INJECT, nullptr);
}

ssize_t write_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*,
                   std::uint64_t data, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                   void* context) noexcept {
  return write_with(endpoint, buffer, bytes, data, to, address, key,
                    Endpoint::of(endpoint).send_flags() | FI_REMOTE_CQ_DATA, context);
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, std::uint64_t data,
                    fi_addr_t to, std::uint64_t address, std::uint64_t key) noexcept {
  return write_with(endpoint, buffer, bytes, data, to, address, key, FI_INJECT | FI_REMOTE_CQ_DATA,
                    nullptr);
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
