// What the tests of the node's service share: a service in a child process, with a socket of its
// own, that can be stopped, killed and started again. It is the real one (service/server.hpp).
#pragma once

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <string>

#include "service/server.hpp"
#include "support.hpp"

namespace e2e {

class Service {
 public:
  Service() {
    char name[] = "/tmp/haul-e2e-XXXXXX";
    if (mkdtemp(name) == nullptr) {
      std::perror("mkdtemp");
      _exit(1);
    }
    directory_ = name;
    chmod(name, 0700);
  }
  ~Service() {
    end(SIGKILL);
    unlink(socket().c_str());
    rmdir(directory_.c_str());
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::string socket() const { return directory_ + "/service.sock"; }
  const std::string& directory() const { return directory_; }
  pid_t pid() const { return pid_; }

  // Starts it and waits until it listens. descriptors: its limit, 0 for the usual one.
  bool start(std::uint64_t map_budget_bytes = std::uint64_t{64} << 30, unsigned descriptors = 0) {
    const std::string path = socket();
    pid_ = start_child([path, map_budget_bytes, descriptors] {
      const rlimit few{descriptors, descriptors};
      if (descriptors != 0 && setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
      haul::service::Options options;
      options.socket_path = path;
      options.map_budget_bytes = map_budget_bytes;
      options.spin_ns = 10'000'000;
      options.lease = false;
      if (std::getenv("E2E_SERVICE_LOUD") != nullptr)
        options.say = [](haul::LogLevel, const std::string& line) {
          std::fprintf(stderr, "%s\n", line.c_str());
        };
      try {
        haul::service::run(options);
      } catch (const std::exception& failure) {
        std::fprintf(stderr, "service: %s\n", failure.what());
        return 1;
      }
      return 0;
    });
    for (int turn = 0; turn < 5000 && !listens(); ++turn) sleep_ms(1);
    return listens();
  }

  // Sends the signal and waits for its end, if that ends it. How it ended, as end_of() says.
  int end(int signal) {
    if (pid_ <= 0) return -1;
    kill(pid_, SIGCONT);
    kill(pid_, signal);
    const int status = end_of(pid_, 20);
    pid_ = -1;
    return status;
  }
  bool running() const { return pid_ > 0 && kill(pid_, 0) == 0; }

  bool listens() const {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", socket().c_str());
    const bool yes = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return yes;
  }

  // In a client, before its first call: its service is this one, and copies go there whatever their
  // size.
  void use(const char* mover = "service") const {
    quiet_environment();
    setenv("HAUL_SERVICE_SOCKET", socket().c_str(), 1);
    setenv("HAUL_PLAN_MOVER", mover, 1);
    setenv("HAUL_MOVER_LEASE", "off", 1);
  }

 private:
  std::string directory_;
  pid_t pid_ = -1;
};

// In a client: asks for the service until it is attached. It learns of the arena at once; of one
// that is made later it learns soon.
inline bool attach(unsigned timeout_ms = 5000) {
  CHILD_EQUAL(haul_free(haul_alloc(1)), 0);
  for (unsigned turn = 0; turn < timeout_ms; ++turn) {
    haul_wake();
    if (state_now().service_state != 0) return true;
    sleep_ms(1);
  }
  return false;
}
inline bool detached(unsigned timeout_ms = 5000) {
  for (unsigned turn = 0; turn < timeout_ms; ++turn) {
    if (state_now().service_state == 0) return true;
    sleep_ms(1);
  }
  return false;
}

// Memory of haul_alloc().
class Shared {
 public:
  explicit Shared(std::size_t bytes) : bytes_(bytes) {
    data_ = static_cast<unsigned char*>(haul_alloc(bytes));
    CHILD_CHECK(data_ != nullptr);
  }
  ~Shared() { haul_free(data_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  unsigned char* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  void fill(std::uint64_t seed) const {
    for (std::size_t at = 0; at < bytes_; ++at) data_[at] = Buffer::expected(seed, at);
  }
  void clear() const { std::memset(data_, 0, bytes_); }

 private:
  unsigned char* data_;
  std::size_t bytes_;
};

// The first byte of `data` that is not as Shared::fill(seed) wrote it, from its `first`-th on; -1:
// none.
inline long long first_wrong(const unsigned char* data, std::size_t bytes, std::uint64_t seed,
                             std::size_t first = 0) {
  for (std::size_t at = 0; at < bytes; ++at) {
    if (data[at] != Buffer::expected(seed, first + at)) return static_cast<long long>(at);
  }
  return -1;
}

}  // namespace e2e
