// Memory that a libfabric provider must know: buffers of packets, and what peers read.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/log.hpp"
#include "base/thread/uncancelled.hpp"
#include "fabric/transport/libfabric.hpp"
#include "fabric/transport/offnode/carrier/libfabric_carrier.hpp"

namespace haul::fabric {

bool LibfabricCarrier::register_slab(Slab& slab) noexcept {
  if (!registers_) return true;
  const int error = register_memory(*domain_, chooses_keys_, slab.memory, slab.bytes,
                                    FI_SEND | FI_RECV, &slab.registration);
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
  for (auto& [key, loan] : lent_)
    for (unsigned i = 0; i < loan.times; ++i) end_one(loan);
  for (Reading* reading : pinned_) places_read_into_.release(reading->into);
  const unsigned long long times = registrations(), uses = loans_ + parts_read_;
  log(LogLevel::debug, "%s registered memory %llu times for %llu loans and parts of reads",
      provider_.c_str(), times, uses);
  memory_lent_.close();
  places_read_into_.close();
}

void LibfabricCarrier::forked() noexcept {
  memory_lent_.forked();
  places_read_into_.forked();
}

// Where there is no room for more, what is not in use goes first.
int LibfabricCarrier::acquire(ProviderMemory& memory, const iovec& what, std::size_t before,
                              std::size_t behind, ProviderMemory::Use* use) noexcept {
  const int error = memory.acquire(what.iov_base, what.iov_len, before, behind, use);
  if (error != -FI_ENOMEM) return error;
  memory_lent_.spare();
  places_read_into_.spare();
  return memory.acquire(what.iov_base, what.iov_len, before, behind, use);
}

int LibfabricCarrier::lend(void* at, std::size_t bytes, std::uint64_t* address,
                           std::uint32_t* key) noexcept {
  const Uncancelled guard;
  Loan loan;
  const int error = acquire(memory_lent_, {at, bytes}, 0, 0, &loan.use);
  if (error != 0) return error;
  ++loans_;
  const auto place = reinterpret_cast<std::uintptr_t>(at);
  *key = static_cast<std::uint32_t>(fi_mr_key(loan.use.registration));
  *address = by_address_ ? place : place - loan.use.begin;
  // Loans of memory that stays registered may share a registration, and so a key.
  ++lent_.try_emplace(*key, loan).first->second.times;
  return 0;
}

void LibfabricCarrier::end_one(const Loan& loan) noexcept {
  ProviderMemory::Use use = loan.use;
  memory_lent_.release(use);
}

void LibfabricCarrier::take_back(std::uint32_t key) noexcept {
  const Uncancelled guard;
  const auto found = lent_.find(key);
  if (found == lent_.end()) return;
  end_one(found->second);
  if (--found->second.times == 0) lent_.erase(found);
}

int LibfabricCarrier::read(Reading& reading, const iovec* to, std::size_t count, fi_addr_t from,
                           std::uint64_t address, std::uint32_t key) noexcept {
  const Uncancelled guard;
  if (count > most_pieces_ || (registers_ && count != 1)) return -FI_EOPNOTSUPP;
  void* descriptor = nullptr;
  // Paper 001, III-B: memory is pinned a part at a time, while the part before it comes in.
  if (registers_) {
    if (reading.into.registration == nullptr) {
      const int error =
          acquire(places_read_into_, to[0], reading.before, reading.behind, &reading.into);
      if (error != 0) return error;
      ++parts_read_;
      pinned_.push_back(&reading);
    }
    descriptor = fi_mr_desc(reading.into.registration);
  }
  const ssize_t error = fi_readv(endpoint_, to, registers_ ? &descriptor : nullptr, count, from,
                                 address, key, &reading.words);
  if (error != 0 && error != -FI_EAGAIN) give_up(reading);
  return static_cast<int>(error);
}

void LibfabricCarrier::give_up(Reading& reading) noexcept {
  if (reading.into.registration == nullptr) return;
  const Uncancelled guard;
  places_read_into_.release(reading.into);
  std::erase(pinned_, &reading);
}

void LibfabricCarrier::ended(Reading& reading, int error, User& user) noexcept {
  give_up(reading);
  user.was_read(reading, error);
}

}  // namespace haul::fabric
