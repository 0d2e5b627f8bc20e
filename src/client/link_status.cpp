#include "client/link_status.hpp"

#include <pthread.h>

#include <cstdio>

#include "base/log.hpp"
#include "base/sync/quiet_lock.hpp"

namespace haul {
namespace {

constinit pthread_mutex_t status_mutex = PTHREAD_MUTEX_INITIALIZER;
constinit int service_pid = -1;
constinit char sentence[sizeof(ServiceStatus::sentence)] = "No service has been looked for yet.";

void set_service_pid(int pid) noexcept {
  const QuietLock lock(status_mutex);
  service_pid = pid;
}

}  // namespace

void say_of_link(const Error& said) noexcept {
  {
    const QuietLock lock(status_mutex);
    std::snprintf(sentence, sizeof sentence, "%s", said.sentence);
  }
  log(LogLevel::info, "%s", said.sentence);
}

void say_attached(const wire::Welcome& welcome) noexcept {
  set_service_pid(welcome.pid);
  if (welcome.reaches_memory != 0) {
    say_of_link(
        make_error(Code::ok, 0, "Attached to the node's service, process %d.", welcome.pid));
    return;
  }
  say_of_link(make_error(Code::ok, 0,
                         "Attached to the node's service, process %d; it reaches memory of "
                         "haul_alloc() only: %.*s",
                         welcome.pid, static_cast<int>(sizeof welcome.why) - 1, welcome.why));
}

void say_detached() noexcept {
  set_service_pid(-1);
}

void read_link_status(ServiceStatus* status) noexcept {
  const QuietLock lock(status_mutex);
  status->pid = service_pid;
  std::snprintf(status->sentence, sizeof status->sentence, "%s", sentence);
}

void forget_link_status() noexcept {
  status_mutex = PTHREAD_MUTEX_INITIALIZER;
  service_pid = -1;
}

}  // namespace haul
