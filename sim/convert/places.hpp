// The instructions of a raw stream, each place once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "convert/copy_routines.hpp"
#include "convert/machine_code.hpp"
#include "convert/stream_reader.hpp"

namespace bcisim {

struct Place {
  static constexpr std::uint32_t none = 0xffffffff;

  MachineCode code;
  Routine routine = Routine::none;
  // Indices in the trace, once it was executed: as it is, and with a reference to a device's
  // register.
  std::uint32_t index = none, io_index = none;

  std::uint64_t address() const { return code.instruction.address; }
  std::uint64_t behind() const { return code.instruction.address + code.instruction.bytes; }
};

// A tracer gives an instruction a new id whenever it translates it again; here they meet.
class Places {
 public:
  explicit Places(const CopyRoutines& routines) : routines_(routines) {}

  // Of BCISIM_STATIC records, in order.
  void add(const StreamRecord& record);

  std::uint32_t number_of(std::uint32_t id) const { return numbers_[id]; }
  Place& operator[](std::uint32_t number) { return places_[number]; }

 private:
  struct Key {
    std::uint64_t address = 0, physical_page = 0;
    std::array<std::uint8_t, 16> code{};  // the last byte: its length

    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  const CopyRoutines& routines_;
  std::vector<std::uint32_t> numbers_;  // by id
  std::vector<Place> places_;
  std::unordered_map<Key, std::uint32_t, Hash> known_;
};

}  // namespace bcisim
