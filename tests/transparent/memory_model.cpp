// Random copies and fills of 1 byte to 24 MiB under libhaul-mem.so, between all sorts of memory,
// by several threads, in children and in a signal handler, against a shadow of every byte.
//
//   transparent_memory_model --plan PLAN [--seconds N] [--seed N] [--threads N]
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "transparent/region.hpp"
#include "transparent/under_preload.hpp"

extern "C" {
void* __memcpy_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __memmove_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __mempcpy_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __memset_chk(void*, int, std::size_t, std::size_t) noexcept;
}

namespace {

using namespace transparent;
using Clock = std::chrono::steady_clock;

constexpr std::size_t mib = 1024 * 1024;
constexpr std::size_t largest_bytes = 24 * mib;

std::uint64_t seed = 0;
const char* plan = "auto";

// What a thread did last, for the one line that a failure prints.
struct Act {
  const char* name = "";
  std::uint64_t number = 0;
  std::size_t to = 0, from = 0, length = 0;
};

[[noreturn]] void fail(const Act& act, const char* what, std::size_t at = 0, unsigned is = 0,
                       unsigned must_be = 0) {
  std::fprintf(stderr,
               "memory_model: %s after act %" PRIu64
               " (%s, to +%zu, from +%zu, %zu bytes): byte %zu is %u, "
               "not %u; --plan %s --seed %" PRIu64 "\n",
               what, act.number, act.name, act.to, act.from, act.length, at, is, must_be, plan,
               seed);
  _exit(1);
}

// ---- the signal handler: copies between memory of its own, and new memory every other time

std::atomic<bool> handler_busy{false};
std::atomic<std::uint64_t> handled{0};
unsigned char* handler_from = nullptr;
unsigned char* handler_to = nullptr;

void on_alarm(int) {
  if (handler_busy.exchange(true)) return;
  const int saved = errno;
  const std::uint64_t turn = handled.fetch_add(1) + 1;
  auto* from = reinterpret_cast<std::uint64_t*>(handler_from);
  const auto* to = reinterpret_cast<const std::uint64_t*>(handler_to);
  for (std::size_t i = 0; i < mib / 8; ++i) from[i] = turn * 0x9E3779B97F4A7C15u + i;
  if (turn % 2 == 0) madvise(handler_to, mib, MADV_DONTNEED);
  std::memcpy(handler_to, handler_from, mib);
  for (std::size_t i = 0; i < mib / 8; ++i)
    if (to[i] != from[i]) fail({"memcpy in a handler", turn, 0, 0, mib}, "wrong", i * 8);
  errno = saved;
  handler_busy.store(false);
}

void start_alarm() {
  handler_from = static_cast<unsigned char*>(
      mmap(nullptr, 2 * mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  handler_to = handler_from + mib;
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every{{0, 20'000}, {0, 20'000}};
  setitimer(ITIMER_REAL, &every, nullptr);
}

// ---- one thread of the model

class Actor {
 public:
  explicit Actor(std::uint64_t stream) : random_(stream) {
    for (Region& region : regions_) renew(region);
  }

  void act() {
    ++act_.number;
    const std::uint64_t dice = random_() % 100;
    if (dice < 38) return copy();
    if (dice < 45) return overwrite();
    if (dice < 60) return move_within();
    if (dice < 72) return fill();
    if (dice < 75) return fill_new();
    if (dice < 82) return renew(any());
    if (dice < 88) return resize();
    if (dice < 92) return forget();
    if (dice < 95) return protect();
    if (dice < 97) return child();
    check_all();
  }
  void check_all() {
    for (const Region& region : regions_) check(region, 0, region.size());
  }
  std::uint64_t acts() const { return act_.number; }

 private:
  static constexpr std::size_t count = 5;

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  Region& any() { return regions_[below(count)]; }
  // Half of all lengths are large; the others are of any magnitude.
  std::size_t length() {
    if (random_() % 2 == 0) return mib + below(random_() % 4 == 0 ? largest_bytes - mib : 5 * mib);
    return 1 + below(std::size_t{1} << (1 + random_() % 21));
  }

  void renew(Region& region) {
    act_.name = "renew";
    const auto kind = static_cast<Kind>(below(static_cast<std::size_t>(Kind::count_)));
    if (!region.make(kind, length())) fail(act_, "no memory");
  }

  void check(const Region& region, std::size_t begin, std::size_t end) {
    const std::size_t wrong = region.first_wrong(begin, end);
    if (wrong != Region::none)
      fail(act_, "wrong", wrong, region.data()[wrong], region.shadow_at(wrong));
  }
  // What was written, and its neighbours. Not always: the next acts meet what is still pending.
  void check_around(const Region& region, std::size_t at, std::size_t length) {
    if (random_() % 3 == 0) return;
    constexpr std::size_t around = 8192;
    check(region, at < around ? 0 : at - around, at + length + around);
  }

  void expect(const void* returned, const void* expected) {
    if (returned != expected) fail(act_, "returned something else");
  }

  void copy() {
    Region& to = any();
    const Region& from = any();
    // What a child writes to shared memory, its parent would see.
    if (in_child_ && (to.kind() == Kind::shared || to.kind() == Kind::file_shared)) return;
    const std::size_t longest = to.size() < from.size() ? to.size() : from.size();
    std::size_t length = random_() % 3 == 0 ? longest : 1 + below(longest);
    const std::size_t to_at = below(to.size() - length + 1);
    std::size_t from_at = below(from.size() - length + 1);
    const bool may_overlap = &to == &from;
    note("copy", to_at, from_at, length);
    unsigned char* const dst = to.data() + to_at;
    const unsigned char* const src = from.data() + from_at;
    switch (may_overlap ? 6 + below(2) : below(8)) {
      case 0: name("memcpy"), expect(std::memcpy(dst, src, length), dst); break;
      case 1: name("mempcpy"), expect(mempcpy(dst, src, length), dst + length); break;
      case 2:
        name("__memcpy_chk"), expect(__memcpy_chk(dst, src, length, to.size() - to_at), dst);
        break;
      case 3:
        name("__mempcpy_chk"), expect(__mempcpy_chk(dst, src, length, length), dst + length);
        break;
      case 4:
        name("__memmove_chk"), expect(__memmove_chk(dst, src, length, ~std::size_t{0}), dst);
        break;
      case 5: name("memcpy"), expect(std::memcpy(dst, src, length), dst); break;
      case 6: name("memmove"), expect(std::memmove(dst, src, length), dst); break;
      default: name("bcopy"), bcopy(src, dst, length); break;
    }
    to.model_copy(to_at, from, from_at, length);
    check_around(to, to_at, length);
  }

  // Overlapping more often than not, by a little or by much.
  void move_within() {
    Region& region = any();
    const std::size_t length = 1 + below(region.size());
    const std::size_t room = region.size() - length + 1;
    const std::size_t from = below(room);
    std::size_t to = random_() % 2 == 0 ? from + below(256) : below(room);
    if (to >= room) to = room - 1;
    note("memmove within", to, from, length);
    expect(std::memmove(region.data() + to, region.data() + from, length), region.data() + to);
    region.model_copy(to, region, from, length);
    check_around(region, to, length);
  }

  void fill() {
    Region& region = any();
    const std::size_t length = random_() % 3 == 0 ? region.size() : 1 + below(region.size());
    const std::size_t at = below(region.size() - length + 1);
    // Only the lowest byte counts.
    int value = static_cast<int>(random_());
    unsigned char* const dst = region.data() + at;
    note("memset", at, 0, length);
    switch (below(3)) {
      case 0: expect(std::memset(dst, value, length), dst); break;
      case 1: name("__memset_chk"), expect(__memset_chk(dst, value, length, length), dst); break;
      default:
        name("bzero");
        value = 0;
        bzero(dst, length);
        break;
    }
    region.model_fill(at, static_cast<unsigned char>(value), length);
    check_around(region, at, length);
  }

  // As calloc() of recycled memory: what was there is given back before.
  void fill_new() {
    Region& region = any();
    region.forget(0, region.size());
    const int value = random_() % 2 == 0 ? 0 : static_cast<int>(random_() % 256);
    note("memset of new memory", 0, 0, region.size());
    expect(std::memset(region.data(), value, region.size()), region.data());
    region.model_fill(0, static_cast<unsigned char>(value), region.size());
    const std::size_t at = below(region.size());
    check(region, at, at + 1);
    check_around(region, 0, region.size());
  }

  // Most of some huge pages that are there, again and again.
  void overwrite() {
    Region& region = any();
    if (region.kind() != Kind::huge_pages || region.size() < 5 * mib) {
      act_.name = "renew";
      if (!region.make(Kind::huge_pages, 5 * mib + below(9 * mib))) fail(act_, "no memory");
      // (By the kernel's huge pages: after a program has forbidden some, haul makes none.)
      for (std::size_t i = 0; i < region.size(); ++i) region.data()[i] = 0x77;
      region.model_fill(0, 0x77, region.size());
    }
    for (std::uint64_t turns = 1 + random_() % 3; turns > 0; --turns) {
      const Region& from = any();
      const std::size_t at = random_() % 2 == 0 ? below(64) : below(mib);
      std::size_t length = region.size() - at - below(mib);
      const bool fills = &from == &region || from.size() < 3 * mib;
      if (!fills && length > from.size()) length = from.size();
      const std::size_t from_at = fills ? 0 : below(from.size() - length + 1);
      note(fills ? "memset of huge pages" : "memcpy into huge pages", at, from_at, length);
      unsigned char* const dst = region.data() + at;
      if (fills) {
        std::memset(dst, static_cast<int>(turns), length);
        region.model_fill(at, static_cast<unsigned char>(turns), length);
      } else {
        std::memcpy(dst, from.data() + from_at, length);
        region.model_copy(at, from, from_at, length);
      }
      const std::size_t touched = below(region.size());
      check(region, touched, touched + 1);
    }
    check_around(region, 0, region.size());
  }

  void resize() {
    Region& region = any();
    note("resize", 0, 0, length());
    if (!region.resize(act_.length)) renew(region);
    check(region, 0, region.size());
  }

  void forget() {
    Region& region = any();
    const std::size_t length = below(region.size());
    const std::size_t at = below(region.size() - length + 1);
    note("forget", at, 0, length);
    region.forget(at, length);
    check_around(region, at, length);
  }

  // A source that may only be read; then one whose second half is gone.
  void protect() {
    Region from;
    if (!from.make(Kind::mapped, 4 * mib)) fail(act_, "no memory");
    note("copy from read-only memory", 0, 0, 2 * mib);
    from.model_fill(0, static_cast<unsigned char>(act_.number), 4 * mib);
    std::memset(from.data(), static_cast<int>(act_.number), 4 * mib);
    mprotect(from.data(), 2 * mib, PROT_READ);
    from.cut(2 * mib);
    Region to;
    if (!to.make(Kind::mapped, 2 * mib + 4096)) fail(act_, "no memory");
    mprotect(to.data() + 2 * mib, 4096, PROT_NONE);
    std::memcpy(to.data(), from.data(), 2 * mib);
    to.model_copy(0, from, 0, 2 * mib);
    check(to, 0, 2 * mib);
  }

  void child() {
    act_.name = "child";
    const pid_t pid = fork();
    if (pid == 0) {
      // (An alarm's handler may have been under way on another thread.)
      handler_busy.store(true);
      check_all();
      in_child_ = true;
      for (int turn = 0; turn < 6; ++turn) copy();
      check_all();
      _exit(0);
    }
    int status = 1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) fail(act_, "the child failed");
    check_all();
  }

  void note(const char* name, std::size_t to, std::size_t from, std::size_t length) {
    act_ = Act{name, act_.number, to, from, length};
  }
  void name(const char* text) { act_.name = text; }

  std::mt19937_64 random_;
  Act act_;
  bool in_child_ = false;
  Region regions_[count];
};

// A plan that was never carried out has not been tested.
bool was_carried_out(std::uint64_t acts) {
  const Table* const table = table_of(getpid());
  const Counted all = counted(table);
  const Counted libc = counted(table, static_cast<int>(Way::libc));
  const Counted caller = counted(table, static_cast<int>(Way::caller));
  const Counted together = counted(table, static_cast<int>(Way::together));
  const Counted deferred = counted(table, static_cast<int>(Way::deferred));
  const Counted protected_ = counted(table, static_cast<int>(Way::protected_));
  std::printf("memory_model: plan %s, seed %" PRIu64 ", %" PRIu64 " acts, %" PRIu64
              " in handlers; %" PRIu64 " large calls: libc %" PRIu64 ", caller %" PRIu64
              ", together %" PRIu64 ", deferred %" PRIu64 ", protected %" PRIu64 "\n",
              plan, seed, acts, handled.load(), all.calls, libc.calls, caller.calls, together.calls,
              deferred.calls, protected_.calls);
  std::uint64_t into_pages = 0;
  for (std::size_t i = 0; table != nullptr && i < Table::room; ++i)
    for (const auto& kind :
         table->sites[i].kinds[static_cast<std::size_t>(haul::preload::Pages::there)])
      into_pages += kind.ways[static_cast<std::size_t>(Way::deferred)].calls.load();
  std::printf("memory_model: %" PRIu64 " of the deferred calls went into huge pages\n", into_pages);
  const std::string name = plan;
  if (table == nullptr || all.calls == 0) return false;
  if (name == "libc" || name == "profile") return caller.calls + together.calls == 0;
  if (name == "caller") return libc.calls + together.calls == 0;
  const bool no_mover = table->refusals[static_cast<std::size_t>(NotShared::no_mover)].load() != 0;
  // (An ordinary user may have no userfaultfd that serves the kernel.)
  const bool no_userfault =
      table->refusals[static_cast<std::size_t>(NotShared::no_userfault)].load() != 0;
  if (name == "deferred") return deferred.calls != 0 || no_mover || no_userfault;
  if (name == "protected") return protected_.calls != 0 || no_mover;
  if (name == "together") return together.calls != 0 || no_mover;
  return caller.calls != 0;
}

int run(double seconds, unsigned threads) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  start_alarm();
  std::atomic<std::uint64_t> acts{0};
  std::vector<std::thread> others;
  for (unsigned i = 0; i < threads; ++i) {
    others.emplace_back([&, i] {
      Actor actor(seed + i * 1'000'003);
      while (Clock::now() < end) actor.act();
      actor.check_all();
      acts.fetch_add(actor.acts());
    });
  }
  for (std::thread& other : others) other.join();
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  if (was_carried_out(acts.load())) return 0;
  std::fprintf(stderr, "memory_model: the plan was not carried out\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 3;
  unsigned threads = 3;
  seed = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()) % 1'000'000'007;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--plan") plan = argv[i + 1];
    if (option == "--seconds") seconds = std::atof(argv[i + 1]);
    if (option == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--threads") threads = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  return under_preload() ? run(seconds, threads) : run_under(plan, argv);
}
