#include "api/convert.hpp"
#include "api/startup.hpp"
#include "base/private.hpp"
#include "memory/arena.hpp"

extern "C" void* haul_private_alloc(std::size_t bytes, std::size_t alignment) {
  haul::api::start_up();
  haul::Error error;
  void* memory = haul::arena_allocate(bytes, alignment, &error);
  if (memory == nullptr) haul::api::fail(error);
  return memory;
}

namespace haul::api {

extern "C" HAUL_API void* haul_alloc(std::size_t bytes) {
  constexpr std::size_t page_bytes = 4096;
  return haul_private_alloc(bytes, page_bytes);
}

extern "C" HAUL_API int haul_free(void* memory) {
  if (memory == nullptr) return 0;
  Error error;
  return arena_free(memory, &error) == Code::ok ? 0 : fail(error);
}

}  // namespace haul::api
