// Looped ports for the tests of the engine nic: veth pairs in a network namespace of the test's
// own (the command haul nic, which makes such, is tested in nic_cli.sh), or a card, as in the guest
// of devices/nic/guest/.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <string>

#include "support.hpp"

namespace e2e {

inline int ip(const std::string& words) {
  return std::system(("ip " + words + " > /dev/null 2>&1").c_str());
}

// A port that returns its output: E2E_NIC_PORT names it, and the tests are about it then. nullptr:
// none, they are about veth pairs.
inline const char* looped_card() {
  return getenv("E2E_NIC_PORT");
}

// How often a test does something: an emulated card takes a tenth of a millisecond a frame.
inline unsigned turns_here(unsigned turns) {
  return looped_card() != nullptr ? (turns + 9) / 10 : turns;
}

// One copy by libhaul to `shift` bytes behind a page, which harms nothing beside its destination.
inline void copy_one(std::size_t length, std::uint64_t seed, std::size_t shift) {
  const Buffer from(length + 64), to(length + 64);
  from.fill(seed);
  const haul_request request =
      haul_request_copy(to.data() + shift, from.data() + (seed & 63), length);
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(to.data() + shift, from.data() + (seed & 63), length), 0);
  for (std::size_t at = 0; at < shift; ++at) CHILD_EQUAL(to[at], 0);
  for (std::size_t at = shift + length; at < to.size(); ++at) CHILD_EQUAL(to[at], 0);
}

// Some pairs of ports, gone at the end; or the one that E2E_NIC_PORT names.
class Ports {
 public:
  explicit Ports(unsigned pairs = 3, unsigned mtu = 61540) {
    if (looped_card() != nullptr)
      set_up_card(mtu);
    else
      make_pairs(pairs, mtu);
  }
  ~Ports() {
    if (name_.empty()) return;
    ip("-n " + name_ + " link delete dev out0");
    ip("netns delete " + name_);
  }
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  bool made() const { return made_; }
  std::string knob(const char* words) const {
    return looped_card() != nullptr ? std::string(words) + " " + looped_card()
                                    : "netns=" + name_ + " " + words;
  }
  // By which a frame leaves, and by which it comes.
  static std::string out(std::size_t pair) { return named("out", pair); }
  static std::string in(std::size_t pair) { return named("in", pair); }
  // The calling thread is among the ports from now on.
  void enter() const {
    if (name_.empty()) return;
    const int fd = open(("/run/netns/" + name_).c_str(), O_RDONLY | O_CLOEXEC);
    CHILD_EQUAL(setns(fd, CLONE_NEWNET), 0);
    close(fd);
  }
  void down() const { CHILD_EQUAL(ip(there("link set dev " + out(0) + " down")), 0); }
  // (A card stays, and is down.)
  void remove(std::size_t pair) const {
    CHILD_EQUAL(ip(looped_card() != nullptr ? "link set dev " + out(pair) + " down"
                                            : there("link delete dev " + out(pair))),
                0);
  }

 private:
  static std::string named(const char* side, std::size_t pair) {
    return looped_card() != nullptr ? looped_card() : side + std::to_string(pair);
  }
  std::string there(const std::string& words) const {
    return name_.empty() ? words : "-n " + name_ + " " + words;
  }

  void make_pairs(unsigned pairs, unsigned mtu) {
    name_ = "haul-nic-test-" + std::to_string(getpid());
    if (ip("netns add " + name_) != 0) {
      name_.clear();
      return;
    }
    const std::string bytes = std::to_string(mtu);
    made_ = ip(there("link set dev lo up")) == 0;
    for (unsigned pair = 0; pair < pairs && made_; ++pair) {
      made_ = ip(there("link add " + out(pair) + " mtu " + bytes +
                       " numtxqueues 1 numrxqueues 1 type veth peer name " + in(pair) + " mtu " +
                       bytes + " numtxqueues 1 numrxqueues 1")) == 0 &&
              ip(there("link set dev " + out(pair) + " arp off up")) == 0 &&
              ip(there("link set dev " + in(pair) + " arp off up")) == 0;
    }
  }

  // A link takes seconds to come up.
  void set_up_card(unsigned mtu) {
    constexpr unsigned jumbo_mtu = 9000;
    const std::string card = looped_card();
    made_ = ip("link set dev " + card + " down") == 0 &&
            ip("link set dev " + card + " mtu " + std::to_string(std::min(mtu, jumbo_mtu))) == 0 &&
            ip("link set dev " + card + " arp off up") == 0;
    for (unsigned turn = 0; turn < 600 && !has_link(card); ++turn) sleep_ms(50);
    made_ = made_ && has_link(card);
  }
  static bool has_link(const std::string& card) {
    char carrier = '0';
    const int fd = open(("/sys/class/net/" + card + "/carrier").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &carrier, 1) != 1) carrier = '0';
    close(fd);
    return carrier == '1';
  }

  std::string name_;  // of the namespace; empty: the program's own
  bool made_ = false;
};

inline constexpr const char* one_card = "the looped card is one port";

// Why not; nullptr: they can be made.
inline const char* cannot() {
  if (geteuid() != 0) return "a network namespace needs root";
  if (looped_card() == nullptr && ip("-V") != 0)
    return "the command ip is missing; install iproute2";
  return nullptr;
}

}  // namespace e2e
