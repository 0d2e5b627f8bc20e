#include "api/convert.hpp"
#include "api/startup.hpp"
#include "memory/arena.hpp"

namespace haul::api {

extern "C" HAUL_API void* haul_alloc(std::size_t bytes) {
  start_up();
  Error error;
  void* memory = arena_allocate(bytes, &error);
  if (memory == nullptr) fail(error);
  return memory;
}

extern "C" HAUL_API int haul_free(void* memory) {
  if (memory == nullptr) return 0;
  Error error;
  return arena_free(memory, &error) == Code::ok ? 0 : fail(error);
}

}  // namespace haul::api
