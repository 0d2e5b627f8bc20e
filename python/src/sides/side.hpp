// One side of a request: the memory of one Python object, or of a list of them, as haul's extents.
#pragma once

#include <haul/haul.h>
#include <nanobind/nanobind.h>

#include <vector>

#include "python/src/sides/export.hpp"

namespace haul_python {

// The pieces are in the elements' logical (row-major) order.
struct CopySide {
  std::vector<haul_extent> pieces;
  std::vector<Export> memory;
  std::size_t bytes = 0;
};

// Reads an object, or a list or tuple of objects. A source may have gaps (a slice of columns), if
// its stretches without gaps are not tiny; a destination may not. Raises as Export, and ValueError
// for gaps.
CopySide read_source(nb::handle object);
CopySide read_destination(nb::handle object);

// As above for an Export that is there already; for sources, `as_it_lies` takes the bytes in the
// order of addresses.
CopySide destination_of(Export memory);
CopySide source_of(Export memory, bool as_it_lies);

// Raises ValueError where the sides differ in size, TypeError where their elements are of different
// types.
void check_match(const Export& dst, const Export& src);
void check_match(const CopySide& dst, const CopySide& src);

// Raises ValueError where pieces of `dst` overlap each other, or pieces of `src`.
void check_apart(const CopySide& dst, const CopySide& src);

// True for a column-major pair of one shape: their bytes may be taken as they lie.
bool both_column_major(const Export& dst, const Export& src);

}  // namespace haul_python
