// share (paper 000, IV-C): a data-centre server gives documents to three applications on its node.
// A request is done when all three have their copy and know it. There are three ways:
//   SCNI  shared memory: the server copies into a segment, each application copies out of it
//   CMA   each application reads the server's memory with process_vm_readv
//   MCNI  the node's service copies into memory that the applications have granted
// Documents of 500 B to 8 MB are asked for by Zipf's law: the i-th most popular one as often as
// 1/i^alpha. Everybody sleeps while there is nothing to do, and in all three ways the same words
// wake them.
#include <haul/haul.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/stats.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr unsigned readers = 3, documents = 48, most_requests = 512;
constexpr std::size_t least_bytes = 500, most_bytes = 8'000'000;
constexpr std::size_t block_bytes = std::size_t{128} << 10, short_bytes = std::size_t{64} << 10;
constexpr std::size_t poke_bytes = std::size_t{16} << 10;
constexpr std::size_t number_at = most_bytes;  // behind the document
constexpr std::array<double, 5> alphas = {0.1, 0.3, 0.5, 0.7, 0.9};
enum class Scheme : std::uint32_t { scni, cma, mcni };
constexpr std::array<const char*, 3> scheme_names = {"SCNI", "CMA", "MCNI"};

struct ShareBlock {
  std::size_t sizes[documents];
  // What the suite asks of the server.
  std::atomic<std::uint32_t> order, answered;  // the n-th order; the last that was carried out
  Scheme scheme;
  std::uint32_t requests;
  std::uint32_t document[most_requests];
  double us[most_requests];
  std::atomic<bool> stop;
  std::atomic<std::uint32_t> ready;
  // Between the server and the readers: `go` counts requests; `done` and `checked` count the
  // readers that have got that far.
  alignas(64) std::atomic<std::uint32_t> go;
  alignas(64) std::atomic<std::uint32_t> done;
  alignas(
      64) std::atomic<std::uint32_t> check;  // counts as `go` does: the server has taken the time
  alignas(64) std::atomic<std::uint32_t> checked;
  std::uint32_t current, current_document;  // the request that `go` announces
  pid_t server;
  std::uint64_t address[documents];  // in the server
  haul_grant grants[readers];        // fd: its number in the reader
  pid_t reader_pid[readers];
  alignas(4096) std::byte segment[most_bytes];  // SCNI's
};

void await_count(std::atomic<std::uint32_t>& word, std::uint32_t wanted) {
  for (std::uint32_t seen = word.load(); seen != wanted; seen = word.load()) sleep_on(word, seen);
}
void count_up(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1);
  wake_all(word);
}

// A document's size does not depend on its popularity; the logarithms of the sizes are spread
// evenly.
void choose_sizes(ShareBlock& block) {
  std::mt19937_64 random(20080929);
  std::uniform_real_distribution<double> even(std::log(least_bytes), std::log(most_bytes));
  for (std::size_t& size : block.sizes) size = static_cast<std::size_t>(std::exp(even(random)));
}

std::vector<std::uint32_t> zipf(double alpha, unsigned count, std::uint64_t seed) {
  std::vector<double> weights;
  for (unsigned i = 1; i <= documents; ++i) weights.push_back(std::pow(i, -alpha));
  std::discrete_distribution<std::uint32_t> popular(weights.begin(), weights.end());
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> asked;
  for (unsigned i = 0; i < count; ++i) asked.push_back(popular(random));
  return asked;
}

// ---- the server -----------------------------------------------------------------------------

struct ShareServer {
  ShareBlock& block;
  std::array<haul_space, readers> spaces{};
  std::array<std::byte*, documents> data{};
  std::uint64_t* number = nullptr;  // of the request, in memory that the service maps
  std::vector<haul_request> requests{};
  std::vector<haul_ticket> tickets{};

  void add(unsigned reader, std::size_t to, void* from, std::size_t bytes, std::uint32_t flags) {
    haul_request one = haul_request_copy(nullptr, from, bytes);
    one.dst.space = spaces[reader];
    one.dst.address = reinterpret_cast<void*>(to);
    one.flags = flags;
    requests.push_back(one);
  }

