// The engine `cuda` on a model of the CUDA driver: the bytes are right in both directions, through
// slots and straight, by a mover and by the caller; no CPU touches a GPU's memory; the program's
// own use of CUDA is left alone. Skipped where haul was built without libhaul-cuda.so.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "cuda_support.hpp"
#include "device/cuda_model.hpp"

namespace {

using namespace e2e;
using haul_model::CudaControl;

constexpr const char* small_slots = "slots=3 slot_bytes=64K";

class Cuda : public testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  int child(Body body, const char* words = small_slots, unsigned seconds = 120) {
    return with_cuda(
        GetParam(), words, [](CudaControl&) {}, body, seconds);
  }
};
INSTANTIATE_TEST_SUITE_P(By, Cuda, testing::Values("thread", "caller"));

// There and back, at odd places; what lies beside stays as it was.
void round_trip(CudaModel& model, haul_space space, std::size_t bytes, std::size_t gpu_shift,
                std::size_t shift) {
  const GpuBuffer gpu(model, bytes + 256);
  const Buffer from(bytes + 64), to(bytes + 64);
  from.fill(bytes + shift);
  std::memset(gpu.bytes(), 0xee, gpu.size());
  CHILD_EQUAL(result_of(to_gpu(space, gpu.at() + gpu_shift, from.data() + shift, bytes)), 0);
  const unsigned char* const there = gpu.bytes();
  CHILD_EQUAL(std::memcmp(there + gpu_shift, from.data() + shift, bytes), 0);
  for (std::size_t at = 0; at < gpu_shift; ++at) CHILD_EQUAL(there[at], 0xee);
  for (std::size_t at = gpu_shift + bytes; at < gpu.size(); ++at) CHILD_EQUAL(there[at], 0xee);
  CHILD_EQUAL(result_of(from_gpu(space, to.data() + shift, gpu.at() + gpu_shift, bytes)), 0);
  CHILD_EQUAL(std::memcmp(to.data() + shift, from.data() + shift, bytes), 0);
  for (std::size_t at = 0; at < shift; ++at) CHILD_EQUAL(to[at], 0);
  for (std::size_t at = shift + bytes; at < to.size(); ++at) CHILD_EQUAL(to[at], 0);
}

TEST_P(Cuda, BytesOfEverySizeGoThereAndComeBack) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    for (std::size_t bytes = 1; bytes <= 64 * mib; bytes *= 4) {
      round_trip(model, space, bytes, 0, 0);
      round_trip(model, space, bytes + 1, bytes % 201, 13);
      if (bytes > 2) round_trip(model, space, bytes - 1, 1, 63);
    }
    CHILD_EQUAL(model.control().blocking, 0);
    CHILD_EQUAL(cuda().available, 1);
    CHILD_CHECK(cuda().bytes > 300 * mib);
  }));
}

TEST_P(Cuda, TheFirstCopiesAreMeasured) {
  SKIP_OR_GOOD(child(
      [](CudaModel& model, haul_space space) {
        CHILD_CHECK(std::strstr(cuda().status, "through 4 slots of 2048 KiB") != nullptr);
        CHILD_CHECK(std::strstr(cuda().status, "model GPU 0, no hardware") != nullptr);
        round_trip(model, space, 9 * mib + 5, 3, 7);
      },
      ""));
}

TEST_P(Cuda, CopiesWithinAGpuAndBetweenTwo) {
  SKIP_OR_GOOD(with_cuda(
      GetParam(), small_slots, [](CudaControl& control) { control.devices = 2; },
      [](CudaModel& model, haul_space first) {
        haul_space second = 0;
        CHILD_EQUAL(haul_space_open_device("cuda:1", &second), 0);
        const GpuBuffer a(model, 3 * mib), b(model, 3 * mib), c(model, 3 * mib, 1);
        a.fill(1);
        CHILD_EQUAL(result_of(within_gpu(first, b.at() + 1, first, a.at(), 3 * mib - 1)), 0);
        CHILD_EQUAL(std::memcmp(b.bytes() + 1, a.bytes(), 3 * mib - 1), 0);
        CHILD_EQUAL(result_of(within_gpu(second, c.at(), first, b.at(), 3 * mib)), 0);
        CHILD_EQUAL(std::memcmp(c.bytes(), b.bytes(), 3 * mib), 0);
        CHILD_CHECK(model.control().within > 0 && model.control().between > 0);
        // Memory of the one is not the other's, nor a host's.
        const Buffer host(mib);
        CHILD_EQUAL(result_of(to_gpu(first, c.at(), host.data(), mib)), HAUL_EFAULT);
        CHILD_EQUAL(result_of(from_gpu(second, host.data(), a.at(), mib)), HAUL_EFAULT);
        CHILD_EQUAL(result_of(within_gpu(first, a.at(), first, c.at(), mib)), HAUL_EFAULT);
      }));
}

