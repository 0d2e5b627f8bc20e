// Builds traces of a few instructions for tests, and plays them to a core (model/replay.hpp).
//
// Addresses are virtual; the physical ones behind them are `physical_offset` higher. Instructions
// have four bytes and lie one after the other from `code` on: 16 in a block of 64 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "format/chunk.hpp"
#include "model/bulk_copy.hpp"

namespace bcisim::test {

// Registers, as sets of one.
inline constexpr std::uint64_t r1 = 1U << 1, r2 = 1U << 2;

inline constexpr std::uint64_t physical_offset = 0x10000000;
inline constexpr std::uint64_t code = 0x400000;

// Some pages of data.
constexpr std::uint64_t data_page(unsigned i) {
  return 0x800000 + std::uint64_t{i} * page_bytes;
}

class MicroTrace {
 public:
  // A register's mask; none: 0.
  static constexpr std::uint64_t bit(unsigned register_number) {
    return std::uint64_t{1} << register_number;
  }

  MicroTrace& instruction(InstructionClass kind, std::uint64_t reads = 0, std::uint64_t writes = 0,
                          std::vector<Reference> references = {}, bool taken = false) {
    StaticInstruction what;
    what.address = next_;
    what.physical_page = (next_ + physical_offset) / page_bytes;
    what.reads = reads;
    what.writes = writes;
    what.bytes = 4;
    what.kind = kind;
    next_ += 4;
    items_.emplace_back(std::in_place_type<Executed>, Executed{what, std::move(references), taken});
    return *this;
  }
  // One cycle in a unit; without arguments it depends on nothing.
  MicroTrace& add(std::uint64_t reads = 0, std::uint64_t writes = 0) {
    return instruction(InstructionClass::simple, reads, writes);
  }
  MicroTrace& adds(unsigned count) {
    for (unsigned i = 0; i < count; ++i) add();
    return *this;
  }
  MicroTrace& multiply(std::uint64_t reads = 0, std::uint64_t writes = 0) {
    return instruction(InstructionClass::multiply, reads, writes);
  }
  MicroTrace& load(std::uint64_t address, std::uint64_t writes = 0, std::uint64_t reads = 0,
                   std::uint16_t bytes = 8) {
    return instruction(InstructionClass::simple, reads, writes, {reference(address, bytes, false)});
  }
  // A load that steps its address register.
  MicroTrace& pop(std::uint64_t address, std::uint64_t stepped, std::uint64_t writes = 0) {
    load(address, stepped | writes, stepped);
    std::get<Executed>(items_.back()).what.steps = stepped;
    return *this;
  }
  MicroTrace& store(std::uint64_t address, std::uint64_t reads = 0, std::uint16_t bytes = 8) {
    return instruction(InstructionClass::simple, reads, 0, {reference(address, bytes, true)});
  }
  MicroTrace& branch(bool taken, std::uint64_t reads = 0) {
    return instruction(InstructionClass::branch, reads, 0, {}, taken);
  }
  MicroTrace& jump() { return instruction(InstructionClass::jump, 0, 0, {}, true); }
  MicroTrace& fence() { return instruction(InstructionClass::fence); }
  MicroTrace& serialize() { return instruction(InstructionClass::serializing); }
  // The next instruction lies there.
  MicroTrace& at(std::uint64_t address) {
    next_ = address;
    return *this;
  }

  // bytes: 1 to a page.
  MicroTrace& copy(std::uint64_t destination, std::uint64_t source, unsigned bytes,
                   Affinities affinities = {}) {
    items_.emplace_back(bulk(destination, source, bytes, false, affinities));
    return *this;
  }
  MicroTrace& fill(std::uint64_t destination, unsigned bytes, Affinities affinities = {}) {
    items_.emplace_back(bulk(destination, 0, bytes, true, affinities));
    return *this;
  }
  MicroTrace& device(std::uint64_t address, std::uint64_t bytes, bool writes) {
    items_.emplace_back(std::in_place_type<DeviceAccess>,
                        DeviceAccess{address + physical_offset, bytes, writes});
    return *this;
  }
  MicroTrace& interrupt() {
    items_.emplace_back(std::in_place_type<Interrupt>);
    return *this;
  }

  // The L2 holds [address, address + bytes) at the beginning.
  MicroTrace& warm(std::uint64_t address, std::uint64_t bytes, bool dirty = false) {
    const std::uint64_t physical = address + physical_offset;
    for (std::uint64_t block = physical / 64; block <= (physical + bytes - 1) / 64; ++block) {
      checkpoint_.blocks.push_back({block, dirty});
    }
    return *this;
  }

  // Plays it, but does not finish. A fresh core only.
  template <class Core>
  void play(Core& core) const {
    if (!checkpoint_.blocks.empty()) core.warm(checkpoint_);
    for (const Item& item : items_) std::visit([&core](const auto& one) { give(core, one); }, item);
  }

  std::size_t size() const { return items_.size(); }

  // The bulk copies with their numbers in the order of instructions and copies, from 0.
  std::vector<std::pair<std::uint64_t, BulkCopy>> copies() const {
    std::vector<std::pair<std::uint64_t, BulkCopy>> all;
    std::uint64_t number = 0;
    for (const Item& item : items_) {
      if (const auto* const copy = std::get_if<BulkCopy>(&item); copy != nullptr) {
        all.emplace_back(number, *copy);
      }
      if (std::holds_alternative<BulkCopy>(item) || std::holds_alternative<Executed>(item))
        ++number;
    }
    return all;
  }

  static Reference reference(std::uint64_t address, std::uint16_t bytes, bool is_store) {
    return {address, address + physical_offset, bytes, is_store};
  }
  static BulkCopy bulk(std::uint64_t destination, std::uint64_t source, unsigned bytes,
                       bool is_fill, Affinities affinities) {
    BulkCopy copy;
    copy.is_fill = is_fill;
    copy.affinities = affinities;
    copy.destination = destination;
    copy.bytes = bytes;
    copy.destination_pages = pages(destination, bytes);
    if (!is_fill) {
      copy.source = source;
      copy.source_pages = pages(source, bytes);
    }
    return copy;
  }

 private:
  struct Executed {
    StaticInstruction what;
    std::vector<Reference> references;
    bool taken;
  };
  struct Interrupt {};
  using Item = std::variant<Executed, BulkCopy, DeviceAccess, Interrupt>;

  static std::array<std::uint64_t, 2> pages(std::uint64_t begin, unsigned bytes) {
    return {(begin + physical_offset) / page_bytes,
            (begin + bytes - 1 + physical_offset) / page_bytes};
  }
  template <class Core>
  static void give(Core& core, const Executed& one) {
    const DynamicInstruction dynamic{0, 0, static_cast<std::uint8_t>(one.references.size()),
                                     one.taken};
    core.execute(one.what, dynamic, one.references.data());
  }
  template <class Core>
  static void give(Core& core, const BulkCopy& one) {
    core.copy(one);
  }
  template <class Core>
  static void give(Core& core, const DeviceAccess& one) {
    core.device(one);
  }
  template <class Core>
  static void give(Core& core, const Interrupt&) {
    core.interrupt();
  }

  std::vector<Item> items_;
  Checkpoint checkpoint_;
  std::uint64_t next_ = code;
};

}  // namespace bcisim::test
