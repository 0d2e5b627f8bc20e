#include "cli/mpi/rings/ring_pair.hpp"

#include <rdma/fi_endpoint.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "fabric/protocol/matcher.hpp"
#include "fabric/transport/local/ring.hpp"

namespace haul::cli {
namespace {

using namespace fabric;

constexpr std::size_t area_bytes = std::size_t{16}
                                   << 20;  // of what a side sends, and of what it gets
constexpr std::uint64_t patience_ns = 1'000'000'000;

// Memory that goes with its object.
class RingMemory {
 public:
  explicit RingMemory(std::size_t bytes)
      : at_(static_cast<std::byte*>(os::map_anonymous(bytes))), bytes_(bytes) {}
  ~RingMemory() {
    if (at_ != nullptr) os::unmap(at_, bytes_);
  }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;
  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
  std::size_t bytes_;
};

// One direction.
struct RingWay {
  RingMemory memory{segment_bytes};
  std::optional<RingOutbox> outbox;
  std::optional<RingInbox> inbox;

  // The cells of the side that writes, and of the one that reads.
  bool open(std::uint64_t salt, const HaulPrivateRing& ring, PairCells& writers,
            PairCells& readers) {
    auto* segment = static_cast<RingSegment*>(static_cast<void*>(memory.at()));
    if (segment == nullptr) return false;
    segment->salt = salt;
    outbox.emplace(
        *segment, [](void*) noexcept {}, nullptr, ring, &writers);
    inbox.emplace(*segment, &readers);
    return true;
  }
};

// One side: a matcher, its network of one peer, and its buffers.
class RingSide final : public Network, public DirectAccess, public Sink, public Regions {
 public:
  explicit RingSide(std::uint64_t number)
      : matcher_(*this, *this, *this, MatcherLimits{},
                 TagSalt{{number, ~number, number << 32, 1}}) {
    address_.host = 1;
    address_.id[0] = number;
  }

  bool open(RingWay& out, RingWay& in, const RingSide& other) {
    if (sent_.at() == nullptr || received_.at() == nullptr) return false;
    for (std::size_t i = 0; i < area_bytes; ++i)
      sent_.at()[i] = static_cast<std::byte>(i * 7 / 5 + address_.id[0]);
    std::memset(received_.at(), 0, area_bytes);
    outbox_ = &*out.outbox;
    inbox_ = &*in.inbox;
    far_ = other.address_;
    peer_ = matcher_.peer(far_);
    return peer_ != nullptr;
  }
  void write_as(const HaulPrivateRing& ring) {
    outbox_->write_as(ring);
    inbox_->read_as(ring);
  }

  // The memory of the message with this number in a run.
  static std::size_t place(const RingRun& run, unsigned number) {
    if (!run.off_cache) return 0;
    const std::size_t step = (run.bytes + 4095) / 4096 * 4096 + 4096;
    return number * step % (area_bytes - RingPair::most_bytes);
  }

  template <class Request>
  static Request request_of(const iovec& piece) {
    Request request;
    request.pieces = &piece;
    request.count = 1;
    request.tagged = true;
    request.flags = FI_COMPLETION;
    return request;
  }

  bool send(const RingRun& run, unsigned number) {
    const iovec piece{sent_.at() + place(run, number), run.bytes};
    const auto request = request_of<SendRequest>(piece);
    sent_over_ = false;
    return until([&] { return matcher_.send(*peer_, request) == 0; });
  }
  // (In two steps, so that it is posted before it is asked for.)
  bool post(const RingRun& run, unsigned number) {
    const iovec piece{received_.at() + place(run, number), run.bytes};
    received_over_ = false;
    return matcher_.receive(peer_, request_of<ReceiveRequest>(piece)) == 0;
  }
  bool await_sent() {
    return until([this] { return sent_over_; });
  }
  bool await_received() {
    return until([this] { return received_over_; });
  }
  bool is_right(const RingRun& run, unsigned number, const RingSide& from) const {
    const std::size_t at = place(run, number);
    return !failed_ && std::memcmp(received_.at() + at, from.sent_.at() + at, run.bytes) == 0;
  }

  // ---- Network
  void connect(const Address&) noexcept override {
    events_.push_back({NetworkEvent::What::connected, far_, nullptr, outbox_, 0}), news.store(1);
  }
  void meet() {
    events_.push_back({NetworkEvent::What::opened, far_, inbox_, nullptr, 0}), news.store(1);
  }
  bool next(NetworkEvent& event) noexcept override {
    if (events_.empty()) {
      news.store(0);
      return false;
    }
    event = events_.front();
    events_.pop_front();
    return true;
  }
  void drop(const Address&) noexcept override { failed_ = true; }
  void turn() noexcept override {}
  DirectAccess& access() noexcept override { return *this; }

