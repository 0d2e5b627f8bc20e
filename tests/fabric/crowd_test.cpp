// One endpoint with 512 peers: all of them are served, and each takes no more memory and no more
// descriptors than the design says.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "sides.hpp"

namespace fabric_test {
namespace {

// (A sanitizer keeps what was freed, and shadows what is used.)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double most_private_kib = 2000;
#else
constexpr double most_private_kib = 16;
#endif
std::uint32_t crowd = 512;  // fewer where the limit on open files allows no more
constexpr std::size_t large = 300 * kib;

struct Holding {
  std::size_t descriptors = 0, private_kib = 0, shared_kib = 0;  // resident
};

Holding holding_now() {
  Holding now;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    now.descriptors += !entry.path().empty();
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::size_t kib_there = 0;
    if (std::sscanf(line.c_str(), "RssAnon: %zu", &kib_there) == 1) now.private_kib = kib_there;
    if (std::sscanf(line.c_str(), "RssShmem: %zu", &kib_there) == 1) now.shared_kib = kib_there;
  }
  return now;
}

struct PerPeer {
  double descriptors, private_kib, shared_kib;
};
PerPeer since(const Holding& before, const char* when) {
  const Holding now = holding_now();
  const auto each = [](std::size_t later, std::size_t sooner) {
    return (double(later) - double(sooner)) / crowd;
  };
  const PerPeer grown{each(now.descriptors, before.descriptors),
                      each(now.private_kib, before.private_kib),
                      each(now.shared_kib, before.shared_kib)};
  std::printf("%s, for each peer: %.2f descriptors, %.1f KiB private, %.1f KiB shared\n", when,
              grown.descriptors, grown.private_kib, grown.shared_kib);
  return grown;
}

std::vector<std::uint8_t> said(std::uint32_t who, std::size_t bytes) {
  return pattern(bytes, who);
}

// The endpoint that has them all as peers: each sends to it and is answered.
void meet_crowd(Node& node, Link& link, std::size_t bytes, std::vector<fi_addr_t>& names) {
  std::vector<std::uint8_t> got(bytes);
  for (std::uint32_t i = 0; i < crowd; ++i) {
    Op receive, send;
    link.put(i);
    ASSERT_EQ(node.post([&] {
      return fi_trecv(node.ep.get(), got.data(), bytes, nullptr, FI_ADDR_UNSPEC, i, 0,
                      &receive.context);
    }),
              0);
    ASSERT_EQ(node.await(receive).err, 0);
    ASSERT_EQ(difference(got.data(), said(i, bytes)), "");
    ASSERT_EQ(node.post([&] {
      return fi_tsend(node.ep.get(), got.data(), bytes, nullptr, names[i], i, &send.context);
    }),
              0);
    ASSERT_EQ(node.await(send).err, 0);
  }
}

void be_met(std::vector<Node*>& nodes, std::vector<fi_addr_t>& names, Link& link,
            std::size_t bytes) {
  std::vector<std::uint8_t> got(bytes);
  for (std::uint32_t i = 0; i < crowd; ++i) {
    Node& node = *nodes[link.get<std::uint32_t>()];
    Op receive, send;
    const std::vector<std::uint8_t> mine = said(i, bytes);
    ASSERT_EQ(node.post([&] {
      return fi_trecv(node.ep.get(), got.data(), bytes, nullptr, names[i], i, 0, &receive.context);
    }),
              0);
    ASSERT_EQ(node.post([&] {
      return fi_tsend(node.ep.get(), mine.data(), bytes, nullptr, names[i], i, &send.context);
    }),
              0);
    ASSERT_EQ(node.await(send).err, 0);
    ASSERT_EQ(node.await(receive).err, 0);
    ASSERT_EQ(difference(got.data(), mine), "");
  }
}

TEST(Crowd, FiveHundredPeersAreServedWithinBounds) {
  // Two descriptors for each peer, and those of as many endpoints in the other process, which
  // inherits the limit.
  constexpr rlim_t descriptors_each = 8;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur =
      std::max(files.rlim_cur, std::min<rlim_t>(files.rlim_max, crowd * descriptors_each));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  crowd = static_cast<std::uint32_t>(std::min<rlim_t>(crowd, files.rlim_cur / descriptors_each));
  const Wish wish;
  if (!offered(wish)) GTEST_SKIP() << "the provider has no tagged messages";
  run_sides(
      Surrounding::two_processes, wish,
      [](Node& node, fi_addr_t, Link& link) {
        std::vector<fi_addr_t> names;
        for (std::uint32_t i = 0; i < crowd; ++i) {
          std::vector<std::byte> name(link.get<std::size_t>());
          link.get_bytes(name.data(), name.size());
          names.push_back(node.insert(name));
        }
        const Holding before = holding_now();
        meet_crowd(node, link, 8, names);
        PerPeer grown = since(before, "a small message each way");
        EXPECT_LE(grown.descriptors, 3);
        EXPECT_LE(grown.private_kib, most_private_kib);
        EXPECT_LE(grown.shared_kib, 64);
        meet_crowd(node, link, 8, names);
        meet_crowd(node, link, large, names);
        grown = since(before, "a large message each way");
        EXPECT_LE(grown.descriptors, 3);
        EXPECT_LE(grown.private_kib, most_private_kib);
        EXPECT_LE(grown.shared_kib, 2 * 904);
        link.meet();
      },
      [&wish](Node& node, fi_addr_t peer, Link& link) {
        const std::vector<std::byte> to = [&] {
          std::vector<std::byte> name(FI_NAME_MAX);
          std::size_t bytes = name.size();
          EXPECT_EQ(fi_av_lookup(node.av.get(), peer, name.data(), &bytes), 0);
          name.resize(bytes);
          return name;
        }();
        std::vector<std::unique_ptr<Node>> own;
        std::vector<Node*> nodes;
        std::vector<fi_addr_t> names;
        for (std::uint32_t i = 0; i < crowd; ++i) {
          own.push_back(std::make_unique<Node>(wish, node));
          ASSERT_TRUE(own.back()->ready()) << own.back()->why();
          nodes.push_back(own.back().get());
          names.push_back(nodes.back()->insert(to));
          const std::vector<std::byte> name = nodes.back()->name();
          link.put(name.size());
          link.put_bytes(name.data(), name.size());
        }
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{8}, large}) {
          be_met(nodes, names, link, bytes);
        }
        link.meet();
      });
}

}  // namespace
}  // namespace fabric_test
