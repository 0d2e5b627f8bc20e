// What lies at an address: a module's segment, as the loader knows it (so that variables without
// bytes in the file are found, too), or else a mapping, as the kernel knows it.
#include "fabric/transport/slow_buffers.hpp"

#include <link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/os/pages/mappings.hpp"
#include "base/private.hpp"

namespace haul::fabric {
namespace {

// What was found out about one address.
struct Finding {
  std::uintptr_t wanted = 0, own_frame = 0;
  MemoryKind kind = MemoryKind::unknown;
  std::uintptr_t from = 0, to = 0;
  char name[sizeof SlowBuffer::name] = {};

  void set_name(const char* path) noexcept {
    const char* slash = std::strrchr(path, '/');
    const char* last = slash != nullptr ? slash + 1 : path;
    std::memcpy(name, last, strnlen(last, sizeof name - 1));
  }
};

bool begins(const char* text, const char* with) noexcept {
  return std::strncmp(text, with, std::strlen(with)) == 0;
}

int look_at_module(dl_phdr_info* info, std::size_t, void* context) noexcept {
  auto& finding = *static_cast<Finding*>(context);
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || finding.wanted - begin >= part.p_memsz) continue;
    finding.kind = MemoryKind::static_data;
    finding.from = begin;
    finding.to = begin + part.p_memsz;
    // The program itself has no name here.
    finding.set_name(info->dlpi_name != nullptr && info->dlpi_name[0] != '\0'
                         ? info->dlpi_name
                         : program_invocation_short_name);
    return 1;
  }
  return 0;
}

MemoryKind kind_of(const os::Mapping& mapping, std::uintptr_t own_frame) noexcept {
  if (own_frame - mapping.begin < mapping.end - mapping.begin || begins(mapping.name, "[stack"))
    return MemoryKind::stack;
  if (begins(mapping.name, "[heap")) return MemoryKind::heap;
  const bool memory_file = begins(mapping.name, "/memfd:") || begins(mapping.name, "/dev/shm/") ||
                           begins(mapping.name, "/SYSV") || begins(mapping.name, "/dev/zero");
  if (mapping.shared && (memory_file || !mapping.has_file)) return MemoryKind::shared;
  return mapping.has_file ? MemoryKind::file : MemoryKind::anonymous;
}

void look_at_mapping(const os::Mapping& mapping, void* context) noexcept {
  auto& finding = *static_cast<Finding*>(context);
  if (finding.wanted < mapping.begin || finding.wanted >= mapping.end) return;
  finding.kind = kind_of(mapping, finding.own_frame);
  finding.from = mapping.begin;
  finding.to = mapping.end;
  if (mapping.has_file) finding.set_name(mapping.name);
}

Finding find_out(std::uintptr_t at) noexcept {
  Finding finding;
  finding.wanted = at;
  finding.own_frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  std::uint64_t offset = 0;
  if (haul_private_in_arena(reinterpret_cast<const void*>(at), 1, &offset)) {
    HaulPrivateArena arena;
    haul_private_arena(&arena);
    finding.kind = MemoryKind::arena;
    finding.from = arena.base;
    finding.to = arena.base + arena.bytes;
    return finding;
  }
  if (dl_iterate_phdr(look_at_module, &finding) == 0)
    os::for_each_mapping(look_at_mapping, &finding);
  return finding;
}

// One writer.
template <class T>
void add_to(std::atomic<T>& counter, T amount) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

}  // namespace

void SlowBuffers::Entry::count(std::uintptr_t at, std::size_t span, std::size_t message,
                               bool was_sent) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::uintptr_t first = begin.load(relaxed);
  begin.store(first == 0 ? at : std::min(first, at), relaxed);
  end.store(std::max(end.load(relaxed), at + span), relaxed);
  add_to<std::uint64_t>(was_sent ? sent : received, 1);
  add_to<std::uint64_t>(bytes, message);
  largest.store(std::max<std::uint64_t>(largest.load(relaxed), message), relaxed);
}

SlowBuffer SlowBuffers::Entry::shown() const noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  SlowBuffer buffer;
  buffer.kind = static_cast<std::uint8_t>(kind);
  std::memcpy(buffer.name, name, sizeof buffer.name);
  buffer.begin = begin.load(relaxed);
  buffer.end = end.load(relaxed);
  buffer.sent_messages = sent.load(relaxed);
  buffer.received_messages = received.load(relaxed);
  buffer.bytes = bytes.load(relaxed);
  buffer.largest = largest.load(relaxed);
  return buffer;
}

