// What the domain asks of the atomics.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

#include <cstdint>

namespace haul::fabric {

// fi_ops_domain.query_atomic.
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op operation, fi_atomic_attr* attr,
                 std::uint64_t flags) noexcept;

}  // namespace haul::fabric
