"""Where a file of the repository stands on the site, and links between files as links between pages."""

import pathlib
import posixpath
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# What has a place of its own. docs/X is X; any other document is tree/X, any other file the plain text tree/X.txt.
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "include/haul/haul.h": "reference/c/index.md",
    "include/haul/atomic.h": "reference/atomic/index.md",
    "include/haul/haul.hpp": "reference/cpp/haul.md",
    "include/haul/atomic.hpp": "reference/cpp/atomic.md",
}
FENCE = r"^(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=fence)[ \t]*$"
TOKEN = re.compile(FENCE + r"|(?P<code>`+)[^`]+?(?P=code)|\]\((?P<target>[^)\s]+)\)|^#[^\n]*$", re.M | re.S)
IS_ELSEWHERE = re.compile(r"[a-z]+:|//|#")


def place_of(path):
    """The site's place of a file or folder of the repository; None if there is no such file."""
    file = ROOT / path
    if file.is_dir():
        path = posixpath.join(path, "README.md")
        file = ROOT / path
    if not file.is_file():
        return None
    if path in PLACES:
        return PLACES[path]
    if path.startswith("docs/"):
        return path[len("docs/"):]
    return f"tree/{path}" if path.endswith(".md") else f"tree/{path}.txt"


def path_of(place):
    """The file of the repository that a page shows; None for what is generated."""
    for path, its_place in PLACES.items():
        if its_place == place:
            return path
    if place.startswith("tree/"):
        return re.sub(r"\.txt$", "", place[len("tree/"):])
    return f"docs/{place}" if (ROOT / "docs" / place).is_file() else None


def targets(path, text):
    """The files of the repository that a document's links name: (link, path)."""
    for match in TOKEN.finditer(text):
        link = match.group("target")
        if link and not IS_ELSEWHERE.match(link):
            yield link, posixpath.normpath(posixpath.join(posixpath.dirname(path), link.partition("#")[0]))


def relink(place, path, text, function_link):
    """The document's text with its links as the site has them, and `haul_x()` linked to the reference."""
    def replaced(match):
        whole, link, code = match.group(0), match.group("target"), match.group("code")
        if link and not IS_ELSEWHERE.match(link):
            file, hash_mark, anchor = link.partition("#")
            target = place_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), file)))
            if target:
                return f"]({posixpath.relpath(target, posixpath.dirname(place) or '.')}{hash_mark}{anchor})"
        if code and not text.startswith("](", match.end()):
            linked = function_link(whole.strip("`"))
            if linked:
                return f"[{whole}]({posixpath.relpath(linked, posixpath.dirname(place) or '.')})"
        return whole
    return TOKEN.sub(replaced, text)


def separated(text):
    """An empty line before each list and table that follows a paragraph: CommonMark needs none, MkDocs does."""
    begins = re.compile(r"[-*] |\d+\. |\|")
    follows = re.compile(r"[-*] |\d+\. |\||#|\s|$")
    result, fence, previous, in_list = [], False, "", False
    for line in text.split("\n"):
        if line.startswith(("```", "~~~")):
            fence = not fence
        elif not fence:
            if begins.match(line) and not follows.match(previous) and not (in_list and not line.startswith("|")):
                result.append("")
            if re.match(r"[-*] |\d+\. ", line):
                in_list = True
            elif not line.strip() or line.startswith(("#", "|")):
                in_list = False
        result.append(line)
        previous = line
    return "\n".join(result)
