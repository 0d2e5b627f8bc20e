#include "python/src/atomic/queue_lock.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <haul/atomic.hpp>
#include <mutex>
#include <optional>

#include "python/src/atomic/remote_words.hpp"
#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::nanoseconds slice = std::chrono::milliseconds(50);

// A member has its words in a window of its own node, and belongs to one thread at a time: others
// are refused.
class LockObject {
 public:
  LockObject(const std::string& home, unsigned members, double lease, const std::string& responder,
             std::size_t offset)
      : node_(responder), own_(node_, HAUL_ATOMIC_LOCK_MEMBER_BYTES) {
    haul_atomic_lock_place place{};
    place.window = haul::atomic::parse(home);
    place.offset = offset;
    haul_atomic_lock_options options{};
    options.rank = HAUL_ATOMIC_LOCK_ANY_RANK;
    options.count = members;
    options.home = &place;
    options.lease_ns = static_cast<std::uint64_t>(lease * 1e9);
    lock_.emplace(node_, own_, options);
  }

  std::uint64_t acquire(std::optional<double> timeout) {
    Turn turn(*this);
    const auto begun = Clock::now();
    for (;;) {
      const std::chrono::duration<double> used = Clock::now() - begun;
      const auto left = std::chrono::duration<double>(timeout.value_or(1e9)) - used;
      const auto now = std::min(std::chrono::duration<double>(slice), left);
      const auto token = without_gil([&] {
        return lock_->try_acquire_for(std::chrono::duration_cast<std::chrono::nanoseconds>(now));
      });
      if (token) return *token;
      let_signals_raise();
      if (timeout && left <= slice) {
        raise(PyExc_TimeoutError,
              "the lock was not free in time, or its home does not answer; try again");
      }
    }
  }

  void release() {
    Turn turn(*this);
    without_gil([&] { lock_->release(); });
  }
  void renew() {
    Turn turn(*this);
    without_gil([&] { lock_->renew(); });
  }
  double remaining() const { return std::chrono::duration<double>(lock_->remaining()).count(); }

  nb::dict stats() const {
    haul_atomic_lock_counts counts{};
    haul::check(haul_atomic_lock_stats(lock_->raw(), &counts));
    nb::dict named;
    named["acquired"] = counts.acquired;
    named["handed"] = counts.handed;
    named["taken_over"] = counts.taken_over;
    named["requeued"] = counts.requeued;
    named["forced"] = counts.forced;
    named["skipped"] = counts.skipped;
    return named;
  }

  void close() {
    Turn turn(*this);
    without_gil([&] { lock_.reset(); });
    closed_ = true;
  }

 private:
  class Turn {
   public:
    explicit Turn(LockObject& lock) : taken_(lock.used_, std::try_to_lock) {
      if (!taken_) {
        raise(PyExc_RuntimeError,
              "another thread is using this lock; give each thread a haul.Lock of its own");
      }
      if (lock.closed_) raise(PyExc_ValueError, "this lock is closed; open another");
    }

   private:
    std::unique_lock<std::mutex> taken_;
  };

  haul::atomic::node node_;
  haul::atomic::window own_;
  std::optional<haul::atomic::lock> lock_;
  std::mutex used_;
  bool closed_ = false;
};

}  // namespace

void define_queue_lock(nb::module_& module) {
  module.def(
      "directory_nbytes",
      [](unsigned members) { return HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(members); },
      nb::arg("members"),
      "How many bytes a window needs that is the home of a lock with so many members.");
  nb::class_<LockObject>(
      module, "Lock",
      "A queue lock between processes on any hosts: first come, first served, with leases.\n\n"
      "home: the name of a window that is the lock, of haul.atomic.directory_nbytes(members) "
      "zeroed bytes from\n"
      "`offset` on. members: how many may have it open at once; all give the same. lease: seconds "
      "after which a\n"
      "holder that gives no sign loses it. responder: how this member is reached "
      "(haul.atomic.Node).\n"
      "`with lock as token:` acquires and releases. The token is greater than every earlier "
      "holder's: pass it to\n"
      "the operations that the lock guards. An object belongs to one thread at a time "
      "(RuntimeError).\n"
      "Raises haul.Error; opening takes a few round trips.")
      .def(
          "__init__",
          [](LockObject* self, const std::string& home, unsigned members, double lease,
             const std::string& responder, std::size_t offset) {
            if (!(lease >= 0.01 && lease <= 3600))
              raise(PyExc_ValueError, "a lease is 0.01 to 3600 seconds long");
            without_gil([&] { new (self) LockObject(home, members, lease, responder, offset); });
          },
          nb::arg("home"), nb::kw_only(), nb::arg("members") = 64, nb::arg("lease") = 1.0,
          nb::arg("responder") = "block", nb::arg("offset") = 0)
      .def("acquire", &LockObject::acquire, nb::arg("timeout") = nb::none(),
           "Waits for the lock, without the GIL, and returns the fencing token.\n\n"
           "timeout: seconds, or None for no limit; TimeoutError after that. A broken queue may "
           "take a lease longer.")
      .def("release", &LockObject::release,
           "Releases it, to whoever has waited longest. Raises haul.Error: ESTALE where the lease "
           "was over and\n"
           "another member has the lock by now, EINVAL where it is not held.")
      .def("renew", &LockObject::renew,
           "Begins a new lease; the token stays. Raises haul.Error as release() does.")
      .def_prop_ro("remaining", &LockObject::remaining,
                   "For how many seconds nobody else can have the lock; 0 where it is not held.")
      .def("stats", &LockObject::stats, "What this member has seen of the lock: a dict of counts.")
      .def("close", &LockObject::close, "Leaves the lock, releasing it where it is held.")
      .def(
          "__enter__", [](LockObject& self) { return self.acquire(std::nullopt); },
          nb::sig("def __enter__(self) -> int"))
      .def(
          "__exit__", [](LockObject& self, nb::args) { self.release(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace haul_python
