// Another program that serves a measurement, in a namespace and on a core. It dies with this one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bench/remote/hosts/namespaces.hpp"

namespace haul::bench {

class Program {
 public:
  // words[0] is looked up in PATH. Its output goes nowhere. Throws Failure if there is no process
  // to be had; a program that is not there ends with status 127.
  Program(const Namespace& where, int cpu, std::vector<std::string> words);
  ~Program();  // kills it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  bool running() const;

 private:
  pid_t pid_;
};

}  // namespace haul::bench
