// One cell of the table: a process in which one function is called in one situation. World makes
// what the functions take, and judges what a call has left behind.
#pragma once

#include <haul/atomic.h>
#include <haul/haul.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "e2e/service_support.hpp"

namespace edges {

using namespace e2e;

// What a call came to: 0, or the HAUL_E* that it returned (or whose ticket it returned).
using Call = std::function<int()>;

class World;

// A row: written by functions.py from the headers.
struct Function {
  const char* name;
  bool atomic;       // of atomic.h
  bool service;      // about grants
  bool peer;         // takes something of another process
  bool in_handlers;  // its comment says that signal handlers may call it
  Call (*prepare)(World&);
};

// What the cell and who watches over it share.
struct Report {
  volatile unsigned changes;  // of `stage`
  volatile int outcome;       // of the call
  char stage[200];            // what it is doing, for who finds that it hangs
};

// An argument cannot be made in this situation, which haul has said by this HAUL_E*.
struct Refused {
  int code;
};

class World {
 public:
  static constexpr std::size_t count = 2;  // of elements in every array
  static constexpr std::uint64_t timeout_ns = 2'000'000'000;

  // Starts what runs outside the process: a service (`service`) and a peer (`peer`).
  World(const Function& function, Report& report, bool service);

  const Function& function() const { return function_; }
  Service* service() const { return service_.get(); }
  pid_t peer_pid() const { return peer_; }

  // The process is in use: haul's threads run, a copy is in flight; of atomic.h too, where the
  // function is of it.
  void start();
  // Makes the arguments. The call may be made once.
  Call prepare() { return function_.prepare(*this); }
  // Makes the call, and checks what no call may change: errno, the signal mask, cancellation.
  int call(const Call& call);
  // prepare(), call() and settle(); or the HAUL_E* that an argument was refused with.
  int prepare_and_call();
  // Every ticket ends, and its bytes are right if it ended well. `must`: all must end well.
  void settle(bool must);
  // Threads, this one and others, and a child can use haul still.
  void still_works();
  // The function may have ended haul.
  bool may_be_shut_down() const;
  void stage(const char* text) const;

  // ---- arguments (functions.py names them)
  std::size_t bytes() const { return src_.size(); }
  void* destination();
  const void* source() const { return src_.data(); }
  std::uint64_t pattern();
  const haul_request* requests();
  haul_ticket* ticket_slots();
  haul_ticket ticket();
  haul_completion* completions();
  void* allocated();
  int peer() const { return peer_; }
  haul_space space();
  const haul_grant* grant();
  static void progress(int, void*) {}
  template <class T, std::size_t N = World::count>
  T* out() {
    auto made = std::make_shared<std::vector<T>>(N);
    kept_.push_back(made);
    return made->data();
  }
  template <class T>
  T* sized() {
    T* made = out<T>();
    made->size = sizeof(T);
    return made;
  }

  haul_atomic_node_options* options();
  haul_atomic_node* node();
  haul_atomic_window* window();
  const haul_atomic_window_name* name() const { return &name_; }
  const char* name_as_text() const { return name_text_.c_str(); }
  char* text() { return out<char, std::size_t{1} << 20>(); }
  haul_atomic_remote* remote();
  haul_atomic_operation* operations() { return adds(name_.address); }
  haul_atomic_operation* own_operations();
  std::uint64_t atomic_ticket();
  const haul_atomic_lock_options* lock_options();
  haul_atomic_lock* lock();
  haul_atomic_lock* held_lock();
  haul_atomic_lock* started_lock();

  // ---- results
  int outcome(int result);
  int outcome(haul_ticket result);
  int outcome(const haul_request&) { return 0; }
  int outcome(std::uint64_t) { return 0; }
  int outcome(const void* result);

 private:
  struct Copy {
    haul_ticket ticket;
    std::shared_ptr<Buffer> dst;
    std::uint64_t pattern;  // 0: as src_
  };
  void check_bytes(const Copy& copy) const;
  void start_peer();
  haul_atomic_operation* adds(std::uint64_t address);
  int said(int result);

  const Function& function_;
  Report& report_;
  Buffer src_;
  std::shared_ptr<Buffer> dst_;
  std::uint64_t dst_pattern_ = 0;
  std::vector<Copy> copies_;
  haul_ticket* slots_ = nullptr;  // of the next call
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<Service> service_;
  pid_t peer_ = -1;
  haul_atomic_window_name name_{};
  std::string name_text_;
  haul_atomic_lock_place home_{}, member_{};
  // What was made last: of arguments that belong together, the first is made first.
  haul_atomic_node* last_node_ = nullptr;
  haul_atomic_window* last_window_ = nullptr;
  haul_atomic_remote* last_remote_ = nullptr;
};

const std::vector<Function>& functions();

}  // namespace edges
