"""Benchmarks of the store: results becoming durable, and the matrix over many cells."""
import http.client
import json
import subprocess
import tempfile
import time

from measure import alternate, milliseconds, percentile, row
from service import BUILD, SELFTEST_WORKER, Service


def ingest_into(folder, kind, runs, cells=32):
    """Runs a second."""
    out = subprocess.run([BUILD / "tests/bench-ingest", kind, str(folder), str(runs), str(cells)],
                         check=True, capture_output=True, text=True).stdout
    return runs / json.loads(out)["seconds"]


def ingest_once(kind, runs):
    with tempfile.TemporaryDirectory() as folder:
        return ingest_into(folder, kind, runs)


def ingest(quick):
    runs, pairs = (500, 2) if quick else (20000, 5)
    stored, raw = alternate(pairs, lambda: ingest_once("store", runs),
                            lambda: ingest_once("raw", runs))
    yield row("ingest", "durable results", "runs/s", stored, target=(">=", 20000))
    yield row("ingest", "durable results", "runs/s", stored, raw, "SQLite, one INSERT a run")
    whole, stored = alternate(pairs, lambda: ingest_once("whole", runs),
                              lambda: ingest_once("store", runs))
    yield row("ingest", "whole runs, three writes each", "runs/s", whole, stored, "results alone")


def timed_gets(service, path, count, headers=None, status=200):
    """On one connection, and without looking into what comes: Python would take longer than the
    service."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)

    def get():
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status, (path, answer.status)

    times = [milliseconds(get) for _ in range(count)]
    connection.close()
    return times


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        kilobytes = next(line for line in status if line.startswith("VmRSS:")).split()[1]
    return int(kilobytes) / 1024


def started_ms(service):
    return milliseconds(lambda: service.start(ready=False))


def matrix(quick):
    """Requests go through Python's client: its share is that of /healthz."""
    cells, requests = (200, 10) if quick else (19200, 100)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"])
        service.data.mkdir()
        ingest_into(service.data, "store", 2 * cells, cells)
        yield row("start", f"start with {2 * cells:,} runs", "ms", [started_ms(service)],
                  target=("<=", 200))
        service.wait(lambda: service.request("GET", "/readyz")[0] == 200, "ready")
        yield row("start", "resident memory, idle", "MB", [resident_mb(service.process.pid)],
                  target=("<=", 24))
        yield from matrix_requests(service, cells, requests)
        service.kill()
        yield row("start", "start after SIGKILL", "ms", [started_ms(service)],
                  target=("<=", 1000))
        service.stop()


def matrix_requests(service, cells, requests):
    path = f"/v1/matrix?environment={1:032x}"
    etag = service.request("GET", path)[1]["ETag"]
    health = timed_gets(service, "/healthz", requests)
    cached = timed_gets(service, path, requests)
    unchanged = timed_gets(service, path, requests, {"If-None-Match": etag}, 304)
    title = f"{cells:,} cells"
    yield row("matrix", f"{title}, cached, p99", "ms", [percentile(cached, 99)],
              target=("<=", 10))
    yield row("matrix", f"{title}, cached", "ms", cached, health, "/healthz")
    yield row("matrix", f"{title}, not modified, p99", "ms", [percentile(unchanged, 99)],
              target=("<=", 1))
    idle, busy = [], []
    for _ in range(2):
        idle += timed_gets(service, path, requests // 2)
        job = service.post_job(workloads=["selftest_pass"], runs=100000, iterations=1)
        time.sleep(0.2)
        busy += timed_gets(service, path, requests // 2)
        service.request("DELETE", f"/v1/jobs/{job}")
        service.finish_job(job)
    yield row("matrix", f"{title}, while runs finish, p99", "ms", [percentile(busy, 99)],
              target=("<=", 40))
    yield row("matrix", f"{title}, while runs finish", "ms", busy, idle, "idle")
