#include "transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace fabric_test {

const char* name_of(Kind kind) {
  return kind == Kind::message ? "message" : "tagged";
}

const char* name_of(Send form) {
  switch (form) {
    case Send::plain: return "send";
    case Send::vector: return "sendv";
    case Send::msg: return "sendmsg";
    case Send::data: return "senddata";
    case Send::inject: return "inject";
    case Send::inject_data: return "injectdata";
    case Send::msg_inject: return "sendmsg(inject)";
    case Send::msg_data: return "sendmsg(data)";
  }
  return "?";
}

const char* name_of(Receive form) {
  switch (form) {
    case Receive::plain: return "recv";
    case Receive::vector: return "recvv";
    case Receive::msg: return "recvmsg";
  }
  return "?";
}

bool is_silent(Send form) {
  return form == Send::inject || form == Send::inject_data;
}

bool is_injected(Send form) {
  return is_silent(form) || form == Send::msg_inject;
}

bool carries_data(Send form) {
  return form == Send::data || form == Send::inject_data || form == Send::msg_data;
}

std::vector<iovec> parts_of(const void* buffer, std::size_t size,
                            const std::vector<std::size_t>& cuts) {
  auto* at = static_cast<char*>(const_cast<void*>(buffer));
  std::vector<iovec> parts;
  for (const std::size_t cut : cuts) {
    const std::size_t length = std::min(cut, size);
    parts.push_back(iovec{at, length});
    at += length;
    size -= length;
  }
  parts.push_back(iovec{at, size});
  return parts;
}

ssize_t send(Node& node, const Outgoing& how, const void* buffer, std::size_t size, Op& op) {
  fid_ep* ep = node.ep.get();
  const std::vector<iovec> parts = parts_of(buffer, size, how.cuts);
  std::uint64_t flags = how.flags;
  if (how.form == Send::msg_inject) flags |= FI_INJECT;
  if (how.form == Send::msg_data) flags |= FI_REMOTE_CQ_DATA;
  if (how.kind == Kind::tagged) {
    const fi_msg_tagged msg{parts.data(), nullptr, parts.size(), how.to, how.tag, 0, &op, how.data};
    return node.post([&]() -> ssize_t {
      switch (how.form) {
        case Send::plain: return fi_tsend(ep, buffer, size, nullptr, how.to, how.tag, &op);
        case Send::vector:
          return fi_tsendv(ep, parts.data(), nullptr, parts.size(), how.to, how.tag, &op);
        case Send::data:
          return fi_tsenddata(ep, buffer, size, nullptr, how.data, how.to, how.tag, &op);
        case Send::inject: return fi_tinject(ep, buffer, size, how.to, how.tag);
        case Send::inject_data: return fi_tinjectdata(ep, buffer, size, how.data, how.to, how.tag);
        default: return fi_tsendmsg(ep, &msg, flags);
      }
    });
  }
  const fi_msg msg{parts.data(), nullptr, parts.size(), how.to, &op, how.data};
  return node.post([&]() -> ssize_t {
    switch (how.form) {
      case Send::plain: return fi_send(ep, buffer, size, nullptr, how.to, &op);
      case Send::vector: return fi_sendv(ep, parts.data(), nullptr, parts.size(), how.to, &op);
      case Send::data: return fi_senddata(ep, buffer, size, nullptr, how.data, how.to, &op);
      case Send::inject: return fi_inject(ep, buffer, size, how.to);
      case Send::inject_data: return fi_injectdata(ep, buffer, size, how.data, how.to);
      default: return fi_sendmsg(ep, &msg, flags);
    }
  });
}

ssize_t receive(Node& node, const Incoming& how, void* buffer, std::size_t size, Op& op) {
  fid_ep* ep = node.ep.get();
  const std::vector<iovec> parts = parts_of(buffer, size, how.cuts);
  if (how.kind == Kind::tagged) {
    const fi_msg_tagged msg{parts.data(), nullptr,    parts.size(), how.from,
                            how.tag,      how.ignore, &op,          0};
    return node.post([&]() -> ssize_t {
      switch (how.form) {
        case Receive::plain:
          return fi_trecv(ep, buffer, size, nullptr, how.from, how.tag, how.ignore, &op);
        case Receive::vector:
          return fi_trecvv(ep, parts.data(), nullptr, parts.size(), how.from, how.tag, how.ignore,
                           &op);
        default: return fi_trecvmsg(ep, &msg, how.flags);
      }
    });
  }
  const fi_msg msg{parts.data(), nullptr, parts.size(), how.from, &op, 0};
  return node.post([&]() -> ssize_t {
    switch (how.form) {
      case Receive::plain: return fi_recv(ep, buffer, size, nullptr, how.from, &op);
      case Receive::vector: return fi_recvv(ep, parts.data(), nullptr, parts.size(), how.from, &op);
      default: return fi_recvmsg(ep, &msg, how.flags);
    }
  });
}

void check_transfer(Pair& pair, const Outgoing& out, const Incoming& in, std::size_t size) {
  SCOPED_TRACE(std::string(name_of(out.kind)) + " " + name_of(out.form) + " to " +
               name_of(in.form) + ", " + std::to_string(size) + " bytes");
  const auto sent = pattern(size, size + out.tag);
  std::vector<std::uint8_t> got(size + 8, 0xee);
  Op send_op, receive_op;
  ASSERT_EQ(receive(pair.b, in, got.data(), size, receive_op), 0);
  auto volatile_copy = sent;
  ASSERT_EQ(send(pair.a, out, volatile_copy.data(), size, send_op), 0);
  // An injected buffer is the caller's again at once.
  if (is_injected(out.form)) std::fill(volatile_copy.begin(), volatile_copy.end(), 0x55);
  const Completion received = pair.b.await(receive_op);
  ASSERT_EQ(received.err, 0) << fi_strerror(received.err);
  EXPECT_EQ(received.len, size);
  EXPECT_EQ(difference(got.data(), sent), "");
  EXPECT_EQ(std::count(got.begin() + static_cast<std::ptrdiff_t>(size), got.end(), 0xee), 8)
      << "bytes behind the buffer were written";
  const std::uint64_t kind_flag = out.kind == Kind::tagged ? FI_TAGGED : FI_MSG;
  EXPECT_EQ(received.flags & (FI_RECV | FI_SEND), FI_RECV);
  EXPECT_EQ(received.flags & (FI_TAGGED | FI_MSG), kind_flag);
  if (out.kind == Kind::tagged) {
    EXPECT_EQ(received.tag, out.tag);
  }
  EXPECT_EQ((received.flags & FI_REMOTE_CQ_DATA) != 0, carries_data(out.form));
  if (carries_data(out.form)) {
    EXPECT_EQ(received.data, out.data);
  }
  if ((pair.b.info->caps & FI_SOURCE) != 0) {
    EXPECT_EQ(received.source, pair.to_a);
  }
  if (!is_silent(out.form)) {
    const Completion done = pair.a.await(send_op);
    ASSERT_EQ(done.err, 0) << fi_strerror(done.err);
    EXPECT_EQ(done.flags & (FI_RECV | FI_SEND), FI_SEND);
    EXPECT_EQ(done.flags & (FI_TAGGED | FI_MSG), kind_flag);
  }
}

}  // namespace fabric_test
