// Finding a place, and leaving it.
#include "service/talk/listener.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/error.hpp"
#include "base/os/os.hpp"
#include "request/service_socket.hpp"

namespace haul::service {
namespace {

// Keeps two services that start at the same time from taking each other's fresh socket for a stale
// one.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "."
                                  : slash == 0               ? "/"
                                                             : path.substr(0, slash);
    fd_ = os::above_streams(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // A process that holds the lock for long is no service; go on without it.
    for (int attempt = 0; fd_ >= 0 && attempt < 100; ++attempt) {
      if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
      os::sleep_ns(10'000'000);
    }
  }
  ~DirectoryLock() { os::close_fd(fd_); }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int fd_ = -1;
};

std::runtime_error trouble(const std::string& path, int sys_errno) {
  if (sys_errno == EADDRINUSE) {
    return std::runtime_error(
        "a service listens at " + path +
        " already (or another file is there); end it with `haul serve --stop`, "
        "or name another place by HAUL_SERVICE_SOCKET");
  }
  return std::runtime_error("cannot listen at " + path + " (" + describe_errno(sys_errno) +
                            "); name another place by HAUL_SERVICE_SOCKET");
}

}  // namespace

Listener::Listener(const std::string& path) {
  if (!path.empty()) {
    if (!listen_at(path)) throw trouble(path, errno);
    return;
  }
  char place[socket_path_bytes];
  std::string tried;
  for (unsigned i = 0; service_socket_path(i, place); ++i) {
    const int made = make_socket_directory(place);
    if (made == 0 && listen_at(place)) return;
    const int error = made != 0 ? -made : errno;
    if (error == EADDRINUSE) throw trouble(place, error);
    tried += std::string(tried.empty() ? "" : "; ") + place + ": " + describe_errno(error);
  }
  throw std::runtime_error("the service finds no place for its socket (" +
                           (tried.empty() ? std::string("there is none") : tried) +
                           "); name one by HAUL_SERVICE_SOCKET");
}

Listener::Listener(const std::string& path, os::SocketKind kind, const char* remedy) {
  if (listen_at(path, kind)) return;
  const std::string why = errno == EADDRINUSE ? "another program does, or another file is there"
                                              : describe_errno(errno);
  throw std::runtime_error("cannot listen at " + path + " (" + why + "); " + remedy);
}

bool Listener::listen_at(const std::string& path, os::SocketKind kind) {
  const DirectoryLock lock(path);
  const int fd = os::listen_at(path.c_str(), kind);
  if (fd < 0) {
    errno = -fd;
    return false;
  }
  socket_ = os::Descriptor::of(fd);
  path_ = path;
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  return true;
}

Listener::~Listener() {
  if (!socket_.valid()) return;
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    unlink(path_.c_str());
  socket_.close();
}

}  // namespace haul::service
