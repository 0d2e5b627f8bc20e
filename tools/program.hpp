// Starts other programs and waits for their ends. The haul command starts every program this way.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace haul::tools {

// Variables that a program gets in addition to this process's, or instead of them.
using Environment = std::vector<std::pair<std::string, std::string>>;

// The file that `name` stands for: itself if it contains a slash, else the first executable file of
// that name in `path`, a list like PATH. "" if there is none.
std::string find_program(const std::string& name, const std::string& path);
// The same, in this process's PATH.
std::string find_program(const std::string& name);

// A program as execve() takes it. Make it before a fork, so that the child allocates nothing.
class Image {
 public:
  // command[0] is looked up in the PATH that the program will have.
  Image(std::vector<std::string> command, const Environment& changes);
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  // Replaces this process. Returns the errno, and only on failure. Async-signal-safe.
  int execute();
  // Starts a process with empty standard input, whose outputs are the descriptors `out` and `err`;
  // `nowhere` discards an output, `inherited` shares this process's. Unpins the calling thread
  // first, because a process inherits its starter's CPUs. Returns the pid, or -1 with errno set.
  static constexpr int nowhere = -1, inherited = -2;
  pid_t spawn(int out, int err);

 private:
  std::vector<std::string> command_, environment_;
  std::vector<char*> arguments_, variables_;
  std::string file_;
};

// A pipe whose ends are closed by exec and lie above the standard streams, even if those are
// closed. Throws CommandFailure if no descriptor is left.
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

// Starts a program that shares this process's terminal and streams; it gets SIGTERM if this process
// dies. Returns its pid; throws CommandFailure if it cannot be started. `signals`: the signals that
// it has blocked (null: those that the caller has).
pid_t start_program(const std::vector<std::string>& command, const Environment& environment,
                    const sigset_t* signals = nullptr);

// fork(); throws CommandFailure where no process can be made.
pid_t fork_process();

// Whether the child has not ended yet. It is not reaped.
bool is_running(pid_t child);
// Waits for the child's end and returns its status as waitpid() gives it.
int reap(pid_t child);
void kill_and_reap(pid_t child);

// Turns waitpid()'s status into a shell's: the exit status, or 128 + the signal.
int shell_status(int wait_status);

}  // namespace haul::tools
