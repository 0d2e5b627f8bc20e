#include "tools/relay.hpp"

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace haul::tools {
namespace {

volatile std::sig_atomic_t program = 0;

// The program gets a terminal's signals itself; a second one would tell it to hurry.
void pass_on(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  if (program > 0 && info->si_code <= 0) kill(static_cast<pid_t>(program), signal);
  errno = saved;
}

}  // namespace

void begin_relay(pid_t pid) {
  program = pid;
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    sigaction(signal, &action, nullptr);
}

void end_relay() {
  program = 0;
}

}  // namespace haul::tools
