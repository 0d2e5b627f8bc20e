// The thread beside a running service: it does what the one that copies must not wait for.
//
// It serves the page of figures (--metrics), answers systemd's watchdog, and opens the log again at
// SIGHUP. What it tells of the service it asks for over the service's socket, as `haul top` does:
// so a watchdog that is answered means that the service answers its clients, and nothing is shared
// between the two threads. It runs at the lowest priority.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/os/descriptor.hpp"
#include "cli/service/page/page_listener.hpp"
#include "cli/service/service_log.hpp"

namespace haul::cli {

class Companion {
 public:
  struct Duties {
    std::string socket_path;    // of the service
    std::string page_address;   // "": no page
    ServiceLog* log = nullptr;  // opened again if it has a file
    std::uint64_t watchdog_ns = 0;
  };
  // Listens, and starts the thread if there is anything to do. SIGHUP is blocked in the calling
  // thread from then on if a log is to be opened again. Throws tools::CommandFailure.
  explicit Companion(Duties duties);
  // Ends the thread, which may take as long as an answer of the service's (2 s).
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  // Where the page is, for people; "" if there is none.
  std::string page_name() const { return listener_ ? listener_->name() : ""; }
  // From now on it asks the service nothing.
  void let_go();

 private:
  static void* body(void* self);
  void work();
  std::string page();
  std::string fresh_page() const;
  void answer_watchdog();

  Duties duties_;
  std::unique_ptr<PageListener> listener_;
  os::Descriptor stop_, hangup_;
  pthread_t thread_{};
  bool running_ = false;
  std::atomic<bool> leaving_{false};
  std::string page_, page_trouble_;  // the page of a moment ago, or why there was none
  std::chrono::steady_clock::time_point page_until_{}, watchdog_next_{};
};

}  // namespace haul::cli
