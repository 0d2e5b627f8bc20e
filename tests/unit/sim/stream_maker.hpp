// Raw streams (trace/stream.h) made by hand.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

#include "format/bytes.hpp"
#include "trace/stream.h"

namespace bcisim::test {

// Where device registers are.
inline constexpr std::uint64_t io = ~std::uint64_t{0};

class StreamMaker {
 public:
  StreamMaker() {
    for (const char letter : std::string(BCISIM_STREAM_MAGIC))
      bytes_.push_back(static_cast<std::uint8_t>(letter));
    put_fixed(bytes_, std::uint32_t{BCISIM_STREAM_VERSION});
  }

  // Executes an instruction of this machine code; a place is declared once.
  StreamMaker& at(std::uint64_t address, std::initializer_list<std::uint8_t> machine_code) {
    const auto [found, is_new] = ids_.try_emplace(address, static_cast<std::uint32_t>(ids_.size()));
    if (is_new) {
      bytes_.push_back(BCISIM_STATIC);
      put_fixed(bytes_, found->second);
      put_fixed(bytes_, address);
      put_fixed(bytes_, address & 0xffffffff);
      bytes_.push_back(static_cast<std::uint8_t>(machine_code.size()));
      bytes_.insert(bytes_.end(), machine_code);
    }
    bytes_.push_back(BCISIM_EXEC);
    put_fixed(bytes_, found->second);
    ++executed_;
    return *this;
  }
  StreamMaker& refer(std::uint64_t address, std::uint16_t bytes, bool store,
                     std::uint64_t physical) {
    bytes_.push_back(BCISIM_MEMORY);
    put_fixed(bytes_, address);
    put_fixed(bytes_, physical);
    put_fixed(bytes_, bytes);
    bytes_.push_back(store ? 1 : 0);
    return *this;
  }
  StreamMaker& load(std::uint64_t address, std::uint16_t bytes = 8) {
    return refer(address, bytes, false, physical_of(address));
  }
  StreamMaker& store(std::uint64_t address, std::uint16_t bytes = 8) {
    return refer(address, bytes, true, physical_of(address));
  }
  // What QEMU's processor refers to when it enters a handler from user code (with the stack's
  // address) or from the kernel.
  StreamMaker& enter(bool from_user, unsigned pushed) {
    for (unsigned i = 0; i < 3; ++i) load(0xfffffe00000002b0 + 4 * i, 4);
    for (unsigned i = 0; i < 2; ++i) load(0xfffffe0000001010 + 4 * i, 4);
    if (from_user) load(0xfffffe0000003004);
    for (unsigned i = 1; i <= pushed; ++i) store(0xffffc90000008000 - 8 * i);
    return *this;
  }
  StreamMaker& device(std::uint64_t physical, std::uint32_t bytes, bool wrote) {
    bytes_.push_back(BCISIM_DEVICE);
    put_fixed(bytes_, physical);
    put_fixed(bytes_, bytes);
    bytes_.push_back(wrote ? 1 : 0);
    return *this;
  }
  Bytes end() const {
    Bytes whole = bytes_;
    whole.push_back(BCISIM_END);
    put_fixed(whole, executed_);
    return whole;
  }

  static std::uint64_t physical_of(std::uint64_t address) { return address & 0xffffffffff; }

 private:
  Bytes bytes_;
  std::map<std::uint64_t, std::uint32_t> ids_;
  std::uint64_t executed_ = 0;
};

}  // namespace bcisim::test
