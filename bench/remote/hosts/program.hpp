// Another program that takes part in a measurement, in a namespace and on one core. It dies with
// this process.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "bench/remote/hosts/namespaces.hpp"

namespace haul::bench {

class Program {
 public:
  // words[0] is looked up in PATH. The program's output is discarded. Throws CommandFailure if no
  // process can be started; a program that does not exist ends with status 127.
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
