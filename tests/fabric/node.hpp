// One side of a conversation through libfabric's public API: a fabric, a domain, an address vector,
// a completion queue and an enabled endpoint of the provider under test, which HAUL_TEST_PROVIDER
// names (default: haul, found through FI_PROVIDER_PATH). Nothing here knows the provider.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sizes.hpp"

namespace fabric_test {

// How long a test waits for what must happen before it calls that a hang.
// HAUL_TEST_PATIENCE_S changes it.
std::chrono::seconds patience();

const char* provider_name();
bool provider_is_haul();

// What a region's owner lets others do.
inline constexpr std::uint64_t remote = FI_REMOTE_READ | FI_REMOTE_WRITE;

// What a test asks of fi_getinfo() and of its node.
struct Wish {
  std::uint64_t caps = FI_MSG | FI_TAGGED;
  std::uint64_t msg_order = FI_ORDER_SAS;
  std::uint64_t tx_flags = 0;
  std::uint64_t rx_flags = 0;
  int mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  fi_av_type av = FI_AV_UNSPEC;
  fi_threading threading = FI_THREAD_UNSPEC;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_wait_obj wait = FI_WAIT_NONE;
  std::uint64_t selective = 0;  // FI_SELECTIVE_COMPLETION or nothing
  std::size_t cq_size = 0;
  std::uint32_t version = FI_VERSION(1, 17);
};

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

Info hints_of(const Wish& wish);
// What the provider answers; null (and the reason in `status`) when it offers no such thing.
Info ask(const Wish& wish, int* status = nullptr);

// Closes what libfabric opened; a refusal to close fails the test.
struct CloseFid {
  void operator()(fid* handle) const;
  template <typename T>
  void operator()(T* handle) const {
    (*this)(&handle->fid);
  }
};
template <typename T>
using Owned = std::unique_ptr<T, CloseFid>;

// What an operation is known by. It must live until the operation has completed.
struct Op {
  fi_context2 context{};
};

struct Completion {
  Op* op = nullptr;
  std::uint64_t flags = 0;
  std::size_t len = 0;
  void* buf = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int err = 0;  // positive, of fi_cq_readerr(); ETIMEDOUT: nothing came in patience()
  std::size_t olen = 0;
};

class Node {
 public:
  explicit Node(const Wish& wish);
  // Of this answer of fi_getinfo()'s.
  Node(const Wish& wish, const fi_info& answer);
  // A second endpoint in the domain of another node, which must outlive it.
  Node(const Wish& wish, Node& neighbour);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Without the features of its wish a node is not ready: `why` says so, and nothing may be called.
  bool ready() const { return ep != nullptr; }
  const std::string& why() const { return why_; }

  std::vector<std::byte> name() const;
  fi_addr_t insert(const std::vector<std::byte>& name);

  // Moves completions into the inbox, also those of the companions.
  void progress();
  // The next completion of the operation.
  Completion await(const Op& op);
  std::optional<Completion> take(const Op& op);
  // The next completion of any operation, in the order of the queue.
  Completion next();
  bool await_until(const std::function<bool()>& condition);
  // Progresses for as long as a message needs by far; true when no completion is left over.
  bool stays_quiet();
  std::size_t inbox_size() const { return inbox_.size(); }

  // Posts until the provider takes it: -FI_EAGAIN is answered with progress.
  ssize_t post(const std::function<ssize_t()>& call);

  Info info;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain_owner;
  fid_domain* domain = nullptr;
  Owned<fid_av> av;
  Owned<fid_cq> cq;
  Owned<fid_ep> ep;
  // Nodes that the same thread drives.
  std::vector<Node*> companions;

 private:
  void open(const Wish& wish);
  void open_domain(const Wish& wish);
  void open_endpoint(const Wish& wish);
  bool read_queue();

  std::string why_;
  std::deque<Completion> inbox_;
};

// Two nodes of one thread that know each other.
struct Pair {
  explicit Pair(const Wish& wish, bool one_domain = false);
  bool ready() const { return a.ready() && b.ready(); }
  const std::string& why() const { return a.ready() ? b.why() : a.why(); }

  Node a;
  std::unique_ptr<Node> b_owner;
  Node& b;
  fi_addr_t to_b = FI_ADDR_NOTAVAIL;  // in a's address vector
  fi_addr_t to_a = FI_ADDR_NOTAVAIL;  // in b's
};

// Bytes that depend on the seed and on their place.
std::vector<std::uint8_t> pattern(std::size_t size, std::uint64_t seed);
// The first place where they differ, as a sentence; empty when they are the same.
std::string difference(const void* got, const std::vector<std::uint8_t>& wanted);

// Memory that peers may reach.
class Region {
 public:
  Region(Node& node, std::size_t bytes, std::uint64_t access, std::uint64_t key = 0);
  std::uint8_t* data() { return bytes_.data(); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }
  // What a peer names it by.
  std::uint64_t key() const;
  std::uint64_t address() const { return base_; }
  int status() const { return status_; }

 private:
  std::vector<std::uint8_t> bytes_;
  Owned<fid_mr> mr_;
  std::uint64_t base_ = 0;
  int status_ = 0;
};

// Closes everything of a handle now, and says what fi_close() said.
template <typename T>
int close_now(Owned<T>& handle) {
  const int status = fi_close(&handle->fid);
  if (status == 0) static_cast<void>(handle.release());
  return status;
}

}  // namespace fabric_test
