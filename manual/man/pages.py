"""The manual pages of section 3: one a group of declarations, and an overview a header."""

import re

from header import comment
from man import roff

# What a program links for a header, and the page of its overview.
LIBRARIES = {
    "haul/haul.h": ("libhaul", "haul", "haul"),
    "haul/atomic.h": ("libhaul-atomic", "haul-atomic", "haul_atomic"),
}
NOTHING = "\\&"  # what stands behind a label has to be something
TYPES = ("struct", "enum", "opaque", "callback", "alias")


def has_page(group):
    """Constants alone are listed by the overview."""
    return bool(group.of_kind("function", "inline", *TYPES))


def names_of(group):
    """The functions and types of a group, its functions first: the first one is the page's name."""
    functions = [item.name for item in group.of_kind("function", "inline")]
    return functions + [item.name for item in group.of_kind(*TYPES)]


def signature(item):
    if item.kind not in ("struct", "enum", "constants"):
        return item.text
    end = ";" if item.kind == "struct" else ","
    name = f" {item.name}" if item.kind != "constants" else ""
    return "\n".join([item.text + " {", *(f"    {member.text}{end}" for member in item.members), f"}}{name};"])


class Manual:
    """The pages of one header. `examples`: the Examples; `date` as in .TH."""

    def __init__(self, header, examples, version, date):
        self.header, self.examples = header, examples
        self.version, self.date = version, date
        self.library, self.package, self.overview_name = LIBRARIES[header.name]
        with_pages = [group for group in header.groups() if has_page(group)]
        self.page_of = {name: names_of(group)[0] for group in with_pages for name in names_of(group)}

    def pages(self):
        """{file name: text}"""
        result = {f"{self.overview_name}.3": self.overview()}
        for section in self.header.sections:
            for group in section.groups:
                if has_page(group):
                    first, *others = names_of(group)
                    result[f"{first}.3"] = self.page(section, group)
                    result.update({f"{other}.3": f".so man3/{first}.3\n" for other in others})
        return result

    def head(self, names, summary):
        return (f'.\\" Generated from {self.header.name}; do not edit.\n'
                f'.TH {names[0]} 3 {self.date} "haul {self.version}" "haul"\n'
                f".SH NAME\n{', '.join(names)} \\- {roff.escaped(summary.replace('`', ''))}\n"
                f".SH LIBRARY\n{self.library} (pkg\\-config {roff.bold(self.package)}, "
                f"{roff.bold('-l' + self.library[3:])})\n")

    def page(self, section, group):
        names = names_of(group)
        text = self.head(names, comment.name_line(group.comment.summary))
        text += f".SH SYNOPSIS\n.nf\n{roff.bold(f'#include <{self.header.name}>')}\n"
        for item in group.items:
            text += ".PP\n" + "".join(roff.prototype(line) for line in signature(item).splitlines())
        text += ".fi\n.SH DESCRIPTION\n" + roff.blocks(group.comment.blocks("description"))
        text += self.members(group)
        text += self.returns(group)
        if group.comment.blocks("errors"):
            text += ".SH ERRORS\n" + roff.blocks(group.comment.blocks("errors"))
        if group.of_kind("function"):
            text += ".SH ATTRIBUTES\n" + roff.blocks(group.comment.blocks("context"))
            text += (".PP\n" if group.comment.blocks("context") else "")
            text += f"For threads, signals, fork and cancellation see {roff.bold(self.overview_name)}(3).\n"
        if group.comment.blocks("papers"):
            text += ".SH NOTES\n" + roff.blocks(group.comment.blocks("papers"))
        return text + self.example(group) + self.see_also(section, group)

    def members(self, group):
        text = ""
        for item in group.items:
            commented = [member for member in item.members if member.comment]
            if commented:
                text += ".SS " + ("Members" if item.kind == "struct" else "Values") + "\n"
                text += "".join(self.member(member) for member in commented)
        return text

    def member(self, member):
        return f".TP\n{roff.bold(member.text)}\n{roff.prose(member.comment) or NOTHING}\n"

    def returns(self, group):
        own = group.comment.blocks("returns")
        functions = group.of_kind("function", "inline")
        if not own and any(item.text.startswith(("int ", "static inline int ")) for item in functions):
            own = [block for block in self.header.overview if block.label == "Return"]
            return ".SH RETURN VALUE\n" + roff.prose(own[0].text) + "\n"
        return ".SH RETURN VALUE\n" + roff.blocks(own) if own else ""

    def example(self, group):
        for example in self.examples:
            if set(names_of(group)) & set(example.names):
                return f".SH EXAMPLES\n{roff.prose(example.intro)}\n.PP\n{roff.code(example.code)}"
        return ""

    def see_also(self, section, group):
        own = set(names_of(group))
        text = group.comment.text() + " ".join(signature(item) for item in group.items)
        named = [self.page_of[word] for word in re.findall(r"\bhaul_\w+", text) if word in self.page_of]
        beside = [names_of(other)[0] for other in section.groups if has_page(other)]
        pages = [name for name in dict.fromkeys(sorted(named + beside)) if name not in own]
        references = ",\n".join(f"{roff.bold(name)}(3)" for name in [self.overview_name, *pages])
        return f".SH SEE ALSO\n.ad l\n.nh\n{references}\n"

    def overview(self):
        first, *rest = self.header.overview
        _, summary = first.text.split(": ", 1)
        what, more = comment.sentences(summary)[0], " ".join(comment.sentences(summary)[1:])
        text = self.head([self.overview_name], comment.name_line(what))
        text += f".SH SYNOPSIS\n.nf\n{roff.bold(f'#include <{self.header.name}>')}\n.fi\n"
        text += ".SH DESCRIPTION\n" + roff.prose(more) + "\n" + roff.blocks(rest, first=False)
        for section in self.header.sections:
            text += f".SH {roff.escaped(section.title.upper())}\n"
            for number, group in enumerate(section.groups):
                if has_page(group):
                    first, *others = names_of(group)
                    label = ", ".join(f"{roff.bold(name)}(3)" for name in [first, *others])
                    text += f".TP\n{label}\n{roff.prose(group.comment.summary)}\n"
                else:
                    text += self.constants(group, number == 0)
        return text + ".SH SEE ALSO\n" + f"{roff.bold('haul')}(1), {roff.bold('haul-knobs')}(7)\n"

    def constants(self, group, first):
        text = ""
        macros = group.of_kind("macro")
        if macros:
            text += f".TP\n{roff.bold(macros[0].text)}\n"
            text += "".join(f".TQ\n{roff.bold(item.text)}\n" for item in macros[1:])
            text += roff.blocks(group.comment.blocks("description"))
        for item in group.of_kind("constants"):
            text += ("" if first else ".PP\n") + roff.blocks(group.comment.blocks("description")) + ".RS 4\n"
            text += "".join(self.member(member) for member in item.members)
            text += ".RE\n"
        return text
