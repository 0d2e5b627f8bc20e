#include "python/src/sides/export.hpp"

#include <cstring>

#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

// A struct-module format of one native element, without its byte order; 0 where it is of several or
// of another kind.
char element_code(const char* format) {
  if (format == nullptr) return 'B';
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  return format[0] != '\0' && format[1] == '\0' ? format[0] : '\0';
}

// Fields' names stand between colons, and may have any letters.
bool holds_objects(const char* format) {
  bool in_name = false;
  for (; format != nullptr && *format != '\0'; ++format) {
    if (*format == ':') in_name = !in_name;
    if (*format == 'O' && !in_name) return true;
  }
  return false;
}

ItemType type_of_format(const char* format, std::size_t bytes) {
  ItemType type{'?', bytes, format};
  switch (element_code(format)) {
    case 'B':
    case 'c': type.kind = bytes == 1 ? 'B' : 'u'; break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': type.kind = 'i'; break;
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': type.kind = 'u'; break;
    case 'e':
    case 'f':
    case 'd':
    case 'g': type.kind = 'f'; break;
    case '?': type.kind = 'b'; break;
    default:
      if (format != nullptr && format[0] == 'Z' && format[1] != '\0' && format[2] == '\0')
        type.kind = 'c';
  }
  return type;
}

ItemType type_of_tensor(const nb::dlpack::dtype& dtype) {
  const std::size_t bytes = (std::size_t{dtype.bits} * dtype.lanes + 7) / 8;
  switch (static_cast<nb::dlpack::dtype_code>(dtype.code)) {
    case nb::dlpack::dtype_code::Int: return {'i', bytes};
    case nb::dlpack::dtype_code::UInt: return {bytes == 1 ? 'B' : 'u', bytes};
    case nb::dlpack::dtype_code::Float: return {'f', bytes};
    case nb::dlpack::dtype_code::Complex: return {'c', bytes};
    case nb::dlpack::dtype_code::Bool: return {'b', bytes};
    default: return {'?', bytes, nullptr, dtype.code};
  }
}

// What the object's own __dlpack__() gives. (nanobind would get a tensor elsewhere where that
// refuses, such as one of which torch says that its numbers are to be conjugated when they are
// read.)
nb::object capsule_of(nb::handle object, const char* role) {
  const nb::object method = object.attr("__dlpack__");
  try {
    try {
      return method(nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (const nb::python_error& refused) {
      if (!refused.matches(PyExc_TypeError)) throw;
    }
    return method();  // of a version that has no versions
  } catch (nb::python_error& refused) {
    if (!refused.matches(PyExc_Exception) || refused.matches(PyExc_MemoryError)) throw;
    const std::string reason = nb::str(refused.value()).c_str();
    nb::raise_from(refused,
                   refused.matches(PyExc_BufferError) ? PyExc_BufferError : PyExc_TypeError,
                   "the %s cannot be exported by its __dlpack__(): %s; pass another view of it, or "
                   "a copy",
                   role, reason.c_str());
  }
}

constexpr int device_cpu = nb::device::cpu::value;
constexpr int device_cuda = nb::device::cuda::value;
constexpr int device_cuda_host = nb::device::cuda_host::value;

}  // namespace

bool same_items(const ItemType& one, const ItemType& other) {
  if (one.is_raw() || other.is_raw()) return true;
  if (one.bytes != other.bytes || one.kind != other.kind) return false;
  if (one.kind != '?') return true;
  if (one.format == nullptr || other.format == nullptr)
    return one.format == other.format && one.code == other.code;
  return std::strcmp(one.format, other.format) == 0;
}

std::string describe(const ItemType& type) {
  switch (type.kind) {
    case 'B': return "bytes";
    case 'i': return "int" + std::to_string(type.bytes * 8);
    case 'u': return "uint" + std::to_string(type.bytes * 8);
    case 'f': return "float" + std::to_string(type.bytes * 8);
    case 'c': return "complex" + std::to_string(type.bytes * 8);
    case 'b': return "bool";
    default: break;
  }
  if (type.format != nullptr) return type.format;
  if (type.code == static_cast<unsigned>(nb::dlpack::dtype_code::Bfloat)) return "bfloat16";
  return "a type of " + std::to_string(type.bytes) + " bytes with DLPack's code " +
         std::to_string(type.code);
}

std::string numpy_name(const ItemType& type) {
  switch (type.kind) {
    case 'B': return "|u1";
    case 'b': return "|b1";
    case 'i':
    case 'u':
    case 'f':
    case 'c':
      return (type.bytes == 1 ? "|" : "<") + std::string(1, type.kind) + std::to_string(type.bytes);
    default: return "";
  }
}

Export::Export(nb::handle object, SideAccess access, const char* role) {
  if (PyObject_CheckBuffer(object.ptr())) {
    take_buffer(object, access, role);
  } else if (nb::isinstance<ExtentObject>(object)) {
    const ExtentObject& extent = nb::cast<const ExtentObject&>(object);
    space_ = extent.space->handle();
    data_ = reinterpret_cast<char*>(extent.address);
    bytes_ = extent.bytes;
    kept_ = nb::borrow(object);
  } else if (nb::hasattr(object, "__dlpack__")) {
    take_dlpack(object, access, role);
  } else {
    raise(
        PyExc_TypeError,
        std::string("the ") + role + " is a " + nb::type_name(object.type()).c_str() +
            "; pass an object with the buffer protocol or __dlpack__ (an array, a tensor, bytes, a "
            "memoryview), a haul.Extent, or a list of these");
  }
  if (read_only_ && access == SideAccess::write) {
    if (has_view_) PyBuffer_Release(&view_);  // no destructor runs after a raise
    raise(PyExc_ValueError,
          "the destination is read-only; pass a writable buffer, such as a bytearray or an array "
          "with flags.writeable");
  }
}

// numpy gives times and dates no format, and buffers of them only without. Other types without a
// format (strings of any length) keep their data elsewhere.
bool Export::get_dates(nb::handle object) {
  nb::object dtype = nb::getattr(object, "dtype", nb::none());
  const std::string kind = nb::str(nb::getattr(dtype, "kind", nb::none())).c_str();
  if (kind != "m" && kind != "M") return false;
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDES) != 0) throw nb::python_error();
  type_name_ = nb::str(dtype.attr("str")).c_str();
  return true;
}

