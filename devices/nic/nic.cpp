// libhaul-nic.so: looped network ports as engines that copy (paper 004). This file is the table of
// its functions; a lane (lane.hpp) moves the bytes. One thread at a time calls submit, poll and
// stop; pin and unpin come from any thread.
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "devices/nic/card/engine.hpp"
#include "devices/nic/lane.hpp"
#include "devices/nic/loop.hpp"
#include "devices/nic/program.hpp"
#include "engine/plugin.hpp"

namespace {

using namespace haul;
using namespace haul::nic;

// Made when the engine is opened, and never destroyed.
struct Nic {
  Loop loop;
  PortProgram program;
  Lane lanes[NIC_LANES];     // one a port; a region is named by its lane's number and one
  bool packet_lane = false;  // the first lane takes what is not registered
  std::uint32_t active = 0;  // lanes with pieces
  bool dead = false;         // takes nothing more; what it has accepted is reported
  pthread_mutex_t pinning = PTHREAD_MUTEX_INITIALIZER;
  bool taken[NIC_LANES] = {};  // by a region, under `pinning`
};
Nic* own = nullptr;
DeviceTable table;

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void die() {
  own->dead = true;
  for (unsigned index = 0; index < NIC_LANES; ++index) {
    if ((own->active >> index & 1) == 0) continue;
    // First the kernel writes nothing any more, then the pieces are reported.
    own->lanes[index].close();
    own->lanes[index].fail();
  }
  own->program.detach();
}

Submitted submit(const Piece& piece, std::uint64_t tag, Outcome& outcome) {
  if (own->dead) return Submitted::dead;
  const std::uint64_t index = piece.dst_region != 0 ? piece.dst_region - 1 : 0;
  if (index >= NIC_LANES || (piece.dst_region == 0 && !own->packet_lane) ||
      !own->lanes[index].is_open() || !own->lanes[index].reaches(piece)) {
    outcome = Outcome{0, Code::not_supported};
    return Submitted::finished;
  }
  Lane& lane = own->lanes[index];
  if (!lane.has_room()) return Submitted::full;
  if (lane.take(piece, tag)) {
    outcome = Outcome{piece.length, Code::ok};
    return Submitted::finished;
  }
  own->active |= 1u << index;
  // (A lane that dies here says so in poll(): the piece is accepted.)
  lane.send(now_ns());
  return Submitted::accepted;
}

std::size_t poll(unsigned, Finished* finished, std::size_t most) {
  std::size_t count = 0;
  if (own->active == 0) return 0;
  const std::uint64_t now = now_ns();
  for (unsigned index = 0; index < NIC_LANES && count < most; ++index) {
    if ((own->active >> index & 1) == 0) continue;
    Lane& lane = own->lanes[index];
    if (!own->dead && !lane.advance(now)) die();
    count += lane.finish(finished + count, most - count);
    if (lane.idle()) own->active &= ~(1u << index);
  }
  return count;
}

bool stop(unsigned) {
  if (!own->dead) die();
  return true;
}

// What pin() asks of the thread that goes to the ports' namespace.
struct Registration {
  unsigned lane;
  std::uintptr_t address;
  std::size_t bytes;
  int error;
};

void open_lane(void* argument) {
  auto& wanted = *static_cast<Registration*>(argument);
  wanted.error = own->lanes[wanted.lane].open(
      own->loop.port(wanted.lane), static_cast<std::uint16_t>(wanted.lane), own->loop.choices(),
      own->program, wanted.address, wanted.bytes);
}

Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) {
  Code code = Code::no_memory;
  pthread_mutex_lock(&own->pinning);
  for (unsigned index = own->packet_lane ? 1 : 0; index < own->loop.count(); ++index) {
    if (own->taken[index]) continue;
    Registration wanted{index, address, bytes, 0};
    if (!own->loop.there(open_lane, &wanted)) wanted.error = errno;
    // Another program has that port, perhaps not the next one.
    if (wanted.error == EBUSY || wanted.error == EEXIST) continue;
    own->taken[index] = wanted.error == 0;
    *region = index + 1;
    code = wanted.error == 0        ? Code::ok
           : wanted.error == EFAULT ? Code::fault
           : wanted.error == ENOBUFS || wanted.error == ENOMEM || wanted.error == EAGAIN
               ? Code::no_memory
               : Code::io;
    break;
  }
  pthread_mutex_unlock(&own->pinning);
  return code;
}

void unpin(std::uint64_t region) {
  pthread_mutex_lock(&own->pinning);
  own->lanes[region - 1].close();
  own->taken[region - 1] = false;
  pthread_mutex_unlock(&own->pinning);
}

