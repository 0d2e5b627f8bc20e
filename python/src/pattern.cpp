#include "python/src/pattern.hpp"

#include <cstring>
#include <string>

#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

// The struct module's format of one element; nullptr where it has none.
const char* format_of(const ItemType& type) {
  const auto by_size = [&](const char* one, const char* two, const char* four, const char* eight) {
    switch (type.bytes) {
      case 1: return one;
      case 2: return two;
      case 4: return four;
      case 8: return eight;
      default: return static_cast<const char*>(nullptr);
    }
  };
  switch (type.kind) {
    case 'B':
    case 'u': return by_size("<B", "<H", "<I", "<Q");
    case 'i': return by_size("<b", "<h", "<i", "<q");
    case 'f': return by_size(nullptr, "<e", "<f", "<d");
    case 'b': return by_size("<?", nullptr, nullptr, nullptr);
    default: return nullptr;
  }
}

Pattern pattern_of_bytes(nb::handle bytes) {
  const auto length = static_cast<std::size_t>(PyBytes_Size(bytes.ptr()));
  if (length != 1 && length != 2 && length != 4 && length != 8) {
    raise(PyExc_ValueError, "a pattern of " + std::to_string(length) +
                                " bytes cannot be filled with; pass 1, 2, 4 or 8");
  }
  Pattern pattern;
  pattern.bytes = static_cast<std::uint8_t>(length);
  std::memcpy(&pattern.word, PyBytes_AsString(bytes.ptr()), length);
  return pattern;
}

}  // namespace

Pattern read_pattern(nb::handle value, const ItemType& type) {
  if (PyBytes_Check(value.ptr())) return pattern_of_bytes(value);
  const char* format = format_of(type);
  if (format == nullptr) {
    raise(PyExc_TypeError, "haul does not know the bytes of a " + describe(type) +
                               "; pass the pattern as a bytes object");
  }
  try {
    return pattern_of_bytes(nb::module_::import_("struct").attr("pack")(format, value));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    const std::string cause = nb::str(error.value()).c_str();
    raise(PyExc_ValueError,
          "the destination holds " + describe(type) + ", which this value is not (" + cause + ")");
  }
}

}  // namespace haul_python