void Export::take_buffer(nb::handle object, SideAccess access, const char* role) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
    const nb::python_error refused;
    if (!get_dates(object)) {
      // (An array on a GPU may have a buffer that it never gives.)
      if (!refused.matches(PyExc_BufferError) || !nb::hasattr(object, "__dlpack__")) throw refused;
      take_dlpack(object, access, role);
      return;
    }
  }
  if (holds_objects(view_.format)) {
    PyBuffer_Release(&view_);
    raise(PyExc_TypeError, std::string("the ") + role +
                               " holds Python objects, whose references no copy of bytes counts; "
                               "pass an array of numbers or bytes");
  }
  has_view_ = true;
  data_ = static_cast<char*>(view_.buf);
  bytes_ = static_cast<std::size_t>(view_.len);
  item_bytes_ = static_cast<std::size_t>(view_.itemsize);
  dimensions_ = view_.ndim;
  read_only_ = view_.readonly != 0;
  c_contiguous_ = contiguous(true);
}

void Export::take_dlpack(nb::handle object, SideAccess access, const char* role) {
  nb::ndarray<nb::ro> tensor;
  if (!nb::try_cast(capsule_of(object, role), tensor)) {
    raise(PyExc_TypeError,
          std::string("the ") + role + "'s __dlpack__() gives no tensor that can be read");
  }
  if (access == SideAccess::write) {
    nb::ndarray<> writable;
    read_only_ = !nb::try_cast(capsule_of(object, role), writable);
  }
  tensor_ = std::move(tensor);
  if (tensor_->device_type() == device_cuda) {
    space_ = device_space(tensor_->device_id());
  } else if (tensor_->device_type() != device_cpu && tensor_->device_type() != device_cuda_host) {
    raise(PyExc_ValueError, std::string("the ") + role + " lies on a device of DLPack's type " +
                                std::to_string(tensor_->device_type()) +
                                "; haul reaches memory of the CPU and of CUDA");
  }
  data_ = static_cast<char*>(const_cast<void*>(tensor_->data()));
  item_bytes_ = tensor_->itemsize();
  bytes_ = tensor_->nbytes();
  dimensions_ = static_cast<int>(tensor_->ndim());
  kept_ = nb::borrow(object);
  c_contiguous_ = contiguous(true);
}

// What a buffer without shape or strides points to is in its own structure.
Export::Export(Export&& other) noexcept
    : space_(other.space_),
      data_(other.data_),
      bytes_(other.bytes_),
      item_bytes_(other.item_bytes_),
      dimensions_(other.dimensions_),
      c_contiguous_(other.c_contiguous_),
      read_only_(other.read_only_),
      has_view_(other.has_view_),
      tensor_(std::move(other.tensor_)),
      kept_(std::move(other.kept_)),
      type_name_(std::move(other.type_name_)) {
  if (!has_view_) return;
  view_ = other.view_;
  if (view_.shape == &other.view_.len) view_.shape = &view_.len;
  if (view_.strides == &other.view_.itemsize) view_.strides = &view_.itemsize;
  other.has_view_ = false;
}

Export::~Export() {
  if (has_view_) PyBuffer_Release(&view_);
}

Py_ssize_t Export::length(int dimension) const {
  if (tensor_) return static_cast<Py_ssize_t>(tensor_->shape(static_cast<std::size_t>(dimension)));
  if (has_view_ && view_.shape != nullptr) return view_.shape[dimension];
  return static_cast<Py_ssize_t>(bytes_ / item_bytes_);
}

Py_ssize_t Export::stride(int dimension) const {
  if (tensor_) {
    return static_cast<Py_ssize_t>(tensor_->stride(static_cast<std::size_t>(dimension))) *
           static_cast<Py_ssize_t>(item_bytes_);
  }
  if (has_view_ && view_.strides != nullptr) return view_.strides[dimension];
  return static_cast<Py_ssize_t>(item_bytes_);
}

bool Export::contiguous(bool rows_first) const {
  if (bytes_ == 0) return true;
  auto expected = static_cast<Py_ssize_t>(item_bytes_);
  for (int i = 0; i < dimensions_; ++i) {
    const int dimension = rows_first ? dimensions_ - 1 - i : i;
    if (length(dimension) != 1 && stride(dimension) != expected) return false;
    expected *= length(dimension);
  }
  return true;
}

bool Export::is_f_contiguous() const {
  return contiguous(false);
}

ItemType Export::items() const {
  if (tensor_) return type_of_tensor(tensor_->dtype());
  if (!has_view_) return {};
  if (!type_name_.empty()) return {'?', item_bytes_, type_name_.c_str()};
  return type_of_format(view_.format, item_bytes_);
}

}  // namespace haul_python
