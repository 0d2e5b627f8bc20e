// Atomics: operands go to the target, which applies them in the order of arrival and answers.
#include <rdma/fi_atomic.h>

#include <algorithm>

#include "fabric/protocol/atomic_ops.hpp"
#include "fabric/protocol/matching/matcher_parts.hpp"

namespace haul::fabric {

namespace {

using Form = AtomicRequest::Form;

// Header::detail of an atomic: form, operation, datatype.
std::uint16_t pack(Form form, fi_op operation, fi_datatype datatype) noexcept {
  return static_cast<std::uint16_t>((static_cast<unsigned>(form) << 14) |
                                    (static_cast<unsigned>(operation) << 8) |
                                    static_cast<unsigned>(datatype));
}

Pieces pieces_of(const fi_ioc* from, std::size_t count, std::size_t element) noexcept {
  Pieces pieces;
  for (std::size_t i = 0; i < count && i < max_pieces; ++i) {
    const std::size_t bytes = from[i].count * element;
    pieces.at[pieces.count++] = {from[i].addr, bytes};
    pieces.bytes += bytes;
  }
  return pieces;
}

}  // namespace

ssize_t RemoteAtomics::atomic(Peer& peer, const AtomicRequest& request) noexcept {
  std::size_t most = 0;
  if (const int error = atomic_supported(request.form, request.operation, request.datatype, &most);
      error != 0) {
    return error;
  }
  if (const int error = the<Peers>().reach(peer); error != 0) return error;
  const bool fetches = request.form != Form::base;
  const Event event = fetches ? Event::read : Event::write;
  if (!sink().room(event)) return -FI_EAGAIN;
  if (the<Sending>().outgoing.used() + request.target_count > limits().operations ||
      the<Receiving>().incoming.full()) {
    return -FI_EAGAIN;
  }
  const std::size_t element = datatype_bytes(request.datatype);
  const bool reads_only = request.operation == FI_ATOMIC_READ;
  const bool compares = request.form == Form::compare;
  const Pieces operands =
      reads_only ? Pieces() : pieces_of(request.operands, request.operand_count, element);
  const Pieces comparands =
      compares ? pieces_of(request.comparands, request.comparand_count, element) : Pieces();
  const Pieces results =
      fetches ? pieces_of(request.results, request.result_count, element) : Pieces();
  std::size_t total = 0;
  for (std::size_t i = 0; i < request.target_count; ++i) total += request.targets[i].count;
  const std::size_t bytes = total * element;
  if (total == 0 || total > most) return -FI_EINVAL;
  if ((!reads_only && operands.bytes != bytes) || (compares && comparands.bytes != bytes) ||
      (fetches && results.bytes < bytes)) {
    return -FI_EINVAL;
  }

  const Ending ending = Ending::of(request, event, FI_ATOMIC | (fetches ? FI_READ : FI_WRITE));
  const std::shared_ptr<Group> group = Group::of(request.target_count, ending);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < request.target_count; ++i) {
    const fi_rma_ioc& target = request.targets[i];
    const std::size_t part = target.count * element;
    Outgoing* operation = the<Sending>().new_outgoing(peer, PacketKind::atomic, Pieces(), false);
    const std::size_t sent = (reads_only ? 0 : part) + (compares ? part : 0);
    if (sent != 0) {
      operation->bounce = std::make_unique<std::byte[]>(sent);
      if (!reads_only)
        operands.gather(offset, operation->bounce.get(), part, HaulPrivateCopy::prefetching);
      if (compares)
        comparands.gather(offset, operation->bounce.get() + part, part,
                          HaulPrivateCopy::prefetching);
      operation->pieces = Pieces(operation->bounce.get(), sent);
    }
    operation->detail = pack(request.form, request.operation, request.datatype);
    operation->tag = target.key;
    operation->data = target.count;
    operation->address = target.addr;
    operation->fence = i == 0 && (request.flags & FI_FENCE) != 0;
    if (fetches) {
      Incoming* awaited = the<RemoteAccess>().new_awaited(peer, results.slice(offset, part), part);
      awaited->ending = ending;
      awaited->group = group;
      operation->peer_token = awaited->token;
    } else {
      operation->replied = true;
      operation->ending = ending;
      operation->group = group;
    }
    offset += part;
    the<Sending>().start(*operation);
  }
  Statistics::add(statistics().atomic_operations, 1);
  return 0;
}

