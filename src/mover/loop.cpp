// The rounds of a mover. It walks the rings in use, of each of which it remembers the next seq to
// look at, and takes one chunk a ring and round, so that no thread's requests starve another's. A
// synchronous engine moves the chunk at once; an asynchronous one's channel takes it, several at a
// time, and is polled at the beginning of each round. The mover never waits for another worker: a
// chunk that a waiter has claimed is that waiter's, and a request that a fence holds back is looked
// at again.
#include "mover/loop.hpp"

#include <algorithm>
#include <utility>

#include "base/os/os.hpp"
#include "engine/registry.hpp"
#include "execution/counters.hpp"
#include "execution/own_rings.hpp"
#include "request/rights.hpp"

namespace haul {
namespace {

// The process's user, and the mover's rights with it, may have changed since the request was made.
bool acts_for(RightsNumber asker) noexcept {
  const RightsNumber mine = rights_number();
  note_mover_rights(mine);
  return mine == asker;
}

}  // namespace

void MoverLoop::begin() noexcept {
  // The fork may have interrupted make_room(), so the memory that the tables lay in is abandoned.
  room_ = 0;
  seated_ = 0;
  seated_version_ = rings_in_use.version() - 1;
}

bool MoverLoop::round() noexcept {
  bool busy = poll_channels();
  if (const std::uint32_t version = rings_in_use.version(); version != seated_version_) [[unlikely]]
    seat_rings(version);
  for (std::uint32_t i = 0; i < seated_; ++i) busy |= visit(seats_[i]);
  return busy;
}

// Enlarges both tables. False if there is no memory: they stay as they were.
bool MoverLoop::make_room(std::uint32_t wanted) noexcept {
  if (room_ == 0) {
    seats_ = own_seats_[0];
    spare_ = own_seats_[1];
    room_ = first_seats;
  }
  if (wanted <= room_) return true;
  std::uint32_t room = room_;
  while (room < wanted) room *= 2;
  auto* const fresh = static_cast<Seat*>(os::map_anonymous(2 * sizeof(Seat) * room));
  if (fresh == nullptr) return false;
  std::copy(seats_, seats_ + seated_, fresh);
  if (room_ != first_seats) os::unmap(std::min(seats_, spare_), 2 * sizeof(Seat) * room_);
  seats_ = fresh;
  spare_ = fresh + room;
  room_ = room;
  return true;
}

// Rings that were seated before keep their cursors; new ones begin behind everything that has
// ended.
void MoverLoop::seat_rings(std::uint32_t version) noexcept {
  std::uint32_t wanted = 0;
  for_each_ring([&](Ring&) { ++wanted; });
  // More rings may come meanwhile, and the version then tells. Where there is no memory for all,
  // the last ones' requests are carried out by the threads that wait for them.
  make_room(wanted);
  std::uint32_t count = 0, old = 0;
  for_each_ring([&](Ring& ring) {
    if (count == room_) return;
    while (old < seated_ && seats_[old].ring->index < ring.index) ++old;
    const bool known = old < seated_ && seats_[old].ring == &ring;
    // Requests that a child inherited unfinished are not a mover's (inherit.hpp).
    const std::uint64_t first =
        std::max(ring.finished_below(), ring.inherited_below.load(std::memory_order_relaxed));
    spare_[count++] = Seat{&ring, known ? seats_[old].cursor : first};
  });
  std::swap(seats_, spare_);
  seated_ = count;
  seated_version_ = version;
}

bool MoverLoop::visit(Seat& seat) noexcept {
  Ring& ring = *seat.ring;
  for (;;) {
    const std::uint64_t seq = seat.cursor;
    const std::uint64_t published = ring.published_seq(seq);
    if (published < seq) return false;
    if (published > seq) {
      // That tenancy is over: helpers were faster. So is every one whose slot has been used again.
      seat.cursor = std::max(seq + 1, published - Ring::slots + 1);
      continue;
    }
    Job job;
    if (!ring.read(seq, &job)) continue;
    const Tenancy tenancy = ring.tenancy(seq);
    if (job.service) {  // not ours
      ++seat.cursor;
      continue;
    }
    if (!tenancy.claimable(job.chunks)) {
      ++seat.cursor;
      continue;
    }
    if (ring.abandoned.load(std::memory_order_relaxed)) return false;
    // A fence holds it back: nobody rings the bell when the fence opens, so the mover must not fall
    // asleep meanwhile.
    if (job.fence && ring.first_unfinished(seq) != seq) return true;
    if (!is_asynchronous(job.engine)) {
      if (take_chunk(ring, job, tenancy, nullptr)) return true;
      continue;
    }
    const ChannelTurn turn(channel_of(ring, job));
    if (!turn) return true;  // another thread is at it
    if (turn->has_room()) {
      if (take_chunk(ring, job, tenancy, turn.channel())) return true;
      continue;
    }
    // The channel is full: meanwhile this mover's CPU does one itself, where it may.
    if (job.checked || !cpu_engine().reaches(job.operation, job.dst_space, job.src_space))
      return true;
    job.engine = cpu_index;
    if (take_chunk(ring, job, tenancy, nullptr)) return true;
  }
}

// False: none was left.
bool MoverLoop::take_chunk(Ring& ring, const Job& job, const Tenancy& tenancy,
                           Channel* channel) noexcept {
  const int chunk = ring.claim(tenancy, job.chunks);
  if (chunk < 0) return false;
  // The owner wrote it before it published the request, so it is dirty in the owner's cache.
  drift.sample(ring.publishing);
  count_moved_chunk();
  const auto number = static_cast<unsigned>(chunk);
  if (job.rights != nobodys && !acts_for(job.rights)) {
    refuse_here(ring, job, number);
  } else if (channel == nullptr) {
    run_here(ring, job, number);
  } else {
    channel->carry(ring, job, number);
  }
  return true;
}

}  // namespace haul
