// Restores the caller's errno: the library never uses errno as an output.
#pragma once

#include <cerrno>

namespace haul {

class KeepErrno {
 public:
  KeepErrno() noexcept : saved_(errno) {}
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = saved_; }

 private:
  int saved_;
};

}  // namespace haul
