// A cgroup of a test's own, with limits, for children of the test to join.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

// Where the kernel or the rights give none, the object is false. Its destructor waits up to five
// seconds for members that are ending.
class Cgroup {
 public:
  struct Limit {
    const char* file;
    std::string value;
  };

  // The limits as the controller's own hierarchy (version 1) and as the unified one (version 2)
  // name them.
  Cgroup(const std::string& controller, const std::vector<Limit>& first,
         const std::vector<Limit>& second) {
    const std::string name = "/haul-test-" + controller + "-" + std::to_string(getpid());
    const std::string root = "/sys/fs/cgroup";
    if (!make(root + "/" + controller + name, first)) make(root + name, second);
  }
  ~Cgroup() {
    for (int turn = 0; *this && rmdir(path_.c_str()) != 0 && turn < 1000; ++turn) usleep(5000);
  }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  explicit operator bool() const { return !path_.empty(); }

  // The calling process, all threads of it that there are and will be.
  bool join() const { return put(path_ + "/cgroup.procs", std::to_string(getpid())); }

  // The number in one of the group's files; -1 where there is none.
  long long number(const char* file) const {
    std::FILE* const open = std::fopen((path_ + "/" + file).c_str(), "r");
    long long value = -1;
    if (open == nullptr) return value;
    if (std::fscanf(open, "%lld", &value) != 1) value = -1;
    std::fclose(open);
    return value;
  }

 private:
  static bool put(const std::string& path, const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return false;
    const bool written = std::fputs(text.c_str(), file) >= 0;
    return std::fclose(file) == 0 && written;
  }

  bool make(const std::string& path, const std::vector<Limit>& limits) {
    if (mkdir(path.c_str(), 0755) != 0) return false;
    for (const Limit& limit : limits) {
      if (put(path + "/" + limit.file, limit.value)) continue;
      rmdir(path.c_str());
      return false;
    }
    path_ = path;
    return true;
  }

  std::string path_;
};
