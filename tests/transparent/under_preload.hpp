// A test program that runs itself again under libhaul-mem.so, as `haul run --transparent --report`
// would, so that it needs no environment: neither from CTest nor by hand. And what the library has
// counted in it, without which a test would pass where nothing was taken over.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "preload/mem/sites.hpp"

namespace transparent {

using haul::preload::NotShared;
using haul::preload::Table;
using haul::preload::Way;

inline constexpr const char* report_variable = "HAUL_TRANSPARENT_REPORT";
inline constexpr const char* plan_variable = "HAUL_TRANSPARENT_PLAN";

// Is this the plan that the program runs under?
inline bool plan_is(const char* plan) {
  return std::string(std::getenv(plan_variable)) == plan;
}

inline bool under_preload() {
  const char* preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::string(preload).find("libhaul-mem") != std::string::npos;
}

inline void remove_directory(const std::string& path) {
  DIR* directory = opendir(path.c_str());
  while (directory != nullptr) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    unlink((path + "/" + entry->d_name).c_str());
  }
  if (directory != nullptr) closedir(directory);
  rmdir(path.c_str());
}

// Runs this program once more, under the library and with the plan. Its exit status; 1 if a signal
// ended it.
inline int run_under(const char* plan, char** argv) {
  const char* temporary = std::getenv("TMPDIR");
  std::string directory = std::string(temporary != nullptr ? temporary : "/tmp") + "/haul-t.XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    std::perror("mkdtemp");
    return 1;
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_PRELOAD", HAUL_MEM_LIBRARY, 1);
    setenv(plan_variable, plan, 1);
    setenv(report_variable, directory.c_str(), 1);
    // Every call whose distances are asked for, not one in some.
    setenv("HAUL_TRANSPARENT_SAMPLE", "1", 1);
    // Calibration would take a core, and other tests' processes may hold the lease of the mover's.
    setenv("HAUL_MEMORY_HUGE", "on", 1);  // however busy the machine is
    setenv("HAUL_TUNE_BACKGROUND", "off", 1);
    setenv("HAUL_TUNE_CACHE", "/proc/nonexistent/haul-transparent", 1);
    setenv("HAUL_MOVER_LEASE", "off", 1);
    execv("/proc/self/exe", argv);
    std::perror("execv");
    _exit(1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  remove_directory(directory);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr, "under plan %s: ended by signal %d\n", plan, WTERMSIG(status));
  return 1;
}

// The table of a process that has left one; nullptr if it has not. Children by fork() count in
// their parent's.
inline const Table* table_of(pid_t process) {
  const char* path = std::getenv(report_variable);
  DIR* directory = path != nullptr ? opendir(path) : nullptr;
  if (directory == nullptr) return nullptr;
  const std::string begin = std::to_string(process) + ".";
  void* found = MAP_FAILED;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.compare(0, begin.size(), begin) != 0) continue;
    const int file = open((std::string(path) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    found = mmap(nullptr, sizeof(Table), PROT_READ, MAP_SHARED, file, 0);
    close(file);
  }
  closedir(directory);
  return found == MAP_FAILED ? nullptr : static_cast<const Table*>(found);
}

struct Counted {
  std::uint64_t calls = 0, bytes = 0;
};

// What was carried out so far, in the given way or in any (-1).
inline Counted counted(const Table* table, int way = -1) {
  Counted sum;
  if (table == nullptr) return sum;
  for (const haul::preload::Site& site : table->sites)
    for (const auto& by_size : site.kinds)
      for (const auto& kind : by_size)
        for (int i = 0; i < static_cast<int>(haul::preload::way_count); ++i)
          if (way < 0 || way == i) {
            sum.calls += kind.ways[i].calls.load();
            sum.bytes += kind.ways[i].bytes.load();
          }
  return sum;
}

}  // namespace transparent
