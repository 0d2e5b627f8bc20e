// A PCI device that Linux has handed to this program (VFIO): its registers, its right to access
// memory by itself, and the memory that it reaches through the IOMMU. The kernel pins what is
// mapped, which counts against RLIMIT_MEMLOCK. When the last descriptor closes, the kernel takes
// the device's rights away, so that a program that is killed leaves nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "devices/nic/card/iova.hpp"
#include "devices/nic/packet.hpp"

namespace haul::nic {

struct PciIdentity {
  std::uint16_t vendor = 0, device = 0;
};

class VfioDevice {
 public:
  ~VfioDevice() { close(); }

  // What the kernel knows of the device at a PCI address such as 0000:00:03.0, whoever drives it.
  // False: the sentence says that there is none.
  static bool identify(const char* address, PciIdentity* identity, char* sentence,
                       std::size_t bytes) noexcept;

  // False: the sentence says why not and the remedy.
  bool open(const char* address, char* sentence, std::size_t bytes) noexcept;
  void close() noexcept;

  // The device's first registers (BAR 0). A child of fork has none.
  volatile std::uint32_t* registers() const noexcept { return registers_; }
  // May it access memory by itself from now on? Off, it writes nothing any more when this returns.
  bool let_access_memory(bool on) noexcept;

  const IovaSpace& offered() const noexcept { return offered_; }
  // Whole pages; the device reaches them at `iova` until unmap(). ok; no_memory: RLIMIT_MEMLOCK;
  // fault: not all of it is memory that may be written.
  Code map(std::uintptr_t address, std::size_t bytes, std::uint64_t iova) noexcept;
  bool unmap(std::uint64_t iova, std::size_t bytes) noexcept;

 private:
  bool open_group(const char* address, char* sentence, std::size_t bytes) noexcept;
  bool open_device(const char* address, char* sentence, std::size_t bytes) noexcept;
  bool find_offered() noexcept;

  PortSocket container_, group_, device_;
  volatile std::uint32_t* registers_ = nullptr;
  std::size_t register_bytes_ = 0;
  std::uint64_t configuration_ = 0;  // where the device's file has its PCI configuration
  IovaSpace offered_;
};

}  // namespace haul::nic
