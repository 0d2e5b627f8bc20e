#include "devices/nic/loop.hpp"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "devices/nic/packet.hpp"

namespace haul::nic {
namespace {

struct Errand {
  int netns;
  void (*body)(void*);
  void* argument;
  int error;
};

void* run_errand(void* argument) {
  auto& errand = *static_cast<Errand*>(argument);
  if (errand.netns >= 0 && setns(errand.netns, CLONE_NEWNET) != 0)
    errand.error = errno;
  else
    errand.body(errand.argument);
  return nullptr;
}

bool asks(int fd, unsigned long what, ifreq& request, const char* name) {
  request = {};
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  return ioctl(fd, what, &request) == 0;
}

}  // namespace

bool has_link(unsigned interface) noexcept {
  char name[IFNAMSIZ];
  PortSocket socket;
  ifreq request;
  ethtool_value state{};
  if (!socket.take(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) ||
      if_indextoname(interface, name) == nullptr)
    return false;
  request = {};
  std::snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  state.cmd = ETHTOOL_GLINK;
  request.ifr_data = reinterpret_cast<char*>(&state);
  // (What cannot say has one.)
  return ioctl(socket.fd(), SIOCETHTOOL, &request) != 0 || state.data != 0;
}

bool Loop::read(const char* arguments, char* sentence, std::size_t bytes) noexcept {
  char words[4096];
  std::snprintf(words, sizeof words, "%s", arguments);
  char* rest = nullptr;
  const char* way = nullptr;  // packet, xdp or vfio
  std::size_t used = 0;
  for (char* word = strtok_r(words, " ", &rest); word != nullptr;
       word = strtok_r(nullptr, " ", &rest)) {
    char* end = nullptr;
    if (std::strcmp(word, "xdp") == 0 || std::strcmp(word, "packet") == 0 ||
        std::strcmp(word, "vfio") == 0) {
      if (way != nullptr && std::strcmp(way, word) != 0) {
        std::snprintf(
            sentence, bytes,
            "HAUL_ENGINE_NIC has %s and %s, which are two ways of receiving; leave one out", way,
            word);
        return false;
      }
      way = word;
      choices_.xdp = word[0] == 'x';
      choices_.vfio = word[0] == 'v';
    } else if (std::strcmp(word, "plugged") == 0) {
      choices_.plugged = true;
    } else if (std::strncmp(word, "buffer=", 7) == 0) {
      choices_.buffer = std::strtoul(word + 7, &end, 10);
      // (What is no power of two from 256 to 2048 no card has.)
      if (choices_.buffer < 256 || choices_.buffer > 2048 ||
          (choices_.buffer & (choices_.buffer - 1)) != 0)
        end = word;
    } else if (std::strncmp(word, "trial=", 6) == 0) {
      choices_.trial = static_cast<unsigned>(std::strtoul(word + 6, &end, 10));
    } else if (std::strncmp(word, "fragment=", 9) == 0) {
      choices_.fragment = std::strtoul(word + 9, &end, 10);
    } else if (std::strncmp(word, "netns=", 6) == 0) {
      std::snprintf(choices_.netns, sizeof choices_.netns, "%s", word + 6);
    } else {
      used += static_cast<std::size_t>(
          std::snprintf(choices_.ports + used, sizeof choices_.ports - used, "%s ", word));
    }
    const bool number = end == nullptr || *end == '\0';
    if (!number || choices_.trial > 50 || used >= sizeof choices_.ports ||
        std::strchr(choices_.netns, '/') != nullptr) {
      std::snprintf(
          sentence, bytes,
          "HAUL_ENGINE_NIC has the word '%.40s', which it cannot have; `man haul` has its "
          "words (buffer= takes 256, 512, 1024 or 2048)",
          word);
      return false;
    }
  }
  if (choices_.vfio ? choices_.netns[0] != '\0' : choices_.plugged || choices_.buffer != 0) {
    std::snprintf(sentence, bytes, "HAUL_ENGINE_NIC has %s; leave that out, or %s",
                  choices_.vfio ? "netns=, and a card that the program drives is in no namespace"
                                : "plugged or buffer=, which are for cards that vfio names",
                  choices_.vfio ? "take the word packet" : "name a card behind vfio");
    return false;
  }
  return true;
}

bool Loop::there(void (*body)(void*), void* argument) const noexcept {
  Errand errand{netns_, body, argument, 0};
  // The program's signals are not for this thread, nor is the program's own signal mask changed.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, run_errand, &errand);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) pthread_join(thread, nullptr);
  errno = error != 0 ? error : errand.error;
  return error == 0 && errand.error == 0;
}

bool Loop::add(const char* out, const char* in) noexcept {
  PortSocket socket;
  ifreq out_request, in_request;
  Port& port = ports_[count_];
  port = {};
  if (!socket.take(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))) return false;
  port.out = if_nametoindex(out);
  port.in = if_nametoindex(in);
  if (port.out == 0 || port.in == 0) return false;
  std::snprintf(port.name, sizeof port.name, "%s>%s", out, in);
  if (port.out == port.in) std::snprintf(port.name, sizeof port.name, "%s", out);
  if (!asks(socket.fd(), SIOCGIFMTU, out_request, out) ||
      !asks(socket.fd(), SIOCGIFMTU, in_request, in))
    return false;
  port.mtu = static_cast<std::size_t>(std::min(out_request.ifr_mtu, in_request.ifr_mtu));
  constexpr short wanted = IFF_UP | IFF_RUNNING;
  if (!asks(socket.fd(), SIOCGIFFLAGS, out_request, out) ||
      !asks(socket.fd(), SIOCGIFFLAGS, in_request, in) ||
      (out_request.ifr_flags & in_request.ifr_flags & wanted) != wanted) {
    std::snprintf(
        wrong_, sizeof wrong_,
        "the port %s is not up, or has no link; `ip link set %s up`, and plug the loop in",
        port.name, out);
    return false;
  }
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  std::snprintf(in_request.ifr_name, sizeof in_request.ifr_name, "%s", in);
  in_request.ifr_data = reinterpret_cast<char*>(&driver);
  const bool is_veth =
      ioctl(socket.fd(), SIOCETHTOOL, &in_request) == 0 && std::strcmp(driver.driver, "veth") == 0;
  port.hardware = !is_veth && (out_request.ifr_flags & IFF_LOOPBACK) == 0;
  ++count_;
  return true;
}

