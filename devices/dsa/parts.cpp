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

// (Byte i of a piece is byte i % 8 of its pattern.)
std::uint64_t pattern_at(const Piece& piece, std::size_t at) {
  return std::rotr(piece.pattern, static_cast<int>(at % 8 * 8));
}

// Has the step ended well, and found no difference?
bool has_succeeded(const dsa_completion_record& record, PartStep step) {
  return status_of(record) == DSA_COMP_SUCCESS && (step == PartStep::move || record.result == 0);
}

}  // namespace

void Parts::begin(const Piece& whole, const WorkQueue& queue) {
  piece = whole;
  part_bytes = queue.most_transfer;
  count = static_cast<unsigned>((whole.length + part_bytes - 1) / part_bytes);
  steps = steps_of_a_part(queue);
  part = 0;
  step = PartStep::move;
  step_bytes = 0;
  in_batch = count * steps > 1 && count * steps <= queue.most_batch;
  tries_left = steps * (most_tries + static_cast<unsigned>(whole.length / bytes_of_a_try));
  idle_tries = 0;
}

std::size_t Parts::bytes_of(unsigned number) const {
  return std::min(part_bytes, piece.length - number * part_bytes);
}

std::size_t Parts::whole_bytes() const {
  const bool is_good = steps == 1 || step == PartStep::compare;
  return std::min(part * part_bytes + (is_good ? step_bytes : 0), piece.length);
}

// The descriptor of a step of a part, for whose first `done` bytes it is done.
void Parts::fill_in(unsigned number, PartStep which, std::size_t done, const WorkQueue& queue) {
  const std::size_t at = number * part_bytes + done;
  const unsigned place = place_of(number, which);
  dsa_hw_desc& descriptor = list[place];
  std::memset(&descriptor, 0, sizeof descriptor);
  clear(ends[place]);
  unsigned flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  if (queue.blocks_on_fault) flags |= IDXD_OP_FLAG_BOF;
  descriptor.completion_addr = address_of(&ends[place]);
  descriptor.xfer_size = static_cast<std::uint32_t>(bytes_of(number) - done);
  if (which == PartStep::compare) {
    // Behind the fence the device begins when all before has ended well, else never. What it
    // expects is 0, that both are equal, so that a difference holds up what comes after it.
    flags |= IDXD_OP_FLAG_CR | (in_batch ? IDXD_OP_FLAG_FENCE : 0u);
    describe_compare(descriptor, at);
  } else {
    if (piece.dst_affinity != Affinity::non_cacheable) flags |= IDXD_OP_FLAG_CC;
    // The record of the compare may be that of an earlier piece, or of one that did not wait for
    // all of this move.
    if (steps > 1) clear(ends[place + 1]);
    descriptor.dst_addr = piece.dst + at;
    if (piece.operation == Operation::fill) {
      descriptor.opcode = DSA_OPCODE_MEMFILL;
      descriptor.pattern = pattern_at(piece, at);
    } else {
      descriptor.opcode = DSA_OPCODE_MEMMOVE;
      descriptor.src_addr = piece.src + at;
    }
  }
  descriptor.flags = flags & 0xff'ffff;
}

// Of the destination with the source, or with the pattern.
void Parts::describe_compare(dsa_hw_desc& descriptor, std::size_t at) const {
  descriptor.src_addr = piece.dst + at;
  if (piece.operation == Operation::fill) {
    descriptor.opcode = DSA_OPCODE_COMPVAL;
    descriptor.comp_pattern = pattern_at(piece, at);
  } else {
    descriptor.opcode = DSA_OPCODE_COMPARE;
    descriptor.src2_addr = piece.src + at;
  }
}

