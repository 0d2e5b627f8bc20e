// A randomised soak against a model.
//   fabric_soak [--messages N] [--seconds S] [--seed S] [--processes P] [--peeks 0]
// Every process sends to every other and to itself: of the messages 99.9 % are shorter than 64 KiB,
// the rest up to 64 MiB. Receives name a source and a class of tags, one of both, or nothing; some
// are cancelled; some messages are peeked at, claimed, discarded (not with
// --peeks 0: other providers have bugs there). The model (soak_model.hpp) knows
// every byte, that order is kept in each stream and that everything comes exactly once. Heap,
// descriptors and mappings must not grow.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <numeric>

#include "soak_model.hpp"
#include "soak_slots.hpp"

namespace {

using namespace rank_test;

constexpr std::size_t send_slots = 24, receive_slots = 16;
constexpr std::int64_t second_ns = 1000000000;
constexpr std::uint64_t all_sources = FI_ADDR_UNSPEC;

struct Plan {
  std::uint64_t messages, seconds, seed, processes, peeks;
};

// Counters that the parent shows while the ranks run.
struct Board {
  std::atomic<std::uint64_t> messages{0}, bytes{0};
};

class Soaker {
 public:
  Soaker(const Plan& plan, std::size_t rank, Channel parent, Board& board)
      : plan_(plan),
        rank_(rank),
        parent_(parent),
        board_(board),
        random_(plan.seed * 1000 + rank),
        order_(plan.processes),
        sent_(plan.processes * classes) {}

  int run() {
    Endpoint endpoint(FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE);
    endpoint_ = &endpoint;
    for (const auto& name : exchange_block(parent_, plan_.processes, endpoint.name()))
      peers_.push_back(endpoint.insert(name));
    for (auto& sending : sendings_) sending = std::make_unique<Sending>();
    for (auto& receiving : receivings_) receiving = std::make_unique<Receiving>();
    const std::uint64_t share = plan_.messages / plan_.processes;
    const std::int64_t start = now_ns(), end = start + std::int64_t(plan_.seconds) * second_ns;
    std::uint64_t count = 0;
    while (count < share && now_ns() < end) {
      // In batches: a turn at a core is worth more than a message where cores are few.
      for (std::uint64_t batch = random_.below(send_slots) + 1; batch > 0; --batch)
        count += send_some();
      receive_some();
      watch(
          std::max(double(count) / double(share), double(now_ns() - start) / double(end - start)));
    }
    finish();
    expect_flat();
    return 0;
  }

 private:
  std::size_t random_size() {
    if (random_.below(1000) != 0) return random_.size(small_limit - 1);
    return std::max(small_limit, random_.size(large_limit));
  }

  std::uint64_t send_some() {
    for (auto& sending : sendings_) {
      if (sending->busy) continue;
      const std::size_t to = random_.below(plan_.processes);
      const std::uint64_t group = random_.below(classes);
      std::uint64_t& sequence = sent_[to * classes + group];
      const std::uint64_t tag = Label{rank_, group, sequence}.tag();
      sending->size = random_size();
      fill_payload(sending->buffer.data(), sending->size, tag, to);
      const bool inject = sending->size <= 64 && random_.below(2) == 0;
      const ssize_t status =
          inject ? fi_tinject(endpoint_->ep, sending->buffer.data(), sending->size, peers_[to], tag)
                 : fi_tsend(endpoint_->ep, sending->buffer.data(), sending->size, nullptr,
                            peers_[to], tag, sending.get());
      if (status == -FI_EAGAIN) return 0;
      if (status != 0) give_up("a send ends with %s", fi_strerror(static_cast<int>(-status)));
      sending->busy = !inject;
      ++sequence;
      board_.messages.fetch_add(1, std::memory_order_relaxed);
      board_.bytes.fetch_add(sending->size, std::memory_order_relaxed);
      return 1;
    }
    return 0;
  }

