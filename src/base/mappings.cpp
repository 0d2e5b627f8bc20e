// /proc/self/maps, read in pieces: "begin-end rwxs offset device inode name", a line a mapping.
#include "base/mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/descriptor.hpp"
#include "base/keep_errno.hpp"
#include "base/uncancelled.hpp"

namespace haul::os {
namespace {

// A line as far as it has been read. What follows the rights does not matter.
class Line {
 public:
  void add(char c, MappingAct act, void* context) noexcept {
    if (c == '\n') {
      *this = Line();
    } else if (field_ < 2) {
      add_to_address(c);
    } else if (field_ == 2 && ++right_ == 4) {
      field_ = 3;
      if (c == 's') act(address_[0], address_[1], context);
    }
  }

 private:
  void add_to_address(char c) noexcept {
    if (c == '-' || c == ' ') {
      ++field_;
      return;
    }
    const unsigned digit =
        c <= '9' ? static_cast<unsigned>(c - '0') : static_cast<unsigned>(c - 'a') + 10;
    address_[field_] = address_[field_] << 4 | (digit & 15);
  }

  unsigned field_ = 0, right_ = 0;
  std::uintptr_t address_[2] = {};
};

}  // namespace

bool for_each_shared_mapping(MappingAct act, void* context) noexcept {
  const KeepErrno keep;
  const Uncancelled uncancelled;
  const int fd = above_streams(open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return false;
  char buffer[4096];
  Line line;
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
    for (ssize_t i = 0; i < got; ++i) line.add(buffer[i], act, context);
  }
  close(fd);
  return got == 0;
}

}  // namespace haul::os
