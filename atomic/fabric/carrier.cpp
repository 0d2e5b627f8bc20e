#include "atomic/fabric/carrier.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "atomic/window/name.hpp"
#include "base/machine/clock.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"

namespace haul::atomics {

namespace {

// Nobody sleeps for longer, because another thread may hear what this one waits for.
constexpr std::uint64_t longest_ns = 10'000'000;

}  // namespace

FabricConnection::FabricConnection(FabricCarrier& carrier, const Session::Names& names,
                                   std::uint64_t timeout_ns, const FabricEndpoint::Target& target,
                                   std::uint64_t window_bytes) noexcept
    : RemoteConnection(carrier, names, timeout_ns, Session::Delivery::sure),
      fabric_(carrier),
      target_(target),
      window_bytes_(window_bytes) {}

void FabricConnection::send(const WirePacket& packet) noexcept {
  fabric_.start(*this, packet);
}

bool FabricCarrier::open(const FabricOptions& options, Error* error) noexcept {
  if (!begin(options.client)) {
    *error = make_error(Code::no_memory, ENOMEM, "no memory for connections; free some");
    return false;
  }
  if (!endpoint_.open(options, error)) return false;
  name_.kind = by_fabric;
  if (!format_fabric_host(endpoint_.host(), &name_)) {
    *error = make_error(Code::not_supported, 0,
                        "the provider %s has addresses of %zu bytes, for which names of windows "
                        "have no room; choose another",
                        endpoint_.host().provider, endpoint_.host().bytes);
    return false;
  }
  char port[16] = "";
  if (name_.port != 0) snprintf(port, sizeof port, " port %u", name_.port);
  snprintf(description_, sizeof description_, "fabric, %s%s; %s", name_.host, port,
           is_atomic_with_cpu()
               ? "its operations are software's, atomic with this host's CPUs"
               : "its operations are the network interface's, not atomic with the CPUs': "
                 "the owner's are haul_atomic_window_run() alone");
  return true;
}

FabricCarrier::~FabricCarrier() {
  disconnect_all();
  if (running_) {
    stop_.store(true, std::memory_order_relaxed);
    os::event_signal(end_.get());
    os::join_thread(thread_);
  }
  end_.close();
  for (unsigned i = 0; i < max_windows; ++i) {
    if (windows_[i] != nullptr) fi_close(&windows_[i]->fid);
  }
  runs_.close_registrations();
  endpoint_.close();
}

void FabricCarrier::close() noexcept {
  const KeepErrno keep;
  delete this;
}

// ---- windows ----

bool FabricCarrier::add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                               Error* error) noexcept {
  const KeepErrno keep;
  if (endpoint_.needs_a_look() && !running_ && !start_thread()) {
    *error = make_error(Code::no_memory, 0, "no thread for the fabric's progress; end some");
    return false;
  }
  const Hold hold(*this);
  fid_mr* registration = nullptr;
  const int result = endpoint_.enlist(memory.at, memory.mapped_bytes,
                                      FI_REMOTE_READ | FI_REMOTE_WRITE, &registration);
  if (result != 0) {
    *error = make_error(Code::no_memory, 0,
                        "%s cannot register a window of %zu bytes (%s); raise the limit of locked "
                        "memory (ulimit -l)",
                        endpoint_.host().provider, memory.mapped_bytes, fi_strerror(-result));
    return false;
  }
  windows_[name->window] = registration;
  name->kind = name_.kind;
  name->port = name_.port;
  std::memcpy(name->host, name_.host, sizeof name->host);
  name->key = fi_mr_key(registration);
  return true;
}

void FabricCarrier::remove_window(unsigned index) noexcept {
  const KeepErrno keep;
  const Hold hold(*this);
  if (windows_[index] != nullptr) fi_close(&windows_[index]->fid);
  windows_[index] = nullptr;
  // Software providers execute operations under the endpoint's lock, which a look at the queue
  // takes: after it an operation that had found the registration is done with the memory.
  look();
}

bool FabricCarrier::start_thread() noexcept {
  if (!end_.valid()) end_ = os::Descriptor::of(os::event_fd());
  running_ = end_.valid() && os::start_thread(
                                 &thread_,
                                 [](void* self) -> void* {
                                   static_cast<FabricCarrier*>(self)->attend();
                                   return nullptr;
                                 },
                                 this) == 0;
  return running_;
}

void FabricCarrier::attend() noexcept {
  os::name_thread("haul-fabric");
  constexpr std::uint64_t nap_ns = 500'000'000;
  while (!stop_.load(std::memory_order_relaxed)) {
    {
      const Hold hold(*this);
      look();
    }
    endpoint_.sleep(nap_ns, end_.get());
  }
}

// ---- connections ----