// The entry in whose range this lies. Memory comes and goes: an address that is new there is looked
// up again, as long as that does not take the program's time.
SlowBuffers::Entry* SlowBuffers::known(std::uintptr_t at, bool scattered) noexcept {
  const std::size_t used = used_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < used; ++i) {
    Entry& entry = entries_[(last_ + i) % used];
    if (scattered) {
      if (entry.kind == MemoryKind::scattered) return &entry;
      continue;
    }
    if (entry.kind == MemoryKind::scattered || at < entry.from || at >= entry.to) continue;
    const bool stays = entry.kind == MemoryKind::stack || entry.kind == MemoryKind::static_data ||
                       entry.kind == MemoryKind::arena;
    if (!stays && at != entry.seen[0] && at != entry.seen[1] && looks_ < most_looks) {
      const Finding finding = find_out(at);
      ++looks_;
      if (finding.kind != entry.kind || std::strcmp(finding.name, entry.name) != 0) {
        entry.from = entry.to = 0;  // what was there has gone
        return nullptr;
      }
      entry.seen[1] = std::exchange(entry.seen[0], at);
    }
    last_ = (last_ + i) % used;
    return &entry;
  }
  return nullptr;
}

SlowBuffers::Entry* SlowBuffers::entry_of(std::uintptr_t at, bool scattered) noexcept {
  if (Entry* entry = known(at, scattered)) return entry;
  const std::size_t used = used_.load(std::memory_order_relaxed);
  if (looks_ == most_looks) return &others_;
  Finding finding;
  if (scattered) {
    finding.kind = MemoryKind::scattered;
  } else {
    finding = find_out(at);
    ++looks_;
  }
  if (finding.from == 0) {
    finding.from = at;
    finding.to = at + 1;
  }
  // Stacks grow at one end, heaps at the other, the kernel joins mappings that touch, and new
  // memory takes the place of what has gone.
  for (std::size_t i = 0; i < used; ++i) {
    Entry& entry = entries_[i];
    if (entry.kind != finding.kind || std::strcmp(entry.name, finding.name) != 0) continue;
    const bool gone = entry.to == 0, grown = entry.to == finding.to || entry.from == finding.from;
    if (!gone && !grown) continue;
    entry.from = gone ? finding.from : std::min(entry.from, finding.from);
    entry.to = std::max(entry.to, finding.to);
    entry.seen[0] = at;
    last_ = i;
    return &entry;
  }
  if (used == capacity) return &others_;
  Entry& entry = entries_[used];
  entry.kind = finding.kind;
  std::memcpy(entry.name, finding.name, sizeof entry.name);
  entry.from = finding.from;
  entry.to = finding.to;
  entry.seen[0] = at;
  last_ = used;
  used_.store(used + 1, std::memory_order_release);  // pairs with fill()
  return &entry;
}

void SlowBuffers::note(const iovec* pieces, std::size_t count, std::size_t bytes,
                       bool sent) noexcept {
  if (count == 0) return;
  const auto at = reinterpret_cast<std::uintptr_t>(pieces[0].iov_base);
  entry_of(at, count > 1)->count(at, std::min(pieces[0].iov_len, bytes), bytes, sent);
}

std::size_t SlowBuffers::fill(SlowBuffer* worst, std::size_t room,
                              SlowBuffer* others) const noexcept {
  SlowBuffer all[capacity];
  const std::size_t used = used_.load(std::memory_order_acquire);  // pairs with entry_of()
  for (std::size_t i = 0; i < used; ++i) all[i] = entries_[i].shown();
  std::sort(all, all + used,
            [](const SlowBuffer& a, const SlowBuffer& b) { return a.bytes > b.bytes; });
  *others = others_.shown();
  const std::size_t shown = std::min(used, room);
  std::copy(all, all + shown, worst);
  for (std::size_t i = shown; i < used; ++i) {
    others->sent_messages += all[i].sent_messages;
    others->received_messages += all[i].received_messages;
    others->bytes += all[i].bytes;
    others->largest = std::max(others->largest, all[i].largest);
  }
  return shown;
}

}  // namespace haul::fabric
