// Where a page is served: a Unix socket, or a port of this machine's loopback.
#pragma once

#include <memory>
#include <string>

#include "base/os/descriptor.hpp"
#include "service/talk/listener.hpp"

namespace haul::cli {

// "", or why this is no address of a page: unix:PATH, 127.0.0.1:PORT or [::1]:PORT.
std::string check_page_address(const std::string& address);
// The same address with a full path, for a process that leaves its directory.
std::string full_page_address(const std::string& address);

// A listening socket at such an address. A Unix socket is this user's alone (mode 0600); its file
// goes with this object, and one at which nobody listens is replaced. Anybody on the machine may
// connect to a port.
class PageListener {
 public:
  // Throws tools::CommandFailure.
  explicit PageListener(const std::string& address);
  ~PageListener();
  PageListener(const PageListener&) = delete;
  PageListener& operator=(const PageListener&) = delete;

  int fd() const { return file_ ? file_->fd() : port_.number(); }
  bool at_port() const { return file_ == nullptr; }
  // For people: "http://127.0.0.1:9321/metrics", "unix:/run/user/1000/haul/metrics.sock".
  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<service::Listener> file_;
  os::Descriptor port_;
  std::string name_;
};

}  // namespace haul::cli
