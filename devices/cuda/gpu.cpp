#include "devices/cuda/gpu.hpp"

#include <cstdio>

#include "devices/cuda/results.hpp"

namespace haul::cuda {
namespace {

// What the driver knows of an address.
struct PointerFacts {
  unsigned kind = 0, is_managed = 0;
  int ordinal = -1;
  Pointer begin = 0;
  std::size_t bytes = 0;

  // Zeros where it knows nothing.
  Result look(const Driver& driver, Pointer at) {
    int attributes[] = {attribute_memory_type, attribute_is_managed, attribute_device_ordinal,
                        attribute_range_start, attribute_range_size};
    void* data[] = {&kind, &is_managed, &ordinal, &begin, &bytes};
    return driver.pointer_attributes(5, attributes, data, at);
  }
  bool is_of_gpu(int number) const {
    return is_managed != 0 || (kind == device_memory && ordinal == number);
  }
  bool pins(std::uintptr_t at, std::size_t count) const {
    return kind == host_memory && is_managed == 0 && begin <= at && at - begin <= bytes &&
           count <= bytes - (at - begin);
  }
};

}  // namespace

bool Gpu::open(const Driver& driver, int ordinal, char* sentence, std::size_t sentence_bytes) {
  driver_ = &driver;
  ordinal_ = ordinal;
  Result result = driver.device_get(&device_, ordinal);
  if (result == success) result = driver.device_name(name_, sizeof name_, device_);
  if (result == success) result = driver.primary_retain(&context_, device_);
  if (result == success) {
    const InContext current(driver, context_);
    result = current.result();
    for (const GpuWay way : {GpuWay::in, GpuWay::out, GpuWay::within})
      if (result == success) result = stream(way).open(driver, way);
  }
  if (result == success) return true;
  char what[40];
  std::snprintf(what, sizeof what, "GPU %d cannot be opened", ordinal);
  describe_result(result, what, sentence, sentence_bytes);
  return false;
}

void Gpu::close() {
  if (context_ == nullptr) return;
  {
    const InContext current(*driver_, context_);
    if (current.result() == success)
      for (GpuStream& stream : streams_) stream.free_slots();
  }
  driver_->primary_release(device_);
}

bool Gpu::set_slots(unsigned count, std::size_t bytes) {
  const InContext current(*driver_, context_);
  if (current.result() != success) return false;
  if (stream(GpuWay::in).set_slots(count, bytes) == success &&
      stream(GpuWay::out).set_slots(count, bytes) == success)
    return true;
  for (GpuStream& stream : streams_) stream.free_slots();
  return false;
}

void Gpu::limit_slots(unsigned most) {
  for (GpuStream& stream : streams_) stream.limit_slots(most);
}

Code Gpu::examine(Pointer device, std::uintptr_t host, std::size_t bytes, Pointer* pinned) {
  PointerFacts first, last, of_host;
  const InContext current(*driver_, context_);
  Result result = current.result();
  // (Both ends: memory of several mappings has no range of its own.)
  if (result == success) result = first.look(*driver_, device);
  if (result == success) result = last.look(*driver_, device + bytes - 1);
  if (result == success && pinned != nullptr) {
    result = of_host.look(*driver_, host);
    *pinned = of_host.pins(host, bytes) ? of_host.begin : 0;
  }
  if (result == invalid_value) return Code::fault;
  if (result != success) {
    die(result);
    return Code::io;
  }
  return first.is_of_gpu(ordinal_) && last.is_of_gpu(ordinal_) ? Code::ok : Code::fault;
}

void Gpu::die(Result result) {
  if (is_dead()) return;
  char what[96];
  std::snprintf(what, sizeof what, "GPU %d failed", ordinal_);
  describe_result(result, what, why_, sizeof why_);
  for (GpuStream& stream : streams_) stream.die();
  // Release: pairs with is_dead(), whose caller reads why.
  dead_.store(true, std::memory_order_release);
}

void Gpu::take(GpuWay way, const GpuCopy& copy) {
  const InContext current(*driver_, context_);
  if (current.result() != success) die(current.result());
  if (const Result taken = stream(way).take(copy); taken != success) die(taken);
}

std::size_t Gpu::poll(Finished* finished, std::size_t most) {
  if (is_idle()) return 0;
  if (is_dead()) {
    for (GpuStream& stream : streams_) stream.advance();
  } else {
    const InContext current(*driver_, context_);
    Result result = current.result();
    for (GpuStream& stream : streams_)
      if (result == success) result = stream.advance();
    if (result != success) die(result);
  }
  std::size_t count = 0;
  for (GpuStream& stream : streams_) count += stream.finish(finished + count, most - count);
  return count;
}

bool Gpu::take_staging(StagingCopy* copy) {
  return stream(GpuWay::out).take_staging(copy) || stream(GpuWay::in).take_staging(copy);
}

bool Gpu::stop() {
  bool stopped = true;
  for (GpuStream& stream : streams_) stopped = stream.stop() && stopped;
  return stopped;
}

}  // namespace haul::cuda
