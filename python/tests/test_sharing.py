"""Grants between processes, by a service of the test's own."""

import contextlib
import os
import shutil
import subprocess
import sys
import time

import pytest

import haul
from programs import output_of

COMMAND = os.environ.get("HAUL_COMMAND") or shutil.which("haul")


def environment_of(socket):
    return {"HAUL_SERVICE_SOCKET": str(socket), "HAUL_SERVICE_USE": "auto"}


@contextlib.contextmanager
def serving(socket):
    process = subprocess.Popen(
        [COMMAND, "serve", "--socket", str(socket)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 30
    while not os.path.exists(socket) and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    if COMMAND is None:
        pytest.skip("the command haul is not here; name it by HAUL_COMMAND")
    socket = tmp_path_factory.mktemp("service") / "socket"
    with serving(socket):
        yield environment_of(socket)


MEMORY = "haul.empty((1000, 1000), 'f4')"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_queue_of_arrays(service, method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, sys
import numpy as np
import haul

def consume(queue, answers):
    while (array := queue.get()) is not None:
        here = haul.fetch(array)
        answers.put((array.shape, str(here.dtype), float(here.sum())))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue, answers = context.Queue(), context.Queue()
    consumer = context.Process(target=consume, args=(queue, answers), daemon=True)
    consumer.start()
    for i in range(5):
        array = haul.empty((100, 1000), "f4")
        array[:] = i
        with haul.share(array) as grant:
            queue.put(grant)
            assert answers.get(timeout=30) == ((100, 1000), "float32", i * 1e5)
    queue.put(None)
    consumer.join()
    print("consumed", consumer.exitcode)
""")
    said = output_of(
        f"import runpy, sys; sys.argv = ['program', '{method}']; runpy.run_path({str(program)!r}, run_name='__main__')"
        if method == "fork"
        else f"import subprocess, sys; print(subprocess.run([sys.executable, {str(program)!r}, 'spawn'], check=True, "
        "capture_output=True, text=True).stdout, end='')",
        environment=service,
    )
    assert said == "consumed 0\n"


def test_over_a_socket_in_parts_and_back(service):
    assert output_of("""
        import os, socket
        import numpy as np
        import haul
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            here.close()
            extent = haul.attach(there)
            assert extent.shape == (1000,) and extent.dtype == "<i8" and extent.nbytes == len(extent) == 8000
            part = np.empty(10, "i8")
            haul.copy(part, extent[80:160]).wait()
            assert np.array_equal(part, np.arange(10, 20))
            haul.copy(extent[:80], part).wait()
            for wrong in (slice(0, 80, 2), slice(80, 0, -1)):
                try:
                    extent[wrong]
                except ValueError:
                    continue
                os._exit(2)
            extent.close()
            try:
                haul.copy(part, extent[80:160])
            except ValueError as error:
                assert "closed" in str(error)
                os._exit(0)
            os._exit(1)
        array = haul.empty(1000, "i8")
        array[:] = np.arange(1000)
        grant = haul.share(array, write=True)
        haul.send(here, grant)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(array[:10], np.arange(10, 20)) and array[10] == 10
        grant.close()
        grant.close()
        try:
            grant.fileno()
        except ValueError as error:
            print(error)
    """, environment=service) == "this grant was taken back; share the memory again\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_an_argument_of_a_process(service, method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing, sys
import haul

def consume(shared):
    assert haul.attach(shared).nbytes == 4000 if isinstance(shared, haul.Grant) else shared.nbytes == 4000
    print(haul.fetch(shared).sum(), flush=True)

if __name__ == "__main__":
    array = haul.empty(1000, "i4")
    array[:] = 7
    with haul.share(array) as grant:
        consumer = multiprocessing.get_context(sys.argv[1]).Process(target=consume, args=(grant,))
        consumer.start()
        consumer.join()
""")
    finished = subprocess.run(
        [sys.executable, str(program), method], env={**os.environ, **service}, capture_output=True, text=True, timeout=60
    )
    assert finished.stdout == "7000\n", finished.stderr


def test_what_is_shared_keeps_its_type(service):
    assert output_of("""
        import array, socket
        import numpy as np
        import haul

        class Tensor:
            def __init__(self, numbers):
                self.numbers, self.shape, self.dtype = numbers, numbers.shape, "a type of its own"
            def __dlpack__(self, **options):
                return self.numbers.__dlpack__(**options)
            def __dlpack_device__(self):
                return self.numbers.__dlpack_device__()

        here, there = socket.socketpair()
        numbers = np.arange(6, dtype="f4").reshape(2, 3)
        for memory in (memoryview(array.array("d", range(5))), Tensor(numbers), numbers.astype("M8[s]"), bytearray(b"abc")):
            with haul.share(memory) as grant:
                haul.send(here, grant)
                fetched = haul.fetch(haul.attach(there))
            print(fetched.dtype, fetched.shape, fetched.astype("i8").sum())
    """, environment=service).splitlines() == [
        "float64 (5,) 10", "float32 (2, 3) 15", "datetime64[s] (2, 3) 15", "uint8 (3,) 294"
    ]


def test_a_grant_lasts_as_long_as_its_object(service):
    assert output_of("""
        import os
        import haul
        memory = bytearray(1 << 20)
        grant = haul.share(memory)
        pair = (os.dup(grant.fileno()), grant.index)
        try:
            memory.extend(b"more")
        except BufferError:
            print("kept")
        del grant
        memory.extend(b"more")
        try:
            haul.attach(pair)
        except haul.Error as error:
            print(error.name)
        grant = haul.share(memory)
        grant.close()
        memory.extend(b"more")
    """, environment=service).split() == ["kept", "EPERM"]


def test_all_threads_close_a_grant(service):
    assert output_of("""
        import threading
        import haul
        for _ in range(20):
            memory = bytearray(1 << 16)
            grant = haul.share(memory, write=True)
            def close():
                grant.close()
                memory.append(1)  # nobody has the memory any more
            threads = [threading.Thread(target=close) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(memory) == (1 << 16) + 6
    """, environment=service) == ""


def test_a_service_that_does_not_answer(tmp_path):
    if COMMAND is None:
        pytest.skip("the command haul is not here; name it by HAUL_COMMAND")
    with serving(tmp_path / "socket") as process:
        assert output_of(f"""
            import os, signal
            import haul
            memory = bytearray(1 << 20)
            grant = haul.share(memory, write=True)
            os.kill({process.pid}, signal.SIGSTOP)
            try:
                grant.close()
            except haul.Error as error:
                print(error.name)
            try:
                memory.extend(b"more")
            except BufferError:
                print("kept")
            os.kill({process.pid}, signal.SIGCONT)
            grant.close()
            memory.extend(b"more")
        """, environment=environment_of(tmp_path / "socket")).split() == ["ETIMEDOUT", "kept"]


def test_what_is_not_granted(service):
    assert output_of("""
        import os, socket
        import haul
        here, there = socket.socketpair()
        def attempt(call):
            try:
                call()
                print("done")
            except (haul.Error, ValueError, ConnectionError) as error:
                print(getattr(error, "name", type(error).__name__))
        memory = haul.Memory(1 << 20)
        grant = haul.share(memory)
        pair = (os.dup(grant.fileno()), grant.index)
        extent = haul.attach(pair)
        attempt(lambda: haul.copy(bytearray(1 << 20), extent).wait())
        attempt(lambda: haul.copy(extent, bytes(1 << 20)).wait())
        grant.close()
        attempt(lambda: haul.copy(bytearray(1 << 20), extent).wait())
        attempt(lambda: haul.attach(pair))
        attempt(lambda: haul.attach((0, 5)))
        attempt(lambda: haul.share(b""))
        attempt(lambda: haul.share(bytes(10), write=True))
        there.send(b"no grant at all, but long enough to be one, if it were one")
        attempt(lambda: haul.attach(here))
        there.close()
        attempt(lambda: haul.attach(here))
    """, environment=service).split() == [
        "done", "EPERM", "EPERM", "EPERM", "EINVAL", "EINVAL", "ValueError", "ConnectionError", "ConnectionError"
    ]


def test_without_a_service():
    assert output_of("""
        import haul
        try:
            haul.share(haul.Memory(4096))
        except haul.Error as error:
            print(error.name)
    """, environment={"HAUL_SERVICE_USE": "off"}) == "ENOTSUP\n"


def test_another_process_by_its_number():
    assert output_of("""
        import os
        import numpy as np
        import haul
        source = np.arange(100_000)
        pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), 19)
        os.waitpid(pid, os.WUNTRACED)
        target = np.zeros_like(source)
        with haul.process(pid) as space:
            haul.copy(target, space.extent(source.ctypes.data, source.nbytes)).wait()
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        assert np.array_equal(target, source)
        try:
            haul.process(pid)
        except haul.Error as error:
            print(error.name)
    """) == "EPEER\n"


def test_a_gpu_that_is_not_there():
    with pytest.raises(haul.Error) as caught:
        haul.device("cuda:63")
    assert caught.value.name in ("ENOTSUP", "EIO")
