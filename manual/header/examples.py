"""The example programs: examples/*.c, each with a first comment "NAME, NAME...: what it shows"."""

import pathlib
import re
from dataclasses import dataclass

from header import comment

FOLDER = pathlib.Path(__file__).parent.parent / "examples"


@dataclass
class Example:
    file: str
    names: list  # the functions and types that it is the example of
    intro: str
    code: str


def read(path):
    text = path.read_text(encoding="utf-8")
    first = re.match(r"/\*.*?\*/\n", text, re.S)
    names, _, intro = comment.flowing(first.group(0)).partition(": ") if first else ("", "", "")
    if not re.fullmatch(r"haul_\w+(, haul_\w+)*", names):
        raise ValueError(f"{path}: begins with no comment 'NAME, NAME...: what it shows'")
    return Example(path.name, names.split(", "), intro[:1].upper() + intro[1:], text[first.end():].strip("\n"))


def read_all():
    return [read(path) for path in sorted(FOLDER.glob("*.c"))]
