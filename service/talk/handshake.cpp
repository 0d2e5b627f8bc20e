// Hello. Nothing that a newcomer says is believed: its user is what the kernel says of the socket's
// other end; its table and arena must be memfds that are sealed against shrinking and of the length
// they claim, so that no access to them can fault; and its process is the one it seems to be if a
// random word that it names reads, through the kernel, as what it says. A process that cannot be
// reached that way (another pid namespace, a filter) is served from its arena alone, and told why.
#include <haul/haul.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "engine/spaces.hpp"
#include "service/talk/connections.hpp"
#include "service/talk/printable.hpp"

namespace haul::service {
namespace {

constexpr std::uint64_t largest_arena_bytes = std::uint64_t{1} << 40;

// "" or why this is no Hello of our version.
std::string misunderstanding(const Packet& packet, Code* code) {
  struct Head {
    wire::MessageKind kind;
    std::uint32_t magic, protocol;
  } head{};
  *code = Code::invalid;
  if (packet.bytes() < sizeof head) return "that is no message of haul's";
  std::memcpy(&head, packet.data(), sizeof head);
  if (head.kind != wire::MessageKind::hello || head.magic != wire::magic)
    return "that is no message of haul's; a program of haul begins with Hello";
  wire::Hello hello;
  std::memcpy(&hello, packet.data(), std::min(packet.bytes(), sizeof hello));
  const bool same = head.protocol == wire::protocol && packet.bytes() == sizeof hello &&
                    hello.layout == wire::layout;
  if (same) return "";
  *code = Code::not_supported;
  const bool told = packet.bytes() >= offsetof(wire::Hello, name);
  const std::string theirs = told ? printable(hello.version, sizeof hello.version) : "of old";
  return text(
      "this service is haul %s, protocol %u; the program uses haul %s, protocol %u: update one "
      "of them, it goes on without the service",
      haul_version(), wire::protocol, theirs.c_str(), head.protocol);
}

// Is the word there what it says? 0, or an errno; EXDEV: another value is there.
int probe(pid_t pid, const wire::Hello& hello) {
  std::uint64_t seen = 0;
  const iovec local{&seen, sizeof seen};
  const iovec remote{reinterpret_cast<void*>(hello.probe_address), sizeof seen};
  const ssize_t got = os::read_process(pid, &local, 1, &remote, 1);
  if (got < 0) return static_cast<int>(-got);
  return got == sizeof seen && seen == hello.probe_value ? 0 : EXDEV;
}

std::string why_unreached(int sys_errno) {
  switch (sys_errno) {
    case ESRCH:
      return "it lives in another pid namespace; use haul_alloc(), or share the namespace";
    case EPERM:
    case EACCES:
      return "the kernel refuses; use haul_alloc(), kernel.yama.ptrace_scope=0, or "
             "prctl(PR_SET_PTRACER) in the program";
    case EXDEV:
    case EFAULT: return "the process at its pid is another; use haul_alloc()";
    case EMFILE:
    case ENFILE: return "the service has no descriptor left; raise its ulimit -n";
    case ENOSYS: return "the kernel lacks process_vm_readv or pidfd_open; use haul_alloc()";
    default: return text("%s; use haul_alloc()", describe_errno(sys_errno));
  }
}

// The process's space, or self_space and *why.
Space open_its_space(const Connection& connection, const wire::Hello& hello, std::string* why) {
  const pid_t pid = connection.peer.pid;
  if (pid <= 0) {
    *why = why_unreached(ESRCH);
    return self_space;
  }
  const int pidfd = os::peer_pidfd(connection.socket.get());
  const Expected<Space> space = adopt_space(pid, pidfd);
  const int refused = space ? probe(pid, hello) : space.error().sys_errno;
  if (refused == 0 && space) return *space;
  if (space) close_space(*space);
  *why = refused != 0 || space ? why_unreached(refused) : space.error().sentence;
  return self_space;
}

void welcome(const Connection& connection, bool reaches, const std::string& why) {
  wire::Welcome message;
  std::strncpy(message.version, haul_version(), sizeof message.version - 1);
  message.pid = getpid();
  message.reaches_memory = reaches ? 1 : 0;
  std::strncpy(message.why, why.c_str(), sizeof message.why - 1);
  os::send_packet(connection.socket.get(), &message, sizeof message);
}

// Why the client cannot be served, or nothing.
struct Refusal {
  Code code = Code::ok;
  std::string sentence;
};

Refusal map_table(Client& client, Packet& packet) {
  const int fd = packet.take_fd(0);
  if (fd < 0)
    return {Code::invalid, "no ring table came with Hello (or the service has no descriptor left)"};
  const bool fits = os::sealed_bytes(fd) >= static_cast<off_t>(shared_table_bytes);
  void* mapped = fits ? os::map_shared(nullptr, shared_table_bytes, fd, 0) : nullptr;
  os::close_fd(fd);
  if (!fits)
    return {Code::invalid,
            "the ring table is no writable memfd of full size, sealed against shrinking"};
  if (mapped == nullptr)
    return {Code::no_memory, "the service has no addresses left; stop other clients"};
  client.table = static_cast<std::byte*>(mapped);
  return {};
}

}  // namespace

std::string attach_arena(Hub& hub, Client& client, int fd, std::uint64_t base, std::uint64_t bytes,
                         Code* code) {
  *code = Code::invalid;
  const bool range = bytes != 0 && bytes <= largest_arena_bytes && base < user_end &&
                     bytes <= user_end - base && base % page_bytes == 0 && bytes % page_bytes == 0;
  const char* wrong = nullptr;
  if (fd < 0) {
    wrong = "no memory came with the arena (or the service has no descriptor left)";
  } else if (client.arena.open()) {
    wrong = "it has an arena already";
  } else if (!range) {
    wrong = "an arena at an impossible address or of an impossible size";
  } else if (os::sealed_bytes(fd) < static_cast<off_t>(bytes)) {
    wrong = "the arena is no writable memfd of full size, sealed against shrinking";
  }
  if (wrong != nullptr) {
    os::close_fd(fd);
    return wrong;
  }
  *code = Code::no_memory;
  if (!hub.views.attach(client.arena, fd, base, bytes)) {
    return "the service has no addresses left for its arena; set HAUL_MEMORY_ARENA_BYTES lower, or "
           "HAUL_SERVICE_MAP_BYTES to 0";
  }
  *code = Code::ok;
  return "";
}

namespace {

Refusal fill_in(Hub& hub, Client& client, const wire::Hello& hello, Packet& packet) {
  if (Refusal refusal = map_table(client, packet); refusal.code != Code::ok) return refusal;
  if (hello.arena_bytes == 0) return {};
  Code code = Code::ok;
  std::string wrong =
      attach_arena(hub, client, packet.take_fd(1), hello.arena_base, hello.arena_bytes, &code);
  return {code, std::move(wrong)};
}

// Drops the client that holds `key`, if it is the same process's former connection. False: it is
// another process.
bool free_key(Connections& connections, const Connection& connection, const Key& key) {
  Client* holder = connections.hub().find_key(key);
  if (holder == nullptr) return true;
  if (holder->pid != connection.peer.pid || holder->pid == 0) return false;
  holder->condemn(Code::closed, "its process has connected again");
  return true;
}

void attach(Connections& connections, Connection& connection, const wire::Hello& hello,
            Packet& packet) {
  Hub& hub = connections.hub();
  if (hub.clients.size() >= max_clients) {
    connections.refuse(connection, Code::no_memory,
                       text("%zu clients are attached, the most there can be", max_clients));
    return;
  }
  if (const std::string foreign = foreign_user(connection.peer.pid); !foreign.empty()) {
    connections.refuse(connection, Code::permission, foreign);
    return;
  }
  auto made = std::make_unique<Client>();
  std::copy(std::begin(hello.key), std::end(hello.key), made->key.begin());
  if (!free_key(connections, connection, made->key)) {
    connections.refuse(connection, Code::invalid, "another process holds that key of grants");
    return;
  }
  made->id = connection.id;
  made->socket = connection.socket;
  made->pid = connection.peer.pid;
  made->name = printable(hello.name, sizeof hello.name);
  made->weight = std::clamp(hello.weight, 1u, wire::max_weight);
  made->since_ns = made->user_seen_ns = now_ns();
  Client& client = hub.add(std::move(made));
  if (const Refusal refusal = fill_in(hub, client, hello, packet); refusal.code != Code::ok) {
    hub.remove(client);
    connections.refuse(connection, refusal.code, refusal.sentence);
    return;
  }
  std::string why;
  client.space = open_its_space(connection, hello, &why);
  client.board().asleep.store(0, std::memory_order_seq_cst);
  connection.client = &client;
  connections.greet(connection, Standing::client);
  welcome(connection, client.space != self_space, why);
  hub.say(text("client %s attached%s%s", name_of(client).c_str(),
               why.empty() ? ""
                           : "; its own memory "
                             "is out of reach: ",
               why.c_str()));
}

}  // namespace

void hello(Connections& connections, Connection& connection, Packet& packet) {
  Code code = Code::ok;
  if (const std::string wrong = misunderstanding(packet, &code); !wrong.empty()) {
    connections.refuse(connection, code, wrong);
    return;
  }
  wire::Hello hello;
  packet.as(&hello);
  if (hello.role == wire::Role::client) {
    attach(connections, connection, hello, packet);
  } else if (hello.role == wire::Role::monitor) {
    std::string why;
    const Space space = open_its_space(connection, hello, &why);
    if (space != self_space) close_space(space);
    connections.greet(connection, Standing::monitor);
    welcome(connection, space != self_space, why);
  } else {
    connections.refuse(connection, Code::invalid, "a role that does not exist");
  }
}

}  // namespace haul::service
