"""Benchmarks of the service: turnaround of runs, requests, traces compared, events, and what others
have to wait for."""
import contextlib
import http.client
import os
import pathlib
import resource
import socket
import tempfile
import threading
from datetime import datetime

from measure import alternate, milliseconds, percentile, row
from service import SELFTEST_WORKER, Service
from traces import run_pair, trace_service

DISCARD = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (1, 2, 3)]


def spawn(argv):
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=DISCARD)
    assert os.waitpid(pid, 0)[1] == 0, argv


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e3


def gaps_ms(runs):
    """From the end of each run to the start of the next."""
    ordered = sorted((moment(r["started_at"]), moment(r["finished_at"])) for r in runs)
    return [max(0, b[0] - a[1]) for a, b in zip(ordered, ordered[1:])]


def turnaround(quick):
    runs, pairs = (20, 2) if quick else (200, 5)
    worker = [str(SELFTEST_WORKER), "--run", "--workload", "selftest_pass", "--iterations", "1"]
    true = next(p for p in ("/bin/true", "/usr/bin/true") if os.path.exists(p))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"]).start()

        def job():
            began = milliseconds(lambda: found.append(service.finish_job(service.post_job(
                workloads=["selftest_pass"], runs=runs, iterations=1), 300)["id"]))
            return began / runs

        def alone(argv):
            return milliseconds(lambda: [spawn(argv) for _ in range(runs)]) / runs

        served, direct = alternate(pairs, job, lambda: alone(worker))
        yield row("turnaround", "a run, served", "ms", served, direct, "its worker alone")
        yield row("turnaround", "a run less its worker", "ms",
                  [a - b for a, b in zip(served, direct)], target=("<=", 5))
        served, direct = alternate(pairs, job, lambda: alone([true]))
        yield row("turnaround", "a run, served", "ms", served, direct, "fork and exec of true")
        gaps = [gap for id_ in found for gap in gaps_ms(service.items(f"/v1/runs?job={id_}"))]
        yield row("turnaround", "between two runs, p99", "ms", [percentile(gaps, 99)],
                  target=("<=", 5))
        service.stop()


def post(quick):
    """One client: what it waits for is the commit."""
    count = 10 if quick else 300
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
        blocker = service.post_job(workloads=["selftest_hang"], runs=1, timeout_seconds=600)
        posted, healthy = alternate(count, lambda: milliseconds(
            lambda: service.post_job(workloads=["selftest_pass"], runs=1, iterations=1)),
            lambda: milliseconds(lambda: service.get("/healthz")))
        yield row("post", "POST /v1/jobs, one client", "ms", posted, healthy, "/healthz")
        yield row("post", "POST /v1/jobs, one client, p99", "ms", [percentile(posted, 99)],
                  target=("<=", 5))
        service.request("DELETE", f"/v1/jobs/{blocker}")
        service.stop(seconds=120)


def compare(quick):
    """Two traces of 1,000 steps of 60 places that part half way, end to end."""
    workload, count = ("trace_root", 3) if quick else ("trace_large", 50)
    with tempfile.TemporaryDirectory() as folder:
        service = trace_service(pathlib.Path(folder)).start()
        a, b = run_pair(service, workload)
        pair = f"a={a['id']}&b={b['id']}"
        what = f"two traces of {a['trace']['records']:,} records"
        for suffix, title in (("", "JSON"), (".txt", "text")):
            compared, healthy = alternate(
                count,
                lambda s=suffix: milliseconds(lambda: service.get(f"/v1/compare{s}?{pair}")),
                lambda: milliseconds(lambda: service.get("/healthz")))
            yield row("compare", f"{what}, {title}", "ms", compared, healthy, "/healthz")
        service.stop()


def measured_beside(service, background, count, action):
    """COUNT values of ACTION, alone and while each of BACKGROUND is called again and again on a
    thread of its own."""
    stop = threading.Event()

    def again(call):
        while not stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                call()
    alone = [milliseconds(action) for _ in range(count)]
    threads = [threading.Thread(target=again, args=(call,)) for call in background]
    for thread in threads:
        thread.start()
    beside = [milliseconds(action) for _ in range(count)]
    stop.set()
    for thread in threads:
        thread.join()
    return beside, alone


def fetch(service, path):
    """Without looking at it: whoever measures has this process's time."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()


def heavy_reads(quick):
    """What a short list waits for while 24 clients read traces, each its own part, or compare the same two."""
    workload, count, clients = ("trace_root", 5, 4) if quick else ("trace_large", 100, 24)
    with tempfile.TemporaryDirectory() as folder:
        service = trace_service(pathlib.Path(folder)).start()
        a, b = run_pair(service, workload)
        pair = f"/v1/compare?a={a['id']}&b={b['id']}"
        trace = f"/v1/runs/{a['id']}/trace?limit="
        for what, paths in (("reads of traces", [f"{trace}{10000 - i}" for i in range(clients)]),
                            ("comparisons of the same", clients * [pair])):
            beside, alone = measured_beside(
                service, [lambda path=path: fetch(service, path) for path in paths], count,
                lambda: service.get("/v1/jobs?limit=1"))
            yield row("reads", f"a list beside {clients} {what}", "ms", beside, alone, "alone")
            yield row("reads", f"a list beside {clients} {what}, p99", "ms", [percentile(beside, 99)],
                      target=("<=", 200))
        service.stop()


def stalled(quick):
    """A new client, while a thousand others have begun requests that never go on."""
    many, count = (50, 5) if quick else (1000, 300)
    begun = (b"", b"GET /healthz HT", b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limits[1]), limits[1]))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
        alone = [milliseconds(lambda: service.get("/healthz")) for _ in range(count)]
        for i in range(many):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            connection.sendall(begun[i % len(begun)])
        beside = [milliseconds(lambda: service.get("/healthz")) for _ in range(count)]
        yield row("stalled", f"a new client beside {many} stalled", "ms", beside, alone, "alone")
        yield row("stalled", f"a new client beside {many} stalled, p99", "ms", [percentile(beside, 99)],
                  target=("<=", 100))
        service.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def read_events(service, count):
    """A listener that comes back and is sent COUNT events that it missed."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    connection.request("GET", "/v1/events", headers={"Last-Event-ID": "0"})
    answer = connection.getresponse()
    while count > 0:
        count -= answer.readline().startswith(b"data:")
    connection.close()


def events(quick):
    runs, count = (20, 3) if quick else (150, 50)  # more missed events than a thousand are a reset
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
        service.finish_job(service.post_job(workloads=["selftest_pass"], runs=runs, iterations=1),
                           300)
        caught_up, listed = alternate(
            count, lambda: milliseconds(lambda: read_events(service, 2 * runs)),
            lambda: milliseconds(lambda: service.get(f"/v1/runs?limit={runs}")))
        yield row("events", f"{2 * runs} missed events, one listener", "ms", caught_up, listed,
                  f"a list of {runs} runs")
        service.stop()
