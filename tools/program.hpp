// Starting other programs, and waiting for their ends. All that haul's command starts goes this
// way.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace haul::tools {

// Variables that a program gets beside those of this process, or in their place.
using Environment = std::vector<std::pair<std::string, std::string>>;

// The file that `name` stands for: itself if it has a slash, else the first executable of that name
// in `path`, a list as in PATH. "" if there is none.
std::string find_program(const std::string& name, const std::string& path);
// The same in the PATH of this process.
std::string find_program(const std::string& name);

// A program as execve() takes it. It is made before a fork, so that the child allocates nothing.
class Image {
 public:
  // command[0] is looked up in the PATH that the program will have.
  Image(std::vector<std::string> command, const Environment& changes);
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // Replaces this process. Returns only if that fails: the errno. Async-signal-safe.
  int execute();
  // Starts a process whose standard input is empty and whose outputs are the descriptors `out` and
  // `err`; `nowhere` discards an output, `inherited` leaves it as it is here. The calling thread is
  // unpinned before, since a process inherits the CPUs of who starts it. The pid, or -1 with errno.
  static constexpr int nowhere = -1, inherited = -2;
  pid_t spawn(int out, int err);

 private:
  std::vector<std::string> command_, environment_;
  std::vector<char*> arguments_, variables_;
  std::string file_;
};

// A pipe whose ends exec closes, above the standard streams even where those are closed. Throws
// CommandFailure if there is no descriptor left.
class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_read_end() { close_end(0); }
  void close_write_end() { close_end(1); }

 private:
  void close_end(int end);
  int ends_[2] = {-1, -1};
};

// Starts a program that shares this process's terminal and streams; it gets SIGTERM should this
// process die. Its pid; throws CommandFailure if it cannot be started. `signals`: what it has
// blocked (nullptr: what the caller has).
pid_t start_program(const std::vector<std::string>& command, const Environment& environment,
                    const sigset_t* signals = nullptr);

// fork(); throws CommandFailure where no process can be made.
pid_t fork_process();

// Has the child not ended yet? (It is not reaped.)
bool is_running(pid_t child);
// Waits for the child's end, and says what waitpid() says.
int reap(pid_t child);
void kill_and_reap(pid_t child);

// What waitpid() says as a shell does: the exit status, or 128 + the signal.
int shell_status(int wait_status);

}  // namespace haul::tools