void open_first_lane(void* error) {
  const bool opened = own->lanes[0].open(own->loop.port(0), 0, own->loop.choices());
  *static_cast<int*>(error) = opened ? 0 : errno;
}

// The port that registered memory gets first: its driver may not take the program.
unsigned first_of_regions() {
  return own->loop.count() == 1 ? 0 : 1;
}

void attach_first(void* error) {
  const unsigned index = first_of_regions();
  const bool attached = own->program.attach(index, own->loop.port(index));
  *static_cast<int*>(error) = attached ? 0 : errno;
}

// One copy, to see whether what is sent comes back. (A card that has just been told to take in all
// frames, or whose link has just come up, may need a second before it does.)
bool returns_frames() {
  static char from[256], to[256];
  for (unsigned at = 0; at < sizeof from; ++at) from[at] = static_cast<char>(at * 7 + 1);
  Piece piece;
  piece.dst = reinterpret_cast<std::uintptr_t>(to);
  piece.src = reinterpret_cast<std::uintptr_t>(from);
  piece.length = piece.whole_bytes = sizeof from;
  Outcome outcome;
  if (submit(piece, 0, outcome) != Submitted::accepted) return false;
  Finished finished{};
  // A port that returns nothing is given up in the end, and the engine with it.
  while (poll(0, &finished, 1) == 0) {
  }
  return !own->dead && std::memcmp(from, to, sizeof from) == 0;
}

bool open_ports(char* sentence, std::size_t bytes) {
  if (!own->loop.find(sentence, bytes)) return false;
  const Port& first = own->loop.port(0);
  int error = 0;
  if (!own->loop.there(open_first_lane, &error)) error = errno;
  if (error != 0) {
    std::snprintf(sentence, bytes,
                  "packet sockets on the port %s are refused (%s); run as root, or give the "
                  "program CAP_NET_RAW and CAP_NET_ADMIN",
                  first.name, std::strerror(error));
    return false;
  }
  own->packet_lane = true;
  if (!returns_frames()) {
    std::snprintf(sentence, bytes,
                  "frames that leave by the port %s do not come back; plug in the loop, or name "
                  "the ports as out>in",
                  first.name);
    own->lanes[0].close();
    return false;
  }
  if (!own->loop.choices().xdp) return true;
  if (!own->program.load()) {
    std::snprintf(sentence, bytes,
                  "the XDP program of the engine nic is not loaded (%s); it needs CAP_BPF and "
                  "CAP_NET_ADMIN; the word packet in HAUL_ENGINE_NIC does without",
                  std::strerror(errno));
    return false;
  }
  int xdp_error = 0;
  if (!own->loop.there(attach_first, &xdp_error)) xdp_error = errno;
  if (xdp_error != 0 && xdp_error != EBUSY && xdp_error != EEXIST) {
    std::snprintf(
        sentence, bytes,
        "the port %s does not run the XDP program (%s); the word packet in HAUL_ENGINE_NIC "
        "does without",
        own->loop.port(first_of_regions()).name, std::strerror(xdp_error));
    return false;
  }
  // A single port is for registered memory alone. (It hears all frames already: some cards are deaf
  // for a moment when that changes.)
  if (own->loop.count() == 1) {
    own->lanes[0].close();
    own->packet_lane = false;
  }
  return true;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const haul::DeviceTable* haul_open_device(
    const char* arguments, char* sentence, std::size_t sentence_bytes) {
  alignas(Nic) static unsigned char room[sizeof(Nic)];
  own = new (room) Nic;
  if (!own->loop.read(arguments, sentence, sentence_bytes)) return nullptr;
  if (own->loop.choices().vfio) {
    const bool opened = open_card(own->loop.choices(), &table, sentence, sentence_bytes);
    return opened ? &table : nullptr;
  }
  if (!open_ports(sentence, sentence_bytes)) return nullptr;
  const Port& first = own->loop.port(0);
  table.emulated = !first.hardware;
  std::snprintf(table.name, sizeof table.name, "port %s, %s", first.name,
                own->loop.choices().xdp ? "AF_XDP" : "AF_PACKET");
  table.most_bytes = std::size_t{1} << 20;
  table.submit = submit;
  table.poll = poll;
  table.stop = stop;
  if (own->loop.choices().xdp) {
    table.pin = pin;
    table.unpin = unpin;
    // A region takes a port and the program on it, and the source is read by the socket.
    table.pins_sources = false;
    table.least_pin_bytes = SIZE_MAX;
  }
  return &table;
}
