// Kills a rank at a random instant, again and again. fabric_kill [--kills N] [--seed S]
// Three ranks exchange messages of all sizes, remote reads and writes, and atomics. One of them is
// killed with SIGKILL. Within one second every operation of the survivors that names it has ended,
// and new ones end with an error; the survivors go on among themselves; and nothing is left behind:
// no file, no process, no descriptor, no mapping. --kills 0: one round in which nobody is killed.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>

#include "rank.hpp"

namespace {

using namespace rank_test;

constexpr std::size_t ranks_count = 3, largest = 4 * mib;
constexpr std::int64_t second_ns = 1000000000;
constexpr int messages_after = 150;

// Written by the parent, read by the ranks.
struct Board {
  std::atomic<std::int64_t> killed_ns{0};  // 0: not yet
  std::atomic<std::uint64_t> victim{ranks_count};
  std::atomic<bool> stop{false};
  std::atomic<bool> closing{false};
};

enum class Kind { send, receive, write, read, add };

struct Posted : Operation {
  Kind kind{};
  std::size_t peer = 0;
  std::size_t size = 0;
  bool busy = false;
  std::vector<std::uint64_t> memory;
};

struct PeerPlace {
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::uint64_t base = 0, key = 0;
};

class Survivor {
 public:
  Survivor(std::size_t rank, Channel parent, Board& board, std::uint64_t seed)
      : rank_(rank), parent_(parent), board_(board), random_(seed * 100 + rank) {}

  int run() {
    { Endpoint warm_up(caps); }
    const Holdings before = holdings();
    work();
    const Holdings after = holdings();
    if (after.descriptors != before.descriptors)
      give_up("%zu descriptors were open before, %zu are after", before.descriptors,
              after.descriptors);
    if (after.shared_mappings != before.shared_mappings)
      give_up("%zu shared mappings before, %zu after", before.shared_mappings,
              after.shared_mappings);
    return 0;
  }

 private:
  static constexpr std::uint64_t caps =
      FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE;

  void work() {
    std::vector<std::uint64_t> window(largest / 8);  // peers reach it until the endpoint is closed
    Endpoint endpoint(caps);
    endpoint_ = &endpoint;
    endpoint.share(window.data(), largest);
    join(endpoint);
    while (board_.killed_ns == 0 && !board_.stop) step();
    if (board_.killed_ns != 0) bury();
    parent_.put('d');
    while (!parent_.readable()) step();
    static_cast<void>(parent_.get<char>());
  }

  void join(Endpoint& endpoint) {
    std::vector<char> block(2 * sizeof(std::uint64_t));
    const std::uint64_t base = endpoint.base(), key = endpoint.key();
    std::memcpy(block.data(), &base, sizeof base);
    std::memcpy(block.data() + sizeof base, &key, sizeof key);
    const std::vector<char> name = endpoint.name();
    block.insert(block.end(), name.begin(), name.end());
    const auto blocks = exchange_block(parent_, ranks_count, block);
    for (std::size_t peer = 0; peer < ranks_count; ++peer) {
      std::memcpy(&peers_[peer].base, blocks[peer].data(), sizeof base);
      std::memcpy(&peers_[peer].key, blocks[peer].data() + sizeof base, sizeof key);
      peers_[peer].address =
          endpoint.insert({blocks[peer].begin() + 2 * sizeof base, blocks[peer].end()});
      if (peer == rank_) continue;
      for (const Kind kind : {Kind::send, Kind::send, Kind::send, Kind::receive, Kind::receive,
                              Kind::receive, Kind::receive, Kind::write, Kind::read, Kind::add}) {
        auto operation = std::make_unique<Posted>();
        operation->kind = kind;
        operation->peer = peer;
        operation->memory.resize(largest / 8);
        operations_.push_back(std::move(operation));
      }
    }
  }

  // Posts what is idle, takes what is done.
  void step() {
    for (const auto& operation : operations_)
      if (!operation->busy && !dead_[operation->peer]) start(*operation);
    take_completions();
  }

