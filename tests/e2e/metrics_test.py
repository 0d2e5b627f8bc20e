"""The page of `haul serve --metrics`, and `haul top --metrics`, from outside: metrics_test.py HAUL COPIES WORK

COPIES is e2e_metrics_copies, WORK an empty directory. Each check that fails is one line; the exit status says whether
any has.
"""

import atexit
import os
import re
import signal
import socket
import subprocess
import sys
import time

HAUL, COPIES, WORK = sys.argv[1:]
SOCKET = WORK + "/service.sock"
ENVIRONMENT = dict(os.environ, HAUL_SERVICE_SOCKET=SOCKET)
failures = 0
STEP_BYTES = 8 << 20  # what COPIES copies for each line


def check(true, sentence):
    global failures
    if not true:
        failures += 1
        print("FAILED:", sentence, flush=True)
    return true


def connect(address, timeout=10):
    if address.startswith("unix:"):
        one = socket.socket(socket.AF_UNIX)
    else:
        one = socket.socket(socket.AF_INET6 if "[" in address else socket.AF_INET)
    one.settimeout(timeout)
    if address.startswith("unix:"):
        end = time.time() + timeout
        while True:
            try:
                one.connect(address[5:])
                return one
            except BlockingIOError:  # more wait than the kernel's queue holds
                if time.time() > end:
                    raise
                time.sleep(0.01)
    else:
        host, port = re.fullmatch(r"http://\[?(.*?)\]?:(\d+)/metrics", address).groups()
        one.connect((host, int(port)))
    return one


def ask(address, request, timeout=10):
    """The status, the headers and the body of the answer to these bytes."""
    with connect(address, timeout) as one:
        one.sendall(request)
        answer = b""
        while more := one.recv(65536):
            answer += more
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {key.lower(): text for key, text in (line.split(": ", 1) for line in lines[1:])}
    check(lines[0].startswith("HTTP/1.1 "), f"no status line: {lines[0]}")
    if not request.startswith(b"HEAD"):
        check(int(headers["content-length"]) == len(body), f"content-length of {request[:20]}: {headers}")
    check(headers["connection"] == "close", "connection: close is missing")
    return int(lines[0].split()[1]), headers, body.decode()


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
UNITS = re.compile(r"_(ns|us|ms|kib|mib|gib|kb|mb|minutes|percent)(_total)?$")


def parse(text):
    """{(name, labels): value} of an exposition; everything that is not strictly the format is a failure."""
    samples, seen, family, kind, helped = {}, set(), None, None, None
    check(text.endswith("\n") and "\r" not in text and "\n\n" not in text, "lines of the page are not whole")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped, _, words = line[7:].partition(" ")
            check(re.fullmatch(NAME, helped) and words.endswith("."), f"help: {line}")
            check(helped not in seen, f"family {helped} comes twice")
            check(helped.startswith("haul_") and not UNITS.search(helped), f"name {helped}")
            seen.add(helped)
        elif line.startswith("# TYPE "):
            family, kind = line[7:].split(" ")
            check(family == helped and kind in ("counter", "gauge"), f"type: {line}")
            check((kind == "counter") == family.endswith("_total"), f"only counters end in _total: {line}")
        else:
            match = SAMPLE.fullmatch(line)
            if not check(match, f"no sample: {line}"):
                continue
            name, labels, value = match.groups()
            labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
            check(name == family, f"sample outside of its family: {line}")
            check((name, labels) not in samples, f"sample comes twice: {line}")
            check(kind != "counter" or not value.startswith("-"), f"negative counter: {line}")
            samples[name, labels] = float(value)
    return samples


