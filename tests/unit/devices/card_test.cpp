// A card's rings without a card (devices/nic/card/): a model of it takes what the doorbells say
// from memory and puts it where posted buffers lie, and loses frames when it is told to. And where
// memory lies for a card.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "devices/nic/card/iova.hpp"
#include "devices/nic/card/wire.hpp"
#include "devices/nic/stream.hpp"

namespace haul::nic {
namespace {

TEST(IovaSpace, GivesWhatIsFreeAndNothingTwice) {
  IovaSpace space;
  space.offer({0, 0x10'000});
  space.offer({0x20'000, 0x40'000});
  EXPECT_EQ(space.take(0x4000), 0x1000u);
  EXPECT_EQ(space.take(1), 0x5000u);
  EXPECT_EQ(space.take(0xa001), 0x20'000u);  // it has no place in the first range any more
  EXPECT_EQ(space.take(0xa000), 0x6000u);
  EXPECT_EQ(space.take(0x20'000), 0u);
  space.give_back(0x5000);
  EXPECT_EQ(space.take(0x2000), 0x2b'000u);
  EXPECT_EQ(space.take(0x1000), 0x5000u);
  EXPECT_EQ(space.take(0), 0u);
}

TEST(IovaSpace, IsSoundWhateverIsTakenAndGivenBack) {
  IovaSpace space;
  constexpr std::uint64_t end = 0x200'000;
  space.offer({0x1000, end});
  std::mt19937_64 random(3);
  std::vector<IovaRange> taken;
  for (unsigned turn = 0; turn < 20'000; ++turn) {
    if (random() % 2 == 0 && !taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      space.give_back(taken.back().begin);
      taken.pop_back();
      continue;
    }
    const std::uint64_t bytes = (1 + random() % 8) * 0x1000, begin = space.take(bytes);
    if (begin == 0) continue;
    ASSERT_LE(begin + bytes, end);
    for (const IovaRange& other : taken)
      ASSERT_TRUE(begin + bytes <= other.begin || other.end <= begin);
    taken.push_back({begin, begin + bytes});
  }
}

constexpr std::size_t buffer_bytes = 256, frame_bytes = 8 * buffer_bytes;

// Its registers are memory, and it finds the program's memory at the program's addresses.
class CardInMemory {
 public:
  explicit CardInMemory(std::uint16_t device)
      : memory_(CardWire::memory_bytes(buffer_bytes, frame_bytes) + 4096) {
    const auto at = (reinterpret_cast<std::uintptr_t>(memory_.data()) + 4095) & ~4095ull;
    wire.place(reinterpret_cast<void*>(at), at, buffer_bytes, frame_bytes,
               card_model(0x8086, device)->part_boundary);
    registers_[0x0008 / 4] = 2;  // it has a link
    card.reset(*card_model(0x8086, device), registers_);
    EXPECT_TRUE(card.start(wire.receive_ring(), wire.send_ring(), buffer_bytes, false));
  }

  // Moves what there is to move; of so many frames in a hundred loses one, and cuts one short.
  void run(unsigned percent) {
    const CardRing ring = wire.send_ring();
    while (sent_ != registers_[0x3818 / 4]) {
      std::vector<unsigned char> frame;
      for (bool ends = false; !ends; sent_ = (sent_ + 1) % ring.entries) {
        auto& part = reinterpret_cast<CardDescriptor*>(ring.iova)[sent_];
        const auto* bytes = reinterpret_cast<const unsigned char*>(part.address);
        frame.insert(frame.end(), bytes, bytes + (part.state & 0xffff));
        ends = (part.state >> 24 & 1) != 0;
        if ((part.state >> 27 & 1) != 0) part.state |= CardDescriptor::done;
      }
      if (random_() % 100 < percent) continue;
      if (random_() % 100 < percent) frame.resize(1 + random_() % frame.size());
      receive(frame);
    }
  }

  GigabitCard card;
  CardWire wire;

 private:
  void receive(const std::vector<unsigned char>& frame) {
    const CardRing ring = wire.receive_ring();
    const std::uint32_t tail = registers_[0x2818 / 4];
    const std::uint32_t room = (tail + ring.entries - received_) % ring.entries;
    if (frame.size() > room * buffer_bytes) return;
    for (std::size_t at = 0; at < frame.size(); at += buffer_bytes) {
      auto& buffer = reinterpret_cast<CardDescriptor*>(ring.iova)[received_];
      const std::size_t bytes = std::min(buffer_bytes, frame.size() - at);
      std::memcpy(reinterpret_cast<void*>(buffer.address), frame.data() + at, bytes);
      buffer.state = CardDescriptor::received(bytes, at + bytes == frame.size());
      received_ = (received_ + 1) % ring.entries;
    }
  }

  std::vector<unsigned char> memory_;
  volatile std::uint32_t registers_[0x6000 / 4] = {};
  std::uint32_t sent_ = 0, received_ = 0;
  std::mt19937_64 random_{5};
};

// As CardLane does it (card_lane.cpp). Returns how often it began again.
unsigned copy(CardInMemory& one, const std::vector<unsigned char>& from,
              std::vector<unsigned char>& to, unsigned percent, unsigned trial_percent) {
  FragmentStream stream;
  FrameTrial trial;
  trial.start(trial_percent);
  stream.start(frame_bytes - buffer_bytes, 20);
  Load load;
  load.dst = reinterpret_cast<std::uintptr_t>(to.data());
  load.src = reinterpret_cast<std::uintptr_t>(from.data());
  load.length = from.size();
  load.end = load.length % buffer_bytes;
  stream.add(load);
  static std::uint64_t key = 77;
  ++key;
  bool clearing = false;
  Finished finished{};
  unsigned turns = 0;
  constexpr std::uint64_t longest_ns = 600'000'000'000;
  for (std::uint64_t now = 0; now < longest_ns; now += 50'000) {
    std::uint32_t turn = 0;
    CardWire::Came came = CardWire::Came::nothing;
    while (!clearing &&
           (came = one.wire.look(key, stream.arrived(), &turn)) == CardWire::Came::fragment) {
      one.wire.take();
      stream.arrive(1, now);
    }
    if (came == CardWire::Came::other) stream.came_early();
    if (clearing) {
      clearing = !one.wire.clear(one.card, now);
    } else if (stream.give_up(now)) {
      ++turns;
      clearing = true;
      one.wire.begin_to_clear(now, 100'000);
    }
    if (stream.finish(&finished, 1) != 0) break;
    for (; !clearing && stream.sendable() != 0; stream.send(1, now)) {
      const Fragment fragment = stream.fragment(stream.sent());
      if (!one.wire.has_room(fragment.bytes / buffer_bytes + 1)) break;
      nic_header header{};
      header.key = key;
      header.sequence = stream.sent();
      header.bytes = static_cast<std::uint32_t>(fragment.bytes);
      one.wire.put(header, fragment.dst, fragment.src, trial);
    }
    one.wire.ring(one.card);
    one.run(percent);
    if (turns > 100'000) break;
  }
  EXPECT_EQ(finished.outcome.good_bytes, from.size());
  return turns;
}

void copy_all(unsigned percent, unsigned trial_percent, std::uint16_t device = 0x100e) {
  CardInMemory one(device);
  std::mt19937_64 random(9);
  unsigned turns = 0;
  for (unsigned piece = 0; piece < 60; ++piece) {
    std::vector<unsigned char> from(buffer_bytes + random() % 100'000), to(from.size() + 64, 0xaa);
    for (unsigned char& byte : from) byte = static_cast<unsigned char>(random());
    turns += copy(one, from, to, percent, trial_percent);
    ASSERT_EQ(std::memcmp(from.data(), to.data(), from.size()), 0);
    for (std::size_t at = from.size(); at < to.size(); ++at) ASSERT_EQ(to[at], 0xaa);
  }
  EXPECT_EQ(turns > 20, percent + trial_percent != 0);
}

TEST(CardWire, PlacesFramesExactly) {
  copy_all(0, 0);
}
TEST(CardWire, BeginsAgainWhereTheCardLosesFramesOrCutsThemShort) {
  copy_all(2, 0);
}
TEST(CardWire, BeginsAgainWhereFramesAreLostRepeatedAndOvertaken) {
  copy_all(0, 3);
}

TEST(CardWire, SendsInPartsThatCrossNoBoundary) {
  copy_all(0, 0, 0x10d3);
  copy_all(2, 2, 0x10d3);
}

TEST(CardModel, IsFoundByItsNumbers) {
  EXPECT_STREQ(card_model(0x8086, 0x10d3)->name, "82574L");
  EXPECT_EQ(card_model(0x8086, 0x1234), nullptr);
  EXPECT_EQ(card_model(0x1234, 0x10d3), nullptr);
}

}  // namespace
}  // namespace haul::nic
