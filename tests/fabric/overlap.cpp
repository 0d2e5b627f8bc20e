// Large messages go on while both sides compute (HAUL_FABRIC_OVERLAP=on). fabric_overlap [--rounds
// N] Two ranks; a rank that "computes" calls nothing of libfabric's, and looks at its memory or at
// the board that all share. So what it finds there has been moved by a thread of the provider's.
// HAUL_FABRIC_OVERLAP=off, set outside, must make the first case fail.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rank.hpp"

namespace {

using namespace rank_test;

constexpr std::uint64_t caps = FI_TAGGED | FI_RMA;
constexpr std::size_t largest = 4 * mib;
constexpr std::int64_t patience_ns = 30'000'000'000;
constexpr std::uint64_t bulk_tag = 1, small_tag = 2;

struct Board {
  std::atomic<std::uint32_t> arrived[2] = {};  // rounds whose bytes rank r has seen
  std::atomic<std::uint32_t> posted[2] = {};   // rounds that rank r has posted
  std::atomic<bool> gone{false};
};

struct Request : Operation {
  bool over = false;
  int error = 0;
};

std::uint64_t word_of(std::uint64_t round, std::uint64_t place) {
  return (round + 1) * 0x9e3779b97f4a7c15u + place;
}

// One of the two ranks.
class Side {
 public:
  Side(std::size_t own_rank, Channel parent, Board& shared, std::uint64_t count)
      : rank(own_rank), board(shared), rounds(count), sent(largest / 8), got(largest / 8) {
    const auto names = exchange_block(parent, 2, endpoint->name());
    peer = endpoint->insert(names[1 - rank]);
  }

  void send(const void* memory, std::size_t bytes, std::uint64_t tag, Request& request) {
    request = Request();
    post([&] { return fi_tsend(endpoint->ep, memory, bytes, nullptr, peer, tag, &request); });
  }
  void receive(void* memory, std::size_t bytes, std::uint64_t tag, Request& request) {
    request = Request();
    post([&] {
      return fi_trecv(endpoint->ep, memory, bytes, nullptr, FI_ADDR_UNSPEC, tag, 0, &request);
    });
  }
  void reap() {
    endpoint->reap([](const Completion& completion) {
      auto& request = *static_cast<Request*>(completion.operation);
      if (request.over) give_up("a request completes twice");
      request.over = true;
      request.error = completion.error;
    });
  }
  void await(Request& request) {
    const std::int64_t begin = now_ns();
    while (!request.over) {
      reap();
      if (now_ns() - begin > patience_ns) give_up("rank %zu: a request does not end", rank);
    }
  }
  void fill(std::uint64_t round, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / 8; ++i) sent[i] = word_of(round, i);
  }
  void check(std::uint64_t round, std::size_t bytes) const {
    for (std::size_t i = 0; i < bytes / 8; ++i)
      if (got[i] != word_of(round, i)) give_up("round %zu: word %zu is wrong", round, i);
  }

  const std::size_t rank;
  Board& board;
  const std::uint64_t rounds;
  std::vector<std::uint64_t> sent, got;
  std::unique_ptr<Endpoint> endpoint = std::make_unique<Endpoint>(caps);
  fi_addr_t peer = FI_ADDR_UNSPEC;

 private:
  template <class Call>
  void post(const Call& call) {
    ssize_t status = 0;
    while ((status = call()) == -FI_EAGAIN) reap();
    if (status != 0) give_up("a request is refused: %s", fi_strerror(static_cast<int>(-status)));
  }
};

// Computes until `done` holds.
template <class Done>
void compute(const char* what, const Done& done) {
  const std::int64_t begin = now_ns();
  while (!done()) {
    if (now_ns() - begin > patience_ns)
      give_up("%s does not happen while both sides compute", what);
    sched_yield();
  }
}

// It looks while the provider writes, which ThreadSanitizer must not hold against it. What
// Side::check() reads after the completion is under its eyes.
__attribute__((no_sanitize("thread"))) bool is_there(const std::vector<std::uint64_t>& memory,
                                                     std::uint64_t round, std::size_t bytes) {
  const std::uint64_t* begin = memory.data();
  for (std::size_t i = 0; i < bytes / 8; i += 512) {
    const auto* word = static_cast<const volatile std::uint64_t*>(begin + i);
    if (*word != word_of(round, i)) return false;
  }
  return true;
}

