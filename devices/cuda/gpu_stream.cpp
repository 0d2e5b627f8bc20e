#include "devices/cuda/gpu_stream.hpp"

#include <algorithm>
#include <bit>

#include "devices/cuda/results.hpp"

namespace haul::cuda {

Result GpuStream::open(const Driver& driver, GpuWay way) {
  driver_ = &driver;
  way_ = way;
  Result result = driver.stream_create(&stream_, stream_non_blocking);
  for (Event& event : events_)
    if (result == success) result = driver.event_create(&event, event_disable_timing);
  return result;
}

Result GpuStream::set_slots(unsigned count, std::size_t bytes) {
  const unsigned before = slots_.count();
  if (count <= before) return success;
  void* memory = nullptr;
  Result result = driver_->host_alloc(&memory, (count - before) * bytes, host_portable);
  for (unsigned i = before; i < count && result == success; ++i)
    if (slots_.at(i).event == nullptr)
      result = driver_->event_create(&slots_.at(i).event, event_disable_timing);
  if (result != success) {
    if (memory != nullptr) driver_->host_free(memory);
    return result;
  }
  blocks_[block_count_++] = memory;
  slot_bytes_ = bytes;
  for (unsigned i = before; i < count; ++i)
    slots_.at(i).memory = static_cast<unsigned char*>(memory) + (i - before) * bytes;
  slots_.set_count(count);
  return success;
}

void GpuStream::free_slots() {
  while (block_count_ != 0) driver_->host_free(blocks_[--block_count_]);
  slots_.set_count(0);
}

Event GpuStream::event_of(const StreamPart& part) {
  return part.slot < 0 ? events_[part.copy] : slots_.at(static_cast<unsigned>(part.slot)).event;
}

// Hands bytes of a copy to the stream. A refusal that is the copy's own fails it.
Result GpuStream::enqueue(unsigned number, int slot, std::size_t offset, std::size_t bytes) {
  GpuCopy& copy = copies_[number];
  const std::uintptr_t host =
      slot < 0 ? copy.host + offset
               : reinterpret_cast<std::uintptr_t>(slots_.at(static_cast<unsigned>(slot)).memory);
  Result result = success;
  switch (way_) {
    case GpuWay::in:
      result = driver_->to_device(copy.device + offset, reinterpret_cast<const void*>(host), bytes,
                                  stream_);
      break;
    case GpuWay::out:
      result =
          driver_->from_device(reinterpret_cast<void*>(host), copy.device + offset, bytes, stream_);
      break;
    case GpuWay::within:
      result = copy.context == copy.source_context
                   ? driver_->within_device(copy.device, host, bytes, stream_)
                   : driver_->between_devices(copy.device, copy.context, host, copy.source_context,
                                              bytes, stream_);
  }
  if (const Code code = failure_of_piece(result); code != Code::ok) {
    fail(number, code);
    return success;
  }
  const StreamPart part{number, slot};
  if (result == success) result = driver_->event_record(event_of(part), stream_);
  if (result == success) parts_[(first_part_ + part_count_++) % most_parts] = part;
  return result;
}

Result GpuStream::take(const GpuCopy& copy) {
  const auto number = static_cast<unsigned>(std::countr_one(used_));
  used_ |= 1u << number;
  copies_[number] = copy;
  if (wants_slots_ && slots_.idle() && !dead_) take_more_slots();
  if (dead_) {
    copies_[number].code = Code::io;
    return success;
  }
  if (!copy.straight) {
    waiting_[(first_waiting_ + waiting_count_++) % depth] = number;
    return way_ == GpuWay::out ? pass_free_slots() : success;
  }
  const unsigned before = part_count_;
  copies_[number].begun = copy.length;
  const Result result = enqueue(number, -1, 0, copy.length);
  copies_[number].parts = part_count_ - before;
  return result;
}

// A sixteenth of a request, so that filling its first slot and emptying its last one are short; no
// less than is worth a start of the copy engine's, and no more than a slot holds.
std::size_t GpuStream::part_bytes(const GpuCopy& copy) const {
  constexpr std::size_t least = std::size_t{128} << 10;
  return std::clamp(copy.whole_bytes / 16, std::min(least, slot_bytes_), slot_bytes_);
}

// Notes that a thread would stage and found no slot, since other threads are at all of them.
void GpuStream::note_want_of_slots() {
  const bool all_at_cpu = way_ == GpuWay::in ? slots_.all_at_first() : slots_.all_at_second();
  if (waiting_count_ != 0 && all_at_cpu) wants_slots_ = slots_.count() < most_slots_;
}

// Twice as many as before, while nothing is in any. (Where there is no memory, those stay, for
// good.)
void GpuStream::take_more_slots() {
  wants_slots_ = false;
  if (set_slots(std::min(2 * slots_.count(), most_slots_), slot_bytes_) != success)
    most_slots_ = slots_.count();
}

// Takes the next slot for the oldest copy that wants one; nullptr: none does, or none is free.
StagingSlot* GpuStream::begin_slot() {
  if (dead_ || waiting_count_ == 0 || slots_.count() == 0 || !slots_.has_free()) return nullptr;
  const unsigned number = waiting_[first_waiting_];
  GpuCopy& copy = copies_[number];
  StagingSlot& slot = slots_.at(slots_.take());
  slot.copy = number;
  slot.offset = copy.begun;
  slot.bytes = std::min(part_bytes(copy), copy.length - copy.begun);
  copy.begun += slot.bytes;
  ++copy.parts;
  if (copy.begun == copy.length) leave_queue();
  return &slot;
}

void GpuStream::leave_queue() {
  first_waiting_ = (first_waiting_ + 1) % depth;
  --waiting_count_;
}

bool GpuStream::take_staging(StagingCopy* staging) {
  if (way_ == GpuWay::in) {
    StagingSlot* const slot = begin_slot();
    if (slot == nullptr) {
      note_want_of_slots();
      return false;
    }
    *staging = {reinterpret_cast<std::uintptr_t>(slot->memory),
                copies_[slot->copy].host + slot->offset, slot->bytes, false, &slot->done};
    return true;
  }
  StagingSlot* const slot = slots_.to_pass();
  if (slot == nullptr) note_want_of_slots();
  if (slot == nullptr || !slot->arrived) return false;
  slots_.pass();
  *staging = {copies_[slot->copy].host + slot->offset,
              reinterpret_cast<std::uintptr_t>(slot->memory), slot->bytes,
              streams_out_ && copies_[slot->copy].whole_bytes >= streamed_from_bytes, &slot->done};
  return true;
}

// To the GPU: slots that the CPU has filled.
Result GpuStream::pass_filled_slots() {
  Result result = success;
  for (StagingSlot* slot = slots_.to_pass(); slot != nullptr && result == success;
       slot = slots_.to_pass()) {
    // Acquire: the slot's bytes are there.
    if (slot->done.load(std::memory_order_acquire) == 0) break;
    slots_.pass();
    const unsigned before = part_count_;
    if (copies_[slot->copy].code == Code::ok)
      result =
          enqueue(slot->copy, static_cast<int>(slots_.index_of(*slot)), slot->offset, slot->bytes);
    if (part_count_ == before) drop(*slot);
  }
  return result;
}

// From the GPU: hands free slots to the stream.
Result GpuStream::pass_free_slots() {
  Result result = success;
  while (result == success) {
    StagingSlot* const slot = begin_slot();
    if (slot == nullptr) break;
    const unsigned before = part_count_;
    result =
        enqueue(slot->copy, static_cast<int>(slots_.index_of(*slot)), slot->offset, slot->bytes);
    if (part_count_ == before) drop(*slot);
  }
  return result;
}

// The stream has not taken it: it ends in its turn, with nothing of it.
void GpuStream::drop(StagingSlot& slot) {
  slot.bytes = 0;
  slot.arrived = true;
  if (way_ == GpuWay::in) --copies_[slot.copy].parts;
}

void GpuStream::end_arrived_slots() {
  for (StagingSlot* slot = slots_.to_end(); slot != nullptr && slot->arrived;
       slot = slots_.to_end())
    slots_.end();
}

// From the GPU: slots that the CPU has emptied.
void GpuStream::end_emptied_slots() {
  for (StagingSlot* slot = slots_.to_end(); slot != nullptr; slot = slots_.to_end()) {
    // Acquire: the bytes are where they belong.
    if (slot->done.load(std::memory_order_acquire) == 0) return;
    slots_.end();
    end_part(slot->copy, slot->bytes);
  }
}

void GpuStream::end_part(unsigned number, std::size_t bytes) {
  GpuCopy& copy = copies_[number];
  --copy.parts;
  if (copy.code != Code::ok) return;
  copy.good += bytes;
  copy.watermark.publish(copy.good);
}

void GpuStream::fail(unsigned number, Code code) {
  GpuCopy& copy = copies_[number];
  if (copy.code == Code::ok && copy.good < copy.length) copy.code = code;
  // (Of those that wait, only the first can have begun.)
  if (waiting_count_ != 0 && waiting_[first_waiting_] == number) leave_queue();
}

// The parts that the stream has ended, from the oldest on.
Result GpuStream::look_at_stream() {
  while (part_count_ != 0) {
    const StreamPart part = parts_[first_part_];
    const Result result = driver_->event_query(event_of(part));
    if (result == not_ready) return success;
    if (result != success) return result;
    first_part_ = (first_part_ + 1) % most_parts;
    --part_count_;
    if (part.slot < 0) {
      end_part(part.copy, copies_[part.copy].length);
      continue;
    }
    StagingSlot& slot = slots_.at(static_cast<unsigned>(part.slot));
    slot.arrived = true;
    if (way_ == GpuWay::in) end_part(part.copy, slot.bytes);
  }
  return success;
}

Result GpuStream::advance() {
  if (used_ == 0) return success;
  Result result = look_at_stream();
  if (way_ == GpuWay::in) {
    if (result == success) result = pass_filled_slots();
    end_arrived_slots();
  } else if (way_ == GpuWay::out) {
    end_emptied_slots();
    if (result == success) result = pass_free_slots();
  }
  return result;
}

void GpuStream::fail_all() {
  waiting_count_ = 0;
  for (unsigned left = used_; left != 0; left &= left - 1)
    fail(static_cast<unsigned>(std::countr_zero(left)), Code::io);
}

void GpuStream::die() {
  dead_ = true;
  fail_all();
  for (; part_count_ != 0; --part_count_) {
    const StreamPart part = parts_[first_part_];
    first_part_ = (first_part_ + 1) % most_parts;
    if (part.slot >= 0) slots_.at(static_cast<unsigned>(part.slot)).arrived = true;
    if (part.slot < 0 || way_ == GpuWay::in) end_part(part.copy, 0);
  }
  // From the GPU: what has not gone to the CPU does not any more.
  if (way_ != GpuWay::out) return;
  for (StagingSlot* slot = slots_.to_pass(); slot != nullptr; slot = slots_.to_pass()) {
    slot->done.store(1, std::memory_order_relaxed);
    slots_.pass();
  }
}

bool GpuStream::stop() {
  fail_all();
  if (part_count_ != 0 || !slots_.idle()) return false;
  used_ = 0;
  return true;
}

std::size_t GpuStream::finish(Finished* finished, std::size_t most) {
  std::size_t count = 0;
  for (unsigned left = used_; left != 0 && count < most; left &= left - 1) {
    const auto number = static_cast<unsigned>(std::countr_zero(left));
    const GpuCopy& copy = copies_[number];
    const bool over = copy.good == copy.length || copy.code != Code::ok;
    if (!over || copy.parts != 0) continue;
    used_ &= ~(1u << number);
    finished[count++] = {copy.tag, Outcome{copy.good, copy.code}};
  }
  return count;
}

}  // namespace haul::cuda
