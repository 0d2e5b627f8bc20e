#!/usr/bin/env python3
"""Checks a wheel of haul: that it holds haul's own libraries alone, which need libc alone, that it is small, and that
its name says which systems can load it.

Usage: python/check_wheel.py WHEEL...
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

LIBRARY = re.compile(r"^haul/(libhaul\.so\.0|libhaul-atomic\.so\.0|_(haul|atomic)\.(abi3|abi3t|cpython-[\w-]+)\.so)$")
NEEDED = {"libhaul.so.0", "libhaul-atomic.so.0", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
LARGEST_BYTES = 2_000_000


def dynamic_entries(library):
    """[(tag, value)] of an ELF file's dynamic section, such as ("NEEDED", "libc.so.6")."""
    said = subprocess.run(["readelf", "-dW", str(library)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\((NEEDED|RPATH|RUNPATH|SONAME)\)[^\[]*\[([^\]]*)\]", said)


def faults_of_library(library, name):
    entries = dynamic_entries(library)
    for tag, value in entries:
        if tag == "NEEDED" and value not in NEEDED:
            yield f"{name} needs {value}: link it statically, or leave what uses it to a plug-in"
        if tag in ("RPATH", "RUNPATH") and value != "$ORIGIN":
            yield f"{name} looks for libraries in {value}: set INSTALL_RPATH to $ORIGIN"
    if name.startswith("haul/_") and ("RUNPATH", "$ORIGIN") not in entries and ("RPATH", "$ORIGIN") not in entries:
        yield f"{name} does not look for libhaul beside itself: set INSTALL_RPATH to $ORIGIN"


def faults(wheel):
    if wheel.stat().st_size > LARGEST_BYTES:
        yield f"it has {wheel.stat().st_size} bytes, more than {LARGEST_BYTES}: strip its libraries"
    if "-manylinux_" not in wheel.name:
        yield "its name does not say which libc it needs: repair it (scripts/python.sh wheel)"
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if ".so" in pathlib.PurePath(name).name]
        if sum(bool(LIBRARY.match(name)) for name in names) != 4:
            yield f"it has the libraries {', '.join(names)}, where libhaul, libhaul-atomic and two modules should be"
        for name in names:
            if not LIBRARY.match(name):
                yield f"it holds {name}, which is not haul's: nothing else may be in it"
                continue
            yield from faults_of_library(archive.extract(name, folder), name)


def main():
    if len(sys.argv) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    failed = False
    for wheel in map(pathlib.Path, sys.argv[1:]):
        found = list(faults(wheel))
        for fault in found:
            print(f"{wheel.name}: {fault}", file=sys.stderr)
        if not found:
            print(f"{wheel.name}: {wheel.stat().st_size} bytes, holds libhaul and libhaul-atomic alone")
        failed |= bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
