// Packets through a libfabric provider.
#include "fabric/transport/offnode/carrier/libfabric_carrier.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <new>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/thread/uncancelled.hpp"
#include "fabric/transport/libfabric.hpp"

namespace haul::fabric {

namespace {

constexpr std::size_t packets_landing_bytes = std::size_t{1} << 20;
constexpr std::size_t landing_count = 4;
constexpr std::size_t queue_entries = 4096;

template <class Object>
void close(Object*& object) noexcept {
  if (object != nullptr) fi_close(&object->fid);
  object = nullptr;
}

}  // namespace

// atomic/fabric/fabric_endpoint.cpp opens a provider in much the same steps. They are not shared:
// that plug-in links libfabric, whereas this provider must look up the one that has loaded it, and
// the two rooms know nothing of each other.
int LibfabricCarrier::set_up(const fi_info& info) noexcept {
  const Uncancelled guard;
  provider_ = info.fabric_attr->prov_name;
  const auto mode = static_cast<std::uint64_t>(info.domain_attr->mr_mode);
  const bool always = knob_number(Knob::fabric_register) != 0;
  registers_ = (mode & FI_MR_LOCAL) != 0 || always;
  by_address_ = (mode & FI_MR_VIRT_ADDR) != 0;
  chooses_keys_ = (mode & FI_MR_PROV_KEY) != 0;
  reads_ = (info.caps & read_caps) == read_caps;
  most_pieces_ = info.tx_attr->iov_limit;
  const Libfabric& library = *libfabric();
  info_ = library.dupinfo(&info);
  if (info_ == nullptr) return -FI_ENOMEM;
  int error = library.fabric(info_->fabric_attr, &fabric_, nullptr);
  if (error == 0) error = fi_domain(fabric_, info_, &domain_, nullptr);
  if (error == 0) {
    // Over tcp it is free, and remembering it is not.
    const bool costs = registers_ || (mode & (FI_MR_PROV_KEY | FI_MR_ALLOCATED)) != 0;
    memory_lent_.open(*domain_, FI_REMOTE_READ, chooses_keys_, costs);
    places_read_into_.open(*domain_, FI_READ, chooses_keys_, costs);
  }
  fi_cq_attr queue{};
  queue.size = queue_entries;
  queue.format = FI_CQ_FORMAT_DATA;
  queue.wait_obj = FI_WAIT_NONE;
  if (error == 0) error = fi_cq_open(domain_, &queue, &queue_, nullptr);
  fi_av_attr addresses{};
  addresses.type = FI_AV_UNSPEC;
  if (error == 0) error = fi_av_open(domain_, &addresses, &addresses_, nullptr);
  if (error == 0) error = fi_endpoint(domain_, info_, &endpoint_, nullptr);
  if (error == 0) error = fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV);
  if (error == 0) error = fi_ep_bind(endpoint_, &addresses_->fid, 0);
  // Where less than this is left, a landing is full. Before enable: libfabric 2 wants it so.
  std::size_t room = packet_bytes;
  if (error == 0) {
    error = fi_setopt(&endpoint_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &room, sizeof room);
  }
  if (error == 0) error = fi_enable(endpoint_);
  name_bytes_ = sizeof name_;
  if (error == 0) error = fi_getname(&endpoint_->fid, name_, &name_bytes_);
  if (error == 0 && !make_landings()) error = -FI_ENOMEM;
  return error;
}

Expected<std::unique_ptr<OffnodeCarrier>> LibfabricCarrier::open(const fi_info& info) noexcept {
  std::unique_ptr<LibfabricCarrier> carrier(new (std::nothrow) LibfabricCarrier);
  const int error = carrier ? carrier->set_up(info) : -FI_ENOMEM;
  if (error == 0) return std::unique_ptr<OffnodeCarrier>(std::move(carrier));
  return make_error(Code::io, 0,
                    "the libfabric provider %s cannot be opened (%s); set FI_LOG_LEVEL=warn to "
                    "see why, or HAUL_FABRIC_OFFNODE to another one on all nodes",
                    info.fabric_attr->prov_name, libfabric()->strerror(-error));
}

LibfabricCarrier::~LibfabricCarrier() {
  const Uncancelled guard;
  close(endpoint_);
  close(addresses_);
  close(queue_);
  close_registrations();
  close(domain_);
  close(fabric_);
  if (info_ != nullptr) libfabric()->freeinfo(info_);
}

