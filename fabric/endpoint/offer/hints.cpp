// Checking hints, one attribute structure after the other.
#include "fabric/endpoint/offer/hints.hpp"

#include <cstring>

#include "base/log.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/fabric.hpp"

namespace haul::fabric {

namespace {

bool other_name(const char* wanted, const char* name) noexcept {
  return wanted != nullptr && std::strcmp(wanted, name) != 0;
}

constexpr bool beyond(std::uint64_t wanted, std::uint64_t offered) noexcept {
  return (wanted & ~offered) != 0;
}

const char* refusal(const fi_fabric_attr& attr) noexcept {
  if (other_name(attr.name, fabric_name)) return "another fabric is named (fabric_attr->name)";
  if (attr.fabric != nullptr && !Fabric::is_open(attr.fabric)) {
    return "fabric_attr->fabric is not one of this provider's";
  }
  return nullptr;
}

const char* refusal(const fi_ep_attr& attr, std::uint32_t version) noexcept {
  if (attr.type != FI_EP_UNSPEC && attr.type != FI_EP_RDM) {
    return "only endpoints of type FI_EP_RDM are offered";
  }
  if (attr.protocol != FI_PROTO_UNSPEC && attr.protocol != protocol_id) {
    return "another protocol is asked for";
  }
  if (attr.protocol_version > protocol_version) return "a later protocol version is asked for";
  if (attr.max_msg_size > max_message_bytes) return "max_msg_size is too large";
  if (attr.msg_prefix_size > 0) return "message prefixes are not offered (msg_prefix_size)";
  if (attr.max_order_raw_size > max_atomic_bytes || attr.max_order_war_size > max_atomic_bytes ||
      attr.max_order_waw_size > max_atomic_bytes) {
    return "data order is offered up to the size of an atomic only (max_order_*_size)";
  }
  if (attr.tx_ctx_cnt > 1 || attr.rx_ctx_cnt > 1) {
    return "scalable endpoints and shared contexts are not offered (tx_ctx_cnt, rx_ctx_cnt)";
  }
  if (version >= FI_VERSION(1, 5) && attr.auth_key_size > 0) {
    return "authorization keys are not offered (ep_attr->auth_key)";
  }
  return nullptr;
}

bool known_threading(fi_threading threading) noexcept {
  switch (threading) {
    case FI_THREAD_UNSPEC:
    case FI_THREAD_SAFE:
    case FI_THREAD_FID:
    case FI_THREAD_DOMAIN:
    case FI_THREAD_COMPLETION:
    case FI_THREAD_ENDPOINT: return true;
  }
  return false;
}

const char* mr_mode_refusal(int mode, std::uint32_t version) noexcept {
  constexpr int later = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                        FI_MR_PROV_KEY | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT |
                        FI_MR_HMEM | FI_MR_COLLECTIVE;
  if ((mode & (FI_MR_BASIC | FI_MR_SCALABLE)) != 0) {
    const bool alone = version < FI_VERSION(1, 5) ? (mode & later) == 0
                                                  : mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;
    return alone ? nullptr : "FI_MR_BASIC and FI_MR_SCALABLE stand alone in mr_mode";
  }
  return nullptr;
}

const char* refusal(const fi_domain_attr& attr, std::uint32_t version) noexcept {
  if (other_name(attr.name, domain_name)) return "another domain is named (domain_attr->name)";
  if (attr.domain != nullptr && !Fabric::is_open(attr.domain)) {
    return "domain_attr->domain is not one of this provider's";
  }
  if (!known_threading(attr.threading)) return "an unknown threading model is asked for";
  // control_progress: nothing is left to do when a control call returns, so every model holds.
  if (attr.data_progress != FI_PROGRESS_UNSPEC && attr.data_progress != FI_PROGRESS_MANUAL &&
      attr.data_progress != FI_PROGRESS_AUTO) {
    return "an unknown data_progress is asked for";
  }
  if (attr.domain != nullptr && attr.data_progress == FI_PROGRESS_AUTO &&
      !Domain::of(attr.domain).automatic) {
    return "domain_attr->domain was not opened with FI_PROGRESS_AUTO";
  }
  if (attr.resource_mgmt != FI_RM_UNSPEC && attr.resource_mgmt != FI_RM_DISABLED &&
      attr.resource_mgmt != FI_RM_ENABLED) {
    return "an unknown resource_mgmt is asked for";
  }
  if (attr.av_type != FI_AV_UNSPEC && attr.av_type != FI_AV_MAP && attr.av_type != FI_AV_TABLE) {
    return "an unknown av_type is asked for";
  }
  if (const char* reason = mr_mode_refusal(attr.mr_mode, version)) return reason;
  if (attr.mr_key_size > key_bytes) return "keys of regions have 8 bytes (mr_key_size)";
  if (attr.cq_data_size > remote_data_bytes) return "remote CQ data have 8 bytes (cq_data_size)";
  if (attr.cq_cnt > object_count || attr.ep_cnt > object_count || attr.tx_ctx_cnt > object_count ||
      attr.rx_ctx_cnt > object_count || attr.cntr_cnt > object_count) {
    return "too many objects are asked for (domain_attr's counts)";
  }
  if (attr.max_ep_tx_ctx > 1 || attr.max_ep_rx_ctx > 1 || attr.max_ep_stx_ctx > 0 ||
      attr.max_ep_srx_ctx > 0) {
    return "scalable endpoints and shared contexts are not offered (max_ep_*_ctx)";
  }
  if (attr.mr_iov_limit > 1) return "a region has one piece (mr_iov_limit)";
  // What follows came with version 1.5.
  if (version < FI_VERSION(1, 5)) return nullptr;
  if (beyond(attr.caps, reach_caps))
    return "named address vectors are not offered (domain_attr->caps)";
  if (attr.auth_key_size > 0) return "authorization keys are not offered (domain_attr->auth_key)";
  if (attr.max_err_data > sizeof(Address)) return "max_err_data is too large";
  if (attr.mr_cnt > region_count) return "too many regions are asked for (mr_cnt)";
  return nullptr;
}

const char* refusal(const fi_tx_attr& attr) noexcept {
  if (beyond(attr.caps, send_caps | reach_caps)) return "tx_attr->caps has more than is offered";
  if (beyond(attr.op_flags, send_op_flags)) return "tx_attr->op_flags has more than is offered";
  if (beyond(attr.msg_order, message_order)) return "tx_attr->msg_order has more than is offered";
  if (attr.comp_order != FI_ORDER_NONE)
    return "no completion order is offered (tx_attr->comp_order)";
  if (attr.inject_size > inject_bytes) return "inject_size is too large";
  if (attr.size > max_queue_size) return "tx_attr->size is too large";
  if (attr.iov_limit > max_pieces) return "tx_attr->iov_limit is too large";
  if (attr.rma_iov_limit > max_pieces) return "rma_iov_limit is too large";
  return nullptr;
}

const char* refusal(const fi_rx_attr& attr) noexcept {
  if (beyond(attr.caps, receive_caps | reach_caps)) return "rx_attr->caps has more than is offered";
  if (beyond(attr.op_flags, receive_op_flags)) return "rx_attr->op_flags has more than is offered";
  if (beyond(attr.msg_order, message_order)) return "rx_attr->msg_order has more than is offered";
  if (attr.comp_order != FI_ORDER_NONE)
    return "no completion order is offered (rx_attr->comp_order)";
  if (attr.total_buffered_recv > MatcherLimits{}.unexpected_bytes) {
    return "total_buffered_recv is too large";
  }
  if (attr.size > max_queue_size) return "rx_attr->size is too large";
  if (attr.iov_limit > max_pieces) return "rx_attr->iov_limit is too large";
  return nullptr;
}

}  // namespace

const char* hints_refusal(std::uint32_t version, const fi_info& hints) noexcept {
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != address_format) {
    return "another addr_format is asked for; leave it FI_FORMAT_UNSPEC";
  }
  const char* reason = nullptr;
  if (hints.fabric_attr != nullptr) reason = refusal(*hints.fabric_attr);
  if (reason == nullptr && hints.domain_attr != nullptr) {
    reason = refusal(*hints.domain_attr, version);
  }
  return reason != nullptr ? reason : endpoint_refusal(version, hints);
}

const char* endpoint_refusal(std::uint32_t version, const fi_info& info) noexcept {
  if (beyond(info.caps, offered_caps)) return "caps has more than is offered";
  const char* reason = nullptr;
  if (info.ep_attr != nullptr) reason = refusal(*info.ep_attr, version);
  if (reason == nullptr && info.tx_attr != nullptr) reason = refusal(*info.tx_attr);
  if (reason == nullptr && info.rx_attr != nullptr) reason = refusal(*info.rx_attr);
  return reason;
}

void log_refusal(const char* call, const char* reason) noexcept {
  log(LogLevel::debug, "%s: the provider haul does not offer what is asked for: %s", call, reason);
}

}  // namespace haul::fabric
