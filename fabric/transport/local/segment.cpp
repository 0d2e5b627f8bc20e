// Making, mapping and checking segments.
#include "fabric/transport/local/segment.hpp"

#include <cerrno>

#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::fabric {
namespace {

Error no_mapping() noexcept {
  return make_error(Code::no_memory, ENOMEM,
                    "No addresses or mappings are left for a peer's memory; raise ulimit -v or "
                    "vm.max_map_count.");
}

}  // namespace

Expected<std::unique_ptr<SharedSegment>> SharedSegment::make() noexcept {
  const int fd = os::make_sealed("haul-fabric", segment_bytes);
  if (fd < 0) {
    return make_error(Code::no_memory, -fd,
                      "No memory to share with a peer (%s); raise the limits on open files (ulimit "
                      "-n) or file size (-f).",
                      describe_errno(-fd));
  }
  void* at = os::map_shared(nullptr, segment_bytes, fd, 0);
  std::uint64_t salt = 0;
  if (at == nullptr || !os::random_bytes(&salt, sizeof salt)) {
    os::unmap(at, segment_bytes);
    os::close_fd(fd);
    return no_mapping();
  }
  // The memory is zeroed, which is what a RingSegment begins as.
  auto* segment = static_cast<RingSegment*>(at);
  segment->salt = salt;
  return std::unique_ptr<SharedSegment>(new SharedSegment(segment, fd));
}

Expected<std::unique_ptr<SharedSegment>> SharedSegment::open(int fd) noexcept {
  if (os::sealed_bytes(fd) != static_cast<off_t>(segment_bytes)) {
    return make_error(
        Code::invalid, 0,
        "A peer's shared memory is not sealed or of the wrong size; run all processes "
        "with one version of haul.");
  }
  void* at = os::map_shared(nullptr, segment_bytes, fd, 0);
  if (at == nullptr) return no_mapping();
  return std::unique_ptr<SharedSegment>(new SharedSegment(static_cast<RingSegment*>(at), -1));
}

SharedSegment::~SharedSegment() {
  os::unmap(segment_, segment_bytes);
  fd_.close();
}

void SharedSegment::close_descriptor() noexcept {
  fd_.close();
}

bool SharedSegment::make_private() noexcept {
  return os::map_private_at(segment_, segment_bytes);
}

}  // namespace haul::fabric
