// Copies to and from a GPU as its own driver sees them: on this machine's GPU where there is one,
// and on the model of the driver, so that the same is asked of both.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

#include "cuda_support.hpp"
#include "device/cuda_driver.hpp"
#include "device/cuda_model.hpp"

namespace {

using namespace e2e;
using haul_model::CudaDriver;

constexpr int no_gpu_status = skip_status + 1;

struct Setting {
  const char* name;
  const char* library;
  const char* mover;
};

class CudaGpu : public testing::TestWithParam<Setting> {
 protected:
  // In a child: body(driver, space).
  template <class Body>
  int child(Body body) {
    return run_child(
        [&] {
          const Setting& setting = GetParam();
          always_mover();
          setenv("HAUL_PLAN_MOVER", setting.mover, 1);
          setenv("HAUL_ENGINE_CUDA", cuda_knob(setting.library, "").c_str(), 1);
          CudaDriver driver;
          if (!driver.open(setting.library)) return no_gpu_status;
          haul_space space = 0;
          const int opened = haul_space_open_device("cuda", &space);
          if (std::strstr(haul_last_error(), "cannot be loaded") != nullptr) return skip_status;
          CHILD_EQUAL(opened, 0);
          body(driver, space);
          return 0;
        },
        120);
  }
};
INSTANTIATE_TEST_SUITE_P(Of, CudaGpu,
                         testing::Values(Setting{"ThisMachineByMover", "libcuda.so.1", "thread"},
                                         Setting{"ThisMachineByCaller", "libcuda.so.1", "caller"},
                                         Setting{"TheModelByMover", CUDA_MODEL_LIBRARY, "thread"},
                                         Setting{"TheModelByCaller", CUDA_MODEL_LIBRARY, "caller"}),
                         [](const auto& test) { return std::string(test.param.name); });

#define ON_A_GPU(call)                                                                   \
  do {                                                                                   \
    const int gpu_status_ = (call);                                                      \
    if (gpu_status_ == no_gpu_status) GTEST_SKIP() << "there is no GPU with its driver"; \
    SKIP_OR_GOOD(gpu_status_);                                                           \
  } while (false)

unsigned char* pointer(std::uintptr_t at) {
  return reinterpret_cast<unsigned char*>(at);
}

// `bytes` from `host` there, looked at by the driver; and other bytes back.
void there_and_back(CudaDriver& driver, haul_space space, std::uintptr_t gpu, unsigned char* host,
                    std::size_t bytes, std::uint64_t seed) {
  const Buffer seen(bytes), sent(bytes);
  sent.fill(seed);
  std::memcpy(host, sent.data(), bytes);
  CHILD_EQUAL(result_of(to_gpu(space, pointer(gpu), host, bytes)), 0);
  CHILD_CHECK(driver.read(seen.data(), gpu, bytes));
  CHILD_EQUAL(std::memcmp(seen.data(), sent.data(), bytes), 0);
  sent.fill(seed + 1);
  CHILD_CHECK(driver.write(gpu, sent.data(), bytes));
  CHILD_EQUAL(result_of(from_gpu(space, host, pointer(gpu), bytes)), 0);
  CHILD_EQUAL(std::memcmp(host, sent.data(), bytes), 0);
}

TEST_P(CudaGpu, BytesOfEverySizeFromEveryMemory) {
  ON_A_GPU(child([](CudaDriver& driver, haul_space space) {
    constexpr std::size_t most = 32 * mib;
    const std::uintptr_t gpu = driver.allocate(most + 100);
    const Buffer own(most), registered(most);
    auto* const shared = static_cast<unsigned char*>(haul_alloc(most));
    CHILD_CHECK(gpu != 0 && shared != nullptr);
    CHILD_CHECK(driver.pin(registered.data(), most));
    std::uint64_t seed = 0;
    for (std::size_t bytes = 1; bytes <= most; bytes *= 32) {
      for (unsigned char* const host : {own.data(), shared, registered.data()}) {
        for (const std::size_t shift : {std::size_t{0}, std::size_t{13}}) {
          const std::size_t length = bytes > shift ? bytes - shift : bytes;
          there_and_back(driver, space, gpu + 5 * shift, host + shift % bytes, length, ++seed);
        }
      }
    }
    CHILD_CHECK(driver.unpin(registered.data()));
    driver.release(gpu);
  }));
}

// The program unmaps, gives back and replaces memory between copies of it.
TEST_P(CudaGpu, NewMemoryAtOldAddresses) {
  ON_A_GPU(child([](CudaDriver& driver, haul_space space) {
    constexpr std::size_t bytes = 8 * mib;
    const std::uintptr_t gpu = driver.allocate(bytes);
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned turn = 1; turn < 40; ++turn) {
      there_and_back(driver, space, gpu, static_cast<unsigned char*>(at), bytes, 2 * turn);
      if (turn % 4 == 1) CHILD_EQUAL(madvise(at, bytes, MADV_DONTNEED), 0);
      if (turn % 4 == 2)
        CHILD_CHECK(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                         -1, 0) == at);
    }
    munmap(at, bytes);
    // What haul has registered the program gets back in time.
    at = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const Buffer other(4096);
    CHILD_EQUAL(result_of(to_gpu(space, pointer(gpu), other.data(), 4096)), 0);
    CHILD_CHECK(driver.pin(at, bytes));
    there_and_back(driver, space, gpu, static_cast<unsigned char*>(at), bytes, 1000);
    CHILD_CHECK(driver.unpin(at));
    driver.release(gpu);
  }));
}

