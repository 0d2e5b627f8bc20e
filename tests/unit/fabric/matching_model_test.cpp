// Matching beside a plain model that walks its lists: random receives, messages, cancels, peeks,
// claims and peers that die, with lists of all lengths. One seed is one run; a failure names it,
// and HAUL_MATCHING_SEED=N runs that one alone.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <optional>
#include <random>

#include "harness.hpp"
#include "matching_support.hpp"
#include "repeats.hpp"

namespace {
bool tables_refused = false;
std::size_t tables_asked = 0;
}  // namespace

// A sanitizer has this function already, and no other beside it: there nothing is refused.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  ++tables_asked;
  if (tables_refused) return nullptr;
  try {
    return operator new[](bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
#endif

namespace haul::fabric::test {

void Refusal::set(bool refused) noexcept {
  tables_refused = refused;
}
std::size_t Refusal::asked() noexcept {
  return tables_asked;
}

namespace {

constexpr std::size_t senders = 3, receiver = 3;
constexpr std::size_t small_bytes = 8, large_bytes = 700, eager_most = 512;
constexpr std::size_t multi_bytes = 300;

// What the program is told, without what does not matter here.
struct Told {
  void* context = nullptr;
  int error = 0;
  std::uint64_t tag = 0, id = 0;
  bool last = false;  // of a multi-receive
  auto operator<=>(const Told&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Told& told) {
  return out << "{context " << told.context << " error " << told.error << " tag " << told.tag
             << " message " << told.id << (told.last ? " last}" : "}");
}

struct Slot {
  fi_context context{};
  std::byte buffer[1024];
};

struct ModelPosted {
  Slot* slot;
  std::optional<std::size_t> source;
  bool tagged, multi;
  std::uint64_t tag, ignore;
  std::size_t consumed = 0;
};
struct ModelKept {
  std::uint64_t id, tag;
  std::size_t source, bytes;
  bool tagged;
};

class Play {
 public:
  explicit Play(std::uint64_t seed) : random_(seed), world_(senders + 1, {}, eager_most) {
    const std::size_t tags = std::size_t{1} << below(12);
    for (std::size_t i = 0; i < tags; ++i) tags_.push_back(random_tag());
    const std::size_t ignores = 1 + below(12);
    for (std::size_t i = 0; i < ignores; ++i) {
      ignores_.push_back(below(4) == 0 ? random_() & random_() & random_()
                                       : mpi_ignores[below(std::size(mpi_ignores))]);
    }
    refuses_ = below(4) == 0;
  }
  ~Play() { Refusal::set(false); }

  void run(unsigned steps) {
    std::size_t receives = 50;
    for (unsigned step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      if (step % 256 == 0) receives = below(101);
      if (refuses_ && below(64) == 0) Refusal::set(below(2) == 0);
      const std::size_t what = below(1000);
      if (what < 30) {
        cancel();
      } else if (what < 100) {
        peek();
      } else if (what < 120) {
        claim();
      } else if (what < 121 && lost() + 1 < senders) {
        kill();
      } else if (below(100) < receives) {
        receive();
      } else {
        send();
      }
      check(step);
    }
    while (lost() < senders && !testing::Test::HasFailure()) {
      kill();
      check(steps);
    }
  }

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  std::uint64_t random_tag() {
    // Tags that differ in few bits as well, so that wildcards choose between them.
    std::uint64_t tag = below(2) == 0 ? random_() & 0xff00000000ffu : below(5000);
    if (below(3) == 0) tag ^= mpi_ignores[below(8)] & random_();
    return tag;
  }
  std::uint64_t some_tag() { return tags_[below(tags_.size())]; }
  std::size_t lost() const { return std::size_t(std::count(dead_, dead_ + senders, true)); }
  Node& node() { return world_[receiver]; }
  Slot& new_slot() { return slots_.emplace_back(); }
  static bool matches(const ModelPosted& posted, const ModelKept& message) {
    if (posted.tagged != message.tagged) return false;
    if (posted.source && *posted.source != message.source) return false;
    return !posted.tagged || ((posted.tag ^ message.tag) & ~posted.ignore) == 0;
  }
  void expect(Slot& slot, int error, std::uint64_t tag, std::uint64_t id, bool last = false) {
    expected_.push_back({&slot.context, error, tag, id, last});
  }

  // The message's bytes meet the receive. True: the receive is used up.
  bool meet(ModelPosted& posted, const ModelKept& message) {
    int error = 0;
    const bool asked = message.bytes > eager_most;
    const std::size_t size = posted.multi ? multi_bytes : sizeof posted.slot->buffer;
    const std::size_t got = std::min(message.bytes, size - posted.consumed);
    if (asked && dead_[message.source]) {
      error = FI_ECONNRESET;
    } else if (got < message.bytes) {
      error = FI_ETRUNC;
    }
    bool over = true;
    if (posted.multi) {
      posted.consumed = std::min(size, posted.consumed + (got + 63) / 64 * 64);
      over = size - posted.consumed < 64;
    }
    expect(*posted.slot, error, message.tag, error == 0 ? message.id : 0, posted.multi && over);
    return over;
  }

  void receive() {
    Slot& slot = new_slot();
    ModelPosted posted{&slot, std::nullopt, below(16) != 0, below(24) == 0, some_tag(), 0};
    posted.ignore = ignores_[below(ignores_.size())];
    if (below(2) == 0) posted.source = below(senders);
    const bool refused = begin(posted);
    const iovec piece{slot.buffer, posted.multi ? multi_bytes : sizeof slot.buffer};
    ReceiveRequest request;
    request.pieces = &piece;
    request.count = 1;
    request.tagged = posted.tagged;
    request.tag = posted.tagged ? posted.tag : 0;
    request.ignore = posted.tagged ? posted.ignore : 0;
    request.flags = FI_COMPLETION | (posted.multi ? FI_MULTI_RECV : 0);
    request.context = &slot.context;
    Peer* source = posted.source ? &node().peer(world_[*posted.source]) : nullptr;
    ASSERT_EQ(node().matcher.receive(source, request), refused ? -FI_ECONNRESET : 0);
    world_.settle();
  }
  // In the model. True: refused.
  bool begin(ModelPosted posted) {
    for (auto at = kept_.begin(); at != kept_.end();) {
      if (!matches(posted, *at)) {
        ++at;
        continue;
      }
      const ModelKept message = *at;
      at = kept_.erase(at);
      if (meet(posted, message)) return false;
    }
    if (posted.source && dead_[*posted.source]) return true;
    posted_.push_back(posted);
    return false;
  }

  void send() {
    const std::size_t from = below(senders);
    if (dead_[from]) return;
    const ModelKept message{++ids_, some_tag(), from, below(8) == 0 ? large_bytes : small_bytes,
                            below(16) != 0};
    auto& bytes = sent_.emplace_back(message.bytes);
    std::memcpy(bytes.data(), &message.id, sizeof message.id);
    const iovec piece{bytes.data(), bytes.size()};
    SendRequest request;
    request.pieces = &piece;
    request.count = 1;
    request.tagged = message.tagged;
    request.tag = message.tagged ? message.tag : 0;
    ASSERT_EQ(world_[from].matcher.send(world_[from].peer(node()), request), 0);
    world_.settle();
    ModelKept shown = message;
    if (!shown.tagged) shown.tag = 0;
    for (auto at = posted_.begin(); at != posted_.end(); ++at) {
      if (!matches(*at, shown)) continue;
      if (meet(*at, shown)) posted_.erase(at);
      return;
    }
    kept_.push_back(shown);
  }

  void cancel() {
    if (posted_.empty()) return;
    const auto at = posted_.begin() + std::ptrdiff_t(below(posted_.size()));
    ASSERT_EQ(node().matcher.cancel(&at->slot->context), 0);
    ASSERT_EQ(node().matcher.cancel(&at->slot->context), -FI_ENOENT);
    expect(*at->slot, FI_ECANCELED, 0, 0, at->multi);
    posted_.erase(at);
  }

  void peek() {
    Slot& slot = new_slot();
    ModelPosted asked{&slot, std::nullopt, true, false, some_tag(), 0};
    asked.ignore = ignores_[below(ignores_.size())];
    if (below(2) == 0) asked.source = below(senders);
    const std::uint64_t then[] = {0, FI_CLAIM, FI_DISCARD};
    const std::uint64_t flag = then[below(3)];
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const ModelKept& at) { return matches(asked, at); });
    if (found == kept_.end()) {
      expect(slot, FI_ENOMSG, asked.tag, 0);
    } else {
      expect(slot, 0, found->tag, 0);
      if (flag == FI_CLAIM) claimed_.push_back({&slot, *found});
      if (flag != 0) kept_.erase(found);
    }
    Node* source = asked.source ? &world_[*asked.source] : nullptr;
    ASSERT_EQ(node().receive(source, nullptr, 0, asked.tag, &slot.context, asked.ignore,
                             FI_COMPLETION | FI_PEEK | flag),
              0);
    world_.settle();
  }

  void claim() {
    if (claimed_.empty()) return;
    const auto at = claimed_.begin() + std::ptrdiff_t(below(claimed_.size()));
    auto [slot, message] = *at;
    claimed_.erase(at);
    const bool discard = below(3) == 0;
    if (discard) {
      expect(*slot, 0, message.tag, 0);
    } else {
      ModelPosted taken{slot, message.source, true, false, message.tag, 0};
      meet(taken, message);
    }
    std::memset(slot->buffer, 0, sizeof slot->buffer);
    ASSERT_EQ(
        node().receive(nullptr, slot->buffer, sizeof slot->buffer, message.tag, &slot->context, 0,
                       FI_COMPLETION | FI_CLAIM | (discard ? FI_DISCARD : 0)),
        0);
    world_.settle();
  }

  // Its receives fail; when it was the last one, so do those from any source.
  void kill() {
    std::size_t who = below(senders);
    while (dead_[who]) who = (who + 1) % senders;
    dead_[who] = true;
    NetworkEvent event;
    event.what = NetworkEvent::What::died;
    event.address = world_[who].network.address;
    node().peer(world_[who]);
    node().network.tell(event);
    node().matcher.progress();
    const bool nobody_left = lost() == senders;
    std::erase_if(posted_, [&](const ModelPosted& at) {
      if (at.source ? *at.source != who : !nobody_left) return false;
      expect(*at.slot, FI_ECONNRESET, 0, 0, at.multi);
      return true;
    });
  }

  void check(unsigned step) {
    std::vector<Told> got;
    for (const CompletionNotice& at : node().completions) {
      Told told{at.context, at.error, at.error == FI_ECANCELED ? 0 : at.tag, 0,
                (at.flags & FI_MULTI_RECV) != 0};
      if (at.error == FI_ECONNRESET && at.source == nullptr) told.tag = 0;
      if (at.error == 0 && at.buffer != nullptr) std::memcpy(&told.id, at.buffer, sizeof told.id);
      got.push_back(told);
    }
    node().completions.clear();
    // Failures of many receives at once have no order that a program could rely on.
    if (got.size() > 1 && got[0].error == FI_ECONNRESET) std::sort(got.begin(), got.end());
    if (expected_.size() > 1 && expected_[0].error == FI_ECONNRESET)
      std::sort(expected_.begin(), expected_.end());
    ASSERT_EQ(got, expected_) << "in step " << step << ", " << posted_.size() << " posted, "
                              << kept_.size() << " kept";
    expected_.clear();
    ASSERT_EQ(node().matcher.statistics().unexpected_messages.load(),
              kept_.size() + claimed_.size());
  }

  std::mt19937_64 random_;
  World world_;
  std::vector<std::uint64_t> tags_, ignores_;
  bool refuses_ = false;
  bool dead_[senders] = {};
  std::uint64_t ids_ = 0;
  std::deque<Slot> slots_;
  std::deque<std::vector<std::byte>> sent_;
  std::vector<ModelPosted> posted_;
  std::vector<ModelKept> kept_;
  std::vector<std::pair<Slot*, ModelKept>> claimed_;
  std::vector<Told> expected_;
};

TEST(MatchingModel, AnyOrderOfCallsMatchesAsAWalkWould) {
  const char* only = std::getenv("HAUL_MATCHING_SEED");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 0) : 1;
  const unsigned plays = only != nullptr ? 1 : testing_haul::repeats(60);
  for (std::uint64_t seed = first; seed < first + plays && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "HAUL_MATCHING_SEED=" << seed);
    Play(seed).run(4000);
  }
}

}  // namespace
}  // namespace haul::fabric::test
