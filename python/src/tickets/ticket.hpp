// haul.Ticket: one or more requests of haul's that are under way, with both sides' memory.
#pragma once

#include <haul/haul.h>
#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "python/src/sides/export.hpp"

namespace haul_python {

// Requests, and what they read and write. Whoever is done with them lets go of the memory.
struct RequestsInFlight {
  haul_ticket first{0, 0};
  std::vector<haul_ticket> others;
  std::vector<Export> memory;

  // 1: all have ended well; 0: some are pending; negative: one has failed and none is pending.
  int test() const;
};

// Threads: any may call (a free-threaded build has a lock in each ticket). All need the GIL.
class TicketObject {
 public:
  // Ended already.
  explicit TicketObject(std::size_t bytes) : bytes_(bytes) {}
  TicketObject(RequestsInFlight requests, std::size_t bytes, std::uint64_t completion);
  TicketObject(const TicketObject&) = delete;
  // Where the requests are under way still, their memory is kept until they have ended
  // (abandoned.hpp).
  ~TicketObject();

  // True once the requests have ended, well or not.
  bool done();
  // Waits, without the GIL where that may be long; handlers of signals run, and may end the wait by
  // raising. Raises TimeoutError after `timeout` seconds, haul.Error where a request failed.
  void wait(std::optional<double> timeout);
  void wait_range(std::size_t offset, std::size_t length, std::optional<double> timeout);
  bool range_done(std::size_t offset, std::size_t length);
  std::size_t progress();
  std::size_t bytes() const { return bytes_; }
  // The number by which the calling thread's completion queue names these requests; 0: it does not
  // (completions.hpp).
  std::uint64_t completion() const;

 private:
  // The result, once it is known: then the memory is nobody's any more.
  std::optional<int> settle();
  template <class Round>
  void wait_in_rounds(std::optional<double> timeout, const char* late, Round round);
  void report();
  [[noreturn]] void refuse_range(std::size_t offset, std::size_t length) const;

  const std::size_t bytes_;
  const std::uint64_t completion_ = 0;
  const std::uint64_t queue_ = 0;
  RequestsInFlight requests_;
  // 1 once all have ended well, or how the first failed; 0 before.
  std::atomic<int> result_{1};
  nb::ft_mutex mutex_;
};

// Defines haul.Ticket in the module.
void define_ticket(nb::module_& module);

}  // namespace haul_python
