// Passing this process's signals on to a program that it runs for its user.
#pragma once

#include <sys/types.h>

namespace haul::tools {

// From here on SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that somebody sends to this
// process go to the program instead; those of a terminal reach it by themselves. One program at a
// time, for the rest of this process's life or until end_relay().
void begin_relay(pid_t program);
// The program has ended: its number may be another's soon.
void end_relay();

}  // namespace haul::tools
