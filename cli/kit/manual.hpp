// A manual page as what it says, and its two forms: roff for man, Markdown for the site.
#pragma once

#include <string>
#include <vector>

namespace haul::cli {

// A part of a line. `page` names another page, "haul-bench"; its text is that name.
struct Words {
  enum class Face { plain, bold, italic, page };
  Face face = Face::plain;
  std::string text;
};
using Line = std::vector<Words>;

// A paragraph behind a label: an option, a variable, a status.
struct Entry {
  Line label;
  Line text;
};

struct Chapter {
  std::string title;  // "OPTIONS"
  std::vector<Line> paragraphs;
  std::vector<Entry> entries;
};

struct Page {
  std::string name;  // "haul-bench"
  char section = '1';
  std::string summary;
  std::vector<Chapter> chapters;
};

std::string to_roff(const Page& page);
std::string to_markdown(const Page& page);

}  // namespace haul::cli
