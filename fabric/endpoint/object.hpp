// What every object of libfabric's begins with: its table of calls, and what fills the places of
// calls that this provider does not implement.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstddef>

namespace haul::fabric {

// Converts to a function of any signature that returns -FI_ENOSYS.
struct Unimplemented {
  template <class Result, class... Arguments>
  using Call = Result (*)(Arguments...);
  template <class Result, class... Arguments>
  constexpr operator Call<Result, Arguments...>() const noexcept {
    return [](Arguments...) -> Result { return -FI_ENOSYS; };
  }
};
inline constexpr Unimplemented unimplemented;

constexpr fi_ops object_calls(decltype(fi_ops::close) close,
                              decltype(fi_ops::bind) bind = unimplemented,
                              decltype(fi_ops::control) control = unimplemented) noexcept {
  return {.size = sizeof(fi_ops),
          .close = close,
          .bind = bind,
          .control = control,
          .ops_open = unimplemented,
          .tostr = unimplemented,
          .ops_set = unimplemented};
}

// The head of a new object. `calls` outlives it.
inline void begin_object(fid& head, std::size_t kind, void* context, fi_ops& calls) noexcept {
  head.fclass = kind;
  head.context = context;
  head.ops = &calls;
}

}  // namespace haul::fabric
