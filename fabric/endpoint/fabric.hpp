// The fabric object: what domains, event queues and wait sets belong to.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <atomic>

namespace haul::fabric {

class Domain;

class Fabric final : public fid_fabric {
 public:
  // libfabric's fi_provider.fabric.
  static int open(fi_fabric_attr* attr, fid_fabric** fabric, void* context) noexcept;
  static Fabric& of(fid_t object) noexcept {
    return *static_cast<Fabric*>(reinterpret_cast<fid_fabric*>(object));
  }
  static Fabric& of(fid_fabric* object) noexcept { return *static_cast<Fabric*>(object); }

  std::atomic<unsigned> references{0};  // objects that must be closed first

  // The fabrics and domains that are open, for fi_getinfo(). Thread-safe.
  static fid_fabric* first_open() noexcept;
  // The domain that was opened first of those with such attributes; nullptr: none.
  static fid_domain* first_open_domain(const fi_domain_attr& attr) noexcept;
  static bool is_open(const fid_fabric* fabric) noexcept;
  static bool is_open(const fid_domain* domain) noexcept;
  static void opened(Domain& domain) noexcept;
  static void closed(Domain& domain) noexcept;

 private:
  explicit Fabric(void* context) noexcept;
  static int close(fid_t object) noexcept;

  Fabric* next_ = nullptr;
};

}  // namespace haul::fabric
