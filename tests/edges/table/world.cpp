#include "world.hpp"

#include <pthread.h>

#include <thread>

namespace edges {
namespace {

constexpr std::size_t cell_bytes = 256 * kib;

}  // namespace

World::World(const Function& function, Report& report, bool service)
    : function_(function), report_(report), src_(cell_bytes) {
  src_.fill(1);
  // Handlers add to it, while there is room.
  copies_.reserve(32);
  always_mover();
  setenv("HAUL_SERVICE_SOCKET", "/proc/nonexistent/haul-edges", 1);
  if (service) {
    service_ = std::make_unique<Service>();
    CHILD_CHECK(service_->start());
    service_->use("auto");
  }
  if (function.peer) start_peer();
}

void World::start_peer() {
  int ends[2];
  CHILD_EQUAL(pipe(ends), 0);
  peer_ = start_child([&] {
    close(ends[0]);
    haul_atomic_window_name name{};
    if (function_.atomic) {
      haul_atomic_node* node = nullptr;
      haul_atomic_window* window = nullptr;
      CHILD_EQUAL(haul_atomic_node_open("block:127.0.0.1", options(), &node), 0);
      CHILD_EQUAL(haul_atomic_window_create(node, 64 * kib, &window), 0);
      CHILD_EQUAL(haul_atomic_window_export(window, &name), 0);
    }
    CHILD_EQUAL(write(ends[1], &name, sizeof name), sizeof name);
    for (;;) pause();
    return 0;
  });
  close(ends[1]);
  CHILD_EQUAL(read(ends[0], &name_, sizeof name_), sizeof name_);
  close(ends[0]);
  if (!function_.atomic) return;
  char word[200];
  CHILD_EQUAL(haul_atomic_window_format(&name_, word, sizeof word), 0);
  name_text_ = word;
}

void World::stage(const char* text) const {
  std::snprintf(report_.stage, sizeof report_.stage, "%s", text);
  report_.changes = report_.changes + 1;
}

void World::start() {
  stage("haul starts");
  if (service_ != nullptr) CHILD_CHECK(attach());
  copy_works(cell_bytes, 2);
  haul_wake();
  CHILD_EQUAL(haul_free(haul_alloc(1)), 0);
  if (function_.atomic) {
    haul_atomic_operation* operations = adds(name_.address);
    CHILD_EQUAL(haul_atomic_run(remote(), operations, count), 0);
  }
  ticket();  // in flight, or about to be
}

int World::call(const Call& call) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  stage("in the call");
  errno = 4242;
  const int result = call();
  const int error = errno;
  stage("after the call");
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 65; ++signal)
    CHILD_EQUAL(sigismember(&after, signal), sigismember(&before, signal));
  CHILD_EQUAL(error, 4242);
  int state = -1, type = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  CHILD_EQUAL(state, PTHREAD_CANCEL_ENABLE);
  CHILD_EQUAL(type, PTHREAD_CANCEL_DEFERRED);
  // No code but those of haul.h, with a sentence.
  CHILD_CHECK(result >= HAUL_ECLOSED);
  if (result < 0) {
    const bool told = haul_last_error()[0] != 0;
    CHILD_CHECK(told || copies_.size() > 0);
  }
  for (const Copy& copy : copies_) {
    if (haul_test(copy.ticket) == 1) check_bytes(copy);
  }
  report_.outcome = result;
  return result;
}

int World::prepare_and_call() {
  try {
    stage("before the call");
    const Call made = prepare();
    const int result = call(made);
    settle(false);
    return result;
  } catch (const Refused& refused) {
    CHILD_CHECK(refused.code >= HAUL_ECLOSED);
    settle(false);
    return refused.code;
  }
}

void World::check_bytes(const Copy& copy) const {
  const std::uint64_t pattern = copy.pattern;
  for (std::size_t at = 0; at < copy.dst->size(); ++at) {
    const unsigned char wanted =
        pattern == 0 ? src_[at] : static_cast<unsigned char>(pattern >> (at % 8 * 8));
    if ((*copy.dst)[at] == wanted) continue;
    std::fprintf(stderr, "byte %zu is wrong: %u, not %u\n", at, (*copy.dst)[at], wanted);
    _exit(1);
  }
}

void World::settle(bool must) {
  stage("waiting for its tickets");
  for (const Copy& copy : copies_) {
    const int result = haul_wait(copy.ticket);
    if (result == 0) check_bytes(copy);
    if (must && !may_be_shut_down()) CHILD_EQUAL(result, 0);
    CHILD_CHECK(result <= 0 && result >= HAUL_ECLOSED);
  }
  copies_.clear();
}

bool World::may_be_shut_down() const {
  return std::strcmp(function_.name, "haul_shutdown") == 0;
}

void World::still_works() {
  const auto copies = [this](const char* text) {
    stage(text);
    const Buffer dst(cell_bytes);
    dst.clear();
    const int result = haul_wait(haul_copy(dst.data(), src_.data(), dst.size()));
    if (result == HAUL_ECLOSED && may_be_shut_down()) return;
    CHILD_EQUAL(result, 0);
    CHILD_EQUAL(std::memcmp(dst.data(), src_.data(), dst.size()), 0);
  };
  copies("afterwards, a copy");
  std::thread([&] {
    copies("afterwards, another thread's copy");
    stage("afterwards, another thread's haul_wake()");
    haul_wake();
    stage("afterwards, another thread's haul_alloc()");
    CHILD_EQUAL(haul_free(haul_alloc(cell_bytes)), 0);
  }).join();
  // A sanitizer's own locks do not survive a fork of threads.
  if (sanitizer) return;
  stage("afterwards, a fork");
  const pid_t child = start_child([&] {
    copies("afterwards, a child's copy");
    return 0;
  });
  CHILD_EQUAL(end_of(child), 0);
}

}  // namespace edges
