#!/usr/bin/env python3
"""The house of floors (docs/design/design.md), checked on every #include of the tree.

In src/ a file includes only from its own room and from lower floors. The other faces see <haul/...>,
their own room, and the rooms named in FACES. System calls, cpuid and #if live in src/base alone.
Every folder of src/ has a README.md, and no file grows past the limit. sim/ is a house of its own: it sees
itself alone, by its own floors, and the libraries in SIM_LIBRARIES; its two models do not see each other.

Usage: scripts/check_floors.py [ROOT]
"""

import pathlib
import re
import sys

FLOORS = {
    "base": 0,
    "copy": 1,
    "completion": 1,
    "memory": 1,
    "plan": 1,
    "request": 2,
    "engine": 2,
    "mover": 3,
    "tune": 4,
    "api": 5,
}
# What each face may include beside <haul/...> and itself. cli/ and bench/ are one program.
FACES = {
    "cli": {"bench", "base", "copy", "completion", "request", "service", "fabric"},
    "bench": {"base", "copy", "completion"},
    "service": {"base", "copy", "completion", "memory", "request", "engine", "mover"},
    "fabric": {"base", "copy", "completion"},
    "preload": {"base", "completion"},
    "atomic": {"base", "completion"},
    "examples": set(),
}
# Floors within a face: a file's shelf is the longest of these folders that holds it, and it includes from its own
# shelf and from lower ones. Shelves of fabric/endpoint are one floor: libfabric's objects open each other.
FACE_FLOORS = {
    "fabric": {
        "protocol": 0,
        "transport": 1,
        "transport/control": 2,
        "transport/offnode/carrier": 2,
        "transport/local": 3,
        "transport/offnode": 3,
        "transport/joint": 4,
        "endpoint": 5,
    },
}
SIM_FLOORS = {"trace": 0, "format": 0, "convert": 1, "model": 1, "study": 2, "cli": 3}
SIM_LIBRARIES = {"Zydis", "fmt", "CLI", "nlohmann"}
SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
LINES_WARNED = 400
LINES_ALLOWED = 500

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
FOREIGN = re.compile(r"^(fmt|CLI|nlohmann)/|^hwloc")
# Their constructors run when the library is loaded.
UNFIT = {"iostream", "fstream", "sstream", "regex"}
BASE_ONLY = [
    (re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else)\b"), "conditional compilation"),
    (re.compile(r"(?<![\w.])(?:::)?syscall\s*\("), "a raw system call"),
    (re.compile(r"\b(__get_cpuid\w*|__cpuid\w*|__builtin_cpu_\w+)\b"), "cpuid"),
    (re.compile(r"^\s*#\s*include\s*<(linux/\S+|sys/(mman|syscall|ioctl|prctl|eventfd)\.h|cpuid\.h)>"),
     "a system-call header"),
]


def without_comments(text):
    """The text with comments blanked, line numbers kept."""
    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text,
                  flags=re.S)


