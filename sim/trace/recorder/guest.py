"""One virtual machine with the tracer in it, and the converter behind the tracer."""

import glob
import os
import socket
import subprocess

from guests import archive, children, machine
from guests.problem import Problem
from recorder.monitor import Monitor

MEMORY = "768M"  # below the hole that PCI leaves, so that it is one piece from address 0
SYMBOLS_OFFSET = 1 << 20  # guest/start.sh puts them there
# REP_GOOD (112) off: the kernel copies by its unrolled loops, as the paper's did. What later kernels
# added (mitigations, zeroing, hardening, security modules, accounting) is off, addresses are the same
# in each run, and rdrand saves the guest from waiting for entropy.
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 nokaslr norandmaps mitigations=off clearcpuid=112 random.trust_cpu=on"
    " init_on_alloc=0 init_on_free=0 hardened_usercopy=off preempt=none tsc=reliable no_timer_check"
    " transparent_hugepage=never audit=0 selinux=0 apparmor=0 psi=0 cgroup_disable=memory nowatchdog"
)


class Guest:
    """Its life: booting, marked, recording, done."""

    def __init__(self, machine, name, settings, link, folder):
        self.machine, self.name, self.settings = machine, name, settings
        self.state = "booting"
        self.recorded = 0
        self.began = self.ended = 0.0  # of the recording, on the host's clock
        # Last lines of the console, of QEMU and of the converter.
        self.console, self.warnings, self.complaints = [], [], []
        self.dma = {}  # queue: {requests, read, written}
        self.dma_lines = []
        self.folder = folder
        self.qemu = self.converter = None
        self.output = os.path.join(settings.output, name + settings.suffix)
        self.partial = os.path.join(settings.output, f".{name}.{os.getpid()}.partial")
        self.symbols = os.path.join(folder, "kallsyms")
        self._link = link
        self._symbols_disk = os.path.join(folder, "symbols.disk")
        self.control = self.monitor = None
        self._pending = b""

    def start(self):
        out_read, out_write = os.pipe()
        self._out_read = out_read
        self.control, control_theirs = socket.socketpair()
        monitor_ours, monitor_theirs = socket.socketpair()
        self.monitor = Monitor(monitor_ours)
        with open(self._symbols_disk, "wb") as disk:
            disk.truncate(32 << 20)
        given = [out_write, control_theirs.fileno(), monitor_theirs.fileno()]
        command = [*machine.bare(), *self._arguments(*given)]
        if self._link is not None:
            given.append(self._link.fileno())
        try:
            self.qemu = children.start(
                command, pass_fds=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except FileNotFoundError:
            machine.need()
            raise
        finally:
            os.close(out_write)
            control_theirs.close()
            monitor_theirs.close()
            if self._link is not None:
                self._link.close()

    def _arguments(self, out, control, monitor):
        settings = self.settings
        plugin = f"{settings.plugin},out={out},control={control}"
        plugin += f",instructions={settings.instructions},skip={settings.skip}"
        arguments = ["-smp", "1", "-machine", "pc,memory-backend=ram", "-m", MEMORY, "-cpu", "qemu64,+rdrand,-rdseed"]
        arguments += ["-object", f"memory-backend-memfd,id=ram,share=on,size={MEMORY}"]
        arguments += ["-accel", "tcg,thread=single,tb-size=512", "-plugin", plugin]
        if settings.icount != "off":
            arguments += ["-icount", f"shift={settings.icount},sleep=on"]
        arguments += ["-chardev", f"socket,id=qmp,fd={monitor}", "-mon", "chardev=qmp,mode=control"]
        arguments += ["-kernel", os.path.join(settings.guest, "vmlinuz"), "-initrd", self._initrd()]
        words = f" haul.workload={settings.workload.name} haul.role={self.machine.role}"
        arguments += ["-append", KERNEL_ARGUMENTS + words]
        disks = [(os.path.join(settings.guest, "root.ext4"), "on"), (self._symbols_disk, "off")]
        if self.machine.scratch_mb:
            disks.append((self._scratch_disk(), "off"))
        for number, (path, read_only) in enumerate(disks):
            path = path.replace(",", ",,")
            arguments += ["-drive", f"if=none,id=disk{number},format=raw,file={path},readonly={read_only}"]
            arguments += ["-device", f"virtio-blk-pci,drive=disk{number},num-queues=1,disable-legacy=on"]
        if self._link is not None:
            arguments += ["-netdev", f"socket,id=net,fd={self._link.fileno()}"]
            mac = f"52:54:00:00:00:{self.machine.address:02x}"
            arguments += ["-device", f"virtio-net-pci,netdev=net,mac={mac},disable-legacy=on"]
            if settings.check_dma:
                for way in ("rx", "tx"):
                    arguments += ["-object", f"filter-dump,id={way},netdev=net,queue={way},file={self.dump(way)}"]
        return arguments

    def dump(self, way):
        """Where QEMU writes the packets of one way, when DMA is to be checked."""
        return os.path.join(self.folder, way + ".pcap")

    def _initrd(self):
        """The guest's initrd with the workload's files behind it."""
        settings, path = self.settings, os.path.join(self.folder, "initrd")
        files = {}
        for name in ("start.sh", f"{settings.workload.name}.sh", "httpd.conf"):
            with open(os.path.join(settings.scripts, name), "rb") as file:
                files["workload/" + name] = (file.read(), 0o755)
        with open(settings.mark, "rb") as file:
            files["workload/mark"] = (file.read(), 0o755)
        archive.add_to(os.path.join(settings.guest, "initrd"), files, path)
        return path

    def _scratch_disk(self):
        path = os.path.join(self.folder, "scratch.disk")
        command = ["mke2fs", "-q", "-t", "ext3", "-b", "4096", "-E", "lazy_itable_init=0", path]
        command.append(f"{self.machine.scratch_mb}m")
        environment = dict(os.environ, PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        try:
            subprocess.run(command, check=True, capture_output=True, env=environment)
        except FileNotFoundError as error:
            raise Problem("mke2fs is missing; install the package e2fsprogs.") from error
        except subprocess.CalledProcessError as error:
            raise Problem(f"No disk could be made in {self.folder}; is it full? Set TMPDIR to another.") from error
        return path

    def read_symbols(self):
        """Takes what the guest wrote on the symbols' disk."""
        with open(self._symbols_disk, "rb") as disk:
            size = int(disk.read(512).split(b"\0", 1)[0].strip() or b"0")
            disk.seek(SYMBOLS_OFFSET)
            content = disk.read(size)
        if size == 0 or len(content) != size or b"copy_user" not in content:
            raise Problem("The guest handed over no symbols; remove its directory, so that it is made again, and run again.")
        with open(self.symbols, "wb") as file:
            file.write(content)

    def start_converter(self):
        """Once the symbols are there. Its input is the tracer's pipe."""
        settings = self.settings
        os.makedirs(settings.output, exist_ok=True)
        meta = dict(settings.meta, workload=settings.workload.name, role=self.machine.role)
        words = []
        for word in settings.convert:
            if word == "{meta}":
                words += [part for key, value in meta.items() for part in ("--meta", f"{key}={value}")]
            else:
                words.append(word.replace("{out}", self.partial).replace("{symbols}", self.symbols))
        try:
            self.converter = children.start(
                words, stdin=self._out_read, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise Problem(f"The converter {words[0]} does not start ({error.strerror}); build it, or name another by"
                          " --convert.") from error
        os.close(self._out_read)
        self._out_read = None

    def said(self):
        lines = self.warnings or self.console
        return f"{self.name}: {lines[-1].strip()}" if lines else f"{self.name}: nothing"

    def lines_from_plugin(self):
        """What the plugin said since; None when QEMU closed the connection."""
        try:
            piece = self.control.recv(65536)
        except ConnectionError:
            return None
        if not piece:
            return None
        *lines, self._pending = (self._pending + piece).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def tell_plugin(self, text):
        try:
            self.control.sendall(text.encode() + b"\n")
        except OSError:
            pass  # QEMU is gone; the session will see that

    def end(self):
        """Leaves no process and no partial output."""
        children.end(self.qemu)
        children.end(self.converter)
        # And what a converter that was ended had under a name of its own.
        for left in glob.glob(glob.escape(self.partial) + "*"):
            os.unlink(left)
