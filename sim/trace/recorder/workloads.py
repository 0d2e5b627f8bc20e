"""What can be recorded: the machines of each workload, and what each needs."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Machine:
    role: str
    address: int = 0  # the last byte of its network address; 0: it has no network
    scratch_mb: int = 0  # an ext3 disk of that size


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    machines: tuple
    what: str

    def traces(self):
        """The traces' names, one for each machine."""
        if len(self.machines) == 1:
            return (self.name,)
        return tuple(f"{self.name}-{machine.role}" for machine in self.machines)


_pair = (Machine("sender", address=1), Machine("receiver", address=2))

WORKLOADS = {
    one.name: one
    for one in (
        Workload("apache", _pair, "apache serves pages of 4 to 64 KB to ab on another machine"),
        Workload("iperf", _pair, "iperf3 sends by TCP through a window of 264 KB to another machine"),
        Workload("fio", (Machine("machine", scratch_mb=64),), "fio writes and rewrites a file of 4 MB on ext3"),
    )
}
