// One word for each aide says what it is doing and whether it is dismissed; every change is an
// atomic operation on that word.
//
// The maker takes the word from none to making, starts the thread and moves on to idle. A thread
// that asks takes it from idle to taken, which excludes other askers, writes the body and its
// argument, moves on to asked (release) and wakes the aide. The aide sleeps on the word; when it
// reads asked (acquire) it runs the body and moves back to idle. A dismissal adds a bit from making
// on: an idle aide that finds the bit ends, by a compare-and-swap to none, which fails if another
// thread has asked it, or cleared the bit, in between.
#include "base/thread/aide.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "base/os/os.hpp"
#include "base/thread/own_threads.hpp"

namespace haul::os {
namespace {

// none -> making -> idle -> taken -> asked -> idle ... -> none, and the bit `dismissed` from making
// on.
enum AidePhase : std::uint32_t { none, making, idle, taken, asked };
constexpr std::uint32_t dismissed = 8;

struct Place {
  const char* name;                    // of the thread, 15 bytes
  std::atomic<std::uint32_t> word{0};  // a Phase and the bit; futex word
  void (*body)(void*) noexcept = nullptr;
  void* argument = nullptr;
};
constinit Place places[] = {{"haul-service"}, {"haul-files"}, {"haul-tune"}, {"haul-distance"}};

Place& place_of(Aide which) noexcept {
  return places[static_cast<unsigned>(which)];
}

std::uint32_t phase_of(std::uint32_t word) noexcept {
  return word & ~dismissed;
}

// Changes the phase and keeps the bit.
void move_on(Place& place, AidePhase from, AidePhase to) noexcept {
  if (from < to) {
    place.word.fetch_add(to - from, std::memory_order_release);
  } else {
    place.word.fetch_sub(from - to, std::memory_order_release);
  }
}

void* live(void* argument) noexcept {
  Place& place = *static_cast<Place*>(argument);
  name_thread(place.name);
  for (;;) {
    std::uint32_t word = place.word.load(std::memory_order_acquire);
    if (phase_of(word) == asked) {
      place.body(place.argument);
      move_on(place, asked, idle);
    } else if (word == (idle | dismissed)) {
      // A thread that needs an aide from here on makes another.
      if (place.word.compare_exchange_strong(word, none, std::memory_order_acq_rel)) break;
    } else {
      futex_wait(&place.word, word, 0);
    }
  }
  if (!end_process_elsewhere()) detach_self();
  return nullptr;
}

int make_at(Place& place) noexcept {
  std::uint32_t word = none;
  if (!place.word.compare_exchange_strong(word, making, std::memory_order_acq_rel)) {
    while (word != none && (word & dismissed) != 0) {
      if (place.word.compare_exchange_weak(word, word & ~dismissed, std::memory_order_acq_rel))
        return 0;
    }
    if (word != none) return 0;
    if (!place.word.compare_exchange_strong(word, making, std::memory_order_acq_rel)) return 0;
  }
  pthread_t thread;
  const int failed = start_thread(&thread, live, &place);
  if (failed == 0) {
    move_on(place, making, idle);  // it may be asked before it has begun to run
    // It may have been dismissed already, and be sleeping until this says idle.
    futex_wake(&place.word, 1);
  } else {
    place.word.store(none, std::memory_order_release);
  }
  return failed;
}

}  // namespace

int make_aide(Aide which) noexcept {
  // If a handler forked in the middle of this, the child would have a word that no thread there
  // would ever move on.
  SignalMask saved;
  block_signals(&saved);
  const int failed = make_at(place_of(which));
  restore_signals(saved);
  return failed;
}

int ask_aide(Aide which, void (*body)(void*) noexcept, void* argument) noexcept {
  Place& place = place_of(which);
  std::uint32_t word = place.word.load(std::memory_order_relaxed);
  do {
    if (word == none) return -ESRCH;
    if (phase_of(word) != idle) return -EBUSY;
    // Acquire: its former body has returned.
  } while (!place.word.compare_exchange_weak(word, word - idle + taken, std::memory_order_acquire));
  place.body = body;
  place.argument = argument;
  move_on(place, taken, asked);
  futex_wake(&place.word, 1);
  return 0;
}

void dismiss_aides() noexcept {
  for (Place& place : places) {
    std::uint32_t word = place.word.load(std::memory_order_relaxed);
    while (word != none &&
           !place.word.compare_exchange_weak(word, word | dismissed, std::memory_order_release)) {
    }
    if (word != none) futex_wake(&place.word, 1);
  }
}

void forget_aides() noexcept {
  for (Place& place : places) place.word.store(none, std::memory_order_relaxed);
}

}  // namespace haul::os
