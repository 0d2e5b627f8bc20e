// What becomes of copies when the CUDA driver or the GPU fails: each call with each result, a GPU
// that is lost, stuck, reset or without memory. No request is lost or pretends, no CPU takes over,
// and a sentence says what happened.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "cuda_support.hpp"
#include "device/cuda_model.hpp"

namespace {

using namespace e2e;
using haul_model::CudaControl;

constexpr const char* small_slots = "slots=2 slot_bytes=64K";
constexpr std::size_t bytes = 700'001;

// All that the driver documents and haul has a sentence for, and one that nobody knows.
constexpr int results[] = {1,   2,   3,   4,   34,  46,  100, 101, 102, 201,
                           214, 220, 304, 400, 600, 700, 702, 709, 712, 713,
                           719, 800, 801, 802, 803, 804, 805, 910, 999, 12345};
// Each call meets a sixth of them, each of them several calls; all meet with HAUL_TEST_LONG=1.
bool meet(std::size_t call, std::size_t result) {
  return (call + result) % 6 == 0 || std::getenv("HAUL_TEST_LONG") != nullptr;
}
// Calls that copies make once the GPU is open, and those that open it.
constexpr const char* copying_calls[] = {
    "cuCtxPushCurrent",  "cuCtxPopCurrent",    "cuEventRecord",     "cuEventQuery",
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",  "cuMemcpyDtoDAsync", "cuPointerGetAttributes",
    "cuMemHostRegister", "cuMemHostUnregister"};
constexpr const char* opening_calls[] = {"cuInit",
                                         "cuDeviceGetCount",
                                         "cuDeviceGet",
                                         "cuDeviceGetName",
                                         "cuDevicePrimaryCtxRetain",
                                         "cuStreamCreate",
                                         "cuEventCreate",
                                         "cuMemAlloc",
                                         "cuMemHostAlloc"};

// The first copies are short where the GPU has little memory.
void open_quickly(CudaControl& control) {
  control.memory_limit = 300'000;
}

void fail_from_now_on(CudaModel& model, const char* call, int result, int skipped) {
  model.control().result = result;
  model.control().skipped = skipped;
  model.control().failing = call;
}

bool is_failure(int code) {
  return code == HAUL_EIO || code == HAUL_EFAULT || code == HAUL_ENOMEM || code == HAUL_ENOTSUP;
}

// A request that ends somehow, in time; if well, `same` compares bytes that must be equal.
int ends(const haul_request& request, const unsigned char* dst, const unsigned char* src) {
  haul_ticket ticket{};
  const int taken = haul_submit(&request, 1, &ticket);
  if (taken != 1) {
    CHILD_CHECK(is_failure(taken));
    CHILD_CHECK(std::strlen(haul_last_error()) > 20);
    return taken;
  }
  const int code = haul_wait_for(ticket, 20'000'000'000);
  CHILD_CHECK(code == 0 || is_failure(code));
  std::size_t good = bytes;
  if (code != 0) CHILD_EQUAL(haul_progress(ticket, &good), code);
  CHILD_CHECK(good <= bytes);
  CHILD_EQUAL(std::memcmp(dst, src, good), 0);
  return code;
}

class CudaFault : public testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  int child(Body body, unsigned seconds = 60) {
    return with_cuda(GetParam(), small_slots, open_quickly, body, seconds);
  }
};
INSTANTIATE_TEST_SUITE_P(By, CudaFault, testing::Values("thread", "caller"));

// Several copies in all directions while a call fails.
void copy_amid_failures(CudaModel& model, haul_space space, const char* call, int result,
                        int skipped) {
  model.control().memory_limit = SIZE_MAX;
  const GpuBuffer gpu(model, bytes), other(model, bytes);
  const Buffer from(bytes), to(bytes);
  from.fill(1);
  other.fill(2);
  gpu.fill(3);
  fail_from_now_on(model, call, result, skipped);
  for (int turn = 0; turn < 3; ++turn) {
    ends(to_gpu(space, gpu.at(), from.data(), bytes), gpu.bytes(), from.data());
    ends(from_gpu(space, to.data(), other.at(), bytes), to.data(), other.bytes());
    ends(within_gpu(space, gpu.at(), space, other.at(), bytes), gpu.bytes(), other.bytes());
  }
  const bool failed = model.control().failures != 0;
  model.control().failing = nullptr;
  if (cuda().available != 0) {
    const int code = result_of(to_gpu(space, gpu.at(), from.data(), bytes));
    if (code == 0) CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), bytes), 0);
    // (After a failure that sticks all fails, which is seen by the next copy at the latest.)
    CHILD_CHECK(code == 0 || model.control().sticky);
  } else {
    CHILD_CHECK(failed);
    CHILD_CHECK(std::strstr(cuda().status, "CUDA_ERROR_") != nullptr ||
                std::strstr(cuda().status, "result 12345") != nullptr);
    haul_ticket ticket{};
    const haul_request request = to_gpu(space, gpu.at(), from.data(), bytes);
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), HAUL_EIO);
    CHILD_CHECK(std::strstr(haul_last_error(), "does not work any more") != nullptr);
  }
  copy_works(mib, 5);
}

