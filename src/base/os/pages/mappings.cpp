// Read in pieces: "begin-end rwxs offset device inode name", a line a mapping.
#include "base/os/pages/mappings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

// A line as far as it has been read.
class Line {
 public:
  void add(char c, MappingAct act, void* context) noexcept {
    if (c == '\n') {
      act(mapping_, context);
      *this = Line();
    } else if (c == ' ' && (field_ != name || length_ == 0)) {
      // Many blanks separate the last two fields.
      field_ += in_field_ ? 1 : 0;
      in_field_ = false;
    } else if (c == '-' && field_ == begin) {
      field_ = end;
    } else {
      in_field_ = true;
      take(c);
    }
  }

 private:
  enum Field : unsigned { begin, end, rights, offset, device, inode, name };

  void take(char c) noexcept {
    switch (field_) {
      case begin: mapping_.begin = mapping_.begin << 4 | digit(c); break;
      case end: mapping_.end = mapping_.end << 4 | digit(c); break;
      case rights:
        mapping_.readable = mapping_.readable || c == 'r';
        mapping_.writable = mapping_.writable || c == 'w';
        mapping_.shared = c == 's';
        break;
      case offset: mapping_.offset = mapping_.offset << 4 | digit(c); break;
      case inode: mapping_.has_file = mapping_.has_file || c != '0'; break;
      case name:
        if (length_ < sizeof mapping_.name - 1) mapping_.name[length_++] = c;
        break;
      default: break;
    }
  }
  static unsigned digit(char c) noexcept {
    return (c <= '9' ? static_cast<unsigned>(c - '0') : static_cast<unsigned>(c - 'a') + 10) & 15;
  }

  unsigned field_ = begin;
  bool in_field_ = false;
  std::size_t length_ = 0;
  Mapping mapping_;
};

}  // namespace

bool for_each_mapping(MappingAct act, void* context) noexcept {
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