  // Copies block by block to all three readers, so that each block comes from memory once. Behind
  // the last block, ordered by a fence, goes the request's number, by which a reader knows that its
  // copy is complete. Returns a ticket after which only as much is left to copy as is copied while
  // readers wake up.
  haul_ticket submit(std::uint32_t document) {
    requests.clear();
    for (std::size_t at = 0; at < block.sizes[document]; at += block_bytes) {
      const std::size_t bytes = std::min(block_bytes, block.sizes[document] - at);
      for (unsigned i = 0; i < readers; ++i) add(i, at, data[document] + at, bytes, 0);
    }
    *number = block.go.load() + 1;
    for (unsigned i = 0; i < readers; ++i) add(i, number_at, number, sizeof *number, HAUL_FENCE);
    tickets.resize(requests.size());
    const int taken = haul_submit(requests.data(), requests.size(), tickets.data());
    const bool all = taken == static_cast<int>(requests.size());
    tools::require(all ? 0 : std::min<int>(taken, HAUL_EAGAIN), "haul_submit()");
    // That is two blocks, and the numbers.
    return tickets[tickets.size() - readers - 3];
  }

  void announce(std::uint32_t document) {
    block.current_document = document;
    block.done.store(0);
    block.checked.store(0);
    count_up(block.go);
  }

  void serve(std::uint32_t document) {
    const std::size_t bytes = block.sizes[document];
    if (block.scheme == Scheme::scni) {
      std::memcpy(block.segment, data[document], bytes);
    } else if (block.scheme == Scheme::mcni) {
      // Readers are woken when little is left to copy: it has arrived by the time they are awake.
      if (const haul_ticket late = submit(document); bytes > short_bytes)
        tools::require(haul_wait(late), "haul_wait()");
    }
    announce(document);
    await_count(block.done, readers);
    if (block.scheme == Scheme::mcni) tools::require(haul_drain(), "haul_drain()");
  }
};

}  // namespace

void work_as_share_server(unsigned, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(ShareBlock));
  ShareServer server{shared.as<ShareBlock>()};
  ShareBlock& block = server.block;
  attach_to_service();
  block.server = getpid();
  for (unsigned i = 0; i < documents; ++i) {
    server.data[i] = static_cast<std::byte*>(haul_alloc(block.sizes[i]));
    if (server.data[i] == nullptr) throw tools::CommandFailure(haul_last_error());
    write_content(server.data[i], block.sizes[i], i);
    block.address[i] = reinterpret_cast<std::uintptr_t>(server.data[i]);
  }
  count_up(block.ready);
  await_count(block.ready, readers + 1);
  for (unsigned i = 0; i < readers; ++i) {
    haul_grant grant = block.grants[i];
    grant.fd = os::take_descriptor(block.reader_pid[i], grant.fd);
    if (grant.fd < 0)
      throw tools::CommandFailure(
          "cannot get a reader's descriptor (pidfd_getfd); run as one user without ptrace "
          "restrictions");
    tools::require(haul_space_open_grant(&grant, &server.spaces[i], nullptr),
                   "haul_space_open_grant()");
    os::close_fd(grant.fd);
  }
  count_up(block.ready);
  server.number = static_cast<std::uint64_t*>(haul_alloc(sizeof *server.number));
  if (server.number == nullptr) throw tools::CommandFailure(haul_last_error());
  for (std::uint32_t order = 0;;) {
    sleep_on(block.order, order);
    if (block.stop.load()) break;
    if (block.order.load() == order) continue;
    ++order;
    for (std::uint32_t i = 0; i < block.requests; ++i) {
      const std::uint64_t begin = now_ns();
      server.serve(block.document[i]);
      block.us[i] = static_cast<double>(now_ns() - begin) / 1000;
      count_up(block.check);
      await_count(block.checked, readers);
    }
    block.answered.store(order);
  }
  block.current_document = documents;  // the readers may go
  count_up(block.go);
}

// ---- an application -------------------------------------------------------------------------

