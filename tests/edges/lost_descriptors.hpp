// For tests that take haul's descriptors away while its threads look at them: ThreadSanitizer calls
// the same number, closed by one thread and used by another, a data race. Here it is what is tried.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" __attribute__((used)) inline const char* __tsan_default_suppressions() {
  return "race:^close$\nrace:^dup2$\nrace:haul::os::file_id\n";
}
#endif
