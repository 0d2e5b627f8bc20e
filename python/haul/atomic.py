"""Atomic operations on another host's memory: fetch&add, fetch&write, compare&swap and their like.

    owner = haul.atomic.Node("block")              # as root at a network interface: Node("xdp:eth0")
    window = owner.window(4096)
    print(window.name)                             # tell others

    counter = haul.atomic.Node().connect(name)     # anybody else
    counter.fetch_add(0, 1)                        # a round trip; the word before

haul.Lock is a queue lock on such a window.
"""

from ._atomic import Lock, Node, Remote, Window, attach, directory_nbytes

__all__ = ["Lock", "Node", "Remote", "Window", "attach", "directory_nbytes"]