const dsa_hw_desc& Parts::describe(const WorkQueue& queue) {
  if (!in_batch) {
    fill_in(part, step, step_bytes, queue);
    return list[place_of(part, step)];
  }
  for (unsigned number = 0; number < count; ++number) {
    fill_in(number, PartStep::move, 0, queue);
    if (steps > 1) fill_in(number, PartStep::compare, 0, queue);
  }
  std::memset(&batch, 0, sizeof batch);
  clear(batch_end);
  batch.opcode = DSA_OPCODE_BATCH;
  batch.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
  batch.completion_addr = address_of(&batch_end);
  batch.desc_list_addr = address_of(list);
  batch.desc_count = count * steps;
  return batch;
}

bool Parts::has_ended() const {
  return status_of(in_batch ? batch_end : ends[place_of(part, step)]) != DSA_COMP_NONE;
}

// To the next step: this one has ended well.
void Parts::advance() {
  idle_tries = 0;
  step_bytes = 0;
  if (step == PartStep::move && steps > 1) {
    step = PartStep::compare;
  } else {
    step = PartStep::move;
    ++part;
  }
}

// Of the step at `step`, by its record; what is good of it is added.
Ended Parts::judge() {
  const dsa_completion_record& end = ends[place_of(part, step)];
  const std::uint8_t code = status_of(end) & DSA_COMP_STATUS_MASK;
  const std::size_t asked = bytes_of(part) - step_bytes;
  const std::size_t done = end.bytes_completed < asked ? end.bytes_completed : 0;
  switch (code) {
    case DSA_COMP_NONE: return Ended::not_begun;
    case DSA_COMP_SUCCESS:
    case DSA_COMP_SUCCESS_PRED:
      if (step == PartStep::move) return code == DSA_COMP_SUCCESS ? Ended::well : Ended::badly;
      if (code == DSA_COMP_SUCCESS && end.result == 0) return Ended::well;
      if (end.result == 0) return Ended::badly;  // it contradicts itself
      step_bytes += done;
      return Ended::differing;
    case DSA_COMP_PAGE_FAULT_NOBOF:
    case DSA_COMP_PAGE_FAULT_IR: {
      if (end.bytes_completed >= asked) return Ended::badly;  // it stopped nowhere
      // (The other result of a move: it has begun at the end, as for sides that overlap. Then
      // nothing is good from the front.)
      const std::size_t more = end.result == 0 ? done : 0;
      step_bytes += more;
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
  while (part < count && has_succeeded(ends[place_of(part, step)], step)) advance();
  if (part != before) publish();
}

Ended Parts::look() {
  in_batch = false;  // (A rest is handed over by itself.)
  Ended ended = Ended::well;
  while (part < count && ended == Ended::well) {
    ended = judge();
    if (ended == Ended::well) advance();
  }
  publish();
  return ended;
}

Code Parts::mend() {
  if (tries_left == 0 || idle_tries > most_idle_tries) return Code::io;
  --tries_left;
  const bool fills = piece.operation == Operation::fill;
  if (step == PartStep::compare) {
    const Code code = populate(piece.dst, MADV_POPULATE_READ);
    return code != Code::ok || fills ? code : populate(piece.src, MADV_POPULATE_READ);
  }
  const bool writes = (status_of(ends[place_of(part, step)]) & DSA_COMP_STATUS_WRITE) != 0;
  return writes || fills ? populate(piece.dst, MADV_POPULATE_WRITE)
                         : populate(piece.src, MADV_POPULATE_READ);
}

Code Parts::populate(std::uintptr_t side, int advice) const {
  const std::uintptr_t begin = (side + reached_bytes()) & ~(page_bytes - 1);
  const std::size_t rest = std::min(bytes_of(part) - step_bytes, populated_bytes);
  const std::uintptr_t end = (side + reached_bytes() + rest + page_bytes - 1) & ~(page_bytes - 1);
  const KeepErrno keep_errno;
  if (madvise(reinterpret_cast<void*>(begin), end - begin, advice) == 0) return Code::ok;
  // What the kernel does not populate, or not in time, the device may reach all the same.
  return errno == ENOMEM || errno == EFAULT ? Code::fault : Code::ok;
}

}  // namespace haul::dsa
