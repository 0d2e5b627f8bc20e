import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import haul
from programs import output_of

atomic = haul.atomic


@pytest.fixture
def counter():
    owner = atomic.Node("block:127.0.0.1")
    window = owner.window(4096)
    client = atomic.Node()
    return window, client.connect(window.name)


def test_single_operations(counter):
    window, remote = counter
    words = np.frombuffer(window, "u8")
    assert remote.nbytes == window.nbytes == len(window) == words.nbytes == 4096
    assert remote.fetch_add(0, 5) == 0 and remote.fetch_add(0, -2) == 5 and words[0] == 3
    assert remote.fetch_write(8, 7) == 0 and remote.read(8) == 7
    assert remote.compare_swap(8, 9, 7) == 7 and remote.compare_swap(8, 1, 7) == 9 and words[1] == 9
    assert remote.write(16, -1) is None and words[2] == 2**64 - 1
    assert remote.fetch_and(16, 0xFF) == 2**64 - 1 and remote.fetch_or(16, 0x100) == 0xFF
    assert remote.fetch_xor(16, 0x1FF) == 0x1FF and words[2] == 0
    remote.write(24, 2**31, width=4)
    assert remote.fetch_add(24, 2**31, width=4) == 2**31 and words[3] == 0
    words[5] = 42
    assert remote.read(40) == 42


def test_a_batch(counter):
    window, remote = counter
    assert remote.run([("add", 0, 1), ("add", 0, 1), ("read", 0), ("cas", 8, 5, 0), ("swap", 8, 6)]) == [0, 1, 2, 0, 5]
    for wrong in ([], [("add", 0, 1)] * 17, [("fly", 0)], [("add",)], [("add", "x", 1)], [5]):
        with pytest.raises((ValueError, TypeError)):
            remote.run(wrong)


