// When an operation completes, what its completion says, and when there is none.
#include <gtest/gtest.h>

#include <cstring>

#include "transfer.hpp"

namespace fabric_test {
namespace {

TEST(Completion, selective_ones_only_when_asked) {
  Pair pair(Wish{.selective = FI_SELECTIVE_COMPLETION});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (const Kind kind : all_kinds)
    for (const std::size_t size : {std::size_t{8}, 2 * kib, 100 * kib}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " " + std::to_string(size));
      const auto sent = pattern(size, 1);
      std::vector<std::uint8_t> got(size), marker(8);
      Op silent_send, silent_receive, told_send, told_receive;
      // One silent message, then one told: when the second is there, the first was to be silent.
      ASSERT_EQ(receive(pair.b, {.kind = kind, .tag = 1}, got.data(), size, silent_receive), 0);
      ASSERT_EQ(
          receive(pair.b, {.kind = kind, .form = Receive::msg, .tag = 2, .flags = FI_COMPLETION},
                  marker.data(), 8, told_receive),
          0);
      ASSERT_EQ(
          send(pair.a, {.kind = kind, .to = pair.to_b, .tag = 1}, sent.data(), size, silent_send),
          0);
      ASSERT_EQ(
          send(pair.a,
               {.kind = kind, .form = Send::msg, .to = pair.to_b, .tag = 2, .flags = FI_COMPLETION},
               sent.data(), 8, told_send),
          0);
      EXPECT_EQ(pair.b.await(told_receive).err, 0);
      EXPECT_EQ(pair.a.await(told_send).err, 0);
      EXPECT_TRUE(pair.a.await_until([&] { return difference(got.data(), sent).empty(); }));
      EXPECT_TRUE(pair.a.stays_quiet()) << "a send that asked for none completed";
      EXPECT_TRUE(pair.b.stays_quiet()) << "a receive that asked for none completed";
    }
}

TEST(Completion, errors_come_without_being_asked) {
  Pair pair(Wish{.selective = FI_SELECTIVE_COMPLETION});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  char byte = 0;
  Op op;
  ASSERT_EQ(receive(pair.b, {.form = Receive::msg, .tag = 1, .flags = FI_COMPLETION}, &byte, 1, op),
            0);
  ASSERT_EQ(fi_cancel(&pair.b.ep->fid, &op), 0);
  EXPECT_EQ(pair.b.next().err, FI_ECANCELED);
  Op truncated, send_op;
  const auto sent = pattern(100, 1);
  ASSERT_EQ(receive(pair.b, {.tag = 1}, &byte, 1, truncated), 0);
  ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, sent.data(), 100, send_op), 0);
  EXPECT_EQ(std::abs(pair.b.next().err), FI_ETRUNC);
}

// The endpoint's default flags apply to the calls without flags, a call's own replace them.
TEST(Completion, default_flags_of_the_endpoint) {
  Pair pair(Wish{
      .tx_flags = FI_COMPLETION, .rx_flags = FI_COMPLETION, .selective = FI_SELECTIVE_COMPLETION});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, 100);
  const auto sent = pattern(8, 1);
  std::uint64_t got = 0;
  Op told, silent;
  ASSERT_EQ(receive(pair.b, {.tag = 2}, &got, 8, told), 0);
  ASSERT_EQ(send(pair.a, {.form = Send::msg, .to = pair.to_b, .tag = 2, .flags = 0}, sent.data(), 8,
                 silent),
            0);
  EXPECT_EQ(pair.b.await(told).err, 0);
  EXPECT_TRUE(pair.a.stays_quiet());
}

TEST(Completion, at_every_level) {
  Pair pair(Wish{});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  for (const std::uint64_t level :
       {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE})
    for (const Kind kind : all_kinds)
      for (const std::size_t size : {std::size_t{0}, std::size_t{16}, 4 * kib, 64 * kib, mib}) {
        SCOPED_TRACE(std::string(fi_tostr(&level, FI_TYPE_OP_FLAGS)) + " " + name_of(kind) + " " +
                     std::to_string(size));
        const bool optional = level == FI_MATCH_COMPLETE || level == FI_DELIVERY_COMPLETE;
        if (optional && !provider_is_haul()) continue;
        const auto sent = pattern(size, 1);
        std::vector<std::uint8_t> got(size);
        Op send_op, receive_op;
        auto volatile_copy = sent;
        ASSERT_EQ(send(pair.a,
                       {.kind = kind, .form = Send::msg, .to = pair.to_b, .tag = 1, .flags = level},
                       volatile_copy.data(), size, send_op),
                  0);
        // Matched and delivered: not before there is a receive.
        if (level == FI_MATCH_COMPLETE) {
          EXPECT_TRUE(pair.a.stays_quiet()) << "complete before it was matched";
        }
        ASSERT_EQ(receive(pair.b, {.kind = kind, .tag = 1}, got.data(), size, receive_op), 0);
        EXPECT_EQ(pair.a.await(send_op).err, 0);
        std::fill(volatile_copy.begin(), volatile_copy.end(), std::uint8_t{0x55});
        EXPECT_EQ(pair.b.await(receive_op).err, 0);
        EXPECT_EQ(difference(got.data(), sent), "");
      }
}

