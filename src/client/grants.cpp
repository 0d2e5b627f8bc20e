// The tables of what was granted and what may be named, and questions to the service.
#include "client/grants.hpp"

#include <pthread.h>

#include <atomic>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/sync/quiet_lock.hpp"
#include "client/link.hpp"
#include "client/link_socket.hpp"
#include "engine/spaces.hpp"

namespace haul {
namespace {

constexpr unsigned attach_ms = 2500;
constexpr std::uint64_t answer_ns = 5'000'000'000, unbind_ns = 100'000'000;
constexpr std::uint64_t parting_step_ns = 200'000;
constexpr std::uint32_t withdrawing = 0;  // in place of a grant's rights
constexpr char magic[8] = {'h', 'a', 'u', 'l', 'g', 'r', 'n', 't'};

// What the memfd of a capability holds.
struct KeyFile {
  char magic[8];
  std::uint8_t key[wire::key_bytes];
};

struct Binding {
  Space space = self_space;  // self_space: free
  std::uint8_t key[wire::key_bytes] = {};
  std::uint64_t index = 0;
};

constinit pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;  // all below
constinit wire::Grant* granted = nullptr;                      // max_grants; index 0: free
constinit Binding bindings[max_spaces];                        // by the space's slot
constinit std::uint8_t own_key[wire::key_bytes] = {};
constinit bool has_key = false;
constinit os::Descriptor key_file;
// How many bindings a new service was told of and has not confirmed. The link's thread only.
constinit unsigned unheard = 0;

// How a question is asked. Threads of the program ask (Bind, Withdraw), and the link's thread hears
// the answers; they meet in one word, `answer`: {number 30, Answer 2}. The thread whose turn it is
// raises the number and sets `awaited`, sends the message, and sleeps on the word. The link's
// thread turns `awaited` into `given` if the answer is about what was asked, or into `lost` when
// the service is gone, by compare-and-swap: so an answer that comes after its asker has given up
// finds another number, and changes nothing. No lock is held meanwhile, since a fork may come.

// One question is asked at a time. A thread that waits for its turn, or for its answer, leaves
// signals open; its five seconds run from the beginning of its call.
class Turn {
 public:
  explicit Turn(std::uint64_t deadline_ns) noexcept {
    std::uint32_t seen = nobody;
    mine_ = word_.compare_exchange_strong(seen, taken, std::memory_order_acquire);
    while (!mine_) {
      mine_ = word_.exchange(awaited, std::memory_order_acquire) == nobody;
      const std::uint64_t now = now_ns();
      if (mine_ || now >= deadline_ns) return;
      os::futex_wait(&word_, awaited, deadline_ns - now);
    }
  }
  ~Turn() {
    if (mine_ && word_.exchange(nobody, std::memory_order_release) == awaited)
      os::futex_wake(&word_, 1);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const noexcept { return mine_; }

  static void forget() noexcept { word_.store(nobody, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t nobody = 0, taken = 1, awaited = 2;
  static constinit std::atomic<std::uint32_t> word_;
  bool mine_ = false;
};
constinit std::atomic<std::uint32_t> Turn::word_{nobody};

enum class Answer : std::uint32_t { idle, awaited, given, lost };
constinit std::atomic<std::uint32_t> answer{0};
constinit std::atomic<std::uint64_t> asked{0};  // the subject: a space, or a grant's index
constinit wire::Bound last_bound;               // written before `given` is

constexpr Answer state_of(std::uint32_t word) noexcept {
  return static_cast<Answer>(word & 3);
}
constexpr std::uint32_t with(std::uint32_t word, Answer state) noexcept {
  return (word & ~std::uint32_t{3}) | static_cast<std::uint32_t>(state);
}

void give(Answer what, std::uint64_t about) noexcept {
  std::uint32_t word = answer.load(std::memory_order_acquire);
  if (state_of(word) != Answer::awaited ||
      (what == Answer::given && asked.load(std::memory_order_relaxed) != about))
    return;
  // Release: pairs with the acquire load in ask().
  if (answer.compare_exchange_strong(word, with(word, what), std::memory_order_release))
    os::futex_wake(&answer, 1);
}

// Sends a question and waits for its answer; *bound gets the answer to a Bind. closed: there is no
// service, or not any more, or a signal handler has forked meanwhile and it was the parent that
// asked; timed_out: the service did not answer within answer_ns, which includes the wait for other
// threads' questions.
template <class Message>
Code ask(const Message& message, std::uint64_t about, wire::Bound* bound = nullptr) noexcept {
  const std::uint64_t deadline = now_ns() + answer_ns;
  const Turn turn(deadline);
  std::uint64_t now = now_ns();
  if (!turn || now >= deadline) return Code::timed_out;
  const std::uint32_t number = answer.load(std::memory_order_relaxed) + 4;
  asked.store(about, std::memory_order_relaxed);
  answer.store(with(number, Answer::awaited), std::memory_order_release);
  Code code = tell_service(&message, sizeof message, deadline - now);
  std::uint32_t word = answer.load(std::memory_order_acquire);
  while (code == Code::ok && state_of(word) == Answer::awaited) {
    now = now_ns();
    if (now >= deadline) {
      code = Code::timed_out;
    } else {
      os::futex_wait(&answer, word, deadline - now);
    }
    word = answer.load(std::memory_order_acquire);
  }
  if (bound != nullptr) *bound = last_bound;
  answer.store(with(number, Answer::idle), std::memory_order_relaxed);
  // idle: this is the child of such a fork, and forget_grants() ran in between.
  const Answer last = state_of(word);
  return last == Answer::lost || last == Answer::idle ? Code::closed : code;
}

Error unanswered(Code code) noexcept {
  if (code == Code::timed_out) {
    return make_error(
        code, 0,
        "The node's service does not answer; is it stopped? It may still be using the "
        "memory.");
  }
  return make_error(Code::again, 0, "The node's service has just gone; try again.");
}

// Locked (tables).
void make_key() noexcept {
  if (has_key) return;
  if (!os::random_bytes(own_key, sizeof own_key)) {
    const std::uint64_t poor[2] = {now_ns(),
                                   ticks()};  // a kernel without randomness: very early boot
    std::memcpy(own_key, poor, sizeof own_key);
  }
  has_key = true;
}

// Locked (tables).
Code make_key_file(Error* error) noexcept {
  make_key();
  if (key_file.intact()) return Code::ok;
  KeyFile file{};
  std::memcpy(file.magic, magic, sizeof magic);
  std::memcpy(file.key, own_key, sizeof own_key);
  const int fd = os::make_sealed_text("haul-grant", &file, sizeof file);
  key_file = os::Descriptor::of(fd);
  if (fd >= 0) return Code::ok;
  *error = make_error(Code::no_memory, -fd,
                      "No descriptor for the capability can be made (%s); raise ulimit -n.",
                      describe_errno(-fd));
  return Code::no_memory;
}

// Locked (tables).
wire::Grant* find(std::uint64_t index) noexcept {
  for (std::size_t i = 0; granted != nullptr && i < max_grants; ++i) {
    if (granted[i].index == index) return &granted[i];
  }
  return nullptr;
}

void forget(std::uint64_t index) noexcept {
  const QuietLock lock(tables);
  if (wire::Grant* grant = find(index); grant != nullptr) *grant = wire::Grant{};
}

wire::Grant granted_at(std::size_t i) noexcept {
  const QuietLock lock(tables);
  return granted != nullptr ? granted[i] : wire::Grant{};
}

void tell_unbound(Space space) noexcept {
  wire::Unbind message;
  message.space = space;
  tell_service(&message, sizeof message, unbind_ns);
}

wire::Bind bind_of(const Binding& binding) noexcept {
  wire::Bind message;
  message.space = binding.space;
  std::memcpy(message.key, binding.key, sizeof message.key);
  message.index = binding.index;
  return message;
}

}  // namespace

Expected<Capability> share(std::uintptr_t address, std::size_t length,
                           std::uint32_t rights) noexcept {
  Error error;
  if (await_service(attach_ms, &error) != Code::ok) return error;
  wire::Grant grant;
  grant.rights = rights;
  grant.address = address;
  grant.length = length;
  while (grant.index == 0 && os::random_bytes(&grant.index, sizeof grant.index)) {
  }
  if (grant.index == 0) grant.index = ticks() | 1;
  Capability capability;
  {
    const QuietLock lock(tables);
    if (make_key_file(&error) != Code::ok) return error;
    if (granted == nullptr)
      granted = static_cast<wire::Grant*>(os::map_anonymous(max_grants * sizeof(wire::Grant)));
    wire::Grant* room = find(0);
    if (room == nullptr) {
      return make_error(Code::no_memory, 0,
                        "%zu grants exist, which is the limit; take some back with haul_unshare().",
                        max_grants);
    }
    *room = grant;
    capability = Capability{key_file.number(), grant.index};
  }
  // If the service goes away just now, the next one is told.
  const Code told = tell_service(&grant, sizeof grant, answer_ns);
  if (told != Code::timed_out) return capability;
  forget(grant.index);
  return unanswered(told);
}

Code unshare(std::uint64_t index, Error* error) noexcept {
  {
    const QuietLock lock(tables);
    wire::Grant* grant = index != 0 ? find(index) : nullptr;
    if (grant == nullptr) {
      *error = make_error(Code::invalid, 0,
                          "This is not a grant of this process, or it was taken back already; take "
                          "each grant back once.");
      return Code::invalid;
    }
    grant->rights = withdrawing;  // no new service is told of it from here on
  }
  wire::Withdraw message;
  message.index = index;
  const std::uint64_t deadline = now_ns() + answer_ns;
  Code code = ask(message, index);
  // closed: it cannot be told any more, and lets go of everything once it reads that.
  while (code == Code::closed && service_may_use_memory()) {
    if (now_ns() >= deadline) code = Code::timed_out;
    os::sleep_ns(parting_step_ns);
  }
  if (code == Code::timed_out) {
    *error = unanswered(code);
    return code;
  }
  forget(index);
  return Code::ok;
}

Expected<Space> open_grant(const Capability& grant, std::size_t* length) noexcept {
  KeyFile file{};
  if (!os::read_front(grant.fd, &file, sizeof file) ||
      std::memcmp(file.magic, magic, sizeof magic) != 0) {
    return make_error(
        Code::invalid, 0,
        "Descriptor %d does not belong to a grant; pass the one that came with the index.",
        grant.fd);
  }
  Error error;
  if (await_service(attach_ms, &error) != Code::ok) return error;
  auto space = open_grant_space();
  if (!space) return space.error();
  Binding binding;
  binding.space = *space;
  std::memcpy(binding.key, file.key, sizeof binding.key);
  binding.index = grant.index;
  wire::Bound bound;
  const Code code = ask(bind_of(binding), *space, &bound);
  if (code == Code::ok && bound.code == 0) {
    const QuietLock lock(tables);
    bindings[*space % max_spaces] = binding;
    *length = bound.length;
    return *space;
  }
  tell_unbound(*space);
  close_space(*space);
  if (code != Code::ok) return unanswered(code);
  return make_error(Code::permission, 0,
                    "The service knows no such grant: it was taken back, or its process is gone.");
}

void forget_grant(Space space) noexcept {
  {
    const QuietLock lock(tables);
    Binding& binding = bindings[space % max_spaces];
    if (binding.space != space) return;
    binding = Binding{};
  }
  tell_unbound(space);
}

void grant_key(std::uint8_t (&key)[wire::key_bytes]) noexcept {
  const QuietLock lock(tables);
  make_key();
  std::memcpy(key, own_key, sizeof key);
}

bool has_grants() noexcept {
  const QuietLock lock(tables);
  for (std::size_t i = 0; granted != nullptr && i < max_grants; ++i) {
    if (granted[i].index != 0) return true;
  }
  for (const Binding& binding : bindings) {
    if (binding.space != self_space) return true;
  }
  return false;
}

// One at a time, and without the lock, since the service may be slow to read.
void resend_grants() noexcept {
  unheard = 0;
  for (std::size_t i = 0; i < max_grants; ++i) {
    const wire::Grant grant = granted_at(i);
    if (grant.index == 0 || grant.rights == withdrawing) continue;
    if (tell_service(&grant, sizeof grant, answer_ns) != Code::ok) return;
    // It may have been taken back meanwhile, and the service may have heard that before it heard of
    // the grant.
    const wire::Grant now = granted_at(i);
    if (now.index == grant.index && now.rights == grant.rights) continue;
    wire::Withdraw withdraw;
    withdraw.index = grant.index;
    tell_service(&withdraw, sizeof withdraw, answer_ns);
  }
  for (std::size_t i = 0; i < max_spaces; ++i) {
    wire::Bind message;
    {
      const QuietLock lock(tables);
      message = bind_of(bindings[i]);
    }
    if (message.space == self_space) continue;
    if (tell_service(&message, sizeof message, answer_ns) != Code::ok) return;
    ++unheard;
  }
}

bool bindings_are_known() noexcept {
  return unheard == 0;
}

void answer_bound(const wire::Bound& bound) noexcept {
  if (asked.load(std::memory_order_relaxed) != bound.space ||
      state_of(answer.load(std::memory_order_acquire)) != Answer::awaited) {
    if (unheard != 0) --unheard;  // an answer to resend_grants(), or a late one
    return;
  }
  last_bound = bound;
  give(Answer::given, bound.space);
}

void answer_withdrawn(const wire::Withdrawn& withdrawn) noexcept {
  give(Answer::given, withdrawn.index);
}

void fail_requests() noexcept {
  give(Answer::lost, 0);
}

void forget_grants() noexcept {
  tables = PTHREAD_MUTEX_INITIALIZER;
  Turn::forget();
  answer.store(0, std::memory_order_relaxed);
  for (std::size_t i = 0; granted != nullptr && i < max_grants; ++i) granted[i] = wire::Grant{};
  key_file.close();
  has_key = false;
}

}  // namespace haul
