// Forking the service, and the clients' side of the protocol.
#include "service/fake.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/machine/clock.hpp"

namespace haul::service_test {
namespace {

constexpr std::uint64_t patience_ns = 20'000'000'000;

void on_term(int) {
  service::request_stop();
}

}  // namespace

Service::Service(service::Options options) {
  char name[] = "/tmp/haul-service-test-XXXXXX";
  directory_ = mkdtemp(name);
  path_ = directory_ + "/s";
  if (pipe2(said_, O_CLOEXEC | O_NONBLOCK) != 0) abort();
  // Where yama restricts it, a child may not look at its parent.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  os::membarrier_register_global();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, on_term);
    options.socket_path = path_;
    options.say = [this](LogLevel, const std::string& line) {
      const std::string whole = line + "\n";
      if (write(said_[1], whole.data(), whole.size()) < 0) return;
    };
    int status = 0;
    try {
      service::run(options);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "service: %s\n", failure.what());
      status = 1;
    }
    _exit(status);
  }
  for (int i = 0; i < 4000; ++i) {
    const int fd = os::connect_to(path_.c_str());
    if (fd >= 0) {
      close(fd);
      return;
    }
    usleep(5000);
  }
  ADD_FAILURE() << "the service does not start";
}

Service::~Service() {
  const bool was_alive = alive();
  EXPECT_TRUE(was_alive || status_ == 0) << "the service crashed: " << status_;
  if (was_alive) {
    const int status = stop();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_NE(access(path_.c_str(), F_OK), 0) << "the socket is left";
  unlink(path_.c_str());
  rmdir(directory_.c_str());
  close(said_[0]);
  close(said_[1]);
}

bool Service::alive() {
  if (!reaped_) reaped_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return !reaped_;
}

int Service::stop() {
  if (!reaped_) {
    kill(pid_, SIGTERM);
    const std::uint64_t end = now_ns() + patience_ns;
    while (alive() && now_ns() < end) usleep(1000);
    if (!reaped_) {
      ADD_FAILURE() << "the service does not stop";
      kill(pid_, SIGKILL);
      waitpid(pid_, &status_, 0);
      reaped_ = true;
    }
  }
  return status_;
}

bool Service::says(const std::string& part) {
  const std::uint64_t end = now_ns() + patience_ns / 2;
  while (heard_.find(part) == std::string::npos && now_ns() < end) {
    char some[512];
    const ssize_t bytes = read(said_[0], some, sizeof some);
    if (bytes > 0) heard_.append(some, static_cast<std::size_t>(bytes));
    if (bytes <= 0) usleep(1000);
  }
  return heard_.find(part) != std::string::npos;
}

wire::Stats Service::stats(std::vector<wire::ClientStats>* clients) {
  FakeOptions options;
  options.hello = false;
  Fake monitor(path_, options);
  monitor.hello.role = wire::Role::monitor;
  EXPECT_TRUE(monitor.say_hello({}));
  wire::Stats stats;
  EXPECT_TRUE(monitor.send(wire::Query{}));
  EXPECT_TRUE(monitor.receive(&stats));
  for (std::uint32_t i = 0; i < stats.clients; ++i) {
    wire::ClientStats one;
    EXPECT_TRUE(monitor.receive(&one));
    if (clients != nullptr) clients->push_back(one);
  }
  return stats;
}

Fake::Fake(const std::string& path, FakeOptions options) : arena_bytes_(options.arena_bytes) {
  fd_ = os::connect_to(path.c_str());
  EXPECT_GE(fd_, 0) << fd_;
  table_fd_ = os::make_sealed("fake-rings", shared_table_bytes);
  table_ = static_cast<std::byte*>(os::map_shared(nullptr, shared_table_bytes, table_fd_, 0));
  for (unsigned i = 0; i < options.rings; ++i) {
    ring(i).begin(i, 77);
    board().shared[i / 64].fetch_or(std::uint64_t{1} << i % 64);
  }
  if (arena_bytes_ != 0) {
    arena_fd_ = os::make_sealed("fake-arena", arena_bytes_);
    arena_ = static_cast<std::uint8_t*>(os::map_shared(nullptr, arena_bytes_, arena_fd_, 0));
    hello.arena_base = reinterpret_cast<std::uintptr_t>(arena_);
    hello.arena_bytes = arena_bytes_;
  }
  std::snprintf(hello.version, sizeof hello.version, "0.1.0");
  std::snprintf(hello.name, sizeof hello.name, "%.15s", options.name.c_str());
  hello.weight = options.weight;
  os::random_bytes(hello.key, sizeof hello.key);
  hello.probe_address = reinterpret_cast<std::uintptr_t>(&probe_);
  hello.probe_value = probe_;
  if (options.hello) {
    EXPECT_TRUE(say_hello());
  }
}

Fake::~Fake() {
  if (fd_ >= 0) close(fd_);
  if (table_ != nullptr) munmap(table_, shared_table_bytes);
  if (arena_ != nullptr) munmap(arena_, arena_bytes_);
  if (table_fd_ >= 0) close(table_fd_);
  if (arena_fd_ >= 0) close(arena_fd_);
}

std::vector<int> Fake::usual_fds() const {
  std::vector<int> fds{table_fd_};
  if (arena_fd_ >= 0) fds.push_back(arena_fd_);
  return fds;
}

bool Fake::say_hello(const std::vector<int>& fds) {
  return send(hello, fds) && receive(&welcome_);
}

Job Fake::copy_job(std::uint64_t dst, std::uint64_t src, std::size_t length) {
  Job job;
  job.service = true;
  job.dst = dst;
  job.src_or_pattern = src;
  job.chunks = Chunks::single(length, 12);
  return job;
}

std::uint64_t Fake::submit(Job job, unsigned index, const Extras* extras) {
  Ring& own = ring(index);
  const std::uint64_t end = now_ns() + patience_ns;
  while (!own.has_room()) {
    if (now_ns() > end) {
      ADD_FAILURE() << "no room in the ring";
      break;
    }
  }
  own.publish(job, extras);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ring_bell();
  return job.seq;
}

void Fake::ring_bell() {
  if (board().asleep.load() != 0 && board().asleep.exchange(0) != 0) send(wire::Bell{});
}

bool Fake::ended(std::uint64_t seq, unsigned index) {
  return State::seq(ring(index).state_word(seq).load(std::memory_order_acquire)) >= seq;
}

Code Fake::wait(std::uint64_t seq, unsigned index) {
  const std::uint64_t end = now_ns() + patience_ns;
  for (unsigned turn = 1;; ++turn) {
    const std::uint64_t word = ring(index).state_word(seq).load(std::memory_order_acquire);
    if (State::seq(word) == seq) return State::code(word);
    if (State::seq(word) > seq) return Code::ok;
    if (turn % 4096 != 0) continue;
    if (now_ns() > end) return Code::timed_out;
    wire::Yours yours;
    const ssize_t left = recv(fd_, &yours, sizeof yours, MSG_PEEK | MSG_DONTWAIT);
    if (left == 0 || (left < 0 && errno == ECONNRESET)) return Code::closed;
    if (left == sizeof(wire::Distance) && yours.kind == wire::MessageKind::distance) {
      // Said at any time; what is looked for lies behind it.
      wire::Distance distance;
      EXPECT_TRUE(receive(&distance));
      continue;
    }
    if (left == sizeof yours && yours.kind == wire::MessageKind::yours && yours.seq == seq &&
        yours.ring == index) {
      // A process finishes what is given back; this one ends it with the service's reason.
      EXPECT_TRUE(receive(&yours));
      const auto code = static_cast<Code>(yours.code);
      ring(index).tenancy(seq).end(code);
      return code;
    }
    os::yield();
  }
}

std::uint64_t Fake::good_bytes(std::uint64_t seq, unsigned index) {
  const Tenancy tenancy = ring(index).tenancy(seq);
  EXPECT_EQ(tenancy.claims->failure.load() >> 32, tenancy.generation);
  return tenancy.claims->failure_good.load();
}

bool Fake::send(const void* message, std::size_t bytes, const std::vector<int>& fds) {
  const std::uint64_t end = now_ns() + patience_ns;
  for (;;) {
    const ssize_t sent =
        os::send_packet(fd_, message, bytes, fds.data(), static_cast<unsigned>(fds.size()));
    if (sent != -EAGAIN || now_ns() > end) return sent == static_cast<ssize_t>(bytes);
    os::yield();
  }
}

bool Fake::receive(void* message, std::size_t bytes, wire::MessageKind kind) {
  alignas(8) unsigned char packet[wire::max_message_bytes];
  const std::uint64_t end = now_ns() + patience_ns;
  while (now_ns() < end) {
    if (os::wait_readable(fd_, 1000) <= 0) continue;
    int fds[os::max_packet_fds];
    unsigned count = 0;
    const ssize_t got = os::receive_packet(fd_, packet, sizeof packet, fds, &count);
    for (unsigned i = 0; i < count; ++i) close(fds[i]);
    if (got <= 0) return false;
    wire::MessageKind seen;
    std::memcpy(&seen, packet, sizeof seen);
    if (seen == wire::MessageKind::refused) std::memcpy(&refused_, packet, sizeof refused_);
    if (seen != kind || got != static_cast<ssize_t>(bytes)) continue;
    std::memcpy(message, packet, bytes);
    return true;
  }
  return false;
}

bool Fake::closed() {
  wire::Stop none;  // never sent by a service
  const std::uint64_t begin = now_ns();
  EXPECT_FALSE(receive(&none));
  return now_ns() - begin < patience_ns;
}

wire::Bound Fake::bind(const Fake& owner, std::uint64_t index, Space space) {
  wire::Bind message;
  message.space = space;
  message.index = index;
  std::memcpy(message.key, owner.hello.key, sizeof message.key);
  EXPECT_TRUE(send(message));
  wire::Bound bound;
  EXPECT_TRUE(receive(&bound));
  EXPECT_EQ(bound.space, space);
  return bound;
}

void Fake::grant(std::uint64_t index, std::uint64_t address, std::uint64_t length,
                 std::uint32_t rights) {
  wire::Grant message;
  message.index = index;
  message.address = address;
  message.length = length;
  message.rights = rights;
  EXPECT_TRUE(send(message));
}

void paint(std::uint8_t* at, std::size_t bytes, std::uint32_t seed) {
  std::uint32_t x = seed * 2654435761u + 1;
  for (std::size_t i = 0; i < bytes; ++i) {
    x = x * 1664525u + 1013904223u;
    at[i] = static_cast<std::uint8_t>(x >> 24);
  }
}

bool painted(const std::uint8_t* at, std::size_t bytes, std::uint32_t seed) {
  std::vector<std::uint8_t> wanted(bytes);
  paint(wanted.data(), bytes, seed);
  return bytes == 0 || std::memcmp(at, wanted.data(), bytes) == 0;
}

}  // namespace haul::service_test
