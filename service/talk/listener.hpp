// The socket the service listens at, or another of its process's.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/net/socket.hpp"
#include "base/os/descriptor.hpp"

namespace haul::service {

// A listening socket, and the file that goes with it.
class Listener {
 public:
  // Listens at `path`, or, if that is "", at the first place of the service's that is free. Throws
  // std::runtime_error: another service listens there, or there is no place. A stream is no
  // service's: it is listened to at `path`, and `remedy` is what to do where that fails.
  explicit Listener(const std::string& path);
  Listener(const std::string& path, os::SocketKind kind, const char* remedy);
  // Closes, and removes the file if it is still this socket's.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }

 private:
  bool listen_at(const std::string& path, os::SocketKind kind = os::SocketKind::packets);

  os::Descriptor socket_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace haul::service
