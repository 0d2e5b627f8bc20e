// A library whose constructor starts a thread that makes large calls, and waits for it.
#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" {
int slow_start_copied = 0;
}

namespace {

constexpr std::size_t bytes = 4 * 1024 * 1024;

void* copy(void*) {
  auto* const from = static_cast<unsigned char*>(std::malloc(bytes));
  auto* const to = static_cast<unsigned char*>(std::malloc(bytes));
  if (from == nullptr || to == nullptr) return nullptr;
  std::memset(from, 3, bytes);
  for (int turn = 0; turn < 4; ++turn) std::memcpy(to, from, bytes);
  slow_start_copied = to[0] == 3 && to[bytes - 1] == 3;
  std::free(from);
  std::free(to);
  return nullptr;
}

[[gnu::constructor]] void start() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, copy, nullptr) == 0) pthread_join(thread, nullptr);
}

}  // namespace
