// The memory that a Python object names, held for as long as haul may use it.
#pragma once

#include <haul/haul.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <string>

#include "python/src/sides/extent.hpp"

namespace haul_python {

namespace nb = nanobind;

enum class SideAccess { read, write };

// What an element is, as far as two sides can be compared: raw bytes go with anything.
struct ItemType {
  char kind = 'B';  // B raw bytes, i, u, f, c, b (bool), or ? where only the others say it
  std::size_t bytes = 1;
  const char* format = nullptr;  // of ?; nullptr: it has DLPack's code
  unsigned code = 0;
  bool is_raw() const { return kind == 'B'; }
};
bool same_items(const ItemType& one, const ItemType& other);
std::string describe(const ItemType& type);
// What numpy calls it, such as "<f4"; empty where numpy may have no such type.
std::string numpy_name(const ItemType& type);

// An object's memory through the buffer protocol, through DLPack, or (haul.Extent) another space's.
// While an Export lives, its object cannot give the memory back: a bytearray refuses to change its
// size, a memoryview to be released. Made and destroyed with the GIL held.
class Export {
 public:
  // `role` is "source" or "destination", for the sentences. Raises TypeError where the object
  // exports nothing, ValueError where it may not be written.
  Export(nb::handle object, SideAccess access, const char* role);
  Export(Export&& other) noexcept;
  Export& operator=(Export&&) = delete;
  ~Export();

  haul_space space() const { return space_; }
  // The first element's address.
  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int dimensions() const { return dimensions_; }
  // Elements along a dimension, and the bytes from one to the next.
  Py_ssize_t length(int dimension) const;
  Py_ssize_t stride(int dimension) const;
  // Row-major without gaps, and column-major without gaps.
  bool is_c_contiguous() const { return c_contiguous_; }
  bool is_f_contiguous() const;
  ItemType items() const;

 private:
  void take_buffer(nb::handle object, SideAccess access, const char* role);
  bool get_dates(nb::handle object);
  void take_dlpack(nb::handle object, SideAccess access, const char* role);
  bool contiguous(bool rows_first) const;

  haul_space space_ = HAUL_SPACE_SELF;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t item_bytes_ = 1;
  int dimensions_ = 1;
  bool c_contiguous_ = true;
  bool read_only_ = false;
  bool has_view_ = false;
  Py_buffer view_;
  std::optional<nb::ndarray<nb::ro>> tensor_;
  nb::object kept_;
  std::string type_name_;  // of what has no format
};

}  // namespace haul_python
