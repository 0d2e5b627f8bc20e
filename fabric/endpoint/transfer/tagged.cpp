// Tagged messages (fi_tagged).
#include "fabric/endpoint/transfer/transfer.hpp"

namespace haul::fabric {

namespace {

ssize_t send_pieces(fid_ep* endpoint, const iovec* pieces, std::size_t count, std::uint64_t data,
                    fi_addr_t to, std::uint64_t tag, std::uint64_t flags, void* context) noexcept {
  SendRequest request;
  request.pieces = pieces;
  request.count = count;
  request.tagged = true;
  request.tag = tag;
  request.data = data;
  request.flags = flags;
  request.context = context;
  return submit_send(Endpoint::of(endpoint).state(), to, request);
}

ssize_t receive_pieces(fid_ep* endpoint, const iovec* pieces, std::size_t count, fi_addr_t from,
                       std::uint64_t tag, std::uint64_t ignore, std::uint64_t flags,
                       void* context) noexcept {
  // What is claimed is known by its context; what is discarded was looked at or claimed before.
  if ((flags & FI_CLAIM) != 0 && context == nullptr) return -FI_EINVAL;
  if ((flags & FI_DISCARD) != 0 && (flags & (FI_PEEK | FI_CLAIM)) == 0) return -FI_EINVAL;
  ReceiveRequest request;
  request.pieces = pieces;
  request.count = count;
  request.tagged = true;
  request.tag = tag;
  request.ignore = ignore;
  request.flags = flags & ~FI_MULTI_RECV;  // for untagged messages, as an endpoint's default
  request.context = context;
  return submit_receive(Endpoint::of(endpoint).state(), from, request);
}

ssize_t receive(fid_ep* endpoint, void* buffer, std::size_t bytes, void*, fi_addr_t from,
                std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  const iovec piece = {buffer, bytes};
  return receive_pieces(endpoint, &piece, 1, from, tag, ignore,
                        Endpoint::of(endpoint).receive_flags(), context);
}

ssize_t receive_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                       fi_addr_t from, std::uint64_t tag, std::uint64_t ignore,
                       void* context) noexcept {
  return receive_pieces(endpoint, pieces, count, from, tag, ignore,
                        Endpoint::of(endpoint).receive_flags(), context);
}

ssize_t receive_message(fid_ep* endpoint, const fi_msg_tagged* message,
                        std::uint64_t flags) noexcept {
  return receive_pieces(endpoint, message->msg_iov, message->iov_count, message->addr, message->tag,
                        message->ignore, Endpoint::of(endpoint).receive_flags(flags),
                        message->context);
}

ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*, fi_addr_t to,
             std::uint64_t tag, void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, 0, to, tag, Endpoint::of(endpoint).send_flags(), context);
}

ssize_t send_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                    std::uint64_t tag, void* context) noexcept {
  return send_pieces(endpoint, pieces, count, 0, to, tag, Endpoint::of(endpoint).send_flags(),
                     context);
}

ssize_t send_message(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) noexcept {
  return send_pieces(endpoint, message->msg_iov, message->iov_count, message->data, message->addr,
                     message->tag, Endpoint::of(endpoint).send_flags(flags), message->context);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t bytes, fi_addr_t to,
               std::uint64_t tag) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, 0, to, tag, FI_INJECT, nullptr);
}

ssize_t send_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*,
                  std::uint64_t data, fi_addr_t to, std::uint64_t tag, void* context) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, data, to, tag,
                     Endpoint::of(endpoint).send_flags() | FI_REMOTE_CQ_DATA, context);
}

ssize_t inject_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, std::uint64_t data,
                    fi_addr_t to, std::uint64_t tag) noexcept {
  const iovec piece = {const_cast<void*>(buffer), bytes};
  return send_pieces(endpoint, &piece, 1, data, to, tag, FI_INJECT | FI_REMOTE_CQ_DATA, nullptr);
}

}  // namespace

fi_ops_tagged tagged_ops = {
    .size = sizeof(fi_ops_tagged),
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
