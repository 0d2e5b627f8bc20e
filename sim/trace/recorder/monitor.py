"""QEMU's monitor (QMP), over a socket that the recorder made."""

import json

from guests.problem import Problem


class Monitor:
    def __init__(self, connection):
        connection.settimeout(60)
        self._connection = connection
        self._pending = b""
        self._ready = False

    def ask(self, command, **arguments):
        """What QEMU returns for a command; None for a command it refuses."""
        if not self._ready:
            self._ready = True
            self._receive()  # its greeting
            self.ask("qmp_capabilities")
        message = {"execute": command}
        if arguments:
            message["arguments"] = arguments
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
            while True:
                answer = self._receive()
                if "return" in answer:
                    return answer["return"]
                if "error" in answer:
                    return None
        except OSError as error:
            raise Problem(f"QEMU's monitor does not answer ({error}); look at what else the host is doing.") from error

    def _receive(self):
        while b"\n" not in self._pending:
            piece = self._connection.recv(65536)
            if not piece:
                raise Problem("QEMU ended while the recorder asked it something; its memory may have run out.")
            self._pending += piece
        line, self._pending = self._pending.split(b"\n", 1)
        return json.loads(line)

    def virtqueues(self):
        """(name, descriptors, available, used, size) of each queue that a driver uses."""
        found = []
        devices = self.ask("x-query-virtio")
        if devices is None:
            raise Problem("QEMU cannot say where its virtqueues are; install qemu-system-x86 7.2 or later.")
        for number, device in enumerate(reversed(devices)):  # the last made comes first
            for index in range(64):
                queue = self.ask("x-query-virtio-queue-status", path=device["path"], queue=index)
                if queue is None:
                    break
                if queue["vring-desc"] == 0:
                    continue
                name = f"{device['name']}{number}.{index}"
                found.append((name, queue["vring-desc"], queue["vring-avail"], queue["vring-used"], queue["vring-num"]))
        return found
