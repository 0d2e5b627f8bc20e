// Opening, binding, controlling and closing endpoints.
#include "fabric/endpoint/transfer/endpoint.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "fabric/endpoint/address_vector.hpp"
#include "fabric/endpoint/completion/completion_queue.hpp"
#include "fabric/endpoint/completion/counter.hpp"
#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/object.hpp"
#include "fabric/endpoint/offer/hints.hpp"

namespace haul::fabric {

Endpoint::Endpoint(std::shared_ptr<EndpointState> state, void* user_context) noexcept
    : fid_ep{}, state_(std::move(state)) {
  static fi_ops base_ops = object_calls(close, bind, control);
  static fi_ops_ep ep_ops = {.size = sizeof(fi_ops_ep),
                             .cancel = cancel,
                             .getopt = get_option,
                             .setopt = set_option,
                             .tx_ctx = unimplemented,
                             .rx_ctx = unimplemented,
                             .rx_size_left = unimplemented,
                             .tx_size_left = unimplemented};
  static fi_ops_cm cm_ops = {.size = sizeof(fi_ops_cm),
                             .setname = unimplemented,
                             .getname = get_name,
                             .getpeer = unimplemented,
                             .connect = unimplemented,
                             .listen = unimplemented,
                             .accept = unimplemented,
                             .reject = unimplemented,
                             .shutdown = unimplemented,
                             .join = unimplemented};
  begin_object(fid, FI_CLASS_EP, user_context, base_ops);
  ops = &ep_ops;
  cm = &cm_ops;
  msg = &message_ops;
  tagged = &tagged_ops;
  rma = &rma_ops;
  atomic = &atomic_ops;
}

int Endpoint::open(fid_domain* domain, fi_info* info, fid_ep** endpoint, void* context) noexcept {
  if (info == nullptr || endpoint == nullptr) return -FI_EINVAL;
  if (const char* reason = endpoint_refusal(0, *info)) {
    log_refusal("fi_endpoint", reason);
    return -FI_EINVAL;
  }
  std::unique_ptr<EndpointState> state;
  if (const int error = EndpointState::open(Domain::of(domain), *info, state); error != 0) {
    return error;
  }
  auto* made = new (std::nothrow) Endpoint(std::move(state), context);
  if (made == nullptr) return -FI_ENOMEM;
  if (info->tx_attr != nullptr) made->send_flags_ = info->tx_attr->op_flags;
  if (info->rx_attr != nullptr) made->receive_flags_ = info->rx_attr->op_flags;
  *endpoint = made;
  return 0;
}

int Endpoint::open_with_flags(fid_domain* domain, fi_info* info, fid_ep** endpoint,
                              std::uint64_t flags, void* context) noexcept {
  return flags != 0 ? -FI_EBADFLAGS : open(domain, info, endpoint, context);
}

int Endpoint::close(fid_t object) noexcept {
  // What it shares goes with the last of the endpoint and its aliases.
  delete &of(object);
  return 0;
}

int Endpoint::bind(fid_t object, fid_t other, std::uint64_t flags) noexcept {
  EndpointState& state = of(object).state();
  if (other == nullptr) return -FI_EINVAL;
  switch (other->fclass) {
    case FI_CLASS_CQ: return state.bind(FabricCompletionQueue::of(other), flags);
    case FI_CLASS_CNTR: return state.bind(Counter::of(other), flags);
    case FI_CLASS_AV: return flags != 0 ? -FI_EBADFLAGS : state.bind(AddressVector::of(other));
    case FI_CLASS_EQ: return flags != 0 ? -FI_EBADFLAGS : state.bind(EventQueue::of(other));
    case FI_CLASS_MR: return other->ops->bind(other, object, flags);
    default: return -FI_EINVAL;
  }
}

int Endpoint::make_alias(const struct fi_alias* request) const noexcept {
  if (request == nullptr || request->fid == nullptr) return -FI_EINVAL;
  auto* made = new (std::nothrow) Endpoint(state_, fid.context);
  if (made == nullptr) return -FI_ENOMEM;
  made->send_flags_ = send_flags_;
  made->receive_flags_ = receive_flags_;
  if (request->flags != 0) {
    if (const int error = made->set_flags(request->flags); error != 0) {
      delete made;
      return error;
    }
  }
  *request->fid = &made->fid;
  return 0;
}

int Endpoint::set_flags(std::uint64_t flags) noexcept {
  const bool sends = (flags & FI_TRANSMIT) != 0, receives = (flags & FI_RECV) != 0;
  if (sends == receives) return -FI_EINVAL;
  flags &= ~(FI_TRANSMIT | FI_RECV);
  if ((flags & ~(sends ? send_op_flags : receive_op_flags)) != 0) return -FI_EBADFLAGS;
  (sends ? send_flags_ : receive_flags_) = flags;
  return 0;
}

int Endpoint::get_flags(std::uint64_t* flags) const noexcept {
  if (flags == nullptr) return -FI_EINVAL;
  const bool sends = (*flags & FI_TRANSMIT) != 0, receives = (*flags & FI_RECV) != 0;
  if (sends == receives) return -FI_EINVAL;
  *flags = sends ? send_flags_ : receive_flags_;
  return 0;
}

int Endpoint::control(fid_t object, int command, void* argument) noexcept {
  Endpoint& self = of(object);
  switch (command) {
    case FI_ENABLE: return self.state().enable();
    case FI_ALIAS: return self.make_alias(static_cast<const struct fi_alias*>(argument));
    case FI_GETOPSFLAG: return self.get_flags(static_cast<std::uint64_t*>(argument));
    case FI_SETOPSFLAG:
      return argument == nullptr ? -FI_EINVAL
                                 : self.set_flags(*static_cast<const std::uint64_t*>(argument));
    default: return -FI_ENOSYS;
  }
}

ssize_t Endpoint::cancel(fid_t object, void* context) noexcept {
  EndpointState& state = of(object).state();
  Guard guard(state.domain().lock);
  return state.matcher().cancel(context);
}

int Endpoint::get_option(fid_t object, int level, int name, void* value,
                         std::size_t* bytes) noexcept {
  EndpointState& state = of(object).state();
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  if (bytes == nullptr || (value == nullptr && *bytes > 0)) return -FI_EINVAL;
  std::size_t found = 0;
  switch (name) {
    case FI_OPT_MIN_MULTI_RECV: {
      Guard guard(state.domain().lock);
      found = state.matcher().min_multi_receive();
      break;
    }
    case FI_OPT_CM_DATA_SIZE: break;  // nothing is connected
    case FI_OPT_TX_SIZE:
    case FI_OPT_RX_SIZE: found = state.queue_size(); break;
    default: return -FI_ENOPROTOOPT;
  }
  const std::size_t room = *bytes;
  *bytes = sizeof found;
  if (room < sizeof found) return -FI_ETOOSMALL;
  std::memcpy(value, &found, sizeof found);
  return 0;
}

int Endpoint::set_option(fid_t object, int level, int name, const void* value,
                         std::size_t bytes) noexcept {
  EndpointState& state = of(object).state();
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  std::size_t wanted = 0;
  if (value == nullptr || bytes != sizeof wanted) return -FI_EINVAL;
  std::memcpy(&wanted, value, sizeof wanted);
  Guard guard(state.domain().lock);
  state.matcher().set_min_multi_receive(wanted);
  return 0;
}

int Endpoint::get_name(fid_t object, void* address, std::size_t* bytes) noexcept {
  const EndpointState& state = of(object).state();
  if (bytes == nullptr || (address == nullptr && *bytes > 0)) return -FI_EINVAL;
  const Address& name = state.name();
  const std::size_t room = *bytes;
  *bytes = sizeof name;
  if (room > 0) std::memcpy(address, &name, std::min(room, sizeof name));
  return room < sizeof name ? -FI_ETOOSMALL : 0;
}

}  // namespace haul::fabric
