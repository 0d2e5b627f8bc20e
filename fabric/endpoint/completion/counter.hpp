// A counter of completed operations.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>

#include "fabric/endpoint/waiting/progressed.hpp"

namespace haul::fabric {

class Counter final : public fid_cntr, public Progressed {
 public:
  // fi_ops_domain.cntr_open.
  static int open(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter,
                  void* context) noexcept;
  static Counter& of(fid_t object) noexcept {
    return *static_cast<Counter*>(reinterpret_cast<fid_cntr*>(object));
  }

  // An operation is done, or failed. Called under the data lock.
  void count(bool failed) noexcept;
  // bind() by a memory region, which peers may reach through any endpoint of the domain.
  void bind_region() noexcept;
  void unbind_region() noexcept;

  // fi_poll(): progress; true if a value has changed since the last fi_poll, fi_cntr_set or _add.
  bool changed() noexcept;
  bool ready() noexcept override;

 private:
  Counter(Domain& domain, void* context) noexcept;
  static int close(fid_t object) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  using Word = std::atomic<std::uint64_t> Counter::*;
  enum class Change : std::uint8_t { add, set };
  template <Word word>
  static std::uint64_t read(fid_cntr* counter) noexcept;
  template <Word word, Change change>
  static int change(fid_cntr* counter, std::uint64_t operand) noexcept;
  static int wait(fid_cntr* counter, std::uint64_t threshold, int timeout) noexcept;
  static fi_ops_cntr cntr_ops;
  std::uint64_t read(const std::atomic<std::uint64_t>& value) noexcept;
  // These under the data lock:
  void progress() noexcept override;
  bool has_news() const noexcept override;
  void see() noexcept;

  // Written under the data lock, read without.
  std::atomic<std::uint64_t> value_{0}, errors_{0};
  std::uint64_t polled_value_ = 0, polled_errors_ = 0;
  std::uint64_t seen_value_ = 0, seen_errors_ = 0;  // by the program
  unsigned regions_ = 0;                            // bound to it
};

}  // namespace haul::fabric
