// Operations on remote windows, and on those that are mapped here.
#include <algorithm>

#include "atomic/api/handles.hpp"

using namespace haul::atomics;
using haul::Code;
using haul::make_error;

namespace {

// 0, or what is wrong with a batch.
int check_batch(const void* target, const haul_atomic_operation* operations,
                std::size_t count) noexcept {
  if (target == nullptr || operations == nullptr) return refuse("remote or operations is NULL");
  if (count == 0 || count > HAUL_ATOMIC_MAX_BATCH) {
    return refuse("a batch has 1 to 16 operations; submit more of them");
  }
  return 0;
}

int explain(Code code) noexcept {
  switch (code) {
    case Code::ok: return 0;
    case Code::again:
      static_assert(HAUL_ATOMIC_MAX_OUTSTANDING == 63);
      return fail(code, "63 packets are unanswered or not collected; collect some, then submit");
    case Code::peer_gone:
      return fail(code,
                  "the window's owner does not know this session any more (it was restarted, or "
                  "heard nothing for a minute); connect again, by a new name if it was restarted");
    case Code::timed_out:
      return fail(code,
                  "no answer in time: the operation was executed once, or not at all; is the "
                  "owner alive, and the network?");
    case Code::stale:
      return fail(code,
                  "the window was destroyed, or the token is older than the word's; get a new "
                  "name or acquire the lock again");
    case Code::fault:
      return fail(code,
                  "an address is outside the window; add an offset to the address in its name");
    case Code::invalid: return fail(code, "an operation is unknown, or not aligned to its width");
    case Code::not_supported:
      return fail(code,
                  "the network interface executes this window's operations, and a process that "
                  "has attached cannot ask it; use haul_atomic_connect()");
    case Code::io:
      return fail(code,
                  "this process has closed the node's socket (closefrom()?), and another one has "
                  "its port; or the owner's host found the packet malformed; open another node");
    case Code::closed: return fail(code, "the connection is closed; connect again");
    default:
      return fail(
          make_error(code, 0, "the responder refused the packet (%s)", haul::describe(code)));
  }
}

// The first operation that was not done.
int explain_first(const haul_atomic_operation* operations, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const Code code = static_cast<Code>(operations[i].status);
    if (code == Code::again) {
      return fail(make_error(code, 0,
                             "operation %zu was skipped: one it is linked to did not match, or a "
                             "guarded word was changed by others again and again; try again",
                             i));
    }
    if (code != Code::ok) return explain(code);
  }
  return 0;
}

// By Carrier::test() or wait(). 1: collected, and it went well. 0: unanswered. Else why not.
int collect(decltype(&Carrier::test) by, haul_atomic_remote* remote, std::uint64_t ticket,
            haul_atomic_operation* operations, std::size_t count) noexcept {
  if (const int wrong = check(remote); wrong != 0) return wrong;
  RemoteConnection& connection = *from_c(remote);
  Code status = Code::ok;
  const int found = (connection.carrier().*by)(connection, ticket, operations, count, &status);
  if (found < 0) {
    return refuse("this ticket is none of this connection's, or was collected already");
  }
  return status == Code::ok ? found : explain(status);
}

}  // namespace

extern "C" int haul_atomic_submit(haul_atomic_remote* remote,
                                  const haul_atomic_operation* operations, size_t count,
                                  uint64_t tag, uint64_t* ticket) {
  const haul::Uncancelled guard;
  int wrong = check_batch(remote, operations, count);
  if (wrong == 0) wrong = check(remote);
  if (wrong != 0) return wrong;
  uint64_t ignored = 0;
  RemoteConnection* connection = from_c(remote);
  return explain(connection->carrier().submit(*connection, operations, count, tag,
                                              ticket != nullptr ? ticket : &ignored));
}

extern "C" int haul_atomic_test(haul_atomic_remote* remote, uint64_t ticket,
                                haul_atomic_operation* operations, size_t count) {
  const haul::Uncancelled guard;
  return collect(&Carrier::test, remote, ticket, operations, count);
}

extern "C" int haul_atomic_wait(haul_atomic_remote* remote, uint64_t ticket,
                                haul_atomic_operation* operations, size_t count) {
  const haul::Uncancelled guard;
  return std::min(collect(&Carrier::wait, remote, ticket, operations, count), 0);
}

extern "C" int haul_atomic_reap(haul_atomic_remote* remote, haul_atomic_completion* completions,
                                size_t capacity) {
  const haul::Uncancelled guard;
  if (completions == nullptr && capacity != 0) return refuse("completions is NULL");
  const int wrong = check(remote);
  if (wrong != 0) return wrong;
  return static_cast<int>(from_c(remote)->carrier().reap(*from_c(remote), completions, capacity));
}

extern "C" int haul_atomic_run(haul_atomic_remote* remote, haul_atomic_operation* operations,
                               size_t count) {
  const haul::Uncancelled guard;
  const int wrong = check_batch(remote, operations, count);
  if (wrong != 0) return wrong;
  uint64_t ticket = 0;
  int result = haul_atomic_submit(remote, operations, count, 0, &ticket);
  if (result == 0) {
    result = haul_atomic_wait(remote, ticket, operations, count);
    return result == 0 ? explain_first(operations, count) : result;
  }
  // Nothing was sent.
  for (std::size_t i = 0; i < count; ++i) {
    operations[i].status = result;
    operations[i].old = 0;
  }
  return result;
}

extern "C" int haul_atomic_window_run(haul_atomic_window* window, haul_atomic_operation* operations,
                                      size_t count) {
  const haul::Uncancelled guard;
  const int wrong = check_batch(window, operations, count);
  if (wrong != 0) return wrong;
  from_c(window)->run(operations, count);
  return explain_first(operations, count);
}
