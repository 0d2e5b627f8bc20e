// Binding, enabling, and where completions go.
#include "fabric/endpoint/transfer/endpoint_state.hpp"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "fabric/endpoint/address_vector.hpp"
#include "fabric/endpoint/completion/completion_queue.hpp"
#include "fabric/endpoint/completion/counter.hpp"
#include "fabric/endpoint/completion/event_queue.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/endpoint/offer/info.hpp"
#include "fabric/endpoint/offer/names.hpp"
#include "fabric/transport/identity.hpp"
#include "fabric/transport/joint/open.hpp"

namespace haul::fabric {

namespace {

struct CounterFlag {
  std::uint64_t flag;
  Event event;
};
constexpr CounterFlag counter_flags[] = {
    {FI_SEND, Event::send},
    {FI_RECV, Event::receive},
    {FI_READ, Event::read},
    {FI_WRITE, Event::write},
    {FI_REMOTE_READ, Event::remote_read},
    {FI_REMOTE_WRITE, Event::remote_write},
};

constexpr bool is_remote(Event event) noexcept {
  return event == Event::remote_read || event == Event::remote_write;
}

// Of remote operations the matcher reports the region's key as the tag, which programs do not see.
std::uint64_t shown_tag(const CompletionNotice& completion) noexcept {
  return is_remote(completion.event) ? 0 : completion.tag;
}

// The clock stands in where the kernel has no random numbers yet.
TagSalt new_salt() noexcept {
  TagSalt salt;
  for (std::uint64_t& word : salt.words) word = now_ns() * 0x9e3779b97f4a7c15u;
  os::random_bytes(salt.words, sizeof salt.words);
  return salt;
}

}  // namespace

EndpointState::EndpointState(Domain& domain, const fi_info& info,
                             std::unique_ptr<EndpointNetwork> network) noexcept
    : domain_(domain),
      turns_(domain.turns),
      automatic_(domain.automatic),
      caps_(complete_caps(info.caps)),
      queue_size_(info.rx_attr != nullptr && info.rx_attr->size != 0 ? info.rx_attr->size
                                                                     : default_queue_size),
      inject_size_(info.tx_attr != nullptr && info.tx_attr->inject_size != 0
                       ? std::min(info.tx_attr->inject_size, inject_bytes)
                       : usual_inject_size()),
      network_(std::move(network)) {
  // Regions count what peers do.
  counted_events = 1u << static_cast<unsigned>(Event::remote_write) |
                   1u << static_cast<unsigned>(Event::remote_read);
  matcher_.reset(new (std::nothrow) Matcher(*network_, *this, *this, MatcherLimits{}, new_salt()));
  domain_.references.fetch_add(1, std::memory_order_relaxed);
}

int EndpointState::open(Domain& domain, const fi_info& info,
                        std::unique_ptr<EndpointState>& state) noexcept {
  Address wanted;
  if (info.src_addr != nullptr) {
    if (!copy_address(info.src_addr, info.src_addrlen, &wanted)) return -FI_EINVAL;
    // The kernel chose the port of an endpoint that other nodes reach, and would choose another.
    if (wanted.host != host_identity() || wanted.offnode_bytes != 0) return -FI_EADDRNOTAVAIL;
  }
  Expected<std::unique_ptr<EndpointNetwork>> network = open_network(wanted);
  if (!network) {
    log(LogLevel::warning, "fi_endpoint: %s", network.error().sentence);
    return network.error().sys_errno > 0 ? -network.error().sys_errno : -FI_EIO;
  }
  state.reset(new (std::nothrow) EndpointState(domain, info, std::move(network.value())));
  if (state == nullptr || state->matcher_ == nullptr) return -FI_ENOMEM;
  state->network_->publish(&state->matcher_->statistics());
  return 0;
}

EndpointState::~EndpointState() {
  const bool lost = network_->lost();
  if (matcher_ != nullptr && !lost) flush();
  {
    Guard guard(domain_.lock);
    domain_.endpoints.remove(*this, domain_.thread_wait());
    for (FabricCompletionQueue* queue : {send_queue_, receive_queue_}) {
      if (queue == nullptr) continue;
      queue->leave(*this);
      queue->unbind();
    }
    for (Counter* counter : counters_) {
      if (counter == nullptr) continue;
      counter->leave(*this);
      counter->unbind();
    }
    domain_.regions.forget(*this);
    if (lost) {
      static_cast<void>(network_.release());
      static_cast<void>(matcher_.release());
    }
    // The network first, because it reports the matcher's statistics when it ends.
    network_.reset();
    matcher_.reset();
  }
  if (vector_ != nullptr) vector_->references.fetch_sub(1, std::memory_order_release);
  if (events_ != nullptr) events_->unbind();
  domain_.references.fetch_sub(1, std::memory_order_release);
}

void EndpointState::flush() noexcept {
  constexpr std::uint64_t most_ns = 2'000'000'000;
  const std::uint64_t begin = now_ns();
  for (;;) {
    {
      Guard guard(domain_.lock);
      if (matcher_->flushed()) return;
      matcher_->progress();
    }
    if (now_ns() - begin > most_ns) break;
    os::yield();
  }
  log(LogLevel::info,
      "an endpoint was closed although a peer that makes no progress had not been told everything");
}

int EndpointState::bind(AddressVector& vector) noexcept {
  Guard guard(domain_.lock);
  if (active_caps_ != 0) return -FI_EOPBADSTATE;
  if (vector_ != nullptr) return -FI_EINVAL;
  vector_ = &vector;
  vector.references.fetch_add(1, std::memory_order_relaxed);
  // Not its generation: the first use looks at all of it.
  seen_generation_ = vector.generation() - 1;
  return 0;
}

int EndpointState::bind(EventQueue& events) noexcept {
  Guard guard(domain_.lock);
  if (events_ != nullptr) return -FI_EINVAL;
  events_ = &events;
  events.bind();
  return 0;
}

int EndpointState::bind(FabricCompletionQueue& queue, std::uint64_t flags) noexcept {
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0 ||
      (flags & (FI_TRANSMIT | FI_RECV)) == 0) {
    return -FI_EBADFLAGS;
  }
  if (&queue.owner() != &domain_) return -FI_EDOMAIN;
  Guard guard(domain_.lock);
  if (active_caps_ != 0) return -FI_EOPBADSTATE;
  const bool sends = (flags & FI_TRANSMIT) != 0, receives = (flags & FI_RECV) != 0;
  if ((sends && send_queue_ != nullptr) || (receives && receive_queue_ != nullptr)) {
    return -FI_EINVAL;
  }
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (sends) {
    send_queue_ = &queue;
    selective_send_ = selective;
    queue.bind();
  }
  if (receives) {
    receive_queue_ = &queue;
    selective_receive_ = selective;
    queue.bind();
  }
  queue.join(*this);
  return 0;
}

