// Memory that a libfabric provider must know: buffers of packets, and what peers read.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/log.hpp"
#include "base/os/sealed.hpp"
#include "base/thread/uncancelled.hpp"
#include "fabric/transport/libfabric.hpp"
#include "fabric/transport/offnode/carrier/libfabric_carrier.hpp"

namespace haul::fabric {

int LibfabricCarrier::enlist(void* at, std::size_t bytes, std::uint64_t access,
                             fid_mr** registration) noexcept {
  // A key that the provider does not choose is random, so that nobody guesses it; one in use is
  // refused, and another one tried.
  for (;;) {
    std::uint32_t key = 0;
    if (!chooses_keys_) os::random_bytes(&key, sizeof key);
    const int error = fi_mr_reg(domain_, at, bytes, access, 0, key, 0, registration, nullptr);
    if (error != -FI_ENOKEY || chooses_keys_) return error;
  }
}

bool LibfabricCarrier::register_slab(Slab& slab) noexcept {
  if (!registers_) return true;
  const int error = enlist(slab.memory, slab.bytes, FI_SEND | FI_RECV, &slab.registration);
  if (error == 0) {
    slab.descriptor = fi_mr_desc(slab.registration);
    return true;
  }
  log(LogLevel::warning,
      "%s cannot register %zu bytes of memory (%s); raise the limit of locked memory (ulimit -l)",
      provider_.c_str(), slab.bytes, libfabric()->strerror(-error));
  return false;
}

void LibfabricCarrier::close_registrations() noexcept {
  for (const Slab& slab : slabs_)
    if (slab.registration != nullptr) fi_close(&slab.registration->fid);
  for (const auto& [key, registration] : lent_) fi_close(&registration->fid);
  for (Reading* reading : pinned_) release(*reading);
}

int LibfabricCarrier::lend(void* at, std::size_t bytes, std::uint64_t* address,
                           std::uint32_t* key) noexcept {
  const Uncancelled guard;
  fid_mr* registration = nullptr;
  const int error = enlist(at, bytes, FI_REMOTE_READ, &registration);
  if (error != 0) return error;
  const std::uint64_t whole_key = fi_mr_key(registration);
  *key = static_cast<std::uint32_t>(whole_key);
  *address = by_address_ ? reinterpret_cast<std::uintptr_t>(at) : 0;
  if (*key == whole_key && lent_.try_emplace(*key, registration).second) return 0;
  fi_close(&registration->fid);
  return -FI_EOPNOTSUPP;  // packets have no room for such keys
}

void LibfabricCarrier::take_back(std::uint32_t key) noexcept {
  const Uncancelled guard;
  const auto found = lent_.find(key);
  if (found == lent_.end()) return;
  fi_close(&found->second->fid);
  lent_.erase(found);
}

int LibfabricCarrier::read(Reading& reading, const iovec* to, std::size_t count, fi_addr_t from,
                           std::uint64_t address, std::uint32_t key) noexcept {
  const Uncancelled guard;
  if (count > most_pieces_ || (registers_ && count != 1)) return -FI_EOPNOTSUPP;
  void* descriptor = nullptr;
  // Paper 001, III-B: memory is pinned a part at a time, while the part before it comes in.
  if (registers_) {
    const int error = enlist(to[0].iov_base, to[0].iov_len, FI_READ, &reading.registration);
    if (error != 0) return error;
    descriptor = fi_mr_desc(reading.registration);
  }
  const ssize_t error = fi_readv(endpoint_, to, registers_ ? &descriptor : nullptr, count, from,
                                 address, key, &reading.words);
  if (error != 0) {
    release(reading);
  } else if (registers_) {
    pinned_.push_back(&reading);
  }
  return static_cast<int>(error);
}

void LibfabricCarrier::release(Reading& reading) noexcept {
  if (reading.registration != nullptr) fi_close(&reading.registration->fid);
  reading.registration = nullptr;
}

void LibfabricCarrier::ended(Reading& reading, int error, User& user) noexcept {
  release(reading);
  std::erase(pinned_, &reading);
  user.was_read(reading, error);
}

}  // namespace haul::fabric
