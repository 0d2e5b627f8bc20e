// The plug-in of the engine nic by its own table, without libhaul's planning.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "engine/plugin.hpp"
#include "nic_support.hpp"

namespace e2e {

class Device {
 public:
  // False: haul was built without it.
  bool open(const std::string& arguments) {
    std::string sentence;
    if (!open(arguments, &sentence)) return false;
    if (table_ == nullptr) std::fprintf(stderr, "nic: %s\n", sentence.c_str());
    CHILD_CHECK(table_ != nullptr);
    return true;
  }
  // The same where it may be refused: then the sentence says why.
  bool open(const std::string& arguments, std::string* why) {
    Dl_info place{};
    CHILD_CHECK(dladdr(reinterpret_cast<const void*>(&haul_submit), &place) != 0);
    std::string path = place.dli_fname;
    path.resize(path.rfind('/') + 1);
    void* const plugin = dlopen((path + "libhaul-nic.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) return false;
    auto* const function = reinterpret_cast<haul::OpenDevice*>(dlsym(plugin, "haul_open_device"));
    char sentence[192] = {};
    table_ = function(arguments.c_str(), sentence, sizeof sentence);
    if (table_ == nullptr) *why = sentence;
    return true;
  }
  bool is_open() const { return table_ != nullptr; }
  const haul::DeviceTable& table() const { return *table_; }

  // One piece; what came of it.
  haul::Outcome copy(void* to, const void* from, std::size_t bytes, std::uint64_t region,
                     std::uint64_t source_region = 0) const {
    haul::Piece piece;
    piece.dst = reinterpret_cast<std::uintptr_t>(to);
    piece.src = reinterpret_cast<std::uintptr_t>(from);
    piece.length = piece.whole_bytes = bytes;
    piece.dst_region = region;
    piece.src_region = source_region;
    haul::Outcome outcome;
    const haul::Submitted answer = table_->submit(piece, 77, outcome);
    if (answer == haul::Submitted::finished) return outcome;
    if (answer == haul::Submitted::dead) return {0, haul::Code::io};
    CHILD_EQUAL(static_cast<int>(answer), static_cast<int>(haul::Submitted::accepted));
    haul::Finished finished[2];
    std::size_t count = 0;
    while (count == 0) count = table_->poll(0, finished, 2);
    CHILD_EQUAL(count, 1);
    CHILD_EQUAL(finished[0].tag, 77);
    return finished[0].outcome;
  }

 private:
  const haul::DeviceTable* table_ = nullptr;
};

// Memory of whole pages, the device's.
class Registered {
 public:
  Registered(const Device& device, std::size_t bytes) : device_(device), memory_(bytes) {
    const haul::Code code =
        device.table().pin(reinterpret_cast<std::uintptr_t>(memory_.data()), bytes, &region_);
    CHILD_EQUAL(static_cast<int>(code), static_cast<int>(haul::Code::ok));
    CHILD_CHECK(region_ != 0);
  }
  ~Registered() { device_.table().unpin(region_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  unsigned char* data() const { return memory_.data(); }
  std::size_t size() const { return memory_.size(); }
  std::uint64_t region() const { return region_; }

 private:
  const Device& device_;
  Buffer memory_;
  std::uint64_t region_ = 0;
};

// Pieces at odd places, at both ends of the region too; what lies around them stays. `from` is as
// long as the region, and registered where the device wants that.
inline void copy_between(const Device& device, const Registered& to, const unsigned char* from,
                         std::uint64_t source_region, unsigned turns) {
  static std::mt19937_64 random(6);
  for (unsigned turn = 0; turn < turns; ++turn) {
    std::memset(to.data(), 0, to.size());
    const std::size_t most = turn % 3 == 0 ? 600 : to.size();
    std::size_t length = 1 + random() % most, at = random() % (to.size() - length + 1);
    if (turn % 5 == 1) at = 0;
    if (turn % 5 == 2) at = to.size() - length;
    const std::size_t source = random() % (to.size() - length + 1);
    const haul::Outcome outcome =
        device.copy(to.data() + at, from + source, length, to.region(), source_region);
    CHILD_EQUAL(static_cast<int>(outcome.code), static_cast<int>(haul::Code::ok));
    CHILD_EQUAL(outcome.good_bytes, length);
    CHILD_EQUAL(std::memcmp(to.data() + at, from + source, length), 0);
    for (std::size_t i = 0; i < at; ++i) CHILD_EQUAL(to.data()[i], 0);
    for (std::size_t i = at + length; i < to.size(); ++i) CHILD_EQUAL(to.data()[i], 0);
  }
}

inline void copy_into(const Device& device, const Registered& to, unsigned most_turns) {
  const Buffer from(to.size());
  const unsigned turns = turns_here(most_turns);
  for (unsigned turn = 0; turn < turns; turn += 10) {
    from.fill(turn);
    copy_between(device, to, from.data(), 0, std::min(10u, turns - turn));
  }
}

}  // namespace e2e
