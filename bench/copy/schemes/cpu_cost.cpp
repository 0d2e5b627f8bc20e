// A thread's CPU time is read by its clock, which is exact while it runs; /proc only names threads.
#include "bench/copy/schemes/cpu_cost.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul::bench {
namespace {

// As pthread_getcpuclockid() makes it, which takes no thread of the kernel's.
clockid_t clock_of(pid_t thread) {
  constexpr unsigned of_a_thread = 4, scheduled_time = 2;
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | of_a_thread |
                                scheduled_time);
}

double cpu_ns(pid_t thread) {
  timespec time{};
  if (clock_gettime(clock_of(thread), &time) != 0) return 0;  // it has ended
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

std::string name_of(const std::filesystem::path& task) {
  std::ifstream file(task / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

}  // namespace

double CpuMeter::caller_ns() {
  return static_cast<double>(thread_cpu_ns());
}

CpuMeter::CpuMeter() : self_(os::thread_id()) {
  constexpr int readings = 99;
  Samples samples;
  for (int i = 0; i < readings; ++i) {
    const double before_ns = caller_ns();
    samples.push_back(caller_ns() - before_ns);
  }
  clock_ns_ = median(samples);
}

std::vector<CpuMeter::Thread> CpuMeter::others() const {
  std::vector<Thread> found;
  std::error_code failed;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    const pid_t id = std::atoi(task.path().filename().c_str());
    const std::string name = name_of(task.path());
    if (id == self_ || name.empty()) continue;
    if (name.starts_with("haul-mover")) {
      found.push_back({id, Kind::mover, 0});
    } else if (name.starts_with("iou-")) {
      found.push_back({id, Kind::kernel, 0});
    } else if (!name.starts_with("haul")) {
      found.push_back({id, Kind::device, 0});
    }
  }
  return found;
}

void CpuMeter::look() {
  threads_ = others();
  looked_ = true;
}

// The caller's clock is the last to be read here, and the first in end(): a mover that spins does
// so while the others are read, too.
void CpuMeter::begin() {
  if (!looked_) look();
  looked_ = false;
  for (Thread& thread : threads_) thread.began_ns = cpu_ns(thread.id);
  apart_ns_ = 0;
  began_ns_ = caller_ns();
}

CpuSpan CpuMeter::end() {
  CpuSpan span;
  span.caller_ns = std::max(caller_ns() - began_ns_ - apart_ns_ - clock_ns_, 0.0);
  std::array<double, 3> sums{};
  const auto add = [&](const Thread& thread) {
    sums[static_cast<std::size_t>(thread.kind)] +=
        std::max(cpu_ns(thread.id) - thread.began_ns, 0.0);
  };
  for (const Thread& thread : threads_) add(thread);
  // The kernel makes workers when it needs them.
  for (const Thread& thread : others()) {
    const bool known = std::any_of(threads_.begin(), threads_.end(),
                                   [&](const Thread& one) { return one.id == thread.id; });
    if (!known && thread.kind == Kind::kernel) add(thread);
  }
  span.mover_ns = sums[0];
  span.kernel_ns = sums[1];
  span.device_ns = sums[2];
  return span;
}

}  // namespace haul::bench
