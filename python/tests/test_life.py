"""What a host program does: it forks, exits, is interrupted, has threads and other interpreters."""

import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import haul
from programs import output_of, run

IN_FLIGHT = """
    import haul, numpy as np
    from stalled import Stalled, wait_for_mover
    wait_for_mover()
    memory = Stalled(8 << 20)
    target = np.ones(8 << 20, np.uint8)
"""


def test_exit_with_copies_in_flight():
    for _ in range(3):
        assert output_of("""
            import haul, numpy as np
            source = np.ones(64 << 20, np.uint8)
            targets = [np.empty_like(source) for _ in range(4)]
            tickets = [haul.copy(target, source) for target in targets]
            haul.copy(np.empty_like(source), source)
            print("ended")
        """) == "ended\n"


def test_exit_waits_for_an_abandoned_copy():
    finished = run(IN_FLIGHT + """
    import atexit, threading
    haul.copy(target, memory.buffer, mover="dedicated")
    threading.Timer(0.3, memory.arrive).start()
    atexit.register(lambda: print("exit", flush=True))
    """)
    assert finished.returncode == 0 and finished.stdout == "exit\n", finished.stderr


def test_sigint_ends_an_exit_that_waits():
    finished = run(IN_FLIGHT + """
    import os, signal, threading, time
    haul.copy(target, memory.buffer, mover="dedicated")
    pid = os.getpid()
    if os.fork() == 0:
        time.sleep(1)
        os.kill(pid, signal.SIGINT)
        os._exit(0)
    """, environment={"HAUL_MOVER_PATIENCE_MS": "300"})
    assert "KeyboardInterrupt" in finished.stderr


def test_a_ticket_that_dies_with_its_module():
    assert output_of("""
        import haul, numpy as np, sys
        class Keeper:
            def __del__(self):
                self.ticket = haul.copy(self.target, self.source)
        keeper = Keeper()
        keeper.source = np.ones(32 << 20, np.uint8)
        keeper.target = np.empty_like(keeper.source)
        sys.modules["kept"] = keeper
        print("ended")
    """) == "ended\n"


def fork_and_check(check):
    pid = os.fork()
    if pid == 0:
        try:
            check()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_fork_in_the_middle():
    source = np.random.default_rng(5).integers(0, 256, 16 << 20, dtype=np.uint8)
    for _ in range(5):
        target = np.zeros_like(source)
        ticket = haul.copy(target, source)

        def check():
            ticket.wait()
            assert ticket.done() and np.array_equal(target, source)
            again = np.zeros_like(source)
            haul.copy(again, source).wait()
            assert np.array_equal(again, source)

        fork_and_check(check)
        ticket.wait()
        assert np.array_equal(target, source)


def in_worker(seed):
    source = np.random.default_rng(seed).integers(0, 256, 4 << 20, dtype=np.uint8)
    target = haul.empty(source.shape, source.dtype)
    haul.copy(target, source).wait()
    return bool(np.array_equal(target, source))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_multiprocessing(method):
    haul.copy(bytearray(1 << 20), bytes(1 << 20)).wait()
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert all(pool.map(in_worker, range(4)))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_shares_haul_empty():
    array = haul.empty(1000, "i4")

    def check():
        array[5] = 42

    fork_and_check(check)
    assert array[5] == 42


def test_threads_that_copy_and_end():
    source = np.ones(2 << 20, np.uint8)

    def work():
        for _ in range(20):
            target = np.zeros_like(source)
            haul.copy(target, source).wait()
            assert target.all()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters with a GIL of their own came with Python 3.12")
def test_subinterpreters_are_refused():
    said = output_of("""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        import haul
        other = interpreters.create()
        program = '''
        try:
            import haul
            print("imported")
        except ImportError as error:
            print("refused:", error)
        '''
        import textwrap
        interpreters.run_string(other, textwrap.dedent(program))
        print(haul.version())
    """)
    assert said.startswith("refused: ") and said.endswith(haul.version() + "\n")


def test_a_library_of_another_version(tmp_path):
    package = pathlib.Path(haul.__file__).parent
    library = package / "libhaul.so.0"
    if not library.exists():
        pytest.skip("the library lies elsewhere; only a wheel's can be exchanged")
    shutil.copytree(package, tmp_path / "haul")
    content = library.read_bytes()
    version = haul.version().encode() + b"\0"
    assert version in content and len(version) == 6
    (tmp_path / "haul" / "libhaul.so.0").write_bytes(content.replace(version, b"0.9.9\0"))
    finished = run("import haul", path=[str(tmp_path)])
    assert finished.returncode == 1 and "ImportError" in finished.stderr and "0.9.9" in finished.stderr


def test_the_module_needs_libhaul_and_libc_alone():
    allowed = {"libhaul.so.0", "libhaul-atomic.so.0", "libc.so.6", "libgcc_s.so.1", "libm.so.6"}
    allowed |= {"libstdc++.so.6", "ld-linux-x86-64.so.2"}
    files = list(pathlib.Path(haul.__file__).parent.glob("*.so*"))
    assert files
    for file in files:
        listing = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", listing))
        assert needed <= allowed, (file, needed - allowed)


@pytest.mark.parametrize("wait", ["ticket.wait()", "lock.acquire()"])
def test_a_daemon_thread_waits_when_the_interpreter_ends(wait):
    for _ in range(3):
        assert output_of(IN_FLIGHT + f"""
    import threading, time
    owner = haul.atomic.Node("block:127.0.0.1")
    home = owner.window(haul.atomic.directory_nbytes(8))
    held, lock = (haul.Lock(home.name, members=8, lease=60.0, responder="block:127.0.0.1") for _ in range(2))
    held.acquire()
    ticket = haul.copy(target, memory.buffer, mover="dedicated")
    threading.Thread(target=lambda: {wait}, daemon=True).start()
    time.sleep(0.1)
    threading.Timer(0.15, memory.arrive).start()
    print("ended")
    """) == "ended\n"


def test_import_loads_no_numpy_and_no_asyncio():
    assert output_of("""
        import sys, haul
        target = bytearray(1 << 20)
        haul.copy(target, bytes(1 << 20)).wait()
        assert not {"numpy", "asyncio", "multiprocessing.connection", "trio", "typing_extensions"} & set(sys.modules), sys.modules
        try:
            sys.modules["numpy"] = None
            haul.empty(3)
        except ImportError:
            print("needs numpy")
    """) == "needs numpy\n"


def test_import_loads_little():
    loaded = set(output_of("""
        import sys
        before = set(sys.modules)
        import haul
        print(*(name for name in set(sys.modules) - before))
    """).split())
    assert "haul._haul" in loaded and not loaded & {"typing", "json", "socket", "re", "enum", "haul._atomic"}