def scrape(address):
    status, headers, body = ask(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    check(status == 200, f"/metrics says {status}: {body}")
    check(headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8", f"type {headers}")
    return parse(body) if status == 200 else {}


def value(samples, name, **labels):
    found = [v for (n, l), v in samples.items() if n == name and set(labels.items()) <= l]
    return sum(found) if found else None


def until(condition, what, seconds=20):
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return True
        time.sleep(0.05)
    return check(False, f"not within {seconds} s: {what}")


def start(*arguments, **options):
    """A process that ends with this one, however that ends."""
    process = subprocess.Popen(*arguments, **options)
    atexit.register(process.kill)
    return process


class Serving:
    def __init__(self, *addresses_arguments, variables={}, preexec=None):
        self.log = WORK + "/log"
        self.process = start([HAUL, "serve", *addresses_arguments], stderr=open(self.log, "w"),
                                        env={**ENVIRONMENT, **variables}, preexec_fn=preexec)
        until(lambda: "listening" in self.said() or self.process.poll() is not None, "haul serve listens")

    def said(self):
        return open(self.log).read()

    def page(self):
        match = re.search(r"figures at (\S+)", self.said())
        check(match, f"the log names no page: {self.said()}")
        return match.group(1)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(20)


class Copying:
    """A client whose bytes are all the service's."""

    def __init__(self):
        self.process = start([COPIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**ENVIRONMENT, "HAUL_SERVICE_USE": "auto"})

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return check(self.process.stdout.readline() == "copied\n", "the client's copies")

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(20) == 0, "the client ends badly")


def figures_of_copies(address):
    before = scrape(address)
    check(value(before, "haul_service_up") == 1 and value(before, "haul_service_clients") == 0, "an idle service")
    copied = value(before, "haul_service_copied_bytes_total")
    client = Copying()
    pid = str(client.process.pid)
    for steps in (1, 2):
        client.step()
        page = lambda: value(scrape(address), "haul_service_copied_bytes_total")
        until(lambda: page() == copied + steps * STEP_BYTES, f"{steps * STEP_BYTES} further bytes on the page")
        now = scrape(address)
        of_client = value(now, "haul_service_client_copied_bytes_total", pid=pid, way="mapping")
        check(of_client == steps * STEP_BYTES, f"{of_client} bytes of the client, not {steps * STEP_BYTES}")
        check(value(now, "haul_service_client_requests_total", pid=pid) == steps * 8, "requests of the client")
        check(value(now, "haul_service_client_chunks_total", pid=pid) >= steps * 8, "chunks of the client")
        check(value(now, "haul_service_client_grants", pid=pid) == 1, "grants of the client")
        check(value(now, "haul_service_client_rings", pid=pid) >= 1, "rings of the client")
        check(value(now, "haul_service_client_busy_seconds_total", pid=pid) > 0, "time of the client")
        check(value(now, "haul_service_clients") == 1 and value(now, "haul_service_grants") == 1, "one client")
        check(value(now, "haul_service_state") == 1, "the service is in one state")
    names = {dict(labels)["name"] for (name, labels) in now if "pid" in dict(labels)}
    check(names == {"e2e_metrics_cop"}, f"names of programs: {names}")
    client.end()
    until(lambda: not any("pid" in dict(labels) for (_, labels) in scrape(address)), "the client leaves the page")
    check(value(scrape(address), "haul_service_copied_bytes_total") == copied + 2 * STEP_BYTES,
          "what has been copied stays")


def requests_and_answers(address):
    def status(request):
        return ask(address, request)[0]

    check(status(b"GET / HTTP/1.0\r\n\r\n") == 200, "/")
    check(status(b"GET /metrics HTTP/1.0\n\n") == 200, "bare line ends")
    check(status(b"GET /metrics?x=1 HTTP/1.1\r\nHost: localhost:80\r\n\r\n") == 200, "a query")
    check(ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n")[2] == "", "HEAD has no body")
    check(status(b"GET /other HTTP/1.1\r\n\r\n") == 404, "another page")
    check(status(b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx") == 405, "POST")
    check(ask(address, b"PUT / HTTP/1.1\r\n\r\n")[1].get("allow") == "GET, HEAD", "405 says what is allowed")
    for nonsense in (b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/2.0\r\n\r\n", b"\r\n\r\n", b"\0\xff \x80\r\n\r\n",
                     b"GET  /metrics HTTP/1.1\r\n\r\n", b" / HTTP/1.1\r\n\r\n"):
        check(status(nonsense) == 400, f"{nonsense} is a request")
    foreign = status(b"GET /metrics HTTP/1.1\r\nhOST: evil.example:80\r\n\r\n")
    check(foreign == (200 if address.startswith("unix:") else 403), f"another host's name: {foreign}")


def hostile(address, seconds):
    client = Copying()
    client.step()
    # Half a request, byte after byte, by more than may visit at once: who asks properly is served all the same, and
    # so is the client.
    crowd = []
    for _ in range(200):
        try:
            one = connect(address, 2)
            one.sendall(b"GET /metrics HT")
            crowd.append(one)
        except OSError:
            pass
    began = time.time()
    while time.time() - began < seconds:
        scrape(address)
        client.step()
        for one in crowd:
            try:
                one.send(b"x", socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
            except OSError:
                pass
        time.sleep(0.2)
    ended = 0
    for one in crowd:
        one.settimeout(0.1)
        try:
            ended += one.recv(1) == b""
        except ConnectionError:
            ended += 1
        except TimeoutError:
            pass
        one.close()
    # Each has five seconds.
    check(seconds < 7 or ended == len(crowd), f"{len(crowd) - ended} of {len(crowd)} slow visitors still wait")
    # Headers without end, garbage, an end at once, and an answer that nobody reads.
    status, _, _ = ask(address, b"GET /metrics HTTP/1.1\r\nx: " + b"y" * (1 << 20))
    check(status == 431, f"1 MiB of header: {status}")
    with connect(address) as one:
        try:
            for _ in range(64):
                one.sendall(os.urandom(1 << 20))
            check(False, "64 MiB of garbage are read to the end")
        except OSError:
            pass
    for _ in range(50):
        connect(address).close()
    deaf = [connect(address) for _ in range(8)]
    for one in deaf:
        one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
    scrape(address)
    client.step()
    for one in deaf:
        one.close()
    client.end()


def few_descriptors():
    """Where no descriptor is left, the page may be away, but the service copies, and the page comes back."""
    import resource
    serving = Serving("--metrics", "unix:" + WORK + "/page.sock",
                      preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    address, client = serving.page(), Copying()
    client.step()
    # (The kernel's queue of those that wait has an end.)
    monitors = []
    for _ in range(60):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            one.connect(SOCKET)
            monitors.append(one)
        except OSError:
            break
    crowd = []
    for _ in range(30):
        try:
            crowd.append(connect(address, 1))
        except OSError:
            break
    client.step()
    check("no descriptor is left" in serving.said(), "this test expected the descriptors to be used up")
    # The thread that serves the page rests: it neither runs nor wants to.
    tasks = f"/proc/{serving.process.pid}/task"
    thread = next(t for t in os.listdir(tasks) if open(f"{tasks}/{t}/comm").read() == "haul-companion\n")
    wanted = lambda: sum(int(ns) for ns in open(f"{tasks}/{thread}/schedstat").read().split()[:2]) / 1e9
    before = wanted()
    time.sleep(1)
    check(wanted() - before < 0.5, f"without a descriptor it wants to run for {wanted() - before} of a second")
    for one in monitors + crowd:
        one.close()

    def answers():
        try:
            return ask(address, b"GET /metrics HTTP/1.0\r\n\r\n", 3)[0] == 200
        except OSError:
            return False
    until(answers, "the page comes back")
    client.step()
    client.end()
    check(serving.end() == 0, "it ends badly")


def two_addresses():
    for asked in ("unix:" + WORK + "/page.sock", "127.0.0.1:0", "[::1]:0"):
        serving = Serving("--metrics", asked)
        if serving.process.poll() is not None and asked.startswith("["):
            check("cannot listen at [::1]:0" in serving.said(), f"no sentence: {serving.said()}")
            print("not tested: [::1], which this machine has not")
            continue
        address = serving.page()
        if asked.startswith("unix:"):
            check(os.stat(address[5:]).st_mode & 0o777 == 0o600, "others may read the page")
        figures_of_copies(address)
        requests_and_answers(address)
        if "[" not in asked:
            hostile(address, 7 if asked.startswith("127") else 1)
        check(serving.end() == 0, f"it ends badly: {serving.said()}")
        check(not os.path.exists(WORK + "/page.sock") and not os.path.exists(SOCKET), "it leaves a socket")


def killed_and_again():
    page = WORK + "/page.sock"
    serving = Serving("--metrics", "unix:" + page)
    serving.end(signal.SIGKILL)
    check(os.path.exists(page), "this test expected a stale socket")
    serving = Serving("--metrics", "unix:" + page)
    scrape("unix:" + page)
    # A place that is taken is an error, and nothing of the second service stays.
    second = Serving("--socket", WORK + "/other.sock", "--metrics", "unix:" + page)
    check(second.process.wait(20) == 1 and "cannot listen at " + page in second.said(), f"twice: {second.said()}")
    check(not os.path.exists(WORK + "/other.sock"), "a start that failed leaves its socket")
    scrape("unix:" + page)
    serving.end()
    open(page, "w").write("precious")
    third = Serving("--metrics", "unix:" + page)
    check(third.process.wait(20) == 1 and open(page).read() == "precious", "it removes a file that is no socket")
    os.unlink(page)


def to_a_file():
    def top():
        done = subprocess.run([HAUL, "top", "--metrics", WORK + "/haul.prom"], env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=60)
        check(done.returncode == 0 and done.stdout == "" and done.stderr == "", f"haul top --metrics: {done}")
        return parse(open(WORK + "/haul.prom").read())

    check(value(top(), "haul_service_up") == 0, "no service is up")
    serving = Serving("--metrics", "unix:" + WORK + "/page.sock")
    client = Copying()
    client.step()
    time.sleep(0.5)
    file, page = top(), scrape(serving.page())
    check(value(file, "haul_service_copied_bytes_total") == STEP_BYTES, "bytes in the file")
    check({key for key in page} <= {key for key in file}, "the file lacks what the page has")
    check({name for name, _ in file} - {name for name, _ in page} >= {"haul_fabric_processes"}, "no messages in the file")
    check(os.listdir(WORK).count("haul.prom") == 1 and not [f for f in os.listdir(WORK) if f.endswith(".tmp")],
          "a temporary file stays")
    client.end()
    serving.end()


for part in (two_addresses, killed_and_again, few_descriptors, to_a_file):
    began = time.time()
    part()
    print(f"{part.__name__}: {time.time() - began:.1f} s", flush=True)
sys.exit(failures != 0)
