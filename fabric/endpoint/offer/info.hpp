// What the provider offers: one kind of endpoint (FI_EP_RDM), described by one fi_info.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "fabric/protocol/address.hpp"
#include "fabric/protocol/matcher.hpp"

namespace haul::fabric {

inline constexpr char fabric_name[] = "haul";
inline constexpr char domain_name[] = "haul";

// Addresses and the protocol are this provider's own: the upper bit says so.
inline constexpr std::uint32_t address_format = FI_PROV_SPECIFIC | 0x4841;
inline constexpr std::uint32_t protocol_id = FI_PROV_SPECIFIC | 0x4841;
inline constexpr std::uint32_t protocol_version = Address::expected_version;

inline constexpr std::uint64_t primary_caps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
inline constexpr std::uint64_t message_modifiers = FI_SEND | FI_RECV;
inline constexpr std::uint64_t access_modifiers =
    FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t reach_caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr std::uint64_t default_caps = primary_caps | message_modifiers | access_modifiers |
                                              reach_caps | FI_MULTI_RECV | FI_SOURCE |
                                              FI_RMA_EVENT | FI_FENCE;
// FI_SOURCE_ERR turns messages of unknown peers into errors: only for programs that ask for it.
inline constexpr std::uint64_t offered_caps = default_caps | FI_SOURCE_ERR;
inline constexpr std::uint64_t send_caps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
inline constexpr std::uint64_t receive_caps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE |
    FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT;

// The capabilities that a request for these means: with all modifiers where none is named.
std::uint64_t complete_caps(std::uint64_t requested) noexcept;

// Default flags of operations that an endpoint may have.
inline constexpr std::uint64_t send_op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                               FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                               FI_MATCH_COMPLETE | FI_MORE;
inline constexpr std::uint64_t receive_op_flags =
    FI_COMPLETION | FI_MULTI_RECV | FI_MORE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;

inline constexpr std::uint64_t message_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR |
                                               FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                                               FI_ORDER_ATOMIC_WAW;
inline constexpr std::size_t max_message_bytes = INT64_MAX;
inline constexpr std::size_t default_queue_size = 1024;
inline constexpr std::size_t max_queue_size = MatcherLimits{}.operations;
inline constexpr std::size_t object_count = 65536;  // of queues, endpoints, counters: "many"
inline constexpr std::size_t region_count = std::size_t{1} << 24;
inline constexpr std::size_t remote_data_bytes = 8, key_bytes = 8;

// fi_getinfo()'s answer. libfabric calls it with the version that the program asked for.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) noexcept;

}  // namespace haul::fabric
