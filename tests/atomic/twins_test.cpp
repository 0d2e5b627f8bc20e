// Two responders that must be one: the tables that host responders serve by, and the XDP program in
// the kernel (run by BPF_PROG_TEST_RUN). The same packets, hostile ones among them, get the same
// answers and leave the same memory.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>

#include "atomic/plugin/xdp_program.hpp"
#include "atomic/responder/tables.hpp"
#include "bench/remote/hosts/namespaces.hpp"
#include "fuzz/atomic_packets.hpp"

namespace haul::atomics::test {
namespace {

struct CloseXdp {
  void operator()(XdpProgram* xdp) const { xdp->close(); }
};

class Twins : public testing::Test {
 protected:
  static constexpr std::size_t pages = (Sender::window_bytes + 4095) / 4096;

  void SetUp() override {
    const std::string why = bench::why_no_namespaces();
    if (!why.empty()) GTEST_SKIP() << why;
    space = std::make_unique<bench::Namespace>();
    open(htons(4711));
  }
  void TearDown() override {
    if (mapped != MAP_FAILED) munmap(mapped, pages * 4096);
  }
  void open(std::uint16_t port, std::uint16_t client_port = 0) {
    const bench::Inside inside(*space);
    XdpOptions options;
    options.interface = if_nametoindex("lo");
    options.mode = XdpMode::generic;
    options.address = htonl(INADDR_LOOPBACK);
    options.port = port;
    options.client_port = client_port;
    options.sessions = Sender::sessions;
    Error error;
    xdp.reset(open_xdp(options, &error));
    ASSERT_TRUE(xdp) << error.sentence;
    const int fd = xdp->make_memory(pages, &error);
    ASSERT_GE(fd, 0) << error.sentence;
    mapped = mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const window_entry entry{Sender::key, Sender::address, Sender::window_bytes};
    ASSERT_TRUE(xdp->add_window(Sender::window, entry, fd, &error)) << error.sentence;
    ::close(fd);
    ASSERT_TRUE(tables.open(Sender::sessions));
    tables.add_window(Sender::window, entry, reinterpret_cast<char*>(memory));
  }

  std::unique_ptr<bench::Namespace> space;
  std::unique_ptr<XdpProgram, CloseXdp> xdp;
  void* mapped = MAP_FAILED;
  alignas(4096) unsigned char memory[pages * 4096] = {};
  Tables tables;
};

TEST_F(Twins, AnswerAlikeWhateverComes) {
  Sender sender;
  std::uint64_t answered = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto take = [&](void* to, std::size_t bytes) {
      auto* at = static_cast<unsigned char*>(to);
      for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(random());
    };
    for (int i = 0; i < 2000; ++i) {
      const Sender::Letter letter = sender.write(take);
      Sender::Letter here = letter, there = letter;
      WirePacket packet;
      std::memcpy(static_cast<void*>(&packet), letter.bytes, sizeof packet);
      const bool told = tables.serve(&packet, letter.size, letter.source(), 0);
      std::memcpy(here.bytes, &packet, sizeof packet);
      const std::size_t bytes = xdp->serve(there.bytes, letter.size, letter.address, letter.port);
      ASSERT_EQ(told ? letter.size : 0, bytes) << "packet " << i;
      if (!told) continue;
      ASSERT_EQ(std::memcmp(here.bytes, there.bytes, letter.size), 0) << "packet " << i;
      ++answered;
      sender.read(here);
    }
    ASSERT_EQ(std::memcmp(memory, mapped, sizeof memory), 0);
  }
  // Most of it got somewhere.
  EXPECT_GT(answered, 10'000u);
  EXPECT_GT(tables.count_of(SERVED_OPERATIONS), 10'000u);
  std::uint64_t counts[XDP_EVENTS] = {};
  xdp->counts(counts);
  for (unsigned event = 0; event < PASSED_OTHER; ++event) {
    EXPECT_EQ(counts[event], tables.count_of(event)) << "event " << event;
    // In flight: alone nobody meets another.
    if (event != DROPPED_IN_FLIGHT) {
      EXPECT_GT(counts[event], 0u) << "never tried: event " << event;
    }
  }
}

TEST_F(Twins, AProgramThatServesNobodyAnswersNobody) {
  xdp.reset();
  munmap(mapped, pages * 4096);
  open(0, htons(4712));
  WirePacket hello{};
  hello.header.magic = WIRE_MAGIC;
  hello.header.version = WIRE_VERSION;
  hello.header.kind = WIRE_HELLO;
  hello.header.session = 9;
  hello.header.window = Sender::window;
  hello.header.key = Sender::key;
  seal(&hello);
  EXPECT_EQ(xdp->serve(&hello, header_bytes, 0x0100007f, 5), 0u);
}

TEST_F(Twins, PacketsOfEveryLengthAreRead) {
  for (std::size_t bytes = 0; bytes <= sizeof(WirePacket); ++bytes) {
    WirePacket packet{};
    packet.header.magic = WIRE_MAGIC;
    packet.header.version = WIRE_VERSION;
    packet.header.kind = WIRE_REQUEST;
    packet.header.count = static_cast<__u8>((bytes - std::min(bytes, header_bytes)) / 32);
    seal(&packet);
    WirePacket there = packet;
    const bool told = tables.serve(&packet, bytes, 1, 0);
    EXPECT_EQ(xdp->serve(&there, bytes, 0, htons(1)), told ? bytes : 0) << bytes;
    EXPECT_EQ(told, bytes >= header_bytes && (bytes - header_bytes) % 32 == 0) << bytes;
  }
  WirePacket none{};
  EXPECT_EQ(xdp->serve(&none, sizeof none + 1, 0, 1), 0u);
}

}  // namespace
}  // namespace haul::atomics::test
