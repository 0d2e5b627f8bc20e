"""`await ticket` in asyncio, trio and anyio, without a thread.

A thread's completion queue has one descriptor. While anybody waits, a listener has it in the event loop: asyncio's
add_reader(), or a task of trio's. The queue names a ticket by a number, whose waiters it wakes. A ticket without a number
(the thread's first, small ones, another thread's) is looked at now and then.
"""

import sys
import threading

from ._haul import _anyone_waits, _arm, _queue, _reap

_LOOKS_FROM_S = 0.00005
_LOOKS_UP_TO_S = 0.001

_threads = threading.local()


async def until_done(ticket):
    """Returns the ticket once it has ended well; raises haul.Error where it failed. Cancelling leaves the copy alone."""
    if not ticket.done():
        listener = _listener()
        number = ticket._completion
        if number == 0:
            delay = _LOOKS_FROM_S
            while not ticket.done():
                await listener.sleep(delay)
                delay = min(2 * delay, _LOOKS_UP_TO_S)
        while not ticket.done():
            await listener.hear(number)
    ticket.wait()
    return ticket


def _listener():
    """This thread's listener for the event loop that runs now."""
    kind = _running()
    if kind is None:
        raise RuntimeError("`await ticket` works in asyncio, trio and anyio; elsewhere call ticket.wait()")
    listener = getattr(_threads, "listener", None)
    if type(listener) is not kind:
        listener = _threads.listener = kind()
    listener.descriptor = _queue()
    return listener


def _running():
    trio = sys.modules.get("trio")
    if trio is not None:
        try:
            trio.lowlevel.current_trio_token()
            return _TrioListener
        except RuntimeError:
            pass
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return _AsyncioListener
    return None


class _Listener:
    """Who waits for which number."""

    def __init__(self):
        self.descriptor = -1
        self.waiters = {}

    def take(self):
        """Wakes those whose numbers have come, and leaves the descriptor armed."""
        while _arm():
            for number in _reap():
                for wake in self.waiters.get(number, ()):
                    wake()

    def add(self, number, wake):
        _anyone_waits(True)
        self.waiters.setdefault(number, []).append(wake)

    def remove(self, number, wake):
        waiting = self.waiters[number]
        waiting.remove(wake)
        if not waiting:
            del self.waiters[number]
            _anyone_waits(bool(self.waiters))


class _AsyncioListener(_Listener):
    async def sleep(self, delay):
        import asyncio

        await asyncio.sleep(delay)

    async def hear(self, number):
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def wake():
            if not future.done():
                future.set_result(None)

        self.add(number, wake)
        descriptor = self.descriptor
        loop.add_reader(descriptor, self.take)
        try:
            self.take()
            await future
        finally:
            self.remove(number, wake)
            if not self.waiters:
                loop.remove_reader(descriptor)


class _TrioListener(_Listener):
    def __init__(self):
        super().__init__()
        self.scope = None

    async def sleep(self, delay):
        import trio

        await trio.sleep(delay)

    async def hear(self, number):
        import trio

        event = trio.Event()
        self.add(number, event.set)
        try:
            if self.scope is None:
                self.scope = trio.CancelScope()
                trio.lowlevel.spawn_system_task(self._listen, self.scope)
            self.take()
            await event.wait()
        finally:
            self.remove(number, event.set)
            if not self.waiters and self.scope is not None:
                self.scope.cancel()
                self.scope = None

    async def _listen(self, scope):
        import trio

        with scope:
            while True:
                await trio.lowlevel.wait_readable(self.descriptor)
                self.take()
