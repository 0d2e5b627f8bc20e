// Messages that a device of the receiver's moves out of the sender's memory, which it maps: the
// engine `uring`, which opens without hardware, and registers what it moves.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <haul/haul.h>

#include <cstring>

#include "sides.hpp"
#include "transfer.hpp"

namespace fabric_test {
namespace {

// Of the libhaul that the provider has loaded.
template <class Function>
Function* function_of_haul(const char* name) {
  static void* const library = dlopen("libhaul.so.0", RTLD_NOW | RTLD_NOLOAD);
  return library != nullptr ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

haul_engine_info engine_info(const char* name) {
  haul_engine_info info{};
  info.size = sizeof info;
  auto* const engine = function_of_haul<decltype(haul_engine)>("haul_engine");
  for (unsigned index = 0; engine != nullptr && engine(index, &info) == 0; ++index)
    if (std::strcmp(info.name, name) == 0) return info;
  return haul_engine_info{};
}

constexpr std::size_t most_bytes = 4 * mib + 5;
constexpr std::uint64_t rounds = 2000;

void send_all(Node& node, fi_addr_t peer, Link& link) {
  auto* const alloc = function_of_haul<decltype(haul_alloc)>("haul_alloc");
  ASSERT_NE(alloc, nullptr);
  auto* const memory = static_cast<std::uint8_t*>(alloc(most_bytes));
  ASSERT_NE(memory, nullptr);
  for (std::uint64_t round = 0;; ++round) {
    const auto size = link.get<std::size_t>();
    if (size == 0) break;
    const auto sent = pattern(size, round);
    std::memcpy(memory, sent.data(), size);
    Op op;
    ASSERT_EQ(send(node, {.to = peer, .tag = round}, memory, size, op), 0);
    ASSERT_EQ(node.await(op).err, 0);
  }
}

// Until enough of them have gone by the engine, which opens meanwhile.
void receive_all(Node& node, fi_addr_t, Link& link) {
  std::uint64_t by_engine = 0;
  for (std::uint64_t round = 0; round < rounds && by_engine < 40 * mib; ++round) {
    const std::size_t size = round % 7 == 0 ? most_bytes - round : 200 * kib + 37 * round;
    std::vector<std::uint8_t> got(size + 64, 1);
    Op op;
    ASSERT_EQ(receive(node, {.tag = round}, got.data() + round % 61, size, op), 0);
    link.put(size);
    const Completion received = node.await(op);
    ASSERT_EQ(received.err, 0) << fi_strerror(received.err);
    ASSERT_EQ(difference(got.data() + round % 61, pattern(size, round)), "") << size << " bytes";
    by_engine = engine_info("uring").bytes;
    if (std::strstr(engine_info("uring").status, "refuses") != nullptr) break;
  }
  link.put(std::size_t{0});
  const haul_engine_info info = engine_info("uring");
  if (info.available == 0) GTEST_SKIP() << "no io_uring for this user";
  EXPECT_GE(by_engine, 40 * mib) << info.status;
  // Whole messages, not the chunks of 64 KiB that both sides claim.
  EXPECT_GE(info.bytes / info.chunks, 100 * kib);
}

TEST(Devices, move_messages_out_of_memory_that_is_mapped) {
  const Wish wish{.caps = FI_TAGGED};
  if (!provider_is_haul() || !offered(wish)) GTEST_SKIP() << "not offered";
  // For the second process, which receives: this one has read its settings.
  setenv("HAUL_PLAN_ENGINE", "uring", 1);
  run_sides(Surrounding::two_processes, wish, send_all, receive_all);
  unsetenv("HAUL_PLAN_ENGINE");
}

}  // namespace
}  // namespace fabric_test
