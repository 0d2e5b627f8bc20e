// The module haul._atomic, on libhaul-atomic.
#include <nanobind/nanobind.h>

#include "python/src/atomic/queue_lock.hpp"
#include "python/src/atomic/remote_words.hpp"
#include "python/src/errors/failure.hpp"

NB_MODULE(_atomic, module) {
  using namespace haul_python;
  nanobind::set_leak_warnings(false);
  use_errors();
  define_remote_words(module);
  define_queue_lock(module);
}
