#include "devices/dsa/parts.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/os/keep_errno.hpp"

namespace haul::dsa {
namespace {

constexpr std::uintptr_t page_bytes = 4096;
// Pages are made for so many bytes at a time: a poll that took much longer would stall its caller.
constexpr std::size_t populated_bytes = std::size_t{1} << 21;
// A rest is handed over so often at most, more for long pieces; and so often without any progress.
constexpr unsigned most_tries = 64;
constexpr std::size_t bytes_of_a_try = std::size_t{1} << 18;
constexpr unsigned most_idle_tries = 4;

std::uint64_t address_of(const volatile void* object) {
  return reinterpret_cast<std::uintptr_t>(object);
}

void clear(dsa_completion_record& record) {
  std::memset(const_cast<void*>(static_cast<const volatile void*>(&record)), 0, sizeof record);
}

std::uint8_t status_of(const dsa_completion_record& record) {
  // Pairs with the device's write of the record, after all that it has moved.
  return __atomic_load_n(&record.status, __ATOMIC_ACQUIRE);
}

}  // namespace

void Parts::begin(const Piece& whole, const WorkQueue& queue) {
  piece = whole;
  part_bytes = queue.most_transfer;
  count = static_cast<unsigned>((whole.length + part_bytes - 1) / part_bytes);
  part = 0;
  good_bytes = 0;
  in_batch = false;
  tries_left = most_tries + static_cast<unsigned>(whole.length / bytes_of_a_try);
  idle_tries = 0;
}

std::size_t Parts::bytes_of(unsigned number) const {
  return std::min(part_bytes, piece.length - number * part_bytes);
}

// The descriptor of a part, whose first `done` bytes are there.
void Parts::fill_in(unsigned number, std::size_t done, const WorkQueue& queue) {
  const std::size_t at = number * part_bytes + done;
  dsa_hw_desc& descriptor = list[number];
  std::memset(&descriptor, 0, sizeof descriptor);
  clear(ends[number]);
  unsigned flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  if (queue.blocks_on_fault) flags |= IDXD_OP_FLAG_BOF;
  if (piece.dst_affinity != Affinity::non_cacheable) flags |= IDXD_OP_FLAG_CC;
  descriptor.flags = flags & 0xff'ffff;
  descriptor.completion_addr = address_of(&ends[number]);
  descriptor.dst_addr = piece.dst + at;
  descriptor.xfer_size = static_cast<std::uint32_t>(bytes_of(number) - done);
  if (piece.operation == Operation::fill) {
    descriptor.opcode = DSA_OPCODE_MEMFILL;
    // (Byte i of a piece is byte i % 8 of its pattern.)
    descriptor.pattern = std::rotr(piece.pattern, static_cast<int>(at % 8 * 8));
  } else {
    descriptor.opcode = DSA_OPCODE_MEMMOVE;
    descriptor.src_addr = piece.src + at;
  }
}

const dsa_hw_desc& Parts::describe(const WorkQueue& queue) {
  in_batch = count > 1 && part == 0 && good_bytes == 0 && idle_tries == 0;
  if (!in_batch) {
    fill_in(part, good_bytes, queue);
    return list[part];
  }
  for (unsigned number = 0; number < count; ++number) fill_in(number, 0, queue);
  std::memset(&batch, 0, sizeof batch);
  clear(batch_end);
  batch.opcode = DSA_OPCODE_BATCH;
  batch.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  batch.completion_addr = address_of(&batch_end);
  batch.desc_list_addr = address_of(list);
  batch.desc_count = count;
  return batch;
}

bool Parts::has_ended() const {
  return status_of(in_batch ? batch_end : ends[part]) != DSA_COMP_NONE;
}

// Of the part at `part`, by its record; what is good of it is added.
Ended Parts::judge() {
  const dsa_completion_record& end = ends[part];
  const std::uint8_t status = status_of(end);
  switch (status & DSA_COMP_STATUS_MASK) {
    case DSA_COMP_NONE: return Ended::not_begun;
    case DSA_COMP_SUCCESS: good_bytes = bytes_of(part); return Ended::well;
    case DSA_COMP_PAGE_FAULT_NOBOF:
    case DSA_COMP_PAGE_FAULT_IR: {
      const std::size_t asked = bytes_of(part) - good_bytes;
      if (end.bytes_completed >= asked) return Ended::badly;  // it stopped nowhere
      // (The other result: it has begun at the end, as for sides that overlap. Then nothing is good
      // from the front.)
      const std::size_t more = end.result == 0 ? end.bytes_completed : 0;
      good_bytes += more;
      idle_tries = more != 0 ? 0 : idle_tries + 1;
      return Ended::at_a_page;
    }
    default: return Ended::badly;
  }
}

void Parts::publish() {
  if (whole_bytes() != 0) piece.watermark.publish(whole_bytes());
}

void Parts::show_progress() {
  const unsigned before = part;
  while (part < count && status_of(ends[part]) == DSA_COMP_SUCCESS) ++part;
  if (part != before) publish();
}

Ended Parts::look() {
  for (; part < count; ++part, good_bytes = 0) {
    const Ended ended = judge();
    if (ended == Ended::well) continue;
    publish();
    return ended;
  }
  publish();
  return Ended::well;
}

Code Parts::mend() {
  if (tries_left == 0 || idle_tries > most_idle_tries) return Code::io;
  --tries_left;
  const std::uint8_t status = status_of(ends[part]);
  const std::uintptr_t side =
      (status & DSA_COMP_STATUS_WRITE) != 0 || piece.operation == Operation::fill ? piece.dst
                                                                                  : piece.src;
  const std::uintptr_t begin = (side + whole_bytes()) & ~(page_bytes - 1);
  const std::size_t rest = std::min(bytes_of(part) - good_bytes, populated_bytes);
  const std::uintptr_t end = (side + whole_bytes() + rest + page_bytes - 1) & ~(page_bytes - 1);
  const KeepErrno keep_errno;
  if (madvise(reinterpret_cast<void*>(begin), end - begin,
              side == piece.dst ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
    return Code::ok;
  // What the kernel does not populate, or not in time, the device may reach all the same.
  return errno == ENOMEM || errno == EFAULT ? Code::fault : Code::ok;
}

}  // namespace haul::dsa
