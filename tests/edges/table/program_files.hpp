// The program's own files, at numbers that were haul's: files, events and sockets, which haul must
// neither write, read, close nor change.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "e2e/support.hpp"
#include "edges/lost_descriptors.hpp"

namespace edges {

using namespace e2e;

class ProgramFiles {
 public:
  // closefrom(3), and files of the program's at all numbers that were open.
  void close_and_take() {
    wait_for_quiet();
    const int end = end_of_descriptors();
    CHILD_EQUAL(close_range(3, ~0u, 0), 0);
    while (files_.empty() || files_.back().fd < end + 4) add(make(files_.size()));
  }

  // The same by dup2().
  void take_over() {
    wait_for_quiet();
    const int end = end_of_descriptors();
    for (int fd = 3; fd < end; ++fd) {
      if (fcntl(fd, F_GETFD) < 0) continue;
      const int made = make(files_.size());
      CHILD_EQUAL(dup2(made, fd), fd);
      if (made != fd) close(made);
      add(fd);
    }
  }

  // All are as they were made.
  void check() const {
    for (const File& file : files_) {
      struct stat now;
      if (fstat(file.fd, &now) != 0) fail(file, "was closed");
      if (now.st_dev != file.device || now.st_ino != file.inode) fail(file, "was replaced");
      if (fcntl(file.fd, F_GETFL) != file.flags || fcntl(file.fd, F_GETFD) != file.close_on_exec)
        fail(file, "has other flags");
      std::uint64_t value = 0;
      switch (file.kind) {
        case 0:
          if (now.st_size != 1 || lseek(file.fd, 0, SEEK_CUR) != 1) fail(file, "was written");
          break;
        case 1:
          if (read(file.fd, &value, sizeof value) != sizeof value || value != 7)
            fail(file, "(an eventfd) has another count");
          value = 7;
          CHILD_EQUAL(write(file.fd, &value, sizeof value), sizeof value);
          break;
        default:
          if (recv(file.fd, &value, sizeof value, MSG_DONTWAIT) != 1)
            fail(file, "(a socket) was read or closed");
          if (recv(file.fd, &value, sizeof value, MSG_DONTWAIT) >= 0)
            fail(file, "(a socket) was written");
          CHILD_EQUAL(send(file.other, "x", 1, MSG_DONTWAIT), 1);
      }
    }
  }

 private:
  struct File {
    int fd, kind, flags, close_on_exec, other;
    dev_t device;
    ino_t inode;
  };

  static void fail(const File& file, const char* what) {
    std::fprintf(stderr, "the program's descriptor %d %s\n", file.fd, what);
    _exit(1);
  }

  // A file that haul's threads open for an instant, as they do when they start, cannot be told from
  // one that the program puts there in that instant.
  static void wait_for_quiet() {
    std::vector<ino_t> before, now;
    for (unsigned same = 0, turn = 0; same < 20 && turn < 1000; ++turn) {
      now.clear();
      for (int fd = 3; fd < 64; ++fd) {
        struct stat file {};
        now.push_back(fstat(fd, &file) == 0 ? file.st_ino : 0);
      }
      same = now == before ? same + 1 : 0;
      before = now;
      sleep_ms(2);
    }
  }

  static int end_of_descriptors() {
    int end = 3;
    for (int fd = 3; fd < 1024; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) end = fd + 1;
    }
    return end;
  }

  int make(std::size_t number) {
    kind_ = static_cast<int>(number % 3);
    int fd = -1, pair[2];
    switch (kind_) {
      case 0:
        fd = memfd_create("program", 0);
        CHILD_EQUAL(write(fd, "x", 1), 1);
        break;
      case 1: fd = eventfd(7, EFD_NONBLOCK); break;
      default:
        CHILD_EQUAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
        fd = pair[0];
        // The other end lies far off, where nobody of haul's ever was.
        other_ = fcntl(pair[1], F_DUPFD, 500);
        close(pair[1]);
        CHILD_CHECK(other_ >= 500);
        CHILD_EQUAL(send(other_, "x", 1, 0), 1);
    }
    CHILD_CHECK(fd >= 0);
    return fd;
  }

  void add(int fd) {
    struct stat now;
    CHILD_EQUAL(fstat(fd, &now), 0);
    files_.push_back(
        {fd, kind_, fcntl(fd, F_GETFL), fcntl(fd, F_GETFD), other_, now.st_dev, now.st_ino});
  }

  int kind_ = 0, other_ = -1;
  std::vector<File> files_;
};

}  // namespace edges
