"""haul.hpp and atomic.hpp as a model: what a user sees of them, each with its comment.

A comment of // lines documents the declarations that follow it, up to an empty line or another comment; so within a
class. Bodies, initializers and private parts are left out, and so is what is deleted.
"""

import pathlib
import re
from dataclasses import dataclass, field

from header import comment as comments

ACCESS = re.compile(r"(public|private|protected):$")
CLASS = re.compile(r"(class|struct) (\w+)")


@dataclass
class Entry:
    comment: str  # flowing; "" without
    declarations: list = field(default_factory=list)
    members: list = field(default_factory=list)  # of a class: Entries

    @property
    def name(self):
        head = re.sub(r"template <[^>]*>|requires\s*\(.*?\)\)|requires [\w:<>]+", " ", self.declarations[0])
        match = CLASS.match(self.declarations[0]) or re.search(r"(~?\w+)\(", head)
        return match.group(match.lastindex) if match else self.declarations[0]


@dataclass
class CppHeader:
    name: str  # "haul/haul.hpp"
    namespace: str
    overview: list
    entries: list


def closing(text, at):
    """Behind the brace that closes the one at `at`."""
    depth = 0
    for match in re.compile(r'[{}]|//[^\n]*|"(?:\\.|[^"\\])*"').finditer(text, at):
        depth += (match.group(0) == "{") - (match.group(0) == "}")
        if depth == 0:
            return match.end()
    raise ValueError("a brace is never closed")


def cut_initializers(head):
    """A constructor's head without what follows its parameters' end."""
    match = re.search(r"\)(\s*noexcept)?\s*:(?!:)", head)
    return head[:match.start()] + ")" + (match.group(1) or "") if match else head


def squeezed(text):
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*", " ", text)).strip()


def declaration_at(text, at):
    """(the declaration, its class's body or None, where it ends)"""
    match = re.compile(r"[;{]").search(text, at)
    if match.group(0) == "{" and re.match(r"(class|struct) ", text[at:]):
        end = closing(text, match.start())
        return squeezed(text[at:match.start()]) + ";", text[match.start() + 1:end - 1], text.index(";", end) + 1
    # Braces of initializers (`raw_{-1, 0}`) and of default arguments (`= {}`) are no body.
    depth, i = 0, at
    while True:
        char = text[i]
        depth += (char in "(") - (char in ")")
        if char == ";" and depth == 0:
            return squeezed(text[at:i]) + ";", None, i + 1
        if char == "{" and depth == 0:
            end = closing(text, i)
            if re.match(r"\s*[,{]", text[end:]):
                i = end
                continue
            return squeezed(cut_initializers(text[at:i])) + ";", None, end + (text[end:end + 1] == ";")
        i += 1


def entries_of(text, is_public=True):
    entries, current, pending, at = [], None, [], 0
    while True:
        gap = re.compile(r"\s*").match(text, at)
        if gap.group(0).count("\n") > 1:
            current = None
        at = gap.end()
        if at == len(text):
            return entries
        line = re.compile(r"[^\n]*").match(text, at)
        if line.group(0).startswith("//"):
            if line.group(0).startswith("// clang-format"):
                pending = []  # what stood before it is for the formatter's readers
            elif "\n" in gap.group(0) or at == 0:
                pending.append(line.group(0)[2:].strip())
            else:
                raise ValueError(f"a comment behind a declaration: '{line.group(0)}'; put it before")
            at = line.end()
            continue
        access = ACCESS.match(line.group(0).strip())
        if access or line.group(0).startswith("#"):
            if access:
                is_public, current, pending = access.group(1) == "public", None, []
            at = line.end()
            continue
        declaration, body, at = declaration_at(text, at)
        if not is_public or declaration.endswith("= delete;"):
            pending = []
            continue
        if pending or current is None:
            current = Entry(" ".join(pending))
            entries.append(current)
            pending = []
        current.declarations.append(declaration)
        if body is not None:
            current.members = entries_of(body, declaration.startswith("struct"))


def read(path):
    path = pathlib.Path(path)
    text = path.read_text(encoding="utf-8")
    first = re.match(r"(//[^\n]*\n)+", text).group(0)
    lines = [re.sub(r"^// ?", " ", line)[1:] for line in first.splitlines()]
    namespace = re.search(r"^namespace ([\w:]+) \{", text, re.M)
    body = text[namespace.end():text.rindex("}  // namespace")]
    overview = comments.blocks_of_lines(lines)
    return CppHeader(f"{path.parent.name}/{path.name}", namespace.group(1), overview, entries_of(body))
