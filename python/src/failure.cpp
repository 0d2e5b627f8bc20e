#include "failure.hpp"

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

std::string sentence_of(int code) {
  const char* last = haul_last_error();
  return last[0] != '\0' ? last : haul_strerror(code);
}

// The class lives as long as the interpreter: what is raised during its last moments still finds
// it.
PyObject* error_type = nullptr;

void set_python_error(const Failure& failure) {
  nb::object error = nb::steal(PyObject_CallFunction(error_type, "s", failure.what()));
  if (!error.is_valid()) return;
  error.attr("code") = failure.code();
  error.attr("name") = name_of(failure.code());
  PyErr_SetObject(error_type, error.ptr());
}

}  // namespace

Failure::Failure(int code) : Failure(code, sentence_of(code)) {}

void raise(PyObject* type, const std::string& sentence) {
  PyErr_SetString(type, sentence.c_str());
  throw nb::python_error();
}

void let_signals_raise() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void define_errors(nb::module_& module) {
  error_type = PyErr_NewExceptionWithDoc(
      "haul.Error",
      "What haul could not do. str(error) is one sentence with cause and remedy, error.code the "
      "negative\n"
      "HAUL_E* number of haul.h, error.name its name without the prefix, such as \"ENOTSUP\".",
      PyExc_RuntimeError, nullptr);
  if (error_type == nullptr) throw nb::python_error();
  nb::object type = nb::borrow(error_type);
  type.attr("code") = 0;
  type.attr("name") = "";
  module.attr("Error") = type;
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      set_python_error(failure);
    }
  });
}

}  // namespace haul_python