int EndpointState::bind(Counter& counter, std::uint64_t flags) noexcept {
  std::uint64_t known = 0;
  for (const CounterFlag& one : counter_flags) known |= one.flag;
  if (flags == 0 || (flags & ~known) != 0) return -FI_EBADFLAGS;
  if (&counter.owner() != &domain_) return -FI_EDOMAIN;
  Guard guard(domain_.lock);
  if (active_caps_ != 0) return -FI_EOPBADSTATE;
  for (const CounterFlag& one : counter_flags) {
    if ((flags & one.flag) == 0) continue;
    if (counters_[static_cast<std::size_t>(one.event)] != nullptr) return -FI_EINVAL;
  }
  for (const CounterFlag& one : counter_flags) {
    if ((flags & one.flag) == 0) continue;
    counters_[static_cast<std::size_t>(one.event)] = &counter;
    counted_events |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(one.event));
    counter.bind();
  }
  counter.join(*this);
  return 0;
}

int EndpointState::enable() noexcept {
  Guard guard(domain_.lock);
  if (active_caps_ != 0) return 0;
  if (vector_ == nullptr) return -FI_ENOAV;
  if ((caps_ & (FI_SEND | FI_READ | FI_WRITE)) != 0 && send_queue_ == nullptr) return -FI_ENOCQ;
  if ((caps_ & FI_RECV) != 0 && receive_queue_ == nullptr) return -FI_ENOCQ;
  // The target of remote accesses needs a queue whose reading makes progress.
  if (send_queue_ == nullptr && receive_queue_ == nullptr) return -FI_ENOCQ;
  if (automatic_) {
    if (const int error = domain_.progress_thread.start(); error != 0) {
      log(LogLevel::error,
          "fi_enable: the thread for automatic progress cannot start (%s); raise ulimit -n or -u, "
          "or ask for FI_PROGRESS_MANUAL.",
          describe_errno(-error));
      return error;
    }
  }
  active_caps_ = caps_;
  if (domain_.overlap_thread.may_run()) bulk_requests_ = &matcher_->bulk_requests();
  domain_.endpoints.add(*this, domain_.thread_wait());
  domain_.progress_thread.nudge();
  return 0;
}

int EndpointState::refusal() const noexcept {
  return active_caps_ == 0 ? -FI_EOPBADSTATE : -FI_EOPNOTSUPP;
}

std::uint32_t EndpointState::generation() const noexcept {
  return vector_ != nullptr ? vector_->generation() : seen_generation_;
}

