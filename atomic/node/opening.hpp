// Opens a node's responder and carrier: the one place that tells the kinds apart.
#pragma once

#include <haul/atomic.h>

#include "atomic/client/carrier.hpp"
#include "atomic/node/specification.hpp"
#include "atomic/responder/no_responder.hpp"
#include "base/error.hpp"

namespace haul::atomics {

struct NodeParts {
  NodeParts() noexcept = default;
  ~NodeParts();
  NodeParts(const NodeParts&) = delete;
  NodeParts& operator=(const NodeParts&) = delete;

  NoResponder nobody;
  Responder* responder = &nobody;
  Carrier* carrier = nullptr;
  haul_atomic_window_name name{};  // host and port; what windows' names begin with
  char description[256] = {};      // one line: who serves, how, and why not as asked
};

// Fills *parts in. False and *error: the node cannot be opened.
bool open_parts(const Specification& specification, const haul_atomic_node_options& options,
                NodeParts* parts, Error* error) noexcept;

}  // namespace haul::atomics
