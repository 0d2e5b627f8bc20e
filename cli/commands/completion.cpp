// haul completion: scripts for bash, zsh and fish, generated from the tree of commands.
#include <fmt/format.h>

#include <memory>

#include "cli/kit/tree.hpp"

namespace haul::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> command_names(const Tree& tree) {
  std::vector<std::string> names;
  for (const CLI::App* app : commands_of(tree)) names.push_back(app->get_name());
  return names;
}

// "--size", or "-h" where there is no long name.
std::string flag_of(const CLI::Option& option) {
  if (!option.get_lnames().empty()) return "--" + option.get_lnames().front();
  return "-" + option.get_snames().front();
}

bool takes_file(const CLI::Option& option) {
  const std::string name = value_name(option);
  return name == "FILE" || name == "DIR" || name == "PATH" || name == "PID|FILE";
}

// The first positional argument with a closed set of values.
const std::vector<std::string>* positional_values(const Tree& tree, const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && !tree.values(option).empty()) return &tree.values(option);
  }
  return nullptr;
}

// Whether it takes several of its values, with commas between.
bool takes_list(const CLI::Option& option) {
  return option.get_delimiter() == ',';
}

// Escapes text for a single-quoted word of a shell.
std::string quoted(const std::string& text, const std::string& quote_as) {
  std::string safe;
  for (char c : text) safe += c == '\'' ? quote_as : std::string(1, c);
  return safe;
}

std::string bash_script(const Tree& tree) {
  std::string words_cases, value_cases, programs;
  for (const CLI::App* app : commands_of(tree)) {
    std::vector<std::string> words;
    for (const CLI::Option* option : named_options(*app)) {
      words.push_back(flag_of(*option));
      const std::string at = fmt::format("{}:{}", app->get_name(), flag_of(*option));
      if (takes_file(*option)) {
        value_cases += fmt::format("    {}) _haul_files; return ;;\n", at);
      } else if (!tree.values(option).empty()) {
        value_cases += fmt::format("    {}) {} '{}'; return ;;\n", at,
                                   takes_list(*option) ? "_haul_list" : "_haul_words",
                                   joined(tree.values(option)));
      } else if (!value_name(*option).empty()) {
        value_cases += fmt::format("    {}) return ;;\n", at);
      }
    }
    if (const auto* values = positional_values(tree, *app)) {
      words.insert(words.end(), values->begin(), values->end());
    }
    if (tree.takes_program(*app)) programs += (programs.empty() ? "" : "|") + app->get_name();
    words_cases += fmt::format("    {}) words='{}' ;;\n", app->get_name(), joined(words));
  }
  // Bash takes --option=value for three words.
  return fmt::format(R"(# bash completion for haul: source <(haul completion bash)
_haul_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }}
_haul_list() {{
  local before=''
  if [[ $current == *,* ]]; then before=${{current%,*}},; fi
  mapfile -t COMPREPLY < <(compgen -W "$1" -P "$before" -- "${{current##*,}}")
}}
_haul_files() {{
  compopt -o filenames 2> /dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}}
_haul() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command='' words='' i
  COMPREPLY=()
  if ((COMP_CWORD > 1)); then command=${{COMP_WORDS[1]}}; fi
  case $command in
    {}) for ((i = 2; i < COMP_CWORD; i++)); do
      if [[ ${{COMP_WORDS[i]}} == -- ]]; then
        if ((i == COMP_CWORD - 1)); then
          mapfile -t COMPREPLY < <(compgen -c -- "$current")
        else
          _haul_files
        fi
        return
      fi
    done ;;
  esac
  if [[ $current == '=' ]]; then current=''; fi
  if [[ $previous == '=' ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case $command:$previous in
{}  esac
  case $command in
    '') words='{} --help --version' ;;
{}  esac
  _haul_words "$words"
}}
complete -F _haul haul
)",
                     programs, value_cases, joined(command_names(tree)), words_cases);
}