TEST_P(CudaGpu, WithinItAndInPieces) {
  ON_A_GPU(child([](CudaDriver& driver, haul_space space) {
    constexpr std::size_t bytes = 3 * mib + 7;
    const std::uintptr_t first = driver.allocate(bytes), second = driver.allocate(bytes);
    const Buffer from(bytes), seen(bytes);
    from.fill(1);
    const haul_extent pieces[] = {{HAUL_SPACE_SELF, 0, from.data() + mib, bytes - mib},
                                  {HAUL_SPACE_SELF, 0, from.data(), mib}};
    haul_request gather = to_gpu(space, pointer(first), nullptr, bytes);
    gather.src_vector = pieces;
    gather.src_count = 2;
    haul_request within = within_gpu(space, pointer(second), space, pointer(first), bytes);
    within.flags |= HAUL_FENCE;
    haul_ticket tickets[2] = {};
    const haul_request both[] = {gather, within};
    CHILD_EQUAL(haul_submit(both, 2, tickets), 2);
    CHILD_EQUAL(haul_wait(tickets[1]), 0);
    CHILD_CHECK(driver.read(seen.data(), second, bytes));
    CHILD_EQUAL(std::memcmp(seen.data(), from.data() + mib, bytes - mib), 0);
    CHILD_EQUAL(std::memcmp(seen.data() + bytes - mib, from.data(), mib), 0);
    driver.release(first);
    driver.release(second);
  }));
}

// A wrong address fails its request and nothing else: the context goes on.
TEST_P(CudaGpu, WrongAddressesHarmNothing) {
  ON_A_GPU(child([](CudaDriver& driver, haul_space space) {
    constexpr std::size_t bytes = 2 * mib;
    const std::uintptr_t gpu = driver.allocate(bytes);
    const Buffer host(2 * bytes);
    CHILD_EQUAL(result_of(to_gpu(space, host.data(), host.data() + bytes, bytes)), HAUL_EFAULT);
    CHILD_EQUAL(result_of(from_gpu(space, host.data(), pointer(0x7000), bytes)), HAUL_EFAULT);
    there_and_back(driver, space, gpu, host.data(), bytes, 3);
    driver.release(gpu);
    CHILD_EQUAL(result_of(to_gpu(space, pointer(gpu), host.data(), bytes)), HAUL_EFAULT);
    const std::uintptr_t other = driver.allocate(bytes);
    there_and_back(driver, space, other, host.data(), bytes, 5);
    driver.release(other);
  }));
}

TEST_P(CudaGpu, ManyThreads) {
  ON_A_GPU(child([](CudaDriver& driver, haul_space space) {
    constexpr std::size_t bytes = 5 * mib;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 6; ++number) {
      const std::uintptr_t gpu = driver.allocate(bytes);
      CHILD_CHECK(gpu != 0);
      threads.emplace_back([=] {
        const Buffer from(bytes), to(bytes);
        for (unsigned turn = 0; turn < 12; ++turn) {
          from.fill(number * 100 + turn);
          CHILD_EQUAL(result_of(to_gpu(space, pointer(gpu), from.data(), bytes)), 0);
          CHILD_EQUAL(result_of(from_gpu(space, to.data(), pointer(gpu), bytes)), 0);
          CHILD_EQUAL(std::memcmp(to.data(), from.data(), bytes), 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }));
}

// Programs that fork, or end in one way or another, right after they have asked for a copy: the
// next one's copies are right.
TEST_P(CudaGpu, ProgramsEndAmidCopies) {
  for (const int end : {0, 1, 2}) {
    ON_A_GPU(child([end](CudaDriver& driver, haul_space space) {
      constexpr std::size_t bytes = 64 * mib;
      const std::uintptr_t gpu = driver.allocate(bytes);
      static const Buffer& host = *new Buffer(bytes);
      std::memset(host.data(), 1, bytes);
      const haul_ticket ticket = submitted(to_gpu(space, pointer(gpu), host.data(), bytes));
      if (end == 1) std::exit(0);
      const int forked = run_child([&] {
        if (end == 2) return 0;
        const int code = result_of(to_gpu(space, pointer(gpu), host.data(), 4096));
        return code < 0 ? 0 : 1;
      });
      CHILD_EQUAL(forked, 0);
      if (end == 2) {
        _exit(0);
      }
      CHILD_EQUAL(haul_wait(ticket), 0);
      there_and_back(driver, space, gpu, host.data(), bytes, 9);
    }));
  }
}

}  // namespace
