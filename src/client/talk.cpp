#include "client/talk.hpp"

#include <haul/haul.h>

#include <cerrno>
#include <cstdio>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/os/rights.hpp"
#include "base/thread/apart.hpp"
#include "client/grants.hpp"
#include "request/service_socket.hpp"

namespace haul {
namespace {

constexpr int answer_ms = 2000;  // a service that is stopped must not hold anybody up

// The service reads this word to learn whether it may, and whether this is the process it takes it
// for.
constinit std::atomic<std::uint64_t> probe_word{0};

bool say_hello(int fd, const SharedTable& table, const ArenaView& arena) noexcept {
  wire::Hello hello;
  std::snprintf(hello.version, sizeof hello.version, "%d.%d.%d", HAUL_VERSION_MAJOR,
                HAUL_VERSION_MINOR, HAUL_VERSION_PATCH);
  char name[64];
  if (os::read_file("/proc/self/comm", name, sizeof name) > 0) {
    name[std::strcspn(name, "\n")] = '\0';
    std::snprintf(hello.name, sizeof hello.name, "%.15s", name);
  }
  hello.weight = static_cast<std::uint32_t>(knob_number(Knob::service_weight));
  grant_key(hello.key);
  if (arena.fd >= 0) {
    hello.arena_base = arena.base;
    hello.arena_bytes = arena.bytes;
  }
  std::uint64_t value = ticks();
  os::random_bytes(&value, sizeof value);
  probe_word.store(value, std::memory_order_seq_cst);
  hello.probe_address = reinterpret_cast<std::uintptr_t>(&probe_word);
  hello.probe_value = value;
  const int fds[] = {table.file.get(), arena.fd};
  return os::send_packet(fd, &hello, sizeof hello, fds, arena.fd >= 0 ? 2 : 1) ==
         static_cast<ssize_t>(sizeof hello);
}

// Where the socket is to connect to; the link's thread waits for it.
struct Attempt {
  os::Descriptor socket;
  unsigned place = 0;
  int result = -ENOENT;
};
constinit Attempt attempt;

void try_places(void* /*unused*/) noexcept {
  char path[socket_path_bytes];
  while (service_socket_path(attempt.place, path)) {
    ++attempt.place;
    const int tried = os::connect_socket(attempt.socket.get(), path);
    os::SocketPeer peer;
    if (tried == 0) {
      const bool ours = os::peer_of(attempt.socket.get(), &peer) && peer.uid == os::user_id();
      attempt.result = ours ? 0 : -EPERM;  // another user's would see our memory
      return;
    }
    if (tried != -ENOENT) attempt.result = tried;
  }
}

constexpr os::Apart connecting{"haul-service", try_places, nullptr};

}  // namespace

int connect_to_service(const os::Descriptor& socket, unsigned* place) noexcept {
  if (os::rights_are_mixed()) return -EKEYREJECTED;
  attempt = Attempt{socket, *place, -ENOENT};
  os::run_apart_with(socket.number(), connecting);
  *place = attempt.place;
  return attempt.result;
}

Expected<wire::Welcome> greet_service(int fd, const SharedTable& table, ArenaView* arena) noexcept {
  *arena = arena_view();
  if (arena->fd < 0) arena->bytes = 0;
  if (!say_hello(fd, table, *arena)) {
    return make_error(Code::closed, 0,
                      "The service closed the connection at once; its own messages say why.");
  }
  if (os::wait_readable(fd, answer_ms) <= 0) {
    return make_error(Code::timed_out, 0,
                      "A service listens but does not answer; is it stopped, or overloaded?");
  }
  ServiceMessage message;
  std::size_t bytes = 0;
  wire::Welcome welcome;
  wire::Refused refused;
  if (receive_from_service(fd, &message, &bytes) != Received::message) {
    return make_error(Code::closed, 0,
                      "The service closed the connection at once; its own messages say why.");
  }
  if (read_as(message, bytes, &refused)) return error_of(refused);
  if (read_as(message, bytes, &welcome)) return welcome;
  return make_error(
      Code::io, 0, "The service's answer is not understood: it is of another version; restart it.");
}

Received receive_from_service(int fd, ServiceMessage* message, std::size_t* bytes) noexcept {
  int fds[os::max_packet_fds];
  unsigned count = 0;
  const ssize_t got = os::receive_packet(fd, message->bytes, sizeof message->bytes, fds, &count);
  for (unsigned i = 0; i < count; ++i) os::close_fd(fds[i]);
  *bytes = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got == 0 || got == -ECONNRESET) return Received::closed;
  if (got == -EAGAIN) return Received::nothing;
  return got >= static_cast<ssize_t>(sizeof message->kind) ? Received::message : Received::trouble;
}

Error error_of_connecting(int failed) noexcept {
  return make_error(
      Code::not_supported, 0, "%s",
      failed == -EKEYREJECTED
          ? "This process acts for two users (it is set-user-id, or has put rights aside), so it "
            "shares memory with no service; it copies by itself."
      : failed == -EPERM ? "The service that listens is another user's; start one of your own with "
                           "`haul serve`."
      : failed == -ENOENT || failed == -ECONNREFUSED
          ? "No service runs; `haul serve` starts one."
          : "The service's socket cannot be reached; check its directory's rights, and ulimit "
            "-n.");
}

Error error_of(const wire::Refused& refused) noexcept {
  return make_error(Code::permission, 0, "The node's service refuses this process: %.*s",
                    static_cast<int>(sizeof refused.sentence), refused.sentence);
}

}  // namespace haul
