#include "tune/machine_key.hpp"

#include <limits.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "base/machine/cpu.hpp"
#include "base/machine/topology.hpp"
#include "base/os/os.hpp"

namespace haul::tune {

namespace {

// 0: not computed yet. Relaxed: the value stands for itself.
constinit std::atomic<std::uint64_t> known_key{0};

}  // namespace

std::uint64_t compute_machine_key(const char* root) noexcept {
  char text[512];
  const CpuFeatures& cpu = cpu_features();
  const auto topology = read_topology(root);
  int length;
  if (topology) {
    length = snprintf(text, sizeof text, "%u|%s|%zu|%u|%zu|%zu|%zu|", calibration_version,
                      cpu.brand, cpu.llc_bytes, topology->online_count, topology->l1d_bytes,
                      topology->l2_bytes, topology->l3_bytes);
  } else {
    length =
        snprintf(text, sizeof text, "%u|%s|%zu|", calibration_version, cpu.brand, cpu.llc_bytes);
  }
  std::uint64_t key =
      length < 0
          ? hash_seed
          : hash(hash_seed, text, std::min(static_cast<std::size_t>(length), sizeof text - 1));
  char path[PATH_MAX];
  if (const int size = snprintf(path, sizeof path, "%s/etc/machine-id", root);
      size > 0 && static_cast<std::size_t>(size) < sizeof path) {
    const ssize_t id_bytes = os::read_file(path, text, sizeof text);
    if (id_bytes > 0) key = hash(key, text, static_cast<std::size_t>(id_bytes));
  }
  return key != 0 ? key : 1;
}

std::uint64_t machine_key() noexcept {
  std::uint64_t key = known_key.load(std::memory_order_relaxed);
  if (key == 0) {
    // Threads that race here compute the same.
    key = compute_machine_key("");
    known_key.store(key, std::memory_order_relaxed);
  }
  return key;
}

}  // namespace haul::tune
