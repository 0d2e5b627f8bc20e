// How the engine `cuda` treats the process's side of a copy: memory that comes again is registered
// and goes straight, memory that the program has registered goes straight at once, and whatever the
// program does with its addresses, no stale byte moves.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "cuda_support.hpp"
#include "device/cuda_model.hpp"

namespace {

using namespace e2e;
using haul_model::CudaControl;

constexpr const char* small_slots = "slots=4 slot_bytes=64K";
// A copy of so many bytes that goes straight is few calls, in chunks; through slots it is one a
// slot.
constexpr std::size_t bytes = 4 * mib, slots_of_it = 64;

class CudaMemory : public testing::TestWithParam<const char*> {
 protected:
  // On a GPU that has too little memory when it is opened to measure what registering takes: then
  // nothing is registered that comes once.
  template <class Body>
  int child(const char* registering, Body body, const char* budget = "256M") {
    return with_cuda(
        GetParam(), small_slots,
        [=](CudaControl& control) {
          setenv("HAUL_MEMORY_REGISTER", registering, 1);
          setenv("HAUL_MEMORY_REGISTERED_BYTES", budget, 1);
          control.memory_limit = 300'000;
        },
        [=](CudaModel& model, haul_space space) {
          model.control().memory_limit = SIZE_MAX;
          body(model, space);
        });
  }
};
INSTANTIATE_TEST_SUITE_P(By, CudaMemory, testing::Values("thread", "caller"));

// There, back into other memory. How many calls of the driver that took in all.
unsigned there_and_back(CudaModel& model, haul_space space, const GpuBuffer& gpu,
                        const Buffer& from, const Buffer& to, std::uint64_t seed) {
  const unsigned before = model.control().in + model.control().out;
  from.fill(seed);
  to.clear();
  CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), from.size())), 0);
  CHILD_EQUAL(result_of(from_gpu(space, to.data(), gpu.at(), to.size())), 0);
  CHILD_EQUAL(std::memcmp(to.data(), from.data(), to.size()), 0);
  return model.control().in + model.control().out - before;
}

TEST_P(CudaMemory, WhatComesAgainIsRegisteredAndGoesStraight) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    const Buffer from(bytes), to(bytes);
    CHILD_EQUAL(there_and_back(model, space, gpu, from, to, 1), 2 * slots_of_it);
    const unsigned none = model.control().registrations;
    CHILD_CHECK(there_and_back(model, space, gpu, from, to, 2) < slots_of_it / 2);
    CHILD_EQUAL(model.control().registrations, none + 2);
    for (unsigned turn = 3; turn < 9; ++turn)
      CHILD_CHECK(there_and_back(model, space, gpu, from, to, turn) < slots_of_it / 2);
    CHILD_EQUAL(model.control().registrations, none + 2);
    CHILD_EQUAL(model.control().registered_now, 2);
    CHILD_EQUAL(model.control().blocking, 0);
  }));
}

// Where it has measured that registering and giving back is quicker than the slots (each copy of
// the model's ends late here), even memory that comes once is registered, for that use; where it is
// slower, it is not.
TEST_P(CudaMemory, WhatComesOnceIsRegisteredWhereThatPays) {
  constexpr std::size_t large = 8 * mib;
  for (const bool slow : {false, true}) {
    SKIP_OR_GOOD(with_cuda(
        GetParam(), "slots=2 slot_bytes=64K",
        [slow](CudaControl& control) {
          control.late_us = slow ? 0 : 500;
          control.page_ns = slow ? 100'000 : 0;
        },
        [slow](CudaModel& model, haul_space space) {
          const GpuBuffer gpu(model, large);
          const Buffer from(large), to(large);
          const unsigned before = model.control().registrations;
          there_and_back(model, space, gpu, from, to, 1);
          // (More than two where all that is under way of a copy ends before its next chunk comes.)
          const unsigned count = model.control().registrations - before;
          CHILD_CHECK(slow ? count == 0 : count >= 2);
          CHILD_EQUAL(model.control().registered_now, 0);
          CHILD_EQUAL(model.control().blocking, 0);
        }));
  }
}

// Of one that asks for each use nothing stays; and all is registered at once, before the first
// byte.
TEST_P(CudaMemory, EachUseIsRegisteredWhereTheSettingAsksForIt) {
  for (const char* registering : {"overlapped", "blocking"}) {
    SKIP_OR_GOOD(child(registering, [](CudaModel& model, haul_space space) {
      const GpuBuffer gpu(model, bytes);
      const Buffer from(bytes), to(bytes);
      for (unsigned turn = 0; turn < 3; ++turn) {
        const unsigned before = model.control().registrations;
        CHILD_CHECK(there_and_back(model, space, gpu, from, to, turn) < slots_of_it / 2);
        CHILD_CHECK(model.control().registrations >= before + 2);
        CHILD_EQUAL(model.control().registered_now, 0);
      }
    }));
  }
}

TEST_P(CudaMemory, WhatTheProgramHasRegisteredGoesStraight) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    const Buffer from(bytes), to(bytes);
    void* popped = nullptr;
    CHILD_EQUAL(model.push(model.context()), 0);
    CHILD_EQUAL(model.host_register(from.data(), bytes, 0), 0);
    CHILD_EQUAL(model.host_register(to.data(), bytes, 0), 0);
    const unsigned registered = model.control().registrations;
    for (unsigned turn = 0; turn < 4; ++turn)
      CHILD_CHECK(there_and_back(model, space, gpu, from, to, turn) < slots_of_it / 2);
    CHILD_EQUAL(model.control().registrations, registered);
    CHILD_EQUAL(model.host_unregister(from.data()), 0);
    CHILD_EQUAL(model.host_unregister(to.data()), 0);
    CHILD_EQUAL(model.pop(&popped), 0);
    CHILD_EQUAL(there_and_back(model, space, gpu, from, to, 9), 2 * slots_of_it);
    CHILD_EQUAL(model.control().blocking, 0);
  }));
}

