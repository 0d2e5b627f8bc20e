#include "atomic/fabric/fabric_endpoint.hpp"

#include <poll.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "atomic/link/socket_address.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::atomics {

namespace {

constexpr std::uint32_t version = FI_VERSION(1, 17);
constexpr std::uint64_t memory_modes =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

struct ProviderAtomic {
  wire_code code;
  fi_op operation;
};
constexpr ProviderAtomic pairs[] = {{WIRE_READ, FI_ATOMIC_READ},  {WIRE_ADD, FI_SUM},
                                    {WIRE_SWAP, FI_ATOMIC_WRITE}, {WIRE_CAS, FI_CSWAP},
                                    {WIRE_AND, FI_BAND},          {WIRE_OR, FI_BOR},
                                    {WIRE_XOR, FI_BXOR}};

fi_op operation_of(unsigned code) noexcept {
  for (const ProviderAtomic& pair : pairs) {
    if (pair.code == code) return pair.operation;
  }
  return FI_ATOMIC_WRITE;
}

template <class Object>
void close_one(Object*& object) noexcept {
  if (object != nullptr) fi_close(&object->fid);
  object = nullptr;
}

}  // namespace

bool FabricEndpoint::find(const FabricOptions& options, Error* error) noexcept {
  fi_info* hints = fi_allocinfo();
  if (hints == nullptr) {
    *error = make_error(Code::no_memory, 0, "no memory for libfabric; free some");
    return false;
  }
  SocketAddress numeric;
  const bool by_address = parse_host(options.place, 0, &numeric);
  char port[8] = "";
  if (options.port != 0) snprintf(port, sizeof port, "%u", options.port);
  hints->caps = FI_ATOMIC | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = static_cast<int>(memory_modes);
  hints->fabric_attr->prov_name = strdup(options.provider);
  if (!by_address && options.place[0] != '\0') hints->domain_attr->name = strdup(options.place);
  const char* node = by_address ? options.place : nullptr;
  const char* service = port[0] != '\0' ? port : nullptr;
  const std::uint64_t source = node != nullptr || service != nullptr ? FI_SOURCE : 0;
  fi_info* found = nullptr;
  int result = fi_getinfo(version, node, service, source, hints, &found);
  fi_freeinfo(hints);
  if (result == 0) {
    // Some providers ignore the domain's name.
    const fi_info* one = found;
    while (one != nullptr && !by_address && options.place[0] != '\0' &&
           std::strcmp(one->domain_attr->name, options.place) != 0) {
      one = one->next;
    }
    if (one != nullptr) info_ = fi_dupinfo(one);
    result = one == nullptr ? -FI_ENODATA : info_ == nullptr ? -FI_ENOMEM : 0;
    fi_freeinfo(found);
  }
  if (result == 0) return true;
  *error = make_error(
      Code::not_supported, 0,
      "libfabric has no provider '%s' with atomics%s%s here (%s); `fi_info -c FI_ATOMIC -t "
      "FI_EP_RDM` lists those it has",
      options.provider, options.place[0] != '\0' ? " at " : "", options.place,
      fi_strerror(-result));
  return false;
}

// fabric/transport/offnode/carrier opens a provider in much the same steps; its comment says why
// they are not shared.
int FabricEndpoint::start() noexcept {
  const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
  local_ = (mode & FI_MR_LOCAL) != 0;
  by_address_ = (mode & FI_MR_VIRT_ADDR) != 0;
  chooses_keys_ = (mode & FI_MR_PROV_KEY) != 0;
  binds_ = (mode & FI_MR_ENDPOINT) != 0;
  needs_a_look_ = info_->domain_attr->data_progress != FI_PROGRESS_AUTO;
  int error = fi_fabric(info_->fabric_attr, &fabric_, nullptr);
  if (error == 0) error = fi_domain(fabric_, info_, &domain_, nullptr);
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_CONTEXT;
  queue.wait_obj = FI_WAIT_FD;
  if (error == 0 && fi_cq_open(domain_, &queue, &queue_, nullptr) != 0) {
    queue.wait_obj = FI_WAIT_NONE;
    error = fi_cq_open(domain_, &queue, &queue_, nullptr);
  } else if (int fd = -1; error == 0 && fi_control(&queue_->fid, FI_GETWAIT, &fd) == 0) {
    queue_fd_ = os::Descriptor::of(fd);
  }
  fi_av_attr addresses{};
  addresses.type = FI_AV_UNSPEC;
  if (error == 0) error = fi_av_open(domain_, &addresses, &addresses_, nullptr);
  if (error == 0) error = fi_endpoint(domain_, info_, &endpoint_, nullptr);
  if (error == 0) error = fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV);
  if (error == 0) error = fi_ep_bind(endpoint_, &addresses_->fid, 0);
  if (error == 0) error = fi_enable(endpoint_);
  if (error != 0) return error;
  snprintf(host_.provider, sizeof host_.provider, "%s", info_->fabric_attr->prov_name);
  host_.is_socket_address =
      info_->addr_format == FI_SOCKADDR_IN || info_->addr_format == FI_SOCKADDR_IN6;
  host_.bytes = sizeof host_.address;
  return fi_getname(&endpoint_->fid, host_.address, &host_.bytes);
}

