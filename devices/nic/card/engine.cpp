// The plug-in's functions where a card is driven by VFIO. One thread at a time calls submit, poll
// and stop; pin and unpin come one at a time, from any thread. In a child of fork, whose
// descriptors are the parent's card, none of them does anything.
#include "devices/nic/card/engine.hpp"

#include <sys/mman.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <new>

#include "devices/nic/card/card_lane.hpp"

namespace haul::nic {
namespace {

// Made when the engine is opened, and never destroyed.
struct CardEngine {
  CardLane lane;
  const char* owns = nullptr;  // 1 in the process that has opened it, 0 in its children
  bool dead = false;           // takes nothing more
  bool stopped = false;        // nor does the card write any more, so what it had is reported

  bool is_mine() const noexcept { return *owns != 0; }
};
CardEngine* own_card = nullptr;

std::uint64_t clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// First the card writes nothing any more, then the pieces are reported.
void die() {
  own_card->dead = true;
  own_card->stopped = own_card->lane.stop();
  if (own_card->stopped) own_card->lane.fail();
}

Submitted submit_to_card(const Piece& piece, std::uint64_t tag, Outcome& outcome) {
  if (own_card->dead || !own_card->is_mine()) return Submitted::dead;
  CardLane& lane = own_card->lane;
  if (!lane.reaches(piece)) {
    outcome = Outcome{0, Code::not_supported};
    return Submitted::finished;
  }
  if (!lane.has_room()) return Submitted::full;
  if (lane.take(piece, tag)) {
    outcome = Outcome{piece.length, Code::ok};
    return Submitted::finished;
  }
  lane.send(clock_ns());
  return Submitted::accepted;
}

std::size_t poll_card(unsigned, Finished* finished, std::size_t most) {
  CardLane& lane = own_card->lane;
  if (lane.idle() || !own_card->is_mine()) return 0;
  if (own_card->dead ? !own_card->stopped : !lane.advance(clock_ns())) die();
  return lane.finish(finished, most);
}

bool stop_card(unsigned) {
  if (!own_card->is_mine()) return true;
  if (!own_card->stopped) die();
  return own_card->stopped;
}

Code pin_for_card(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) {
  return own_card->is_mine() ? own_card->lane.pin(address, bytes, region) : Code::not_supported;
}

void unpin_for_card(std::uint64_t region) {
  if (own_card->is_mine()) own_card->lane.unpin(region);
}

// One copy, to see whether what is sent comes back. (A card may be deaf for a second after its
// start.)
enum class FirstCopy : std::uint8_t { good, bad, no_memory };
FirstCopy try_one() {
  constexpr std::size_t side = 4096;
  void* const memory =
      mmap(nullptr, 2 * side, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return FirstCopy::no_memory;
  auto* const from = static_cast<unsigned char*>(memory);
  for (std::size_t at = 0; at < side; ++at) from[at] = static_cast<unsigned char>(at * 7 + 1);
  Piece piece;
  piece.src = reinterpret_cast<std::uintptr_t>(from);
  piece.dst = piece.src + side;
  piece.length = piece.whole_bytes = side;
  FirstCopy result = FirstCopy::no_memory;
  if (pin_for_card(piece.src, 2 * side, &piece.src_region) == Code::ok) {
    piece.dst_region = piece.src_region;
    Outcome outcome;
    Finished finished{};
    if (submit_to_card(piece, 0, outcome) == Submitted::accepted) {
      while (poll_card(0, &finished, 1) == 0)
        if (own_card->dead && !own_card->stopped)
          return FirstCopy::bad;  // the memory is left to it
    }
    result = !own_card->dead && std::memcmp(from, from + side, side) == 0 ? FirstCopy::good
                                                                          : FirstCopy::bad;
    unpin_for_card(piece.src_region);
  }
  munmap(memory, 2 * side);
  return result;
}

bool own_it_alone() {
  constexpr std::size_t page = 4096;
  void* const word =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (word == MAP_FAILED || madvise(word, page, MADV_WIPEONFORK) != 0) return false;
  own_card->owns = static_cast<char*>(word);
  *static_cast<char*>(word) = 1;
  return true;
}

}  // namespace

bool open_card(const Choices& choices, DeviceTable* table, char* sentence,
               std::size_t bytes) noexcept {
  char address[sizeof choices.ports];
  std::snprintf(address, sizeof address, "%s", choices.ports);
  address[std::strcspn(address, " ")] = '\0';
  if (std::strlen(address) + 1 != std::strlen(choices.ports)) {
    std::snprintf(sentence, bytes,
                  "the word vfio in HAUL_ENGINE_NIC goes with one card, by its PCI address such as "
                  "0000:00:03.0 (`lspci -D` lists them)");
    return false;
  }
  alignas(CardEngine) static unsigned char room[sizeof(CardEngine)];
  own_card = new (room) CardEngine;
  if (!own_it_alone()) {
    std::snprintf(sentence, bytes, "there is no page that children find empty; Linux 4.14 has it");
    return false;
  }
  if (!own_card->lane.open(address, choices, sentence, bytes)) return false;
  if (const FirstCopy first = try_one(); first != FirstCopy::good) {
    if (!own_card->dead) die();
    own_card->lane.give_back();
    if (first == FirstCopy::no_memory) {
      std::snprintf(sentence, bytes,
                    "the card %s gets no memory for a first copy (8 KiB); raise ulimit -l",
                    address);
    } else {
      std::snprintf(sentence, bytes, "frames that the card %s sends do not come back; %s", address,
                    choices.plugged ? "plug the loop in, or leave the word plugged out"
                                    : "see what Linux' log says of DMAR or vfio-pci");
    }
    return false;
  }
  table->emulated = false;
  std::snprintf(table->name, sizeof table->name, "card %.16s (%s), VFIO%s", address,
                own_card->lane.model(), choices.plugged ? ", plugged" : "");
  table->most_bytes = std::size_t{1} << 20;
  table->least_moved_bytes = own_card->lane.buffer_bytes();
  table->submit = submit_to_card;
  table->poll = poll_card;
  table->stop = stop_card;
  table->pin = pin_for_card;
  table->unpin = unpin_for_card;
  return true;
}

}  // namespace haul::nic
