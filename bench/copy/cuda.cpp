// cuda: copies between memory of the process and a GPU's, by haul and by the CUDA driver itself,
// from pageable memory and from memory that is registered with CUDA. They take turns within one
// process.
//
// `once` is new memory for each copy. `shared` lies in memory of haul_alloc(), of which haul cannot
// be told when it changes. `again` is private memory that is copied again and again: haul registers
// it by itself at the second copy. `pageable` is the same for the driver, which does not.
// `registered` the program has registered.
//
// The caller's share of a CPU is measured in copies of their own, in which the caller sleeps
// between looks, as a program that computes would look seldom; in those that are timed it looks all
// the time.
#include <fmt/format.h>
#include <haul/haul.h>

#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>

#include "base/machine/cpu.hpp"
#include "bench/copy/gpu_driver.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

enum class GpuHost { once, shared, again, pageable, registered };

struct GpuCase {
  const char* by;
  const char* memory;
  bool haul;
  GpuHost host;
};
// The last two are what the others are compared with.
constexpr std::array<GpuCase, 6> gpu_cases = {
    {{"haul", "once", true, GpuHost::once},
     {"haul", "shared", true, GpuHost::shared},
     {"haul", "again", true, GpuHost::again},
     {"haul", "registered", true, GpuHost::registered},
     {"driver", "pageable", false, GpuHost::pageable},
     {"driver", "registered", false, GpuHost::registered}}};

double thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct HostMemory {
  explicit HostMemory(GpuDriver& driver, std::size_t bytes) : driver_(driver) {
    use_memory(Memory::shared);
    make(GpuHost::shared, bytes);
    use_memory(Memory::private_);
    for (const GpuHost host :
         {GpuHost::once, GpuHost::again, GpuHost::pageable, GpuHost::registered})
      make(host, bytes);
    driver_.pin(of(GpuHost::registered).data(), bytes);
  }
  ~HostMemory() { driver_.unpin(of(GpuHost::registered).data()); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  Buffer& of(GpuHost host) { return *buffers_[static_cast<unsigned>(host)]; }
  // New memory, in place of what was there.
  void make(GpuHost host, std::size_t bytes) {
    std::unique_ptr<Buffer>& buffer = buffers_[static_cast<unsigned>(host)];
    buffer.reset();
    buffer = std::make_unique<Buffer>(bytes);
  }

 private:
  GpuDriver& driver_;
  std::unique_ptr<Buffer> buffers_[5];
};

class GpuCopies {
 public:
  GpuCopies(std::size_t bytes, haul_space gpu)
      : bytes_(bytes), gpu_(gpu), driver_(bytes), memory_(driver_, bytes) {}

  const GpuDriver& driver() const { return driver_; }

  // One copy, right to the byte. Its time; with `sleeps` the caller's CPU time in it.
  double copy(const GpuCase& what, bool to_gpu, std::uint64_t seed, bool sleeps) {
    if (what.host == GpuHost::once) memory_.make(what.host, bytes_);
    Buffer& host = memory_.of(what.host);
    // What lies at the destination before is another content.
    Buffer& other = memory_.of(GpuHost::registered);
    if (to_gpu) {
      write_content(host.data(), bytes_, seed);
    } else {
      write_content(other.data(), bytes_, seed);
      by_driver(true, other.data(), false);
      if (&other == &host) write_content(host.data(), bytes_, seed + 1);
    }
    const double cpu_before = thread_cpu_ns();
    const double ns = timed_ns([&] {
      what.haul ? by_haul(to_gpu, host.data(), sleeps) : by_driver(to_gpu, host.data(), sleeps);
    });
    const double cpu_ns = thread_cpu_ns() - cpu_before;
    if (to_gpu) {
      write_content(other.data(), bytes_, seed + 1);
      by_driver(false, other.data(), false);
      check_content(other.data(), bytes_, seed);
    } else {
      check_content(host.data(), bytes_, seed);
    }
    return sleeps ? cpu_ns : ns;
  }

 private:
  static void pause(bool sleeps) {
    if (sleeps) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    } else {
      cpu_relax();
    }
  }

  void by_haul(bool to_gpu, void* host, bool sleeps) {
    haul_request request = haul_request_copy(to_gpu ? driver_.memory() : host,
                                             to_gpu ? host : driver_.memory(), bytes_);
    (to_gpu ? request.dst : request.src).space = gpu_;
    haul_ticket ticket{};
    int status = haul_submit(&request, 1, &ticket);
    while (status >= 0 && (status = haul_test(ticket)) == 0) pause(sleeps);
    tools::require(status, "haul_submit()");
  }

  void by_driver(bool to_gpu, void* host, bool sleeps) {
    driver_.begin_copy(to_gpu, host, bytes_);
    while (!driver_.is_over()) pause(sleeps);
  }

  std::size_t bytes_;
  haul_space gpu_;
  GpuDriver driver_;
  HostMemory memory_;
};

