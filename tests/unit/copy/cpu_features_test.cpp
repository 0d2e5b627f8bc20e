// What the CPU says of itself agrees with what the compiler's run time and the kernel say.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/cpu.hpp"
#include "copy/cache_lines.hpp"
#include "copy/copy.hpp"

namespace haul {
namespace {

TEST(CpuFeatures, agree_with_the_compiler) {
  const CpuFeatures& cpu = cpu_features();
  EXPECT_EQ(cpu.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu.avx512, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw"));
  if (std::strcmp(cpu.vendor, "GenuineIntel") == 0) {
    EXPECT_TRUE(__builtin_cpu_is("intel"));
  }
  if (std::strcmp(cpu.vendor, "AuthenticAMD") == 0) {
    EXPECT_TRUE(__builtin_cpu_is("amd"));
  }
}

TEST(CpuFeatures, agree_with_the_kernel) {
  std::ifstream file("/proc/cpuinfo");
  std::string line, flags, model, vendor, family;
  while (std::getline(file, line) && !line.empty()) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.rfind("flags", 0) == 0) flags = " " + value + " ";
    if (line.rfind("model name", 0) == 0) model = value;
    if (line.rfind("vendor_id", 0) == 0) vendor = value;
    if (line.rfind("cpu family", 0) == 0) family = value;
  }
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo is not to be read here";
  const CpuFeatures& cpu = cpu_features();
  const auto has = [&](const char* flag) {
    return flags.find(std::string(" ") + flag + " ") != std::string::npos;
  };
  // The kernel may hide what it was told not to use; what it shows must be there.
  EXPECT_TRUE(!has("erms") || cpu.erms);
  EXPECT_TRUE(!has("fsrm") || cpu.fsrm);
  EXPECT_TRUE(!has("clflushopt") || cpu.clflushopt);
  EXPECT_TRUE(!has("clwb") || cpu.clwb);
  EXPECT_TRUE(!has("movdir64b") || cpu.movdir64b);
  EXPECT_TRUE(!has("avx2") || cpu.avx2);
  EXPECT_EQ(vendor, cpu.vendor);
  EXPECT_EQ(family, std::to_string(cpu.family));
  if (cpu.brand[0] != '\0') {
    EXPECT_EQ(model, cpu.brand);
  }
}

TEST(CpuFeatures, make_sense) {
  const CpuFeatures& cpu = cpu_features();
  EXPECT_EQ(std::strlen(cpu.vendor), 12u);
  EXPECT_LT(std::strlen(cpu.brand), sizeof cpu.brand);
  EXPECT_TRUE(!cpu.avx512 || cpu.avx2);
  EXPECT_TRUE(!cpu.fast_rep_movsb || cpu.erms);
  // 0 is "does not say"; else something between a small L2 and the largest L3 there is.
  if (cpu.llc_bytes != 0) {
    EXPECT_GE(cpu.llc_bytes, std::size_t{128} << 10);
    EXPECT_LE(cpu.llc_bytes, std::size_t{4} << 30);
  }
}

TEST(CpuFeatures, are_one_and_the_same_for_all_threads) {
  std::vector<const CpuFeatures*> seen(16);
  std::vector<std::thread> threads;
  for (auto& slot : seen) threads.emplace_back([&slot] { slot = &cpu_features(); });
  for (auto& thread : threads) thread.join();
  for (const CpuFeatures* features : seen) EXPECT_EQ(features, &cpu_features());
}

TEST(BestLevel, is_what_the_features_allow) {
  const CpuFeatures& cpu = cpu_features();
  const copy::Level best = copy::best_level();
  EXPECT_EQ(best == copy::Level::avx512, cpu.avx512);
  EXPECT_EQ(best >= copy::Level::avx2, cpu.avx2);
}

// Times are not asserted; that flushing loses no byte, and probing changes none, is.
TEST(CacheLines, flush_and_probe_leave_the_bytes_alone) {
  alignas(64) std::byte lines[256];
  for (std::size_t i = 0; i < sizeof lines; ++i) lines[i] = static_cast<std::byte>(i);
  copy::flush_lines(lines, lines + sizeof lines);
  const std::uint32_t threshold = copy::residency_threshold_cycles();
  EXPECT_GT(threshold, 0u);
  EXPECT_EQ(threshold, copy::residency_threshold_cycles());
  for (std::size_t i = 0; i < sizeof lines; i += 64) (void)copy::is_resident(lines + i, threshold);
  for (std::size_t i = 0; i < sizeof lines; ++i) {
    EXPECT_EQ(lines[i], static_cast<std::byte>(i & 0xff));
  }
}

}  // namespace
}  // namespace haul