Expected<RemoteConnection*> FabricCarrier::make(const haul_atomic_window_name& name,
                                                const Session::Names& names) noexcept {
  const KeepErrno keep;
  FabricHost peer;
  if (name.kind != by_fabric) {
    return make_error(Code::not_supported, 0,
                      "the window of %s port %u is reached by UDP and this node speaks %s; open a "
                      "node with none",
                      name.host, name.port, endpoint_.host().provider);
  }
  if (!parse_fabric_host(name, &peer)) {
    return make_error(Code::invalid, 0, "'%s' is no fabric's address; take the name as exported",
                      name.host);
  }
  if (std::strcmp(peer.provider, endpoint_.host().provider) != 0 ||
      peer.is_socket_address != endpoint_.host().is_socket_address ||
      peer.bytes != endpoint_.host().bytes) {
    return make_error(Code::not_supported, 0,
                      "the window of %s is not to be reached from %s; open both nodes with the "
                      "same provider and kind of address",
                      name.host, name_.host);
  }
  FabricEndpoint::Target target;
  target.address = name.address;
  target.key = name.key;
  const int result = endpoint_.insert(peer, &target.peer);
  if (result != 0) {
    return make_error(Code::io, 0, "%s does not take the address %s (%s); is there a way to it?",
                      endpoint_.host().provider, name.host, fi_strerror(-result));
  }
  auto* connection =
      new (std::nothrow) FabricConnection(*this, names, options_.timeout_ns, target, name.bytes);
  if (connection == nullptr) {
    return make_error(Code::no_memory, ENOMEM, "no memory for a connection; free some");
  }
  return connection;
}

void FabricCarrier::parting(RemoteConnection& connection) noexcept {
  runs_.forget(&own(connection));
}

Error FabricCarrier::refusal(Code code, const haul_atomic_window_name& name) const noexcept {
  switch (code) {
    case Code::timed_out:
      return make_error(code, 0, "no answer from %s port %u; is the window's owner running there?",
                        name.host, name.port);
    case Code::permission:
      return failure_at(name, code, "knows no window by this key; ask its owner for a new name");
    default:
      return make_error(code, 0, "%s port %u cannot be reached (%s); is the window's owner there?",
                        name.host, name.port, describe(code));
  }
}

// ---- looking and waiting ----

void FabricCarrier::look() noexcept {
  bool any = false;
  void* context = nullptr;
  int failure = 0;
  post_again();
  while (endpoint_.next_ended(&context, &failure)) {
    any = true;
    auto* run = static_cast<Run*>(context);
    if (run == nullptr) continue;
    failure == 0 ? answered(run) : failed(run, failure);
  }
  if (any && sleepers_ != 0) pthread_cond_broadcast(&heard_);
}

void FabricCarrier::pump(std::uint64_t now_ns) noexcept {
  const KeepErrno keep;
  look();
  ask_again(now_ns);
  for_each_waiting([&](RemoteConnection& one) { session_of(one).tick(now_ns); });
}

void FabricCarrier::sleep(RemoteConnection& connection) noexcept {
  const KeepErrno keep;
  std::uint64_t wait_ns = 0;
  {
    Hold hold(*this);
    const std::uint64_t now = now_ns();
    pump(now);
    const Session& session = session_of(connection);
    if (!session.awaits_answer()) return;
    const std::uint64_t next = next_ns();
    wait_ns = std::min(longest_ns, next > now ? next - now : 0);
    if (unposted_ != nullptr) wait_ns = std::min<std::uint64_t>(wait_ns, 500'000);
    if (running_) {
      // The attending thread hears it, and wakes this one.
      const std::uint64_t until = now + wait_ns;
      const timespec time{static_cast<time_t>(until / 1'000'000'000),
                          static_cast<long>(until % 1'000'000'000)};
      ++sleepers_;
      pthread_cond_clockwait(&heard_, &hold.mutex(), CLOCK_MONOTONIC, &time);
      --sleepers_;
      return;
    }
  }
  endpoint_.sleep(wait_ns, -1);
}

}  // namespace haul::atomics

extern "C" [[gnu::visibility("default")]] bool haul_atomic_fabric_open(
    const haul::atomics::FabricOptions& options, haul::atomics::FabricSides* sides,
    haul::Error* error) noexcept {
  using namespace haul;
  const KeepErrno keep;
  auto* carrier = new (std::nothrow) atomics::FabricCarrier;
  if (carrier == nullptr) {
    *error = make_error(Code::no_memory, ENOMEM, "no memory for a fabric; free some");
    return false;
  }
  if (!carrier->open(options, error)) {
    carrier->close();
    return false;
  }
  *sides = {carrier, carrier, carrier->name(), carrier->description()};
  return true;
}
