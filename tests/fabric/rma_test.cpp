// Remote memory: every form of reading and writing, every addressing; and what must not be reached.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "sides.hpp"
#include "transfer.hpp"

namespace fabric_test {
namespace {

const std::size_t rma_sizes[] = {0,         1,   8,      33, 200, 4 * kib, 16 * kib, 64 * kib + 1,
                                 256 * kib, mib, 8 * mib};

// Addressing (by virtual address or offset) and keys (the program's or the provider's).
struct Mode {
  const char* name;
  int bits;
};
const Mode modes[] = {{"basic", FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY},
                      {"scalable", 0},
                      {"endpoint", FI_MR_ENDPOINT},
                      {"virtual_address_own_key", FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
                      {"offset_provider_key", FI_MR_PROV_KEY}};

class Rma : public testing::TestWithParam<std::tuple<Mode, Surrounding>> {
 protected:
  Wish wish() const {
    return Wish{.caps = FI_RMA | FI_MSG | FI_TAGGED, .mr_mode = std::get<Mode>(GetParam()).bits};
  }
  // Runs `use` on the left with a region of the right, which only progresses.
  void with_region(std::size_t bytes, std::uint64_t access,
                   const std::function<void(Node&, fi_addr_t, std::uint64_t address,
                                            std::uint64_t key, Link&)>& use,
                   const std::function<void(Node&, Region&, Link&)>& hold) {
    if (!offered(wish())) GTEST_SKIP() << "not offered";
    run_sides(
        std::get<Surrounding>(GetParam()), wish(),
        [&](Node& node, fi_addr_t peer, Link& link) {
          const auto address = link.get<std::uint64_t>(), key = link.get<std::uint64_t>();
          use(node, peer, address, key, link);
          link.meet();
        },
        [&](Node& node, fi_addr_t, Link& link) {
          Region region(node, bytes, access, 0xabcdef0012345u);
          ASSERT_EQ(region.status(), 0);
          link.put(region.address());
          link.put(region.key());
          hold(node, region, link);
          link.meet();
        });
  }
};

enum class Write { plain, vector, msg, inject, msg_inject };

ssize_t write_by(Write form, Node& node, const std::vector<std::uint8_t>& bytes, fi_addr_t peer,
                 std::uint64_t address, std::uint64_t key, Op& op) {
  fid_ep* ep = node.ep.get();
  const auto parts = parts_of(bytes.data(), bytes.size(), {bytes.size() / 3});
  const fi_rma_iov target{address, bytes.size(), key};
  const fi_msg_rma msg{parts.data(), nullptr, parts.size(), peer, &target, 1, &op, 0};
  return node.post([&]() -> ssize_t {
    switch (form) {
      case Write::plain:
        return fi_write(ep, bytes.data(), bytes.size(), nullptr, peer, address, key, &op);
      case Write::vector:
        return fi_writev(ep, parts.data(), nullptr, parts.size(), peer, address, key, &op);
      case Write::msg: return fi_writemsg(ep, &msg, FI_DELIVERY_COMPLETE);
      case Write::inject:
        return fi_inject_write(ep, bytes.data(), bytes.size(), peer, address, key);
      case Write::msg_inject: return fi_writemsg(ep, &msg, FI_INJECT);
    }
    return -FI_EINVAL;
  });
}

TEST_P(Rma, every_form_reads_back_what_was_written) {
  constexpr std::size_t offset = 72;
  with_region(
      8 * mib + 2 * offset, remote,
      [&](Node& node, fi_addr_t peer, std::uint64_t address, std::uint64_t key, Link& link) {
        std::uint64_t seed = 1;
        for (const std::size_t size : rma_sizes)
          for (const Write form :
               {Write::plain, Write::vector, Write::msg, Write::inject, Write::msg_inject}) {
            SCOPED_TRACE(std::to_string(size) + " bytes, form " +
                         std::to_string(static_cast<int>(form)));
            const bool injected = form == Write::inject || form == Write::msg_inject;
            if (injected && size > node.info->tx_attr->inject_size) continue;
            const bool several = form != Write::plain && form != Write::inject;
            if (several && node.info->tx_attr->iov_limit < 2) continue;
            if (form == Write::msg && !provider_is_haul()) continue;
            if (size > mib && form != Write::plain) continue;
            const auto wanted = pattern(size, ++seed);
            auto bytes = wanted;
            Op op;
            ASSERT_EQ(write_by(form, node, bytes, peer, address + offset, key, op), 0);
            if (injected) std::fill(bytes.begin(), bytes.end(), std::uint8_t{0x55});
            if (form != Write::inject) {
              const Completion done = node.await(op);
              ASSERT_EQ(done.err, 0) << fi_strerror(done.err);
              EXPECT_EQ(done.flags & (FI_RMA | FI_WRITE), FI_RMA | FI_WRITE);
            }
            // The target looks at its memory once the writer says so.
            link.put(size);
            link.put(seed);
            link.meet();
            std::vector<std::uint8_t> got(size + 8, 0xee);
            const auto parts = parts_of(got.data(), size, {size / 2});
            const fi_rma_iov source{address + offset, size, key};
            const fi_msg_rma msg{parts.data(), nullptr, parts.size(), peer, &source, 1, &op, 0};
            ASSERT_EQ(node.post([&]() -> ssize_t {
              fid_ep* ep = node.ep.get();
              if (form == Write::vector)
                return fi_readv(ep, parts.data(), nullptr, parts.size(), peer, address + offset,
                                key, &op);
              if (form == Write::msg) return fi_readmsg(ep, &msg, 0);
              return fi_read(ep, got.data(), size, nullptr, peer, address + offset, key, &op);
            }),
                      0);
            const Completion read = node.await(op);
            ASSERT_EQ(read.err, 0) << fi_strerror(read.err);
            EXPECT_EQ(read.flags & (FI_RMA | FI_READ), FI_RMA | FI_READ);
            EXPECT_EQ(difference(got.data(), wanted), "");
            EXPECT_EQ(got[size], 0xee);
          }
        link.put(~std::size_t{0});
      },
      [&](Node& node, Region& region, Link& link) {
        for (;;) {
          const auto size = link.get<std::size_t>();
          if (size == ~std::size_t{0} || HasFatalFailure()) return;
          const auto wanted = pattern(size, link.get<std::uint64_t>());
          EXPECT_TRUE(
              node.await_until([&] { return difference(region.data() + offset, wanted).empty(); }));
          EXPECT_EQ(region.data()[offset - 1], 0) << "written in front of the place";
          link.meet();
        }
      });
}

TEST_P(Rma, several_remote_parts) {
  with_region(
      mib, remote,
      [&](Node& node, fi_addr_t peer, std::uint64_t address, std::uint64_t key, Link&) {
        if (node.info->tx_attr->rma_iov_limit < 2 || node.info->tx_attr->iov_limit < 2) return;
        for (const std::size_t size : {std::size_t{30}, 10 * kib, 300 * kib}) {
          const auto bytes = pattern(size, size);
          const auto parts = parts_of(bytes.data(), size, {size / 3});
          const std::size_t first = size / 2;
          const fi_rma_iov targets[] = {{address + 8, first, key},
                                        {address + 500 * kib, size - first, key}};
          Op op;
          const fi_msg_rma msg{parts.data(), nullptr, parts.size(), peer, targets, 2, &op, 0};
          ASSERT_EQ(node.post([&] { return fi_writemsg(node.ep.get(), &msg, 0); }), 0);
          ASSERT_EQ(node.await(op).err, 0);
          std::vector<std::uint8_t> got(size);
          const auto into = parts_of(got.data(), size, {1});
          const fi_msg_rma back{into.data(), nullptr, into.size(), peer, targets, 2, &op, 0};
          ASSERT_EQ(node.post([&] { return fi_readmsg(node.ep.get(), &back, 0); }), 0);
          ASSERT_EQ(node.await(op).err, 0);
          EXPECT_EQ(difference(got.data(), bytes), "");
        }
      },
      [](Node&, Region&, Link&) {});
}

TEST_P(Rma, data_arrives_after_the_bytes) {
  with_region(
      mib, remote,
      [&](Node& node, fi_addr_t peer, std::uint64_t address, std::uint64_t key, Link& link) {
        std::uint64_t seed = 0;
        for (const std::size_t size : {std::size_t{8}, 4 * kib, mib})
          for (const int form : {0, 1, 2}) {
            if (form == 2 && size > node.info->tx_attr->inject_size) continue;
            const auto bytes = pattern(size, ++seed);
            Op op;
            const auto parts = parts_of(bytes.data(), size, {});
            const fi_rma_iov target{address, size, key};
            const fi_msg_rma msg{parts.data(), nullptr, 1, peer, &target, 1, &op, 0x70 + seed};
            ASSERT_EQ(node.post([&]() -> ssize_t {
              fid_ep* ep = node.ep.get();
              if (form == 0)
                return fi_writedata(ep, bytes.data(), size, nullptr, 0x70 + seed, peer, address,
                                    key, &op);
              if (form == 1) return fi_writemsg(ep, &msg, FI_REMOTE_CQ_DATA);
              return fi_inject_writedata(ep, bytes.data(), size, 0x70 + seed, peer, address, key);
            }),
                      0);
            link.put(size);
            link.put(seed);
            if (form != 2) {
              EXPECT_EQ(node.await(op).err, 0);
            }
            link.meet();
          }
        link.put(~std::size_t{0});
      },
      [&](Node& node, Region& region, Link& link) {
        for (;;) {
          const auto size = link.get<std::size_t>();
          if (size == ~std::size_t{0} || HasFatalFailure()) return;
          const auto seed = link.get<std::uint64_t>();
          const Completion told = node.next();
          EXPECT_EQ(told.err, 0);
          EXPECT_EQ(told.op, nullptr);
          EXPECT_EQ(told.flags & (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_RECV),
                    FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
          EXPECT_EQ(told.data, 0x70 + seed);
          EXPECT_EQ(difference(region.data(), pattern(size, seed)), "");
          link.meet();
        }
      });
}

// The initiator gets an error, the target goes on unharmed, and its other memory is untouched.
TEST_P(Rma, what_is_not_granted_is_not_reached) {
  constexpr std::size_t bytes = 64 * kib;
  with_region(
      bytes, FI_REMOTE_READ,
      [&](Node& node, fi_addr_t peer, std::uint64_t address, std::uint64_t key, Link& link) {
        if (!provider_is_haul()) {  // others need not enforce it, or crash
          link.meet();
          return;
        }
        const struct {
          const char* name;
          bool write;
          std::uint64_t address, key;
          std::size_t size;
        } attempts[] = {{"a wrong key", false, address, key + 1, 8},
                        {"a wrong key, large", false, address, key ^ 0x55, 64 * kib},
                        {"behind the end", false, address + bytes - 4, key, 8},
                        {"far behind", false, address + (std::uint64_t{1} << 40), key, 8},
                        {"in front", false, address - 8, key, 8},
                        {"wrapping around", false, ~std::uint64_t{0} - 3, key, 8},
                        {"longer than all", false, address, key, 64 * kib + 1},
                        {"a write, but reads alone are granted", true, address, key, 8},
                        {"a large write, likewise", true, address, key, 64 * kib}};
        for (const auto& attempt : attempts) {
          SCOPED_TRACE(attempt.name);
          std::vector<std::uint8_t> local(attempt.size, 0x77);
          Op op;
          const ssize_t status = node.post([&] {
            fid_ep* ep = node.ep.get();
            return attempt.write ? fi_write(ep, local.data(), local.size(), nullptr, peer,
                                            attempt.address, attempt.key, &op)
                                 : fi_read(ep, local.data(), local.size(), nullptr, peer,
                                           attempt.address, attempt.key, &op);
          });
          ASSERT_EQ(status, 0);
          const int error = node.await(op).err;
          EXPECT_TRUE(error == FI_EACCES || error == FI_EKEYREJECTED) << fi_strerror(error);
        }
        std::vector<std::uint8_t> local(bytes);
        Op op;
        ASSERT_EQ(node.post([&] {
          return fi_read(node.ep.get(), local.data(), bytes, nullptr, peer, address, key, &op);
        }),
                  0);
        EXPECT_EQ(node.await(op).err, 0) << "after the refusals nothing works any more";
        link.meet();
      },
      [](Node&, Region& region, Link& link) {
        link.meet();  // the attempts are over
        EXPECT_EQ(std::count(region.bytes().begin(), region.bytes().end(), 0),
                  static_cast<long>(region.bytes().size()));
      });
}

std::vector<std::tuple<Mode, Surrounding>> combinations() {
  std::vector<std::tuple<Mode, Surrounding>> all;
  for (const Mode& mode : modes) {
    all.emplace_back(mode, Surrounding::one_process);
    all.emplace_back(mode, Surrounding::two_processes);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Remote, Rma, testing::ValuesIn(combinations()),
                         [](const testing::TestParamInfo<std::tuple<Mode, Surrounding>>& which) {
                           return std::string(std::get<Mode>(which.param).name) + "_" +
                                  name_of(std::get<Surrounding>(which.param));
                         });

TEST(Regions, a_key_is_taken_once) {
  Node node(Wish{.caps = FI_RMA, .mr_mode = 0});
  if (!node.ready()) GTEST_SKIP() << node.why();
  {
    Region one(node, 64, remote, 17);
    ASSERT_EQ(one.status(), 0);
    const Region two(node, 64, remote, 17);
    EXPECT_EQ(two.status(), -FI_ENOKEY);
  }
  const Region again(node, 64, remote, 17);
  EXPECT_EQ(again.status(), 0) << "the key of a closed region is free";
  const Region zero(node, 64, remote, 0);
  EXPECT_EQ(zero.status(), 0);
}

TEST(Regions, keys_of_the_provider_differ) {
  Node node(Wish{.caps = FI_RMA});
  if (!node.ready()) GTEST_SKIP() << node.why();
  if ((node.info->domain_attr->mr_mode & FI_MR_PROV_KEY) == 0) GTEST_SKIP() << "keys are ours";
  const Region one(node, 64, remote), two(node, 64, remote);
  ASSERT_EQ(one.status(), 0);
  ASSERT_EQ(two.status(), 0);
  EXPECT_NE(one.key(), two.key());
  EXPECT_NE(one.key(), static_cast<std::uint64_t>(FI_KEY_NOTAVAIL));
}

TEST(Regions, of_two_buffers) {
  Pair pair(Wish{.caps = FI_RMA});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (pair.b.info->domain_attr->mr_iov_limit < 2) GTEST_SKIP() << "one buffer a region";
  std::vector<std::uint8_t> first(1000), second(1000);
  const iovec parts[] = {{first.data(), 1000}, {second.data(), 1000}};
  fid_mr* raw = nullptr;
  ASSERT_EQ(fi_mr_regv(pair.b.domain, parts, 2, remote, 0, 33, 0, &raw, nullptr), 0);
  const Owned<fid_mr> region{raw};
  if ((pair.b.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0) return;
  const auto bytes = pattern(200, 1);
  Op op;
  ASSERT_EQ(pair.a.post([&] {
    return fi_write(pair.a.ep.get(), bytes.data(), 200, nullptr, pair.to_b, 900, fi_mr_key(raw),
                    &op);
  }),
            0);
  EXPECT_EQ(pair.a.await(op).err, 0);
  EXPECT_EQ(difference(first.data() + 900, {bytes.begin(), bytes.begin() + 100}), "");
  EXPECT_EQ(difference(second.data(), {bytes.begin() + 100, bytes.end()}), "");
}

TEST(Regions, a_closed_one_is_not_reached) {
  Pair pair(Wish{.caps = FI_RMA});
  if (!pair.ready()) GTEST_SKIP() << pair.why();
  if (!provider_is_haul()) GTEST_SKIP() << "undefined elsewhere";
  std::uint64_t key = 0, address = 0;
  {
    const Region region(pair.b, 64, remote, 5);
    key = region.key();
    address = region.address();
  }
  char byte = 0;
  Op op;
  ASSERT_EQ(pair.a.post([&] {
    return fi_read(pair.a.ep.get(), &byte, 1, nullptr, pair.to_b, address, key, &op);
  }),
            0);
  const int error = pair.a.await(op).err;
  EXPECT_TRUE(error == FI_EACCES || error == FI_EKEYREJECTED) << fi_strerror(error);
}

}  // namespace
}  // namespace fabric_test
