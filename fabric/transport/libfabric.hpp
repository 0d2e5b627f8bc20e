// The libfabric that loaded this provider. Its functions are looked up at run time: one provider
// file serves libfabric 1.17 to 2.5, whose symbols carry different versions.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace haul::fabric {

struct Libfabric {
  int (*getinfo)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                 const fi_info* hints, fi_info** info) = nullptr;
  int (*fabric)(fi_fabric_attr* attr, fid_fabric** fabric, void* context) = nullptr;
  // dupinfo(nullptr) makes an empty fi_info with all attributes, of the size this libfabric knows.
  fi_info* (*dupinfo)(const fi_info* info) = nullptr;
  void (*freeinfo)(fi_info* info) = nullptr;
  std::uint32_t (*version)() = nullptr;
  const char* (*strerror)(int error) = nullptr;  // error: FI_E*, positive
};

// Looked up once; thread-safe. nullptr, and one error in the log, if a function is missing.
const Libfabric* libfabric() noexcept;

// The flag of getinfo() by which a provider reaches others that FI_PROVIDER hides from programs
// (OFI_GETINFO_HIDDEN, the same bit in libfabric 1.17 to 2.5).
inline constexpr std::uint64_t getinfo_hidden = std::uint64_t{1} << 60;

}  // namespace haul::fabric
