#include "python/src/atomic/queue_lock.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <haul/atomic.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "python/src/errors/failure.hpp"
#include "python/src/errors/without_gil.hpp"

namespace haul_python {
namespace {

using Clock = std::chrono::steady_clock;
// After so long without the GIL, a wait looks whether a signal has come.
constexpr std::chrono::milliseconds slice{50};
constexpr std::chrono::microseconds first_nap{10};
constexpr std::chrono::microseconds longest_nap{500};

// What a member needs; its words lie in a window of its own node.
struct Membership {
  haul::atomic::node node;
  haul::atomic::window own;
  std::optional<haul::atomic::lock> lock;

  explicit Membership(const std::string& responder)
      : node(responder), own(node, HAUL_ATOMIC_LOCK_MEMBER_BYTES) {}
};

// A member belongs to one thread at a time: others are refused.
class LockObject {
 public:
  LockObject(const std::string& home, unsigned members, double lease, const std::string& responder,
             std::size_t offset)
      : membership_(std::make_unique<Membership>(responder)) {
    haul_atomic_lock_place place{};
    place.window = haul::atomic::parse(home);
    place.offset = offset;
    haul_atomic_lock_options options{};
    options.rank = HAUL_ATOMIC_LOCK_ANY_RANK;
    options.count = members;
    options.home = &place;
    options.lease_ns = static_cast<std::uint64_t>(lease * 1e9);
    membership_->lock.emplace(membership_->node, membership_->own, options);
  }
  ~LockObject() { leave(); }

  std::uint64_t acquire(std::optional<double> timeout) {
    const Turn turn(*this);
    if (timeout && std::isnan(*timeout))
      raise(PyExc_ValueError, "the timeout is not a number; give seconds, or None");
    const std::uint64_t limit_ns =
        timeout ? static_cast<std::uint64_t>(std::clamp(*timeout, 0.0, 1e9) * 1e9) : UINT64_MAX;
    const auto begun = Clock::now();
    haul::check(haul_atomic_lock_start(raw(), HAUL_ATOMIC_LOCK_ACQUIRE, limit_ns));
    for (;;) {
      std::uint64_t token = 0;
      const int result = without_gil([&] { return look_for(slice, &token); });
      if (result == 1) return token;
      if (result == HAUL_ETIMEDOUT && timeout &&
          Clock::now() - begun >= std::chrono::nanoseconds(limit_ns))
        raise(PyExc_TimeoutError, haul_last_error());
      haul::check(result);
      if (PyErr_CheckSignals() != 0) {
        give_up();
        throw nb::python_error();
      }
    }
  }

  void release() {
    const Turn turn(*this);
    without_gil([&] { membership_->lock->release(); });
  }
  void renew() {
    const Turn turn(*this);
    without_gil([&] { membership_->lock->renew(); });
  }
  double remaining() {
    const Turn turn(*this);
    return std::chrono::duration<double>(membership_->lock->remaining()).count();
  }

  nb::dict stats() {
    const Turn turn(*this);
    haul_atomic_lock_counts counts{};
    haul::check(haul_atomic_lock_stats(raw(), &counts));
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
    const Turn turn(*this);
    leave();
  }

 private:
  class Turn {
   public:
    explicit Turn(LockObject& lock) : taken_(lock.used_, std::try_to_lock) {
      if (!taken_) {
        raise(PyExc_RuntimeError,
              "another thread is using this lock; give each thread a haul.Lock of its own");
      }
      if (!lock.membership_) raise(PyExc_ValueError, "this lock is closed; open another");
    }

   private:
    std::unique_lock<std::mutex> taken_;
  };

  haul_atomic_lock* raw() const { return membership_->lock->raw(); }

  // The result of the action that was started; 0 where it goes on after `time`.
  int look_for(std::chrono::nanoseconds time, std::uint64_t* token) const {
    const auto end = Clock::now() + time;
    for (std::chrono::nanoseconds nap = first_nap;;
         nap = std::min<std::chrono::nanoseconds>(longest_nap, nap + nap / 4)) {
      const int result = haul_atomic_lock_test(raw(), token);
      if (result != 0 || Clock::now() >= end) return result;
      std::this_thread::sleep_for(nap);
    }
  }

  // Ends an acquire that is under way, and the lock with it where it came in that moment.
  void give_up() const {
    without_gil([&] {
      haul_atomic_lock_cancel(raw());
      int result = 0;
      while (result == 0) result = look_for(slice, nullptr);
      if (result == 1) haul_atomic_lock_release(raw());
    });
  }

  // Takes round trips, or up to the node's timeout where the home does not answer.
  void leave() {
    without_gil([&] { membership_.reset(); });
  }

  std::unique_ptr<Membership> membership_;
  std::mutex used_;
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
           "take a lease and a half\n"
           "longer. Raises haul.Error where the home cannot be reached (ETIMEDOUT after the node's "
           "5 "
           "s, EPEER, EPERM) or\n"
           "the lock is held by this object (EINVAL), and what a signal's handler raises: it then "
           "leaves the queue.")
      .def("release", &LockObject::release,
           "Releases it, to whoever has waited longest. Raises haul.Error: ESTALE where the lease "
           "was over and\n"
           "another member has the lock by now, EINVAL where it is not held.")
      .def("renew", &LockObject::renew,
           "Begins a new lease; the token stays. Raises haul.Error as release() does.")
      .def_prop_ro("remaining", &LockObject::remaining,
                   "For how many seconds nobody else can have the lock; 0 where it is not held.")
      .def("stats", &LockObject::stats, "What this member has seen of the lock: a dict of counts.")
      .def("close", &LockObject::close,
           "Leaves the lock, releasing it where it is held. A few round trips, or 5 s where the "
           "home "
           "does not answer.\n"
           "Any use afterwards raises ValueError.")
      .def(
          "__enter__", [](LockObject& self) { return self.acquire(std::nullopt); },
          nb::sig("def __enter__(self) -> int"))
      .def(
          "__exit__", [](LockObject& self, nb::args) { self.release(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace haul_python
