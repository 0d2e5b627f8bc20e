#include "atomic/node/signals.hpp"

#include <dirent.h>
#include <signal.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/os.hpp"
#include "base/uncancelled.hpp"

namespace haul::atomics {

namespace {

// Does anybody but haul's threads, which are named so, live in this process?
bool is_of_haul_alone() noexcept {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return false;
  bool alone = true;
  while (const dirent* one = readdir(tasks)) {
    if (std::isdigit(static_cast<unsigned char>(one->d_name[0])) == 0) continue;
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", one->d_name);
    if (os::read_file(path, line, sizeof line) <= 0) continue;  // it has ended
    // "TID (NAME) STATE ..."; a name may have parentheses.
    const char* const name = std::strchr(line, '(');
    const char* const name_end = std::strrchr(line, ')');
    if (name == nullptr || name_end == nullptr || name_end[1] == '\0') continue;
    const char state = name_end[2];
    const bool has_ended = state == 'Z' || state == 'X';
    const bool is_main = std::strtol(one->d_name, nullptr, 10) == os::process_id();
    const bool is_ours = !is_main && std::strncmp(name + 1, "haul-", 5) == 0;
    alone = alone && (has_ended || is_ours);
  }
  closedir(tasks);
  return alone;
}

}  // namespace

void take_signals_of_nobody() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  sigset_t waiting, blocked;
  sigemptyset(&waiting);
  if (sigpending(&waiting) != 0 || sigisemptyset(&waiting) != 0 || !is_of_haul_alone()) return;
  pthread_sigmask(SIG_UNBLOCK, &waiting, &blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace haul::atomics
