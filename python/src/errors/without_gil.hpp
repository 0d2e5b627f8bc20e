// Lets go of the GIL while haul waits or copies.
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace haul_python {

// Without the GIL for its lifetime; made and destroyed by a thread that has it otherwise.
//
// Until 3.13, CPython ends a thread that comes back to an interpreter that has ended, such as a
// daemon thread's, by pthread_exit(), which would unwind through destructors that let nothing pass.
// Such a thread sleeps here until the process is gone, as it does in CPython itself from 3.14 on.
class WithoutGil {
 public:
  // `now` false: keeps it.
  explicit WithoutGil(bool now = true) : state_(now ? PyEval_SaveThread() : nullptr) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    if (state_ == nullptr) return;
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) pause();
    }
  }

 private:
  PyThreadState* state_;
};

// The result of a call that may wait, made without the GIL.
template <class Call>
auto without_gil(Call call) {
  const WithoutGil released;
  return call();
}

}  // namespace haul_python
