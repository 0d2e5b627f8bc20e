// A writer follows the distance between its core and the reader's.
#include <gtest/gtest.h>

#include "sizes.hpp"
#include "unit/fabric/harness.hpp"

namespace haul::fabric::test {
namespace {

class RingDistance : public testing::Test {
 protected:
  RingDistance() {
    near_.part_bytes = 4 * kib;
    far_.part_bytes = 16 * kib;
    far_.copies_in = HaulPrivateCopy::prefetching;
    far_.copies_out = HaulPrivateCopy::vectors;
  }

  void write(std::size_t bytes, std::uint32_t flags = 0) {
    const Outbox::Slot slot = outbox_.reserve(bytes, Outbox::Lane::eager);
    ASSERT_NE(slot.header, nullptr);
    *slot.header = Header{};
    slot.header->kind = PacketKind::message;
    slot.header->flags = static_cast<decltype(slot.header->flags)>(flags);
    slot.header->payload = static_cast<std::uint32_t>(bytes);
    slot.header->far.length = 3 * bytes;
    outbox_.commit();
    ReceivedPacket packet;
    ASSERT_EQ(inbox_.receive(packet), Inbox::Got::packet);
    inbox_.release();
  }
  // How a receiver is told to copy a packet out.
  HaulPrivateCopy copies_out() {
    const Outbox::Slot slot = outbox_.reserve(64, Outbox::Lane::eager);
    *slot.header = Header{};
    slot.header->kind = PacketKind::message;
    slot.header->payload = 64;
    outbox_.commit();
    ReceivedPacket packet;
    EXPECT_EQ(inbox_.receive(packet), Inbox::Got::packet);
    inbox_.release();
    return packet.copies_out;
  }
  // All CPUs share one cache here, wherever this thread is moved to.
  static int cache_of(int) noexcept { return 6; }
  static constexpr std::uint32_t own = 7;
  // As much as a writer writes before it looks again.
  void write_a_quarter() {
    for (std::size_t bytes = 0; bytes <= ring_bytes / 4; bytes += 8 * kib) write(8 * kib);
  }

  std::unique_ptr<RingSegment, Unmap> segment_{map_segment()};
  RingOutbox outbox_{*segment_, [](void*) noexcept {}, nullptr, HaulPrivateRing{}};
  RingInbox inbox_{*segment_};
  HaulPrivateRing near_, far_;
  std::atomic<std::uint32_t> reader_{0};
};

TEST_F(RingDistance, AReaderOfWhichNothingIsKnownIsNear) {
  outbox_.follow({&near_, &far_, cache_of, &inbox_, nullptr});
  EXPECT_EQ(outbox_.part_bytes, near_.part_bytes);
  outbox_.follow({&near_, &far_, cache_of, &inbox_, &reader_});
  EXPECT_EQ(outbox_.part_bytes, near_.part_bytes);
}

TEST_F(RingDistance, IsLookedAtAgainOnceInAQuarterOfTheRing) {
  reader_ = own;
  outbox_.follow({&near_, &far_, cache_of, &inbox_, &reader_});
  EXPECT_EQ(segment_->writer_cache.load(), own) << "the reader's own ring follows it";
  EXPECT_EQ(outbox_.part_bytes, near_.part_bytes);
  reader_ = own + 1;
  write(64);
  EXPECT_EQ(outbox_.part_bytes, near_.part_bytes) << "not with each packet";
  write_a_quarter();
  EXPECT_EQ(outbox_.part_bytes, far_.part_bytes);
  EXPECT_EQ(outbox_.copies_in, far_.copies_in);
  EXPECT_EQ(copies_out(), far_.copies_out) << "the inbox follows";
  reader_ = 0;
  write_a_quarter();
  EXPECT_EQ(outbox_.part_bytes, near_.part_bytes);
  EXPECT_EQ(outbox_.copies_in, near_.copies_in);
  EXPECT_EQ(copies_out(), near_.copies_out);
}

// The sender has found room for all parts of the size that a part had.
TEST_F(RingDistance, IsLeftAloneBetweenThePartsOfAMessage) {
  outbox_.follow({&near_, &far_, cache_of, &inbox_, &reader_});
  reader_ = 0x7fffffff;
  write(30 * kib, packet_parts);
  write(30 * kib);
  write(30 * kib);
  outbox_.follow({&near_, &far_, cache_of, &inbox_, &reader_});
  EXPECT_EQ(outbox_.part_bytes, far_.part_bytes);
  reader_ = 0;
  write(30 * kib, packet_parts);  // of 90 KiB: two more will come
  write(30 * kib, packet_parts);
  EXPECT_EQ(outbox_.part_bytes, far_.part_bytes);
}

TEST_F(RingDistance, ChangesOfHowPacketsAreWrittenHoldForWhatIsBeyondTheRingToo) {
  HaulPrivateRing beyond;
  beyond.eager_bytes = beyond.part_bytes = beyond.piece_bytes = SIZE_MAX;
  outbox_.write_as(beyond);
  EXPECT_EQ(outbox_.eager_bytes, in_parts_bytes);
  EXPECT_EQ(outbox_.packet_bytes, ring_packet_bytes);
  EXPECT_EQ(outbox_.part_bytes, ring_packet_bytes);
  EXPECT_EQ(outbox_.piece_bytes, large_cell_bytes);
}

}  // namespace
}  // namespace haul::fabric::test
