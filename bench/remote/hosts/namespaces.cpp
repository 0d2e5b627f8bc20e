#include "bench/remote/hosts/namespaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr char own_namespace[] = "/proc/thread-self/ns/net";

int open_own() {
  const int fd = open(own_namespace, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw tools::CommandFailure(fmt::format("cannot open {} ({})", own_namespace, strerror(errno)));
  return fd;
}

// Runs in a thread of its own, whose namespaces end with it.
template <class Work>
std::string apart(Work work) {
  std::string failure;
  std::thread([&] {
    try {
      work();
    } catch (const tools::CommandFailure& failed) {
      failure = failed.what();
    }
  }).join();
  return failure;
}

void must(bool done, const char* what) {
  if (!done) {
    throw tools::CommandFailure(
        fmt::format("{} failed ({}); network namespaces need root", what, strerror(errno)));
  }
}

}  // namespace

Namespace::Namespace() : fd_(-1) {
  const std::string failure = apart([this] {
    must(unshare(CLONE_NEWNET) == 0, "making a network namespace");
    fd_ = open_own();
  });
  if (!failure.empty()) throw tools::CommandFailure(failure);
  ip("link set lo up");
}

Namespace::~Namespace() {
  close(fd_);
}

int Namespace::shell(const std::string& command) const {
  int status = -1;
  const std::string failure = apart([&] {
    must(setns(fd_, CLONE_NEWNET) == 0, "entering a network namespace");
    status = std::system(command.c_str());
  });
  if (!failure.empty()) throw tools::CommandFailure(failure);
  return status;
}

void Namespace::ip(const std::string& arguments) const {
  if (shell("exec ip " + arguments) != 0) {
    throw tools::CommandFailure(fmt::format("`ip {}` failed; is iproute2 installed?", arguments));
  }
}

void Namespace::write(const std::string& path, const std::string& text) const {
  const std::string failure = apart([&] {
    must(setns(fd_, CLONE_NEWNET) == 0, "entering a network namespace");
    // A mount namespace for this thread: /sys shows the network namespace it was mounted in.
    must(unshare(CLONE_NEWNS) == 0, "making a mount namespace");
    must(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "making mounts private");
    must(mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0, "mounting /sys");
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const bool written =
        file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) close(file);
    must(written, ("writing " + path).c_str());
  });
  if (!failure.empty()) throw tools::CommandFailure(failure);
}

Inside::Inside(const Namespace& space) : home_(open_own()) {
  must(setns(space.fd(), CLONE_NEWNET) == 0, "entering a network namespace");
}

Inside::~Inside() {
  // This thread left it a moment ago, so it can enter it again.
  if (setns(home_, CLONE_NEWNET) != 0) std::abort();
  close(home_);
}

void join(const Namespace& a, const std::string& a_name, const std::string& a_address,
          const Namespace& b, const std::string& b_name, const std::string& b_address) {
  a.ip(fmt::format("link add {} type veth peer name {} netns /proc/{}/fd/{}", a_name, b_name,
                   getpid(), b.fd()));
  a.ip(fmt::format("address add {} dev {}", a_address, a_name));
  b.ip(fmt::format("address add {} dev {}", b_address, b_name));
  a.ip(fmt::format("link set {} up", a_name));
  b.ip(fmt::format("link set {} up", b_name));
}

std::string why_no_namespaces() {
  try {
    const Namespace a, b;
    join(a, "haul0", "10.0.0.1/24", b, "haul1", "10.0.0.2/24");
    return "";
  } catch (const tools::CommandFailure& failure) {
    return failure.what();
  }
}

}  // namespace haul::bench
