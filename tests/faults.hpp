// How many minor page faults this process has had.
#pragma once

#include <sys/resource.h>

inline long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}
