// Untagged messages (fi_msg).
#include "fabric/endpoint/transfer/transfer.hpp"

namespace haul::fabric {

namespace {

ssize_t send_pieces(fid_ep* endpoint, const iovec* pieces, std::size_t count, std::uint64_t data,
                    fi_addr_t to, std::uint64_t flags, void* context) noexcept {
  SendRequest request;
  request.pieces = pieces;
  request.count = count;
  request.data = data;
  request.flags = flags;
  request.context = context;
  return submit_send(Endpoint::of(endpoint).state(), to, request);
}

ssize_t receive_pieces(fid_ep* endpoint, const iovec* pieces, std::size_t count, fi_addr_t from,
                       std::uint64_t flags, void* context) noexcept {
  if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) return -FI_EBADFLAGS;
  if ((flags & FI_MULTI_RECV) != 0 && count != 1) return -FI_EINVAL;
  ReceiveRequest request;
  request.pieces = pieces;
  request.count = count;
  request.flags = flags;
  request.context = context;
  return submit_receive(Endpoint::of(endpoint).state(), from, request);
}

ssize_t receive(fid_ep* endpoint, void* buffer, std::size_t bytes, void*, fi_addr_t from,
                void* context) noexcept {
  const iovec piece = {buffer, bytes};
  return receive_pieces(endpoint, &piece, 1, from, Endpoint::of(endpoint).receive_flags(), context);
}

ssize_t receive_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                       fi_addr_t from, void* context) noexcept {
  return receive_pieces(endpoint, pieces, count, from, Endpoint::of(endpoint).receive_flags(),
                        context);
}

ssize_t receive_message(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) noexcept {
  return receive_pieces(endpoint, message->msg_iov, message->iov_count, message->addr,
                        Endpoint::of(endpoint).receive_flags(flags), message->context);
}

ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*, fi_addr_t to,
             void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, 0, to, Endpoint::of(endpoint).send_flags(), context);
}

ssize_t send_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                    void* context) noexcept {
  return send_pieces(endpoint, pieces, count, 0, to, Endpoint::of(endpoint).send_flags(), context);
}

ssize_t send_message(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) noexcept {
  return send_pieces(endpoint, message->msg_iov, message->iov_count, message->data, message->addr,
                     Endpoint::of(endpoint).send_flags(flags), message->context);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t bytes, fi_addr_t to) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, 0, to, FI_INJECT, nullptr);
}

ssize_t send_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*,
                  std::uint64_t data, fi_addr_t to, void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, data, to,
                     Endpoint::of(endpoint).send_flags() | FI_REMOTE_CQ_DATA, context);
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, std::uint64_t data,
                    fi_addr_t to) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, data, to, FI_INJECT | FI_REMOTE_CQ_DATA, nullptr);
}

}  // namespace

fi_ops_msg message_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = receive,
    .recvv = receive_vector,
    .recvmsg = receive_message,
    .send = send,
    .sendv = send_vector,
    .sendmsg = send_message,
    .inject = inject,
    .senddata = send_data,
    .injectdata = inject_data,
};

}  // namespace haul::fabric
