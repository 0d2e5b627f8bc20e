// A segment (ring.hpp) as memory: a memfd that its writer makes, seals against changes of its size,
// and hands over by a socket. The seals are what a reader checks before it maps it: without them a
// hostile peer could shrink the file, and the reader would die of SIGBUS.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
#include "fabric/transport/local/ring.hpp"

namespace haul::fabric {

class SharedSegment {
 public:
  // A new one, with a random salt. Its descriptor stays open until close_descriptor().
  static Expected<std::unique_ptr<SharedSegment>> make() noexcept;
  // A peer's, by the descriptor that it sent (which stays the caller's). An error if it is not
  // sealed memory of the right size, or cannot be mapped.
  static Expected<std::unique_ptr<SharedSegment>> open(int fd) noexcept;
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  RingSegment& segment() noexcept { return *segment_; }
  int descriptor() const noexcept { return fd_.get(); }
  void close_descriptor() noexcept;
  // In a child of fork: private zeroes take its place. False if the kernel lacks memory for it.
  bool make_private() noexcept;

 private:
  SharedSegment(RingSegment* segment, int fd) noexcept
      : segment_(segment), fd_(os::Descriptor::of(fd)) {}

  RingSegment* segment_;
  os::Descriptor fd_;
};

}  // namespace haul::fabric
