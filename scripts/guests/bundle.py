"""What goes along into the guest: programs of a build directory, their libraries, and the script that starts them."""

import os
import pathlib
import re
import subprocess
import tempfile

from guests.problem import Problem

LIBRARIES = re.compile(r"(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)")


def _content(path):
    """The file's bytes, without what only a debugger reads: a guest keeps its files in memory."""
    with tempfile.NamedTemporaryFile() as file:
        stripped = subprocess.run(["strip", "-g", "-o", file.name, path], capture_output=True, check=False)
        chosen = file.name if stripped.returncode == 0 else path
        return pathlib.Path(chosen).read_bytes()


def _libraries(path):
    """The libraries that a program or a library needs, as this machine's loader finds them."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    if said.returncode != 0 or "not found" in said.stdout:
        raise Problem(f"The libraries of {path} are not all there; build it on this machine.")
    return LIBRARIES.findall(said.stdout)


def bundle(build, programs, scripts):
    """{path in the guest: (bytes, permissions)} of programs and libraries that the build directory has, and of what they
    need, below haul/bin and haul/lib; `scripts`: {name: bytes} beside them."""
    files = {f"haul/{name}": (content, 0o644) for name, content in scripts.items()}
    taken = set()
    paths = [os.path.join(build, name) for name in programs]
    for path in paths:
        if not os.path.exists(path):
            raise Problem(f"{path} is missing; build it (`make` says what that takes), or name another --build.")
    for path in paths:
        folder = "lib" if ".so" in os.path.basename(path) else "bin"
        files[f"haul/{folder}/{os.path.basename(path)}"] = (_content(path), 0o755)
        taken.add(os.path.basename(path))
        for library in _libraries(path):
            name = os.path.basename(library)
            if name in taken:
                continue
            taken.add(name)
            # A program names its loader by an absolute path, and finds the others where it is told to look.
            place = library.lstrip("/") if name.startswith("ld-linux") else f"haul/lib/{name}"
            files[place] = (_content(library), 0o755)
    return files
