// Running other programs whose output is the user's. (bench/mpi_command runs those whose output is
// wanted.)
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "bench/processes.hpp"

namespace haul::cli {

using bench::Environment;

// The file that `name` stands for: itself if it has a slash, else the first executable of that name
// in `path`, a list as in PATH. "" if there is none.
std::string find_program(const std::string& name, const std::string& path);
// The same in the PATH of this process.
std::string find_program(const std::string& name);

// Replaces this process. Returns only if that fails: the errno.
int become(const std::vector<std::string>& command, const Environment& environment);

// Starts a program that shares this process's terminal and streams; it gets SIGTERM should this
// process die. Its pid; throws bench::Failure if it cannot be started. `signals`: what it has
// blocked (nullptr: what the caller has).
pid_t start_program(const std::vector<std::string>& command, const Environment& environment,
                    const sigset_t* signals = nullptr);

// What waitpid() says as a shell does: the exit status, or 128 + the signal.
int shell_status(int wait_status);

}  // namespace haul::cli