def test_bad_arguments(counter):
    window, remote = counter
    with pytest.raises(haul.Error) as caught:
        remote.fetch_add(4096, 1)
    assert caught.value.name == "EFAULT"
    with pytest.raises(haul.Error) as caught:
        remote.fetch_add(3, 1)
    assert caught.value.name == "EINVAL"
    with pytest.raises(ValueError):
        remote.read(0, width=2)
    with pytest.raises(TypeError):
        remote.fetch_add(0, "one")
    with pytest.raises(haul.Error):
        atomic.Node().connect("haul:nonsense")
    with pytest.raises(haul.Error):
        atomic.Node("nobody")
    with pytest.raises(ValueError):
        atomic.Node(port=70000)
    with pytest.raises(ValueError):
        atomic.Node(timeout=0)
    with pytest.raises(haul.Error):
        atomic.Node().window(4096)
    node = atomic.Node("block:127.0.0.1")
    node.close()
    node.close()
    for use in (lambda: node.window(10), lambda: node.connect(window.name), node.describe, node.counters):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_a_node_is_closed_while_others_use_it(counter):
    window, _ = counter
    for _ in range(20):
        node = atomic.Node()

        def work():
            try:
                while True:
                    node.connect(window.name).fetch_add(0, 1)
            except ValueError as error:
                assert "closed" in str(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        node.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()


def test_a_node_that_is_gone():
    with atomic.Node("block:127.0.0.1") as owner:
        window = owner.window(4096)
        name = window.name
        assert "served operations" in owner.counters() and "127.0.0.1" in owner.describe()
    client = atomic.Node(timeout=0.2)
    with pytest.raises(haul.Error) as caught:
        client.connect(name)
    assert caught.value.name in ("ETIMEDOUT", "EPEER")


def test_a_window_of_another_process(counter):
    window, remote = counter
    remote.write(0, 11)
    said = output_of(f"""
        import haul, numpy as np
        window = haul.atomic.attach({window.name!r})
        np.frombuffer(window, "u8")[1] = 12
        print(haul.atomic.Node().connect({window.name!r}).fetch_add(0, 1))
    """)
    assert said == "11\n" and remote.read(0) == 12 and remote.read(8) == 12


def test_what_keeps_the_memory(counter):
    window, remote = counter
    words = np.frombuffer(window, "u8")
    del window, counter
    words[0] = 5
    assert words[0] == 5


@pytest.fixture
def home():
    owner = atomic.Node("block:127.0.0.1")
    return owner, owner.window(atomic.directory_nbytes(8))


def member(home, **options):
    return haul.Lock(home[1].name, members=8, responder="block:127.0.0.1", **options)


def test_a_lock_excludes(home):
    shared = {"value": 0, "tokens": []}

    def work():
        lock = member(home)
        for _ in range(50):
            with lock as token:
                shared["tokens"].append(token)
                value = shared["value"]
                for _ in range(50):
                    pass
                shared["value"] = value + 1
        lock.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared["value"] == 150
    assert shared["tokens"] == sorted(set(shared["tokens"]))


def test_timeouts_and_misuse(home):
    one, other = member(home), member(home)
    token = one.acquire()
    assert 0 < one.remaining <= 1
    one.renew()
    with pytest.raises(TimeoutError):
        other.acquire(timeout=0.15)
    with pytest.raises(haul.Error):
        one.acquire()
    one.release()
    assert other.acquire(timeout=5) > token and one.remaining == 0
    with pytest.raises(haul.Error) as caught:
        one.release()
    assert caught.value.name == "EINVAL"
    other.release()
    assert other.stats()["acquired"] == 1
    other.close()
    for use in (other.acquire, other.release, other.renew, other.stats, other.close, lambda: other.remaining):
        with pytest.raises(ValueError, match="closed"):
            use()
    with pytest.raises(ValueError, match="not a number"):
        one.acquire(timeout=float("nan"))
    with pytest.raises(ValueError):
        member(home, lease=0.001)


def test_a_signal_ends_the_wait_for_a_lock(home):
    one, other = member(home, lease=60.0), member(home, lease=60.0)
    with one:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            other.acquire()
        with pytest.raises(TimeoutError):
            other.acquire(timeout=0.01)
    with one:
        pass
    with other:
        pass


HOME = """
import sys
import haul
owner = haul.atomic.Node("block:127.0.0.1")
window = owner.window(haul.atomic.directory_nbytes(8))
print(window.name, flush=True)
sys.stdin.read()
"""


def test_a_lock_whose_home_is_gone():
    there = subprocess.Popen([sys.executable, "-c", HOME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lock = haul.Lock(there.stdout.readline().strip(), members=8, responder="block:127.0.0.1")
    with lock:
        pass
    there.kill()
    there.communicate()
    for timeout in (None, 100):
        begun = time.monotonic()
        with pytest.raises(haul.Error) as caught:
            lock.acquire(timeout)
        assert caught.value.name in ("ETIMEDOUT", "EPEER") and time.monotonic() - begun < 30


def test_one_thread_at_a_time(home):
    one, other = member(home), member(home)
    with one:
        waiting = threading.Thread(target=lambda: other.acquire(timeout=1.0) and other.release())
        waiting.start()
        while waiting.is_alive():
            try:
                other.renew()
            except RuntimeError as error:
                assert "of its own" in str(error)
                break
            except haul.Error:
                continue
        else:
            pytest.fail("the other thread's turn was never met")
    waiting.join()


def test_a_guarded_word_refuses_old_tokens(home):
    owner, window = home
    data = owner.window(64)
    remote = atomic.Node().connect(data.name)
    lock = member(home)
    with lock as old:
        remote.write(0, 1, token=old)
    with lock as new:
        remote.write(0, 2, token=new)
    with pytest.raises(haul.Error) as caught:
        remote.write(0, 3, token=old)
    assert caught.value.name == "ESTALE" and remote.read(0, token=new) & 0xFFFFFFFF == 2
