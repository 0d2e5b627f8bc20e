#include "base/os/uring.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

namespace haul::os {
namespace {

template <class... Arguments>
int call(long number, Arguments... arguments) noexcept {
  const KeepErrno keep;
  const long result = syscall(number, arguments...);
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // namespace

int Uring::open(unsigned entries, unsigned buffers) noexcept {
  io_uring_params parameters{};
  int fd = call(SYS_io_uring_setup, entries, &parameters);
  if (fd < 0) return fd;
  fd = above_streams(fd);
  if (fd < 0) return fd;
  ring_ = Descriptor::of(fd);
  const auto ring_end = [](std::size_t array, std::size_t count, std::size_t each) {
    return array + count * each;
  };
  rings_bytes_ =
      std::max(ring_end(parameters.sq_off.array, parameters.sq_entries, sizeof(std::uint32_t)),
               ring_end(parameters.cq_off.cqes, parameters.cq_entries, sizeof(io_uring_cqe)));
  entries_bytes_ = parameters.sq_entries * sizeof(io_uring_sqe);
  const auto map = [fd](std::size_t bytes, off_t offset) -> std::uint8_t* {
    const KeepErrno keep;
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);
    return at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
  };
  const bool one_mapping = (parameters.features & IORING_FEAT_SINGLE_MMAP) != 0;
  rings_ = one_mapping ? map(rings_bytes_, IORING_OFF_SQ_RING) : nullptr;
  entries_ = map(entries_bytes_, IORING_OFF_SQES);
  io_uring_rsrc_register table{};
  table.nr = buffers;
  table.flags = IORING_RSRC_REGISTER_SPARSE;
  int result = rings_ == nullptr || entries_ == nullptr ? -ENOMEM : 0;
  if (result == 0)
    result = call(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS2, &table, sizeof table);
  if (result < 0) {
    close();
    return result;
  }
  const auto word = [this](std::uint32_t offset) {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(rings_ + offset);
  };
  submit_tail_ = word(parameters.sq_off.tail);
  complete_head_ = word(parameters.cq_off.head);
  complete_tail_ = word(parameters.cq_off.tail);
  submit_mask_ = *reinterpret_cast<std::uint32_t*>(rings_ + parameters.sq_off.ring_mask);
  complete_mask_ = *reinterpret_cast<std::uint32_t*>(rings_ + parameters.cq_off.ring_mask);
  submit_array_ = reinterpret_cast<std::uint32_t*>(rings_ + parameters.sq_off.array);
  completions_ = rings_ + parameters.cq_off.cqes;
  return 0;
}

void Uring::close() noexcept {
  const KeepErrno keep;
  if (rings_ != nullptr) munmap(rings_, rings_bytes_);
  if (entries_ != nullptr) munmap(entries_, entries_bytes_);
  rings_ = entries_ = nullptr;
  ring_.close();
}

int Uring::start(bool writes, const Descriptor& file, std::uint64_t offset, std::uintptr_t address,
                 std::uint32_t bytes, unsigned buffer, std::uint64_t tag) noexcept {
  const std::uint32_t tail = submit_tail_->load(std::memory_order_relaxed);
  const std::uint32_t slot = tail & submit_mask_;
  auto& entry = reinterpret_cast<io_uring_sqe*>(entries_)[slot];
  std::memset(&entry, 0, sizeof entry);
  entry.opcode = writes ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
  entry.flags = IOSQE_ASYNC;
  entry.fd = file.get();
  entry.off = offset;
  entry.addr = address;
  entry.len = bytes;
  entry.buf_index = static_cast<std::uint16_t>(buffer);
  entry.user_data = tag;
  submit_array_[slot] = slot;
  // Release: the kernel reads the entry after the tail.
  submit_tail_->store(tail + 1, std::memory_order_release);
  const int taken = call(SYS_io_uring_enter, ring_.get(), 1u, 0u, 0u, nullptr, std::size_t{0});
  if (taken == 1) return 0;
  submit_tail_->store(tail, std::memory_order_release);
  return taken < 0 ? taken : -EAGAIN;
}

bool Uring::finished(std::uint64_t* tag, std::int32_t* result) noexcept {
  const std::uint32_t head = complete_head_->load(std::memory_order_relaxed);
  // Acquire: pairs with the kernel's release of what it has written, the bytes moved included.
  if (head == complete_tail_->load(std::memory_order_acquire)) return false;
  const auto& entry = reinterpret_cast<io_uring_cqe*>(completions_)[head & complete_mask_];
  *tag = entry.user_data;
  *result = entry.res;
  complete_head_->store(head + 1, std::memory_order_release);
  return true;
}

int Uring::set_buffer(unsigned index, std::uintptr_t address, std::size_t bytes) noexcept {
  iovec range{reinterpret_cast<void*>(address), bytes};
  if (bytes == 0) range.iov_base = nullptr;
  io_uring_rsrc_update2 update{};
  update.offset = index;
  update.data = reinterpret_cast<std::uintptr_t>(&range);
  update.nr = 1;
  const int result = call(SYS_io_uring_register, ring_.get(), IORING_REGISTER_BUFFERS_UPDATE,
                          &update, sizeof update);
  return result < 0 ? result : 0;
}

}  // namespace haul::os
