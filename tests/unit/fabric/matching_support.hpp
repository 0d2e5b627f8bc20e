// Memory for tables by tag that tests refuse, and the sets of bits that MPIs let receives ignore.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::fabric::test {

// While it lives: whether nothrow allocations, as the tables make, are refused.
class Refusal {
 public:
  explicit Refusal(bool refused = true) noexcept { set(refused); }
  ~Refusal() { set(false); }
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;
  static void set(bool refused) noexcept;
  // Asked for so far in this program, refused or not.
  static std::size_t asked() noexcept;
};

// As logged from Open MPI 4 and 5 (mtl ofi), MPICH 5 and Intel MPI: the protocol's bits, with the
// tag's for MPI_ANY_TAG, with the source's for MPI_ANY_SOURCE (Intel MPI), and none (an answer).
inline constexpr std::uint64_t mpi_ignores[] = {
    0x0000000100000000u, 0x000000017fffffffu, 0x00c0000000000000u,
    0x00c000007fffffffu, 0x6000000000000000u, 0x60000000000fffffu,
    0x6fffff0000000000u, 0x6fffff00000fffffu, 0x0000000000000000u};

}  // namespace haul::fabric::test
