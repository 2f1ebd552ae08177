"""Benchmarks of the service: turnaround of runs, requests, traces compared, events."""
import http.client
import os
import pathlib
import tempfile
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
