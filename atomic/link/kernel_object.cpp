#include "atomic/link/kernel_object.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/os/os.hpp"

namespace haul::atomics {

std::uint64_t KernelObject::bpf_id_of(int fd) noexcept {
  char path[64], text[1024];
  // Not /proc/self: that is the main thread's, which may have ended.
  snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", fd);
  if (os::read_file(path, text, sizeof text) <= 0) return 0;
  // A link's text names its program, too.
  constexpr const char* kinds[] = {"\nlink_id:", "\nmap_id:", "\nprog_id:"};
  std::uint64_t kind = 0;
  for (const char* word : kinds) {
    ++kind;
    const char* const at = std::strstr(text, word);
    if (at != nullptr) return std::strtoull(at + std::strlen(word), nullptr, 10) << 32 | kind;
  }
  return 0;
}

KernelObject KernelObject::of(int fd) noexcept {
  KernelObject made;
  made.fd_ = os::Descriptor::of(fd);
  if (fd >= 0) made.bpf_id_ = bpf_id_of(fd);
  return made;
}

bool KernelObject::intact() const noexcept {
  return fd_.intact() && (bpf_id_ == 0 || bpf_id_of(fd_.number()) == bpf_id_);
}

void KernelObject::close() noexcept {
  if (intact()) os::close_fd(fd_.number());
  *this = KernelObject();
}

}  // namespace haul::atomics