// Takes over what has changed in the address vector. An address that is there twice goes by the
// name that it was given first.
void EndpointState::look_up() noexcept {
  std::vector<Peer*> nameless;
  seen_generation_ = vector_->look_at_all([&](fi_addr_t name, const AddressVector::Entry& entry) {
    if (name >= known_.size()) known_.resize(name + 1);
    Known& known = known_[name];
    if (known.version == entry.version) return;
    known.version = entry.version;
    if (known.peer != nullptr && Matcher::name_of(*known.peer) == name) {
      Matcher::rename(*known.peer, FI_ADDR_NOTAVAIL);
      nameless.push_back(known.peer);
    }
    known.peer = entry.used ? matcher_->peer(entry.address) : nullptr;
    if (known.peer != nullptr && Matcher::name_of(*known.peer) == FI_ADDR_NOTAVAIL) {
      Matcher::rename(*known.peer, name);
    }
  });
  for (Peer* peer : nameless) {
    if (Matcher::name_of(*peer) != FI_ADDR_NOTAVAIL) continue;
    const auto twin = std::find_if(known_.begin(), known_.end(),
                                   [&](const Known& known) { return known.peer == peer; });
    if (twin != known_.end()) {
      Matcher::rename(*peer, static_cast<fi_addr_t>(twin - known_.begin()));
    }
  }
}

// If others are asleep already, the bell may have rung, and it rings only once, so it is armed
// again. What it rang for is done by this caller, which makes progress next; a completion wakes
// those who wait for it.
void EndpointState::arm() noexcept {
  if (armed_++ > 0) network_->disarm();
  network_->arm();
}

void EndpointState::disarm() noexcept {
  if (--armed_ == 0) network_->disarm();
}

void EndpointState::tell_progress_thread() noexcept {
  if (!idle()) domain_.progress_thread.nudge();
}

void EndpointState::tell_overlap_thread() noexcept {
  seen_bulk_requests_ = *bulk_requests_;
  domain_.overlap_thread.posted();
}

// The address vector of an MPI program names all its processes, also those to which nothing was
// sent yet.
unsigned EndpointState::node_processes() const noexcept {
  unsigned others = 0;
  for (const Known& known : known_) {
    if (known.peer == nullptr) continue;
    const Address& address = Matcher::address_of(*known.peer);
    if (address.host == name().host && !(address == name())) ++others;
  }
  return others + 1;
}

FabricCompletionQueue* EndpointState::queue_of(Event event) const noexcept {
  return event == Event::receive || is_remote(event) ? receive_queue_ : send_queue_;
}

bool EndpointState::room(Event event) noexcept {
  const FabricCompletionQueue* queue = queue_of(event);
  return queue == nullptr || queue->room();
}

void EndpointState::fail(FabricCompletionQueue& queue, const CompletionNotice& completion,
                         int error) noexcept {
  CompletionEntry& entry = queue.add();
  entry.shown = {completion.context, completion.flags, completion.length,
                 completion.buffer,  completion.data,  shown_tag(completion)};
  entry.source = FI_ADDR_NOTAVAIL;
  entry.error = new (std::nothrow) CompletionError;
  if (entry.error == nullptr) return;
  entry.error->error = error;
  entry.error->overflow = completion.overflow;
  if (completion.source != nullptr) {
    entry.source = Matcher::name_of(*completion.source);
    entry.error->has_address = error == FI_EADDRNOTAVAIL;
    entry.error->address = Matcher::address_of(*completion.source);
  }
}

void EndpointState::complete(const CompletionNotice& completion) noexcept {
  const bool failed = completion.error != 0;
  if (Counter* counter = counters_[static_cast<std::size_t>(completion.event)]) {
    counter->count(failed);
  }
  if (is_remote(completion.event)) {
    domain_.regions.count(completion.tag, completion.event == Event::remote_write, failed);
  }
  FabricCompletionQueue* queue = queue_of(completion.event);
  if (queue == nullptr || !(completion.wanted || failed)) return;
  if (failed) {
    fail(*queue, completion, completion.error);
    return;
  }
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  if ((caps_ & (FI_SOURCE | FI_SOURCE_ERR)) != 0 && completion.source != nullptr) {
    source = Matcher::name_of(*completion.source);
    if (source == FI_ADDR_NOTAVAIL && (caps_ & FI_SOURCE_ERR) != 0) {
      fail(*queue, completion, FI_EADDRNOTAVAIL);
      return;
    }
  }
  CompletionEntry& entry = queue->add();
  entry.shown = {completion.context, completion.flags, completion.length,
                 completion.buffer,  completion.data,  shown_tag(completion)};
  entry.source = source;
  entry.error = nullptr;
}

void* EndpointState::resolve(std::uint64_t key, std::uint64_t address, std::uint64_t bytes,
                             std::uint64_t access, int* error) noexcept {
  return domain_.regions.resolve(*this, key, address, bytes, access, error);
}

}  // namespace haul::fabric
