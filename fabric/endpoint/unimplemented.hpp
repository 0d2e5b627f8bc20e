// What fills the places of operation tables that this provider does not implement.
#pragma once

#include <rdma/fi_errno.h>

namespace haul::fabric {

template <class Result, class... Arguments>
using Operation = Result (*)(Arguments...);

// Converts to a function of any signature that returns -FI_ENOSYS.
struct Unimplemented {
  template <class Result, class... Arguments>
  constexpr operator Operation<Result, Arguments...>() const noexcept {
    return [](Arguments...) -> Result { return -FI_ENOSYS; };
  }
};
inline constexpr Unimplemented unimplemented;

}  // namespace haul::fabric
