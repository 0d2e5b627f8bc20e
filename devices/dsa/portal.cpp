#include "devices/dsa/portal.hpp"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/os/keep_errno.hpp"
#include "base/sanitizer.hpp"

namespace haul::dsa {
namespace {

constexpr unsigned slots = portal_bytes / sizeof(dsa_hw_desc);

struct Instructions {
  bool movdir64b = false, enqcmd = false;
};

Instructions instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return {};
  return {(c >> 28 & 1) != 0, (c >> 29 & 1) != 0};
}

// Both are ordered after no earlier store: what the descriptor names must be visible first.
[[gnu::target("movdir64b")]] void store_at_once(void* slot, const dsa_hw_desc& descriptor) {
  _mm_sfence();
  _movdir64b(slot, &descriptor);
}
// False: the queue is full, or this process may not use it.
[[gnu::target("enqcmd")]] bool enqueue(void* slot, const dsa_hw_desc& descriptor) {
  _mm_sfence();
  return _enqcmd(slot, &descriptor) == 0;
}

void store_words(void* slot, const dsa_hw_desc& descriptor) {
  std::uint64_t words[sizeof descriptor / sizeof(std::uint64_t)];
  std::memcpy(words, &descriptor, sizeof descriptor);
  auto* const at = static_cast<std::uint64_t*>(slot);
  for (std::size_t word = 1; word < std::size(words); ++word)
    __atomic_store_n(at + word, words[word], __ATOMIC_RELAXED);
  // Pairs with the stand-in's acquire load: it takes a slot whose first word is not 0.
  __atomic_store_n(at, words[0], __ATOMIC_RELEASE);
}

}  // namespace

// The way by the portal's page, if there is one: a device takes 64 bytes at once alone.
Portal::Way Portal::way_to(const WorkQueue& queue) {
  const Instructions has = instructions();
  // (A sanitizer does not see what an instruction that it does not know stores.)
  if (queue.emulated) return has.movdir64b && !accesses_are_checked ? Way::store : Way::words;
  if (queue.shared) return has.enqcmd ? Way::enqueue : Way::none;
  return has.movdir64b ? Way::store : Way::none;
}

bool Portal::open(const WorkQueue& queue, const Sentence& sentence) {
  descriptor_ = queue.descriptor;
  if (const Way way = way_to(queue); way != Way::none) {
    void* const page =
        mmap(nullptr, portal_bytes, PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
    if (page != MAP_FAILED) {
      // (The driver has seen to it for its own; a stand-in's page is like it.)
      madvise(page, portal_bytes, MADV_DONTFORK);
      page_ = static_cast<unsigned char*>(page);
      way_ = way;
      return true;
    }
  }
  // Linux lets only users with CAP_SYS_RAWIO map the portals of devices that a malicious descriptor
  // can harm, and offers write() since. (Nothing is written here: whether it is offered shows.)
  if (write(descriptor_, "", 0) == 0) {
    way_ = Way::kernel;
    return true;
  }
  sentence.say(
      "%s can be neither mapped nor written to (%s); it takes CAP_SYS_RAWIO, or a newer kernel",
      queue.name, strerrordesc_np(errno));
  return false;
}

Taken Portal::submit(const dsa_hw_desc& descriptor) {
  // The device takes any slot; the next one each time lets the CPU have several stores under way.
  void* const slot = page_ + next_slot_ * sizeof descriptor;
  switch (way_) {
    case Way::none: return Taken::broken;
    case Way::store: store_at_once(slot, descriptor); break;
    case Way::words: store_words(slot, descriptor); break;
    case Way::enqueue:
      if (!enqueue(slot, descriptor)) return Taken::full;
      break;
    case Way::kernel: {
      const KeepErrno keep_errno;
      const ssize_t written = write(descriptor_, &descriptor, sizeof descriptor);
      if (written < 0 && (errno == EAGAIN || errno == EINTR)) return Taken::full;
      return written == sizeof descriptor ? Taken::yes : Taken::broken;
    }
  }
  next_slot_ = (next_slot_ + 1) % slots;
  return Taken::yes;
}

const char* Portal::way_text() const {
  switch (way_) {
    case Way::store: return "by its portal (movdir64b)";
    case Way::enqueue: return "by its portal (enqcmd)";
    case Way::words: return "by its portal (words)";
    case Way::kernel: return "by write()";
    case Way::none: break;
  }
  return "not at all";
}

}  // namespace haul::dsa
