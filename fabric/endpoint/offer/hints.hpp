// Whether what a program asks for is offered.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "fabric/endpoint/offer/info.hpp"

namespace haul::fabric {

// nullptr if the offer satisfies these hints of a program that asked for this API version; else the
// reason, for the log.
const char* hints_refusal(std::uint32_t version, const fi_info& hints) noexcept;
// The same of what concerns an endpoint. Version 0: fields that came with 1.5 may be missing.
const char* endpoint_refusal(std::uint32_t version, const fi_info& info) noexcept;

// Says at debug level that `call` refuses for this reason.
void log_refusal(const char* call, const char* reason) noexcept;

}  // namespace haul::fabric