TEST_P(CudaFault, EachCallWithEachResult) {
  for (std::size_t number = 0; number < std::size(copying_calls); ++number) {
    const char* const call = copying_calls[number];
    for (std::size_t which = 0; which < std::size(results); ++which) {
      if (!meet(number, which)) continue;
      const int result = results[which];
      // (Not ready is an answer of cuEventQuery, and not ended within the patience is another
      // test.)
      if (result == 600 && std::strcmp(call, "cuEventQuery") == 0) continue;
      const int skipped = result % 3 * 4;
      SCOPED_TRACE(testing::Message() << call << " " << result << " after " << skipped);
      const int status = child([=](CudaModel& model, haul_space space) {
        model.control().sticky = result >= 700;
        copy_amid_failures(model, space, call, result, skipped);
      });
      if (status == skip_status) GTEST_SKIP() << "haul was built without the engine cuda";
      ASSERT_EQ(status, 0);
    }
  }
}

// What fails while a GPU is opened is told, and nothing is left of it: once all is well it opens.
TEST(CudaOpening, EachCallWithEachResult) {
  for (std::size_t number = 0; number < std::size(opening_calls); ++number) {
    const char* const call = opening_calls[number];
    const bool starts =
        std::strcmp(call, "cuInit") == 0 || std::strcmp(call, "cuDeviceGetCount") == 0;
    for (std::size_t which = 0; which < std::size(results); ++which) {
      if (!meet(number, which)) continue;
      const int result = results[which];
      SCOPED_TRACE(testing::Message() << call << " " << result);
      const int status = run_child([=] {
        always_mover();
        setenv("HAUL_ENGINE_CUDA", cuda_knob(CUDA_MODEL_LIBRARY, small_slots).c_str(), 1);
        auto& model = *new CudaModel(CUDA_MODEL_LIBRARY);
        open_quickly(model.control());
        fail_from_now_on(model, call, result, 0);
        haul_space space = 0;
        const int code = haul_space_open_device("cuda", &space);
        if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
        CHILD_EQUAL(code, starts ? HAUL_ENOTSUP : HAUL_EIO);
        CHILD_CHECK(std::strstr(haul_last_error(), "CUDA_ERROR_") != nullptr ||
                    std::strstr(haul_last_error(), "result 12345") != nullptr ||
                    std::strstr(haul_last_error(), "no pinned memory") != nullptr);
        model.control().failing = nullptr;
        if (starts) return 0;  // the driver is started once
        CHILD_EQUAL(model.control().contexts, 0);
        CHILD_EQUAL(haul_space_open_device("cuda", &space), 0);
        const GpuBuffer gpu(model, 100'000);
        const Buffer from(100'000);
        from.fill(4);
        CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), 100'000)), 0);
        CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), 100'000), 0);
        CHILD_EQUAL(model.control().mistakes, 0);
        return 0;
      });
      if (status == skip_status) GTEST_SKIP() << "haul was built without the engine cuda";
      ASSERT_EQ(status, 0);
    }
  }
}

