// Runs one piece of work at a time, in static storage, where a stalled one keeps its place.
//
// A word guards the place. A thread takes it from free to taken by compare-and-swap, writes what it
// wants, and starts the work (running); the worker stores its result and then `done` (release),
// which the waiting thread reads (acquire) before it takes the result and frees the place. A thread
// whose patience ends moves the word from running to stalled instead, and goes: the worker then
// frees the place itself when the file system has answered. The word also carries the process, so a
// child of fork finds its parent's word to be none of its own.
#include "tune/files.hpp"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/thread/aide.hpp"
#include "base/thread/apart.hpp"
#include "tune/calibration_file.hpp"
#include "tune/machine_key.hpp"

namespace haul::tune {
namespace {

// free -> taken -> running -> done -> free; running -> stalled -> free.
enum ReadingPhase : std::uint32_t { free, taken, running, done, stalled };
constexpr unsigned phase_bits = 3;

// The phase, and above it the id of the process that it belongs to: a child of fork inherits the
// word but not the work.
constinit std::atomic<std::uint32_t> word{free};

// When the work began; a file system is slow, and not stalled, until some time after that.
constinit std::atomic<std::uint64_t> began_ns{0};
constexpr std::uint64_t ordinary_ns = 200'000'000;

ReadingPhase phase_of(std::uint32_t value) noexcept {
  return static_cast<ReadingPhase>(value & ((1u << phase_bits) - 1));
}
std::uint32_t own(ReadingPhase phase) noexcept {
  return static_cast<std::uint32_t>(os::process_id()) << phase_bits | phase;
}
bool is_own(std::uint32_t value) noexcept {
  return value >> phase_bits == own(free) >> phase_bits;
}

void let_go() noexcept {
  // Release: the thread that takes the place next finds the work at rest.
  word.store(free, std::memory_order_release);
  os::futex_wake(&word, INT_MAX);
}

// The work. It belongs to the thread that took the place, and to the worker while that runs.
enum class Kind : std::uint8_t { load, store, look };
struct Work {
  Kind kind = Kind::load;
  Measured measured;
  CpuTimes times;
  Error error;
};
constinit Work file_work;

// What is being read or written, for describe_stall(): a thread that reads this while the next
// piece of work begins may see two names mixed.
constexpr const char* key_files = "/sys and /etc";
constexpr const char* times_file = "/proc/stat";
constinit std::atomic<char> place[path_bytes];

void tell_place(const char* name) noexcept {
  for (std::size_t i = 0; i + 1 < path_bytes; ++i) {
    place[i].store(name[i], std::memory_order_relaxed);
    if (name[i] == '\0') return;
  }
}

void read_place(char (&name)[path_bytes]) noexcept {
  for (std::size_t i = 0; i < path_bytes; ++i) name[i] = place[i].load(std::memory_order_relaxed);
  name[path_bytes - 1] = '\0';
}

void load_or_store() noexcept {
  tell_place(key_files);
  machine_key();
  char path[path_bytes];
  file_work.error = default_calibration_path(path, sizeof path);
  if (file_work.error.code != Code::ok) return;
  tell_place(path);
  if (file_work.kind == Kind::store) {
    file_work.error = store_calibration(path, file_work.measured);
  } else if (const auto stored = load_calibration(path); stored) {
    file_work.measured = *stored;
  } else {
    file_work.error = stored.error();
  }
}

void access_file(void* /*unused*/) noexcept {
  if (file_work.kind == Kind::look) {
    tell_place(times_file);
    file_work.times = read_cpu_times(times_file);
  } else {
    load_or_store();
  }
  // Not own(): a helper process has an id of its own. Release: pairs with have_done().
  std::uint32_t seen = word.load(std::memory_order_relaxed);
  if (phase_of(seen) == running &&
      word.compare_exchange_strong(seen, seen - running + done, std::memory_order_release)) {
    os::futex_wake(&word, INT_MAX);
  } else {
    let_go();
  }
}

constexpr os::Apart file_access{"haul-files", access_file, nullptr};

// Starts the work on the aide or, if there is none yet, on a thread that is made for it. 0 or
// -errno.
int begin_access(std::uint64_t until_ns) noexcept {
  constexpr std::uint64_t step_ns = 50'000;
  for (;;) {
    const int refused = os::ask_aide(
        os::Aide::files, [](void*) noexcept { os::run_apart(file_access); }, nullptr);
    if (refused == -ESRCH) return os::start_apart(file_access);
    // The aide is just ending its previous work.
    if (refused != -EBUSY || now_ns() >= until_ns) return refused;
    os::sleep_ns(step_ns);
  }
}

// Waits until the word has changed; false if it is too late.
bool wait_while(std::uint32_t seen, std::uint64_t until_ns) noexcept {
  const std::uint64_t now = now_ns();
  if (now >= until_ns) return false;
  os::futex_wait(&word, seen, until_ns - now);
  return true;
}

Error no_answer() noexcept {
  char sentence[sizeof Error::sentence];
  describe_stall(sentence, sizeof sentence);
  return make_error(Code::timed_out, 0, "%s",
                    sentence[0] != '\0' ? sentence : "The calibration's file is being accessed.");
}

// Takes the place; false if it does not become free in time.
bool take(std::uint64_t until_ns) noexcept {
  for (;;) {
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    if (phase_of(seen) == free || !is_own(seen)) {
      if (word.compare_exchange_strong(seen, own(taken), std::memory_order_acquire)) return true;
    } else if (phase_of(seen) == stalled || !wait_while(seen, until_ns)) {
      return false;
    }
  }
}

// Takes the place and has this work done; its result is put into `wanted`. Or timed_out.
Error have_done(Work* wanted, std::uint64_t patience_ns) noexcept {
  const std::uint64_t until_ns = now_ns() + patience_ns;
  if (!take(until_ns)) return no_answer();
  file_work = *wanted;
  began_ns.store(now_ns(), std::memory_order_relaxed);
  word.store(own(running), std::memory_order_relaxed);
  if (const int failed = begin_access(until_ns); failed != 0) {
    let_go();
    return make_error(Code::no_memory, -failed,
                      "No thread to access the calibration's file (%s); raise the limit on "
                      "processes (ulimit -u).",
                      describe_errno(-failed));
  }
  for (;;) {
    std::uint32_t seen = word.load(std::memory_order_acquire);
    if (phase_of(seen) == done) break;
    if (!wait_while(seen, until_ns) &&
        word.compare_exchange_strong(seen, own(stalled), std::memory_order_acq_rel)) {
      return no_answer();
    }
  }
  *wanted = file_work;
  let_go();
  return wanted->error;
}

}  // namespace

Expected<Measured> load_patiently(std::uint64_t patience_ns) noexcept {
  Work load;
  if (const Error error = have_done(&load, patience_ns); error.code != Code::ok) return error;
  return load.measured;
}

Error store_patiently(const Measured& measured, std::uint64_t patience_ns) noexcept {
  Work store;
  store.kind = Kind::store;
  store.measured = measured;
  return have_done(&store, patience_ns);
}

CpuTimes cpu_times_patiently(std::uint64_t patience_ns) noexcept {
  Work look;
  look.kind = Kind::look;
  have_done(&look, patience_ns);
  return look.times;
}

bool files_stall() noexcept {
  return word.load(std::memory_order_relaxed) == own(stalled);
}

void describe_stall(char* sentence, std::size_t size) noexcept {
  sentence[0] = '\0';
  const std::uint32_t seen = word.load(std::memory_order_acquire);
  const bool late = phase_of(seen) == stalled ||
                    (phase_of(seen) == running &&
                     now_ns() - began_ns.load(std::memory_order_relaxed) > ordinary_ns);
  if (!late || !is_own(seen)) return;
  char name[path_bytes];
  read_place(name);
  std::snprintf(sentence, size,
                "Haul's thread haul-files waits for the file system of %.70s; meanwhile the "
                "default figures hold (HAUL_TUNE_CACHE names another place).",
                name);
}

}  // namespace haul::tune
