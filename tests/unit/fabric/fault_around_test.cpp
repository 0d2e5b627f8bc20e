// First writes to shared pages that exist: how many faults they take.
#include "fabric/transport/local/fault_around.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "faults.hpp"
#include "sizes.hpp"

namespace haul::fabric {
namespace {

class FaultAround : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(ftruncate(fd_, mib), 0);
    map();
    std::memset(memory_, 7, mib);
    map();
  }
  void TearDown() override {
    munmap(reserved_, reserved_bytes);
    close(fd_);
  }
  // At a multiple of what the kernel maps at once.
  void map() {
    const auto begin = (reinterpret_cast<std::uintptr_t>(reserved_) + fault_around_bytes - 1) /
                       fault_around_bytes * fault_around_bytes;
    memory_ =
        static_cast<unsigned char*>(mmap(reinterpret_cast<void*>(begin), mib,
                                         PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, 0));
  }
  // (ThreadSanitizer's notes of these writes would fault as well.)
  [[gnu::no_sanitize_thread]] long faults_of_writing(std::size_t begin, std::size_t bytes) const {
    const long before = faults();
    for (std::size_t at = begin; at < begin + bytes; at += page) memory_[at] = 1;
    return faults() - before;
  }
  static constexpr std::size_t reserved_bytes = mib + fault_around_bytes;
  const int fd_ = memfd_create("fault_around", MFD_CLOEXEC);
  void* const reserved_ =
      mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  unsigned char* memory_ = nullptr;
};

TEST_F(FaultAround, WritesFindTheirPagesMapped) {
  const long alone = faults_of_writing(0, mib / 2);
  EXPECT_GE(alone, 128);
  fault_around(memory_ + mib / 2, mib / 2);
  EXPECT_LT(faults_of_writing(mib / 2, mib / 2), alone / 4);
  EXPECT_EQ(memory_[mib - 1], 7);
}

// Where a range begins in the middle of what the kernel maps at once, its end is still reached.
TEST_F(FaultAround, ReachesTheEndOfWhatIsAskedFor) {
  const std::size_t begin = 5 * page + 100, bytes = fault_around_bytes;
  fault_around(memory_ + begin, bytes);
  EXPECT_LT(faults_of_writing(begin, bytes), 4);
}

TEST_F(FaultAround, TouchesNothingBehindTheRange) {
  ASSERT_EQ(mprotect(memory_ + fault_around_bytes, fault_around_bytes, PROT_NONE), 0);
  fault_around(memory_ + page, fault_around_bytes - page);
  fault_around(memory_ + fault_around_bytes, 0);
}

}  // namespace
}  // namespace haul::fabric
