// Where there is no GPU: each way in which one is missing has a sentence with a remedy, and nothing
// else changes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "cuda_support.hpp"
#include "device/cuda_model.hpp"

namespace {

using namespace e2e;

// Opens what `device` names, under this setting; expects that code and words of the sentence. What
// else a program does works as ever.
int refused(const char* setting, const char* device, int code, const char* words,
            const char* devices = "1") {
  const std::string text = setting;
  return run_child([=] {
    quiet_environment();
    setenv("HAUL_ENGINE_CUDA", text.c_str(), 1);
    setenv("CUDA_MODEL_DEVICES", devices, 1);
    haul_space space = 77;
    const int opened = haul_space_open_device(device, &space);
    if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
    if (std::strstr(haul_last_error(), words) == nullptr)
      std::fprintf(stderr, "it says: %s\n", haul_last_error());
    CHILD_EQUAL(opened, code);
    CHILD_CHECK(std::strstr(haul_last_error(), words) != nullptr);
    CHILD_EQUAL(space, 77);
    for (std::size_t bytes = 1; bytes < 4 * mib; bytes *= 16) copy_works(bytes, bytes);
    return 0;
  });
}

const std::string by_model = "library=" CUDA_MODEL_LIBRARY;

TEST(CudaAbsent, WithoutADriver) {
  SKIP_OR_GOOD(refused("library=/nonexistent/libcuda.so.1", "cuda", HAUL_ENOTSUP,
                       "is not here; install NVIDIA's driver"));
}

// As this machine is, whatever that is: it opens, or a sentence says why not.
TEST(CudaAbsent, OnThisMachine) {
  SKIP_OR_GOOD(run_child([] {
    quiet_environment();
    haul_space space = 0;
    const int opened = haul_space_open_device("cuda", &space);
    if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
    if (opened == 0) return 0;
    CHILD_CHECK(opened == HAUL_ENOTSUP || opened == HAUL_EIO);
    CHILD_CHECK(std::strchr(haul_last_error(), ';') != nullptr);
    CHILD_EQUAL(cuda().available, 0);
    copy_works(mib, 1);
    return 0;
  }));
}

TEST(CudaAbsent, WithADriverThatIsTooOld) {
  SKIP_OR_GOOD(refused("library=" CUDA_MODEL_OLD_LIBRARY, "cuda", HAUL_ENOTSUP,
                       "lacks the function cuDriverGetVersion"));
}

TEST(CudaAbsent, WithADriverAndNoGpu) {
  SKIP_OR_GOOD(refused(by_model.c_str(), "cuda", HAUL_ENOTSUP, "CUDA_ERROR_NO_DEVICE", "0"));
}

TEST(CudaAbsent, AGpuThatIsNotThere) {
  SKIP_OR_GOOD(refused(by_model.c_str(), "cuda:3", HAUL_EINVAL, "say 0 to 1", "2"));
  SKIP_OR_GOOD(refused(by_model.c_str(), "cuda:x", HAUL_EINVAL, "is no GPU's number", "2"));
  SKIP_OR_GOOD(refused(by_model.c_str(), "cuda:99999999999999999999", HAUL_EINVAL,
                       "is no GPU's number", "2"));
  SKIP_OR_GOOD(refused(by_model.c_str(), "cuda:1 ", HAUL_EINVAL, "is no GPU's number", "2"));
}

TEST(CudaAbsent, OtherNames) {
  for (const char* name : {"", ":", "gpu", "dsa", "cpu", "cuda1", "an engine with a long name"})
    SKIP_OR_GOOD(refused(by_model.c_str(), name, HAUL_EINVAL, "names no engine whose device"));
}

TEST(CudaAbsent, WrongSettings) {
  for (const char* words : {"slots=1", "slots=17", "slots=x", "slot_bytes=1", "slot_bytes=65M",
                            "slot_bytes=4KB", "library=", "device=1", "slots"})
    SKIP_OR_GOOD(refused((by_model + " " + words).c_str(), "cuda", HAUL_ENOTSUP,
                         "say library=PATH, slots=2 to 16"));
}

TEST(CudaAbsent, WrongArguments) {
  EXPECT_EQ(run_child([] {
              haul_space space = 0;
              CHILD_EQUAL(haul_space_open_device(nullptr, &space), HAUL_EINVAL);
              CHILD_EQUAL(haul_space_open_device("cuda", nullptr), HAUL_EINVAL);
              haul_shutdown();
              CHILD_EQUAL(haul_space_open_device("cuda", &space), HAUL_ECLOSED);
              return 0;
            }),
            0);
}

}  // namespace
