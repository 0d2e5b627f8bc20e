// haul.atomic's nodes, windows and connections.
#pragma once

#include <nanobind/nanobind.h>

#include <haul/atomic.hpp>
#include <memory>
#include <string>

namespace haul_python {

namespace nb = nanobind;

// Closing a node waits for its thread, so whoever drops the last one lets go of the GIL for it.
using SharedNode = std::shared_ptr<haul::atomic::node>;

// A node is closed with the last object that needs it: connections keep it open.
class NodeObject {
 public:
  explicit NodeObject(SharedNode node) : node_(std::move(node)) {}
  // Raises ValueError once it is closed. Needs the GIL, as close() does.
  SharedNode open() const;
  void close();

 private:
  SharedNode node_;
  mutable nb::ft_mutex mutex_;
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

void define_remote_words(nb::module_& module);

}  // namespace haul_python