void Loop::find_there() noexcept {
  if (choices_.ports[0] == '\0') {
    // As `haul nic setup` names them.
    for (unsigned index = 0; index < NIC_LANES; ++index) {
      char out[IFNAMSIZ], in[IFNAMSIZ];
      std::snprintf(out, sizeof out, "out%u", index);
      std::snprintf(in, sizeof in, "in%u", index);
      if (if_nametoindex(out) == 0 || !add(out, in)) break;
    }
    return;
  }
  char words[sizeof choices_.ports];
  std::memcpy(words, choices_.ports, sizeof words);
  char* rest = nullptr;
  for (char* word = strtok_r(words, " ", &rest); word != nullptr && count_ < NIC_LANES;
       word = strtok_r(nullptr, " ", &rest)) {
    char* const arrow = std::strchr(word, '>');
    if (arrow != nullptr) *arrow = '\0';
    if (!add(word, arrow != nullptr ? arrow + 1 : word)) {
      if (wrong_[0] == '\0')
        std::snprintf(wrong_, sizeof wrong_,
                      "there is no port %.40s; correct HAUL_ENGINE_NIC (`ip link` lists them)",
                      word);
      return;
    }
  }
}

bool Loop::find(char* sentence, std::size_t bytes) noexcept {
  if (choices_.ports[0] == '\0' && choices_.netns[0] == '\0')
    std::strcpy(choices_.netns, "haul-nic");
  if (choices_.netns[0] != '\0') {
    char path[96];
    std::snprintf(path, sizeof path, "/run/netns/%s", choices_.netns);
    PortSocket file;
    if (!file.take(open(path, O_RDONLY | O_CLOEXEC))) {
      std::snprintf(sentence, bytes,
                    "no looped port is there; `haul nic setup` makes veth pairs to try it (as "
                    "root), or name ports in HAUL_ENGINE_NIC");
      return false;
    }
    netns_ = fcntl(file.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  }
  const auto body = [](void* self) { static_cast<Loop*>(self)->find_there(); };
  if (!there(body, this)) {
    std::snprintf(sentence, bytes,
                  "the network namespace %s may not be entered (%s); run as root, or give the "
                  "program CAP_SYS_ADMIN and CAP_NET_RAW",
                  choices_.netns, std::strerror(errno));
    return false;
  }
  if (count_ != 0 && wrong_[0] == '\0') return true;
  std::snprintf(sentence, bytes, "%s",
                wrong_[0] != '\0' ? wrong_
                                  : "the network namespace has no veth pairs of haul's; `haul nic "
                                    "teardown` and `haul nic setup` make it anew");
  return false;
}

}  // namespace haul::nic
