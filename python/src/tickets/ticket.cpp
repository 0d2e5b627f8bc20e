#include "python/src/tickets/ticket.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "python/src/errors/failure.hpp"
#include "python/src/errors/without_gil.hpp"
#include "python/src/tickets/abandoned.hpp"
#include "python/src/tickets/completions.hpp"

namespace haul_python {
namespace {

using Clock = std::chrono::steady_clock;

// Shorter copies end before another thread could make use of the GIL.
constexpr std::size_t keeps_gil_below_bytes = 256 << 10;
constexpr std::uint64_t short_wait_ns = 50'000;
// After so long without the GIL, a wait looks whether a signal has come.
constexpr std::uint64_t slice_ns = 20'000'000;

}  // namespace

int RequestsInFlight::test() const {
  int worst = haul_test(first);
  for (const haul_ticket& other : others) {
    if (worst == 0) return 0;
    const int result = haul_test(other);
    if (result != 1) worst = result == 0 || worst == 1 ? result : worst;
  }
  return worst;
}

TicketObject::TicketObject(RequestsInFlight requests, std::size_t bytes, std::uint64_t completion)
    : bytes_(bytes),
      completion_(completion),
      queue_(queue_of_this_thread()),
      requests_(std::move(requests)),
      result_(0) {}

TicketObject::~TicketObject() {
  if (!settle()) abandon(std::move(requests_));
}

std::optional<int> TicketObject::settle() {
  if (const int known = result_.load(std::memory_order_acquire); known != 0) return known;
  const int result = requests_.test();
  if (result == 0) return std::nullopt;
  std::vector<Export> memory;
  {
    nb::ft_lock_guard guard(mutex_);
    if (result_.load(std::memory_order_relaxed) == 0) {
      memory.swap(requests_.memory);
      result_.store(result, std::memory_order_release);
    }
  }
  return result;
}

bool TicketObject::done() {
  return settle().has_value();
}

void TicketObject::report() {
  const int result = result_.load(std::memory_order_relaxed);
  if (result >= 0) return;
  haul_wait(requests_.first);  // for its sentence
  for (const haul_ticket& other : requests_.others) haul_wait(other);
  throw haul::error(result);
}

// Round after round until one is true or the request has ended, which may be badly.
template <class Round>
void TicketObject::wait_in_rounds(std::optional<double> timeout, const char* late, Round round) {
  if (timeout && std::isnan(*timeout))
    raise(PyExc_ValueError, "the timeout is not a number; give seconds, or None");
  const auto begun = Clock::now();
  double left = timeout.value_or(1e9);
  while (!settle()) {
    if (round(static_cast<std::uint64_t>(std::clamp(left, 0.0, 1e9) * 1e9))) return;
    if (settle()) break;
    let_signals_raise();
    if (!timeout) continue;
    left = *timeout - std::chrono::duration<double>(Clock::now() - begun).count();
    if (left <= 0) raise(PyExc_TimeoutError, late);
  }
  report();
}

void TicketObject::wait(std::optional<double> timeout) {
  const auto round = [this](std::uint64_t left_ns) {
    const haul_ticket* pending = &requests_.first;
    for (const haul_ticket& other : requests_.others) {
      if (haul_test(*pending) == 0) break;
      pending = &other;
    }
    if (bytes_ < keeps_gil_below_bytes &&
        haul_wait_for(*pending, std::min(left_ns, short_wait_ns)) != HAUL_ETIMEDOUT) {
      return false;
    }
    const WithoutGil released;
    haul_wait_for(*pending, std::min(left_ns, slice_ns));
    return false;
  };
  wait_in_rounds(
      timeout, "the copy has not ended in time; it goes on, so wait again before using its memory",
      round);
}

void TicketObject::refuse_range(std::size_t offset, std::size_t length) const {
  raise(PyExc_ValueError, "bytes " + std::to_string(offset) + " to " +
                              std::to_string(offset + length) +
                              " are not all of this request, which has " + std::to_string(bytes_) +
                              "; give a range within it");
}

void TicketObject::wait_range(std::size_t offset, std::size_t length,
                              std::optional<double> timeout) {
  if (offset > bytes_ || length > bytes_ - offset) refuse_range(offset, length);
  if (!requests_.others.empty()) return wait(timeout);
  const auto round = [this, offset, length](std::uint64_t left_ns) {
    const haul_ticket request = requests_.first;
    if (haul_test_range(request, offset, length) == 1) return true;
    if (length < keeps_gil_below_bytes &&
        haul_wait_range_for(request, offset, length, std::min(left_ns, short_wait_ns)) == 0) {
      return true;
    }
    const WithoutGil released;
    return haul_wait_range_for(request, offset, length, std::min(left_ns, slice_ns)) == 0;
  };
  wait_in_rounds(timeout, "these bytes are not there in time; the copy goes on, so wait again",
                 round);
}

bool TicketObject::range_done(std::size_t offset, std::size_t length) {
  if (offset > bytes_ || length > bytes_ - offset) refuse_range(offset, length);
  if (settle()) {
    report();
    return true;
  }
  return requests_.others.empty() && haul_test_range(requests_.first, offset, length) == 1;
}

std::uint64_t TicketObject::completion() const {
  return queue_ == queue_of_this_thread() ? completion_ : 0;
}

std::size_t TicketObject::progress() {
  if (settle() == 1) return bytes_;
  std::size_t good = 0;
  haul_progress(requests_.first, &good);
  return std::min(good, bytes_);
}

void define_ticket(nb::module_& module) {
  nb::class_<TicketObject>(
      module, "Ticket", nb::is_weak_referenceable(),
      "One copy or fill that is under way; made by haul.copy() and haul.fill().\n\n"
      "It keeps both sides' memory alive until the bytes are there, also where "
      "nobody holds the ticket\n"
      "any more. `await ticket` waits in asyncio, trio and anyio; `with ticket:` "
      "waits at the block's end.\n"
      "Any thread may use it.")
      .def("done", &TicketObject::done,
           "Whether it has ended, well or not. Never blocks; wait() then says how it ended.")
      .def("wait", &TicketObject::wait, nb::arg("timeout") = nb::none(),
           "Waits until every byte is there, and helps to copy; without the GIL where that may "
           "take long.\n\n"
           "timeout: seconds, or None for no limit. Raises TimeoutError after that (the copy goes "
           "on), haul.Error\n"
           "where the copy failed, and what a signal's handler raises (KeyboardInterrupt; the copy "
           "goes on).")
      .def("wait_range", &TicketObject::wait_range, nb::arg("offset"), nb::arg("length"),
           nb::arg("timeout") = nb::none(),
           "Waits until bytes [offset, offset + length) of the destination are there; they are "
           "moved first.\n\n"
           "offset, length: bytes, within the copy; else ValueError. timeout, and what is raised: "
           "as wait().")
      .def("range_done", &TicketObject::range_done, nb::arg("offset"), nb::arg("length"),
           "Whether bytes [offset, offset + length) are there. Never blocks; raises as "
           "wait_range() does.")
      .def("progress", &TicketObject::progress,
           "How many bytes from the front are there now, also of a copy that failed. Never blocks.")
      .def_prop_ro("nbytes", &TicketObject::bytes, "The copy's length in bytes.")
      .def_prop_ro("_completion", &TicketObject::completion)
      .def(
          "__enter__", [](nb::object self) { return self; },
          nb::sig("def __enter__(self) -> Ticket"))
      .def(
          "__exit__", [](TicketObject& self, nb::args) { self.wait(std::nullopt); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def(
          "__await__",
          [](nb::object self) {
            // (A ticket that is done needs no event loop, and no import.)
            nb::object wait = nb::module_::import_("haul._await").attr("until_done");
            return wait(self).attr("__await__")();
          },
          nb::sig("def __await__(self) -> collections.abc.Generator[typing.Any, None, Ticket]"))
      .def("__repr__", [](TicketObject& self) {
        return "<haul.Ticket: " + std::to_string(self.progress()) + " of " +
               std::to_string(self.bytes()) + " bytes" + (self.done() ? ">" : ", under way>");
      });
}

}  // namespace haul_python
