// haul nic: makes, removes and shows the looped network ports of the engine nic: pairs of virtual
// ports (veth) in a network namespace of their own, by iproute2's command ip.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"

namespace haul::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct LoopChoices {
  std::string action, netns = "haul-nic";
  unsigned pairs = 16;
};

// A frame for 16 pages' worth of bytes: what AF_XDP on veth takes at once.
constexpr unsigned mtu = 61540;

fs::path netns_file(const LoopChoices& choices) {
  return fs::path("/run/netns") / choices.netns;
}

bool is_there(const LoopChoices& choices) {
  std::error_code ignored;
  return fs::exists(netns_file(choices), ignored);
}

// Runs ip to its end; its exit status. `say`: it may complain.
int run_ip(const Words& words, bool say = true) {
  Words command{"ip"};
  command.insert(command.end(), words.begin(), words.end());
  tools::Image image(command, {});
  const pid_t child =
      image.spawn(tools::Image::nowhere, say ? tools::Image::inherited : tools::Image::nowhere);
  if (child < 0) throw tools::CommandFailure("the command ip cannot be started; install iproute2");
  return tools::shell_status(tools::reap(child));
}

void must(const Words& words) {
  if (run_ip(words) != 0) {
    throw tools::CommandFailure(
        fmt::format("`ip {}` failed; this kernel may lack veth or network namespaces, or refuse "
                    "them to this user",
                    fmt::join(words, " ")));
  }
}

void needs_root(const LoopChoices& choices) {
  if (geteuid() == 0) return;
  throw tools::CommandFailure(fmt::format(
      "haul nic {} changes network namespaces, which takes root's rights; run it as root",
      choices.action));
}

void add_pair(const LoopChoices& choices, unsigned index) {
  const std::string out = fmt::format("out{}", index), in = fmt::format("in{}", index);
  const std::string bytes = std::to_string(mtu);
  // One queue, so that the frames of a lane stay in order.
  must({"-n",  choices.netns, "link",        "add",  out,           "mtu",  bytes,  "numtxqueues",
        "1",   "numrxqueues", "1",           "type", "veth",        "peer", "name", in,
        "mtu", bytes,         "numtxqueues", "1",    "numrxqueues", "1"});
  for (const std::string& port : {out, in}) {
    // No addresses, so no frames of the kernel's own. (Without IPv6 there are none.)
    run_ip({"-n", choices.netns, "link", "set", "dev", port, "addrgenmode", "none"}, false);
    must({"-n", choices.netns, "link", "set", "dev", port, "arp", "off", "up"});
  }
}

void set_up(const LoopChoices& choices) {
  needs_root(choices);
  if (is_there(choices)) {
    throw tools::CommandFailure(
        fmt::format("the network namespace {} is there already; `haul nic teardown` removes it",
                    choices.netns));
  }
  must({"netns", "add", choices.netns});
  try {
    for (unsigned index = 0; index < choices.pairs; ++index) add_pair(choices, index);
  } catch (const tools::CommandFailure&) {
    run_ip({"netns", "delete", choices.netns}, false);
    throw;
  }
  fmt::print("{} pairs of looped ports are in the network namespace {}\n", choices.pairs,
             choices.netns);
}

// The ports go first: programs that use them hold the namespace, and find their ports gone.
void tear_down(const LoopChoices& choices) {
  if (!is_there(choices)) {
    fmt::print("there is no network namespace {}; nothing to remove\n", choices.netns);
    return;
  }
  needs_root(choices);
  for (unsigned index = 0;
       run_ip({"-n", choices.netns, "link", "delete", "dev", fmt::format("out{}", index)}, false) ==
       0;
       ++index) {
  }
  must({"netns", "delete", choices.netns});
  fmt::print("removed the network namespace {}\n", choices.netns);
}

void show_status(const LoopChoices& choices) {
  if (!is_there(choices)) {
    throw tools::CommandFailure(
        fmt::format("no looped ports: there is no network namespace {}; `haul nic setup` makes it "
                    "(as root)",
                    choices.netns));
  }
  if (run_ip({"netns", "exec", choices.netns, "true"}, false) != 0) {
    throw tools::CommandFailure(
        fmt::format("the network namespace {} is there, but this user may not enter it; run the "
                    "program as root, or give it CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and "
                    "CAP_BPF",
                    choices.netns));
  }
  unsigned pairs = 0;
  while (run_ip({"-n", choices.netns, "link", "show", "dev", fmt::format("out{}", pairs), "up"},
                false) == 0)
    ++pairs;
  fmt::print(
      "{} pairs of looped ports (veth, no hardware) are in the network namespace {}, and "
      "this user may use them\n"
      "HAUL_PLAN_ENGINE=nic asks for them{}\n",
      pairs, choices.netns,
      choices.netns == "haul-nic" ? ""
                                  : fmt::format(", with HAUL_ENGINE_NIC=netns={}", choices.netns));
}

}  // namespace

void add_nic(Tree& tree) {
  CLI::App& app = tree.command(
      "nic", "Make looped network ports, by which the engine nic copies",
      "A network port whose output returns to its own input copies memory by its own DMA (paper "
      "004). setup makes virtual ports that are looped, to try it without such a port: pairs of "
      "veth in a network namespace of their own; that is plumbing, and no faster than a CPU. "
      "teardown removes them, also from under programs that copy by them: those go on by CPU. "
      "status tells what is there and whether this user may use it. setup and teardown need root "
      "and iproute2.\n"
      "A real port with a loop plug needs no setup: HAUL_ENGINE_NIC=eth1 names it.");
  auto choices = std::make_shared<LoopChoices>();
  tree.choice(app, "action", choices->action, {"setup", "teardown", "status"}, "What to do")
      ->required();
  app.add_option("--pairs", choices->pairs,
                 "setup: pairs of ports, 1 to 32 (default 16); with AF_XDP, each serves one region "
                 "of memory at a time")
      ->type_name("COUNT")
      ->check(check_between(1, 32), "");
  app.add_option("--netns", choices->netns, "The network namespace's name (default haul-nic)")
      ->type_name("NAME")
      ->check(
          [](const std::string& name) {
            const bool fits = !name.empty() && name.size() < 64 && name[0] != '-' &&
                              name[0] != '.' && name.find_first_of("/ ") == std::string::npos;
            return fits ? "" : fmt::format("'{}' is no namespace's name", name);
          },
          "");
  app.callback([choices] {
    if (choices->action == "setup") {
      set_up(*choices);
    } else if (choices->action == "teardown") {
      tear_down(*choices);
    } else {
      show_status(*choices);
    }
  });
}

}  // namespace haul::cli
