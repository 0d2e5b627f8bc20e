// First writes to shared pages that exist: how many faults they take.
#include "fabric/transport/local/fault_around.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "sizes.hpp"

namespace haul::fabric {
namespace {

long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

class FaultAround : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(ftruncate(fd_, mib), 0);
    auto* writer = map();
    std::memset(writer, 7, mib);
    munmap(writer, mib);
    memory_ = map();
  }
  void TearDown() override {
    munmap(memory_, mib);
    close(fd_);
  }
  unsigned char* map() const {
    return static_cast<unsigned char*>(
        mmap(nullptr, mib, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  long faults_of_writing(std::size_t begin, std::size_t bytes) const {
    const long before = faults();
    for (std::size_t at = begin; at < begin + bytes; at += page) memory_[at] = 1;
    return faults() - before;
  }
  const int fd_ = memfd_create("fault_around", MFD_CLOEXEC);
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