  // What a receive or a peek asks for.
  struct Choice {
    fi_addr_t from;
    std::uint64_t tag, ignore;
  };
  Choice choose() {
    const std::uint64_t source = random_.below(plan_.processes), group = random_.below(classes);
    const std::uint64_t wanted = source << 56 | group << sequence_bits;
    switch (random_.below(6)) {
      case 0: return {peers_[source], wanted, sequence_mask};
      case 1: return {peers_[source], 0, ~std::uint64_t{0}};
      case 2: return {all_sources, wanted, sequence_mask | std::uint64_t{0xff} << 56};
      case 3: return {all_sources, wanted, sequence_mask};
      default: return {all_sources, 0, ~std::uint64_t{0}};
    }
  }

  void receive_some() {
    for (auto& receiving : receivings_) {
      if (receiving->busy) continue;
      post(*receiving, choose());
    }
    if (plan_.peeks != 0 && random_.below(50) == 0) peek();
    if (random_.below(200) == 0) cancel(*receivings_[random_.below(receive_slots)]);
    // A receive that waits for what is not sent must not hold up all others, nor the model.
    const bool idle = now_ns() - last_arrival_ns_ > second_ns / 50;
    for (auto& receiving : receivings_)
      if (receiving->busy && (receiving->number + 20000 < order_.posted() ||
                              (idle && random_.below(receive_slots) == 0)))
        cancel(*receiving);
    reap();
  }

  void post(Receiving& receiving, const Choice& choice) {
    const ssize_t status = fi_trecv(endpoint_->ep, receiving.buffer.data(), large_limit, nullptr,
                                    choice.from, choice.tag, choice.ignore, &receiving);
    if (status == -FI_EAGAIN) return;
    if (status != 0) give_up("a receive ends with %s", fi_strerror(static_cast<int>(-status)));
    receiving.number = order_.begin();
    receiving.busy = true;
  }

  void cancel(Receiving& receiving) {
    if (receiving.busy) static_cast<void>(fi_cancel(&endpoint_->ep->fid, &receiving));
  }

  void reap() {
    endpoint_->reap([&](const Completion& done) {
      if (done.operation == &looking_) {
        looked_ = done;
        looking_done_ = true;
        return;
      }
      for (auto& sending : sendings_)
        if (done.operation == sending.get()) return sent(*sending, done);
      for (auto& receiving : receivings_)
        if (done.operation == receiving.get()) return received(*receiving, done);
      give_up("a completion of an operation that nobody began");
    });
  }

  void sent(Sending& sending, const Completion& done) {
    if (!sending.busy) give_up("a send completes twice");
    if (done.error != 0) give_up("a send completes with %s", fi_strerror(done.error));
    sending.busy = false;
    if (sending.size > small_limit) sending.buffer.forget();
  }

  void received(Receiving& receiving, const Completion& done) {
    if (!receiving.busy) give_up("a receive completes twice");
    receiving.busy = false;
    if (done.error == FI_ECANCELED) {
      order_.drop(receiving.number);
      return;
    }
    arrive(receiving.number, done, &receiving.buffer);
  }

  // A message was taken; without a buffer it was discarded.
  void arrive(std::uint64_t number, const Completion& done, const Buffer* buffer) {
    if (done.error != 0) give_up("a receive completes with %s", fi_strerror(done.error));
    const Label label = Label::of(done.tag);
    if (label.source >= plan_.processes) give_up("a tag that nobody sent");
    if (done.source != peers_[label.source]) give_up("the source is not that of the tag");
    order_.take(number, label);
    last_arrival_ns_ = now_ns();
    if (buffer == nullptr) return;
    if (!payload_is(buffer->data(), done.len, done.tag, rank_))
      give_up("message %llu of rank %llu, %zu bytes: its bytes are wrong",
              static_cast<unsigned long long>(label.sequence),
              static_cast<unsigned long long>(label.source), done.len);
    if (done.len > small_limit) buffer->forget();
  }

  // One step of peek or claim, to its end: the model knows when it looked.
  bool look(const Choice& choice, std::uint64_t flags, const Buffer* buffer) {
    const iovec part{buffer == nullptr ? nullptr : buffer->data(), large_limit};
    const fi_msg_tagged msg{&part,       nullptr,    buffer == nullptr ? 0u : 1u,
                            choice.from, choice.tag, choice.ignore,
                            &looking_,   0};
    ssize_t status = 0;
    looking_done_ = false;
    while ((status = fi_trecvmsg(endpoint_->ep, &msg, flags)) == -FI_EAGAIN) reap();
    if (status != 0) give_up("a peek ends with %s", fi_strerror(static_cast<int>(-status)));
    while (!looking_done_) reap();
    return looked_.error != FI_ENOMSG;
  }

