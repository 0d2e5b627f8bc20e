// The completion queue.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/endpoint/completion/completion_ring.hpp"
#include "fabric/endpoint/waiting/progressed.hpp"

namespace haul::fabric {

class FabricCompletionQueue final : public fid_cq, public Progressed {
 public:
  // fi_ops_domain.cq_open.
  static int open(fid_domain* domain, fi_cq_attr* attr, fid_cq** queue, void* context) noexcept;
  static FabricCompletionQueue& of(fid_t object) noexcept {
    return *static_cast<FabricCompletionQueue*>(reinterpret_cast<fid_cq*>(object));
  }

  // Both under the data lock.
  bool room() const noexcept { return ring_.size() < size_; }
  // An entry for the caller to fill in at once. Without memory it is one that is lost, and the
  // queue reports FI_EOVERRUN.
  CompletionEntry& add() noexcept {
    if (parked_ > 0) [[unlikely]]
      wait_->ring();
    CompletionEntry* entry = ring_.add();
    if (entry != nullptr) [[likely]]
      return *entry;
    overrun_ = true;
    return lost_;
  }

  bool ready() noexcept override;

 private:
  FabricCompletionQueue(Domain& domain, const fi_cq_attr& attr, void* context) noexcept;
  ~FabricCompletionQueue();
  static int close(fid_t object) noexcept;
  static int control(fid_t object, int command, void* argument) noexcept;
  static ssize_t read(fid_cq* queue, void* buffer, std::size_t count) noexcept;
  static ssize_t read_from(fid_cq* queue, void* buffer, std::size_t count,
                           fi_addr_t* sources) noexcept;
  static ssize_t read_error(fid_cq* queue, fi_cq_err_entry* entry, std::uint64_t flags) noexcept;
  static ssize_t blocking_read(fid_cq* queue, void* buffer, std::size_t count,
                               const void* condition, int timeout) noexcept;
  static ssize_t blocking_read_from(fid_cq* queue, void* buffer, std::size_t count,
                                    fi_addr_t* sources, const void* condition,
                                    int timeout) noexcept;
  static int signal(fid_cq* queue) noexcept;
  static fi_ops_cq cq_ops;

  ssize_t read_now(void* buffer, std::size_t count, fi_addr_t* sources) noexcept;
  std::size_t copy_out(void* buffer, std::size_t count, fi_addr_t* sources) noexcept;
  void progress() noexcept override { group_.progress(); }
  bool has_news() const noexcept override;
  bool take_signal() noexcept;
  void write_error(const CompletionEntry& entry, fi_cq_err_entry* out) noexcept;

  const std::size_t size_;
  std::size_t entry_bytes_ = 0;  // of the format
  bool overrun_ = false;         // entries were lost
  CompletionRing ring_;
  std::atomic<unsigned> sleepers_{0};  // in blocking reads
  std::atomic<unsigned> signals_{0};   // fi_cq_signal() not yet noticed by sleepers
  Address error_address_;              // err_data of the latest error, where this queue owns it
  CompletionEntry lost_;
};

}  // namespace haul::fabric
