// The loops that the schemes vector_loop and rep_movs put in the place of a traced copy (paper 003,
// figure 1).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/bulk_copy.hpp"

namespace bcisim {

// Executes an instruction that refers to the bytes [offset, offset + bytes) of a region, with two
// references where these cross a page.
template <class Execute>
void execute_reference(const StaticInstruction& what, std::span<const std::uint64_t> pages,
                       std::uint64_t region, std::uint64_t offset, std::uint64_t bytes,
                       bool is_store, Execute&& execute) {
  std::array<Reference, 2> references;
  std::uint8_t count = 0;
  for (std::uint64_t at = region + offset, end = at + bytes; at != end;) {
    const std::uint64_t part = std::min(end - at, page_bytes - at % page_bytes);
    references[count++] = {at, physical_of(pages, region, at), static_cast<std::uint16_t>(part),
                           is_store};
    at += part;
  }
  execute(what, DynamicInstruction{0, 0, count, false}, references.data());
}

// Calls execute(static instruction, dynamic instruction, references) for each instruction of a loop
// that moves 16 bytes a turn: load, add, store, add, subtract, branch.
template <class Execute>
void vector_loop(const CopyCall& call, Execute&& execute) {
  constexpr std::uint64_t rcx = 1U << 1, rsi = 1U << 6, rdi = 1U << 7, flags = 1U << register_flags;
  constexpr std::uint64_t xmm0 = std::uint64_t{1} << register_vectors;
  // Where the call returns to is code that is here; a loop beside it is fetched as such.
  const auto at = [&call](unsigned offset, std::uint64_t reads, std::uint64_t writes,
                          InstructionClass kind) {
    return StaticInstruction{
        call.site + offset, (call.site + offset) / page_bytes, reads, writes, 4, kind, 0};
  };
  const StaticInstruction load = at(0, rsi, xmm0, InstructionClass::simple),
                          next_source = at(4, rsi, rsi | flags, InstructionClass::simple),
                          store = at(8, rdi | xmm0, 0, InstructionClass::simple),
                          next_destination = at(12, rdi, rdi | flags, InstructionClass::simple),
                          count = at(16, rcx, rcx | flags, InstructionClass::simple),
                          again = at(20, flags, 0, InstructionClass::branch);
  for (std::uint64_t done = 0; done < call.bytes; done += 16) {
    const std::uint64_t bytes = std::min<std::uint64_t>(16, call.bytes - done);
    if (call.kind != CopyKind::fill) {
      execute_reference(load, call.source_pages, call.source, done, bytes, false, execute);
      execute(next_source, DynamicInstruction{}, nullptr);
    }
    execute_reference(store, call.destination_pages, call.destination, done, bytes, true, execute);
    execute(next_destination, DynamicInstruction{}, nullptr);
    execute(count, DynamicInstruction{}, nullptr);
    execute(again, DynamicInstruction{0, 0, 0, done + 16 < call.bytes}, nullptr);
  }
}

// The same for an implicit loop: an operation that loads and one that stores for each 8 bytes, with
// no branches; their addresses come from one place, and nothing is fetched again.
template <class Execute>
void implicit_loop(const CopyCall& call, Execute&& execute) {
  constexpr std::uint64_t rsi = 1U << 6, rdi = 1U << 7,
                          scratch = std::uint64_t{1} << register_others;
  const std::uint64_t page = call.site / page_bytes;
  const StaticInstruction load{call.site, page, rsi, rsi | scratch, 2, InstructionClass::simple,
                               rsi},
      store{call.site, page, rdi | scratch, rdi, 2, InstructionClass::simple, rdi};
  for (std::uint64_t done = 0; done < call.bytes; done += 8) {
    const std::uint64_t bytes = std::min<std::uint64_t>(8, call.bytes - done);
    if (call.kind != CopyKind::fill)
      execute_reference(load, call.source_pages, call.source, done, bytes, false, execute);
    execute_reference(store, call.destination_pages, call.destination, done, bytes, true, execute);
  }
}

}  // namespace bcisim