TEST(Completion, levels_as_defaults) {
  for (const std::uint64_t level :
       {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE}) {
    const Wish wish{.tx_flags = level};
    if (!ask(wish) && !provider_is_haul()) continue;
    Pair pair(wish);
    ASSERT_TRUE(pair.ready());
    for (const std::size_t size : {std::size_t{8}, 100 * kib})
      check_transfer(pair, {.to = pair.to_b, .tag = 1}, {.tag = 1}, size);
  }
}

TEST(Completion, fenced_messages_arrive_in_order) {
  const Wish wish{.caps = FI_MSG | FI_TAGGED | FI_FENCE};
  if (!ask(wish) && !provider_is_haul()) GTEST_SKIP() << "no FI_FENCE";
  Pair pair(wish);
  ASSERT_TRUE(pair.ready());
  const auto large = pattern(mib, 1), small = pattern(8, 2);
  std::vector<std::uint8_t> got_large(mib), got_small(8);
  Op ops[4];
  ASSERT_EQ(receive(pair.b, {.tag = 1}, got_large.data(), mib, ops[0]), 0);
  ASSERT_EQ(receive(pair.b, {.tag = 2}, got_small.data(), 8, ops[1]), 0);
  ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, large.data(), mib, ops[2]), 0);
  ASSERT_EQ(send(pair.a, {.form = Send::msg, .to = pair.to_b, .tag = 2, .flags = FI_FENCE},
                 small.data(), 8, ops[3]),
            0);
  EXPECT_EQ(pair.b.await(ops[1]).err, 0);
  EXPECT_EQ(difference(got_large.data(), large), "") << "the fenced message overtook";
  EXPECT_EQ(pair.b.await(ops[0]).err, 0);
  EXPECT_EQ(pair.a.await(ops[2]).err, 0);
  EXPECT_EQ(pair.a.await(ops[3]).err, 0);
}

// Reads with the entry of the format, which is smaller than Node's.
TEST(Completion, every_format) {
  const struct {
    fi_cq_format format;
    std::size_t size;
  } formats[] = {{FI_CQ_FORMAT_CONTEXT, sizeof(fi_cq_entry)},
                 {FI_CQ_FORMAT_MSG, sizeof(fi_cq_msg_entry)},
                 {FI_CQ_FORMAT_DATA, sizeof(fi_cq_data_entry)},
                 {FI_CQ_FORMAT_TAGGED, sizeof(fi_cq_tagged_entry)}};
  for (const auto& [format, size] : formats) {
    SCOPED_TRACE(size);
    Node a(Wish{.format = format}), b(Wish{.format = format});
    if (!a.ready()) GTEST_SKIP() << a.why();
    const fi_addr_t to_b = a.insert(b.name());
    // Several in one read: the stride is that of the format.
    constexpr std::size_t count = 3;
    std::uint64_t sent = 5, got[count] = {};
    Op ops[count], send_ops[count];
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(fi_trecv(b.ep.get(), &got[i], 8, nullptr, FI_ADDR_UNSPEC, i, 0, &ops[i]), 0);
    }
    std::vector<std::uint8_t> entries(size * (count + 1), 0xee), scratch(size * 8);
    for (std::size_t i = 0; i < count; ++i) {
      ssize_t status = 0;
      while ((status = fi_tsenddata(a.ep.get(), &sent, 8, nullptr, 0x99, to_b, i, &send_ops[i])) ==
             -FI_EAGAIN)
        ASSERT_EQ(fi_cq_read(b.cq.get(), nullptr, 0), -FI_EAGAIN);
      ASSERT_EQ(status, 0);
    }
    std::size_t filled = 0;
    const auto limit = std::chrono::steady_clock::now() + patience();
    while (filled < count && std::chrono::steady_clock::now() < limit) {
      static_cast<void>(fi_cq_read(a.cq.get(), scratch.data(), 8));
      const ssize_t read = fi_cq_read(b.cq.get(), entries.data() + filled * size, count - filled);
      ASSERT_TRUE(read > 0 || read == -FI_EAGAIN) << read;
      if (read > 0) filled += static_cast<std::size_t>(read);
    }
    ASSERT_EQ(filled, count);
    for (std::size_t i = 0; i < count; ++i) {
      fi_cq_tagged_entry entry{};
      std::memcpy(&entry, entries.data() + i * size, size);
      EXPECT_EQ(entry.op_context, &ops[i]);
      if (format >= FI_CQ_FORMAT_MSG) {
        EXPECT_EQ(entry.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
        EXPECT_EQ(entry.len, 8u);
      }
      if (format >= FI_CQ_FORMAT_DATA) {
        EXPECT_EQ(entry.data, 0x99u);
      }
      if (format == FI_CQ_FORMAT_TAGGED) {
        EXPECT_EQ(entry.tag, i);
      }
    }
    EXPECT_EQ(entries[size * count], 0xee) << "written behind the last entry";
  }
}