std::string zsh_script(const Tree& tree) {
  auto safe = [](const std::string& text) {
    std::string escaped;
    for (char c : quoted(text, "'\\''")) {
      if (c == ':' || c == '[' || c == ']') escaped += '\\';
      escaped += c;
    }
    return escaped;
  };
  std::string commands, cases;
  for (const CLI::App* app : commands_of(tree)) {
    commands += fmt::format("    '{}:{}'\n", app->get_name(), safe(app->get_description()));
    cases += fmt::format("      {})\n        _arguments", app->get_name());
    for (const CLI::Option* option : named_options(*app)) {
      std::string value;
      if (takes_file(*option)) {
        value = ":file:_files";
      } else if (!tree.values(option).empty()) {
        const std::string words = joined(tree.values(option));
        value = takes_list(*option) ? fmt::format(":value:_values -s , value {}", words)
                                    : fmt::format(":value:({})", words);
      } else if (!value_name(*option).empty()) {
        value = fmt::format(":{}:", safe(value_name(*option)));
      }
      // Behind '=', or as the next word.
      cases += fmt::format(" \\\n          '{}{}[{}]{}'", flag_of(*option),
                           value.empty() ? "" : "=", safe(option->get_description()), value);
    }
    if (const auto* values = positional_values(tree, *app)) {
      cases += fmt::format(" \\\n          '1:value:({})'", joined(*values));
    }
    if (tree.takes_program(*app)) cases += " \\\n          '*::program:_haul_program'";
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef haul
# zsh completion for haul: haul completion zsh > a directory of $fpath, as _haul
_haul_program() {{
  if [[ $words[1] == -- ]]; then shift words; ((CURRENT--)); fi
  _normal
}}
_haul() {{
  local -a haul_commands  # (`commands` is zsh's own)
  haul_commands=(
{}  )
  _arguments -C '--help[Print help]' '--version[Print the version]' '1:command:->command' '*::argument:->rest'
  case $state in
    command) _describe command haul_commands ;;
    rest)
      case $words[1] in
{}      esac ;;
  esac
}}
if [ "$funcstack[1]" = _haul ]; then _haul "$@"; else compdef _haul haul; fi
)",
                     commands, cases);
}

std::string fish_script(const Tree& tree) {
  auto safe = [](const std::string& text) { return quoted(text, "\\'"); };
  std::string script =
      "# fish completion for haul: haul completion fish > ~/.config/fish/completions/haul.fish\n"
      "function __haul_command_is\n"
      "    set -l words (commandline -opc)\n"
      "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
      "end\n"
      "complete -c haul -f\n"
      "complete -c haul -n __fish_use_subcommand -l help -d 'Print help'\n"
      "complete -c haul -n __fish_use_subcommand -l version -d 'Print the version'\n";
  for (const CLI::App* app : commands_of(tree)) {
    script += fmt::format("complete -c haul -n __fish_use_subcommand -a {} -d '{}'\n",
                          app->get_name(), safe(app->get_description()));
    std::string when = fmt::format("'__haul_command_is {}'", app->get_name());
    for (const CLI::Option* option : named_options(*app)) {
      std::string value;
      if (takes_file(*option)) {
        value = " -r -F";
      } else if (!tree.values(option).empty()) {
        const std::string words = joined(tree.values(option));
        value = takes_list(*option) ? fmt::format(" -x -a '(__fish_append , {})'", words)
                                    : fmt::format(" -x -a '{}'", words);
      } else if (!value_name(*option).empty()) {
        value = " -x";
      }
      script += fmt::format("complete -c haul -n {} -l {}{} -d '{}'\n", when,
                            flag_of(*option).substr(2), value, safe(option->get_description()));
    }
    if (const auto* values = positional_values(tree, *app)) {
      script += fmt::format("complete -c haul -n {} -a '{}'\n", when, joined(*values));
    }
    if (tree.takes_program(*app)) {
      when.insert(when.size() - 1, "; and contains -- -- (commandline -opc)");
      script += fmt::format("complete -c haul -n {} -F -a '(__fish_complete_command)'\n", when);
    }
  }
  return script;
}

}  // namespace

void add_completion(Tree& tree) {
  CLI::App& app = tree.command("completion", "Print the completion script of a shell",
                               "bash: source <(haul completion bash)\n"
                               "zsh: haul completion zsh > \"${fpath[1]}/_haul\"\n"
                               "fish: haul completion fish > ~/.config/fish/completions/haul.fish");
  auto shell = std::make_shared<std::string>();
  tree.choice(app, "shell", *shell, {"bash", "zsh", "fish"}, "For which shell")->required();
  app.callback([shell, &tree] {
    std::string script = *shell == "bash"  ? bash_script(tree)
                         : *shell == "zsh" ? zsh_script(tree)
                                           : fish_script(tree);
    fmt::print("{}", script);
  });
}

}  // namespace haul::cli
