// What the tests of the engine cuda share: a program with a model of the CUDA driver.
#pragma once

#include <gtest/gtest.h>
#include <haul/haul.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/cuda_model.hpp"
#include "support.hpp"

// The end of a child that with_cuda() has run: in a test's own function, since it may skip it.
#define SKIP_OR_GOOD(call)                                                                \
  do {                                                                                    \
    const int status_ = (call);                                                           \
    if (status_ == skip_status) GTEST_SKIP() << "haul was built without the engine cuda"; \
    EXPECT_EQ(status_, 0);                                                                \
  } while (false)

namespace e2e {

using haul_model::CudaModel;

inline haul_engine_info cuda() {
  return engine_now("cuda");
}

// Memory of the model's GPU, beside memory of the process that should hold the same.
class GpuBuffer {
 public:
  GpuBuffer(CudaModel& model, std::size_t bytes, int device = 0)
      : model_(model), bytes_(bytes), at_(model.allocate(bytes, device)) {
    CHILD_CHECK(at_ != 0);
  }
  ~GpuBuffer() { model_.release(at_); }
  GpuBuffer(const GpuBuffer&) = delete;
  GpuBuffer& operator=(const GpuBuffer&) = delete;

  // As the program knows it: no CPU may touch it.
  unsigned char* at() const { return reinterpret_cast<unsigned char*>(at_); }
  std::size_t size() const { return bytes_; }
  // The bytes behind the GPU's back.
  unsigned char* bytes() const { return model_.peek(at_); }
  void fill(std::uint64_t seed) const {
    for (std::size_t i = 0; i < bytes_; ++i) bytes_of_gpu()[i] = Buffer::expected(seed, i);
  }

 private:
  unsigned char* bytes_of_gpu() const {
    static thread_local const GpuBuffer* of = nullptr;
    static thread_local unsigned char* real = nullptr;
    if (of != this) real = model_.peek(at_), of = this;
    return real;
  }

  CudaModel& model_;
  std::size_t bytes_;
  std::uintptr_t at_;
};

// A request between this process and a GPU, or within it.
inline haul_request to_gpu(haul_space space, void* dst, const void* src, std::size_t bytes) {
  haul_request request = haul_request_copy(nullptr, src, bytes);
  request.dst.space = space;
  request.dst.address = dst;
  return request;
}
inline haul_request from_gpu(haul_space space, void* dst, void* src, std::size_t bytes) {
  haul_request request = haul_request_copy(dst, nullptr, bytes);
  request.src.space = space;
  request.src.address = src;
  return request;
}
inline haul_request within_gpu(haul_space dst_space, void* dst, haul_space src_space, void* src,
                               std::size_t bytes) {
  haul_request request = haul_request_copy(nullptr, nullptr, bytes);
  request.dst.space = dst_space;
  request.dst.address = dst;
  request.src.space = src_space;
  request.src.address = src;
  return request;
}

inline haul_ticket submitted(const haul_request& request) {
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}
inline int result_of(const haul_request& request) {
  haul_ticket ticket{};
  const int taken = haul_submit(&request, 1, &ticket);
  return taken == 1 ? haul_wait(ticket) : taken;
}

inline std::string cuda_knob(const char* library, const char* words) {
  return std::string("library=") + library + " " + words;
}

// In a child: body(model, space) with the first GPU of a model open. The child's end, skip_status
// where haul was built without the plug-in. `prepare(control)` comes before the driver starts.
template <class Prepare, class Body>
int with_cuda(const char* mover, const char* words, Prepare prepare, Body body,
              unsigned seconds = 120) {
  return run_child(
      [&] {
        always_mover();
        setenv("HAUL_PLAN_MOVER", mover, 1);
        setenv("HAUL_MOVER_PATIENCE_MS", "10000", 0);
        setenv("HAUL_ENGINE_CUDA", cuda_knob(CUDA_MODEL_LIBRARY, words).c_str(), 1);
        auto& model = *new CudaModel(CUDA_MODEL_LIBRARY);
        prepare(model.control());
        haul_space space = 0;
        const int opened = haul_space_open_device("cuda", &space);
        if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
        CHILD_EQUAL(opened, 0);
        // What the first copies registered and counted is past.
        CHILD_EQUAL(model.control().registered_now, 0);
        CHILD_EQUAL(model.control().blocking, 0);
        body(model, space);
        CHILD_EQUAL(model.control().mistakes, 0);
        return 0;
      },
      seconds);
}

}  // namespace e2e
