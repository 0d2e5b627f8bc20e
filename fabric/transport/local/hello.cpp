// Names, identities, and the words by which peers probe this process.
#include "fabric/transport/local/hello.hpp"

#include <haul/haul.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/os.hpp"
#include "base/private.hpp"
#include "base/sealed.hpp"

namespace haul::fabric {
namespace {

std::uint64_t mix(std::uint64_t hash, const void* data, std::size_t bytes) noexcept {
  // FNV-1a.
  for (std::size_t i = 0; i < bytes; ++i) {
    hash ^= static_cast<const unsigned char*>(data)[i];
    hash *= 0x100000001b3u;
  }
  return hash;
}

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

std::uint64_t host_identity() noexcept {
  const KeepErrno keep;
  char boot[64];
  std::uint64_t hash = 0xcbf29ce484222325u;
  const ssize_t length = os::read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
  if (length > 0) hash = mix(hash, boot, static_cast<std::size_t>(length));
  struct stat status {};
  if (stat("/proc/self/ns/net", &status) == 0) {
    hash = mix(hash, &status.st_dev, sizeof status.st_dev);
    hash = mix(hash, &status.st_ino, sizeof status.st_ino);
  }
  return hash;
}

bool make_address(Address* address) noexcept {
  *address = Address{};
  address->host = host_identity();
  return os::random_bytes(address->id, sizeof address->id);
}

Address address_of_port(std::uint16_t port) noexcept {
  constexpr std::uint64_t of_a_port = 0x54524f50;  // "PORT"
  Address address;
  address.host = host_identity();
  if (port != 0) {
    address.id[0] = of_a_port;
    address.id[1] = port;
  }
  return address;
}

bool names_an_endpoint(const Address& address) noexcept {
  return address.id[0] != 0 || address.id[1] != 0;
}

void socket_name(const Address& address, char (&name)[name_bytes]) noexcept {
  std::snprintf(name, sizeof name, "%s%016llx%016llx", socket_prefix,
                static_cast<unsigned long long>(address.id[0]),
                static_cast<unsigned long long>(address.id[1]));
}

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
    arena_word.word.store(word, std::memory_order_relaxed);
    arena_word.base.store(view.base, std::memory_order_release);
  }
  const std::uint64_t* word = arena_word.word.load(std::memory_order_relaxed);
  own.descriptor = os::Descriptor::of(view.fd);
  own.note.bytes = view.bytes;
  own.note.probe_offset = reinterpret_cast<std::uintptr_t>(word) - view.base;
  own.note.probe_value = *word;
  return own;
}

}  // namespace haul::fabric
