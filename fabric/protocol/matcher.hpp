// The matcher of one endpoint: matching, eager and rendezvous messages, RMA and atomics. It
// makes no system call: a Network brings packets and peers, a Sink takes completions, Regions
// resolve keys. The endpoint room translates libfabric's calls to it.
//
// Threads: not safe; the endpoint's lock is held around every call. Memory that a request names
// must live until its completion; iovecs and the request itself are copied before the call returns.
// Return values: 0, or -FI_E*: -FI_EAGAIN means no room now, try again after progress().
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fabric/protocol/address.hpp"
#include "fabric/protocol/statistics.hpp"
#include "fabric/protocol/transport_contract.hpp"

namespace haul::fabric {

inline constexpr std::size_t max_pieces = 8;        // iov_limit, of every kind of request
inline constexpr std::size_t inject_bytes = 32768;  // the most
inline constexpr std::size_t max_atomic_bytes = 4096;

// What kind of operation a completion is of; counters count by it.
enum class Event : std::uint8_t { send, receive, write, read, remote_write, remote_read };

struct CompletionNotice {
  Event event = Event::send;
  bool wanted = true;  // an entry for the completion queue; counters count it anyway
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_SEND | FI_TAGGED ..., as fi_cq documents
  std::size_t length = 0;   // bytes received
  void* buffer = nullptr;   // receive: where they are (multi-receive: within the buffer)
  std::uint64_t data = 0;   // remote CQ data, with FI_REMOTE_CQ_DATA in flags
  std::uint64_t tag = 0;    // remote_*: the region's key
  Peer* source = nullptr;   // receive, remote_*: the sender
  // Failures only:
  int error = 0;             // FI_E*, positive; 0: none
  std::size_t overflow = 0;  // bytes that did not fit (FI_ETRUNC)
};

class Sink {
 public:
  virtual void complete(const CompletionNotice& completion) noexcept = 0;
  // Whether queues have room for one more completion of a request that is about to be taken.
  virtual bool room(Event event) noexcept = 0;
  // Whether completions of which no entry is wanted are to be told as well, by Event: a bit each.
  // So most small messages end without a call.
  bool counts(Event event) const noexcept {
    return (counted_events >> static_cast<unsigned>(event) & 1) != 0;
  }
  virtual ~Sink() = default;

