// The one symbol that libfabric looks for.
#include <haul/haul.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "fabric/endpoint/fabric.hpp"
#include "fabric/endpoint/offer/info.hpp"

namespace {

// libfabric refuses providers of an older interface than the program asks for. Newer ones change
// nothing in what is implemented here.
constexpr std::uint32_t newest_interface = FI_VERSION(2, 99);

constinit fi_provider provider = {
    .version = FI_VERSION(HAUL_VERSION_MAJOR, HAUL_VERSION_MINOR),
    .fi_version = newest_interface,
    .context = {},
    .name = "haul",
    .getinfo = haul::fabric::get_info,
    .fabric = haul::fabric::Fabric::open,
    .cleanup = [] {},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) {
  return &provider;
}