TEST_P(Cuda, WhatIsNoMemoryOfTheGpuFails) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    const Buffer host(mib), other(mib);
    unsigned char* freed = nullptr;
    {
      const GpuBuffer gpu(model, mib);
      freed = gpu.at();
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at() + 4096, host.data(), mib)), HAUL_EFAULT);
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), host.data(), mib)), 0);
    }
    CHILD_EQUAL(result_of(to_gpu(space, freed, host.data(), mib)), HAUL_EFAULT);
    CHILD_EQUAL(result_of(from_gpu(space, host.data(), freed, 1)), HAUL_EFAULT);
    CHILD_EQUAL(result_of(to_gpu(space, other.data(), host.data(), mib)), HAUL_EFAULT);
    CHILD_EQUAL(cuda().available, 1);
    // The driver was asked for none of these: it might end the context of the whole program.
    CHILD_EQUAL(model.control().astray, 0);
    round_trip(model, space, mib, 0, 0);
  }));
}

TEST_P(Cuda, WhatADeviceCannotDoIsRefused) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, mib);
    const Buffer host(mib);
    haul_request fill = haul_request_fill(nullptr, 7, 8, mib);
    fill.dst.space = space;
    fill.dst.address = gpu.at();
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&fill, 1, &ticket), HAUL_ENOTSUP);
    CHILD_CHECK(std::strstr(haul_last_error(), "it is a fill") != nullptr);
    haul_request checked = to_gpu(space, gpu.at(), host.data(), mib);
    checked.flags = HAUL_CHECKED;
    CHILD_EQUAL(haul_submit(&checked, 1, &ticket), HAUL_ENOTSUP);
    CHILD_CHECK(std::strstr(haul_last_error(), "it is checked") != nullptr);
    const haul_request overlapping = within_gpu(space, gpu.at() + 8, space, gpu.at(), 4096);
    CHILD_EQUAL(haul_submit(&overlapping, 1, &ticket), HAUL_ENOTSUP);
    CHILD_CHECK(std::strstr(haul_last_error(), "sides overlap") != nullptr);
    haul_space same = 0;
    CHILD_EQUAL(haul_space_open_device("cuda:0", &same), 0);
    const haul_request again = within_gpu(same, gpu.at() + 8, space, gpu.at(), 4096);
    CHILD_EQUAL(haul_submit(&again, 1, &ticket), HAUL_ENOTSUP);
    haul_plan plan{};
    plan.size = sizeof plan;
    CHILD_EQUAL(haul_explain(&fill, &plan), 0);
    CHILD_EQUAL(std::strcmp(plan.engine, "none"), 0);
    const haul_request good = to_gpu(same, gpu.at(), host.data(), mib);
    CHILD_EQUAL(haul_explain(&good, &plan), 0);
    CHILD_EQUAL(std::strcmp(plan.engine, "cuda"), 0);
    // A space that was closed.
    CHILD_EQUAL(haul_space_close(same), 0);
    CHILD_EQUAL(haul_submit(&good, 1, &ticket), HAUL_ECLOSED);
    round_trip(model, space, mib, 0, 0);
  }));
}

TEST_P(Cuda, NothingIsNothing) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, 4096);
    const Buffer host(4096);
    const unsigned before = model.control().in;
    CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), host.data(), 0)), 0);
    CHILD_EQUAL(model.control().in, before);
  }));
}

