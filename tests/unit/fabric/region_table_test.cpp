// Keys, bounds and rights of registered memory.
#include "fabric/endpoint/region_table.hpp"

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <limits>

#include "fabric/endpoint/transfer/endpoint_state.hpp"

namespace haul::fabric {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

class RegionTableTest : public testing::Test {
 protected:
  // Only its address is used.
  const EndpointState& endpoint = *reinterpret_cast<const EndpointState*>(&place_);
  RegionTable table;
  char memory[256] = {};

  std::uint64_t add(std::uint64_t base, std::uint64_t access, std::uint64_t key) {
    Region region;
    region.start = memory;
    region.base = base;
    region.bytes = sizeof memory;
    region.access = access;
    EXPECT_EQ(table.add(region, false, &key), 0);
    return key;
  }
  // 0 and the place, or the error.
  int resolve(std::uint64_t key, std::uint64_t address, std::uint64_t bytes, std::uint64_t access,
              void* expected = nullptr) {
    int error = 0;
    void* found = table.resolve(endpoint, key, address, bytes, access, &error);
    EXPECT_EQ(found, expected);
    return error;
  }

 private:
  std::uint64_t place_ = 0;
};

TEST_F(RegionTableTest, offsets_have_bounds) {
  add(0, FI_REMOTE_READ, 5);
  EXPECT_EQ(resolve(5, 0, 256, FI_REMOTE_READ, memory), 0);
  EXPECT_EQ(resolve(5, 255, 1, FI_REMOTE_READ, memory + 255), 0);
  EXPECT_EQ(resolve(5, 256, 0, FI_REMOTE_READ, memory + 256), 0);
  EXPECT_EQ(resolve(5, 1, 256, FI_REMOTE_READ), FI_EACCES);
  EXPECT_EQ(resolve(5, 257, 0, FI_REMOTE_READ), FI_EACCES);
  EXPECT_EQ(resolve(5, 0, most, FI_REMOTE_READ), FI_EACCES);
  EXPECT_EQ(resolve(5, 16, most - 8, FI_REMOTE_READ), FI_EACCES);
  EXPECT_EQ(resolve(5, most, 2, FI_REMOTE_READ), FI_EACCES);
}

TEST_F(RegionTableTest, virtual_addresses_have_bounds) {
  const auto base = reinterpret_cast<std::uint64_t>(memory);
  add(base, FI_REMOTE_WRITE, 6);
  EXPECT_EQ(resolve(6, base, 256, FI_REMOTE_WRITE, memory), 0);
  EXPECT_EQ(resolve(6, base + 10, 20, FI_REMOTE_WRITE, memory + 10), 0);
  EXPECT_EQ(resolve(6, base - 1, 1, FI_REMOTE_WRITE), FI_EACCES);
  EXPECT_EQ(resolve(6, base + 250, 7, FI_REMOTE_WRITE), FI_EACCES);
  EXPECT_EQ(resolve(6, 0, 1, FI_REMOTE_WRITE), FI_EACCES);
}

TEST_F(RegionTableTest, rights_are_what_was_granted) {
  add(0, FI_REMOTE_READ, 1);
  add(0, FI_REMOTE_READ | FI_REMOTE_WRITE, 2);
  EXPECT_EQ(resolve(1, 0, 1, FI_REMOTE_WRITE), FI_EACCES);
  EXPECT_EQ(resolve(1, 0, 1, FI_REMOTE_READ | FI_REMOTE_WRITE), FI_EACCES);
  EXPECT_EQ(resolve(2, 0, 1, FI_REMOTE_READ | FI_REMOTE_WRITE, memory), 0);
}

TEST_F(RegionTableTest, keys_name_one_region_while_it_lives) {
  add(0, FI_REMOTE_READ, most);
  std::uint64_t key = most;
  EXPECT_EQ(table.add(Region{}, false, &key), -FI_ENOKEY);
  EXPECT_EQ(resolve(most, 0, 1, FI_REMOTE_READ, memory), 0);
  table.remove(most);
  EXPECT_EQ(resolve(most, 0, 1, FI_REMOTE_READ), FI_EKEYREJECTED);
  EXPECT_EQ(table.add(Region{}, false, &key), 0);
}

TEST_F(RegionTableTest, chosen_keys_differ) {
  std::uint64_t first = 0, second = 0;
  EXPECT_EQ(table.add(Region{}, true, &first), 0);
  const std::uint64_t taken = first + 1;
  add(0, FI_REMOTE_READ, taken);
  EXPECT_EQ(table.add(Region{}, true, &second), 0);
  EXPECT_NE(second, first);
  EXPECT_NE(second, taken);
}

TEST_F(RegionTableTest, disabled_or_anothers_is_not_reached) {
  add(0, FI_REMOTE_READ, 3);
  table.change(3, [](Region& region) { region.enabled = false; });
  EXPECT_EQ(resolve(3, 0, 1, FI_REMOTE_READ), FI_EKEYREJECTED);
  std::uint64_t other_place = 0;
  const auto& other = *reinterpret_cast<const EndpointState*>(&other_place);
  table.change(3, [&](Region& region) {
    region.enabled = true;
    region.endpoint = &other;
  });
  EXPECT_EQ(resolve(3, 0, 1, FI_REMOTE_READ), FI_EKEYREJECTED);
  table.change(3, [&](Region& region) { region.endpoint = &endpoint; });
  EXPECT_EQ(resolve(3, 0, 1, FI_REMOTE_READ, memory), 0);
  table.forget(endpoint);
  EXPECT_EQ(resolve(3, 0, 1, FI_REMOTE_READ), FI_EKEYREJECTED);
}

}  // namespace
}  // namespace haul::fabric