class House:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.warnings = []
        self.files = 0

    def error(self, path, line, text):
        self.errors.append(f"{path.relative_to(self.root)}:{line}: {text}")

    def check_include(self, path, number, room, quote, target):
        first = target.split("/")[0] if "/" in target else None
        in_src = room in FLOORS
        if quote == "<":
            if first == "haul" or (in_src and not FOREIGN.match(target) and target not in UNFIT):
                return
            if in_src and FOREIGN.match(target):
                self.error(path, number, f"<{target}>: src/ needs libc alone; foreign libraries live in cli/ and bench/")
            elif in_src:
                self.error(path, number, f"<{target}> brings a global constructor; use base/log.hpp or base/os.hpp")
            return
        if first is None:
            self.error(path, number, f'"{target}": write the path from src/ (or from the root), "{room}/{target}"')
        elif first == room:
            if room in FACE_FLOORS:
                self.check_shelf(path, number, room, target)
        elif in_src:
            if first not in FLOORS:
                self.error(path, number, f'"{target}" is in no room of src/; rooms are {", ".join(FLOORS)}')
            elif FLOORS[first] >= FLOORS[room]:
                self.error(path, number, f'"{target}" is on floor {FLOORS[first]}, {room}/ on floor {FLOORS[room]}: '
                                         "include from lower floors only, or move what is shared down")
        elif first not in FACES[room]:
            allowed = ", ".join(sorted(FACES[room])) or "nothing else"
            self.error(path, number, f'"{target}": {room}/ sees <haul/...>, itself and {allowed}')

    def check_shelf(self, path, number, room, target):
        floors = FACE_FLOORS[room]

        def shelf_of(folder):
            return max((shelf for shelf in floors if f"{folder}/".startswith(f"{shelf}/")), key=len, default=None)
        own = shelf_of(path.parent.relative_to(self.root / room).as_posix())
        other = shelf_of(str(pathlib.PurePosixPath(target).parent.relative_to(room)))
        if own is None or other is None:
            self.error(path, number, f'"{target}": no floor is known for one of the two shelves; see FACE_FLOORS')
        elif other != own and floors[other] >= floors[own]:
            self.error(path, number, f'"{target}" is on floor {floors[other]} of {room}/, {own}/ on floor {floors[own]}: '
                                     "include from lower floors only, or move what is shared down")

    def check_sim_include(self, path, number, quote, target):
        rooms = path.relative_to(self.root / "sim").parts
        parts = target.split("/")
        if rooms[0] == "trace":  # the tracer, in C, on QEMU's side of the pipe
            return
        if quote == "<":
            if len(parts) > 1 and parts[0] not in SIM_LIBRARIES | {"sys"}:
                self.error(path, number, f"<{target}>: sim/ stands alone; its libraries are {', '.join(sorted(SIM_LIBRARIES))}")
        elif parts[0] not in SIM_FLOORS:
            self.error(path, number, f'"{target}": sim/ includes its own files alone, by their path from sim/')
        elif parts[0] != rooms[0] and SIM_FLOORS[parts[0]] >= SIM_FLOORS[rooms[0]]:
            self.error(path, number, f'"{target}" is on floor {SIM_FLOORS[parts[0]]} of sim/, {rooms[0]}/ on floor '
                                     f"{SIM_FLOORS[rooms[0]]}: include from lower floors only")
        elif rooms[0] == parts[0] == "model" and {rooms[1], parts[1]} == {"fast", "stepped"}:
            self.error(path, number, f'"{target}": the two models check each other; share it in model/ or write it twice')

    def check_file(self, path, room):
        self.files += 1
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > LINES_ALLOWED:
            self.error(path, lines, f"{lines} lines, {LINES_ALLOWED} are allowed: split it by concept")
        elif lines > LINES_WARNED:
            self.warnings.append(f"{path.relative_to(self.root)}: {lines} lines, aim below {LINES_WARNED}")
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            match = INCLUDE.match(line)
            if match and room == "sim":
                self.check_sim_include(path, number, *match.groups())
            elif match:
                self.check_include(path, number, room, *match.groups())
            if room in FLOORS and room != "base":
                code = STRING.sub('""', line)
                for pattern, what in BASE_ONLY:
                    if pattern.search(code):
                        self.error(path, number, f"{what} outside src/base: give base/ a function for it")

    def check_folder(self, folder, room_of):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES:
                self.check_file(path, room_of(path))

    def check(self):
        source = self.root / "src"
        for room in sorted(p for p in source.iterdir() if p.is_dir()):
            if room.name not in FLOORS:
                self.errors.append(f"src/{room.name}: no such room in the house; add it to the design and to {__file__}")
                continue
            self.check_folder(room, lambda path: path.relative_to(source).parts[0])
            for folder in [room, *sorted(p for p in room.rglob("*") if p.is_dir())]:
                if any(p.is_file() for p in folder.iterdir()) and not (folder / "README.md").is_file():
                    self.errors.append(f"{folder.relative_to(self.root)}: has no README.md; say in a few lines "
                                       "what lives there and what must not")
        if (self.root / "sim").is_dir():
            self.check_folder(self.root / "sim", lambda path: "sim")
        for face in FACES:
            if (self.root / face).is_dir():
                self.check_folder(self.root / face, lambda path: face)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    house = House(root)
    house.check()
    for text in house.warnings:
        print(f"warning: {text}")
    for text in house.errors:
        print(f"error: {text}")
    print(f"floors: {house.files} files, {len(house.errors)} errors, {len(house.warnings)} warnings")
    return 1 if house.errors else 0


if __name__ == "__main__":
    sys.exit(main())