// Flags, vectors, fences, notification words and queues know no difference.
TEST_P(Cuda, AllThatARequestMayAskFor) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, mib);
    const Buffer from(mib), to(mib);
    from.fill(3);
    for (const unsigned flags : {0u, unsigned{HAUL_INLINE}, unsigned{HAUL_DEDICATED}}) {
      std::memset(gpu.bytes(), 0, mib);
      to.clear();
      haul_request out = to_gpu(space, gpu.at(), from.data(), mib);
      out.flags = flags;
      const haul_ticket first = submitted(out);
      if (flags == HAUL_INLINE) CHILD_EQUAL(haul_test(first), 1);
      haul_request back = from_gpu(space, to.data(), gpu.at(), mib);
      std::uint64_t word = 0;
      back.flags = flags | HAUL_FENCE | HAUL_COMPLETE;
      back.notify = &word;
      back.notify_value = 9;
      back.user_data = 77;
      const haul_ticket second = submitted(back);
      CHILD_EQUAL(haul_wait_range(second, 5000, 20000), 0);
      CHILD_EQUAL(std::memcmp(to.data() + 5000, from.data() + 5000, 20000), 0);
      CHILD_EQUAL(haul_wait(second), 0);
      CHILD_EQUAL(haul_test(first), 1);
      CHILD_EQUAL(__atomic_load_n(&word, __ATOMIC_ACQUIRE), 9);
      haul_completion entry{};
      CHILD_EQUAL(haul_reap(&entry, 1), 1);
      CHILD_EQUAL(entry.user_data, 77);
      CHILD_EQUAL(std::memcmp(to.data(), from.data(), mib), 0);
    }
    // Three pieces of the host, one of the GPU.
    haul_extent pieces[3] = {{HAUL_SPACE_SELF, 0, from.data() + 9, 70'001},
                             {HAUL_SPACE_SELF, 0, from.data(), 1},
                             {HAUL_SPACE_SELF, 0, from.data() + 500'000, 300'000}};
    haul_request gather = to_gpu(space, gpu.at() + 5, nullptr, 370'002);
    gather.src_vector = pieces;
    gather.src_count = 3;
    CHILD_EQUAL(result_of(gather), 0);
    const unsigned char* at = gpu.bytes() + 5;
    CHILD_EQUAL(std::memcmp(at, from.data() + 9, 70'001), 0);
    CHILD_EQUAL(at[70'001], from[0]);
    CHILD_EQUAL(std::memcmp(at + 70'002, from.data() + 500'000, 300'000), 0);
  }));
}

// Whoever only reaps may leave what it would have to register or to copy to a mover that it has
// called; but nothing is left to nobody.
TEST_P(Cuda, WhoOnlyReapsSeesTheEnd) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, mib);
    const Buffer from(mib);
    for (unsigned char turn = 1; turn <= 20; ++turn) {
      usleep(3000);  // a mover is asleep by now
      std::memset(from.data(), turn, mib);
      haul_request out = to_gpu(space, gpu.at(), from.data(), mib);
      out.flags = HAUL_COMPLETE;
      submitted(out);
      haul_completion entry{};
      while (haul_reap(&entry, 1) == 0) sched_yield();
      CHILD_EQUAL(entry.status, 0);
      CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), mib), 0);
    }
  }));
}

// A notification word with nobody to look at the ticket: the submit waits.
TEST(CudaAlone, ANotificationComesWithoutAMover) {
  SKIP_OR_GOOD(with_cuda(
      "caller", small_slots, [](CudaControl&) {},
      [](CudaModel& model, haul_space space) {
        const GpuBuffer gpu(model, mib);
        const Buffer from(mib);
        std::uint64_t word = 0;
        haul_request request = to_gpu(space, gpu.at(), from.data(), mib);
        request.notify = &word;
        request.notify_value = 1;
        submitted(request);
        CHILD_EQUAL(word, 1);
      }));
}

// While the caller computes: the submit fills a slot and hands it over, and the GPU does the rest.
TEST(CudaAlone, WhatASubmitFillsTheGpuGetsAtOnce) {
  SKIP_OR_GOOD(with_cuda(
      "caller", small_slots, [](CudaControl&) {},
      [](CudaModel& model, haul_space space) {
        const GpuBuffer gpu(model, 4096);
        const Buffer from(4096);
        from.fill(6);
        const unsigned before = model.control().in;
        const haul_ticket ticket = submitted(to_gpu(space, gpu.at(), from.data(), 4096));
        CHILD_EQUAL(model.control().in, before + 1);
        CHILD_EQUAL(haul_wait(ticket), 0);
        CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), 4096), 0);
      }));
}

TEST_P(Cuda, ManyThreadsAtOnce) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    std::vector<std::thread> threads;
    std::atomic<unsigned> done{0};
    for (unsigned number = 0; number < 6; ++number) {
      threads.emplace_back([&, number] {
        std::mt19937_64 random(number);
        const GpuBuffer gpu(model, mib);
        const Buffer from(mib), to(mib);
        from.fill(number);
        for (int turn = 0; turn < 30; ++turn) {
          const std::size_t bytes = 1 + random() % mib, shift = random() % (mib - bytes + 1);
          CHILD_EQUAL(result_of(to_gpu(space, gpu.at() + shift, from.data() + shift, bytes)), 0);
          to.clear();
          haul_ticket tickets[3];
          for (unsigned part = 0; part < 3; ++part) {
            const std::size_t begin = bytes * part / 3, end = bytes * (part + 1) / 3;
            tickets[part] = submitted(
                from_gpu(space, to.data() + shift + begin, gpu.at() + shift + begin, end - begin));
          }
          for (const haul_ticket& ticket : tickets) CHILD_EQUAL(haul_wait(ticket), 0);
          CHILD_EQUAL(std::memcmp(to.data() + shift, from.data() + shift, bytes), 0);
        }
        ++done;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHILD_EQUAL(done, 6);
    CHILD_EQUAL(model.control().blocking, 0);
  }));
}