// A half of it only: that half's pages cannot be registered again, and the whole is pageable.
TEST_P(CudaMemory, WhatIsRegisteredInPartGoesThroughSlots) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    const Buffer from(bytes), to(bytes);
    CHILD_EQUAL(model.push(model.context()), 0);
    CHILD_EQUAL(model.host_register(from.data() + bytes / 2, bytes / 2, 0), 0);
    for (unsigned turn = 0; turn < 4; ++turn) there_and_back(model, space, gpu, from, to, turn);
    CHILD_EQUAL(model.control().blocking, 0);
  }));
}

// Copies between the same buffers, which would be registered if they could stay so.
void all_goes_through_slots(CudaModel& model, haul_space space) {
  const GpuBuffer gpu(model, bytes);
  const Buffer from(bytes), to(bytes);
  const unsigned before = model.control().registrations;
  for (unsigned turn = 0; turn < 4; ++turn)
    CHILD_EQUAL(there_and_back(model, space, gpu, from, to, turn), 2 * slots_of_it);
  CHILD_EQUAL(model.control().registrations, before);
}

TEST_P(CudaMemory, WithoutRoomForPinnedMemoryAllGoesThroughSlots) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    model.control().pinned_limit = 1;
    all_goes_through_slots(model, space);
  }));
}

// More than stays registered at a time: it is not registered for one use and given back.
TEST_P(CudaMemory, WhatExceedsTheBudgetGoesThroughSlots) {
  SKIP_OR_GOOD(child("cached", all_goes_through_slots, "1M"));
}

// Memory that others can change cannot be watched, so it never stays registered.
TEST_P(CudaMemory, SharedMemoryGoesThroughSlots) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    auto* const shared = static_cast<unsigned char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const unsigned before = model.control().registrations;
    for (unsigned turn = 0; turn < 4; ++turn) {
      std::memset(shared, static_cast<int>(turn + 1), bytes);
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), shared, bytes)), 0);
      CHILD_EQUAL(gpu.bytes()[bytes - 1], turn + 1);
    }
    CHILD_EQUAL(model.control().registrations, before);
  }));
}

// What is given back to the kernel while it is registered is forgotten, and later unregistered.
TEST_P(CudaMemory, NewMemoryAtOldAddressesIsNewMemory) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned turn = 1; turn < 60; ++turn) {
      std::memset(at, static_cast<int>(turn), bytes);
      const unsigned before = model.control().registrations;
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), at, bytes)), 0);
      const unsigned char* const there = gpu.bytes();
      for (std::size_t byte = 0; byte < bytes; byte += 4095) CHILD_EQUAL(there[byte], turn);
      if (turn % 3 != 0) continue;
      CHILD_CHECK(model.control().registered_now <= 1);
      CHILD_CHECK(turn < 4 || model.control().registrations <= before + 1);
      munmap(at, bytes);
      void* const fresh =
          mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      CHILD_CHECK(fresh == at);
    }
  }));
}

// No call of the driver comes from the thread that is told of it, and the next copy makes it.
TEST_P(CudaMemory, WhatIsUnmappedIsUnregisteredByTheNextCopy) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int turn = 0; turn < 2; ++turn)
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), at, bytes)), 0);
    CHILD_EQUAL(model.control().registered_now, 1);
    munmap(at, bytes);
    CHILD_EQUAL(model.control().registered_now, 1);
    // (The next one that begins after haul's thread has heard of it, which it may be kept from.)
    const Buffer other(1000);
    for (int copy = 0; copy < 1000 && model.control().registered_now != 0; ++copy) {
      if (copy != 0) usleep(5000);
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), other.data(), 1000)), 0);
    }
    CHILD_EQUAL(model.control().registered_now, 0);
  }));
}

// A region that is still in use when a part of it changes: what lies there now must not be moved by
// it, though CUDA says that the memory is pinned.
TEST_P(CudaMemory, WhatHaulHasPinnedItselfIsNotTakenForTheProgramsOwn) {
  SKIP_OR_GOOD(child("cached", [](CudaModel& model, haul_space space) {
    const GpuBuffer gpu(model, bytes);
    const Buffer from(bytes);
    from.fill(1);
    for (int turn = 0; turn < 2; ++turn)
      CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), bytes)), 0);
    CHILD_EQUAL(model.control().registered_now, 1);
    unsigned before = model.control().in;
    CHILD_EQUAL(result_of(to_gpu(space, gpu.at(), from.data(), mib)), 0);
    const unsigned straight = model.control().in - before;
    model.control().late_us = 200'000;
    before = model.control().in;
    const haul_ticket slow = submitted(to_gpu(space, gpu.at(), from.data(), mib));
    while (model.control().in == before && haul_test(slow) == 0) sched_yield();
    unsigned char* const end = from.data() + bytes - mib;
    CHILD_EQUAL(madvise(end, mib, MADV_DONTNEED), 0);
    std::memset(end, 77, mib);
    model.control().late_us = 0;
    CHILD_EQUAL(result_of(to_gpu(space, gpu.at() + bytes - mib, end, mib)), 0);
    CHILD_EQUAL(haul_wait(slow), 0);
    // (Chunks of the slow one that came after the change went through slots, too.)
    CHILD_CHECK(model.control().in - before >= straight + mib / (64 * kib));
    CHILD_EQUAL(gpu.bytes()[bytes - 1], 77);
    CHILD_EQUAL(std::memcmp(gpu.bytes(), from.data(), mib), 0);
  }));
}

}  // namespace
