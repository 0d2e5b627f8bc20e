// The tree of commands and options: the one source of parsing, --help, completion and man pages.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace haul::cli {

// A wrong argument that only the command itself can notice: exit status 2. Other failures (1) are
// tools::CommandFailure.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown by a command that has run another program: haul ends with that program's status. All
// output has been written.
struct ExitStatus {
  int status;
};

class Tree {
 public:
  Tree();

  CLI::App& root() { return root_; }
  const CLI::App& root() const { return root_; }

  // Adds a command, with its one-line help and the text that its manual page adds.
  CLI::App& command(const std::string& name, const std::string& help, const std::string& text);

  // Adds an option that takes one of a closed set of values.
  CLI::Option* choice(CLI::App& app, const std::string& name, std::string& value,
                      const std::vector<std::string>& values, const std::string& help);
  // Adds an option that takes some of them, with commas between.
  CLI::Option* choices(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                       const std::vector<std::string>& known, const std::string& help);
  // Has completion offer these values of an option that takes others, too, or checks them itself.
  void offer(const CLI::Option* option, const std::vector<std::string>& values);
  // Adds an option that takes a number of bytes: 4096, 64K, 1M.
  CLI::Option* bytes(CLI::App& app, const std::string& name, std::string& value,
                     const std::string& help);

  // Adds another program's command line as the last arguments: everything behind "--" (which
  // take_program() reads) or, with `first`, everything from the first argument that is no option
  // (the command then has no other positional arguments). `words` must live as long as this.
  void program(CLI::App& app, std::vector<std::string>& words, const std::string& help,
               bool first = true);
  // If the command argv[1] takes another program's command line, stores what is behind "--"
  // untouched. Returns how many arguments are left to parse.
  int take_program(int argc, char** argv);

  // What completion offers for an option, such as its closed set of values; empty if nothing.
  const std::vector<std::string>& values(const CLI::Option* option) const;
  const std::string& text(const CLI::App* command) const;
  bool takes_program(const CLI::App& command) const;

 private:
  CLI::App root_;
  std::map<const CLI::Option*, std::vector<std::string>> values_;
  std::map<const CLI::App*, std::string> texts_;
  std::map<std::string, std::vector<std::string>*> programs_;  // by command
};

// "", or what is wrong with this text as a size.
std::string check_bytes(const std::string& text);
// The size that a checked text stands for.
std::size_t to_bytes(const std::string& text);

// Checks for add_option(): that the text is one of `values`, or a number from `low` to `high`.
std::function<std::string(const std::string&)> check_one_of(const std::vector<std::string>& values);
std::function<std::string(const std::string&)> check_between(double low, double high);

// All commands that people use, in the order in which --help lists them.
std::vector<const CLI::App*> commands_of(const Tree& tree);
// A command's options that have a name, --help included.
std::vector<const CLI::Option*> named_options(const CLI::App& app);
// The name under which help shows an option's value, such as "BYTES"; "" for a flag.
std::string value_name(const CLI::Option& option);

// Each adds its command to the tree; the command runs while the tree parses.
void add_demo(Tree& tree);
void add_info(Tree& tree);
void add_tune(Tree& tree);
void add_explain(Tree& tree);
void add_bench(Tree& tree);
void add_bench_worker(Tree& tree);  // hidden: what `haul bench` starts
void add_run(Tree& tree);
void add_profile(Tree& tree);
void add_serve(Tree& tree);
void add_top(Tree& tree);
void add_atomic(Tree& tree);
void add_lock(Tree& tree);
void add_nic(Tree& tree);
void add_clean(Tree& tree);
void add_completion(Tree& tree);
void add_man(Tree& tree);

}  // namespace haul::cli