  void take_completions() {
    endpoint_->reap([&](const Completion& done) { finish(done); });
  }

  ssize_t post(Posted& posted) {
    const PeerPlace& peer = peers_[posted.peer];
    fid_ep* ep = endpoint_->ep;
    void* memory = posted.memory.data();
    switch (posted.kind) {
      case Kind::send:
        return fi_tsend(ep, memory, posted.size, nullptr, peer.address, rank_, &posted);
      case Kind::receive:
        return fi_trecv(ep, memory, largest, nullptr, peer.address, posted.peer, 0, &posted);
      case Kind::write:
        return fi_write(ep, memory, posted.size, nullptr, peer.address, peer.base, peer.key,
                        &posted);
      case Kind::read:
        return fi_read(ep, memory, posted.size, nullptr, peer.address, peer.base, peer.key,
                       &posted);
      case Kind::add:
        return fi_fetch_atomic(ep, memory, 1, nullptr, posted.memory.data() + 1, nullptr,
                               peer.address, peer.base, peer.key, FI_UINT64, FI_SUM, &posted);
    }
    return -FI_EINVAL;
  }

  void start(Posted& posted) {
    posted.size = random_.size(largest) & ~std::size_t{7};
    if (posted.kind == Kind::send) {
      // Every word is the size: what arrives can be checked without a word about it.
      std::fill_n(posted.memory.begin(), posted.size / 8, posted.size);
    }
    const ssize_t status = post(posted);
    if (status == -FI_EAGAIN) return;
    if (status == 0) {
      posted.busy = true;
      return;
    }
    expect_death(posted.peer, static_cast<int>(-status));
  }

  void finish(const Completion& done) {
    auto* posted = static_cast<Posted*>(done.operation);
    if (posted == nullptr || !posted->busy) give_up("a completion of nothing that is under way");
    posted->busy = false;
    if (done.error != 0) {
      expect_death(posted->peer, done.error);
      return;
    }
    ++finished_[posted->peer];
    if (posted->kind != Kind::receive) return;
    if (done.len > largest || done.len % 8 != 0) give_up("a message of %zu bytes", done.len);
    for (std::size_t i = 0; i < done.len / 8; ++i)
      if (posted->memory[i] != done.len) give_up("word %zu of %zu bytes is wrong", i, done.len);
  }

  void expect_death(std::size_t peer, int error) {
    // Named before it is killed; at the end the ranks leave one after the other.
    if (board_.victim != peer && !board_.closing)
      give_up("an operation of rank %zu, which lives, ends with %s", peer, fi_strerror(error));
    dead_[peer] = true;
  }

  // Everything that names the victim ends in time, and so does what is begun now.
  void bury() {
    const std::size_t victim = board_.victim;
    if (victim == rank_) give_up("the victim has outlived its death");
    await_idle(victim, board_.killed_ns + second_ns, "from before its death");
    dead_[victim] = true;
    for (const auto& operation : operations_)
      if (operation->peer == victim) expect_refusal(*operation);
    // The others go on.
    const std::size_t other = ranks_count - rank_ - victim;
    const std::uint64_t goal = finished_[other] + messages_after;
    const std::int64_t patience = now_ns() + 30 * second_ns;
    while (finished_[other] < goal) {
      if (now_ns() > patience) give_up("the survivors do not go on");
      step();
    }
    endpoint_->remove(peers_[victim].address);
  }

  // Within a second an operation with the dead ends with an error. Until the death is noticed a
  // small one may still succeed, and a receive may find what was sent before.
  void expect_refusal(Posted& posted) {
    const std::int64_t limit = now_ns() + second_ns;
    for (;;) {
      posted.size = posted.kind == Kind::add ? 8 : random_.size(largest) & ~std::size_t{7};
      if (posted.kind == Kind::send)
        std::fill_n(posted.memory.begin(), posted.size / 8, posted.size);
      const std::uint64_t good = finished_[posted.peer];
      const ssize_t status = post(posted);
      if (status == 0) {
        posted.busy = true;
        await_idle(posted.peer, limit, "begun after its death");
        if (finished_[posted.peer] == good) return;
      } else if (status != -FI_EAGAIN) {
        return;
      }
      take_completions();
      if (now_ns() > limit)
        give_up("new operations of kind %d with the dead get no error",
                static_cast<int>(posted.kind));
    }
  }