// One way or both, and the request before the receive or after it.
int messages_arrive(Side& side, bool both_ways) {
  constexpr std::size_t sizes[] = {largest, mib, 200 * kib};
  const std::size_t other = 1 - side.rank;
  for (std::uint64_t round = 0; round < side.rounds; ++round) {
    const std::size_t bytes = sizes[round % std::size(sizes)];
    const bool sends = both_ways || side.rank == 0, receives = both_ways || side.rank == 1;
    Request sending, receiving;
    side.fill(round, bytes);
    const auto now = static_cast<std::uint32_t>(round + 1);
    const bool late = round % 2 == 1 && side.rank == 1;
    if (late) compute("the other's post", [&] { return side.board.posted[other] >= now; });
    if (receives) side.receive(side.got.data(), bytes, bulk_tag, receiving);
    if (sends) side.send(side.sent.data(), bytes, bulk_tag, sending);
    side.board.posted[side.rank] = now;
    if (receives) {
      compute("a message", [&] { return is_there(side.got, round, bytes); });
      side.board.arrived[side.rank] = now;
    }
    if (sends) compute("the arrival", [&] { return side.board.arrived[other] >= now; });
    if (receives) {
      side.await(receiving);
      if (receiving.error != 0) give_up("a receive ends with %d", receiving.error);
      side.check(round, bytes);
    }
    if (sends) {
      side.await(sending);
      if (sending.error != 0) give_up("a send ends with %d", sending.error);
    }
  }
  return 0;
}

// Small messages pass while the thread takes turns, and between them all data is right.
int small_ones_pass(Side& side, bool) {
  Random random(side.rank + 7);
  Request sending, receiving;
  std::uint64_t bulk_round = 0;
  side.fill(0, largest);
  side.receive(side.got.data(), largest, bulk_tag, receiving);
  side.send(side.sent.data(), largest, bulk_tag, sending);
  for (std::uint64_t round = 0; round < 100 * side.rounds; ++round) {
    std::uint64_t word = round, answer = 0;
    Request small_send, small_receive;
    side.receive(&answer, 8, small_tag, small_receive);
    side.send(&word, 8, small_tag, small_send);
    if (random.below(4) == 0)
      for (const std::int64_t begin = now_ns(); now_ns() - begin < 30'000;) {
      }
    side.await(small_receive);
    side.await(small_send);
    if (answer != round) give_up("%zu comes in round %zu", answer, round);
    if (receiving.over && sending.over) {
      side.check(bulk_round, largest);
      side.fill(++bulk_round, largest);
      side.receive(side.got.data(), largest, bulk_tag, receiving);
      side.send(side.sent.data(), largest, bulk_tag, sending);
    }
  }
  // Closing ends the last large ones, when the other has come as far.
  side.board.arrived[side.rank] = 1;
  while (side.board.arrived[1 - side.rank] == 0) side.reap();
  return 0;
}

// Rank 0 is killed by itself in the middle; the other's receive ends, and so does its program.
int sender_dies(Side& side, bool) {
  Request request;
  side.fill(0, largest);
  if (side.rank == 0) {
    side.send(side.sent.data(), largest, bulk_tag, request);
    side.board.posted[0] = 1;
    const auto pause = static_cast<std::int64_t>(Random(side.rounds).below(1'000'000));
    for (const std::int64_t begin = now_ns(); now_ns() - begin < pause;) {
    }
    raise(SIGKILL);
  }
  side.receive(side.got.data(), largest, bulk_tag, request);
  for (const std::int64_t begin = now_ns(); now_ns() - begin < 5'000'000;) {
  }
  side.await(request);
  if (request.error == 0) side.check(0, largest);
  return 0;
}

