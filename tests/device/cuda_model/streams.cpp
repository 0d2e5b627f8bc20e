#include "device/cuda_model/streams.hpp"

#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <thread>

#include "device/cuda_model/world.hpp"

namespace haul_model {

// An event is recorded `wanted` times, and so many of these have come.
struct ModelEvent {
  std::atomic<std::uint64_t> wanted{0}, come{0};
};

struct ModelWork {
  unsigned char* dst = nullptr;
  const unsigned char* src = nullptr;
  std::size_t bytes = 0;
  std::uintptr_t host = 0;  // the side in the process's memory
  ModelEvent* event = nullptr;
};

class ModelStream {
 public:
  explicit ModelStream(ModelContext* context) : context_(context) {
    std::thread([this] { run(); }).detach();
  }
  bool is_alive() const { return context_->alive; }
  void add(const ModelWork& work) {
    const std::lock_guard<std::mutex> locked(lock_);
    queue_.push_back(work);
    changed_.notify_all();
  }
  // Until it has nothing left.
  void drain() {
    std::unique_lock<std::mutex> locked(lock_);
    changed_.wait(locked, [this] { return queue_.empty() || world().control.stuck; });
  }
  bool uses(std::uintptr_t begin) {
    const ModelRange* range = nullptr;
    const std::lock_guard<std::mutex> all(world().lock);
    for (const ModelRange& one : world().ranges)
      if (!one.is_device && one.begin == begin) range = &one;
    const std::lock_guard<std::mutex> locked(lock_);
    for (const ModelWork& work : queue_)
      if (range != nullptr && work.bytes != 0 && range->holds(work.host, 1)) return true;
    return false;
  }

 private:
  void run() {
    const CudaControl& control = world().control;
    for (;;) {
      ModelWork work;
      {
        std::unique_lock<std::mutex> locked(lock_);
        changed_.wait(locked, [this] { return !queue_.empty(); });
        work = queue_.front();
      }
      if (const unsigned late = control.late_us; late != 0 && work.bytes != 0) usleep(late);
      while (control.stuck) usleep(500);
      if (work.event != nullptr) ++work.event->come;
      if (work.bytes != 0 && !control.lost && is_alive()) {
        std::memcpy(work.dst, work.src, work.bytes);
        if (control.spoils) ++work.dst[work.bytes / 2];
      }
      const std::lock_guard<std::mutex> locked(lock_);
      queue_.pop_front();
      changed_.notify_all();
    }
  }

  ModelContext* context_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<ModelWork> queue_;  // its front is being executed
};

namespace {

std::mutex streams_lock;
std::list<ModelStream>& streams() {
  static auto& all = *new std::list<ModelStream>;
  return all;
}

// Bytes of a GPU: where they really are.
unsigned char* real(Address at, std::size_t bytes, int device) {
  const std::lock_guard<std::mutex> locked(world().lock);
  const ModelRange* const range = world().find(at, bytes);
  if (range == nullptr || !range->is_device || range->device != device) {
    ++world().control.astray;
    return nullptr;
  }
  return range->real + (at - range->begin);
}

bool is_pinned(std::uintptr_t at, std::size_t bytes) {
  const std::lock_guard<std::mutex> locked(world().lock);
  const ModelRange* const range = world().find(at, bytes);
  return range != nullptr && !range->is_device;
}

int start(ModelStream* stream, const ModelWork& work) {
  if (!stream->is_alive()) return context_is_destroyed;
  stream->add(work);
  if (work.host == 0 || is_pinned(work.host, work.bytes)) return ok;
  ++world().control.blocking;
  stream->drain();
  return ok;
}

}  // namespace

void drain_streams() {
  const std::lock_guard<std::mutex> locked(streams_lock);
  for (ModelStream& stream : streams()) stream.drain();
}

bool is_used_by_streams(std::uintptr_t begin) {
  const std::lock_guard<std::mutex> locked(streams_lock);
  for (ModelStream& stream : streams())
    if (stream.uses(begin)) return true;
  return false;
}

}  // namespace haul_model

using namespace haul_model;

#define MODEL_API extern "C" [[gnu::visibility("default")]]

MODEL_API int cuStreamCreate(ModelStream** stream, unsigned flags) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuStreamCreate", &current); result != ok) return result;
  if (flags != 1) ++world().control.mistakes;  // haul's must not wait for the default stream
  const std::lock_guard<std::mutex> locked(streams_lock);
  *stream = &streams().emplace_back(current);
  return ok;
}

MODEL_API int cuEventCreate(ModelEvent** event, unsigned) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuEventCreate", &current); result != ok) return result;
  *event = new ModelEvent;
  return ok;
}

MODEL_API int cuEventRecord(ModelEvent* event, ModelStream* stream) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuEventRecord", &current); result != ok) return result;
  if (!stream->is_alive()) return context_is_destroyed;
  ++event->wanted;
  ModelWork work;
  work.event = event;
  stream->add(work);
  return ok;
}

MODEL_API int cuEventQuery(ModelEvent* event) {
  ModelContext* current = nullptr;
  ++world().control.queries;
  if (const int result = enter("cuEventQuery", &current); result != ok) return result;
  return event->come == event->wanted ? ok : not_ready;
}

MODEL_API int cuMemcpyHtoDAsync_v2(Address dst, const void* src, std::size_t bytes,
                                   ModelStream* stream) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemcpyHtoDAsync", &current); result != ok) return result;
  unsigned char* const to = real(dst, bytes, current->device);
  if (to == nullptr) return invalid_value;
  ++world().control.in;
  return start(stream, {to, static_cast<const unsigned char*>(src), bytes,
                        reinterpret_cast<std::uintptr_t>(src), nullptr});
}

MODEL_API int cuMemcpyDtoHAsync_v2(void* dst, Address src, std::size_t bytes, ModelStream* stream) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemcpyDtoHAsync", &current); result != ok) return result;
  const unsigned char* const from = real(src, bytes, current->device);
  if (from == nullptr) return invalid_value;
  ++world().control.out;
  return start(stream, {static_cast<unsigned char*>(dst), from, bytes,
                        reinterpret_cast<std::uintptr_t>(dst), nullptr});
}

MODEL_API int cuMemcpyDtoDAsync_v2(Address dst, Address src, std::size_t bytes,
                                   ModelStream* stream) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemcpyDtoDAsync", &current); result != ok) return result;
  unsigned char *const to = real(dst, bytes, current->device), *const from = real(src, bytes,
                                                                                  current->device);
  if (to == nullptr || from == nullptr) return invalid_value;
  ++world().control.within;
  return start(stream, {to, from, bytes, 0, nullptr});
}

MODEL_API int cuMemcpyPeerAsync(Address dst, ModelContext* dst_context, Address src,
                                ModelContext* src_context, std::size_t bytes, ModelStream* stream) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemcpyPeerAsync", &current); result != ok) return result;
  unsigned char *const to = real(dst, bytes, dst_context->device), *const from =
                                                                       real(src, bytes,
                                                                            src_context->device);
  if (to == nullptr || from == nullptr) return invalid_value;
  ++world().control.between;
  return start(stream, {to, from, bytes, 0, nullptr});
}
