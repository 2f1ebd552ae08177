"""Thousands of devices and hundreds of cases: every answer comes, is bounded, and names who dissents.

Eight devices are measured by fake agents; then their rows are copied to 499 further hosts."""
import sqlite3
import sys

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "fleets"))
from fleet_sim import Fleet, catalogue  # noqa: E402

pytestmark = pytest.mark.long

CASES, HOSTS, WRONG = 100, 500, ["GPU-03", "GPU-0619"]
COPY = {"host": {"name": "printf('host-%03d', i)"},
        "device": {"id": "printf('GPU-%04d', i * 8 + CAST(substr(id, 5) AS INT))", "host": "printf('host-%03d', i)"},
        "cell_device": {"device": "printf('GPU-%04d', i * 8 + CAST(substr(device, 5) AS INT))"},
        "cell_device_digest": {"device": "printf('GPU-%04d', i * 8 + CAST(substr(device, 5) AS INT))"}}
KEY = {"host": "name", "device": "id", "cell_device": "device", "cell_device_digest": "device"}


def copy_devices(path):
    """The wrong one once, the others to each host."""
    with sqlite3.connect(path) as db:
        for trigger, in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN"
                                   " ('host', 'device', 'cell_device', 'cell_device_digest', 'cell_dissenter')").fetchall():
            db.execute(f"DROP TRIGGER {trigger}")
        db.execute("CREATE TEMP TABLE n AS WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k"
                   f" WHERE i < {HOSTS - 1}) SELECT i FROM k")
        for table, changed in COPY.items():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            values = ", ".join(changed.get(column, f"t.{column}") for column in columns)
            only = "" if table == "host" else f" WHERE t.{KEY[table]} <> 'GPU-03' OR i = 77"
            db.execute(f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} t, n{only}")
        db.execute("INSERT INTO cell_dissenter SELECT cell, 'GPU-0619', since_ms FROM cell_dissenter")
    db.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    names = [f"imagined_{n:03}" for n in range(CASES)]
    fleet = Fleet(folder, hosts=1, devices=8, wrong={"GPU-03": {}}, workloads=[catalogue(name) for name in names])
    service = Service(folder, options=["--no-survey"], config=fleet.config()).start()
    service.wait(lambda: sum(d["online"] for d in service.get("/v1/devices")["items"]) == 8, "all devices")
    service.finish_job(service.post_job(workloads=names, iterations=1, runs=8))
    assert service.stop() == 0
    copy_devices(service.data / "reprod.db")
    service.command = lambda: [str(BUILD / "reprod"), "serve", "--read-only", str(service.data / "reprod.db"),
                               "--listen", "127.0.0.1:0"]
    service.start(ready=False)
    yield service
    service.stop()


def test_devices_are_folded_to_what_most_show(large):
    view = large.get("/v1/matrix?view=devices")
    assert [column["id"] for column in view["columns"]] == ["majority", *WRONG]
    assert (view["columns"][0]["devices"], view["columns"][0]["hosts"]) == (3500, HOSTS)
    assert len([row for group in view["groups"] for row in group["rows"]]) == 2 * CASES
    text = large.get("/v1/matrix.txt?view=devices&rows=differing")
    assert len(text.splitlines()) < 3 * CASES and max(map(len, text.splitlines())) <= 118


def test_each_host_is_a_column_where_it_is_asked_for(large):
    page = large.get("/v1/matrix?view=devices&columns=hosts&limit=100")
    assert len(page["columns"]) == 100 and page["column_count"] == 2 * 8 + HOSTS - 2
    text = large.get("/v1/matrix.txt?view=devices&columns=hosts&limit=100")
    assert "more columns: &cursor=" in text and len(text.splitlines()) < 1700
    # However many columns are asked for, an answer has so many entries at most.
    wide = large.get("/v1/matrix?view=devices&columns=hosts&limit=1000")
    assert len(wide["columns"]) == 40000 // (2 * CASES) and wide["next"]
    assert large.get("/v1/matrix.csv?view=devices&columns=hosts").count("\r\n") == 100 * 2 * CASES + 1


def test_a_cell_of_thousands_is_bounded(large):
    path = large.get("/v1/findings?limit=1")["items"][0]["href"]
    cell = large.get(path)
    assert len(cell["devices"]) == 64 and cell["devices_truncated"]
    assert [d["device"] for d in cell["dissent"]["dissenters"]] == WRONG
    devices = large.get(f"{path}/devices?limit=10")
    assert devices["device_count"] == 3502 and [camp["size"] for camp in devices["camps"]] == [3500, 2]
    assert [d["device"] for d in devices["items"][:2]] == WRONG and devices["next"]
    assert len(large.items(f"{path}/devices")) == 3502
    assert len(large.get(f"{path}.txt").splitlines()) < 250


def test_devices_and_findings_come_in_pages(large):
    assert len(large.get("/v1/devices")["items"]) == 100
    assert len(large.items("/v1/devices")) == 3502
    assert [d["id"] for d in large.items("/v1/devices?dissents=only")] == WRONG
    assert len(large.get("/v1/findings")["items"]) == 100 and len(large.items("/v1/findings")) == 2 * CASES
    assert len(large.get("/v1/devices/GPU-03.txt").splitlines()) < 150
