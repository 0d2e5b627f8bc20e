"""The pages of haul.h and atomic.h: an overview, and a page a section."""

import re

from header import comment
from man.pages import LIBRARIES, signature
from man.roff import MARKED

FOLDERS = {"haul/haul.h": "reference/c", "haul/atomic.h": "reference/atomic"}
TITLES = {"returns": "Returns", "errors": "Errors", "context": "Blocking and signals", "papers": "Papers"}
NAMED = re.compile(MARKED.pattern + r"|\b(haul_[a-z_]+[a-z])\b")


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.partition("(")[0].partition(",")[0].lower()).strip("-")


def constants_of(item):
    """The names that an item defines beside its own: enumerators."""
    return [member.text.split(" ")[0] for member in item.members] if item.kind in ("enum", "constants") else []


class Places:
    """Where each name of both headers is described: "reference/c/tickets.md#haul_wait"."""

    def __init__(self, headers):
        self.of = {}
        for header in headers:
            for section in header.sections:
                page = f"{FOLDERS[header.name]}/{slug(section.title)}.md"
                for group in section.groups:
                    for item in group.items:
                        for name in [item.name, *constants_of(item)]:
                            self.of[name] = f"{page}#{name}"

    def function_link(self, code):
        """The place of code such as "haul_wait()" or "HAUL_FENCE"."""
        return self.of.get(code[:-2] if code.endswith("()") else code)


class Text:
    """Writes prose of comments as Markdown on one page."""

    def __init__(self, places, page):
        self.places, self.page = places, page

    def link(self, name, shown):
        place = self.places.of.get(name)
        if place is None:
            return f"`{shown}`"
        page, _, anchor = place.partition("#")
        if page == self.page:
            return f"[`{shown}`](#{anchor})"
        return f"[`{shown}`]({'../' * self.page.count('/')}{place})"

    def escaped(self, text):
        return re.sub(r"([*_\[\]<>|\\])", r"\\\1", text)

    def prose(self, text):
        result, at = "", 0
        for match in NAMED.finditer(text):
            code, function, constant, other = match.groups()
            result += self.escaped(text[at:match.start()])
            if code:
                result += f"`{code}`"
            elif function:
                result += self.link(function[:-2], function)
            elif constant:
                result += self.link(constant, constant)
            else:
                result += self.link(other, other) if other in self.places.of else self.escaped(other)
            at = match.end()
        return result + self.escaped(text[at:])

    def blocks(self, some):
        text = ""
        for block in some:
            if block.kind == "code":
                text += f"```c\n{block.text}\n```\n\n"
            elif block.kind == "item":
                label = ", ".join(self.link(word, word) for word in block.label.split(", ")) \
                    if block.label.startswith("HAUL_") else f"`{block.label}`" if len(block.label) == 1 else block.label
                text += f"{label}\n:   {self.prose(block.text)}\n\n"
            else:
                text += self.prose(block.text) + "\n\n"
        return text


def wrapped(text, width=88):
    """A prototype, one parameter a line where it is long."""
    if len(text) <= width or "(" not in text:
        return text
    head, rest = re.match(r"(.*?\()(.*)$", text).groups()
    return head + "\n    " + ",\n    ".join(re.split(r", (?![^()]*\))", rest[:-2])) + rest[-2:]


def members(text, item):
    """The members that have comments; of enumerations all, as they are linked to."""
    result = ""
    for member in item.members:
        name = member.text.split(" ")[0]
        anchor = f'<a id="{name}"></a>' if item.kind in ("enum", "constants") else ""
        meaning = f":   {text.prose(member.comment)}\n" if member.comment else ""
        if anchor or meaning:
            result += f"{anchor}`{member.text}`\n{meaning}\n"
    return result


