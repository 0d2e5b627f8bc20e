#!/usr/bin/env python3
"""The house of floors (docs/design/design.md), checked on every #include of the tree.

In src/ a file includes only from its own room and from lower floors. The other faces see <haul/...>, the rooms
named in FACES, and of their own folders those on lower floors (FACE_FLOORS). System calls, cpuid and #if live in
src/base alone. sim/ is a house of its own: it sees itself alone, by its own floors, and the libraries in
SIM_LIBRARIES; its two models do not see each other.

A type's name is defined once: among the classes, structs, unions and enums at namespace scope of headers and
sources, outside tests/. (Types within a class are named by their class. sim/ counts for itself.) Each folder has
a README.md, no file grows past the limit, and a folder that holds too many sources is warned of.

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
    "gate": 3,
    "execution": 3,
    "client": 4,
    "mover": 5,
    "tune": 6,
    "api": 7,
}
# What each face may include beside <haul/...> and itself. cli/ and bench/ are one program.
FACES = {
    "cli": {"tools", "bench", "base", "copy", "completion", "request", "service", "fabric", "preload"},
    "bench": {"tools", "base", "copy", "completion", "preload"},
    "tools": {"base"},
    "service": {"base", "copy", "completion", "memory", "request", "engine", "execution", "mover"},
    "fabric": {"base", "copy", "completion"},
    "preload": {"base", "completion"},
    "devices": {"base", "engine"},
    "atomic": {"base", "completion"},
    "python": set(),
    "examples": set(),
}
# The floors within a face, by folder: "." is the face's own folder, "a/b" a folder of a folder (without an entry
# it belongs to "a"). Files of one entry see each other. An empty table: not settled yet.
FACE_FLOORS = {
    # The folders of endpoint/ are one floor: libfabric's objects open each other.
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
    # link/ is how packets leave and arrive, plugin/ how the foreign libraries are opened. A responder is above the
    # clients, as a fabric's endpoint is both.
    "atomic": {
        ".": 0,
        "wire": 0,
        "bpf": 1,
        "link": 1,
        "plugin": 1,
        "client": 2,
        "xdp": 2,
        "responder": 3,
        "window": 4,
        "fabric": 5,
        "lock": 5,
        "node": 6,
        "api": 7,
    },
    "devices": {"cuda": 0, "dmadev": 0, "dsa": 0, "nic": 0},
    "cli": {"kit": 0, "mpi": 1, "service": 1, "remote": 1, "transparent": 1, "commands": 2, ".": 3},
    "bench": {"kit": 0, "copy": 1, "messages": 2, "transparent": 1, "transparent/programs": 2,
              "remote/hosts": 3, "remote": 4, ".": 5},
    "python": {"src/errors": 0, "src/sides": 1, "src/tickets": 2, "src/atomic": 1, "src": 3},
    "service": {"clients": 0, "copying": 1, "talk": 1, ".": 2},
    "sim": {"trace": 0, "format": 0, "convert": 1, "model": 1, "study": 2, "cli": 3},
}
SIM_LIBRARIES = {"Zydis", "fmt", "CLI", "nlohmann"}
SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
LINES_WARNED = 400
LINES_ALLOWED = 500
FOLDER_WARNED = 24

# Programs that stand alone: each is compiled by itself, and names nothing of haul's.
STAND_ALONE = re.compile(r"^(examples/|bench/(.*/)?mpi/.*\.[ch]$|.*\.bpf\.c$)")

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


LITERALS = r'R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9])\'(?:\\.|[^\'\\\n])*\''
COMMENTS = re.compile(LITERALS + r"|//[^\n]*|/\*.*?\*/", re.S)
LITERAL = re.compile(LITERALS, re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
BRACE = re.compile(r"[{};]")
TRANSPARENT = re.compile(r'^\s*(?:inline\s+)?(?:namespace\b[\w:\s\[\]]*|extern\s*)$')
# (Neither a specialization, which repeats its template's name, nor `struct stat fact = {`.)
DEFINITION = re.compile(
    r"^\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:(?:alignas\s*\([^()]*(?:\([^()]*\))?[^()]*\)|\[\[[^\]]*\]\]|__attribute__\s*\(\([^()]*(?:\([^()]*\))?\)\))\s*)*"
    r"([A-Za-z_]\w*)(?:\s+final)?\s*(?::(?!:).*)?$", re.S)


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text):
    """The text with comments blanked, line numbers kept."""
    return COMMENTS.sub(lambda match: match.group(0) if match.group(0)[0] in "R\"'" else blanked(match), text)


def types_defined(code):
    """(name, line) of each type that `code`, without comments, defines at namespace scope."""
    code = DIRECTIVE.sub(blanked, LITERAL.sub(blanked, code))
    found = []
    inner = 0  # how deep in braces that are no namespace's
    scopes = []
    begin = 0
    for match in BRACE.finditer(code):
        kind = match.group(0)
        if kind == "{":
            head = code[begin:match.start()] if inner == 0 else ""
            transparent = inner == 0 and TRANSPARENT.match(head) is not None
            definition = DEFINITION.match(head) if inner == 0 and not transparent else None
            if definition:
                found.append((definition.group(1), code.count("\n", 0, begin + definition.start(1)) + 1))
            scopes.append(transparent)
            inner += not transparent
        elif kind == "}" and scopes:
            inner -= not scopes.pop()
        begin = match.end()
    return found


class House:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.warnings = []
        self.files = 0
        self.types = {}  # (house, name) -> [(path, line)]

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
                self.error(path, number, f"<{target}> brings a global constructor; use base/log.hpp or base/os/os.hpp")
            return
        if first is None:
            self.error(path, number, f'"{target}": write the path from src/ (or from the root), "{room}/{target}"')
        elif first == room:
            if not in_src:
                self.check_floor_of_face(path, number, room, target)
        elif in_src:
            if first not in FLOORS:
                self.error(path, number, f'"{target}" is in no room of src/; rooms are {", ".join(FLOORS)}')
            elif FLOORS[first] >= FLOORS[room]:
                self.error(path, number, f'"{target}" is on floor {FLOORS[first]}, {room}/ on floor {FLOORS[room]}: '
                                         "include from lower floors only, or move what is shared down")
        elif first not in FACES[room]:
            allowed = ", ".join(sorted(FACES[room])) or "nothing else"
            self.error(path, number, f'"{target}": {room}/ sees <haul/...>, itself and {allowed}')

    def floor_of(self, room, parts):
        """The entry of FACE_FLOORS that holds the folder `parts` of a face."""
        folders = FACE_FLOORS[room]
        while parts and "/".join(parts) not in folders:
            parts = parts[:-1]
        return "/".join(parts) or "."

    def check_floor_of_face(self, path, number, room, target):
        floors = FACE_FLOORS.get(room)
        if not floors:
            return
        mine = self.floor_of(room, path.relative_to(self.root / room).parts[:-1])
        other = self.floor_of(room, tuple(target.split("/")[1:-1]))
        for folder in (mine, other):
            if folder not in floors:
                self.error(path, number, f"{room}/{folder} has no floor; add it to FACE_FLOORS")
                return
        if mine != other and floors[other] >= floors[mine]:
            self.error(path, number, f'"{target}" is on floor {floors[other]} of {room}/, {mine}/ on floor {floors[mine]}: '
                                     "include from lower floors only, or move what is shared down")

    def check_types(self):
        for (house, name), places in sorted(self.types.items()):
            if len(places) == 1:
                continue
            where = ", ".join(f"{path}:{line}" for path, line in places)
            text = f"{name} names {len(places)} types: {where}; name each by what it is"
            self.errors.append(text)

    def check_sim_include(self, path, number, quote, target):
        floors = FACE_FLOORS["sim"]
        rooms = path.relative_to(self.root / "sim").parts
        parts = target.split("/")
        if rooms[0] == "trace":  # the tracer, in C, on QEMU's side of the pipe
            return
        if quote == "<":
            if len(parts) > 1 and parts[0] not in SIM_LIBRARIES | {"sys"}:
                self.error(path, number, f"<{target}>: sim/ stands alone; its libraries are {', '.join(sorted(SIM_LIBRARIES))}")
        elif parts[0] not in floors:
            self.error(path, number, f'"{target}": sim/ includes its own files alone, by their path from sim/')
        elif parts[0] != rooms[0] and floors[parts[0]] >= floors[rooms[0]]:
            self.error(path, number, f'"{target}" is on floor {floors[parts[0]]} of sim/, {rooms[0]}/ on floor '
                                     f"{floors[rooms[0]]}: include from lower floors only")
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
        code = without_comments(text)
        place = path.relative_to(self.root).as_posix()
        if not STAND_ALONE.match(place):
            for name, line in types_defined(code):
                self.types.setdefault(("sim" if room == "sim" else "haul", name), []).append((place, line))
        for number, line in enumerate(code.splitlines(), 1):
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

    def check_shelves(self, top):
        """Each folder that holds sources says what lives there, and holds no more than one can look through."""
        for folder in [top, *sorted(p for p in top.rglob("*") if p.is_dir())]:
            name = folder.relative_to(self.root).as_posix()
            files = [p for p in folder.iterdir() if p.is_file()]
            sources = sum(p.suffix in SUFFIXES for p in files)
            if sources > FOLDER_WARNED:
                self.warnings.append(f"{name}: {sources} sources, aim below {FOLDER_WARNED}: make rooms of it")
            if (sources or (name.startswith("src/") and files)) and not (folder / "README.md").is_file():
                text = f"{name}: has no README.md; say in a few lines what lives there and what must not"
                self.errors.append(text)

    def check(self):
        source = self.root / "src"
        for room in sorted(p for p in source.iterdir() if p.is_dir()):
            if room.name not in FLOORS:
                self.errors.append(f"src/{room.name}: no such room in the house; add it to the design and to {__file__}")
                continue
            self.check_folder(room, lambda path: path.relative_to(source).parts[0])
            self.check_shelves(room)
        for face in [*FACES, "sim"]:
            if not (self.root / face).is_dir():
                continue
            self.check_folder(self.root / face, lambda path: face)
            if face != "examples":
                self.check_shelves(self.root / face)
            if not FACE_FLOORS.get(face, True) and any(p.suffix in SUFFIXES for p in (self.root / face).glob("*/**/*")):
                self.warnings.append(f"{face}/: the floors of its folders are not settled (FACE_FLOORS)")
        for path in sorted((self.root / "include").rglob("*.h*")):
            for name, line in types_defined(without_comments(path.read_text(encoding="utf-8"))):
                self.types.setdefault(("haul", name), []).append((path.relative_to(self.root).as_posix(), line))
        self.check_types()


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
