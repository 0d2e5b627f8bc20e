#include "python/src/sides/side.hpp"

#include <algorithm>

#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

// A stretch costs haul about as much as copying so many bytes.
constexpr std::size_t smallest_stretch_bytes = 64;

haul_extent extent_of(const Export& memory, char* address, std::size_t bytes) {
  return {memory.space(), 0, address, bytes};
}

// The innermost dimensions that lie without gaps make a stretch; the others are walked.
void add_stretches(const Export& memory, std::vector<haul_extent>& pieces) {
  int outer = memory.dimensions();
  auto stretch = memory.bytes();
  for (int i = 0; i < memory.dimensions(); ++i)
    stretch /= static_cast<std::size_t>(memory.length(i));
  while (outer > 0 && (memory.length(outer - 1) == 1 ||
                       memory.stride(outer - 1) == static_cast<Py_ssize_t>(stretch))) {
    --outer;
    stretch *= static_cast<std::size_t>(memory.length(outer));
  }
  if (stretch < smallest_stretch_bytes) {
    raise(PyExc_ValueError,
          "the source lies in stretches of " + std::to_string(stretch) +
              " bytes, which haul does not gather (from " + std::to_string(smallest_stretch_bytes) +
              " on it does); pass a contiguous copy, as by numpy.ascontiguousarray()");
  }
  std::vector<Py_ssize_t> at(static_cast<std::size_t>(outer), 0);
  char* address = memory.data();
  for (;;) {
    pieces.push_back(extent_of(memory, address, stretch));
    int dimension = outer - 1;
    for (; dimension >= 0; --dimension) {
      const auto i = static_cast<std::size_t>(dimension);
      address += memory.stride(dimension);
      if (++at[i] < memory.length(dimension)) break;
      address -= memory.stride(dimension) * at[i];
      at[i] = 0;
    }
    if (dimension < 0) return;
  }
}

// Extents are as long as they say, so that many of them may have more bytes than can be counted.
void add_memory(Export memory, CopySide& side) {
  if (__builtin_add_overflow(side.bytes, memory.bytes(), &side.bytes))
    raise(PyExc_ValueError, "the sides' pieces have 2**64 bytes or more; pass fewer");
  side.memory.push_back(std::move(memory));
}

void add_source(Export memory, bool as_it_lies, CopySide& side) {
  if (memory.bytes() > 0) {
    if (memory.is_c_contiguous() || as_it_lies) {
      side.pieces.push_back(extent_of(memory, memory.data(), memory.bytes()));
    } else {
      add_stretches(memory, side.pieces);
    }
  }
  add_memory(std::move(memory), side);
}

void add_destination(Export memory, CopySide& side) {
  if (!memory.is_c_contiguous()) {
    raise(PyExc_ValueError,
          "the destination is not contiguous; pass a C-contiguous array, and copy from there");
  }
  if (memory.bytes() > 0) side.pieces.push_back(extent_of(memory, memory.data(), memory.bytes()));
  add_memory(std::move(memory), side);
}

bool is_list(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

struct PieceRange {
  char* begin;
  char* end;
  bool written;
  haul_space space;
};

void add_ranges(const CopySide& side, bool written, std::vector<PieceRange>& ranges) {
  for (const haul_extent& piece : side.pieces) {
    char* begin = static_cast<char*>(piece.address);
    ranges.push_back({begin, begin + piece.length, written, piece.space});
  }
}

[[noreturn]] void refuse_sizes(std::size_t dst, std::size_t src) {
  raise(PyExc_ValueError, "the destination has " + std::to_string(dst) + " bytes and the source " +
                              std::to_string(src) + "; pass sides of the same size");
}

void check_items(const ItemType& dst, const ItemType& src) {
  if (same_items(dst, src)) return;
  raise(PyExc_TypeError,
        "the destination holds " + describe(dst) + " and the source " + describe(src) +
            ", and haul does not convert; view one side as the other's type, or as bytes");
}

}  // namespace

CopySide read_source(nb::handle object) {
  CopySide side;
  if (is_list(object)) {
    for (nb::handle each : nb::borrow<nb::sequence>(object))
      add_source(Export(each, SideAccess::read, "source"), false, side);
  } else {
    add_source(Export(object, SideAccess::read, "source"), false, side);
  }
  return side;
}

CopySide read_destination(nb::handle object) {
  CopySide side;
  if (is_list(object)) {
    for (nb::handle each : nb::borrow<nb::sequence>(object)) {
      add_destination(Export(each, SideAccess::write, "destination"), side);
    }
  } else {
    add_destination(Export(object, SideAccess::write, "destination"), side);
  }
  return side;
}

CopySide destination_of(Export memory) {
  CopySide side;
  add_destination(std::move(memory), side);
  return side;
}

CopySide source_of(Export memory, bool as_it_lies) {
  CopySide side;
  add_source(std::move(memory), as_it_lies, side);
  return side;
}

void check_match(const Export& dst, const Export& src) {
  if (dst.bytes() != src.bytes()) refuse_sizes(dst.bytes(), src.bytes());
  check_items(dst.items(), src.items());
}

// Whose bytes meet is compared, however the two lists are cut.
void check_match(const CopySide& dst, const CopySide& src) {
  if (dst.bytes != src.bytes) refuse_sizes(dst.bytes, src.bytes);
  std::size_t at = 0;
  std::size_t behind = 0;  // how many bytes of src.memory[at] are matched already
  for (const Export& memory : dst.memory) {
    for (std::size_t left = memory.bytes(); left > 0;) {
      const std::size_t met = std::min(left, src.memory[at].bytes() - behind);
      if (met > 0) check_items(memory.items(), src.memory[at].items());
      left -= met;
      behind += met;
      if (behind == src.memory[at].bytes()) {
        ++at;
        behind = 0;
      }
    }
  }
}

void check_apart(const CopySide& dst, const CopySide& src) {
  if (dst.pieces.size() <= 1 && src.pieces.size() <= 1) return;
  std::vector<PieceRange> ranges;
  add_ranges(dst, true, ranges);
  add_ranges(src, false, ranges);
  std::sort(ranges.begin(), ranges.end(), [](const PieceRange& one, const PieceRange& other) {
    return one.space != other.space ? one.space < other.space : one.begin < other.begin;
  });
  // Of the ranges so far, how far the written ones reach, and all of them.
  char* written_end = nullptr;
  char* end = nullptr;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const PieceRange& range = ranges[i];
    if (i > 0 && range.space != ranges[i - 1].space) written_end = end = nullptr;
    if (range.begin < (range.written ? end : written_end)) {
      raise(PyExc_ValueError,
            "pieces of the destination overlap each other or the source; a copy in pieces has no "
            "order, so copy to other memory first");
    }
    end = std::max(end, range.end);
    if (range.written) written_end = std::max(written_end, range.end);
  }
}

bool both_column_major(const Export& dst, const Export& src) {
  if (dst.dimensions() != src.dimensions() || !dst.is_f_contiguous() || !src.is_f_contiguous())
    return false;
  for (int i = 0; i < dst.dimensions(); ++i) {
    if (dst.length(i) != src.length(i)) return false;
  }
  return true;
}

}  // namespace haul_python
