// A request, checked and in the library's own terms; it lives on the stack of the submit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/affinity.hpp"
#include "base/extent.hpp"
#include "completion/queue.hpp"
#include "request/job.hpp"

namespace haul {

struct Request {
  Operation operation = Operation::copy;
  Affinity dst_affinity = Affinity::cacheable;
  Affinity src_affinity = Affinity::cacheable;
  bool fence = false, checked = false, nonblock = false, complete = false;
  bool force_inline = false, force_dedicated = false;
  std::uint64_t pattern = 0;  // widened to 8 bytes
  std::size_t length = 0;     // of either side
  Space dst_space = self_space, src_space = self_space;
  const Extent* dst = nullptr;  // dst_count extents of dst_space, length bytes in all
  const Extent* src = nullptr;  // copy: likewise
  std::uint32_t dst_count = 1, src_count = 1;
  std::atomic<std::uint64_t>* notify = nullptr;
  std::uint64_t notify_value = 0;
  std::uint64_t user_data = 0;
  CompletionCallback callback = nullptr;
  void* context = nullptr;

  bool vector() const noexcept { return dst_count > 1 || src_count > 1; }
};

// Walks both sides of a request at once: each step is the longest stretch that is contiguous on
// both.
class SegmentWalk {
 public:
  explicit SegmentWalk(const Request& request) noexcept : request_(request) {}

  // False at the end. *length is the stretch's length.
  bool next(Segment* segment, std::size_t* length) noexcept {
    const bool copy = request_.operation == Operation::copy;
    while (dst_index_ < request_.dst_count && dst_used_ == request_.dst[dst_index_].length)
      advance(&dst_index_, &dst_used_);
    while (copy && src_index_ < request_.src_count &&
           src_used_ == request_.src[src_index_].length) {
      advance(&src_index_, &src_used_);
    }
    if (dst_index_ >= request_.dst_count || (copy && src_index_ >= request_.src_count))
      return false;
    std::size_t stretch = request_.dst[dst_index_].length - dst_used_;
    if (copy && request_.src[src_index_].length - src_used_ < stretch) {
      stretch = request_.src[src_index_].length - src_used_;
    }
    *segment = Segment{offset_, request_.dst[dst_index_].address + dst_used_,
                       copy ? request_.src[src_index_].address + src_used_ : 0};
    *length = stretch;
    offset_ += stretch;
    dst_used_ += stretch;
    src_used_ += stretch;
    return true;
  }

 private:
  static void advance(std::uint32_t* index, std::size_t* used) noexcept {
    ++*index;
    *used = 0;
  }

  const Request& request_;
  std::uint32_t dst_index_ = 0, src_index_ = 0;
  std::size_t dst_used_ = 0, src_used_ = 0;
  std::uint64_t offset_ = 0;
};

// The part of a job that is taken from its request unchanged: all but where the bytes lie, how they
// are cut into chunks, and who moves them.
inline Job job_of(const Request& request) noexcept {
  Job job;
  job.operation = request.operation;
  job.dst_affinity = request.dst_affinity;
  job.src_affinity = request.src_affinity;
  job.fence = request.fence;
  job.checked = request.checked;
  job.dst_space = request.dst_space;
  job.src_space = request.src_space;
  if (request.operation == Operation::fill) job.src_or_pattern = request.pattern;
  return job;
}

inline Extras extras_of(const Request& request) noexcept {
  return Extras{request.notify,   request.notify_value, request.user_data,
                request.callback, request.context,      request.complete};
}

}  // namespace haul