 protected:
  std::uint8_t counted_events = 0xff;
};

// Memory that peers may name. resolve(): where [address, address + bytes) of key lies here, or
// nullptr (*error: FI_EKEYREJECTED for an unknown key, FI_EACCES for missing rights,
// also out of bounds). `access`: FI_REMOTE_READ, FI_REMOTE_WRITE or both.
class Regions {
 public:
  virtual void* resolve(std::uint64_t key, std::uint64_t address, std::uint64_t bytes,
                        std::uint64_t access, int* error) noexcept = 0;
  virtual ~Regions() = default;
};

// Flags of requests: libfabric's. FI_COMPLETION (an entry is wanted: selective completion has been
// resolved by the caller), FI_INJECT (memory may be reused on return), FI_REMOTE_CQ_DATA, FI_FENCE,
// FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_MATCH_COMPLETE, FI_DELIVERY_COMPLETE, FI_MULTI_RECV.
struct SendRequest {
  const iovec* pieces = nullptr;
  std::size_t count = 0;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t data = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
};

struct ReceiveRequest {
  const iovec* pieces = nullptr;
  std::size_t count = 0;
  bool tagged = false;
  std::uint64_t tag = 0, ignore = 0;
  std::uint64_t flags = 0;  // also FI_PEEK, FI_CLAIM, FI_DISCARD (tagged only)
  void* context = nullptr;  // FI_CLAIM: a struct fi_context whose first word peek set
};

struct RmaRequest {
  bool is_write = false;
  const iovec* pieces = nullptr;
  std::size_t count = 0;
  const fi_rma_iov* targets = nullptr;  // total length equals that of the pieces
  std::size_t target_count = 0;
  std::uint64_t data = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
};

struct AtomicRequest {
  enum class Form : std::uint8_t { base, fetch, compare };
  Form form = Form::base;
  fi_op operation = FI_SUM;
  fi_datatype datatype = FI_UINT64;
  const fi_ioc* operands = nullptr;  // may be without memory for FI_ATOMIC_READ
  std::size_t operand_count = 0;
  const fi_ioc* comparands = nullptr;
  std::size_t comparand_count = 0;
  const fi_ioc* results = nullptr;
  std::size_t result_count = 0;
  const fi_rma_ioc* targets = nullptr;
  std::size_t target_count = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
};

// Whether an endpoint can do this atomic; *count: how many elements at once. 0 or -FI_EOPNOTSUPP.
int atomic_supported(AtomicRequest::Form form, fi_op operation, fi_datatype datatype,
                     std::size_t* count) noexcept;

struct MatcherLimits {
  std::size_t unexpected_bytes = std::size_t{64} << 20;  // payloads kept for receives to come
  std::size_t operations = 65536;      // requests in flight, sends and receives each
  std::size_t min_multi_receive = 64;  // FI_OPT_MIN_MULTI_RECV
};

// Random numbers that nobody else knows: where tags lie in tables.
struct TagSalt {
  std::uint64_t words[4];
};

class MatcherParts;

class Matcher {
 public:
  Matcher(Network& network, Sink& sink, Regions& regions, const MatcherLimits& limits,
          const TagSalt& salt) noexcept;
  ~Matcher();

  // The peer of an address; made if new. Lives as long as the matcher. fi_addr is what a program
  // calls it (FI_ADDR_NOTAVAIL while it has no name); set by the endpoint when an address is
  // inserted in, or removed from, its address vector.
  Peer* peer(const Address& address) noexcept;
  // nullptr if no such peer is known (yet).
  Peer* find(const Address& address) noexcept;
  static fi_addr_t name_of(const Peer& peer) noexcept;
  static void rename(Peer& peer, fi_addr_t name) noexcept;
  static const Address& address_of(const Peer& peer) noexcept;

  ssize_t send(Peer& peer, const SendRequest& request) noexcept;
  ssize_t receive(Peer* source, const ReceiveRequest& request) noexcept;  // nullptr: any source
  ssize_t rma(Peer& peer, const RmaRequest& request) noexcept;
  ssize_t atomic(Peer& peer, const AtomicRequest& request) noexcept;
  // Cancels the receive with this context: it completes with FI_ECANCELED. 0, or -FI_ENOENT.
  int cancel(void* context) noexcept;
  void set_min_multi_receive(std::size_t bytes) noexcept;
  std::size_t min_multi_receive() const noexcept;

  // Moves everything on that can be moved without waiting. True if anything happened.
  bool progress() noexcept;
  // False while a peer still has to be told something before this endpoint may go (queued packets
  // of operations that have completed for the program).
  bool flushed() const noexcept;
  // Nothing can be done before a packet or an event comes: no copy is under way, and no packet
  // waits for room. Doorbells tell of neither, so a thread that sleeps while this is false must
  // look again.
  bool idle() const noexcept;
  // If nothing is under way but copies by devices: about how long the first of them needs, in ns;
  // else 0.
  std::uint64_t left_ns() const noexcept;
  // How many large requests of the program's there were so far, to send or to receive more than
  // ever goes unasked. The word lives as long as the matcher.
  const std::uint64_t& bulk_requests() const noexcept;
  // One of the latest of those is not over, or something is under way: progress() may have large
  // copies to make, now or when a packet comes.
  bool expects_bulk() noexcept;
  const Statistics& statistics() const noexcept;

 private:
  std::unique_ptr<MatcherParts> parts_;
};

}  // namespace haul::fabric
