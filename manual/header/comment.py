"""A comment of a header as what it says: a summary, and blocks of text under the headings of a manual page.

A comment's first sentence is its summary. The sentences that follow belong to its description, until one begins with a
word of LEADS: then that heading goes on until another one's lead. So a comment gives its description first, then what
is returned, the errors, what it blocks on and who may call it, and the papers.
"""

import re
from dataclasses import dataclass, field

LEADS = [
    ("returns", re.compile(r"Returns\b|(0|1|Negative|NULL|Always 0)\b[:;,.]|[01] if\b|NULL and\b|NULL, and\b")),
    ("errors", re.compile(r"HAUL_E[A-Z]+\b|Refusals:|Another error:|If [^:]*: HAUL_E")),
    ("context", re.compile(r"Blocks\b(?! of)|Waits up to\b|Never (blocks|waits|sleeps)\b|Async-signal-safe|Any thread|"
                           r"Fork:|May (take|make) a\b|(A|One) (system call|round trip)\b")),
    ("papers", re.compile(r"\(Paper ")),
]
HEADINGS = ["description"] + [name for name, _ in LEADS]
ITEM = re.compile(r"(HAUL_E[A-Z]+(?:, HAUL_E[A-Z]+)*(?: and others)?|0|1|Negative|NULL): (.*)", re.S)
NEXT_ITEM = re.compile(r"; (?=HAUL_E[A-Z]+: )")
INTERVAL = re.compile(r"\[[^\[\]()]*\)")


@dataclass
class Block:
    """A paragraph ("text"), lines as they stand ("code"), or a paragraph behind a label ("item")."""
    kind: str
    text: str
    label: str = ""


@dataclass
class Comment:
    summary: str = ""
    headings: dict = field(default_factory=dict)  # heading -> blocks; "description" begins with the summary

    def blocks(self, heading):
        return self.headings.get(heading, [])

    def text(self):
        return "\n".join(f"{block.label} {block.text}" for name in HEADINGS for block in self.blocks(name))


def flowing(raw):
    """The text of a comment as one line."""
    lines = [line.strip() for line in re.sub(r"^/\*|\*/$", "", raw.strip()).splitlines()]
    return " ".join(re.sub(r"^\* ?", "", line) for line in lines if line).strip()


def blocks_of(raw):
    """The paragraphs, items (" - label: ...") and indented lines of a comment."""
    lines = re.sub(r"^/\* ?|\s*\*/$", "", raw.strip()).splitlines()
    lines = [lines[0]] + [re.sub(r"^\s*\* ?", "", line) for line in lines[1:]] if lines else []
    return blocks_of_lines(lines)


def blocks_of_lines(lines):
    blocks, current = [], None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        item = re.match(r" - (\w[^:]*): (.*)", line)
        if not line.strip():
            if current is not None and current.kind == "code":
                current.text += "\n"
            else:
                current = None
        elif item:
            current = Block("item", item.group(2), item.group(1))
            blocks.append(current)
        elif current is not None and current.kind == "item" and indent >= 2:
            current.text += " " + line.strip()
        elif indent >= 2:
            if current is None or current.kind != "code":
                current = Block("code", "")
                blocks.append(current)
            current.text += line + "\n"
        elif current is not None and current.kind == "text":
            current.text += " " + line.strip()
        else:
            current = Block("text", line.strip())
            blocks.append(current)
    for block in blocks:
        if block.kind == "code":
            code = block.text.strip("\n").splitlines()
            least = min(len(line) - len(line.lstrip()) for line in code if line.strip())
            block.text = "\n".join(line[least:] for line in code)
    return blocks


def sentences(text):
    """Splits where a full stop, outside of parentheses, ends a sentence."""
    masked = INTERVAL.sub(lambda match: "_" * len(match.group(0)), text)
    found, depth, begin = [], 0, 0
    for at, char in enumerate(masked):
        depth += (char == "(") - (char == ")")
        ends = char in ".?!" or (char == ")" and masked[at - 1] == ".")
        if ends and depth == 0 and (at + 1 == len(masked) or masked[at + 1] == " "):
            found.append(text[begin:at + 1].strip())
            begin = at + 1
    rest = text[begin:].strip()
    return found + ([rest] if rest else [])


def heading_of(sentence, current):
    for name, lead in LEADS:
        if lead.match(sentence):
            return name
    return current


def add_sentence(blocks, heading, sentence):
    """To the last paragraph, or as items of their own."""
    if heading in ("returns", "errors"):
        parts = NEXT_ITEM.split(sentence)
        if all(ITEM.match(part) for part in parts):
            for part in parts:
                label, text = ITEM.match(part).groups()
                blocks.append(Block("item", text if text.endswith(".") else text + ".", label))
            return
        if blocks and LEADS[HEADINGS.index(heading) - 1][1].match(sentence):
            blocks.append(Block("text", sentence))
            return
    if blocks and blocks[-1].kind != "code":
        blocks[-1].text += " " + sentence
    else:
        blocks.append(Block("text", sentence))


def parse(raw):
    """The Comment of a raw one, "/* ... */"."""
    result, heading = Comment(), "description"
    for block in blocks_of(raw):
        if block.kind != "text":
            result.headings.setdefault(heading, []).append(block)
            continue
        begun = False
        for sentence in sentences(block.text):
            if not result.summary:
                result.summary = sentence
            else:
                heading = heading_of(sentence, heading)
            blocks = result.headings.setdefault(heading, [])
            if not begun and heading == "description":
                blocks.append(Block("text", sentence))
            else:
                add_sentence(blocks, heading, sentence)
            begun = True
    return result


def name_line(summary):
    """A summary as the line of a NAME section: up to its first ; or :, without its full stop."""
    masked = re.sub(INTERVAL.pattern + r"|\([^()]*\)", lambda match: "_" * len(match.group(0)), summary)
    end = re.search(r"[;:.](?=\s|$)", masked)
    line = summary[:end.start()] if end else summary
    keep = re.match(r"[A-Z]{2}|HAUL_|[A-Z][a-z]*'", line)
    return line if keep else line[:1].lower() + line[1:]