  void await_idle(std::size_t peer, std::int64_t limit, const char* which) {
    for (const auto& operation : operations_) {
      if (operation->peer != peer) continue;
      while (operation->busy) {
        if (now_ns() > limit)
          give_up("an operation of kind %d and %zu bytes, %s, has not ended in a second",
                  static_cast<int>(operation->kind), operation->size, which);
        take_completions();
      }
    }
  }

  const std::size_t rank_;
  const Channel parent_;
  Board& board_;
  Random random_;
  Endpoint* endpoint_ = nullptr;
  PeerPlace peers_[ranks_count];
  bool dead_[ranks_count] = {};
  std::uint64_t finished_[ranks_count] = {};
  std::vector<std::unique_ptr<Posted>> operations_;
};

// Other programs leave files in /dev/shm: as root it is one of our own.
void isolate_shared_files() {
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) return;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) != 0)
    std::fprintf(stderr, "/dev/shm is shared with other programs: their files may disturb\n");
}

void end_rank(const Rank& rank, bool killed) {
  int status = 0;
  if (waitpid(rank.pid, &status, 0) != rank.pid) give_up("a rank has vanished");
  const bool well = killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                           : WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!well) give_up("a rank ended with status %#x", static_cast<unsigned>(status));
  rank.channel.close();
}

void round(std::uint64_t seed, bool kill_one, Board& board) {
  Random random(seed);
  board.killed_ns = 0;
  board.victim = ranks_count;
  board.stop = false;
  board.closing = false;
  const std::vector<Rank> ranks = start_ranks(ranks_count, [&](std::size_t rank, Channel parent) {
    return Survivor(rank, parent, board, seed).run();
  });
  spread_blocks(ranks);
  usleep(static_cast<useconds_t>(random.below(kill_one ? 80000 : 500000)));
  const std::size_t victim = kill_one ? random.below(ranks_count) : ranks_count;
  if (kill_one) {
    board.victim = victim;
    kill(ranks[victim].pid, SIGKILL);
    board.killed_ns = now_ns();
    end_rank(ranks[victim], true);
  }
  board.stop = true;
  for (std::size_t rank = 0; rank < ranks_count; ++rank)
    if (rank != victim && ranks[rank].channel.get<char>() != 'd') give_up("no answer of a rank");
  board.closing = true;
  for (std::size_t rank = 0; rank < ranks_count; ++rank)
    if (rank != victim) ranks[rank].channel.put('q');
  for (std::size_t rank = 0; rank < ranks_count; ++rank)
    if (rank != victim) end_rank(ranks[rank], false);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t kills = option(argc, argv, "--kills", 20);
  const std::uint64_t seed = option(argc, argv, "--seed", 1);
  void* shared =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* board = new (shared) Board;
  isolate_shared_files();
  const auto files = files_in("/dev/shm");
  const std::size_t descriptors = files_in("/proc/self/fd").size();
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(kills, 1); ++i) {
    round(seed + i, kills > 0, *board);
    if (files_in("/dev/shm") != files)
      give_up("round %llu (--seed %llu) leaves files in /dev/shm",
              static_cast<unsigned long long>(i), static_cast<unsigned long long>(seed + i));
    if (isatty(STDOUT_FILENO) != 0) {
      std::printf("\r%llu kills", static_cast<unsigned long long>(i + 1));
      std::fflush(stdout);
    }
  }
  if (waitpid(-1, nullptr, WNOHANG) != -1) give_up("a process is left");
  if (files_in("/proc/self/fd").size() != descriptors) give_up("descriptors are left");
  std::printf("%llu kills survived\n", static_cast<unsigned long long>(kills));
}
