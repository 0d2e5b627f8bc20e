"""How the programs that run guests end: one line for what went wrong, children and files gone however they end."""

import signal
import sys

from guests.problem import Problem


def _interrupted(number, _frame):
    raise KeyboardInterrupt(number)


def run(name, main, interrupted):
    """The exit status of main(), which returns one; `interrupted`: what is said when a signal ends it."""
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGHUP, _interrupted)
    try:
        return main()
    except Problem as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(f"{name}: {interrupted}", file=sys.stderr)
        return 128 + (stop.args[0] if stop.args else signal.SIGINT)
