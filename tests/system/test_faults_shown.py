"""Each fault stands in the four places where people look, and is gone from them once it is over: what
/readyz says (which the page shows), the metrics, the log, and the text that `curl host/` prints.

How long each took is written to fault_delays.json in the build folder, for people: no test asserts a
time.  What bounds it is asserted instead: how often each part looks."""
import contextlib
import datetime
import json
import os
import pathlib
import re
import signal
import sqlite3
import time

import pytest

from service import BUILD, LIMIT, SELFTEST_WORKER
from test_disk import ERRORS, Disk, constant, shim  # noqa: F401 (a fixture)
from test_health import agent_of, finished, in_database, maintain
from test_stack_recovery import flawed

DELAYS = BUILD / "fault_delays.json"


@contextlib.contextmanager
def moved(service, path):
    away = service.folder / "away"
    os.rename(path, away)
    yield
    os.rename(away, path)


def folder_removed(service):
    return moved(service, service.data)


def database_removed(service):
    return moved(service, service.data / "reprod.db")


def log_removed(service):
    return moved(service, service.data / "reprod.db-wal")


@contextlib.contextmanager
def disk_fails(service, kind):
    control = pathlib.Path(service.env["FAILING_DISK"])
    control.write_text(str(ERRORS[kind]))
    yield
    control.unlink()


def disk_full(service):
    return disk_fails(service, "full")


def disk_broken(service):
    return disk_fails(service, "broken")


@contextlib.contextmanager
def agent_stopped(service):
    agent = agent_of(service)
    os.kill(agent, signal.SIGSTOP)
    yield
    os.kill(agent, signal.SIGCONT)


@contextlib.contextmanager
def store_silent(service):
    """Another process holds the lock of those who write."""
    with contextlib.closing(sqlite3.connect(service.data / "reprod.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


@contextlib.contextmanager
def database_damaged(service):
    copy = service.folder / "copy.db"
    assert maintain(service, "backup", copy)[0] == 0
    assert service.stop() == 0
    [[page]] = in_database(service, "SELECT rootpage FROM sqlite_schema WHERE name = 'run_telemetry'")
    with open(service.data / "reprod.db", "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    service.start(ready=False)
    yield
    assert service.stop() == 0
    assert maintain(service, "restore", copy)[0] == 0
    service.start()


@contextlib.contextmanager
def stack_unusable(service):
    """As a driver that is not there when the agent starts."""
    well = service.folder.parent / "well"
    well.unlink()
    agent = agent_of(service)
    os.kill(agent, signal.SIGKILL)
    yield
    well.write_text("")


# fault: the condition, and what its words say
FAULTS = {
    folder_removed: ("storage", "removed"),
    database_removed: ("storage", "removed"),
    log_removed: ("storage", "removed"),
    disk_full: ("storage", ""),
    disk_broken: ("storage", ""),
    store_silent: ("storage", "has not answered a write since"),
    database_damaged: ("database", "is damaged"),
    agent_stopped: ("devices", "has not answered since"),
    stack_unusable: ("devices", "is not usable, and is asked again"),
}


def places(service, begin):
    """What each says now; the log of what happened since it had BEGIN bytes."""
    body = service.request("GET", "/readyz")[2]
    yield "readyz", "; ".join(f"{each['name']}: {each['cause']}" for each in body["conditions"]) \
        if "conditions" in body else body["detail"]
    yield "metrics", service.request("GET", "/metrics")[2]
    yield "text", service.request("GET", "/", headers={"Accept": "text/plain"})[2]
    yield "log", service.log.read_text(errors="replace")[begin:]


def wait_for_all(service, begin, is_there):
    """Seconds until each place satisfied IS_THERE(place, text)."""
    start, seen = time.monotonic(), {}
    while len(seen) < 4:
        for place, text in places(service, begin):
            if place not in seen and is_there(place, text):
                seen[place] = round(time.monotonic() - start, 2)
        assert time.monotonic() - start < LIMIT, (seen, dict(places(service, begin)))
        time.sleep(0.02)
    return seen


def told_once(service, begin):
    """However often one looks: a silence has one beginning, and a next one begins after it was told."""
    for _ in range(20):
        service.request("GET", "/readyz")
        time.sleep(0.1)
    log = service.log.read_text(errors="replace")[begin:]
    since = [datetime.datetime.fromisoformat(each) for each in re.findall(r"not answered a write since (\S+)Z", log)]
    assert since and all(abs(a - b) > datetime.timedelta(seconds=0.5) for a, b in zip(since, since[1:])), since


def record(fault, **delays):
    found = json.loads(DELAYS.read_text()) if DELAYS.exists() else {}
    DELAYS.write_text(json.dumps({**found, fault: delays}, indent=1, sort_keys=True) + "\n")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_shown_and_over(start_service, shim, tmp_path, fault):
    worker, well = flawed(tmp_path)
    well.write_text("")
    service = start_service(worker=worker if fault is stack_unusable else SELFTEST_WORKER,
                            env=Disk(tmp_path / "service0" / "data", shim).env)
    finished(service)
    name, words = FAULTS[fault]
    begin = len(service.log.read_text(errors="replace"))

    def is_there(place, text):
        if place == "metrics":
            return f'reprod_condition{{name="{name}"}} 1' in text and words in text and "reprod_ready 0" in text
        return re.search(rf"\b{name}: .*{re.escape(words)}", text) is not None

    def is_over(place, text):
        if place == "metrics":
            return f'reprod_condition{{name="{name}"}} 0' in text and "reprod_ready 1" in text
        if place == "log" and fault is not database_damaged:  # which ends with the service
            return f"health: {name}: well again" in text
        return place == "log" or f"{name}: " not in text

    with fault(service):
        shown = wait_for_all(service, begin, is_there)
        if fault is store_silent:
            told_once(service, begin)
    over = wait_for_all(service, begin, is_over)
    record(fault.__name__, shown=shown, over=over)
    finished(service)


def test_each_part_looks_often_enough():
    """What the sum of it is, for who looks at the page: milliseconds from a fault to its words."""
    look = constant("daemon/service.h", "SERVICE_WATCH_MS")
    page = constant("web/health.js", "ASK_MS")
    noticed = {
        "files": look,
        "commit": page + look + constant("daemon/service_health.c", "ASKED_MS"),
        "silent store": 2 * look + constant("daemon/service_health.c", "ANSWER_MS"),
        "silent agent": constant("daemon/link/link.c", "PING_MS") * constant("daemon/link/link.c", "PINGS_SILENT"),
    }
    assert max(noticed.values()) + page <= 2000, noticed
    # Who only reads the log, or the metrics of others, asks nobody.
    assert look + constant("daemon/service_health.c", "COMMIT_EVERY_MS") <= 2000
