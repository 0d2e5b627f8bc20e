// It ends by itself when nothing has been pending for a while, since a process ends with its last
// thread (own_threads.hpp); and it keeps a reference to the userfaultfd in a descriptor table of
// its own: the kernel lets all touches pass, and the missing pages read as zero, as soon as nobody
// has the descriptor open, and the program may close everything (closefrom()).
//
// State: off -> begins, by whoever makes it; begins -> on, by the thread; on -> off, by the
// thread itself, which afterwards looks once more whether something is pending (Dekker: a call is
// counted before the state is looked at, the state is changed before the count is; both
// sequentially consistent).
#include "preload/defer/touches.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "base/os/descriptor.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/userfault.hpp"
#include "base/sync/backoff.hpp"
#include "base/sync/process_lock.hpp"
#include "base/thread/apart.hpp"
#include "base/thread/own_threads.hpp"
#include "preload/defer/pending.hpp"

namespace haul::preload {
namespace {

enum class Serving : std::uint8_t { off, begins, on, never };
constinit std::atomic<Serving> server{Serving::off};
constinit ProcessLock making;
constinit os::SharedDescriptor opened;

// How long it sleeps while nobody is held: so much later are calls retired, and samples ended.
constexpr std::uint64_t look_again_ns = 200'000, look_later_ns = 5'000'000;

bool ends_now() noexcept {
  Serving serving = Serving::on;
  if (server.load() == Serving::never) return watched_count() == 0;
  if (watched_count() != 0 || !server.compare_exchange_strong(serving, Serving::off)) return false;
  serving = Serving::off;
  return watched_count() == 0 || !server.compare_exchange_strong(serving, Serving::on);
}

void* run(void*) {
  os::name_thread("haul-touches");
  os::shortest_slices();
  Serving begins = Serving::begins;
  // Without a table of its own it must not serve.
  const bool apart = os::keep_alone(userfault());
  server.compare_exchange_strong(begins, apart ? Serving::on : Serving::never);
  do {
    for (bool soon = true; watched_count() != 0; soon = !retire_done()) {
      os::await_events(userfault(), soon ? look_again_ns : look_later_ns);
      serve_all();
    }
    // (Somebody may have begun to change a mapping while it was still watched: nobody else lets him
    // go on.)
    serve_all();
    await_watched();
    serve_all();
  } while (!ends_now());
  if (!os::end_process_elsewhere()) os::detach_self();
  return nullptr;
}

bool make() noexcept {
  if (!opened.now().intact()) {
    const int fd = os::open_userfault();
    if (fd < 0) {
      // Rights do not come back, and kernels do not change.
      if (fd != -EMFILE && fd != -ENFILE && fd != -ENOMEM) server.store(Serving::never);
      return false;
    }
    opened.set(os::Descriptor::of(fd));
    set_userfault(fd);
  }
  // A mover needs this, too, and may come later. As long as a process has one thread it is had at
  // once; with this one the kernel would wait for all CPUs, for 5 to 20 ms.
  os::membarrier_register();
  pthread_t thread;
  Serving off = Serving::off;
  if (!server.compare_exchange_strong(off, Serving::begins)) return false;
  if (os::start_thread(&thread, run, nullptr) != 0) {
    Serving begins = Serving::begins;
    server.compare_exchange_strong(begins, Serving::off);
    return false;
  }
  // Until it has a reference of its own, nothing may hang on the descriptor. (It may have ended
  // again before this thread looks.)
  for (Backoff backoff; server.load() == Serving::begins;) backoff.pause();
  return server.load() == Serving::on;
}

}  // namespace

bool ready_to_serve(bool may_make) noexcept {
  Serving now = server.load();
  if (now == Serving::on) {
    if (opened.now().intact()) return true;
    if (watched_count() != 0 || !may_make) return false;
    // The program has closed the descriptor, but the thread has it still, and waits for work.
    end_await();
    Backoff backoff(0, 100);
    for (unsigned turns = 120; turns > 0 && now == Serving::on; --turns, now = server.load())
      backoff.pause();
    if (now == Serving::on) return false;
  }
  if (now == Serving::never || !may_make) return false;
  os::SignalMask mask;
  making.lock(&mask);
  const bool ready = server.load() == Serving::on || make();
  making.unlock(mask);
  return ready;
}

bool is_serving() noexcept {
  return server.load() == Serving::on;
}

bool serve_no_more() noexcept {
  const Serving before = server.exchange(Serving::never);
  settle_all();
  end_await();
  return before == Serving::on || before == Serving::begins;
}

void forget_server() noexcept {
  making.forget();
  os::Descriptor parents = opened.now();
  parents.close();
  opened.set(os::Descriptor());
  const Serving parents_server = server.load();
  if (parents_server != Serving::never) server.store(Serving::off);
}

}  // namespace haul::preload
