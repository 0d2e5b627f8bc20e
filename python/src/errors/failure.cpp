#include "python/src/errors/failure.hpp"

namespace haul_python {
namespace {

const char* name_of(int code) {
  switch (code) {
    case HAUL_EINVAL: return "EINVAL";
    case HAUL_EAGAIN: return "EAGAIN";
    case HAUL_EFAULT: return "EFAULT";
    case HAUL_ENOMEM: return "ENOMEM";
    case HAUL_ESTALE: return "ESTALE";
    case HAUL_EPERM: return "EPERM";
    case HAUL_EPEER: return "EPEER";
    case HAUL_ENOTSUP: return "ENOTSUP";
    case HAUL_ETIMEDOUT: return "ETIMEDOUT";
    case HAUL_EIO: return "EIO";
    case HAUL_ECLOSED: return "ECLOSED";
    default: return "unknown";
  }
}

// The class lives as long as the interpreter: what is raised during its last moments still finds
// it.
PyObject* error_type = nullptr;

void set_python_error(const haul::error& failure) {
  nb::object error = nb::steal(PyObject_CallFunction(error_type, "s", failure.what()));
  if (!error.is_valid()) return;
  error.attr("code") = failure.code();
  error.attr("name") = name_of(failure.code());
  PyErr_SetObject(error_type, error.ptr());
}

}  // namespace

void raise(PyObject* type, const std::string& sentence) {
  PyErr_SetString(type, sentence.c_str());
  throw nb::python_error();
}

void let_signals_raise() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void use_errors() {
  nb::object type = nb::module_::import_("haul._errors").attr("Error");
  error_type = type.release().ptr();
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const haul::error& failure) {
      set_python_error(failure);
    }
  });
}

}  // namespace haul_python