struct GpuSamples {
  Samples copy_ns, caller_cpu_ns;
};

Row gpu_row(const GpuCase& what, bool to_gpu, std::size_t bytes, const GpuSamples& mine,
            const GpuSamples& pageable, const GpuSamples& pinned) {
  const auto speed = [&](double q) {
    return round3(static_cast<double>(bytes) / quantile(mine.copy_ns, q));
  };
  const double copy_ns = median(mine.copy_ns);
  Row row = {{"direction", to_gpu ? "to the GPU" : "from the GPU"},
             {"by", what.by},
             {"memory", what.memory},
             {"size_bytes", bytes},
             {"gbps", speed(0.5)},
             {"gbps_q25", speed(0.75)},
             {"gbps_q75", speed(0.25)},
             {"copy_ns", round1(copy_ns)},
             {"caller_cpu", round3(median(mine.caller_cpu_ns) / copy_ns)}};
  // Of the driver's bandwidths from pageable memory, and from registered memory.
  put_ratio(row, "of_pageable", ratio_of(pageable.copy_ns, mine.copy_ns));
  put_ratio(row, "ratio", ratio_of(pinned.copy_ns, mine.copy_ns));
  row["rounds"] = mine.copy_ns.size();
  return row;
}

void run_cuda(SuiteRun& session, std::vector<Row>& rows) {
  if (const std::string why = GpuDriver::why_not(); !why.empty()) throw tools::CommandFailure(why);
  const bool quick = session.options.quick;
  const unsigned rounds = quick ? 3 : 15;
  const std::vector<std::size_t> sizes =
      sizes_or(session.options,
               quick ? std::vector<std::size_t>{std::size_t{1} << 20}
                     : std::vector<std::size_t>{std::size_t{64} << 10, std::size_t{1} << 20,
                                                std::size_t{4} << 20, std::size_t{16} << 20,
                                                std::size_t{64} << 20, std::size_t{256} << 20});
  haul_space gpu = 0;
  tools::require(haul_space_open_device("cuda", &gpu), "haul_space_open_device()");
  tools::require(haul_wake(), "haul_wake()");
  double done = 0;
  std::uint64_t seed = 0;
  for (const std::size_t bytes : sizes) {
    GpuCopies copies(bytes, gpu);
    if (done == 0) session.options.note("the GPU is " + copies.driver().name());
    for (const bool to_gpu : {true, false}) {
      std::array<GpuSamples, gpu_cases.size()> measured;
      // (The first two rounds register what comes again.)
      for (unsigned round = 0; round < rounds + 2; ++round) {
        for (std::size_t turn = 0; turn < gpu_cases.size(); ++turn) {
          const std::size_t which = (turn + round) % gpu_cases.size();
          const double ns = copies.copy(gpu_cases[which], to_gpu, seed += 2, false);
          const double cpu_ns = copies.copy(gpu_cases[which], to_gpu, seed += 2, true);
          if (round < 2) continue;
          measured[which].copy_ns.push_back(ns);
          measured[which].caller_cpu_ns.push_back(cpu_ns);
        }
        done += 0.5 / static_cast<double>((rounds + 2) * sizes.size());
        session.options.progress(done, tools::show_bytes(bytes) + " and a GPU");
      }
      for (std::size_t which = 0; which < gpu_cases.size(); ++which)
        rows.push_back(gpu_row(gpu_cases[which], to_gpu, bytes, measured[which],
                               measured[gpu_cases.size() - 2], measured.back()));
    }
  }
  haul_space_close(gpu);
}

constexpr auto cuda_columns = columns_of(
    Column{"direction", "direction", Unit::text}, Column{"by", "by", Unit::text},
    Column{"memory", "memory", Unit::text}, column::size, Column{"gbps", "speed", Unit::gbps},
    Column{"gbps_q25", "25 %", Unit::gbps}, Column{"gbps_q75", "75 %", Unit::gbps},
    Column{"caller_cpu", "caller's CPU", Unit::ratio},
    Column{"of_pageable", "of pageable", Unit::ratio},
    Column{"ratio", "of registered", Unit::ratio}, column::ratio_q25, column::ratio_q75);

}  // namespace

const Suite cuda_suite{"cuda",   "copies to and from a GPU, by haul and by the CUDA driver itself",
                       run_cuda, cuda_columns,
                       false,    GpuDriver::why_not};

}  // namespace haul::bench
