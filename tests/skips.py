#!/usr/bin/env python3
"""Compares what tests skipped with tests/skips.txt.

  skips.py CONFIGURATION LAST_TEST_LOG    (CTest's Testing/Temporary/LastTest.log)

CONFIGURATION is root, nobody (an ordinary user), asan or tsan. Prints how many cases were skipped, for each reason;
a reason that the list does not have for the configuration fails the run: a test that skips for it asserts nothing.
"""

import collections
import pathlib
import re
import sys

# GoogleTest's: "file:line: Skipped", then the sentence. A script's: "skipped: the sentence".
REASON = re.compile(r"^\S+:\d+: Skipped\n(.*)|^skipped: (.*)|^skip   ([^\n]*)", re.MULTILINE)


def allowed_reasons(configuration):
    """The patterns of the list's lines for the configuration."""
    patterns = []
    for line in (pathlib.Path(__file__).parent / "skips.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            configurations, pattern = line.split(None, 1)
            if configurations == "all" or configuration in configurations.split(","):
                patterns.append(re.compile(pattern))
    return patterns


def main():
    configuration, log = sys.argv[1:]
    patterns = allowed_reasons(configuration)
    found = collections.Counter()
    for match in REASON.finditer(pathlib.Path(log).read_text(encoding="utf-8", errors="replace")):
        found[next(group for group in match.groups() if group is not None).strip()] += 1
    unexpected = 0
    for reason, count in sorted(found.items()):
        expected = any(pattern.search(reason) for pattern in patterns)
        unexpected += not expected
        print(f"{'skipped' if expected else 'SKIPPED UNEXPECTEDLY'} {count:3}: {reason}")
    print(f"skips: {sum(found.values())} in {configuration}, {unexpected} unexpected reasons")
    if unexpected:
        print("a reason that is right there goes into tests/skips.txt")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
