#include "python/src/sides/memory.hpp"

#include <haul/haul.h>

#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

// Freed with the object; whatever has its buffer (an array, a copy under way) keeps the object.
class MemoryObject {
 public:
  explicit MemoryObject(std::size_t bytes) : bytes_(bytes), data_(haul_alloc(bytes)) {
    if (data_ == nullptr) throw haul::error(bytes == 0 ? HAUL_EINVAL : HAUL_ENOMEM);
  }
  MemoryObject(const MemoryObject&) = delete;
  ~MemoryObject() { haul_free(data_); }

  int give(PyObject* self, Py_buffer* view, int flags) const {
    return PyBuffer_FillInfo(view, self, data_, static_cast<Py_ssize_t>(bytes_), 0, flags);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_;
};

int give_buffer(PyObject* self, Py_buffer* view, int flags) {
  return nb::inst_ptr<MemoryObject>(nb::handle(self))->give(self, view, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&give_buffer)}, {0, nullptr}};

}  // namespace

void define_memory(nb::module_& module) {
  nb::class_<MemoryObject>(
      module, "Memory", nb::type_slots(slots),
      "Memory(nbytes): zeroed, writable, page-aligned memory for the buffers of large copies.\n\n"
      "The node's service (`haul serve`) and MPI messages reach it at the speed of memory. It has "
      "the buffer\n"
      "protocol: memoryview(memory), numpy.frombuffer(memory, dtype). A child of fork shares it "
      "with its\n"
      "parent. nbytes: at least 1, taken in whole pages of 4096. Raises haul.Error where none is "
      "left.")
      .def(nb::init<std::size_t>(), nb::arg("nbytes"))
      .def_prop_ro("nbytes", &MemoryObject::bytes, "Its length in bytes, as it was asked for.")
      .def("__len__", &MemoryObject::bytes);
}

}  // namespace haul_python
