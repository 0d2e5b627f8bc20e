#include "cli/remote/atomic_handles.hpp"

#include "tools/failure.hpp"

namespace haul::cli {

void require_atomic(int code) {
  if (code < 0) throw tools::CommandFailure(haul_last_error());
}

AtomicNode::AtomicNode(const std::string& responder, const haul_atomic_node_options& options) {
  require_atomic(
      haul_atomic_node_open(responder.c_str(), options.size != 0 ? &options : nullptr, &node_));
}

AtomicNode::~AtomicNode() {
  haul_atomic_node_close(node_);
}

std::string AtomicNode::description() const {
  char text[512];
  require_atomic(haul_atomic_node_describe(node_, text, sizeof text));
  return text;
}

std::vector<std::uint64_t> AtomicNode::counters() const {
  std::uint64_t values[64];
  const int count = haul_atomic_node_counters(node_, values, 64);
  require_atomic(count);
  return {values, values + count};
}

AtomicWindow::AtomicWindow(const AtomicNode& node, std::size_t bytes) {
  require_atomic(haul_atomic_window_create(node.handle(), bytes, &window_));
}

AtomicWindow::AtomicWindow(const haul_atomic_window_name& name) {
  require_atomic(haul_atomic_window_attach(&name, &window_));
}

AtomicWindow::~AtomicWindow() {
  haul_atomic_window_destroy(window_);
}

haul_atomic_window_name AtomicWindow::name() const {
  haul_atomic_window_name name{};
  require_atomic(haul_atomic_window_export(window_, &name));
  return name;
}

std::string AtomicWindow::text() const {
  char text[160];
  const haul_atomic_window_name own = name();
  require_atomic(haul_atomic_window_format(&own, text, sizeof text));
  return text;
}

AtomicRemote::AtomicRemote(const AtomicNode& node, const haul_atomic_window_name& name) {
  require_atomic(haul_atomic_connect(node.handle(), &name, &remote_));
}

AtomicRemote::~AtomicRemote() {
  haul_atomic_disconnect(remote_);
}

}  // namespace haul::cli