def group_text(text, group, example_page):
    named = [item for item in group.items if item.kind != "constants"]
    result = ""
    for item in named[1:]:
        result += f'<a id="{item.name}"></a>'
    title = ", ".join(f"`{item.name}`" for item in named) or f"`{group.comment.summary.rstrip('.')}`".strip("`")
    anchor = named[0].name if named else slug(group.comment.summary)
    result += f"\n\n### {title} {{ #{anchor} }}\n\n"
    code = "\n".join(wrapped(signature(item)) for item in named)
    if code:
        result += f"```c\n{code}\n```\n\n"
    result += text.blocks(group.comment.blocks("description"))
    for item in group.items:
        result += members(text, item)
    for heading, its_title in TITLES.items():
        if group.comment.blocks(heading):
            result += f"**{its_title}**\n\n" + text.blocks(group.comment.blocks(heading))
    if example_page:
        result += f"Example: [{example_page[0]}]({example_page[1]})\n\n"
    return result


def example_places(headers, examples):
    """{name: (file, place)} of the examples: each on the page of its first name."""
    places = Places(headers)
    return {name: (example.file, f"{places.of[example.names[0]].partition('#')[0]}#example-{example.file[:-2]}")
            for example in examples for name in example.names}


def pages(header, headers, examples):
    """{place: (title, Markdown)}"""
    places, shown_at = Places(headers), example_places(headers, examples)
    result = {}
    for section in header.sections:
        page = f"{FOLDERS[header.name]}/{slug(section.title)}.md"
        text = Text(places, page)
        title = slug(section.title).replace("-", " ").capitalize()
        body = f"# {title}\n\n"
        aside = re.search(r"\((.*)\)", section.title)
        if aside:
            body += f"{text.prose(aside.group(1)[:1].upper() + aside.group(1)[1:])}.\n\n"
        body += f"Declared in `<{header.name}>`; [what holds for all functions](index.md).\n\n"
        for group in section.groups:
            example = next((shown_at[item.name] for item in group.items if item.name in shown_at), None)
            if example:
                where, _, anchor = example[1].partition("#")
                link = f"#{anchor}" if where == page else "../" * page.count("/") + example[1]
                example = (example[0], link)
            body += group_text(text, group, example)
        here = [one for one in examples if shown_at[one.names[0]][1].partition("#")[0] == page]
        if here:
            body += "## Examples\n\n"
        for one in here:
            body += f"### {one.file} {{ #example-{one.file[:-2]} }}\n\n"
            body += f"{text.prose(one.intro)}\n\n```c\n{one.code}\n```\n\n"
        result[page] = (title, body)
    return {f"{FOLDERS[header.name]}/index.md": overview(header, places, list(result.items())), **result}


def overview(header, places, sections):
    page = f"{FOLDERS[header.name]}/index.md"
    text = Text(places, page)
    first, *rest = header.overview
    what = comment.sentences(first.text.split(": ", 1)[1])
    library, package, _ = LIBRARIES[header.name]
    body = f"# {header.name.partition('/')[2]}\n\n{text.prose(' '.join(what)[:1].upper() + ' '.join(what)[1:])}\n\n"
    body += f"Include `<{header.name}>` and link with {library} (`pkg-config --cflags --libs {package}`).\n\n"
    items = [block for block in rest if block.kind == "item"]
    first_item = rest.index(items[0])
    body += text.blocks(rest[:first_item])
    for block in rest[first_item:]:
        if block.kind == "item":
            body += f"### {block.label}\n\n{text.prose(block.text[:1].upper() + block.text[1:])}\n\n"
        else:
            body += text.blocks([block])
    body += "## All of it\n\n"
    for (place, (title, _)), section in zip(sections, header.sections):
        body += f"### [{title}]({place.rpartition('/')[2]})\n\n"
        for group in section.groups:
            for item in group.items:
                if item.kind != "constants":
                    summary = text.prose(comment.name_line(group.comment.summary))
                    body += f"- {text.link(item.name, item.name)}: {summary}\n"
        body += "\n"
    return (header.name.partition("/")[2], body)
