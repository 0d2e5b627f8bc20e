#include "cli/mpi/fabric_monitor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>

#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "service/talk/printable.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

using fabric::MonitorReply;
using Clock = std::chrono::steady_clock;
constexpr int answer_ms = 1000;

// The abstract names of all users' endpoints. The kernel lists a name once for the socket that
// listens and once for each connection to it.
std::set<std::string> endpoint_names() {
  const std::string prefix = fmt::format("@{}", fabric::socket_prefix);
  std::set<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(prefix);
    if (at != std::string::npos) names.insert(line.substr(at + 1));
  }
  return names;
}

// A descriptor that closes itself.
struct MonitorSocket {
  int fd = -1;
  explicit MonitorSocket(int opened) : fd(opened) {}
  ~MonitorSocket() {
    if (fd >= 0) close(fd);
  }
  MonitorSocket(const MonitorSocket&) = delete;
  MonitorSocket& operator=(const MonitorSocket&) = delete;
};

// A question that has been asked.
struct EndpointQuestion {
  std::string name;
  pid_t pid;
  std::unique_ptr<MonitorSocket> socket;
};

enum class EndpointAnswer { given, gone, silent };

// Sends the question and does not wait for the answer.
EndpointAnswer ask(const std::string& name, std::vector<EndpointQuestion>* asked) {
  auto socket = std::make_unique<MonitorSocket>(os::connect_abstract(name.c_str()));
  if (socket->fd < 0) return socket->fd == -EAGAIN ? EndpointAnswer::silent : EndpointAnswer::gone;
  os::SocketPeer peer;
  // Anybody can listen at a name of this form, so the peer must be this user's process.
  if (!os::peer_of(socket->fd, &peer) || peer.uid != os::user_id()) return EndpointAnswer::gone;
  const auto greeting = fabric::Greeting::monitor;
  if (os::send_packet(socket->fd, &greeting, sizeof greeting) != sizeof greeting) {
    return EndpointAnswer::gone;
  }
  asked->push_back({name, peer.pid, std::move(socket)});
  return EndpointAnswer::given;
}

EndpointAnswer read_answer(const EndpointQuestion& question, Clock::time_point deadline,
                           EndpointLook* look) {
  const int fd = question.socket->fd;
  auto packet = std::make_unique<MonitorReply>();
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const int ready = os::wait_readable(fd, static_cast<int>(std::max<long long>(left, 0)));
    if (ready == 0) return EndpointAnswer::silent;
    int fds[os::max_packet_fds];
    unsigned fd_count = 0;
    const ssize_t got = os::receive_packet(fd, packet.get(), sizeof *packet, fds, &fd_count);
    for (unsigned i = 0; i < fd_count; ++i) close(fds[i]);
    if (got == -EAGAIN || got == -EINTR) continue;
    if (got == 0) return EndpointAnswer::gone;
    if (got < 0 || !check_reply(packet.get(), static_cast<std::size_t>(got), &look->reply)) {
      return EndpointAnswer::silent;
    }
    look->name = question.name;
    look->pid = question.pid;
    return EndpointAnswer::given;
  }
}

}  // namespace

std::vector<EndpointLook> look_at_endpoints(std::vector<std::string>* silent) {
  std::vector<EndpointLook> looks;
  std::vector<EndpointQuestion> asked;
  auto note = [silent](EndpointAnswer answer, const std::string& name) {
    if (answer == EndpointAnswer::silent && silent != nullptr) silent->push_back(name);
  };
  for (const std::string& name : endpoint_names()) note(ask(name, &asked), name);
  // All endpoints share one deadline, so many stopped processes take no longer than one.
  const auto deadline = Clock::now() + std::chrono::milliseconds(answer_ms);
  for (const EndpointQuestion& question : asked) {
    EndpointLook look;
    const EndpointAnswer answer = read_answer(question, deadline, &look);
    if (answer == EndpointAnswer::given) looks.push_back(look);
    note(answer, question.name);
  }
  return looks;
}

std::string process_name(pid_t pid) {
  char name[32];
  const std::string path = fmt::format("/proc/{}/comm", pid);
  const ssize_t length = os::read_file(path.c_str(), name, sizeof name);
  if (length <= 0) return "";
  std::string text(name, static_cast<std::size_t>(length));
  text.erase(text.find_last_not_of('\n') + 1);
  return service::printable(text.c_str(), text.size());
}

std::vector<EndpointLook> look_at_process(pid_t pid) {
  std::vector<std::string> silent;
  std::vector<EndpointLook> all = look_at_endpoints(&silent), own;
  std::set<pid_t> others;
  for (EndpointLook& look : all) {
    if (look.pid == pid) {
      own.push_back(look);
    } else if (look.pid != 0) {
      others.insert(look.pid);
    }
  }
  if (!own.empty()) return own;
  if (!silent.empty()) {
    throw tools::CommandFailure(fmt::format(
        "process {} has no endpoint that answers within a second; if it is stopped, let it go on "
        "(kill -CONT {}), and if it runs another version of haul, restart it",
        pid, pid));
  }
  throw tools::CommandFailure(
      fmt::format("process {} has no endpoint of haul; {}", pid,
                  others.empty() ? "start the program with `haul run --mpi`"
                                 : fmt::format("these have: {}", fmt::join(others, " "))));
}

void Traffic::add(const MonitorReply& reply) {
  for (std::size_t i = 0; i < fabric::path_count; ++i) {
    messages[i] += reply.sent_messages[i];
    bytes[i] += reply.sent_bytes[i];
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += reply.sizes[i];
  received_messages += reply.received_messages;
  received_bytes += reply.received_bytes;
  unexpected_messages += reply.unexpected_messages;
  unexpected_bytes += reply.unexpected_bytes;
  copies_in_flight += reply.copies_in_flight;
  fallbacks += reply.fallbacks;
  rma_operations += reply.rma_operations;
  atomic_operations += reply.atomic_operations;
  peers = std::max<std::uint64_t>(peers, reply.peers);
}

std::uint64_t Traffic::all_messages() const {
  return std::accumulate(messages.begin(), messages.end(), std::uint64_t{0});
}
std::uint64_t Traffic::all_bytes() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

}  // namespace haul::cli
