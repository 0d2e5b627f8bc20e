// How a failure of haul's becomes an exception of Python's: haul::error becomes haul.Error, with
// its code and sentence. (A thread has one latest sentence, so it may be thrown after the GIL was
// taken again.)
#pragma once

#include <nanobind/nanobind.h>

#include <haul/haul.hpp>
#include <string>

namespace haul_python {

namespace nb = nanobind;

// Raises a built-in exception of Python's, such as PyExc_ValueError.
[[noreturn]] void raise(PyObject* type, const std::string& sentence);

// Raises what a signal's handler has raised (KeyboardInterrupt); needs the GIL.
void let_signals_raise();

// Has a module of the package raise haul.Error (python/haul/_errors.py).
void use_errors();

}  // namespace haul_python
