#include "fabric/transport/offnode/carrier/provider_memory.hpp"

#include <rdma/fi_errno.h>

#include <cerrno>

#include "base/os/pages/sealed.hpp"

namespace haul::fabric {

namespace {

// Shorter parts of a message are not worth a registration that stays.
constexpr std::size_t least_kept_bytes = std::size_t{512} << 10;

}  // namespace

int register_memory(fid_domain& domain, bool provider_chooses, const void* at, std::size_t bytes,
                    std::uint64_t access, fid_mr** registration) noexcept {
  // A key that is in use is refused, and another one tried.
  for (;;) {
    std::uint32_t key = 0;
    if (!provider_chooses) os::random_bytes(&key, sizeof key);
    const int error = fi_mr_reg(&domain, at, bytes, access, 0, key, 0, registration, nullptr);
    if (error != -FI_ENOKEY || provider_chooses) return error;
  }
}

void ProviderMemory::open(fid_domain& domain, std::uint64_t access, bool provider_chooses,
                          bool keeps) noexcept {
  domain_ = &domain;
  access_ = access;
  provider_chooses_ = provider_chooses;
  const HaulPrivateRegistrar registrar{this, pin, unpin, least_kept_bytes};
  if (keeps) regions_ = haul_private_open_regions(&registrar);
}

int ProviderMemory::enlist(const void* at, std::size_t bytes, fid_mr** registration) noexcept {
  ++registrations_;
  const int error = register_memory(*domain_, provider_chooses_, at, bytes, access_, registration);
  if (error != 0) return error;
  // Packets have no room for longer keys.
  if (access_ != FI_REMOTE_READ || fi_mr_key(*registration) <= UINT32_MAX) return 0;
  fi_close(&(*registration)->fid);
  return -FI_EOPNOTSUPP;
}

int ProviderMemory::acquire(const void* at, std::size_t bytes, std::size_t before,
                            std::size_t behind, Use* use) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  if (regions_ != nullptr &&
      haul_private_hold_region(regions_, address, bytes, before, behind, &use->hold)) {
    use->registration = reinterpret_cast<fid_mr*>(use->hold.region);
    use->begin = use->hold.begin;
    use->kept = true;
    return 0;
  }
  use->begin = address;
  use->kept = false;
  return enlist(at, bytes, &use->registration);
}

void ProviderMemory::release(Use& use) noexcept {
  if (use.registration == nullptr) return;
  if (use.kept) {
    haul_private_release_region(regions_, &use.hold);
  } else {
    fi_close(&use.registration->fid);
  }
  use.registration = nullptr;
}

void ProviderMemory::end(bool in_child) noexcept {
  if (regions_ != nullptr) haul_private_close_regions(regions_, in_child);
  regions_ = nullptr;
}

int ProviderMemory::pin(void* self, std::uintptr_t address, std::size_t bytes,
                        std::uint64_t* region) noexcept {
  fid_mr* registration = nullptr;
  const int error = static_cast<ProviderMemory*>(self)->enlist(reinterpret_cast<void*>(address),
                                                               bytes, &registration);
  if (error != 0) return error == -FI_ENOSPC ? ENOMEM : -error;
  *region = reinterpret_cast<std::uint64_t>(registration);
  return 0;
}

void ProviderMemory::unpin(void*, std::uint64_t region) noexcept {
  fi_close(&reinterpret_cast<fid_mr*>(region)->fid);
}

}  // namespace haul::fabric
