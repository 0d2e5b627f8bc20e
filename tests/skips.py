#!/usr/bin/env python3
"""Compares what tests skipped with tests/skips.txt.

  skips.py CONFIGURATION LAST_TEST_LOG            (CTest's Testing/Temporary/LastTest.log)
  skips.py --tests CONFIGURATION LAST_TEST_LOG    prints the tests that skipped something for a reason which the list
                                                  does not have for all configurations: another one asserts it

CONFIGURATION is root, nobody (an ordinary user), asan or tsan. Prints how many cases were skipped, for each reason;
a reason that the list does not have for the configuration fails the run: a test that skips for it asserts nothing.
"""

import collections
import pathlib
import re
import sys

# GoogleTest's: "file:line: Skipped", then the sentence. A script's: "skipped: the sentence".
REASON = re.compile(r"^\S+:\d+: Skipped\n(.*)|^skipped: (.*)|^skip   ([^\n]*)", re.MULTILINE)


# A test's part of the log.
TEST = re.compile(r"^\d+/\d+ Testing: (\S+)\n(.*?)(?=^\d+/\d+ Testing: |\Z)", re.MULTILINE | re.DOTALL)


def reasons_of(text):
    """The sentences with which tests skipped."""
    for match in REASON.finditer(text):
        yield next(group for group in match.groups() if group is not None).strip()


def allowed_reasons(configuration, of_all=True):
    """The patterns of the list's lines for the configuration; not `of_all`: those that not every one has."""
    patterns = []
    for line in (pathlib.Path(__file__).parent / "skips.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            configurations, pattern = line.split(None, 1)
            if (of_all and configurations == "all") or configuration in configurations.split(","):
                patterns.append(re.compile(pattern))
    return patterns


def print_tests(configuration, text):
    patterns = allowed_reasons(configuration, of_all=False)
    for name, output in TEST.findall(text):
        if any(pattern.search(reason) for reason in reasons_of(output) for pattern in patterns):
            print(name)


def main():
    configuration, log = sys.argv[-2:]
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")
    if sys.argv[1] == "--tests":
        print_tests(configuration, text)
        return 0
    patterns = allowed_reasons(configuration)
    found = collections.Counter(reasons_of(text))
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
