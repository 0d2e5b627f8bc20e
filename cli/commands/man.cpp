// haul man: the manual pages, generated from the tree of commands and the knob table.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/knobs.hpp"
#include "cli/kit/manual.hpp"
#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"

namespace haul::cli {
namespace {

std::string names_of(const CLI::Option& option) {
  if (option.get_positional() && !option.nonpositional()) return option.get_name();
  std::string names;
  for (const std::string& one : option.get_snames()) names += "-" + one + ", ";
  for (const std::string& one : option.get_lnames()) names += "--" + one + ", ";
  return names.substr(0, names.size() - 2);
}

std::string comma_separated(std::string values) {
  for (std::size_t at = values.find('|'); at != std::string::npos; at = values.find('|', at + 2)) {
    values.replace(at, 1, ", ");
  }
  return values;
}

// A long list of values gets spaces at which roff may break its lines.
std::string breakable(const std::string& values) {
  constexpr std::size_t fits = 60;
  return values.size() <= fits ? values : comma_separated(values);
}

Line plain(std::string text) {
  return {{Words::Face::plain, std::move(text)}};
}
Line bold(std::string text) {
  return {{Words::Face::bold, std::move(text)}};
}

// Makes each line of a text a paragraph of its own.
std::vector<Line> paragraphs(const std::string& text) {
  std::vector<Line> result;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    result.push_back(plain(text.substr(at, end - at)));
    at = end + 1;
  }
  return result;
}

Chapter options_of(const CLI::App& app) {
  Chapter chapter{"OPTIONS", {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    Line label = bold(names_of(*option));
    std::string value = value_name(*option);
    if (!value.empty()) {
      label.push_back({Words::Face::plain, " "});
      label.push_back({Words::Face::italic, breakable(value)});
    }
    chapter.entries.push_back({label, plain(option->get_description() + ".")});
  }
  return chapter;
}

Chapter synopsis(const CLI::App& app) {
  Line line = bold("haul " + app.get_name());
  auto add = [&line](Words::Face face, const std::string& text) { line.push_back({face, text}); };
  for (const CLI::Option* option : app.get_options()) {
    bool is_positional = option->get_positional() && !option->nonpositional();
    if (option->get_positional() && option->get_items_expected_max() > 1) {  // a program's command
      add(Words::Face::plain, " [");
      add(Words::Face::bold, "--");
      add(Words::Face::plain, " ");
      add(Words::Face::italic, option->get_name());
      add(Words::Face::plain, " ...]");
    } else if (is_positional) {
      add(Words::Face::plain, option->get_required() ? " " : " [");
      add(Words::Face::italic, option->get_name());
      add(Words::Face::plain, option->get_required() ? "" : "]");
    } else {
      std::string value = value_name(*option);
      add(Words::Face::plain, " [");
      add(Words::Face::bold, "--" + option->get_lnames().front());
      if (!value.empty()) {
        add(Words::Face::plain, " ");
        add(Words::Face::italic, value);
      }
      add(Words::Face::plain, "]");
    }
  }
  return {"SYNOPSIS", {line}, {}};
}

Chapter exit_status() {
  return {"EXIT STATUS",
          {},
          {{plain("0"), plain("Success.")},
           {plain("1"), plain("Failure; one line on standard error says why and what to do.")},
           {plain("2"), plain("Wrong usage.")}}};
}

Chapter see_also(const std::vector<std::string>& pages) {
  Line line;
  for (const std::string& page : pages) {
    if (!line.empty()) line.push_back({Words::Face::plain, ", "});
    line.push_back({Words::Face::page, page});
  }
  return {"SEE ALSO", {line}, {}};
}

Page root_page(const Tree& tree) {
  Page page{"haul", '1', "move bulk memory without stalling the program that asked", {}};
  Chapter usage{"SYNOPSIS", {bold("haul")}, {}};
  usage.paragraphs[0].push_back({Words::Face::plain, " "});
  usage.paragraphs[0].push_back({Words::Face::italic, "command"});
  usage.paragraphs[0].push_back({Words::Face::plain, " ["});
  usage.paragraphs[0].push_back({Words::Face::italic, "options"});
  usage.paragraphs[0].push_back({Words::Face::plain, "]"});
  Chapter commands{"COMMANDS", {}, {}};
  std::vector<std::string> pages;
  for (const CLI::App* app : commands_of(tree)) {
    std::string name = "haul-" + app->get_name();
    Line text = plain(app->get_description() + ". See ");
    text.push_back({Words::Face::page, name});
    text.push_back({Words::Face::plain, "."});
    commands.entries.push_back({bold(app->get_name()), text});
    pages.push_back(name);
  }
  pages.push_back("haul-knobs");
  Line knobs = plain("See ");
  knobs.push_back({Words::Face::page, "haul-knobs"});
  knobs.push_back({Words::Face::plain, "."});
  page.chapters = {
      usage,
      {"DESCRIPTION",
       {plain("A program that uses libhaul hands a copy to a dedicated core or a device and "
              "computes while the bytes move. This command shows what a machine can do for that, "
              "measures it, and explains it.")},
       {}},
      commands,
      options_of(tree.root()),
      exit_status(),
      {"ENVIRONMENT", {knobs}, {}},
      see_also(pages)};
  return page;
}

Page command_page(const Tree& tree, const CLI::App& app) {
  std::string summary = app.get_description();
  summary[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(summary[0])));
  return {"haul-" + app.get_name(),
          '1',
          summary,
          {synopsis(app),
           {"DESCRIPTION", paragraphs(tree.text(&app)), {}},
           options_of(app),
           exit_status(),
           see_also({"haul", "haul-knobs"})}};
}

Page knobs_page() {
  Page page{"haul-knobs", '7', "environment variables of haul", {}};
  Chapter variables{"ENVIRONMENT", {}, {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(Knob::count_); ++i) {
    const KnobRow& row = knob_rows()[i];
    variables.entries.push_back({bold(row.variable), plain(row.help)});
  }
  page.chapters = {{"DESCRIPTION",
                    {plain("libhaul reads these once, when a process first uses it. A value it "
                           "cannot use is reported on standard error, and the default holds.")},
                    {}},
                   variables,
                   see_also({"haul", "haul-info"})};
  return page;
}

// The table of docs/guide/knobs.md, which a test compares with this.
void print_knobs_table() {
  fmt::print("| variable | default | values | meaning |\n|---|---|---|---|\n");
  for (std::size_t i = 0; i < static_cast<std::size_t>(Knob::count_); ++i) {
    const KnobRow& row = knob_rows()[i];
    char text[96];
    describe_knob_values(row, text, sizeof text);
    fmt::print("| `{}` | {} | {} | {} |\n", row.variable,
               row.default_text[0] == '\0' ? "(empty)" : fmt::format("`{}`", row.default_text),
               comma_separated(text), row.help);
  }
}

std::vector<Page> pages_of(const Tree& tree) {
  std::vector<Page> pages{root_page(tree)};
  for (const CLI::App* app : commands_of(tree)) pages.push_back(command_page(tree, *app));
  pages.push_back(knobs_page());
  return pages;
}

void write_pages(const std::vector<Page>& pages, const std::filesystem::path& directory,
                 bool markdown) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  for (const Page& page : pages) {
    std::filesystem::path path =
        directory / (markdown ? page.name + ".md" : fmt::format("{}.{}", page.name, page.section));
    std::ofstream file(path, std::ios::binary);
    file << (markdown ? to_markdown(page) : to_roff(page));
    file.close();
    if (!file) {
      throw tools::CommandFailure(fmt::format("cannot write {} ({}); give --out another directory",
                                              path.string(), std::strerror(errno)));
    }
  }
  fmt::print("wrote {} pages to {}\n", pages.size(), directory.string());
}

void print_page(const std::vector<Page>& pages, const std::string& name, bool markdown) {
  for (const Page& page : pages) {
    if (page.name == name || page.name == "haul-" + name) {
      fmt::print("{}", markdown ? to_markdown(page) : to_roff(page));
      return;
    }
  }
  throw UsageError(fmt::format("there is no page '{}'; name a command, or knobs", name));
}

}  // namespace

