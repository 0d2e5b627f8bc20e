// How a packet is executed: the provider is asked for its operations in order, for each when the
// one before it is done; when the last one ends, the packet has become its own answer.
#include <rdma/fi_errno.h>

#include <cerrno>
#include <cstring>

#include "atomic/fabric/carrier.hpp"
#include "atomic/wire/operation.h"
#include "base/machine/clock.hpp"

namespace haul::atomics {

namespace {

// An operation that takes this long may have been lost with a connection of the provider's, which
// some providers (tcp;ofi_rxm) do not report. So a word of the window is read, over a connection
// that works.
constexpr std::uint64_t doubt_ns = 100'000'000, between_ns = 50'000'000;
constexpr __u8 kind_question = WIRE_BYE;  // no good-bye is ever a run

// A failure in the words of a responder.
wire_status status_of(int failure) noexcept {
  switch (failure) {
    case FI_EACCES:
    case FI_EPERM:
    case FI_ENOKEY:
    case FI_EINVAL:
    case FI_EFAULT: return WIRE_NO_WINDOW;
    case FI_ECONNREFUSED:
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_ENETUNREACH:
    case FI_EHOSTDOWN:
    case FI_ETIMEDOUT:
    case FI_ECANCELED:
    case EPIPE:
    case FI_EIO: return WIRE_NO_SESSION;
    default: return WIRE_MALFORMED;
  }
}

// The operation that is under way is done, or refused: the packet has its result, and what is
// linked to it in vain is skipped.
void end_operation(Run* run) noexcept {
  wire_operation& ended = run->packet.operations[run->at++];
  ended.operand = run->operation.old();
  ended.result = static_cast<__u8>(run->operation.result());
  if (!is_broken_link(&ended)) return;
  for (; run->at < run->packet.header.count; ++run->at) {
    run->packet.operations[run->at].operand = 0;
    run->packet.operations[run->at].result = WIRE_SKIPPED;
  }
}

}  // namespace

bool FabricCarrier::is_awaited(const Run& run) const noexcept {
  if (run.connection == nullptr) return false;
  const Session& session = session_of(*run.connection);
  if (run.packet.header.kind == kind_question) return true;
  return run.packet.header.kind == WIRE_HELLO ? session.state() == Session::State::greeting
                                              : session.is_unanswered(run.packet.header.sequence);
}

void FabricCarrier::start(FabricConnection& connection, const WirePacket& packet) noexcept {
  if (packet.header.kind == WIRE_BYE) return;
  begin_run(connection, packet);
}

void FabricCarrier::begin_run(FabricConnection& connection, const WirePacket& packet) noexcept {
  Run* run = runs_.take(endpoint_);
  if (run == nullptr) return;  // as if the packet were lost: it times out
  run->connection = &connection;
  std::memcpy(static_cast<void*>(&run->packet), &packet, packet_bytes(packet));
  if (packet.header.count == 0) {
    // Every window has a first word, and a client that may read it may do everything else.
    wire_operation read{};
    read.code = WIRE_READ;
    read.width = 8;
    run->operation.begin(read, endpoint_.abilities(), 0, 8, &run->question);
    post(run);
    return;
  }
  go_on(run);
}

void FabricCarrier::go_on(Run* run) noexcept {
  const unsigned count = run->packet.header.count;
  while (run->at < count) {
    if (!is_awaited(*run)) break;
    const wire_operation& asked = run->packet.operations[run->at];
    if (run->operation.begin(asked, endpoint_.abilities(), run->connection->target_.address,
                             run->connection->window_bytes_, &run->question)) {
      post(run);
      return;
    }
    end_operation(run);
  }
  answer(run, WIRE_OK);
}

void FabricCarrier::post(Run* run) noexcept {
  const ssize_t result = endpoint_.ask(run->connection->target_, run->question, &run->words,
                                       run->descriptor, &run->context);
  run->posted_ns = 0;
  if (result == 0) {
    run->posted_ns = now_ns();
    return;
  }
  if (result == -FI_EAGAIN) {
    run->next = unposted_;
    unposted_ = run;
    return;
  }
  failed(run, static_cast<int>(-result));
}

void FabricCarrier::post_again() noexcept {
  Run* again = unposted_;
  unposted_ = nullptr;
  while (again != nullptr) {
    Run* run = again;
    again = run->next;
    run->next = nullptr;
    is_awaited(*run) ? post(run) : runs_.give_back(run);
  }
}

void FabricCarrier::answered(Run* run) noexcept {
  if (!is_awaited(*run)) {
    // What was executed stays; nobody wants the rest.
    runs_.give_back(run);
    return;
  }
  const std::uint64_t word =
      run->question.width == 4 ? static_cast<std::uint32_t>(run->words.result) : run->words.result;
  if (run->packet.header.count == 0) {
    answer(run, WIRE_OK);
    return;
  }
  if (run->operation.heard(word, &run->question)) {
    post(run);
    return;
  }
  end_operation(run);
  go_on(run);
}

void FabricCarrier::failed(Run* run, int failure) noexcept {
  wire_status status = status_of(failure);
  if (status == WIRE_NO_WINDOW && run->at > 0) {
    // Operations that were executed before the window went stay done.
    const unsigned count = run->packet.header.count;
    for (unsigned i = run->at; i < count; ++i) {
      run->packet.operations[i].operand = 0;
      run->packet.operations[i].result = i == run->at ? WIRE_STALE : WIRE_SKIPPED;
    }
    status = WIRE_OK;
  }
  answer(run, status);
}

void FabricCarrier::ask_again(std::uint64_t now_ns) noexcept {
  if (now_ns - asked_ns_ < between_ns) return;
  asked_ns_ = now_ns;
  for_each_waiting([&](RemoteConnection& connection) {
    FabricConnection& one = own(connection);
    if (!session_of(one).anything_unanswered() || one.is_asked_ ||
        !runs_.is_late(&one, now_ns - doubt_ns)) {
      return;
    }
    one.is_asked_ = true;
    WirePacket question;
    question.header = wire_header{};
    question.header.kind = kind_question;
    begin_run(one, question);
  });
}

// The answer to that question: an operation that was asked long before will not be answered.
void FabricCarrier::is_there(Run* run, wire_status status) noexcept {
  FabricConnection& one = *run->connection;
  one.is_asked_ = false;
  if (status != WIRE_OK || runs_.is_late(&one, run->posted_ns - between_ns)) {
    session_of(one).lose(Code::peer_gone);
  }
}

void FabricCarrier::answer(Run* run, wire_status status) noexcept {
  if (run->connection != nullptr && run->packet.header.kind == kind_question) {
    is_there(run, status);
    runs_.give_back(run);
    return;
  }
  if (is_awaited(*run)) {
    run->packet.header.kind |= WIRE_REPLY;
    run->packet.header.status = static_cast<__u8>(status);
    session_of(*run->connection).heard(run->packet, now_ns());
  }
  runs_.give_back(run);
}

}  // namespace haul::atomics
