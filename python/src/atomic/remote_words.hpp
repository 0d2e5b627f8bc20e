// haul.atomic's nodes, windows and connections.
#pragma once

#include <nanobind/nanobind.h>

#include <haul/atomic.hpp>
#include <memory>
#include <string>

namespace haul_python {

namespace nb = nanobind;

// A node is closed with the last object that needs it: connections and locks keep it open.
struct NodeObject {
  std::shared_ptr<haul::atomic::node> node;
  // Raises ValueError once it is closed.
  const std::shared_ptr<haul::atomic::node>& open() const;
};

// A window's memory is exported as a buffer, and stays mapped for as long as anything has it.
class WindowObject {
 public:
  explicit WindowObject(haul::atomic::window window) : window_(std::move(window)) {}
  const haul::atomic::window& window() const { return window_; }
  std::string name() const { return haul::atomic::to_string(window_.name()); }

 private:
  haul::atomic::window window_;
};

// Calls what may wait for the network, without the GIL.
template <class Call>
auto without_gil(Call call) {
  nb::gil_scoped_release released;
  return call();
}

void define_remote_words(nb::module_& module);

}  // namespace haul_python