void work_as_share_reader(unsigned index, int block_fd) {
  const SharedBlock shared(block_fd, sizeof(ShareBlock));
  auto& block = shared.as<ShareBlock>();
  attach_to_service();
  auto* own = static_cast<std::byte*>(haul_alloc(number_at + sizeof(std::uint64_t)));
  if (own == nullptr) throw tools::CommandFailure(haul_last_error());
  std::memset(own, 1, most_bytes);
  auto& number = *reinterpret_cast<std::atomic<std::uint64_t>*>(own + number_at);
  tools::require(haul_share(own, number_at + sizeof number, HAUL_SHARE_WRITE, &block.grants[index]),
                 "haul_share()");
  block.reader_pid[index] = getpid();
  count_up(block.ready);
  for (std::uint32_t seen = 0;;) {
    while (block.go.load() == seen) sleep_on(block.go, seen);
    ++seen;
    const std::uint32_t document = block.current_document;
    if (document == documents) return;
    const std::size_t bytes = block.sizes[document];
    if (block.scheme == Scheme::scni) {
      std::memcpy(own, block.segment, bytes);
    } else if (block.scheme == Scheme::cma) {
      const iovec local{own, bytes};
      const iovec remote{reinterpret_cast<void*>(block.address[document]), bytes};
      if (os::read_process(block.server, &local, 1, &remote, 1) != static_cast<ssize_t>(bytes))
        throw tools::CommandFailure(
            "process_vm_readv is refused; run as one user without ptrace restrictions");
    } else {
      while (number.load(std::memory_order_acquire) != seen) os::yield();
    }
    count_up(block.done);
    await_count(block.check, seen);
    check_content(own, bytes, document);
    // Spoils a few bytes, so that the check notices wherever the next copy is missing. Few, because
    // the core that wrote a line last has it in its cache.
    for (std::size_t at = seen * 61 % poke_bytes; at < bytes; at += poke_bytes) own[at] = ~own[at];
    count_up(block.checked);
  }
}

namespace {

void run_share(SuiteRun& session, std::vector<Row>& rows) {
  const unsigned requests = session.options.quick ? 8 : 40;
  const unsigned repetitions = session.options.quick ? 3 : 9;
  SharedBlock shared(sizeof(ShareBlock));
  auto& block = shared.as<ShareBlock>();
  choose_sizes(block);
  const ServiceProcess service;
  std::vector<Child> children;
  children.push_back(start_worker("share-server", 0, shared, service.environment()));
  for (unsigned i = 0; i < readers; ++i)
    children.push_back(start_worker("share-reader", i, shared, service.environment()));
  await("the share server", children, [&] { return block.ready.load() == readers + 2; });

  std::array<std::array<Samples, alphas.size()>, 3> us, means;
  std::uint32_t order = 0;
  for (unsigned r = 0; r < repetitions; ++r) {
    for (std::size_t a = 0; a < alphas.size(); ++a) {
      session.options.progress(static_cast<double>(r * alphas.size() + a) /
                                   static_cast<double>(repetitions * alphas.size()),
                               "alpha " + std::to_string(alphas[a]).substr(0, 3));
      const std::vector<std::uint32_t> asked = zipf(alphas[a], requests, r * 100 + a);
      for (unsigned turn = 0; turn < 3; ++turn) {
        const unsigned s = (turn + r) % 3;
        os::sleep_ns(
            15'000'000);  // so that the service sleeps again and leaves its core to the others
        block.scheme = static_cast<Scheme>(s);
        block.requests = requests;
        std::copy(asked.begin(), asked.end(), block.document);
        ++order;
        count_up(block.order);
        await("the share server", children, [&] { return block.answered.load() == order; });
        const Samples all(block.us, block.us + requests);
        us[s][a].insert(us[s][a].end(), all.begin(), all.end());
        double sum = 0;
        for (const double one : all) sum += one;
        means[s][a].push_back(sum / requests);
      }
    }
  }
  block.stop.store(true);
  count_up(block.order);
  for (Child& child : children) child.finish("share");

  for (std::size_t a = 0; a < alphas.size(); ++a) {
    Samples better;
    for (std::size_t r = 0; r < means[0][a].size(); ++r)
      better.push_back(std::min(means[0][a][r], means[1][a][r]));
    for (unsigned s = 0; s < 3; ++s) {
      Row row = {{"scheme", scheme_names[s]},
                 {"mover", s == 2 ? "service" : "caller"},
                 {"alpha", alphas[a]},
                 {"clients", readers},
                 {"mean_us", round1(median(means[s][a]))},
                 {"p99_us", round1(quantile(us[s][a], 0.99))},
                 {"median_us", round1(median(us[s][a]))}};
      put_ratio(row, "ratio", ratio_of(means[s][a], better));
      row["requests"] = us[s][a].size();
      rows.push_back(std::move(row));
    }
  }
}

constexpr auto share_columns = columns_of(
    column::scheme, Column{"alpha", "alpha", Unit::ratio},
    Column{"clients", "readers", Unit::count}, Column{"mean_us", "mean us", Unit::ratio},
    Column{"median_us", "median us", Unit::ratio}, Column{"p99_us", "p99 us", Unit::ratio},
    Column{"ratio", "of the better", Unit::ratio}, column::ratio_q25, column::ratio_q75);

}  // namespace

const Suite share_suite{
    "share", "a server gives documents to three applications (paper 000, IV-C and Fig. 10b)",
    run_share, share_columns};

}  // namespace haul::bench
