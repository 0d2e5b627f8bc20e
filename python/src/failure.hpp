// How a failure of haul's becomes an exception of Python's: haul.Error, with the code and the
// sentence.
#pragma once

#include <haul/haul.h>
#include <nanobind/nanobind.h>

namespace haul_python {

namespace nb = nanobind;

// Thrown by C++ code of this module; the translator that define_errors() registers raises
// haul.Error. It is to be made on the thread whose call failed, before that thread's next call of
// haul.
class Failure : public std::exception {
 public:
  explicit Failure(int code);
  Failure(int code, std::string sentence) : code_(code), sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }
  int code() const noexcept { return code_; }

 private:
  int code_;
  std::string sentence_;
};

// Throws Failure where `result` is negative, else returns it.
inline int check(int result) {
  if (result < 0) throw Failure(result);
  return result;
}

// Raises a built-in exception of Python's, such as PyExc_ValueError.
[[noreturn]] void raise(PyObject* type, const std::string& sentence);

// Raises what Python has pending where a signal's handler has raised (KeyboardInterrupt); needs the
// GIL.
void let_signals_raise();

// Defines haul.Error in the module.
void define_errors(nb::module_& module);

}  // namespace haul_python
