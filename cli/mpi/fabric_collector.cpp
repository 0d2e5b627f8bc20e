#include "cli/mpi/fabric_collector.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

constexpr int backlog = 4096;  // because all ranks of a large job connect at once

}  // namespace

Collector::Collector() {
  std::uint64_t random = 0;
  os::random_bytes(&random, sizeof random);
  name_ = fmt::format("haul-report.{}.{}.{:016x}", os::user_id(), getpid(), random);
  listener_ = os::listen_abstract(name_.c_str(), backlog);
  if (listener_ < 0) {
    throw tools::CommandFailure(fmt::format(
        "cannot listen for the job's report ({}); run it without --report, --json and --strict",
        std::strerror(-listener_)));
  }
}

Collector::~Collector() {
  for (const Connection& connection : open_) close(connection.fd);
  close(listener_);
}

void Collector::accept_all() {
  for (;;) {
    const int fd = os::accept_from(listener_);
    if (fd == -EINTR) continue;
    if (fd < 0) return;
    os::SocketPeer peer;
    if (!os::peer_of(fd, &peer) || peer.uid != os::user_id()) {
      close(fd);
      continue;
    }
    open_.push_back({fd, reports_.size()});
    reports_.emplace_back().pid = peer.pid;
  }
}

bool Collector::take(Connection& connection) {
  fabric::MonitorReply packet, checked;
  for (;;) {
    int fds[os::max_packet_fds];
    unsigned fd_count = 0;
    const ssize_t got = os::receive_packet(connection.fd, &packet, sizeof packet, fds, &fd_count);
    for (unsigned i = 0; i < fd_count; ++i) close(fds[i]);
    if (got == -EINTR) continue;
    if (got == -EAGAIN) return true;
    EndpointReport& report = reports_[connection.report];
    if (got <= 0) return false;
    // What it has told before stays.
    if (!check_reply(&packet, static_cast<std::size_t>(got), &checked)) {
      report.refused = true;
      return false;
    }
    report.reply = checked;
    report.pid = report.reply.pid;
    report.complete = report.reply.last != 0;
  }
}

void Collector::wait(int watched, int timeout_ms) {
  std::vector<pollfd> waiting = {{watched, POLLIN, 0}, {listener_, POLLIN, 0}};
  for (const Connection& connection : open_) waiting.push_back({connection.fd, POLLIN, 0});
  if (poll(waiting.data(), waiting.size(), timeout_ms) <= 0) return;
  accept_all();
  std::erase_if(open_, [this](Connection& connection) {
    if (take(connection)) return false;
    close(connection.fd);
    return true;
  });
}

void Collector::drain(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  wait(-1, 0);
  while (!open_.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    wait(-1, static_cast<int>(left.count()));
  }
}

}  // namespace haul::cli
