// haul atomic: serves a window, operates on other hosts' windows, and tells what was served.
#include <fmt/format.h>
#include <haul/atomic.hpp>

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <span>

#include "cli/kit/document.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

struct AtomicChoices {
  std::string action, window, value, compare = "0", offset = "0", responder = "block",
                                     node = "none";
  std::string bytes = "4K", host, json;
  unsigned port = 0, width = 8, sessions = 0;
  int cpu = -1;
};

struct WindowOperation {
  const char* name;
  haul_atomic_code code;
  bool needs_value;
};
constexpr WindowOperation operations[] = {
    {"read", HAUL_ATOMIC_READ, false}, {"write", HAUL_ATOMIC_WRITE, true},
    {"add", HAUL_ATOMIC_ADD, true},    {"swap", HAUL_ATOMIC_SWAP, true},
    {"cas", HAUL_ATOMIC_CAS, true},    {"and", HAUL_ATOMIC_AND, true},
    {"or", HAUL_ATOMIC_OR, true},      {"xor", HAUL_ATOMIC_XOR, true},
};

// A number as C writes it: 10, 0x1f, -1 (two's complement).
std::uint64_t number_of(const std::string& text, const char* what) {
  try {
    std::size_t used = 0;
    const bool negative = !text.empty() && text[0] == '-';
    const std::uint64_t number = negative ? static_cast<std::uint64_t>(std::stoll(text, &used, 0))
                                          : std::stoull(text, &used, 0);
    if (used == text.size()) return number;
  } catch (const std::exception&) {
  }
  throw UsageError(fmt::format("{} '{}' is no number of 64 bits", what, text));
}

// The same for a word of so many bytes.
std::uint64_t number_of(const std::string& text, const char* what, unsigned width) {
  const std::uint64_t number = number_of(text, what);
  const bool fits = number <= 0xffffffff || number >= ~std::uint64_t{0x7fffffff};
  if (width == 8 || fits) return width == 8 ? number : number & 0xffffffff;
  throw UsageError(fmt::format("{} '{}' does not fit in a word of {} bytes", what, text, width));
}

using Counters = std::array<std::uint64_t, 64>;

void print_counters(std::FILE* to, const Counters& values, std::size_t count) {
  TextTable table({{"counter", Align::left}, {"count", Align::right}});
  for (std::size_t i = 0; i < count; ++i) {
    table.add({haul_atomic_node_counter_name(i), fmt::format("{}", values[i])});
  }
  for (const std::string& line : table.lines()) fmt::print(to, "{}\n", line);
}

void serve(const AtomicChoices& choices) {
  haul_atomic_node_options options{};
  options.port = static_cast<std::uint16_t>(choices.port);
  options.sessions = choices.sessions;
  options.cpu_plus_1 = choices.cpu + 1;
  options.host = choices.host.empty() ? nullptr : choices.host.c_str();
  // Signals are blocked before the node starts threads, so that only sigwait() below sees them.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const atomic::node node(choices.responder, options);
  const atomic::window window(node, to_bytes(choices.bytes));
  fmt::print(stderr, "haul: {}; ends with Ctrl-C\n", node.description());
  fmt::print("{}\n", atomic::to_string(window.name()));
  std::fflush(stdout);
  int which = 0;
  sigwait(&ends, &which);
  Counters values;
  const int count = check(haul_atomic_node_counters(node.raw(), values.data(), values.size()));
  print_counters(stderr, values,
                 static_cast<std::size_t>(count));  // standard output has the name alone
}

haul_atomic_window_name name_of(const AtomicChoices& choices) {
  haul_atomic_window_name name{};
  if (choices.window.empty()) {
    throw UsageError(
        fmt::format("`haul atomic {}` needs the name of a window, as `haul atomic "
                    "serve` prints it",
                    choices.action));
  }
  if (haul_atomic_window_parse(choices.window.c_str(), &name) != 0) {
    throw UsageError(haul_last_error());
  }
  return name;
}

void operate(const AtomicChoices& choices, const WindowOperation& operation) {
  if (operation.needs_value && choices.value.empty()) {
    throw UsageError(fmt::format("`haul atomic {}` needs a value", choices.action));
  }
  const haul_atomic_window_name name = name_of(choices);
  haul_atomic_operation one{};
  one.code = static_cast<std::uint8_t>(operation.code);
  one.width = static_cast<std::uint8_t>(choices.width);
  one.address = name.address + number_of(choices.offset, "--offset");
  if (operation.needs_value) one.operand = number_of(choices.value, "the value", choices.width);
  one.compare = number_of(choices.compare, "--compare", choices.width);
  const atomic::node node(choices.node);
  const atomic::remote remote(node, name);
  remote.run({&one, 1});
  fmt::print("{}\n", one.old);
}

void attach(const AtomicChoices& choices) {
  const haul_atomic_window_name name = name_of(choices);
  const atomic::window window(name);
  const std::span<std::byte> memory = window.memory();
  const std::uint64_t offset = number_of(choices.offset, "--offset");
  const unsigned width = choices.width;
  if (offset % width != 0 || offset >= memory.size() || memory.size() - offset < width) {
    throw UsageError(fmt::format("--offset {} is not the offset of an aligned word within {} bytes",
                                 offset, memory.size()));
  }
  const std::byte* word = memory.data() + offset;
  fmt::print("{}\n",
             width == 8
                 ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(word), __ATOMIC_SEQ_CST)
                 : __atomic_load_n(reinterpret_cast<const std::uint32_t*>(word), __ATOMIC_SEQ_CST));
}

