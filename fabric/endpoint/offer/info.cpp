// Building fi_getinfo()'s answer.
#include "fabric/endpoint/offer/info.hpp"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/fabric.hpp"
#include "fabric/endpoint/offer/hints.hpp"
#include "fabric/endpoint/offer/names.hpp"
#include "fabric/endpoint/transfer/endpoint_state.hpp"
#include "fabric/transport/identity.hpp"
#include "fabric/transport/libfabric.hpp"
#include "fabric/transport/network.hpp"

namespace haul::fabric {

namespace {

// All 64 bits of a tag, one field each.
constexpr std::uint64_t any_tag_format = 0xaaaaaaaaaaaaaaaau;

template <class T>
T either(T wanted, T usual) noexcept {
  return wanted != T{} ? wanted : usual;
}

// What the attributes of both directions have alike.
template <class Attributes>
void fill_either(Attributes& attr, const Attributes& hints) noexcept {
  attr.msg_order = message_order;
  attr.comp_order = FI_ORDER_NONE;
  attr.size = std::max(hints.size, default_queue_size);
  attr.iov_limit = max_pieces;
}

void fill(fi_tx_attr& attr, std::uint64_t caps, const fi_tx_attr& hints) noexcept {
  fill_either(attr, hints);
  attr.caps = caps & send_caps;
  attr.op_flags = either<std::uint64_t>(hints.op_flags, FI_TRANSMIT_COMPLETE);
  attr.inject_size = std::max(hints.inject_size, usual_inject_size());
  attr.rma_iov_limit = max_pieces;
}

void fill(fi_rx_attr& attr, std::uint64_t caps, const fi_rx_attr& hints) noexcept {
  fill_either(attr, hints);
  attr.caps = caps & receive_caps;
  attr.op_flags = hints.op_flags;
  attr.total_buffered_recv = MatcherLimits{}.unexpected_bytes;
}

void fill(fi_ep_attr& attr, const fi_ep_attr& hints) noexcept {
  attr.type = FI_EP_RDM;
  attr.protocol = protocol_id;
  attr.protocol_version = protocol_version;
  attr.max_msg_size = max_message_bytes;
  attr.max_order_raw_size = max_atomic_bytes;
  attr.max_order_war_size = max_atomic_bytes;
  attr.max_order_waw_size = max_atomic_bytes;
  attr.mem_tag_format = either(hints.mem_tag_format, any_tag_format);
  attr.tx_ctx_cnt = 1;
  attr.rx_ctx_cnt = 1;
}

// No mode bit is required of programs, so all are cleared; only the two old names stay.
int mr_mode(std::uint32_t version, int wanted) noexcept {
  if (wanted == FI_MR_BASIC || wanted == FI_MR_SCALABLE) return wanted;
  if (version >= FI_VERSION(1, 5)) return 0;
  return wanted == FI_MR_UNSPEC || (wanted & FI_MR_SCALABLE) != 0 ? FI_MR_SCALABLE : FI_MR_BASIC;
}

// A program that asks for one-sided operations alone counts on targets that compute (Open MPI's
// btl/ofi says nothing of it); all others make progress when they read their queues.
fi_progress data_progress(std::uint64_t wanted_caps, fi_progress wanted) noexcept {
  if (wanted != FI_PROGRESS_UNSPEC) return wanted;
  const bool one_sided =
      (wanted_caps & (FI_RMA | FI_ATOMIC)) != 0 && (wanted_caps & (FI_MSG | FI_TAGGED)) == 0;
  return one_sided ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
}

void fill(fi_domain_attr& attr, std::uint32_t version, std::uint64_t wanted_caps,
          const fi_domain_attr& hints) noexcept {
  attr.name = strdup(domain_name);
  attr.threading = either(hints.threading, FI_THREAD_SAFE);
  attr.control_progress =
      hints.control_progress == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
  attr.data_progress = data_progress(wanted_caps, hints.data_progress);
  attr.resource_mgmt = FI_RM_ENABLED;
  attr.av_type = either(hints.av_type, FI_AV_TABLE);
  attr.mr_mode = mr_mode(version, hints.mr_mode);
  attr.domain = hints.domain;
  if (attr.domain == nullptr) {
    attr.domain = Fabric::first_open_domain(attr);
  } else if (Domain::of(attr.domain).automatic) {
    attr.data_progress = FI_PROGRESS_AUTO;
  } else if (attr.data_progress == FI_PROGRESS_AUTO) {
    // btl/ofi names the domain of the messages, which makes no progress by itself and is faster
    // that way, so btl/ofi gets a domain of its own.
    attr.domain = nullptr;
  }
  attr.mr_key_size = key_bytes;
  attr.cq_data_size = remote_data_bytes;
  attr.cq_cnt = object_count;
  attr.ep_cnt = object_count;
  attr.tx_ctx_cnt = object_count;
  attr.rx_ctx_cnt = object_count;
  attr.max_ep_tx_ctx = 1;
  attr.max_ep_rx_ctx = 1;
  attr.cntr_cnt = object_count;
  attr.mr_iov_limit = 1;
  attr.caps = reach_caps;
  attr.max_err_data = sizeof(Address);
  attr.mr_cnt = region_count;
}

// The first `bytes` bytes are what the program's version of the structure has; the rest stays zero.
fi_domain_attr copy_of(const fi_domain_attr& attr, std::uint32_t version) noexcept {
  fi_domain_attr copy = {};
  const std::size_t bytes =
      version < FI_VERSION(1, 5) ? offsetof(fi_domain_attr, cntr_cnt) : sizeof copy;
  std::memcpy(&copy, &attr, bytes);
  return copy;
}

bool fill(fi_info& info, std::uint32_t version, const fi_info* hints) noexcept {
  static constexpr fi_info nothing = {};
  const fi_info& wanted = hints != nullptr ? *hints : nothing;
  info.caps = complete_caps(wanted.caps);
  info.addr_format = address_format;
  info.handle = wanted.handle;
  fill(*info.tx_attr, info.caps, wanted.tx_attr != nullptr ? *wanted.tx_attr : fi_tx_attr{});
  fill(*info.rx_attr, info.caps, wanted.rx_attr != nullptr ? *wanted.rx_attr : fi_rx_attr{});
  fill(*info.ep_attr, wanted.ep_attr != nullptr ? *wanted.ep_attr : fi_ep_attr{});
  fill(*info.domain_attr, version, wanted.caps,
       wanted.domain_attr != nullptr ? copy_of(*wanted.domain_attr, version) : fi_domain_attr{});
  info.fabric_attr->fabric = wanted.fabric_attr != nullptr && wanted.fabric_attr->fabric != nullptr
                                 ? wanted.fabric_attr->fabric
                                 : Fabric::first_open();
  info.fabric_attr->name = strdup(fabric_name);
  // fabric_attr->prov_name stays NULL: libfabric fills it in.
  return info.fabric_attr->name != nullptr && info.domain_attr->name != nullptr;
}

// An fi_info's addresses, as hints, node and service ask for them.
struct Ends {
  Address source, destination;
  bool has_destination = false;
};

// nullptr, or why there are no such addresses.
const char* find_ends(const char* node, const char* service, std::uint64_t flags,
                      const fi_info* hints, Ends* ends) noexcept {
  const bool named = node != nullptr || service != nullptr;
  const bool local = (flags & FI_SOURCE) != 0;
  ends->source = address_of_port(0);
  if (named) {
    Address& address = local ? ends->source : ends->destination;
    if (!resolve(node, service, local, (flags & FI_NUMERICHOST) != 0, &address)) {
      return "node and service name no endpoint of this host, and node is no address of haul's";
    }
    ends->has_destination = !local;
  }
  if (hints == nullptr) return nullptr;
  if (!local && hints->src_addr != nullptr &&
      (!copy_address(hints->src_addr, hints->src_addrlen, &ends->source) ||
       ends->source.host != host_identity())) {
    return "src_addr is no address of haul's on this host";
  }
  if (ends->has_destination || hints->dest_addr == nullptr) return nullptr;
  if (!copy_address(hints->dest_addr, hints->dest_addrlen, &ends->destination)) {
    return "dest_addr is no address of haul's";
  }
  ends->has_destination = true;
  return nullptr;
}

// libfabric frees it.
bool give(const Address& address, void** copy, std::size_t* bytes) noexcept {
  *copy = std::malloc(sizeof address);
  if (*copy == nullptr) return false;
  std::memcpy(*copy, &address, sizeof address);
  *bytes = sizeof address;
  return true;
}

bool fill(fi_info& info, const Ends& ends) noexcept {
  return give(ends.source, &info.src_addr, &info.src_addrlen) &&
         (!ends.has_destination || give(ends.destination, &info.dest_addr, &info.dest_addrlen));
}

}  // namespace

std::uint64_t complete_caps(std::uint64_t requested) noexcept {
  if (requested == 0) return default_caps;
  std::uint64_t caps = requested | reach_caps;
  if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & message_modifiers) == 0) {
    caps |= message_modifiers;
  }
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (caps & access_modifiers) == 0) {
    caps |= access_modifiers;
  }
  // These cost nothing where they are not used.
  if ((caps & FI_MSG) != 0 && (caps & FI_RECV) != 0) caps |= FI_MULTI_RECV;
  return caps | FI_FENCE;
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) noexcept {
  const Libfabric* library = libfabric();
  if (library == nullptr || info == nullptr) return -FI_ENODATA;
  *info = nullptr;
  if ((flags & FI_SOURCE) != 0 && node == nullptr && service == nullptr) return -FI_EINVAL;
  if ((flags & FI_PROV_ATTR_ONLY) != 0) hints = nullptr;
  if (hints != nullptr) {
    if (const char* reason = hints_refusal(version, *hints)) {
      log_refusal("fi_getinfo", reason);
      return -FI_ENODATA;
    }
  }
  const bool whole = (flags & FI_PROV_ATTR_ONLY) == 0;
  Ends ends;
  if (whole) {
    if (const char* reason = find_ends(node, service, flags, hints, &ends)) {
      log_refusal("fi_getinfo", reason);
      return -FI_ENODATA;
    }
  }
  fi_info* made = library->dupinfo(nullptr);
  if (made == nullptr) return -FI_ENOMEM;
  if (whole && !(fill(*made, version, hints) && fill(*made, ends))) {
    library->freeinfo(made);
    return -FI_ENOMEM;
  }
  *info = made;
  return 0;
}

}  // namespace haul::fabric
