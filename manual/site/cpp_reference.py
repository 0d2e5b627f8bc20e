"""The pages of haul.hpp and atomic.hpp."""

import re


def declaration(text):
    """A declaration in lines: its template and requirements, then itself, one parameter a line where it is long."""
    lines = []
    match = re.match(r"(template <[^>]*>) (requires ?(?:\(.*?\)\)|[\w:<>]+)) (.*)$", text)
    if match:
        lines, text = list(match.groups()[:2]), match.group(3)
    if len(text) > 88 and "(" in text:
        head, _, rest = text.partition("(")
        text = head + "(\n    " + rest.replace(", ", ",\n    ")
    return "\n".join(lines + [text])


def entry_text(text, entry, level, anchor):
    result = f"{'#' * level} `{entry.name}` {{ #{anchor} }}\n\n" if level < 4 else ""
    result += "```cpp\n" + "\n".join(declaration(one) for one in entry.declarations) + "\n```\n\n"
    if entry.comment:
        result += text.prose(entry.comment) + "\n\n"
    return result + "".join(entry_text(text, member, 4, "") for member in entry.members)


def page(header, text):
    """(title, Markdown); `text` is the Text of this page."""
    name = header.name.partition("/")[2]
    body = f"# {name}\n\n"
    for block in header.overview:
        body += f"```cpp\n{block.text}\n```\n\n" if block.kind == "code" else text.prose(block.text) + "\n\n"
    body += f"Include `<{header.name}>`; all of it is in namespace `{header.namespace}`.\n\n"
    seen = {}
    for entry in header.entries:
        seen[entry.name] = seen.get(entry.name, 0) + 1
        anchor = entry.name if seen[entry.name] == 1 else f"{entry.name}-{seen[entry.name]}"
        body += entry_text(text, entry, 2, anchor)
    return name, body
