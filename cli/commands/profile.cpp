// haul profile: where a program's large copies are made, and what haul would make of them.
#include <memory>

#include "cli/kit/document.hpp"
#include "cli/kit/tree.hpp"
#include "cli/transparent/profile_report.hpp"

namespace haul::cli {
namespace {

struct ProfileChoices {
  std::string from = "32K", json;
  unsigned sample = 16;
  std::vector<std::string> command;
};

void profile(const ProfileChoices& choices) {
  if (choices.command.empty())
    throw UsageError("name a command to profile, as in `haul profile -- python3 program.py`");
  if (to_bytes(choices.from) < preload::least_bytes)
    throw UsageError("--from is 32K or more: shorter copies are not worth a look");
  check_writable(choices.json);
  const TransparentOutcome outcome = run_transparently(
      choices.command, {{"HAUL_TRANSPARENT_PLAN", "profile"},
                        {"HAUL_TRANSPARENT_FROM_BYTES", choices.from},
                        {"HAUL_TRANSPARENT_SAMPLE", std::to_string(choices.sample)}});
  Gains gains;
  // Standard output is the program's.
  print_profile(stderr, outcome, gains);
  if (!choices.json.empty()) {
    nlohmann::ordered_json document = {{"command", choices.command}};
    document.update(profile_document(outcome, gains));
    write_document(choices.json, document);
  }
  throw ExitStatus{outcome.status};
}

}  // namespace

void add_profile(Tree& tree) {
  CLI::App& app = tree.command(
      "profile", "Where a program copies much, and whether haul would help",
      "Runs a command that loads libhaul-mem.so, which changes nothing but looks at each call of "
      "memcpy(), memmove(), memset() and their relatives from 32 KiB on, and at the end prints on "
      "standard error, for each place that calls: calls, bytes, the range of their sizes, time and "
      "its share of the program's CPU time, speed, how many of the bytes went to new memory or to "
      "huge pages, and how long after a call its destination is first used and its source first "
      "written (medians; of calls that were sampled, by watching one page of either). Then it "
      "makes "
      "copies like these, and says what `haul run --transparent` would spare, or that it would not "
      "help.\n"
      "Children count, too. Copies that the compiler or libc makes by itself are not seen, nor "
      "programs that are linked statically or change users.\n"
      "The exit status is the program's.");
  auto choices = std::make_shared<ProfileChoices>();
  tree.bytes(app, "--from", choices->from, "Look at calls from this size on (32K or more)");
  app.add_option("--sample", choices->sample,
                 "Watch the first four calls of a kind and one in N for their distances; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--json", choices->json, "Write it as one JSON document, too")->type_name("FILE");
  tree.program(app, choices->command, "The program and its arguments");
  app.callback([choices] { profile(*choices); });
}

}  // namespace haul::cli
