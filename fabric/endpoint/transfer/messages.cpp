// Messages: fi_msg, and fi_tagged, whose calls are the same with a tag.
#include "fabric/endpoint/transfer/transfer.hpp"

namespace haul::fabric {

namespace {

// fi_msg's calls with Message = fi_msg and no Tag, fi_tagged's with fi_msg_tagged and one
// std::uint64_t, which libfabric has in front of the context.
template <class Message, class... Tag>
struct Sends {
  static ssize_t post(fid_ep* endpoint, fi_addr_t to, SendRequest&& request,
                      std::uint64_t tag = 0) noexcept {
    request.tagged = sizeof...(Tag) != 0;
    request.tag = tag;
    EndpointState& state = Endpoint::of(endpoint).state();
    const ssize_t error = check_request(state, FI_SEND | (request.tagged ? FI_TAGGED : FI_MSG),
                                        request.flags, request.pieces, request.count);
    if (error != 0) return error;
    return submit_to(state, to, [&](Peer& peer) { return state.matcher().send(peer, request); });
  }

  static ssize_t send_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                             fi_addr_t to, Tag... tag, void* context) noexcept {
    return post(endpoint, to,
                {.pieces = pieces,
                 .count = count,
                 .flags = Endpoint::of(endpoint).send_flags(),
                 .context = context},
                tag...);
  }

  static ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t bytes, void* descriptor,
                      fi_addr_t to, Tag... tag, void* context) noexcept {
    const iovec piece = piece_of(buffer, bytes);
    return send_vector(endpoint, &piece, &descriptor, 1, to, tag..., context);
  }

  static ssize_t send_message(fid_ep* endpoint, const Message* message,
                              std::uint64_t flags) noexcept {
    std::uint64_t tag = 0;
    if constexpr (sizeof...(Tag) != 0) tag = message->tag;
    return post(endpoint, message->addr,
                {.pieces = message->msg_iov,
                 .count = message->iov_count,
                 .data = message->data,
                 .flags = Endpoint::of(endpoint).send_flags(flags),
                 .context = message->context},
                tag);
  }

  // One buffer with these flags.
  static ssize_t send_with(fid_ep* endpoint, const void* buffer, std::size_t bytes,
                           std::uint64_t data, fi_addr_t to, Tag... tag, std::uint64_t flags,
                           void* context) noexcept {
    const iovec piece = piece_of(buffer, bytes);
    return post(endpoint, to,
                {.pieces = &piece, .count = 1, .data = data, .flags = flags, .context = context},
                tag...);
  }

  static ssize_t send_data(fid_ep* endpoint, const void* buffer, std::size_t bytes, void*,
                           std::uint64_t data, fi_addr_t to, Tag... tag, void* context) noexcept {
    return send_with(endpoint, buffer, bytes, data, to, tag...,
                     Endpoint::of(endpoint).send_flags() | FI_REMOTE_CQ_DATA, context);
  }

  static ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t bytes, fi_addr_t to,
                        Tag... tag) noexcept {
    return send_with(endpoint, buffer, bytes, 0, to, tag..., FI_INJECT, nullptr);
  }

  static ssize_t inject_data(fid_ep* endpoint, const void* buffer, std::size_t bytes,
                             std::uint64_t data, fi_addr_t to, Tag... tag) noexcept {
    return send_with(endpoint, buffer, bytes, data, to, tag..., FI_INJECT | FI_REMOTE_CQ_DATA,
                     nullptr);
  }
};

// 0 or -FI_EINVAL, -FI_EBADFLAGS: the flags that only one of the two interfaces has. Multi-receives
// are untagged; a tagged receive ignores the flag, which may be the endpoint's default.
ssize_t check_flags(ReceiveRequest& request) noexcept {
  const std::uint64_t flags = request.flags;
  if (!request.tagged) {
    if ((flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) return -FI_EBADFLAGS;
    return (flags & FI_MULTI_RECV) != 0 && request.count != 1 ? -FI_EINVAL : 0;
  }
  // A claim finds its message by the context; only a message that was peeked at or claimed can be
  // discarded.
  if ((flags & FI_CLAIM) != 0 && request.context == nullptr) return -FI_EINVAL;
  if ((flags & FI_DISCARD) != 0 && (flags & (FI_PEEK | FI_CLAIM)) == 0) return -FI_EINVAL;
  request.flags &= ~FI_MULTI_RECV;
  return 0;
}

// As above, with two words for fi_tagged: the tag, and its bits that do not count.
template <class Message, class... Match>
struct Receives {
  static ssize_t post(fid_ep* endpoint, fi_addr_t from, ReceiveRequest&& request,
                      std::uint64_t tag = 0, std::uint64_t ignore = 0) noexcept {
    request.tagged = sizeof...(Match) != 0;
    request.tag = tag;
    request.ignore = ignore;
    ssize_t error = check_flags(request);
    if (error != 0) return error;
    EndpointState& state = Endpoint::of(endpoint).state();
    // FI_INJECT concerns what is sent.
    error = check_request(state, FI_RECV | (request.tagged ? FI_TAGGED : FI_MSG),
                          request.flags & ~FI_INJECT, request.pieces, request.count);
    if (error != 0) return error;
    return submit(state, [&]() noexcept -> ssize_t {
      Peer* source = nullptr;
      if (!state.source(from, &source)) return -FI_EINVAL;
      return state.matcher().receive(source, request);
    });
  }

  static ssize_t receive_vector(fid_ep* endpoint, const iovec* pieces, void**, std::size_t count,
                                fi_addr_t from, Match... match, void* context) noexcept {
    return post(endpoint, from,
                {.pieces = pieces,
                 .count = count,
                 .flags = Endpoint::of(endpoint).receive_flags(),
                 .context = context},
                match...);
  }

  static ssize_t receive(fid_ep* endpoint, void* buffer, std::size_t bytes, void* descriptor,
                         fi_addr_t from, Match... match, void* context) noexcept {
    const iovec piece = {buffer, bytes};
    return receive_vector(endpoint, &piece, &descriptor, 1, from, match..., context);
  }

  static ssize_t receive_message(fid_ep* endpoint, const Message* message,
                                 std::uint64_t flags) noexcept {
    std::uint64_t tag = 0, ignore = 0;
    if constexpr (sizeof...(Match) != 0) {
      tag = message->tag;
      ignore = message->ignore;
    }
    return post(endpoint, message->addr,
                {.pieces = message->msg_iov,
                 .count = message->iov_count,
                 .flags = Endpoint::of(endpoint).receive_flags(flags),
                 .context = message->context},
                tag, ignore);
  }
};

// libfabric's two tables have the same fields.
template <class Table, class Receiving, class Sending>
constexpr Table table_of() noexcept {
  return {.size = sizeof(Table),
          .recv = Receiving::receive,
          .recvv = Receiving::receive_vector,
          .recvmsg = Receiving::receive_message,
          .send = Sending::send,
          .sendv = Sending::send_vector,
          .sendmsg = Sending::send_message,
          .inject = Sending::inject,
          .senddata = Sending::send_data,
          .injectdata = Sending::inject_data};
}

using Word = std::uint64_t;

}  // namespace

fi_ops_msg message_ops = table_of<fi_ops_msg, Receives<fi_msg>, Sends<fi_msg>>();
fi_ops_tagged tagged_ops =
    table_of<fi_ops_tagged, Receives<fi_msg_tagged, Word, Word>, Sends<fi_msg_tagged, Word>>();

}  // namespace haul::fabric