  // ---- DirectAccess: none
  MessageWays ways(const Peer&, const MemoryPlace&, std::size_t, bool) const noexcept override {
    return MessageWay::pieces;
  }
  MemoryPlace describe(const Peer&, const iovec*, std::size_t, bool* huge) noexcept override {
    *huge = false;
    return {};
  }
  bool can_be_mapped(const Peer&, const iovec&) const noexcept override { return false; }
  std::int64_t start(Peer&, Direction, const iovec*, std::size_t, const MemoryPlace&, std::uint64_t,
                     std::size_t, bool) noexcept override {
    return -FI_EOPNOTSUPP;
  }
  int test(std::int64_t) noexcept override { return -FI_EINVAL; }
  std::size_t grain(const Peer&, std::size_t whole) const noexcept override { return whole; }
  std::atomic<std::uint64_t>* claim(Peer&, bool, unsigned) noexcept override { return nullptr; }

  // ---- Sink
  void complete(const CompletionNotice& completion) noexcept override {
    failed_ |= completion.error != 0;
    (completion.event == Event::send ? sent_over_ : received_over_) = true;
  }
  bool room(Event) noexcept override { return true; }

  // ---- Regions: none
  void* resolve(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                int* error) noexcept override {
    *error = FI_EKEYREJECTED;
    return nullptr;
  }

 private:
  template <class Condition>
  bool until(Condition condition) {
    std::uint64_t begin_ns = 0;
    for (unsigned turn = 1; !condition(); ++turn) {
      matcher_.progress();
      if (failed_) return false;
      if (turn % 65536 != 0) continue;
      if (begin_ns == 0) begin_ns = now_ns();
      if (now_ns() - begin_ns > patience_ns) return false;
    }
    return true;
  }

  Address address_, far_;
  RingMemory sent_{area_bytes}, received_{area_bytes};
  RingOutbox* outbox_ = nullptr;
  RingInbox* inbox_ = nullptr;
  std::deque<NetworkEvent> events_;
  bool sent_over_ = true, received_over_ = true, failed_ = false;
  Matcher matcher_;
  Peer* peer_ = nullptr;
};

class ThreadedPair final : public RingPair {
 public:
  ThreadedPair() = default;
  ~ThreadedPair() override {
    if (!echo_.joinable()) return;
    run_.rounds = 0;
    turn_.fetch_add(1, std::memory_order_release);
    echo_.join();
  }

  bool open(unsigned cpu, unsigned other) {
    const HaulPrivateRing usual;
    if (!there_.open(0x5a17, usual, near_cells_, far_cells_) ||
        !back_.open(0x5a18, usual, far_cells_, near_cells_))
      return false;
    if (!near_.open(there_, back_, far_) || !far_.open(back_, there_, near_)) return false;
    near_.meet();
    far_.meet();
    if (!os::pin_thread(cpu)) return false;
    echo_ = std::thread([this, other] {
      bound_.store(os::pin_thread(other) ? 1 : 2, std::memory_order_release);
      for (unsigned seen = 0;;) {
        while (turn_.load(std::memory_order_acquire) == seen) os::yield();
        ++seen;
        if (run_.rounds == 0) return;
        echo();
        answered_.store(seen, std::memory_order_release);
      }
    });
    while (bound_.load(std::memory_order_acquire) == 0) os::yield();
    return bound_.load(std::memory_order_relaxed) == 1;
  }

  void write_as(const HaulPrivateRing& ring) override {
    near_.write_as(ring);
    far_.write_as(ring);
  }

  double exchange(const RingRun& run) override {
    run_ = run;
    echoed_ = false;
    const unsigned turn = turn_.fetch_add(1, std::memory_order_release) + 1;
    const std::uint64_t begin_ns = now_ns(), cpu_begin_ns = thread_cpu_ns();
    bool well = true;
    for (unsigned i = 0; i < run.rounds && well; ++i)
      well =
          near_.send(run, i) && near_.post(run, i) && near_.await_received() && near_.await_sent();
    const std::uint64_t end_ns = now_ns();
    ran_ns_ += thread_cpu_ns() - cpu_begin_ns;
    wanted_ns_ += end_ns - begin_ns;
    while (answered_.load(std::memory_order_acquire) != turn) os::yield();
    if (!well || !echoed_) return 0;
    const unsigned last = run.rounds - 1;
    if (!near_.is_right(run, last, far_) || !far_.is_right(run, last, near_)) return 0;
    return static_cast<double>(end_ns - begin_ns) / (2.0 * run.rounds);
  }

  double ran_share() const override {
    if (wanted_ns_ == 0) return 0;
    return std::min(static_cast<double>(ran_ns_) / static_cast<double>(wanted_ns_), 1.0);
  }

 private:
  void echo() {
    bool well = true;
    for (unsigned i = 0; i < run_.rounds && well; ++i)
      well = far_.post(run_, i) && far_.await_received() && far_.send(run_, i) && far_.await_sent();
    echoed_ = well;
  }

  PairCells near_cells_, far_cells_;
  RingWay there_, back_;
  RingSide near_{1}, far_{2};
  RingRun run_;
  bool echoed_ = false;
  std::atomic<unsigned> turn_{0}, answered_{0}, bound_{0};
  std::uint64_t ran_ns_ = 0, wanted_ns_ = 0;
  std::thread echo_;
};

}  // namespace

const char* RingPair::missing() {
  return nullptr;
}

std::unique_ptr<RingPair> RingPair::make(unsigned cpu, unsigned other) {
  auto pair = std::make_unique<ThreadedPair>();
  if (!pair->open(cpu, other)) return nullptr;
  return pair;
}

}  // namespace haul::cli
