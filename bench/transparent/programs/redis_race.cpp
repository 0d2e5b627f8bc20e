#include "bench/transparent/programs/redis_race.hpp"

#include <fmt/format.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "bench/kit/command.hpp"
#include "bench/transparent/programs/redis_connection.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"

namespace haul::bench {
namespace {

constexpr const char* server_name = "redis-server";
constexpr const char* checker_name = "redis-check-rdb";
constexpr unsigned check_limit_s = 20;
constexpr std::string_view large_key = "large", small_key = "small", small_value = "0123456789";
constexpr std::uint64_t value_seed = 7;

double cpu_ns_of(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double peak_bytes_of(pid_t pid) {
  std::array<char, 4096> text{};
  const std::string path = fmt::format("/proc/{}/status", pid);
  if (os::read_file(path.c_str(), text.data(), text.size()) <= 0) return 0;
  constexpr const char* title = "VmHWM:";
  const char* row = std::strstr(text.data(), title);
  if (row == nullptr) return 0;
  return 1024.0 * static_cast<double>(std::strtoull(row + std::strlen(title), nullptr, 10));
}

// Sends short GETs from a thread of its own until it is destroyed.
class SmallGets {
 public:
  explicit SmallGets(RedisConnection& connection) : thread_([&] { run(connection); }) {}
  ~SmallGets() { stop(); }
  SmallGets(const SmallGets&) = delete;
  SmallGets& operator=(const SmallGets&) = delete;

  double p999_ns() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
    return quantile(ns_, 0.999);
  }

 private:
  void run(RedisConnection& connection) noexcept {
    try {
      while (!done_.load(std::memory_order_relaxed)) {
        const std::uint64_t begun = now_ns();
        const std::string_view value = connection.get(small_key, small_value.size());
        ns_.push_back(static_cast<double>(now_ns() - begun));
        if (value != small_value)
          throw tools::CommandFailure("redis-server answers a short GET with another value");
        os::sleep_ns(pause_ns);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  // Relaxed: join() orders what the thread has written.
  void stop() {
    done_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }

  static constexpr std::uint64_t pause_ns = 50'000;
  std::atomic<bool> done_{false};
  Samples ns_;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace

std::string RedisRace::missing() {
  if (!tools::find_program(server_name).empty()) return "";
  return "there is no redis-server; install redis-server";
}

RedisRace::RedisRace(const std::string& directory, const std::vector<ProgramWay>& ways) {
  os::unpin_thread();  // the servers and the clients' threads inherit where this thread may run
  try {
    for (const ProgramWay& way : ways) {
      const std::string name = fmt::format("redis{}", servers_.size());
      const std::string path = fmt::format("{}/{}.sock", directory, name);
      const std::string file = name + ".rdb";
      const pid_t pid = tools::start_program(
          {server_name, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no",
           "--logfile", "/dev/null", "--dir", directory, "--dbfilename", file},
          way.environment);
      servers_.push_back({pid, nullptr, nullptr, fmt::format("{}/{}", directory, file)});
      servers_.back().large = std::make_unique<RedisConnection>(path);
      servers_.back().small = std::make_unique<RedisConnection>(path);
      servers_.back().small->set(small_key, small_value);
    }
  } catch (...) {
    end_servers();
    throw;
  }
}

RedisRace::~RedisRace() {
  end_servers();
}

void RedisRace::end_servers() {
  for (const Server& server : servers_) tools::kill_and_reap(server.pid);
}

void RedisRace::set_value(std::size_t bytes) {
  std::string value(bytes, '\0');
  write_content(reinterpret_cast<std::byte*>(value.data()), bytes, value_seed);
  for (const Server& server : servers_) server.large->set(large_key, value);
  value_bytes_ = bytes;
}

double RedisRace::get_large(const Server& server) const {
  const std::uint64_t begun = now_ns();
  const std::string_view value = server.large->get(large_key, value_bytes_);
  const auto taken_ns = static_cast<double>(now_ns() - begun);
  check_content(reinterpret_cast<const std::byte*>(value.data()), value_bytes_, value_seed);
  return taken_ns;
}

RedisRace::Turn RedisRace::ask(std::size_t way, unsigned gets) {
  const Server& server = servers_[way];
  Turn turn;
  const double cpu_before = cpu_ns_of(server.pid);
  SmallGets small(*server.small);
  for (unsigned i = 0; i < gets; ++i) turn.large.wall_ns += get_large(server);
  turn.small_p999_ns = small.p999_ns();
  turn.large.cpu_ns = cpu_ns_of(server.pid) - cpu_before;
  turn.large.peak_bytes = peak_bytes_of(server.pid);
  return turn;
}

RunCost RedisRace::save(std::size_t way) {
  const Server& server = servers_[way];
  const double cpu_before = cpu_ns_of(server.pid);
  const std::uint64_t begun = now_ns();
  server.small->ask("BGSAVE");
  std::string state;
  unsigned gets = 0;
  do {
    get_large(server);
    ++gets;
    state = server.small->ask("INFO persistence");
  } while (state.find("rdb_bgsave_in_progress:0") == std::string::npos);
  const RunCost cost{static_cast<double>(now_ns() - begun) / gets,
                     (cpu_ns_of(server.pid) - cpu_before) / gets, peak_bytes_of(server.pid)};
  if (state.find("rdb_last_bgsave_status:ok") == std::string::npos)
    throw tools::CommandFailure("redis-server cannot save its values; is the disk full?");
  if (!tools::find_program(checker_name).empty()) {
    const CommandOutcome outcome = run_command({checker_name, server.saved}, {}, check_limit_s);
    if (!outcome.good())
      throw tools::CommandFailure(
          fmt::format("{} finds the saved values broken: {}", checker_name, reason_of(outcome)));
  }
  return cost;
}

}  // namespace haul::bench