  void peek() {
    const Choice choice = choose();
    const std::uint64_t number = order_.begin();
    switch (random_.below(4)) {
      case 0:
        if (look(choice, FI_PEEK, nullptr) && looked_.error != 0)
          give_up("a peek completes with %s", fi_strerror(looked_.error));
        order_.drop(number);
        return;
      case 1:
        if (look(choice, FI_PEEK | FI_DISCARD, nullptr)) return arrive(number, looked_, nullptr);
        order_.drop(number);
        return;
      default:
        if (!look(choice, FI_PEEK | FI_CLAIM, nullptr)) {
          order_.drop(number);
          return;
        }
        const bool discard = random_.below(3) == 0;
        const Completion seen = looked_;
        if (seen.error != 0) give_up("a claim completes with %s", fi_strerror(seen.error));
        for (std::uint64_t steps = random_.below(4); steps > 0; --steps) reap();
        look(choice, discard ? FI_CLAIM | FI_DISCARD : FI_CLAIM, discard ? nullptr : &claimed_);
        if (discard && looked_.error == 0) return arrive(number, seen, nullptr);
        if (looked_.tag != seen.tag || looked_.len != seen.len)
          give_up("what was claimed is not what was seen");
        arrive(number, looked_, discard ? nullptr : &claimed_);
    }
  }

  // Everything sent has to be received; then nothing may be left.
  void finish() {
    const auto sending = [&] {
      return std::any_of(std::begin(sendings_), std::end(sendings_),
                         [](const auto& one) { return one->busy; });
    };
    while (sending()) receive_some();
    parent_.put_block({reinterpret_cast<const char*>(sent_.data()),
                       reinterpret_cast<const char*>(sent_.data() + sent_.size())});
    while (!parent_.readable()) receive_some();
    std::vector<std::uint64_t> expected(plan_.processes * classes);
    parent_.get_bytes(expected.data(), expected.size() * sizeof expected[0]);
    const std::int64_t limit = now_ns() + 60 * second_ns;
    while (!complete(expected)) {
      if (now_ns() > limit) give_up("messages that were sent do not arrive");
      receive_some();
    }
    for (auto& receiving : receivings_) cancel(*receiving);
    while (std::any_of(std::begin(receivings_), std::end(receivings_),
                       [](const auto& one) { return one->busy; }))
      reap();
    if (!complete(expected)) give_up("a message came twice");
    if (look({all_sources, 0, ~std::uint64_t{0}}, FI_PEEK, nullptr))
      give_up("a message is left that nobody sent");
    parent_.put('.');
    while (!parent_.readable()) reap();
    static_cast<void>(parent_.get<char>());
  }

  bool complete(const std::vector<std::uint64_t>& expected) const {
    for (std::size_t source = 0; source < plan_.processes; ++source)
      for (std::uint64_t group = 0; group < classes; ++group)
        if (order_.received(source, group) != expected[source * classes + group]) return false;
    return true;
  }

  // The most that is held in the middle third of the run, and in the last; of the heap the least,
  // since it also has the messages that wait for their receives, some megabytes of them.
  void watch(double part) {
    const std::int64_t now = now_ns();
    if (part < 1.0 / 3 || now < next_sample_ns_) return;
    next_sample_ns_ = now + second_ns / 10;
    const Holdings held = holdings();
    Holdings& peak = part < 2.0 / 3 ? middle_ : late_;
    peak.descriptors = std::max(peak.descriptors, held.descriptors);
    peak.mappings = std::max(peak.mappings, held.mappings);
    const bool first = peak.heap_bytes == 0;
    peak.heap_bytes = first ? held.heap_bytes : std::min(peak.heap_bytes, held.heap_bytes);
  }

