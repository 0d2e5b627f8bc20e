// A number that tells this machine, and this version of what is kept about it, from others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::tune {

// The version of the file's format and of its figures' meaning: raising it makes old files those of
// another machine.
inline constexpr unsigned calibration_version = 5;

// FNV-1a, to name and to check, not to protect.
inline constexpr std::uint64_t hash_seed = 0xcbf29ce484222325u;
constexpr std::uint64_t hash(std::uint64_t seed, const char* data, std::size_t size) noexcept {
  for (std::size_t i = 0; i < size; ++i) {
    seed = (seed ^ static_cast<unsigned char>(data[i])) * 0x100000001b3u;
  }
  return seed;
}

// From the CPU's brand, the number of CPUs online, the cache sizes, /etc/machine-id where it can be
// read, and the version; the same after a reboot. `root` is "" or, in tests, a directory laid out
// like /. Reads some twenty files.
std::uint64_t compute_machine_key(const char* root) noexcept;

// The real machine's key, computed once. Any thread.
std::uint64_t machine_key() noexcept;

}  // namespace haul::tune
