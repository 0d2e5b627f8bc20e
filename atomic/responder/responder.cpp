#include "atomic/responder/responder.hpp"

#include "base/os/pages/sealed.hpp"

namespace haul::atomics {

int Responder::make_memory(std::size_t bytes, Error* error) noexcept {
  const int fd = os::make_sealed("haul-window", pages_of(bytes) * 4096);
  if (fd < 0) {
    *error = make_error(Code::no_memory, -fd, "no memory for a window of %zu bytes (%s)", bytes,
                        describe_errno(-fd));
  }
  return fd;
}

Error no_thread(int sys_errno) noexcept {
  return make_error(Code::no_memory, sys_errno,
                    "a thread of the node could not be made (%s); raise the limit on processes "
                    "(ulimit -u)",
                    describe_errno(sys_errno));
}

}  // namespace haul::atomics
