#include "api/convert.hpp"
#include "api/startup.hpp"
#include "client/grants.hpp"
#include "gate/gate.hpp"
#include "mover/submit.hpp"

namespace haul::api {
namespace {

static_assert(HAUL_SHARE_READ == wire::may_read && HAUL_SHARE_WRITE == wire::may_write);

// Makes the calling thread's ring: making the first one registers the fork and exit handlers that
// the link to the service needs.
Code prepare(Error* error) noexcept {
  start_up();
  if (gate.closed.load(std::memory_order_relaxed)) {
    *error = make_error(Code::closed, 0, "haul_shutdown() was called; share memory before it.");
    return Code::closed;
  }
  return ring_for_submit(error) != nullptr ? Code::ok : error->code;
}

}  // namespace

extern "C" HAUL_API int haul_share(void* address, std::size_t len, std::uint32_t rights,
                                   haul_grant* grant) {
  const auto from = reinterpret_cast<std::uintptr_t>(address);
  if (grant == nullptr || address == nullptr)
    return fail(make_error(Code::invalid, 0, "%s is NULL; pass %s.",
                           grant == nullptr ? "grant" : "address",
                           grant == nullptr ? "a variable for the grant" : "memory to share"));
  if (len == 0 || overflows(from, len))
    return fail(make_error(Code::invalid, 0,
                           "%zu bytes at %p are not a range of this process; check the length.",
                           len, address));
  constexpr std::uint32_t all_rights = HAUL_SHARE_READ | HAUL_SHARE_WRITE;
  if (rights == 0 || (rights & ~all_rights) != 0)
    return fail(make_error(
        Code::invalid, 0,
        "Rights 0x%x do not exist; use HAUL_SHARE_READ, HAUL_SHARE_WRITE or both.", rights));
  Error error;
  if (prepare(&error) != Code::ok) return fail(error);
  auto capability = share(from, len, rights);
  if (!capability) return fail(capability.error());
  *grant = haul_grant{capability->fd, 0, capability->index};
  return 0;
}

extern "C" HAUL_API int haul_unshare(const haul_grant* grant) {
  if (grant == nullptr)
    return fail(
        make_error(Code::invalid, 0, "grant is NULL; pass the one that haul_share() gave."));
  Error error;
  return unshare(grant->index, &error) == Code::ok ? 0 : fail(error);
}

extern "C" HAUL_API int haul_space_open_grant(const haul_grant* grant, haul_space* space,
                                              std::size_t* len) {
  if (grant == nullptr || space == nullptr)
    return fail(
        make_error(Code::invalid, 0, "%s is NULL; pass %s.", grant == nullptr ? "grant" : "space",
                   grant == nullptr ? "the one that was received" : "a variable for the handle"));
  if (grant->reserved != 0)
    return fail(make_error(Code::invalid, 0,
                           "The grant's reserved field is %u; zero the struct first.",
                           grant->reserved));
  Error error;
  if (prepare(&error) != Code::ok) return fail(error);
  std::size_t length = 0;
  auto opened = open_grant(Capability{grant->fd, grant->index}, &length);
  if (!opened) return fail(opened.error());
  *space = *opened;
  if (len != nullptr) *len = length;
  return 0;
}

}  // namespace haul::api