// More threads than slots stage at once: there are more slots then, and all bytes are right.
TEST(CudaAlone, ThereAreMoreSlotsWhereMoreThreadsStage) {
  SKIP_OR_GOOD(with_cuda(
      "caller", "", [](CudaControl&) { setenv("HAUL_MEMORY_REGISTERED_BYTES", "0", 1); },
      [](CudaModel& model, haul_space space) {
        const auto few = [] { return std::strstr(cuda().status, " 4 slots of ") != nullptr; };
        CHILD_CHECK(few());
        constexpr std::size_t bytes = 16 * mib;
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 8; ++number) {
          threads.emplace_back([&, number] {
            const GpuBuffer gpu(model, bytes);
            const Buffer from(bytes), to(bytes);
            for (unsigned turn = 0; turn < 2 || (few() && turn < 50); ++turn) {
              from.fill(number * 100 + turn);
              CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), bytes)), 0);
              CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), bytes), 0);
              CHILD_EQUAL(result_of(from_gpu(space, to.data(), gpu.at(), bytes)), 0);
              CHILD_EQUAL(std::memcmp(to.data(), from.data(), bytes), 0);
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
        CHILD_CHECK(!few());
      }));
}

// Copies that end late and in both directions at once: more than the channel takes.
TEST_P(Cuda, LateEndsAndAFullChannel) {
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    model.control().late_us = 300;
    constexpr unsigned count = 40;
    constexpr std::size_t bytes = 150'000;
    const GpuBuffer gpu(model, count * bytes), other(model, count * bytes);
    const Buffer from(count * bytes), to(count * bytes);
    from.fill(5);
    other.fill(6);
    std::vector<haul_ticket> tickets;
    for (unsigned i = 0; i < count; ++i) {
      tickets.push_back(
          submitted(to_gpu(space, gpu.at() + i * bytes, from.data() + i * bytes, bytes)));
      tickets.push_back(
          submitted(from_gpu(space, to.data() + i * bytes, other.at() + i * bytes, bytes)));
    }
    for (const haul_ticket& ticket : tickets) CHILD_EQUAL(haul_wait(ticket), 0);
    CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), from.size()), 0);
    CHILD_EQUAL(std::memcmp(other.bytes(), to.data(), to.size()), 0);
  }));
}

// The program has CUDA contexts of its own.
TEST_P(Cuda, TheProgramsContextStaysCurrent) {
  SKIP_OR_GOOD(with_cuda(
      GetParam(), small_slots, [](CudaControl& control) { control.devices = 2; },
      [](CudaModel& model, haul_space space) {
        CHILD_CHECK(model.current() == nullptr);
        round_trip(model, space, 300'000, 0, 0);
        CHILD_CHECK(model.current() == nullptr);
        void* const own = model.context(1);
        CHILD_EQUAL(model.push(own), 0);
        round_trip(model, space, 300'000, 0, 0);
        CHILD_CHECK(model.current() == own);
        haul_space second = 0;
        CHILD_EQUAL(haul_space_open_device("cuda:1", &second), 0);
        CHILD_CHECK(model.current() == own);
      }));
}

TEST_P(Cuda, AChildOfForkHasNoGpu) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer does not survive a fork of threads";
  SKIP_OR_GOOD(child([](CudaModel& model, haul_space space) {
    model.control().late_us = 200;
    const GpuBuffer gpu(model, 2 * mib);
    const Buffer from(2 * mib), to(2 * mib);
    from.fill(1);
    const haul_ticket under_way = submitted(to_gpu(space, gpu.at(), from.data(), 2 * mib));
    const pid_t forked = start_child([&] {
      haul_ticket ticket{};
      const haul_request request = to_gpu(space, gpu.at(), from.data(), mib);
      CHILD_EQUAL(haul_wait(under_way), 0);
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), HAUL_EIO);
      CHILD_CHECK(std::strstr(haul_last_error(), "the parent's") != nullptr);
      CHILD_EQUAL(cuda().available, 0);
      haul_space another = 0;
      CHILD_CHECK(haul_space_open_device("cuda", &another) != 0);
      copy_works(mib, 4);
      CHILD_EQUAL(model.control().in_child, 0);
      return 0;
    });
    CHILD_EQUAL(haul_wait(under_way), 0);
    CHILD_EQUAL(end_of(forked), 0);
    round_trip(model, space, mib, 0, 0);
    CHILD_EQUAL(cuda().available, 1);
  }));
}

// Copies within the process are not its business, whatever the settings say.
TEST_P(Cuda, CopiesOfTheProcessStayTheCpus) {
  SKIP_OR_GOOD(with_cuda(
      GetParam(), small_slots, [](CudaControl&) { setenv("HAUL_PLAN_ENGINE", "cuda", 1); },
      [](CudaModel&, haul_space) {
        const std::uint64_t before = cuda().bytes;
        for (std::size_t bytes = 1; bytes <= 4 * mib; bytes *= 8) copy_works(bytes, bytes);
        CHILD_EQUAL(cuda().bytes, before);
      }));
}

}  // namespace
