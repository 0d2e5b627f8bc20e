// Traces in one piece: of random contents that keep to the format's rules, and their comparison.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "format/chunk.hpp"

namespace bcisim::test {

// What a trace says; indices count from its beginning.
struct WholeTrace {
  std::vector<StaticInstruction> statics;
  Chunk contents;
};

class AnyContents {
 public:
  explicit AnyContents(unsigned seed) : random_(seed) {}

  StaticInstruction static_instruction() {
    StaticInstruction made;
    made.address = below(2) != 0 ? 0xffffffff81000000u + below(5000) : word();
    made.physical_page = word() >> 12;
    made.reads = word() >> 14;
    made.writes = below(4) == 0 ? word() >> 14 : 1u << below(17);
    made.steps = below(2) == 0 ? made.reads & made.writes : 0;
    made.bytes = static_cast<std::uint8_t>(1 + below(15));
    made.kind = static_cast<InstructionClass>(below(instruction_classes));
    return made;
  }

  // Of `statics` static instructions. Copies that it begins it ends.
  Chunk chunk(std::size_t instructions, std::uint32_t statics) {
    Chunk made;
    bool in_copy = false;
    std::uint32_t what = below(statics);
    for (std::uint32_t i = 0; i < instructions; ++i) {
      while (below(30) == 0) add_event(made, i, in_copy);
      what = below(4) == 0 ? below(statics) : (what + 1) % statics;
      DynamicInstruction instruction;
      instruction.what = what;
      instruction.first_reference = static_cast<std::uint32_t>(made.references.size());
      instruction.references =
          static_cast<std::uint8_t>(below(6) == 0 ? below(most_references + 1) : what % 3);
      instruction.taken = below(2) != 0;
      const std::uint32_t loads = below(instruction.references + 1u);
      for (std::uint32_t k = 0; k < instruction.references; ++k)
        made.references.push_back(reference(k >= loads));
      made.instructions.push_back(instruction);
    }
    const auto end = static_cast<std::uint32_t>(instructions);
    while (below(3) == 0) add_event(made, end, in_copy);
    if (in_copy) made.events.push_back({Event::Kind::copy_end, end, 0});
    return made;
  }

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  std::uint64_t word() { return random_(); }

 private:
  Reference reference(bool is_store) {
    Reference made;
    made.bytes = static_cast<std::uint16_t>(below(8) == 0 ? 1 + below(512) : 1u << below(6));
    made.address = below(3) == 0 ? word() : 0x7f0000000000u + 8 * below(100000);
    if (made.address % 4096 + made.bytes > 4096) made.address -= made.address % 4096;
    const std::uint64_t page = below(3) == 0 ? word() >> 12 : (made.address >> 12) % 999;
    made.physical = page * 4096 + made.address % 4096;
    made.is_store = is_store;
    return made;
  }

  std::vector<std::uint64_t> pages(std::uint64_t address, std::uint64_t bytes) {
    std::vector<std::uint64_t> made((address % 4096 + bytes + 4095) / 4096);
    for (std::uint64_t& page : made) page = word() >> (12 + below(50));
    return made;
  }

  void add_event(Chunk& to, std::uint32_t before, bool& in_copy) {
    Event event;
    event.before = before;
    switch (below(3)) {
      case 0: event.kind = Event::Kind::interrupt; break;
      case 1:
        event.index = static_cast<std::uint32_t>(to.devices.size());
        to.devices.push_back({word() >> 12, 1 + below(5000), below(2) != 0});
        break;
      default:
        event.kind = in_copy ? Event::Kind::copy_end : Event::Kind::copy_begin;
        if (!in_copy) {
          event.index = static_cast<std::uint32_t>(to.copies.size());
          to.copies.push_back(copy());
        }
        in_copy = !in_copy;
    }
    to.events.push_back(event);
  }

  CopyCall copy() {
    CopyCall call;
    call.kind = static_cast<CopyKind>(below(copy_kinds));
    call.site = below(5) == 0 ? word() : 0x1000 + below(10);
    call.bytes = 1 + below(20000);
    call.destination = word() >> 1;
    call.destination_pages = pages(call.destination, call.bytes);
    if (call.kind != CopyKind::fill) {
      call.source = word() >> 1;
      call.source_pages = pages(call.source, call.bytes);
    }
    return call;
  }

  std::mt19937_64 random_;
};

// Puts `chunk` behind `whole`.
inline void append(Chunk& whole, const Chunk& chunk) {
  const auto instructions = static_cast<std::uint32_t>(whole.instructions.size());
  const auto references = static_cast<std::uint32_t>(whole.references.size());
  const auto copies = static_cast<std::uint32_t>(whole.copies.size());
  const auto devices = static_cast<std::uint32_t>(whole.devices.size());
  for (DynamicInstruction instruction : chunk.instructions) {
    instruction.first_reference += references;
    whole.instructions.push_back(instruction);
  }
  for (Event event : chunk.events) {
    event.before += instructions;
    if (event.kind == Event::Kind::copy_begin) event.index += copies;
    if (event.kind == Event::Kind::device) event.index += devices;
    whole.events.push_back(event);
  }
  whole.references.insert(whole.references.end(), chunk.references.begin(), chunk.references.end());
  whole.copies.insert(whole.copies.end(), chunk.copies.begin(), chunk.copies.end());
  whole.devices.insert(whole.devices.end(), chunk.devices.begin(), chunk.devices.end());
}

inline bool same(const StaticInstruction& a, const StaticInstruction& b) {
  return a.address == b.address && a.physical_page == b.physical_page && a.reads == b.reads &&
         a.writes == b.writes && a.steps == b.steps && a.bytes == b.bytes && a.kind == b.kind;
}
inline bool same(const DynamicInstruction& a, const DynamicInstruction& b) {
  return a.what == b.what && a.first_reference == b.first_reference &&
         a.references == b.references && a.taken == b.taken;
}
inline bool same(const Reference& a, const Reference& b) {
  return a.address == b.address && a.physical == b.physical && a.bytes == b.bytes &&
         a.is_store == b.is_store;
}
inline bool same(const Event& a, const Event& b) {
  return a.kind == b.kind && a.before == b.before && a.index == b.index;
}
inline bool same(const CopyCall& a, const CopyCall& b) {
  return a.kind == b.kind && a.site == b.site && a.destination == b.destination &&
         a.source == b.source && a.bytes == b.bytes && a.destination_pages == b.destination_pages &&
         a.source_pages == b.source_pages;
}
inline bool same(const DeviceAccess& a, const DeviceAccess& b) {
  return a.physical == b.physical && a.bytes == b.bytes && a.writes == b.writes;
}

template <typename Thing>
void expect_same(const std::vector<Thing>& a, const std::vector<Thing>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(same(a[i], b[i])) << what << " " << i;
}
inline void expect_same(const WholeTrace& a, const WholeTrace& b) {
  expect_same(a.statics, b.statics, "static instruction");
  expect_same(a.contents.instructions, b.contents.instructions, "instruction");
  expect_same(a.contents.references, b.contents.references, "reference");
  expect_same(a.contents.events, b.contents.events, "event");
  expect_same(a.contents.copies, b.contents.copies, "copy");
  expect_same(a.contents.devices, b.contents.devices, "device access");
}

}  // namespace bcisim::test
