// Handles of <haul/atomic.h> that close themselves; failures are tools::CommandFailure.
#pragma once

#include <haul/atomic.h>

#include <string>
#include <vector>

namespace haul::cli {

// Throws the library's sentence if `code` is negative.
void require_atomic(int code);

class AtomicNode {
 public:
  // `options` of size 0: the defaults.
  AtomicNode(const std::string& responder, const haul_atomic_node_options& options);
  ~AtomicNode();
  AtomicNode(const AtomicNode&) = delete;
  AtomicNode& operator=(const AtomicNode&) = delete;

  haul_atomic_node* handle() const { return node_; }
  std::string description() const;
  std::vector<std::uint64_t> counters() const;

 private:
  haul_atomic_node* node_ = nullptr;
};

class AtomicWindow {
 public:
  AtomicWindow(const AtomicNode& node, std::size_t bytes);
  explicit AtomicWindow(const haul_atomic_window_name& name);  // attaches
  ~AtomicWindow();
  AtomicWindow(const AtomicWindow&) = delete;
  AtomicWindow& operator=(const AtomicWindow&) = delete;

  haul_atomic_window* handle() const { return window_; }
  char* memory() const { return static_cast<char*>(haul_atomic_window_memory(window_)); }
  std::size_t bytes() const { return haul_atomic_window_bytes(window_); }
  haul_atomic_window_name name() const;
  std::string text() const;

 private:
  haul_atomic_window* window_ = nullptr;
};

class AtomicRemote {
 public:
  AtomicRemote(const AtomicNode& node, const haul_atomic_window_name& name);
  ~AtomicRemote();
  AtomicRemote(const AtomicRemote&) = delete;
  AtomicRemote& operator=(const AtomicRemote&) = delete;

  haul_atomic_remote* handle() const { return remote_; }

 private:
  haul_atomic_remote* remote_ = nullptr;
};

}  // namespace haul::cli
