#include "atomic/window/window.hpp"

#include <cerrno>
#include <new>

#include "atomic/responder/tables.hpp"
#include "atomic/wire/convert.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::atomics {

Expected<Window*> Window::map(Node* owner, int fd, const haul_atomic_window_name& name) noexcept {
  const std::size_t bytes = pages_of(name.bytes) * 4096;
  void* memory = os::map_shared(nullptr, bytes, fd, 0);
  if (memory == nullptr) {
    os::close_fd(fd);
    return make_error(
        Code::no_memory, ENOMEM,
        "cannot map a window of %zu bytes; make it smaller, or raise the limit of the "
        "address space (ulimit -v)",
        bytes);
  }
  auto* window = new (std::nothrow) Window(owner, fd, name, static_cast<char*>(memory));
  if (window == nullptr) {
    os::unmap(memory, bytes);
    os::close_fd(fd);
    return make_error(Code::no_memory, ENOMEM, "no memory for a window; free some");
  }
  // The owner's address is what the names say (paper 002, III-B).
  if (owner != nullptr) window->name_.address = reinterpret_cast<std::uintptr_t>(memory);
  return window;
}

void Window::run_by(Carrier* carrier) noexcept {
  runs_far_ = true;
  carrier_ = carrier;
}

void Window::orphan() noexcept {
  owner_ = nullptr;
  if (connection_ != nullptr) carrier_->disconnect(connection_);
  connection_ = nullptr;
  runs_far_ = false;
}

Code Window::run_far(haul_atomic_operation* operations, std::size_t count) noexcept {
  Code code = Code::not_supported;
  if (carrier_ != nullptr && !carrier_->is_here()) {
    code = Code::stale;
  } else if (carrier_ != nullptr) {
    pthread_mutex_lock(&connecting_);
    if (connection_ == nullptr) {
      Expected<RemoteConnection*> made = carrier_->connect(name_);
      if (made) connection_ = *made;
      code = made ? Code::ok : made.error().code;
    } else {
      code = Code::ok;
    }
    pthread_mutex_unlock(&connecting_);
  }
  std::uint64_t ticket = 0;
  // Code::again: 63 other packets of this process are under way.
  while (code == Code::ok) {
    code = carrier_->submit(*connection_, operations, count, 0, &ticket);
    if (code != Code::again) break;
    code = Code::ok;
    os::sleep_ns(10'000);
  }
  if (code == Code::ok) carrier_->wait(*connection_, ticket, operations, count, &code);
  Code first = code;
  for (std::size_t i = 0; i < count; ++i) {
    if (code != Code::ok) {
      operations[i].status = static_cast<std::int32_t>(code);
      operations[i].old = 0;
    }
    if (first == Code::ok) first = static_cast<Code>(operations[i].status);
  }
  return first;
}

Code Window::run(haul_atomic_operation* operations, std::size_t count) noexcept {
  if (runs_far_) return run_far(operations, count);
  wire_operation wire[WIRE_MAX_OPERATIONS];
  for (std::size_t i = 0; i < count; ++i) wire[i] = to_wire(operations[i]);
  execute_here(entry_of(name_), memory_, wire, count);
  Code first = Code::ok;
  for (std::size_t i = 0; i < count; ++i) {
    take_answer(wire[i], Code::ok, &operations[i]);
    if (first == Code::ok) first = static_cast<Code>(operations[i].status);
  }
  return first;
}

Window::~Window() {
  os::unmap(memory_, mapped_bytes());
  fd_.close();
}

}  // namespace haul::atomics
