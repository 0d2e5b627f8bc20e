// The tree of commands.
#include "cli/kit/tree.hpp"

#include <fmt/format.h>
#include <haul/haul.h>

#include <algorithm>
#include <string_view>

#include "base/knobs.hpp"
#include "cli/kit/environment.hpp"

namespace haul::cli {

Tree::Tree() : root_("haul moves bulk memory without stalling the program that asked.", "haul") {
  root_.require_subcommand(0, 1);
  root_.set_version_flag(
      "--version", [] { return fmt::format("haul {}", haul_version()); }, "Print the version");
  root_.set_help_flag("-h,--help", "Print this help");
  root_.footer("\n" + environment_help());
}

CLI::App& Tree::command(const std::string& name, const std::string& help, const std::string& text) {
  CLI::App* app = root_.add_subcommand(name, help);
  app->set_help_flag("-h,--help", "Print this help");
  app->footer("\n" + environment_help());
  texts_[app] = text;
  return *app;
}

CLI::Option* Tree::choice(CLI::App& app, const std::string& name, std::string& value,
                          const std::vector<std::string>& values, const std::string& help) {
  CLI::Option* option = app.add_option(name, value, help);
  option->type_name(fmt::format("{}", fmt::join(values, "|")));
  option->check(check_one_of(values), "");
  values_[option] = values;
  return option;
}

CLI::Option* Tree::choices(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                           const std::vector<std::string>& known, const std::string& help) {
  CLI::Option* option =
      app.add_option(name, values, fmt::format("{}, of {}", help, fmt::join(known, ", ")));
  option->type_name("NAME,...")->delimiter(',')->check(check_one_of(known), "");
  values_[option] = known;
  return option;
}

void Tree::offer(const CLI::Option* option, const std::vector<std::string>& values) {
  values_[option] = values;
}

CLI::Option* Tree::bytes(CLI::App& app, const std::string& name, std::string& value,
                         const std::string& help) {
  return app.add_option(name, value, help)->type_name("BYTES")->check(check_bytes, "");
}

void Tree::program(CLI::App& app, std::vector<std::string>& words, const std::string& help,
                   bool first) {
  app.add_option("command", words, help)
      ->type_name("")
      ->expected(-1)
      ->check(
          [&words](const std::string& text) {
            if (words.empty()) return std::string();
            return fmt::format("'{}' stands before --; put all of the command behind it", text);
          },
          "");
  if (first) app.positionals_at_end();
  programs_[app.get_name()] = &words;
}

int Tree::take_program(int argc, char** argv) {
  const auto found = argc > 1 ? programs_.find(argv[1]) : programs_.end();
  if (found == programs_.end()) return argc;
  int end = 2;
  while (end < argc && std::string_view(argv[end]) != "--") ++end;
  if (end < argc) found->second->assign(argv + end + 1, argv + argc);
  return end;
}

const std::vector<std::string>& Tree::values(const CLI::Option* option) const {
  static const std::vector<std::string> none;
  auto found = values_.find(option);
  return found == values_.end() ? none : found->second;
}

const std::string& Tree::text(const CLI::App* command) const {
  static const std::string none;
  auto found = texts_.find(command);
  return found == texts_.end() ? none : found->second;
}

bool Tree::takes_program(const CLI::App& command) const {
  return programs_.count(command.get_name()) != 0;
}

std::string check_bytes(const std::string& text) {
  Expected<std::uint64_t> parsed = parse_bytes(text.c_str());
  if (!parsed) return parsed.error().sentence;
  return *parsed == 0 ? "0 bytes are nothing to measure; give at least 1" : "";
}

std::function<std::string(const std::string&)> check_one_of(
    const std::vector<std::string>& values) {
  return [values](const std::string& text) {
    if (std::find(values.begin(), values.end(), text) != values.end()) return std::string();
    return fmt::format("'{}' is not one of {}", text, fmt::join(values, "|"));
  };
}

std::function<std::string(const std::string&)> check_between(double low, double high) {
  return [low, high](const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && number >= low && number <= high) return std::string();
    return fmt::format("'{}' is not a number from {:.15g} to {:.15g}", text, low, high);
  };
}

std::size_t to_bytes(const std::string& text) {
  Expected<std::uint64_t> parsed = parse_bytes(text.c_str());
  return parsed ? *parsed : 0;
}

std::vector<const CLI::App*> commands_of(const Tree& tree) {
  return tree.root().get_subcommands([](const CLI::App* app) { return !app->get_group().empty(); });
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) {
    return !option->get_positional() || option->nonpositional();
  });
}

std::string value_name(const CLI::Option& option) {
  return option.get_type_size() == 0 ? "" : option.get_type_name();
}

}  // namespace haul::cli
