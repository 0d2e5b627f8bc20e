// The table of places: it finds them again, names them, and bears being full.
#include "preload/mem/sites.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sizes.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul::preload {
namespace {

TEST(SizeClass, IsAPowerOfFour) {
  EXPECT_EQ(size_class(1), 0u);
  EXPECT_EQ(size_class(32 * 1024), 0u);
  EXPECT_EQ(size_class(128 * 1024 - 1), 0u);
  EXPECT_EQ(size_class(128 * 1024), 1u);
  EXPECT_EQ(size_class(mib), 2u);
  EXPECT_EQ(size_class(2 * mib), 3u);
  EXPECT_EQ(size_class(8 * mib), 4u);
  EXPECT_EQ(size_class(32 * mib), 5u);
  EXPECT_EQ(size_class(128 * mib), 6u);
  EXPECT_EQ(size_class(~std::size_t{0}), 6u);
}

TEST(Sites, AreFoundAgain) {
  make_table(nullptr);
  Site* const one = site_of(0x1000);
  Site* const other = site_of(0x1001);
  ASSERT_NE(one, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_NE(one, other);
  EXPECT_EQ(site_of(0x1000), one);
  EXPECT_EQ(site_of(0x1001), other);
}

TEST(Sites, AreNamed) {
  make_table(nullptr);
  const auto address = reinterpret_cast<std::uintptr_t>(&size_class);
  const Site* const site = site_of(address);
  ASSERT_NE(site, nullptr);
  EXPECT_EQ(site->named.load(), 1u);
  EXPECT_NE(std::string(site->module).find("haul_unit_tests"), std::string::npos);
  EXPECT_NE(site->file_offset, 0u);
  const Site* const nowhere = site_of(1);
  EXPECT_STREQ(nowhere->module, "");
}

TEST(Sites, ThatFindNoRoomAreNone) {
  make_table(nullptr);
  std::set<const Site*> distinct;
  std::size_t refused = 0;
  for (std::uintptr_t address = 1; address <= 2 * Table::room; ++address) {
    const Site* const site = site_of(address);
    if (site == nullptr) {
      ++refused;
    } else {
      distinct.insert(site);
    }
  }
  EXPECT_EQ(distinct.size() + refused, 2 * Table::room);
  EXPECT_GE(distinct.size(), Table::room / 2);
  EXPECT_LE(distinct.size(), Table::room);
  note(nullptr, Pages::there, mib, Way::libc, 1);
}

TEST(Sites, AreOneForAllThreads) {
  make_table(nullptr);
  constexpr std::uintptr_t count = 100;
  std::vector<std::vector<Site*>> found(4, std::vector<Site*>(count));
  std::vector<std::thread> threads;
  for (auto& mine : found)
    threads.emplace_back([&mine] {
      for (std::uintptr_t i = 0; i < count; ++i) {
        mine[i] = site_of(64 * (i + 1));
        for (int turn = 0; turn < 10; ++turn) note(mine[i], Pages::there, mib, Way::libc, 100);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::uintptr_t i = 0; i < count; ++i) {
    for (const auto& mine : found) EXPECT_EQ(mine[i], found[0][i]);
    const WayTally& tally = found[0][i]->kind(Pages::there, mib).ways[0];
    EXPECT_EQ(tally.calls.load(), 40u);
    EXPECT_EQ(tally.bytes.load(), 40 * mib);
    EXPECT_EQ(tally.ns.load(), 4000u);
    EXPECT_EQ(tally.recent_ns_per_mib.load(), 100u);
  }
}

TEST(Sites, LieInAFileOfTheirDirectory) {
  const test::TempDir directory;
  make_table(directory.path().c_str());
  note(site_of(77), Pages::missing, 4 * mib, Way::caller, 4000);
  count_refusal(NotShared::no_mover);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  const int file = open(files[0].c_str(), O_RDONLY | O_CLOEXEC);
  const auto* table =
      static_cast<const Table*>(mmap(nullptr, sizeof(Table), PROT_READ, MAP_SHARED, file, 0));
  close(file);
  ASSERT_NE(table, MAP_FAILED);
  EXPECT_EQ(table->magic, table_magic);
  EXPECT_EQ(table->pid, static_cast<std::uint32_t>(getpid()));
  EXPECT_NE(std::string(table->program).find("haul_unit_tests"), std::string::npos);
  EXPECT_EQ(table->refusals[static_cast<std::size_t>(NotShared::no_mover)].load(), 1u);
  std::uint64_t bytes = 0;
  for (const Site& site : table->sites)
    bytes += site.kinds[1][size_class(4 * mib)].ways[static_cast<std::size_t>(Way::caller)].bytes;
  EXPECT_EQ(bytes, 4 * mib);
  munmap(const_cast<Table*>(table), sizeof(Table));
  remove_empty_table();
  EXPECT_TRUE(std::filesystem::exists(files[0]));
  make_table("/proc/nonexistent");
  EXPECT_NE(site_of(77), nullptr) << "in memory instead";
}

TEST(Sites, ATableOfNothingIsRemoved) {
  const test::TempDir directory;
  make_table(directory.path().c_str());
  EXPECT_FALSE(std::filesystem::is_empty(directory.path()));
  remove_empty_table();
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace haul::preload