TEST(CudaOpening, AGpuWhoseBytesAreWrongIsRefused) {
  SKIP_OR_GOOD(run_child([] {
    quiet_environment();
    setenv("HAUL_ENGINE_CUDA", cuda_knob(CUDA_MODEL_LIBRARY, small_slots).c_str(), 1);
    auto& model = *new CudaModel(CUDA_MODEL_LIBRARY);
    model.control().spoils = true;
    haul_space space = 0;
    const int code = haul_space_open_device("cuda", &space);
    if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
    CHILD_EQUAL(code, HAUL_EIO);
    CHILD_CHECK(std::strstr(haul_last_error(), "wrong bytes") != nullptr);
    return 0;
  }));
}

// Its memory is full; there is little pinned memory, and then none.
TEST(CudaOpening, WithoutMemory) {
  SKIP_OR_GOOD(run_child([] {
    quiet_environment();
    setenv("HAUL_ENGINE_CUDA", cuda_knob(CUDA_MODEL_LIBRARY, "").c_str(), 1);
    auto& model = *new CudaModel(CUDA_MODEL_LIBRARY);
    haul_space space = 0;
    model.control().memory_limit = 0;
    const int code = haul_space_open_device("cuda", &space);
    if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
    CHILD_EQUAL(code, HAUL_EIO);
    CHILD_CHECK(std::strstr(haul_last_error(), "CUDA_ERROR_OUT_OF_MEMORY") != nullptr);
    model.control().memory_limit = SIZE_MAX;
    model.control().pinned_limit = 1000;
    CHILD_EQUAL(haul_space_open_device("cuda", &space), HAUL_EIO);
    CHILD_CHECK(std::strstr(haul_last_error(), "no pinned memory for its slots") != nullptr);
    model.control().pinned_limit = 300'000;
    CHILD_EQUAL(haul_space_open_device("cuda", &space), 0);
    CHILD_CHECK(std::strstr(cuda().status, "through 2 slots of 64 KiB") != nullptr);
    return 0;
  }));
}

TEST_P(CudaFault, AGpuThatFallsOffTheBus) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    model.control().memory_limit = SIZE_MAX;
    model.control().late_us = 2000;
    const GpuBuffer gpu(model, bytes), other(model, bytes);
    const Buffer from(bytes), to(bytes);
    from.fill(1);
    other.fill(2);
    const haul_ticket out = submitted(to_gpu(space, gpu.at(), from.data(), bytes));
    const haul_ticket back = submitted(from_gpu(space, to.data(), other.at(), bytes));
    sleep_ms(3);
    model.control().lost = true;
    for (const haul_ticket& ticket : {out, back}) {
      CHILD_EQUAL(haul_wait_for(ticket, 20'000'000'000), HAUL_EIO);
      std::size_t good = 0;
      CHILD_EQUAL(haul_progress(ticket, &good), HAUL_EIO);
      CHILD_CHECK(good < bytes);
    }
    CHILD_EQUAL(cuda().available, 0);
    CHILD_CHECK(std::strstr(cuda().status, "CUDA_ERROR_UNKNOWN") != nullptr);
    copy_works(mib, 1);
    model.control().lost = false;  // (so that the buffers can be given back)
  }));
}

// cudaDeviceReset() destroys the context that haul shares with the program.
TEST_P(CudaFault, AProgramThatResetsTheGpu) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    model.control().memory_limit = SIZE_MAX;
    const GpuBuffer gpu(model, bytes);
    const Buffer from(bytes);
    CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), bytes)), 0);
    CHILD_EQUAL(model.reset(), 0);
    CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), bytes)), HAUL_EIO);
    CHILD_EQUAL(cuda().available, 0);
    CHILD_CHECK(std::strstr(cuda().status, "cudaDeviceReset()") != nullptr);
  }));
}