void show_stats(const AtomicChoices& choices) {
  const haul_atomic_window_name name = name_of(choices);
  check_writable(choices.json);
  Counters values;
  const auto count = static_cast<std::size_t>(
      check(haul_atomic_window_counters(&name, values.data(), values.size())));
  if (choices.json != "-") print_counters(stdout, values, count);
  if (choices.json.empty()) return;
  nlohmann::ordered_json document;
  for (std::size_t i = 0; i < count; ++i) document[haul_atomic_node_counter_name(i)] = values[i];
  write_document(choices.json, document);
}

// An option that the action does not take is an error, not something to ignore silently.
void refuse_others(const CLI::App& app, const AtomicChoices& choices) {
  std::string taken = " action window --offset --width --node ";
  if (choices.action == "serve")
    taken = " action --responder --bytes --port --host --sessions --cpu ";
  if (choices.action == "attach") taken = " action window --offset --width ";
  if (choices.action == "stats") taken = " action window --json ";
  for (const WindowOperation& operation : operations) {
    if (choices.action == operation.name && operation.needs_value) taken += "value ";
  }
  if (choices.action == "cas") taken += "--compare ";
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || taken.find(fmt::format(" {} ", name)) != std::string::npos)
      continue;
    throw UsageError(fmt::format("`haul atomic {}` takes no {}", choices.action, name));
  }
}

void run(const AtomicChoices& choices) {
  if (choices.action == "serve") return serve(choices);
  if (choices.action == "attach") return attach(choices);
  if (choices.action == "stats") return show_stats(choices);
  for (const WindowOperation& operation : operations) {
    if (choices.action == operation.name) return operate(choices, operation);
  }
}

}  // namespace

void add_atomic(Tree& tree) {
  CLI::App& app = tree.command(
      "atomic", "Serve words to other hosts, and operate on theirs: add, swap, compare and swap",
      "haul atomic serve --responder xdp:eth0 makes a window of memory, prints its name, and "
      "serves "
      "it until Ctrl-C; with xdp no process takes part in that. Whoever knows the name operates on "
      "it: haul atomic add NAME 1 prints the value before.\n"
      "attach reads a word of a window of this host through shared memory, stats tells what its "
      "node has served, replayed and dropped, by reason.\n"
      "Responders: xdp:IFACE (root), poll, spin and block (a thread that polls, polls for a while, "
      "or sleeps), each with an address behind a colon if not all are to be served. The packet: "
      "docs/design/atomic-wire.md; the library: <haul/atomic.h>.");
  auto choices = std::make_shared<AtomicChoices>();
  std::vector<std::string> actions{"serve", "attach", "stats"};
  for (const WindowOperation& operation : operations) actions.emplace_back(operation.name);
  tree.choice(app, "action", choices->action, actions, "What to do")->required();
  app.add_option("window", choices->window, "The window's name, as serve prints it")->type_name("");
  app.add_option("value", choices->value, "The value to add, write, swap in or combine")
      ->type_name("");
  app.add_option("--compare", choices->compare, "cas: swaps if the word equals this (default 0)")
      ->type_name("NUMBER");
  app.add_option("--offset", choices->offset,
                 "The word's offset in its window, in bytes (default 0)")
      ->type_name("BYTES");
  auto* width =
      app.add_option("--width", choices->width, "The word's width: 4 or 8 bytes (default 8)")
          ->type_name("BYTES")
          ->check(
              [](const std::string& text) {
                return text == "4" || text == "8" ? "" : fmt::format("'{}' is not 4 or 8", text);
              },
              "");
  tree.offer(width, {"4", "8"});
  app.add_option("--node", choices->node,
                 "Operate from this node: none (default), or none:IFACE to hear replies by XDP")
      ->type_name("NODE");
  tree.offer(app.add_option("--responder", choices->responder,
                            "serve: xdp:IFACE, poll, spin, block (default) or fabric:PROVIDER")
                 ->type_name("RESPONDER"),
             {"poll", "spin", "block"});
  tree.bytes(app, "--bytes", choices->bytes, "serve: size of the window (default 4K)");
  app.add_option("--port", choices->port, "serve: UDP port (default: any that is free)")
      ->type_name("PORT")
      ->check(check_between(0, 65535), "");
  app.add_option("--host", choices->host, "serve: the address that goes into the window's name")
      ->type_name("ADDRESS");
  app.add_option("--sessions", choices->sessions, "serve: clients at once (default 256)")
      ->type_name("COUNT")
      ->check(check_between(1, 65536), "");
  app.add_option("--cpu", choices->cpu, "serve: the CPU of the responder's thread (default: any)")
      ->type_name("CPU")
      ->check(check_between(0, 65535), "");
  app.add_option("--json", choices->json, "stats: write one JSON document (- for standard output)")
      ->type_name("FILE");
  app.callback([choices, &app] {
    refuse_others(app, *choices);
    run(*choices);
  });
}

}  // namespace haul::cli