int LibfabricCarrier::insert(const std::uint8_t* name, std::size_t, fi_addr_t* address) noexcept {
  const Uncancelled guard;
  const int count = fi_av_insert(addresses_, name, 1, address, 0, nullptr);
  if (count == 1) return 0;
  return count < 0 ? count : -FI_EINVAL;
}

bool LibfabricCarrier::make_landings() noexcept {
  Slab slab;
  if (!map(packets_landing_bytes * landing_count, &slab)) return false;
  landings_.resize(landing_count);
  for (std::size_t i = 0; i < landing_count; ++i) {
    Landing& landing = landings_[i];
    landing.kind = CarrierOperation::Kind::landing;
    landing.data = slab.memory + i * packets_landing_bytes;
    landing.descriptor = slab.descriptor;
    post(landing);
  }
  slabs_.push_back(std::move(slab));
  return true;
}

// ---- packets ----

int LibfabricCarrier::send(Departure& departure, fi_addr_t address) noexcept {
  const Uncancelled guard;
  return static_cast<int>(fi_send(endpoint_, departure.data, departure.bytes, departure.descriptor,
                                  address, &departure.words));
}

void LibfabricCarrier::post(Landing& landing) noexcept {
  const Uncancelled guard;
  landing.full = false;
  iovec piece{landing.data, packets_landing_bytes};
  fi_msg message{};
  message.msg_iov = &piece;
  message.desc = landing.descriptor != nullptr ? &landing.descriptor : nullptr;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &landing.words;
  if (fi_recvmsg(endpoint_, &message, FI_MULTI_RECV) != 0) unposted_.push_back(&landing);
}

void LibfabricCarrier::let_go(Landing& landing) noexcept {
  if (--landing.packets == 0 && landing.full) post(landing);
}

bool LibfabricCarrier::poll(User& user) noexcept {
  const Uncancelled guard;
  memory_lent_.tidy();
  places_read_into_.tidy();
  constexpr std::size_t at_once = 32;
  fi_cq_data_entry entries[at_once];
  if (!unposted_.empty()) {
    std::vector<Landing*> again;
    again.swap(unposted_);
    for (Landing* landing : again) post(*landing);
  }
  const ssize_t count = fi_cq_read(queue_, entries, at_once);
  if (count == -FI_EAVAIL) return poll_error(user);
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[i];
    auto* const operation = static_cast<CarrierOperation*>(entry.op_context);
    if (operation->kind == CarrierOperation::Kind::departure) {
      user.departed(static_cast<Departure&>(*operation), 0);
      continue;
    }
    if (operation->kind == CarrierOperation::Kind::reading) {
      ended(static_cast<Reading&>(*operation), 0, user);
      continue;
    }
    auto& landing = static_cast<Landing&>(*operation);
    if ((entry.flags & FI_MULTI_RECV) != 0) landing.full = true;
    if (entry.len != 0) {
      ++landing.packets;
      user.arrived(*this, static_cast<const std::byte*>(entry.buf), entry.len, landing);
    } else if (landing.full && landing.packets == 0) {
      post(landing);
    }
  }
  return count > 0;
}

bool LibfabricCarrier::poll_error(User& user) noexcept {
  // Room for what libfabric 2 adds to it, though a provider opened by version 1.17 must not.
  struct {
    fi_cq_err_entry entry;
    std::byte more[64];
  } failure{};
  if (fi_cq_readerr(queue_, &failure.entry, 0) != 1 || failure.entry.op_context == nullptr) {
    return false;
  }
  auto* const operation = static_cast<CarrierOperation*>(failure.entry.op_context);
  const int error = failure.entry.err != 0 ? failure.entry.err : FI_EIO;
  if (operation->kind == CarrierOperation::Kind::departure) {
    user.departed(static_cast<Departure&>(*operation), error);
    return true;
  }
  if (operation->kind == CarrierOperation::Kind::reading) {
    ended(static_cast<Reading&>(*operation), error, user);
    return true;
  }
  auto& landing = static_cast<Landing&>(*operation);
  log(LogLevel::info, "%s could not receive a packet (%s); its sender is not known",
      provider_.c_str(), libfabric()->strerror(failure.entry.err));
  if ((failure.entry.flags & FI_MULTI_RECV) != 0) landing.full = true;
  if (landing.full && landing.packets == 0) post(landing);
  return true;
}

}  // namespace haul::fabric