void add_man(Tree& tree) {
  CLI::App& app = tree.command("man", "Print a manual page, or write them all",
                               "Prints one page as roff; haul man bench | man -l - shows it. With "
                               "--out, writes haul.1, a page "
                               "for each command and haul-knobs.7 into a directory. With "
                               "--markdown, the same pages as Markdown.");
  auto name = std::make_shared<std::string>("haul");
  auto directory = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  auto table = std::make_shared<bool>(false);
  std::vector<std::string> page_names{"haul", "knobs"};
  for (const CLI::App* one : commands_of(tree)) page_names.push_back(one->get_name());
  tree.offer(app.add_option("page", *name, "A command, or knobs (default haul)")->type_name(""),
             page_names);
  app.add_option("--out", *directory, "Write all pages here")->type_name("DIR");
  app.add_flag("--markdown", *markdown, "Print or write Markdown, as haul's site has it");
  app.add_flag("--knobs-markdown", *table, "Print the knobs as a table of Markdown");
  app.callback([name, directory, markdown, table, &tree] {
    if (*table) return print_knobs_table();
    std::vector<Page> pages = pages_of(tree);
    if (directory->empty()) {
      print_page(pages, *name, *markdown);
    } else {
      write_pages(pages, *directory, *markdown);
    }
  });
}

}  // namespace haul::cli