  // Called when no message waits any more. On a busy machine some do through all of the last third,
  // so the heap is looked at once more.
  void expect_flat() {
    if (middle_.descriptors == 0 || late_.descriptors == 0) return;
    late_.heap_bytes = std::min(late_.heap_bytes, holdings().heap_bytes);
    const auto check = [](const char* what, std::size_t before, std::size_t after,
                          std::size_t slack) {
      if (after > before + slack) give_up("%s grow: %zu, then %zu", what, before, after);
    };
    // (A peer that is met late, on a busy machine, brings three.)
    check("descriptors", middle_.descriptors, late_.descriptors, 3 * plan_.processes);
    check("mappings", middle_.mappings, late_.mappings, 64);
    check("bytes of the heap", middle_.heap_bytes, late_.heap_bytes, 2 * mib);
  }

  const Plan plan_;
  const std::size_t rank_;
  const Channel parent_;
  Board& board_;
  Random random_;
  ReceiveOrder order_;
  std::vector<std::uint64_t> sent_;  // by destination and class
  Endpoint* endpoint_ = nullptr;
  std::vector<fi_addr_t> peers_;
  std::unique_ptr<Sending> sendings_[send_slots];
  std::unique_ptr<Receiving> receivings_[receive_slots];
  Buffer claimed_;
  Operation looking_;
  Completion looked_{};
  bool looking_done_ = false;
  std::int64_t last_arrival_ns_ = now_ns(), next_sample_ns_ = 0;
  Holdings middle_, late_;
};

// Tells each rank how many messages of each stream it must get.
void spread_totals(const Plan& plan, const std::vector<Rank>& ranks) {
  std::vector<std::vector<std::uint64_t>> sent;
  for (const Rank& rank : ranks) {
    const auto block = rank.channel.get_block();
    const auto* words = reinterpret_cast<const std::uint64_t*>(block.data());
    sent.emplace_back(words, words + block.size() / sizeof *words);
  }
  for (std::size_t to = 0; to < plan.processes; ++to) {
    std::vector<std::uint64_t> expected;
    for (const auto& counts : sent)
      expected.insert(expected.end(), counts.begin() + static_cast<long>(to * classes),
                      counts.begin() + static_cast<long>((to + 1) * classes));
    ranks[to].channel.put_bytes(expected.data(), expected.size() * sizeof expected[0]);
  }
}

// Waits until every rank has something to say, or one has died.
void follow(const std::vector<Rank>& ranks, const Board& board, bool show) {
  const auto all_ready = [&] {
    return std::all_of(ranks.begin(), ranks.end(),
                       [](const Rank& rank) { return rank.channel.readable(); });
  };
  while (!all_ready()) {
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) > 0) give_up("a rank ended with %#x", unsigned(status));
    if (show)
      std::printf("\r%llu messages, %.1f GB",
                  static_cast<unsigned long long>(board.messages.load()),
                  double(board.bytes.load()) / 1e9);
    std::fflush(stdout);
    usleep(50000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Plan plan{option(argc, argv, "--messages", std::uint64_t{1} << 40),
                  option(argc, argv, "--seconds", 10), option(argc, argv, "--seed", 1),
                  std::max<std::uint64_t>(option(argc, argv, "--processes", 3), 1),
                  option(argc, argv, "--peeks", 1)};
  void* shared =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* board = new (shared) Board;
  const bool show = isatty(STDOUT_FILENO) != 0;
  const std::vector<Rank> ranks =
      start_ranks(plan.processes, [&](std::size_t rank, Channel parent) {
        return std::make_unique<Soaker>(plan, rank, parent, *board)->run();
      });
  spread_blocks(ranks);
  follow(ranks, *board, show);
  spread_totals(plan, ranks);
  follow(ranks, *board, show);
  for (const Rank& rank : ranks) static_cast<void>(rank.channel.get<char>());
  for (const Rank& rank : ranks) rank.channel.put('.');
  for (const Rank& rank : ranks) {
    int status = 0;
    if (waitpid(rank.pid, &status, 0) != rank.pid || status != 0)
      give_up("a rank ended with status %#x", static_cast<unsigned>(status));
  }
  std::printf("%s%llu messages, %.1f GB, all as the model says (--seed %llu)\n", show ? "\r" : "",
              static_cast<unsigned long long>(board->messages.load()),
              double(board->bytes.load()) / 1e9, static_cast<unsigned long long>(plan.seed));
}
