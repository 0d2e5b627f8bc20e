// The tree of commands and options: the one source of parsing, --help, completion and man pages.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace haul::cli {

// A wrong argument that only a command can notice: exit status 2. Other failures (1) are
// tools::CommandFailure.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A command that has run another program ends as that did. Its output is complete.
struct ExitStatus {
  int status;
};

class Tree {
 public:
  Tree();

  CLI::App& root() { return root_; }
  const CLI::App& root() const { return root_; }

  // A command with its one-line help and what its man page says beyond that.
  CLI::App& command(const std::string& name, const std::string& help, const std::string& text);

  // An option of a closed set of values.
  CLI::Option* choice(CLI::App& app, const std::string& name, std::string& value,
                      const std::vector<std::string>& values, const std::string& help);
  // An option that takes bytes: 4096, 64K, 1M.
  CLI::Option* bytes(CLI::App& app, const std::string& name, std::string& value,
                     const std::string& help);

  // The command of another program as the last arguments: all behind "--" (take_program() reads
  // that), or from the first that is no option on (`first`: there are no other positional ones).
  // `words` must live as long as this.
  void program(CLI::App& app, std::vector<std::string>& words, const std::string& help,
               bool first = true);
  // Where the command of argv[1] takes a program's: hands over what is behind "--" as it is, and
  // returns how many arguments are left to parse.
  int take_program(int argc, char** argv);

  // The closed set of an option, empty if it is open.
  const std::vector<std::string>& values(const CLI::Option* option) const;
  const std::string& text(const CLI::App* command) const;

 private:
  CLI::App root_;
  std::map<const CLI::Option*, std::vector<std::string>> values_;
  std::map<const CLI::App*, std::string> texts_;
  std::map<std::string, std::vector<std::string>*> programs_;  // by command
};

// "" or what is wrong with this text as a size.
std::string check_bytes(const std::string& text);
// The size; the text has been checked.
std::size_t to_bytes(const std::string& text);

// A check for add_option(): a number from `low` to `high`.
std::function<std::string(const std::string&)> check_between(double low, double high);

// All commands that people use, in the order of --help.
std::vector<const CLI::App*> commands_of(const Tree& tree);
// Options of a command that have a name, --help included.
std::vector<const CLI::Option*> named_options(const CLI::App& app);
// "-h,--help" or "--size BYTES"; and the value's placeholder alone ("" for a flag).
std::string value_name(const CLI::Option& option);

// Each adds its command to the tree; the command runs while the tree parses.
void add_demo(Tree& tree);
void add_info(Tree& tree);
void add_tune(Tree& tree);
void add_explain(Tree& tree);
void add_bench(Tree& tree);
void add_bench_worker(Tree& tree);  // hidden: what `haul bench` starts
void add_run(Tree& tree);
void add_serve(Tree& tree);
void add_top(Tree& tree);
void add_atomic(Tree& tree);
void add_lock(Tree& tree);
void add_clean(Tree& tree);
void add_completion(Tree& tree);
void add_man(Tree& tree);

}  // namespace haul::cli
