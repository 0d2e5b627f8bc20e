// The address vector: a table of addresses, whose index is the fi_addr_t for both of libfabric's
// types. Endpoints look at what has changed when they next do something.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "fabric/endpoint/lock.hpp"
#include "fabric/protocol/address.hpp"

namespace haul::fabric {

class Domain;
class EventQueue;

// Thread-safe, with a lock of its own: addresses may be inserted while others send.
class AddressVector final : public fid_av {
 public:
  // fi_ops_domain.av_open.
  static int open(fid_domain* domain, fi_av_attr* attr, fid_av** vector, void* context) noexcept;
  static AddressVector& of(fid_t object) noexcept {
    return *static_cast<AddressVector*>(reinterpret_cast<fid_av*>(object));
  }

  struct Entry {
    Address address;
    std::uint32_t version = 0;  // raised by each insertion and removal here
    bool used = false;
  };
  // Raised after each change. Acquire: pairs with the release in insert() and remove().
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // Calls look(index, entry) for each entry, and returns the generation that it saw.
  template <class Look>
  std::uint32_t look_at_all(Look look) noexcept {
    Guard guard(lock_);
    for (std::size_t i = 0; i < entries_.size(); ++i) look(i, entries_[i]);
    return generation_.load(std::memory_order_relaxed);
  }

  // Endpoints bound to it; it cannot be closed before.
  std::atomic<unsigned> references{0};

 private:
  AddressVector(Domain& domain, const fi_av_attr& attr, void* context) noexcept;
  static int close(fid_t object) noexcept;
  static int bind(fid_t object, fid_t other, std::uint64_t flags) noexcept;
  static int insert(fid_av* vector, const void* addresses, std::size_t count, fi_addr_t* names,
                    std::uint64_t flags, void* context) noexcept;
  static int insert_by_name(fid_av* vector, const char* node, const char* service, fi_addr_t* name,
                            std::uint64_t flags, void* context) noexcept;
  static int remove(fid_av* vector, fi_addr_t* names, std::size_t count,
                    std::uint64_t flags) noexcept;
  static int lookup(fid_av* vector, fi_addr_t name, void* address, std::size_t* bytes) noexcept;
  static const char* describe(fid_av* vector, const void* address, char* text,
                              std::size_t* bytes) noexcept;
  static fi_ops_av av_ops;
  fi_addr_t place(const Address& address) noexcept;

  Domain& owner_;
  const bool asynchronous_;
  EventQueue* events_ = nullptr;
  WordLock lock_;
  std::vector<Entry> entries_;
  std::priority_queue<fi_addr_t, std::vector<fi_addr_t>, std::greater<>> free_;  // lowest first
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace haul::fabric
