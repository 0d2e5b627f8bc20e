// A registered range of memory. Registration is bookkeeping: nothing is pinned, and memory that is
// used locally need not be registered.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace haul::fabric {

class Counter;
class Domain;

class MemoryRegion final : public fid_mr {
 public:
  // fi_ops_mr: reg, regv, regattr.
  static int open(fid_t domain, const void* start, std::size_t bytes, std::uint64_t access,
                  std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags,
                  fid_mr** region, void* context) noexcept;
  static int open_pieces(fid_t domain, const iovec* pieces, std::size_t count, std::uint64_t access,
                         std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags,
                         fid_mr** region, void* context) noexcept;
  static int open_attributes(fid_t domain, const fi_mr_attr* attr, std::uint64_t flags,
                             fid_mr** region) noexcept;

 private:
  MemoryRegion(Domain& domain, void* context) noexcept;
  static MemoryRegion& of(fid_t object) noexcept {
    return *static_cast<MemoryRegion*>(reinterpret_cast<fid_mr*>(object));
  }
  static int close(fid_t object) noexcept;
  static int bind(fid_t object, fid_t other, std::uint64_t flags) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  int bind_counter(Counter& counter, std::uint64_t flags) noexcept;
  int enable() noexcept;

  Domain& owner_;
  std::uint64_t base_ = 0;
  Counter* writes_ = nullptr;
  Counter* reads_ = nullptr;
};

}  // namespace haul::fabric