// One of two is dead: the other goes on.
TEST_P(CudaFault, AnotherGpuGoesOn) {
  SKIP_OR_GOOD(with_cuda(
      GetParam(), small_slots, [](CudaControl& control) { control.devices = 2; },
      [](CudaModel& model, haul_space first) {
        haul_space second = 0;
        CHILD_EQUAL(haul_space_open_device("cuda:1", &second), 0);
        const GpuBuffer one(model, bytes), other(model, bytes, 1);
        const Buffer from(bytes);
        from.fill(8);
        CHILD_EQUAL(model.reset(0), 0);
        CHILD_EQUAL(result_of(to_gpu(first, one.at(), from.data(), bytes)), HAUL_EIO);
        CHILD_EQUAL(result_of(to_gpu(first, one.at(), from.data(), bytes)), HAUL_EIO);
        CHILD_EQUAL(cuda().available, 1);
        CHILD_EQUAL(result_of(to_gpu(second, other.at(), from.data(), bytes)), 0);
        CHILD_EQUAL(std::memcmp(other.bytes(), from.data(), bytes), 0);
        CHILD_EQUAL(haul_space_open_device("cuda:0", &first), HAUL_EIO);
        CHILD_EQUAL(model.reset(1), 0);
        CHILD_EQUAL(result_of(to_gpu(second, other.at(), from.data(), bytes)), HAUL_EIO);
        CHILD_EQUAL(result_of(to_gpu(second, other.at(), from.data(), bytes)), HAUL_EIO);
        CHILD_EQUAL(cuda().available, 0);
      }));
}

// It cannot be stopped, so what it has is waited for, and it gets nothing more.
TEST_P(CudaFault, AGpuThatIsStuckIsWaitedFor) {
  setenv("HAUL_MOVER_PATIENCE_MS", "400", 1);
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    model.control().memory_limit = SIZE_MAX;
    const GpuBuffer gpu(model, bytes), other(model, bytes);
    const Buffer from(bytes), to(bytes);
    model.control().stuck = true;
    const haul_ticket out = submitted(to_gpu(space, gpu.at(), from.data(), bytes));
    const haul_ticket back = submitted(from_gpu(space, to.data(), other.at(), bytes));
    for (int turn = 0; turn < 5000 && cuda().available != 0; ++turn) {
      CHILD_EQUAL(haul_test(out), 0);
      CHILD_EQUAL(haul_test(back), 0);
      sleep_ms(1);
    }
    CHILD_EQUAL(cuda().available, 0);
    copy_works(mib, 2);
    haul_ticket ticket{};
    const haul_request request = to_gpu(space, gpu.at(), from.data(), bytes);
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), HAUL_EIO);
    CHILD_EQUAL(haul_test(out), 0);
    model.control().stuck = false;
    for (const haul_ticket& one : {out, back}) {
      const int code = haul_wait_for(one, 20'000'000'000);
      CHILD_CHECK(code == 0 || code == HAUL_EIO);
    }
  }));
  unsetenv("HAUL_MOVER_PATIENCE_MS");
}

TEST_P(CudaFault, AProcessEndsThoughItIsStuck) {
  setenv("HAUL_MOVER_PATIENCE_MS", "400", 1);
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    model.control().memory_limit = SIZE_MAX;
    static const GpuBuffer& gpu = *new GpuBuffer(model, bytes);
    static const Buffer& from = *new Buffer(bytes);
    model.control().stuck = true;
    submitted(to_gpu(space, gpu.at(), from.data(), bytes));
    std::exit(0);
  }));
  unsetenv("HAUL_MOVER_PATIENCE_MS");
}

}  // namespace
