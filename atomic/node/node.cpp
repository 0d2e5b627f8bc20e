#include "atomic/node/node.hpp"

#include <fcntl.h>
#include <net/if.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "atomic/link/fabric_host.hpp"
#include "base/keep_errno.hpp"
#include "base/log.hpp"
#include "base/os.hpp"
#include "base/sealed.hpp"

namespace haul::atomics {

namespace {

constexpr std::size_t page = 4096;
static_assert(Fabric::most_windows == max_windows);

Error no_thread(int sys_errno) noexcept {
  return make_error(Code::no_memory, sys_errno,
                    "a thread of the node could not be made (%s); raise the limit on processes "
                    "(ulimit -u)",
                    describe_errno(sys_errno));
}

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

Carrier::Options carrier_options(const haul_atomic_node_options& options) noexcept {
  Carrier::Options carrier;
  carrier.connections = options.connections;
  carrier.timeout_ns = options.timeout_ns;
  carrier.spin_ns = std::uint64_t{options.spin_us} * 1000;
  return carrier;
}

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
  if (node->start(specification, options, &error)) return node;
  delete node;
  return error;
}

Node::~Node() {
  attendant_.close();
  for (Window* window : windows_) {
    if (window != nullptr) window->orphan();
  }
  if (fabric_ == nullptr) client_.close();
  host_.close();
  if (fabric_ != nullptr) fabric_->close();
  if (xdp_ != nullptr) xdp_->close();
}

bool Node::find_place(const Specification& specification, const haul_atomic_node_options& options,
                      SocketAddress* at, Error* error) noexcept {
  const char* where = specification.where;
  if (specification.kind != Specification::Kind::host && where[0] != '\0') {
    const int result = address_of_interface(where, at);
    if (result != 0) {
      *error = make_error(Code::not_supported, -result,
                          result == -ENODEV
                              ? "there is no interface '%s'; `ip link` lists them"
                              : "the interface '%s' has no address; give it one (ip addr add)",
                          where);
      return false;
    }
  } else if (where[0] != '\0') {
    if (!parse_host(where, 0, at)) {
      *error = make_error(Code::invalid, 0, "'%s' is not a numeric address of this host", where);
      return false;
    }
  }
  at->set_port(options.port);
  if (options.host != nullptr) {
    SocketAddress ignored;
    if (std::strlen(options.host) >= sizeof name_.host || !parse_host(options.host, 0, &ignored)) {
      *error = make_error(Code::invalid, 0, "host '%.60s' is not a numeric address", options.host);
      return false;
    }
    std::strcpy(name_.host, options.host);
  } else {
    SocketAddress shown = *at;
    if (at->is_wildcard()) any_own_address(&shown);
    format_host(shown, name_.host, sizeof name_.host);
  }
  return true;
}

bool Node::start(const Specification& specification, const haul_atomic_node_options& options,
                 Error* error) noexcept {
  if (specification.kind == Specification::Kind::fabric) {
    return start_fabric(specification, options, error) && start_attendant(error);
  }
  const bool wants_xdp =
      specification.kind == Specification::Kind::xdp ||
      (specification.kind == Specification::Kind::none && specification.where[0] != '\0');
  const bool must_hear_by_xdp = options.hearing == HAUL_ATOMIC_HEAR_COMPLETION;
  if (must_hear_by_xdp && !wants_xdp) {
    *error = make_error(Code::invalid, 0,
                        "a completion map needs an XDP program; open the node with xdp:IFACE or "
                        "none:IFACE, or leave hearing 0");
    return false;
  }
  if (specification.kind == Specification::Kind::none && options.port != 0) {
    *error = make_error(Code::invalid, 0, "a node without a responder has no port; leave it 0");
    return false;
  }
  SocketAddress at;
  if (!find_place(specification, options, &at, error)) return false;

  SocketAddress client_at = at;
  client_at.set_port(0);
  const int result = client_.open(carrier_options(options), client_at);
  if (result != 0) {
    *error = make_error(Code::io, -result, "cannot open a UDP socket (%s); check the address",
                        describe_errno(-result));
    return false;
  }
  if (wants_xdp) {
    if (start_xdp(specification, options, at, error)) return start_attendant(error);
    if (!specification.has_fallback || must_hear_by_xdp) return false;
    log(LogLevel::warning, "no XDP: %s; the responder is block instead", error->sentence);
    const Error why = *error;
    if (!start_host(HostMode::block, options, at, error)) return false;
    describe("block", specification.where, why.sentence);
    return start_attendant(error);
  }
  if (specification.kind == Specification::Kind::none) {
    describe("none", "", "");
    return true;
  }
  return start_host(specification.host_mode, options, at, error) && start_attendant(error);
}

bool Node::start_xdp(const Specification& specification, const haul_atomic_node_options& options,
                     const SocketAddress& at, Error* error) noexcept {
  const KeepErrno keep;
  if (at.is_six()) {
    *error = make_error(Code::not_supported, 0,
                        "the interface '%s' has no IPv4 address, which XDP needs; give it one",
                        specification.where);
    return false;
  }
  const bool serves = specification.kind == Specification::Kind::xdp;
  XdpOptions xdp;
  xdp.interface = if_nametoindex(specification.where);
  xdp.mode = specification.xdp_mode;
  xdp.address = at.four.sin_addr.s_addr;
  if (serves) {
    const int result = passed_.open(at);
    if (result != 0) {
      *error = make_error(result == -EADDRINUSE ? Code::again : Code::io, -result,
                          "UDP port %u cannot be had (%s); choose another", at.port(),
                          describe_errno(-result));
      return false;
    }
    xdp.port = passed_.local().four.sin_port;
    // A kernel without IPv6 passes none of its packets.
    passed_six_.open_six(specification.where, passed_.local().port());
    xdp.sessions = options.sessions;
  }
  if (options.hearing != HAUL_ATOMIC_HEAR_SOCKET) {
    xdp.client_port = htons(client_.port());
    xdp.connections = options.connections;
  }
  xdp_ = open_xdp(xdp, error);
  if (xdp_ == nullptr) {
    passed_.close();
    passed_six_.close();
    return false;
  }
  serves_by_xdp_ = serves;
  if (options.hearing != HAUL_ATOMIC_HEAR_SOCKET) client_.hear_by(xdp_, specification.where);
  name_.port = passed_.is_open() ? passed_.local().port() : 0;
  describe(serves ? (xdp_->is_native() ? "xdp, native," : "xdp, generic (skb),")
                  : (xdp_->is_native() ? "none; replies by xdp, native,"
                                       : "none; replies by xdp, generic (skb),"),
           specification.where, "");
  return true;
}

bool Node::start_fabric(const Specification& specification, const haul_atomic_node_options& options,
                        Error* error) noexcept {
  if (options.host != nullptr) {
    *error = make_error(Code::invalid, 0,
                        "a fabric says itself what its endpoint is called; leave host NULL");
    return false;
  }
  FabricOptions fabric;
  std::strcpy(fabric.provider, specification.provider);
  std::strcpy(fabric.place, specification.where);
  fabric.port = options.port;
  fabric.client = carrier_options(options);
  fabric_ = open_fabric(fabric, error);
  if (fabric_ == nullptr) return false;
  name_ = fabric_->name();
  snprintf(description_, sizeof description_, "%s", fabric_->description());
  return true;
}

bool Node::start_host(HostMode mode, const haul_atomic_node_options& options,
                      const SocketAddress& at, Error* error) noexcept {
  HostResponder::Options host;
  host.mode = mode;
  host.at = at;
  host.sessions = options.sessions;
  host.cpu = options.cpu_plus_1 - 1;
  host.spin_ns = std::uint64_t{options.spin_us} * 1000;
  int sys_errno = 0;
  const Code code = host_.open(host, &sys_errno);
  if (code == Code::invalid) {
    *error = make_error(code, 0,
                        "the responder's thread may not run on CPU %d; choose one that this "
                        "process may use",
                        host.cpu);
    return false;
  }
  if (code == Code::no_memory) {
    *error = sys_errno != 0
                 ? no_thread(sys_errno)
                 : make_error(code, 0, "no memory for %u sessions; ask for fewer, or free some",
                              options.sessions);
    return false;
  }
  if (code != Code::ok) {
    *error = make_error(code, sys_errno, "cannot serve at %s port %u (%s); choose another port",
                        name_.host, at.port(), describe_errno(sys_errno));
    return false;
  }
  serves_by_host_ = true;
  name_.port = host_.local().port();
  constexpr const char* names[] = {"poll", "spin", "block"};
  describe(names[static_cast<unsigned>(mode)], "", "");
  return true;
}

bool Node::start_attendant(Error* error) noexcept {
  if (!serves_by_host_ && !serves_by_xdp_ && fabric_ == nullptr) return true;
  const int result = attendant_.open(this, name_, xdp_, &passed_, &passed_six_);
  if (result == 0) return true;
  *error = result == -EAGAIN || result == -ENOMEM
               ? no_thread(-result)
               : make_error(Code::io, -result,
                            "cannot make the event of the node's thread (%s); close some "
                            "descriptors or raise ulimit -n",
                            describe_errno(-result));
  return false;
}

void Node::describe(const char* how, const char* interface, const char* why) noexcept {
  int length = snprintf(description_, sizeof description_, "%s%s%s", how,
                        interface[0] != '\0' ? " on " : "", interface);
  const auto add = [&](const char* format, auto... values) {
    const auto at = static_cast<std::size_t>(length);
    if (at < sizeof description_) {
      length += snprintf(description_ + at, sizeof description_ - at, format, values...);
    }
  };
  if (name_.port != 0) add(", %s port %u", name_.host, static_cast<unsigned>(name_.port));
  if (why[0] != '\0') add("; no XDP: %s", why);
}

Expected<Window*> Node::create_window(std::size_t bytes) noexcept {
  if (!serves_by_host_ && !serves_by_xdp_ && fabric_ == nullptr) {
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
  haul_atomic_window_name name = name_;
  name.bytes = bytes;
  while (name.key == 0) {
    if (!os::random_bytes(&name.key, sizeof name.key)) {
      return make_error(Code::io, 0, "the kernel gives no random numbers; is /dev/urandom there?");
    }
  }
  Error error;
  const std::size_t pages = Window::pages_of(bytes);
  int fd = serves_by_xdp_ ? xdp_->make_memory(pages, &error)
                          : os::make_sealed("haul-window", pages * page);
  if (fd < 0) {
    return serves_by_xdp_
               ? error
               : make_error(Code::no_memory, -fd, "no memory for a window of %zu bytes (%s)", bytes,
                            describe_errno(-fd));
  }
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
  const unsigned index = window->name().window;
  if (fabric_ != nullptr) {
    haul_atomic_window_name name = window->name();
    if (!fabric_->add_window(index, window->memory(), window->mapped_bytes(), &name, error)) {
      return false;
    }
    window->rename(name);
    if (!is_atomic_with_cpu(name.host)) window->run_by(fabric_);
  }
  if (serves_by_host_) host_.add_window(index, window->entry(), window->memory());
  return !serves_by_xdp_ ||
         xdp_->add_window(index, window->entry(), window->memory_object().get(), error);
}

void Node::withdraw(Window* window) noexcept {
  const unsigned index = window->name().window;
  pthread_mutex_lock(&windows_lock_);
  if (serves_by_host_) host_.remove_window(index);
  if (fabric_ != nullptr) fabric_->remove_window(index);
  if (serves_by_xdp_) xdp_->remove_window(index);
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
  if (xdp_ != nullptr) xdp_->counts(values);
  if (serves_by_host_) {
    for (unsigned i = 0; i < SERVE_EVENTS; ++i) values[i] += host_.count_of(i);
  }
  values[XDP_EVENTS] = carrier().repeated();
}

}  // namespace haul::atomics
