#!/usr/bin/env python3
"""Writes the manual pages of section 3, from haul.h, atomic.h and the examples.

Usage: manual/man_pages.py --out DIR     writes all pages there (man3/ of a MANPATH)
       manual/man_pages.py --functions   the functions that the headers declare: NAME exported|inline HEADER
"""

import argparse
import datetime
import os
import pathlib
import re
import sys

from header import c_header, examples
from man.pages import LIBRARIES, Manual

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"


def version():
    text = (INCLUDE / "haul/haul.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define HAUL_VERSION_[A-Z]+ (\d+)", text))


def date():
    """SOURCE_DATE_EPOCH, which reproducible builds set; else today: as `haul man` has it."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.timezone.utc) if epoch is None else \
        datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
    return now.strftime("%Y-%m-%d")


def main():
    parser = argparse.ArgumentParser(description="Writes haul's manual pages of section 3.")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="write the pages here")
    parser.add_argument("--functions", action="store_true", help="list the functions instead")
    options = parser.parse_args()
    if not options.functions and options.out is None:
        parser.error("give --out a directory")
    try:
        headers = [c_header.read(INCLUDE / name) for name in LIBRARIES]
        shown = examples.read_all()
    except (OSError, ValueError, c_header.HeaderError) as error:
        print(f"man_pages.py: {error}", file=sys.stderr)
        return 1
    if options.functions:
        for header in headers:
            for item in header.functions():
                print(item.name, "exported" if item.kind == "function" else "inline", header.name)
        return 0
    pages = {}
    for header in headers:
        pages.update(Manual(header, shown, version(), date()).pages())
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (options.out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"man_pages.py: cannot write {error.filename} ({error.strerror}); give --out another directory",
              file=sys.stderr)
        return 1
    print(f"wrote {len(pages)} pages to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
