// Processes that speak through the provider without an MPI launcher: a parent that never touches
// libfabric forks the ranks, hands every rank the addresses of all, and watches. For programs whose
// ranks may die; what goes wrong in a rank ends it with a sentence and status 1.
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
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sizes.hpp"

namespace rank_test {

[[noreturn]] __attribute__((format(printf, 1, 2))) void give_up(const char* format, ...);
std::int64_t now_ns();

// A small generator whose sequence depends on the seed alone.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t limit) { return limit == 0 ? 0 : next() % limit; }
  // Each power of two between is as likely as the next.
  std::size_t size(std::size_t most);

 private:
  std::uint64_t state_;
};

// What every operation begins with; completions name it.
struct Operation {
  fi_context2 context{};
};

struct Completion {
  Operation* operation;
  std::uint64_t flags;
  std::size_t len;
  std::uint64_t tag;
  fi_addr_t source;
  int error;  // positive; 0: it succeeded
};

class Endpoint {
 public:
  explicit Endpoint(std::uint64_t caps);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  std::vector<char> name() const;
  fi_addr_t insert(const std::vector<char>& name);
  void remove(fi_addr_t address);
  // Opens memory to the peers; it stays so until the endpoint is destroyed.
  void share(void* memory, std::size_t bytes);
  std::uint64_t key() const { return fi_mr_key(region_); }
  std::uint64_t base() const { return base_; }
  // Hands over each completion that is there; yields when there is none.
  void reap(const std::function<void(const Completion&)>& take);

  fid_ep* ep = nullptr;

 private:
  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_mr* region_ = nullptr;
  std::uint64_t base_ = 0;
};

// A stream to the parent or to a rank. The calls block, and give up when the other end has gone.
class Channel {
 public:
  explicit Channel(int descriptor = -1) : descriptor_(descriptor) {}
  void put_bytes(const void* bytes, std::size_t size) const;
  void get_bytes(void* bytes, std::size_t size) const;
  bool readable() const;
  template <typename T>
  void put(const T& value) const {
    put_bytes(&value, sizeof value);
  }
  template <typename T>
  T get() const {
    T value{};
    get_bytes(&value, sizeof value);
    return value;
  }
  void put_block(const std::vector<char>& block) const;
  std::vector<char> get_block() const;
  void close() const;

 private:
  int descriptor_;
};

struct Rank {
  pid_t pid = -1;
  Channel channel;
};

// Forks ranks; `body` runs in each and its result is the status of its process.
std::vector<Rank> start_ranks(std::size_t count,
                              const std::function<int(std::size_t rank, Channel parent)>& body);
// Gathers a block of every rank and gives all of them to each (parent's and rank's side).
void spread_blocks(const std::vector<Rank>& ranks);
std::vector<std::vector<char>> exchange_block(Channel parent, std::size_t count,
                                              const std::vector<char>& own);

// What a process holds that could leak.
struct Holdings {
  std::size_t descriptors = 0, shared_mappings = 0, mappings = 0, heap_bytes = 0;
};
Holdings holdings();
std::vector<std::string> files_in(const char* directory);

// The value of "--name number", or the default.
std::uint64_t option(int argc, char** argv, const char* name, std::uint64_t otherwise);

}  // namespace rank_test
