"""Text as roff, for the macros of man(7)."""

import re

# In this order: what is code, a function, a constant.
MARKED = re.compile(r"`([^`]+)`|\b(haul_\w+\(\))|\b(HAUL_[A-Z][A-Z_0-9]*\*?)")

SPECIAL = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}


def escaped(text):
    """Nothing in it is taken for an escape, and hyphens can be searched for."""
    return "".join(SPECIAL.get(char, char) for char in text)


def line(text):
    """One line of input that is no request."""
    text = escaped(text)
    return "\\&" + text if text.startswith(".") else text


def bold(text):
    return f"\\fB{escaped(text)}\\fR"


def prose(text):
    """A paragraph: code, functions and constants are bold."""
    result, at = "", 0
    for match in MARKED.finditer(text):
        result += escaped(text[at:match.start()]) + bold(next(group for group in match.groups() if group))
        at = match.end()
    result += escaped(text[at:])
    return "\\&" + result if result.startswith(".") else result


def code(text):
    """Lines as they stand."""
    return ".EX\n" + "\n".join(line(one) for one in text.splitlines()) + "\n.EE\n"


def prototype(text, width=72):
    """A declaration as bold lines, broken behind commas where it is long."""
    if len(text) > width and "(" in text:
        head, rest = re.match(r"(.*?\()(.*)$", text).groups()
        indent = head if len(head) <= 40 else "    "
        lines, current = [], head if len(head) <= 40 else ""
        if len(head) > 40:
            lines.append(head)
            current = indent
        for number, word in enumerate(re.split(r"(?<=,) ", rest)):
            blank = "" if current in (head, indent) else " "
            if len(current + blank + word) > width and blank:
                lines.append(current)
                current, blank = " " * len(indent), ""
            current += blank + word
        text = "\n".join(lines + [current])
    return "".join(f"{bold(one)}\n" for one in text.splitlines())


def blocks(some, first=True):
    """Paragraphs, items and code of a comment."""
    text = ""
    for block in some:
        if block.kind == "item":
            text += f".TP\n{bold(block.label)}\n{prose(block.text)}\n"
        elif block.kind == "code":
            text += (".PP\n" if not first else "") + code(block.text)
        else:
            text += (".PP\n" if not first else "") + prose(block.text) + "\n"
        first = False
    return text
