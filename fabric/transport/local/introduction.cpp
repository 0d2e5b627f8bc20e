// The words by which peers probe this process.
#include "fabric/transport/local/introduction.hpp"

#include <haul/haul.h>

#include <atomic>

#include "base/os/pages/sealed.hpp"
#include "base/private.hpp"

namespace haul::fabric {
namespace {

// Written once, before it is given away.
struct ProbeWord {
  std::atomic<std::uint64_t> value{0};

  // A random number; never 0.
  std::uint64_t get() noexcept {
    std::uint64_t known = value.load(std::memory_order_acquire);
    if (known != 0) return known;
    std::uint64_t fresh = 0;
    os::random_bytes(&fresh, sizeof fresh);
    fresh |= 1;
    return value.compare_exchange_strong(known, fresh, std::memory_order_acq_rel) ? fresh : known;
  }
};

constinit ProbeWord private_word;

// Of the arena at `base`; a child of fork has another arena.
struct ArenaWord {
  std::atomic<std::uintptr_t> base{0};
  std::atomic<std::uint64_t*> word{nullptr};
};
constinit ArenaWord arena_word;

}  // namespace

std::uint64_t probe_word_address() noexcept {
  return reinterpret_cast<std::uintptr_t>(&private_word.value);
}

std::uint64_t probe_word_value() noexcept {
  return private_word.get();
}

OwnArena own_arena() noexcept {
  HaulPrivateArena view;
  haul_private_arena(&view);
  OwnArena own;
  if (view.fd < 0 || view.bytes == 0) return own;
  if (arena_word.base.load(std::memory_order_acquire) != view.base) {
    // Never freed: peers that come later probe it, too.
    auto* word = static_cast<std::uint64_t*>(haul_alloc(sizeof(std::uint64_t)));
    if (word == nullptr) return own;
    *word = probe_word_value();
    // (Endpoints that first meet a peer at once may each make one; either will do.)
    arena_word.word.store(word, std::memory_order_release);
    arena_word.base.store(view.base, std::memory_order_release);
  }
  const std::uint64_t* word = arena_word.word.load(std::memory_order_acquire);
  own.descriptor = os::Descriptor::of(view.fd);
  own.note.bytes = view.bytes;
  own.note.probe_offset = reinterpret_cast<std::uintptr_t>(word) - view.base;
  own.note.probe_value = *word;
  return own;
}

}  // namespace haul::fabric
