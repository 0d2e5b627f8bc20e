"""haul.h and atomic.h as a model: sections of groups, each a comment and what it documents.

Their discipline: `/* ---- name ---- */` begins a section. A comment documents the declarations that follow it, up to an
empty line or to another comment. Within a struct or an enum a comment behind a member is that member's, and one on a
line of its own that of the next member. What does not follow it is refused with its line.
"""

import pathlib
import re
from dataclasses import dataclass, field

from header import comment as comments

SECTION = re.compile(r"/\* -{4} (.*?) -{4,} \*/")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"#(?:[^\n]*\\\n)*[^\n]*")
MACRO = re.compile(r"#define (HAUL_\w+?)(\([^)]*\))? +(\S.*)$")
# What only a compiler reads.
INTERNAL_MACROS = re.compile(r"HAUL_(API|\w+_H)$")


class HeaderError(Exception):
    """What the parser does not understand, with its place."""


@dataclass
class Member:
    text: str     # "uint64_t chunks, bytes", "HAUL_OK = 0"
    comment: str  # flowing; "" without


@dataclass
class Item:
    kind: str  # function, inline, struct, enum, constants, opaque, callback, alias, macro
    name: str
    text: str  # the declaration without comments, attributes and bodies
    members: list = field(default_factory=list)


@dataclass
class Group:
    comment: comments.Comment
    items: list
    line: int

    @property
    def name(self):
        return self.items[0].name

    def of_kind(self, *kinds):
        return [item for item in self.items if item.kind in kinds]


@dataclass
class Section:
    title: str
    groups: list


@dataclass
class Header:
    name: str  # "haul/haul.h"
    overview: list  # blocks of the first comment
    sections: list

    def groups(self):
        return [group for section in self.sections for group in section.groups]

    def items(self):
        return [item for group in self.groups() for item in group.items]

    def functions(self):
        return [item for item in self.items() if item.kind in ("function", "inline")]


def squeezed(text):
    return re.sub(r"\s+", " ", COMMENT.sub(" ", text)).strip()


def matching_brace(text, at):
    depth = 0
    for match in re.compile(r"[{}]|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.S).finditer(text, at):
        depth += (match.group(0) == "{") - (match.group(0) == "}")
        if depth == 0:
            return match.start()
    raise HeaderError("a brace is never closed")


def members_of(body, ends):
    """The members of a struct (`ends` ";") or an enum (",")."""
    members, leading, at = [], "", 0
    token = re.compile(r"\s*(?:(/\*.*?\*/)|([^/%s]+)(%s|$|(?=/\*)))" % (ends, ends), re.S)
    while body[at:].strip():
        match = token.match(body, at)
        if match is None:
            raise HeaderError(f"cannot read the member '{body[at:at + 40].strip()}'")
        if match.group(1) is None:
            members.append(Member(squeezed(match.group(2)), leading))
            leading = ""
        elif members and not leading and "\n" not in body[at:match.start(1)]:
            members[-1].comment = comments.flowing(match.group(1))
        else:
            leading = comments.flowing(match.group(1))
        at = match.end()
    return members


def item_of(text):
    """The item of one declaration, up to its ; or including its body."""
    head = squeezed(text.split("{")[0])
    match = re.match(r"typedef (struct|enum) (\w+)$", head)
    if match and "{" in text:
        kind, name = match.groups()
        return Item(kind, name, head, members_of(body_of(text), ";" if kind == "struct" else ","))
    if head == "enum":
        members = members_of(body_of(text), ",")
        return Item("constants", members[0].text.split(" ")[0], "enum", members)
    plain = squeezed(text).rstrip(";").strip()
    match = re.match(r"typedef struct (\w+) \1$", plain)
    if match:
        return Item("opaque", match.group(1), plain + ";")
    match = re.match(r"typedef .*\(\*(\w+)\)\(.*\)$", plain)
    if match:
        return Item("callback", match.group(1), plain + ";")
    match = re.match(r"typedef \w+ (\w+)$", plain)
    if match:
        return Item("alias", match.group(1), plain + ";")
    match = re.match(r"(HAUL_API|static inline) (.*?\b(haul_\w+)\(.*\))$", head.rstrip(";").strip())
    if match:
        return Item("function" if match.group(1) == "HAUL_API" else "inline", match.group(3), match.group(2) + ";")
    raise HeaderError(f"cannot read the declaration '{plain[:60]}'")


def body_of(text):
    begin = text.index("{")
    return text[begin + 1:matching_brace(text, begin)]


def end_of_declaration(text, at):
    brace = re.compile(r"[;{]").search(text, at)
    if brace is None:
        raise HeaderError("a declaration has no end")
    if brace.group(0) == ";":
        return brace.end()
    end = matching_brace(text, brace.start()) + 1
    if text.startswith("static inline", at):
        return end
    return text.index(";", end) + 1  # } name;


class Reader:
    def __init__(self, text):
        self.text = text
        self.sections = []
        self.group = None
        self.pending = None  # a comment that documents what comes next

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def add(self, item, at):
        if self.pending is not None:
            self.group = Group(comments.parse(self.pending), [], self.line(at))
            self.sections[-1].groups.append(self.group)
            self.pending = None
        if self.group is None:
            raise HeaderError(f"{item.name} has no comment; say in one sentence what it is")
        self.group.items.append(item)

    def directive(self, text, at):
        match = MACRO.match(text)
        if match and not INTERNAL_MACROS.match(match.group(1)):
            name, parameters, value = match.groups()
            self.add(Item("macro", name, f"#define {name}{parameters or ''} {value}"), at)

    def step(self, at):
        """Reads what stands at `at`; returns where it ends."""
        text = self.text
        if text.startswith("/*", at):
            end = COMMENT.match(text, at).end()
            section = SECTION.match(text, at)
            if section:
                self.sections.append(Section(section.group(1), []))
                self.group = self.pending = None
            else:
                self.pending = text[at:end]
                self.group = None
            return end
        if text[at] == "#":
            end = DIRECTIVE.match(text, at).end()
            self.directive(text[at:end], at)
            return end
        if text.startswith('extern "C" {', at):
            return at + len('extern "C" {')
        if text[at] == "}":
            return at + 1
        end = end_of_declaration(text, at)
        self.add(item_of(text[at:end]), at)
        return end

    def read(self):
        space = re.compile(r"\s*")
        first = COMMENT.match(self.text)
        at = first.end()
        while True:
            gap = space.match(self.text, at)
            if gap.end() == len(self.text):
                return comments.blocks_of(first.group(0))
            if gap.group(0).count("\n") > 1:
                self.group = None
            try:
                at = self.step(gap.end())
            except HeaderError as error:
                raise HeaderError(f"{self.line(gap.end())}: {error}") from None


def read(path):
    """The Header at `path`, which lies in a folder haul/."""
    path = pathlib.Path(path)
    reader = Reader(path.read_text(encoding="utf-8"))
    try:
        overview = reader.read()
    except HeaderError as error:
        raise HeaderError(f"{path}:{error}") from None
    # (What precedes the first section is for the compiler.)
    return Header(f"{path.parent.name}/{path.name}", overview, [s for s in reader.sections if s.groups])
