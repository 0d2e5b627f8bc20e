#include "atomic/fabric/runs.hpp"

#include <new>

namespace haul::atomics {

Run* Runs::take(FabricEndpoint& endpoint) noexcept {
  if (free_ == nullptr) {
    auto* chunk = new (std::nothrow) Chunk;
    if (chunk == nullptr) return nullptr;
    if (endpoint.has_local_registrations() &&
        endpoint.enlist(chunk, sizeof *chunk, FI_READ | FI_WRITE, &chunk->registration) != 0) {
      delete chunk;
      return nullptr;
    }
    chunk->next = chunks_;
    chunks_ = chunk;
    for (Run& run : chunk->runs) {
      if (chunk->registration != nullptr) run.descriptor = fi_mr_desc(chunk->registration);
      run.next = free_;
      free_ = &run;
    }
  }
  Run* run = free_;
  free_ = run->next;
  run->next = nullptr;
  run->in_use = true;
  run->at = 0;
  run->posted_ns = 0;
  return run;
}

void Runs::give_back(Run* run) noexcept {
  run->connection = nullptr;
  run->in_use = false;
  run->next = free_;
  free_ = run;
}

bool Runs::is_late(const FabricConnection* connection, std::uint64_t ns) const noexcept {
  for (const Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) {
    for (const Run& run : chunk->runs) {
      if (run.in_use && run.connection == connection && run.posted_ns != 0 && run.posted_ns < ns) {
        return true;
      }
    }
  }
  return false;
}

void Runs::forget(const FabricConnection* connection) noexcept {
  for (Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) {
    for (Run& run : chunk->runs) {
      if (run.in_use && run.connection == connection) run.connection = nullptr;
    }
  }
}

void Runs::close_registrations() noexcept {
  for (Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) {
    if (chunk->registration != nullptr) fi_close(&chunk->registration->fid);
    chunk->registration = nullptr;
  }
}

void Runs::close() noexcept {
  while (chunks_ != nullptr) {
    Chunk* chunk = chunks_;
    chunks_ = chunk->next;
    delete chunk;
  }
  free_ = nullptr;
}

}  // namespace haul::atomics