// Rank 1 closes its endpoint in the middle; the other's send ends.
int receiver_closes(Side& side, bool) {
  Request request;
  side.fill(0, largest);
  if (side.rank == 0) {
    side.send(side.sent.data(), largest, bulk_tag, request);
    side.board.posted[0] = 1;
    compute("the other's end", [&] { return side.board.gone.load(); });
    side.await(request);
    return 0;
  }
  side.receive(side.got.data(), largest, bulk_tag, request);
  compute("the other's post", [&] { return side.board.posted[0] == 1; });
  const auto pause = static_cast<std::int64_t>(Random(side.rounds).below(1'000'000));
  for (const std::int64_t begin = now_ns(); now_ns() - begin < pause;) {
  }
  side.endpoint.reset();
  // Nobody writes there any more.
  std::memset(side.got.data(), 0, largest);
  side.board.gone = true;
  return 0;
}

// Both fork while messages are on their way; the children close what they have.
int both_fork(Side& side, bool) {
  for (std::uint64_t round = 0; round < side.rounds; ++round) {
    Request sending, receiving;
    side.fill(round, largest);
    side.receive(side.got.data(), largest, bulk_tag, receiving);
    side.send(side.sent.data(), largest, bulk_tag, sending);
    const pid_t child = fork();
    if (child < 0) give_up("no process");
    if (child == 0) {
      alarm(30);
      side.endpoint.reset();
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
      give_up("a child ends with status %d", status);
    compute("a message after a fork", [&] { return is_there(side.got, round, largest); });
    side.board.arrived[side.rank] = static_cast<std::uint32_t>(round + 1);
    compute("the other's", [&] { return side.board.arrived[1 - side.rank] > round; });
    side.await(receiving);
    side.await(sending);
    side.check(round, largest);
  }
  return 0;
}

struct Case {
  const char* name;
  int (*body)(Side& side, bool both_ways);
  bool both_ways;
  const char* kernel_bytes;  // HAUL_FABRIC_KERNEL_BYTES; nullptr: as it is
  bool killed;               // rank 0 is
  std::uint64_t repeats;     // with other seeds, instead of rounds
};

// Without the kernel's copies both sides have to copy.
constexpr const char* never = "64G";
constexpr const char* always = "0";
constexpr Case cases[] = {
    {"one way, by the kernel", messages_arrive, false, always, false, 1},
    {"one way, as pieces", messages_arrive, false, never, false, 1},
    {"both ways, by the kernel", messages_arrive, true, always, false, 1},
    {"both ways, as pieces", messages_arrive, true, never, false, 1},
    {"beside small ones", small_ones_pass, true, nullptr, false, 1},
    {"beside small ones, as pieces", small_ones_pass, true, never, false, 1},
    {"both fork", both_fork, true, nullptr, false, 1},
    {"the sender dies", sender_dies, false, always, true, 5},
    {"the sender dies, as pieces", sender_dies, false, never, true, 5},
    {"the receiver closes", receiver_closes, false, always, false, 5},
    {"the receiver closes, as pieces", receiver_closes, false, never, false, 5},
};

bool play(const Case& one, std::uint64_t rounds) {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("no memory for the board");
  auto* board = new (memory) Board;
  const std::vector<Rank> ranks = start_ranks(2, [&](std::size_t rank, Channel parent) {
    setenv("HAUL_FABRIC_OVERLAP", "on", 0);
    if (one.kernel_bytes != nullptr) setenv("HAUL_FABRIC_KERNEL_BYTES", one.kernel_bytes, 1);
    Side side(rank, parent, *board, rounds);
    const int status = one.body(side, one.both_ways);
    // The other may still need this one's endpoint.
    std::fflush(stderr);
    return status;
  });
  spread_blocks(ranks);
  bool good = true;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    int status = 0;
    waitpid(ranks[rank].pid, &status, 0);
    const bool as_wanted = one.killed && rank == 0
                               ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                               : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!as_wanted) {
      std::fprintf(stderr, "%s: rank %zu ends with status %d\n", one.name, rank, status);
      good = false;
    }
    ranks[rank].channel.close();
  }
  munmap(memory, sizeof(Board));
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t rounds = option(argc, argv, "--rounds", 12);
  bool good = true;
  for (const Case& one : cases) {
    const std::int64_t begin = now_ns();
    for (std::uint64_t i = 0; i < one.repeats && good; ++i)
      good = play(one, one.repeats == 1 ? rounds : i + 1);
    if (!good) break;
    std::printf("%s: passed, %lld ms\n", one.name,
                static_cast<long long>((now_ns() - begin) / 1'000'000));
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}
