from collections.abc import Sequence


class Window:
    """
    Memory on which remote atomics may act; made by Node.window() or attach().

    It has the buffer protocol: numpy.frombuffer(window, "u8") are its words here, which
    the operations change, too.
    """

    @property
    def name(self) -> str:
        """What others pass to Node.connect(): one word of text, with a key."""

    @property
    def nbytes(self) -> int:
        """Its length in bytes."""

    def __len__(self) -> int: ...

class Node:
    """
    A place in the network: it may serve windows, and reach those of other nodes.

    responder: who executes what others ask: "none", "block[:ADDRESS]", "spin", "poll",
    "xdp:INTERFACE" (root), "fabric:PROVIDER"; atomic.h has all. host: what windows' names say.
    port: UDP port, 0 for any. timeout: seconds until an operation without an answer fails.
    sessions, connections: room for clients, for connections with a completion map; 0: default.
    cpu: the responder's thread's. Raises haul.Error. May take a second.
    """

    def __init__(self, responder: str = 'none', *, host: str | None = None, port: int = 0, timeout: float = 5.0, sessions: int = 0, connections: int = 0, cpu: int | None = None) -> None: ...

    def window(self, nbytes: int) -> Window:
        """Makes a zeroed window of nbytes bytes; at most 256 a node."""

    def connect(self, name: str) -> Remote:
        """
        Connects to a window of another node, by its name. Waits for up to the node's timeout.
        """

    def describe(self) -> str:
        """Who serves, how, and why not as asked, in one line."""

    def counters(self) -> dict:
        """What it has served and dropped: a dict of numbers."""

    def close(self) -> None:
        """
        Closes it, once the last of its connections and locks is gone, too. Its windows' memory stays.
        """

    def __enter__(self) -> Node: ...

    def __exit__(self, *exception: object) -> None: ...

class Remote:
    """
    Another node's window, as reached from here; made by Node.connect().

    Offsets are bytes from the window's beginning, multiples of width. Words are unsigned, of width 8 or 4 bytes;
    negative operands are taken as two's complement. Each call waits for its answer (a round trip, without the
    GIL) and returns the word before the operation. token: a fencing token (haul.Lock), which makes the word a
    guarded one. Raises haul.Error: EFAULT (outside the window), ETIMEDOUT, ESTALE (an old token), EPEER.
    """

    @property
    def nbytes(self) -> int:
        """The window's length."""

    def read(self, offset: int, *, width: int = 8, token: int | None = None) -> int:
        """The word."""

    def write(self, offset: int, value: object, *, width: int = 8, token: int | None = None) -> None:
        """Writes a word; returns None."""

    def fetch_add(self, offset: int, value: object, *, width: int = 8, token: int | None = None) -> int:
        """Adds."""

    def fetch_write(self, offset: int, value: object, *, width: int = 8, token: int | None = None) -> int:
        """Writes, and fetches what was there."""

    def fetch_and(self, offset: int, value: object, *, width: int = 8, token: int | None = None) -> int:
        """Clears the bits that value has not."""

    def fetch_or(self, offset: int, value: object, *, width: int = 8, token: int | None = None) -> int:
        """Sets the bits that value has."""

    def fetch_xor(self, offset: int, value: object, *, width: int = 8, token: int | None = None) -> int:
        """Turns the bits that value has."""

    def compare_swap(self, offset: int, value: object, compare: object, *, width: int = 8, token: int | None = None) -> int:
        """
        Writes value if the word equals compare; it did if the result equals compare.
        """

    def run(self, operations: Sequence, *, width: int = 8, token: int | None = None) -> list:
        """
        1 to 16 operations as one packet, executed in order: tuples (word, offset, operand, compare), such as
        ("add", 0, 1); words are read, write, add, swap, cas, and, or, xor. Returns the old words, a list.
        """

def attach(name: str) -> Window:
    """Maps the window of another process of this host and user, by its name."""

def directory_nbytes(members: int) -> int:
    """
    How many bytes a window needs that is the home of a lock with so many members.
    """

class Lock:
    """
    A queue lock between processes on any hosts: first come, first served, with leases.

    home: the name of a window that is the lock, of haul.atomic.directory_nbytes(members) zeroed bytes from
    `offset` on. members: how many may have it open at once; all give the same. lease: seconds after which a
    holder that gives no sign loses it. responder: how this member is reached (haul.atomic.Node).
    `with lock as token:` acquires and releases. The token is greater than every earlier holder's: pass it to
    the operations that the lock guards. An object belongs to one thread at a time (RuntimeError).
    Raises haul.Error; opening takes a few round trips.
    """

    def __init__(self, home: str, *, members: int = 64, lease: float = 1.0, responder: str = 'block', offset: int = 0) -> None: ...

    def acquire(self, timeout: float | None = None) -> int:
        """
        Waits for the lock, without the GIL, and returns the fencing token.

        timeout: seconds, or None for no limit; TimeoutError after that. A broken queue may take a lease and a half
        longer. Raises haul.Error where the home cannot be reached (ETIMEDOUT after the node's 5 s, EPEER, EPERM) or
        the lock is held by this object (EINVAL), and what a signal's handler raises: it then leaves the queue.
        """

    def release(self) -> None:
        """
        Releases it, to whoever has waited longest. Raises haul.Error: ESTALE where the lease was over and
        another member has the lock by now, EINVAL where it is not held.
        """

    def renew(self) -> None:
        """
        Begins a new lease; the token stays. Raises haul.Error as release() does.
        """

    @property
    def remaining(self) -> float:
        """
        For how many seconds nobody else can have the lock; 0 where it is not held.
        """

    def stats(self) -> dict:
        """What this member has seen of the lock: a dict of counts."""

    def close(self) -> None:
        """
        Leaves the lock, releasing it where it is held. A few round trips, or 5 s where the home does not answer.
        Any use afterwards raises ValueError.
        """

    def __enter__(self) -> int: ...

    def __exit__(self, *exception: object) -> None: ...
