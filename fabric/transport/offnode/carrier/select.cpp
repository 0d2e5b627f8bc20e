// Which carriers there are, and how one is opened.
#include <netinet/in.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "base/log.hpp"
#include "base/thread/uncancelled.hpp"
#include "fabric/transport/libfabric.hpp"
#include "fabric/transport/offnode/carrier/libfabric_carrier.hpp"
#include "fabric/transport/offnode/carrier/socket_carrier.hpp"

namespace haul::fabric {

namespace {

// What `auto` allows, the best first: RDMA hardware; tcp, which is reliable by itself from
// libfabric 2 on; our own; and last tcp;ofi_rxm, for it takes 70 to 140 MB an endpoint, half a
// second to connect, and cannot be opened where FI_PROVIDER hides it.
constexpr const char* known_carriers[] = {"verbs;ofi_rxm", "tcp", OffnodeCarrier::socket_name,
                                          "tcp;ofi_rxm"};

struct FreeInfo {
  void operator()(fi_info* info) const noexcept { libfabric()->freeinfo(info); }
};
using Infos = std::unique_ptr<fi_info, FreeInfo>;

// The provider's reliable endpoints that keep the order of messages.
Infos look_for(const char* provider, std::uint64_t more_caps) noexcept {
  const Libfabric* library = libfabric();
  if (library == nullptr) return nullptr;
  const Uncancelled guard;
  const Infos hints(library->dupinfo(nullptr));
  if (!hints) return nullptr;
  hints->caps = FI_MSG | FI_MULTI_RECV | more_caps;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = ::strdup(provider);  // freed with the hints
  fi_info* found = nullptr;
  const int error =
      library->getinfo(FI_VERSION(1, 17), nullptr, nullptr, getinfo_hidden, hints.get(), &found);
  return Infos(error == 0 ? found : nullptr);
}

// One that reads its peers' memory, else one that does not.
Infos look_for(const char* provider) noexcept {
  Infos reading = look_for(provider, read_caps);
  return reading ? std::move(reading) : look_for(provider, 0);
}

bool carries(const fi_info& info, const char* provider) noexcept {
  return std::strcmp(info.fabric_attr->prov_name, provider) == 0 &&
         info.ep_attr->max_msg_size >= OffnodeCarrier::packet_bytes;
}

// Whether the endpoint would be at this address; true where the provider's addresses are no IP.
bool lies_at(const fi_info& info, const os::InetAddress& local) noexcept {
  if (info.addr_format != FI_SOCKADDR_IN && info.addr_format != FI_SOCKADDR_IN6) return true;
  if (info.src_addr == nullptr) return false;
  const auto* bytes = static_cast<const std::uint8_t*>(info.src_addr);
  if (!local.six && info.addr_format == FI_SOCKADDR_IN && info.src_addrlen >= sizeof(sockaddr_in)) {
    return std::memcmp(bytes + offsetof(sockaddr_in, sin_addr), local.bytes, 4) == 0;
  }
  if (local.six && info.addr_format == FI_SOCKADDR_IN6 &&
      info.src_addrlen >= sizeof(sockaddr_in6)) {
    return std::memcmp(bytes + offsetof(sockaddr_in6, sin6_addr), local.bytes, 16) == 0;
  }
  return false;
}

}  // namespace

std::vector<std::string> OffnodeCarrier::available(const char* knob) noexcept {
  std::vector<std::string> names;
  const auto add = [&](const char* name) noexcept {
    bool there = std::strcmp(name, socket_name) == 0;
    const Infos infos = there ? nullptr : look_for(name);
    for (const fi_info* info = infos.get(); info != nullptr && !there; info = info->next) {
      there = carries(*info, name);
    }
    if (there) names.emplace_back(name);
  };
  if (std::strcmp(knob, "auto") != 0) {
    add(knob);
  } else {
    for (const char* known : known_carriers) add(known);
  }
  return names;
}

Expected<std::unique_ptr<OffnodeCarrier>> OffnodeCarrier::open(
    const char* provider, const os::InetAddress& local) noexcept {
  if (std::strcmp(provider, socket_name) == 0) return SocketCarrier::open(local);
  const Infos infos = look_for(provider);
  const fi_info* chosen = nullptr;
  for (const fi_info* info = infos.get(); info != nullptr; info = info->next) {
    if (chosen == nullptr && carries(*info, provider) && lies_at(*info, local)) chosen = info;
  }
  if (chosen == nullptr) {
    return make_error(
        Code::not_supported, 0,
        "libfabric has no provider %s for the network interface that leads to the other "
        "nodes; set HAUL_FABRIC_OFFNODE to one that fi_info lists, the same on all",
        provider);
  }
  return LibfabricCarrier::open(*chosen);
}

}  // namespace haul::fabric