void RemoteAtomics::on_atomic(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  if (the<Peers>().exhausts(peer)) return;
  const auto form = static_cast<Form>(header.detail >> 14);
  const auto operation = static_cast<fi_op>((header.detail >> 8) & 0x3f);
  const auto datatype = static_cast<fi_datatype>(header.detail & 0xff);
  std::size_t most = 0;
  const std::uint64_t count = header.data;
  if (atomic_supported(form, operation, datatype, &most) != 0 || count == 0 || count > most) {
    return the<Peers>().garbage(peer, "asks for an atomic that does not exist");
  }
  const std::size_t element = datatype_bytes(datatype);
  const std::size_t bytes = count * element;
  const std::size_t operand_bytes = operation == FI_ATOMIC_READ ? 0 : bytes;
  const std::size_t comparand_bytes = form == Form::compare ? bytes : 0;
  if (header.payload != operand_bytes + comparand_bytes) {
    return the<Peers>().garbage(peer, "sends an atomic without its operands");
  }
  int error = 0;
  const std::uint64_t access = (operation == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE) |
                               (form != Form::base ? FI_REMOTE_READ : 0);
  void* target = regions().resolve(header.tag, header.far.place.address, bytes, access, &error);
  const std::size_t alignment = std::min<std::size_t>(element, 8);
  if (target != nullptr && reinterpret_cast<std::uintptr_t>(target) % alignment != 0) {
    target = nullptr;
    error = FI_EINVAL;
  }
  // Operands are copied out first: the peer may still write there.
  alignas(16) std::byte operands[2 * max_atomic_bytes];
  std::memcpy(operands, packet.payload, header.payload);
  alignas(16) std::byte fetched[max_atomic_bytes];
  if (target != nullptr) {
    apply_atomic(operation, datatype, count, target, operand_bytes != 0 ? operands : nullptr,
                 comparand_bytes != 0 ? operands + operand_bytes : nullptr,
                 form != Form::base ? fetched : nullptr);
    the<RemoteAccess>().tell_remote(
        peer, form == Form::base ? Event::remote_write : Event::remote_read, header, target, bytes);
  }
  if (form == Form::base) return the<Backlog>().send_finish(peer, header.far.token, error);

  Outgoing* answer = the<Sending>().outgoing.take_beyond_limit();
  the<Sending>().renew(*answer, peer, PacketKind::result, Pieces());
  if (target != nullptr) {
    answer->bounce = std::make_unique<std::byte[]>(bytes);
    std::memcpy(answer->bounce.get(), fetched, bytes);
    answer->pieces = Pieces(answer->bounce.get(), bytes);
  }
  answer->tag = header.far.token;
  answer->detail = static_cast<std::uint16_t>(error);
  the<Sending>().start(*answer);
}

void RemoteAtomics::on_result(Peer& peer, const ReceivedPacket& packet) noexcept {
  const Header& header = packet.header;
  Incoming* awaited = the<Receiving>().incoming.find(header.tag);
  if (awaited == nullptr || awaited->source != &peer) return;
  if (awaited->stage != Incoming::Stage::matched || awaited->ending.event != Event::read ||
      awaited->sender_token != 0 || (header.detail == 0 && header.payload != awaited->length)) {
    return the<Peers>().garbage(peer, "answers what was not asked");
  }
  if (header.detail == 0)
    awaited->pieces.scatter(0, packet.payload, header.payload, packet.copies_out);
  the<Receiving>().finish_receive(*awaited, header.detail);
}

}  // namespace haul::fabric
