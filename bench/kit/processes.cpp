// Starting this program again, and sharing memory with it.
#include "bench/kit/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <haul/haul.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t patience_ns = std::uint64_t{60} * 1'000'000'000, step_ns = 1'000'000;

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) throw tools::CommandFailure("/proc/self/exe cannot be read; mount /proc");
  return std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace

SharedBlock::SharedBlock(std::size_t bytes)
    : fd_(os::make_sealed("haul-bench", bytes)), at_(nullptr), bytes_(bytes) {
  if (fd_ >= 0) at_ = os::map_shared(nullptr, bytes, fd_, 0);
  if (at_ == nullptr)
    throw tools::CommandFailure(
        "no shared memory for the processes; raise ulimit -n, or free memory");
}

SharedBlock::SharedBlock(int inherited, std::size_t bytes)
    : fd_(inherited), at_(os::map_shared(nullptr, bytes, inherited, 0)), bytes_(bytes) {
  if (at_ == nullptr) throw tools::CommandFailure("only `haul bench` can start a worker");
}

SharedBlock::~SharedBlock() {
  os::unmap(at_, bytes_);
  os::close_fd(fd_);
}

Child::Child(const std::vector<std::string>& arguments, const tools::Environment& environment,
             bool quiet) {
  std::vector<std::string> command = {own_path()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  pid_ = tools::Image(std::move(command), environment)
             .spawn(tools::Image::nowhere, quiet ? tools::Image::nowhere : tools::Image::inherited);
  if (pid_ < 0)
    throw tools::CommandFailure(fmt::format(
        "cannot start a process ({}); close programs or raise ulimit -u", std::strerror(errno)));
}

Child::~Child() {
  kill_and_reap();
}

Child& Child::operator=(Child&& other) noexcept {
  kill_and_reap();
  pid_ = std::exchange(other.pid_, -1);
  return *this;
}

void Child::kill_and_reap() {
  if (pid_ <= 0) return;
  tools::kill_and_reap(pid_);
  pid_ = -1;
}

bool Child::running() {
  return pid_ > 0 && tools::is_running(pid_);
}

void Child::finish(const char* what) {
  if (pid_ <= 0) return;
  const int status = tools::reap(pid_);
  pid_ = -1;
  if (tools::shell_status(status) != 0)
    throw tools::CommandFailure(fmt::format("{} failed; its message is above", what));
}

Child start_worker(const std::string& role, unsigned index, const SharedBlock& block,
                   const tools::Environment& environment) {
  // dup2() onto its own number would keep close-on-exec, so the worker gets another number.
  const int fd = fcntl(block.fd(), F_DUPFD, 100);
  if (fd < 0) throw tools::CommandFailure("no descriptor is left for a worker; raise ulimit -n");
  tools::Environment all = environment;
  all.emplace_back("HAUL_TUNE_BACKGROUND", "off");
  try {
    Child child({"bench-worker", role, std::to_string(index), std::to_string(fd)}, all);
    os::close_fd(fd);
    return child;
  } catch (...) {
    os::close_fd(fd);
    throw;
  }
}

ServiceProcess::ServiceProcess(std::uint64_t map_bytes) {
  const std::string socket = directory_.path() + "/service.sock";
  child_ = Child({"serve", "--socket", socket, "--map-bytes", std::to_string(map_bytes)},
                 {{"HAUL_MOVER_LEASE", "off"}}, true);
  std::vector<Child> none;
  await("haul serve", none, [&] {
    if (!child_.running()) child_.finish("`haul serve`, as it would tell if it were run by hand,");
    const int fd = os::connect_to(socket.c_str());
    os::close_fd(fd);
    return fd >= 0;
  });
}

ServiceProcess::~ServiceProcess() {
  child_.kill_and_reap();
}

tools::Environment ServiceProcess::environment(const char* mover) const {
  return {{"HAUL_SERVICE_SOCKET", directory_.path() + "/service.sock"}, {"HAUL_PLAN_MOVER", mover}};
}

void await(const char* what, std::vector<Child>& children, const std::function<bool()>& done) {
  const std::uint64_t deadline = now_ns() + patience_ns;
  while (!done()) {
    for (Child& child : children) {
      if (!child.running()) child.finish(what);
    }
    if (now_ns() > deadline)
      throw tools::CommandFailure(
          fmt::format("{} does not answer; is the machine overloaded?", what));
    os::sleep_ns(step_ns);
  }
}

void sleep_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  os::futex_wait_shared(&word, seen, patience_ns);
}

void wake_all(const std::atomic<std::uint32_t>& word) {
  os::futex_wake_shared(&word, INT_MAX);
}

void attach_to_service() {
  haul_state state{};
  state.size = sizeof state;
  for (unsigned turn = 0; turn < 3000; ++turn) {
    haul_wake();
    tools::require(haul_query(&state), "haul_query()");
    if (state.service_state != 0) return;
    os::sleep_ns(step_ns);
  }
  throw tools::CommandFailure(fmt::format("no service: {}", state.service_status));
}

void run_worker(const std::string& role, unsigned index, int block_fd) {
  static constexpr std::pair<const char*, void (*)(unsigned, int)> roles[] = {
      {"client", work_as_client},
      {"share-server", work_as_share_server},
      {"share-reader", work_as_share_reader},
      {"count", work_as_counter},
      {"small-calls", work_as_small_caller},
      {"late-calls", work_as_late_caller},
      {"pinning", work_as_pinning_copier},
      {"engines", work_as_engine_opener},
      {"scheme", work_as_scheme},
      {"stream-source", work_as_stream_source},
      {"stream-sink", work_as_stream_sink}};
  for (const auto& [name, work] : roles) {
    if (role == name) return work(index, block_fd);
  }
  throw tools::CommandFailure(
      fmt::format("there is no worker '{}'; `haul bench` starts them itself", role));
}

}  // namespace haul::bench