TEST(Completion, no_more_entries_than_asked_for) {
  Pair pair(Wish{});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  std::uint64_t sent = 1, got[3] = {};
  Op ops[3], send_ops[3];
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(receive(pair.b, {.tag = 1}, &got[i], 8, ops[i]), 0);
    ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, &sent, 8, send_ops[i]), 0);
    EXPECT_EQ(pair.a.await(send_ops[i]).err, 0);
  }
  fi_cq_tagged_entry entries[3] = {};
  int seen = 0;
  const auto limit = std::chrono::steady_clock::now() + patience();
  // Node read some of them while it waited for the sends.
  while (seen + static_cast<int>(pair.b.inbox_size()) < 3 &&
         std::chrono::steady_clock::now() < limit) {
    const ssize_t count = fi_cq_read(pair.b.cq.get(), entries, 1);
    ASSERT_TRUE(count == 1 || count == -FI_EAGAIN) << count;
    EXPECT_EQ(entries[1].op_context, nullptr) << "a second entry was written";
    if (count == 1) ++seen;
  }
  EXPECT_EQ(fi_cq_read(pair.b.cq.get(), entries, 1), -FI_EAGAIN);
}

TEST(Completion, errors_are_read_apart_and_have_words) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(node.cq.get(), &error, 0), -FI_EAGAIN) << "no error, none read";
  char byte = 0;
  Op op;
  ASSERT_EQ(receive(node, {.tag = 1}, &byte, 1, op), 0);
  ASSERT_EQ(fi_cancel(&node.ep->fid, &op), 0);
  fi_cq_tagged_entry entry{};
  ssize_t status = 0;
  const auto limit = std::chrono::steady_clock::now() + patience();
  while ((status = fi_cq_read(node.cq.get(), &entry, 1)) == -FI_EAGAIN &&
         std::chrono::steady_clock::now() < limit) {
  }
  ASSERT_EQ(status, -FI_EAVAIL);
  EXPECT_EQ(fi_cq_read(node.cq.get(), &entry, 1), -FI_EAVAIL) << "it stays until it is read";
  ASSERT_EQ(fi_cq_readerr(node.cq.get(), &error, 0), 1);
  EXPECT_EQ(error.op_context, &op);
  EXPECT_EQ(error.err, FI_ECANCELED);
  EXPECT_EQ(fi_cq_readerr(node.cq.get(), &error, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_read(node.cq.get(), &entry, 1), -FI_EAGAIN);
  char words[100] = "";
  const char* text = fi_cq_strerror(node.cq.get(), error.prov_errno, nullptr, words, sizeof words);
  ASSERT_NE(text, nullptr);
  EXPECT_GT(std::strlen(text), 0u);
  // A buffer that is too small is not overrun.
  char little[4] = {'x', 'x', 'x', 'x'};
  fi_cq_strerror(node.cq.get(), error.prov_errno, nullptr, little, 3);
  EXPECT_EQ(little[3], 'x');
}

// The entry of a program built for version 1.5 or later has 80 bytes, older ones less.
TEST(Completion, an_error_entry_is_not_overrun) {
  Node node(Wish{});
  if (!node.ready()) GTEST_SKIP() << node.why();
  char byte = 0;
  Op op;
  ASSERT_EQ(receive(node, {.tag = 1}, &byte, 1, op), 0);
  ASSERT_EQ(fi_cancel(&node.ep->fid, &op), 0);
  struct {
    fi_cq_err_entry error{};
    std::uint8_t guard[64];
  } room;
  std::memset(room.guard, 0xee, sizeof room.guard);
  const auto limit = std::chrono::steady_clock::now() + patience();
  ssize_t status = 0;
  while ((status = fi_cq_readerr(node.cq.get(), &room.error, 0)) == -FI_EAGAIN &&
         std::chrono::steady_clock::now() < limit)
    static_cast<void>(fi_cq_read(node.cq.get(), nullptr, 0));
  ASSERT_EQ(status, 1);
  for (const std::uint8_t guard : room.guard) EXPECT_EQ(guard, 0xee);
}

// The queue is small, the completions many: those that do not fit wait, none is lost.
TEST(Completion, more_than_the_queue_holds) {
  Pair pair(Wish{.cq_size = 16});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  constexpr std::size_t count = 500;
  std::vector<Op> receive_ops(count), send_ops(count);
  std::vector<std::uint64_t> got(count), sent(count);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(receive(pair.b, {.tag = 1}, &got[i], 8, receive_ops[i]), 0);
  for (std::size_t i = 0; i < count; ++i) {
    sent[i] = i + 1;
    ASSERT_EQ(send(pair.a, {.to = pair.to_b, .tag = 1}, &sent[i], 8, send_ops[i]), 0);
  }
  for (Op& op : receive_ops) EXPECT_EQ(pair.b.await(op).err, 0);
  for (Op& op : send_ops) EXPECT_EQ(pair.a.await(op).err, 0);
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace fabric_test