bool FabricEndpoint::ask_abilities(Error* error) noexcept {
  for (const ProviderAtomic& pair : pairs) {
    const std::uint64_t kind = pair.code == WIRE_CAS ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC;
    fi_atomic_attr found{};
    abilities_.wide[pair.code] =
        fi_query_atomic(domain_, FI_UINT64, pair.operation, &found, kind) == 0 && found.count > 0;
    found = fi_atomic_attr{};
    abilities_.narrow[pair.code] =
        fi_query_atomic(domain_, FI_UINT32, pair.operation, &found, kind) == 0 && found.count > 0;
  }
  if (abilities_.wide[WIRE_CAS]) return true;
  *error = make_error(Code::not_supported, 0,
                      "the provider %s cannot compare and swap words of 64 bits; choose another "
                      "(`fi_info -c FI_ATOMIC` lists some)",
                      host_.provider);
  return false;
}

bool FabricEndpoint::open(const FabricOptions& options, Error* error) noexcept {
  if (!find(options, error)) return false;
  const int result = start();
  if (result == 0) return ask_abilities(error);
  *error = make_error(result == -FI_EADDRINUSE ? Code::again : Code::io, 0,
                      "the provider %s cannot be opened (%s); set FI_LOG_LEVEL=warn to see why",
                      options.provider, fi_strerror(-result));
  return false;
}

void FabricEndpoint::close() noexcept {
  close_one(endpoint_);
  close_one(addresses_);
  close_one(queue_);
  close_one(domain_);
  close_one(fabric_);
  if (info_ != nullptr) fi_freeinfo(info_);
  info_ = nullptr;
}

int FabricEndpoint::enlist(void* at, std::size_t bytes, std::uint64_t access,
                           fid_mr** registration) noexcept {
  // A key that we choose is random, so that nobody guesses it; one in use is refused, and another
  // one tried.
  for (;;) {
    std::uint64_t key = 0;
    const std::size_t key_bytes =
        std::min<std::size_t>(info_->domain_attr->mr_key_size, sizeof key);
    if (!chooses_keys_ && !os::random_bytes(&key, key_bytes)) return -FI_EIO;
    int error = fi_mr_reg(domain_, at, bytes, access, 0, key, 0, registration, nullptr);
    if (error == -FI_ENOKEY && !chooses_keys_) continue;
    if (error != 0 || !binds_) return error;
    error = fi_mr_bind(*registration, &endpoint_->fid, 0);
    if (error == 0) error = fi_mr_enable(*registration);
    if (error != 0) close_one(*registration);
    return error;
  }
}

int FabricEndpoint::insert(const FabricHost& peer, fi_addr_t* address) noexcept {
  const int count = fi_av_insert(addresses_, peer.address, 1, address, 0, nullptr);
  if (count == 1) return 0;
  return count < 0 ? count : -FI_EINVAL;
}

ssize_t FabricEndpoint::ask(const Target& target, const ProviderQuestion& question, Words* words,
                            void* descriptor, void* context) noexcept {
  words->operand = question.operand;
  words->compare = question.compare;
  words->result = 0;
  const std::uint64_t at = question.offset + (by_address_ ? target.address : 0);
  const fi_datatype type = question.width == 4 ? FI_UINT32 : FI_UINT64;
  if (question.code == WIRE_CAS) {
    return fi_compare_atomic(endpoint_, &words->operand, 1, descriptor, &words->compare, descriptor,
                             &words->result, descriptor, target.peer, at, target.key, type,
                             FI_CSWAP, context);
  }
  return fi_fetch_atomic(endpoint_, &words->operand, 1, descriptor, &words->result, descriptor,
                         target.peer, at, target.key, type, operation_of(question.code), context);
}

bool FabricEndpoint::next_ended(void** context, int* failure) noexcept {
  fi_cq_entry entry{};
  const ssize_t count = fi_cq_read(queue_, &entry, 1);
  if (count == 1) {
    *context = entry.op_context;
    *failure = 0;
    return true;
  }
  if (count != -FI_EAVAIL) return false;
  // With room for what later libfabrics add to the entry.
  struct {
    fi_cq_err_entry entry;
    unsigned char more[64];
  } failed{};
  if (fi_cq_readerr(queue_, &failed.entry, 0) != 1) return false;
  *context = failed.entry.op_context;
  *failure = failed.entry.err != 0 ? failed.entry.err : FI_EIO;
  return true;
}

void FabricEndpoint::sleep(std::uint64_t longest_ns, int other) noexcept {
  constexpr std::uint64_t nap_ns = 50'000;
  const int queue_fd = queue_fd_.get();
  if (queue_fd < 0) {
    os::sleep_ns(std::min(nap_ns, longest_ns));
    return;
  }
  fid* list[1] = {&queue_->fid};
  if (fi_trywait(fabric_, list, 1) != 0) return;
  pollfd events[2] = {{queue_fd, POLLIN, 0}, {other, POLLIN, 0}};
  const timespec time{static_cast<time_t>(longest_ns / 1'000'000'000),
                      static_cast<long>(longest_ns % 1'000'000'000)};
  ppoll(events, 2, &time, nullptr);
}

}  // namespace haul::atomics
