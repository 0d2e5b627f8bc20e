#include "atomic/node/node.hpp"

#include <fcntl.h>

#include <cerrno>
#include <new>

#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::atomics {

namespace {

constexpr const char* counter_names[Node::counter_count] = {
    "served packets",
    "served operations",
    "served hellos",
    "replayed",
    "dropped: length",
    "dropped: magic",
    "dropped: checksum",
    "dropped: old sequence",
    "dropped: in flight",
    "refused: version",
    "refused: malformed",
    "refused: window or key",
    "refused: session",
    "refused: full",
    "refused: session taken",
    "refused operations: argument",
    "refused operations: stale token",
    "passed to the kernel",
    "replies completed",
    "replies ignored",
    "requests repeated",
};
static_assert(counter_names[Node::counter_count - 1] != nullptr);

}  // namespace

const char* Node::counter_name(std::size_t index) noexcept {
  return index < counter_count ? counter_names[index] : nullptr;
}

Expected<Node*> Node::open(const Specification& specification,
                           const haul_atomic_node_options& options) noexcept {
  auto* node = new (std::nothrow) Node;
  if (node == nullptr)
    return make_error(Code::no_memory, ENOMEM, "no memory for a node; free some");
  Error error;
  if (open_parts(specification, options, &node->parts_, &error) && node->start_attendant(&error)) {
    return node;
  }
  delete node;
  return error;
}

Node::~Node() {
  attendant_.close();
  for (Window* window : windows_) {
    if (window != nullptr) window->orphan();
  }
}

bool Node::start_attendant(Error* error) noexcept {
  if (!parts_.responder->serves()) return true;
  const int result = attendant_.open(this, parts_.name, parts_.responder);
  if (result == 0) return true;
  *error = result == -EAGAIN || result == -ENOMEM
               ? no_thread(-result)
               : make_error(Code::io, -result,
                            "cannot make the event of the node's thread (%s); close some "
                            "descriptors or raise ulimit -n",
                            describe_errno(-result));
  return false;
}

Expected<Window*> Node::create_window(std::size_t bytes) noexcept {
  if (!parts_.responder->serves()) {
    return make_error(
        Code::not_supported, 0,
        "this node was opened without a responder; open it with xdp:IFACE, poll, spin, "
        "block or fabric:PROVIDER");
  }
  if (has_lost_service()) {
    return make_error(Code::io, 0,
                      "this process has closed the node's descriptors (closefrom()?), so it serves "
                      "nobody; close it, and open another one");
  }
  haul_atomic_window_name name = parts_.name;
  name.bytes = bytes;
  while (name.key == 0) {
    if (!os::random_bytes(&name.key, sizeof name.key)) {
      return make_error(Code::io, 0, "the kernel gives no random numbers; is /dev/urandom there?");
    }
  }
  Error error;
  const int fd = parts_.responder->make_memory(bytes, &error);
  if (fd < 0) return error;
  pthread_mutex_lock(&windows_lock_);
  while (name.window < max_windows && windows_[name.window] != nullptr) ++name.window;
  const bool room = name.window < max_windows;
  Expected<Window*> made =
      room
          ? Window::map(this, fd, name)
          : Expected<Window*>(make_error(Code::no_memory, 0,
                                         "this node has %u windows, the most there can be; destroy "
                                         "one",
                                         max_windows));
  if (!room) os::close_fd(fd);
  if (made && !serve(*made, &error)) {
    delete *made;
    pthread_mutex_unlock(&windows_lock_);
    return error;
  }
  if (made) windows_[name.window] = *made;
  pthread_mutex_unlock(&windows_lock_);
  return made;
}

bool Node::serve(Window* window, Error* error) noexcept {
  haul_atomic_window_name name = window->name();
  const WindowMemory memory{window->memory(), window->mapped_bytes(),
                            window->memory_object().get()};
  if (!parts_.responder->add_window(memory, &name, error)) return false;
  window->rename(name);
  if (!parts_.responder->is_atomic_with_cpu()) window->run_by(parts_.carrier);
  return true;
}

void Node::withdraw(Window* window) noexcept {
  const unsigned index = window->name().window;
  pthread_mutex_lock(&windows_lock_);
  parts_.responder->remove_window(index);
  windows_[index] = nullptr;
  window->orphan();
  pthread_mutex_unlock(&windows_lock_);
}

bool Node::answer(const AttachRequest& request, AttachReply* reply, int* fd) noexcept {
  const KeepErrno keep;
  if (request.window >= max_windows) return false;
  pthread_mutex_lock(&windows_lock_);
  const Window* window = windows_[request.window];
  bool known = window != nullptr && window->name().key == request.key;
  if (known && request.what == AttachRequest::What::memory) {
    *fd = fcntl(window->memory_object().get(), F_DUPFD_CLOEXEC, 3);
    reply->bytes = window->name().bytes;
    reply->address = window->name().address;
    if (*fd < 0) reply->code = static_cast<std::int32_t>(Code::io);
  }
  pthread_mutex_unlock(&windows_lock_);
  if (known && request.what == AttachRequest::What::counters) {
    static_assert(counter_count <= AttachReply::most_counters);
    reply->counters = counter_count;
    counters(reply->counter);
  }
  return known;
}

void Node::counters(std::uint64_t* values) noexcept {
  for (unsigned i = 0; i < counter_count; ++i) values[i] = 0;
  parts_.responder->count(values);
  values[XDP_EVENTS] = carrier().repeated();
}

}  // namespace haul::atomics
