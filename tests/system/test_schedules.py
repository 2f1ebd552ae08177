"""Recurring jobs: made when they are due, once each time, whatever happens to the service."""
import csv
import datetime
import http.client
import io
import pathlib
import sqlite3
import subprocess
import sys
import time

import pytest

from service import BUILD, LIMIT, Service

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "faults"), str(TESTS / "fleets")]
from fleet_sim import Fleet  # noqa: E402
from plan import Faults  # noqa: E402

JOB = {"workloads": ["selftest_pass"], "runs": 2, "iterations": 2}


def post(service, **members):
    return service.request("POST", "/v1/schedules", {"name": "s", "every": "1d", "job": JOB, **members})


def make_due(service, ms_ago):
    """Of a service that is stopped: as if its only schedule had been due so long ago."""
    with sqlite3.connect(service.data / "reprod.db") as db:
        changed = db.execute("UPDATE schedule SET next_ms = ?", (int(time.time() * 1000) - ms_ago,)).rowcount
    assert changed == 1
    sealed = subprocess.run([str(BUILD / "reprod"), "fsck", "--accept-loss", "--data", str(service.data)],
                            capture_output=True, text=True, timeout=LIMIT)
    assert "schedule" in sealed.stdout, sealed  # its row was not what was stored; it is now


def set_due(service, ms_ago):
    assert service.stop() == 0
    make_due(service, ms_ago)
    service.start()


def test_a_schedule_from_its_making_to_its_end(start_service):
    service = start_service()
    status, headers, made = post(service, name="daily", every="24h")
    assert status == 201 and headers["Location"] == f"/v1/schedules/{made['id']}"
    assert made["every"] == "1d" and made["calendar"] is None and made["jobs"] == 0
    assert made["job"]["priority"] == "scheduled" and made["job"]["note"] == "schedule daily"
    assert len(made["next_times"]) == 5 and made["next_times"][0] == made["next_at"]
    assert made["results"] == []
    assert service.get("/v1/schedules")["items"][0]["id"] == made["id"]
    text = service.get("/v1/schedules.txt")
    assert "daily" in text and "1d" in text
    changed = {"name": "weekly", "calendar": "30 2 * * 1-5", "job": JOB}
    status, _, replaced = service.request("PUT", f"/v1/schedules/{made['id']}", changed)
    assert status == 200 and replaced["name"] == "weekly" and replaced["every"] is None
    assert all(at.endswith("T02:30:00.000Z") for at in replaced["next_times"])
    status, _, paused = service.request("POST", f"/v1/schedules/{made['id']}/pause")
    assert status == 200 and paused["paused"] and paused["next_at"] is None
    assert paused["next_times"] == []
    status, _, resumed = service.request("POST", f"/v1/schedules/{made['id']}/resume")
    assert status == 200 and not resumed["paused"] and resumed["next_at"] == replaced["next_at"]
    status, _, removed = service.request("DELETE", f"/v1/schedules/{made['id']}")
    assert status == 200 and removed["id"] == made["id"]
    assert service.request("GET", f"/v1/schedules/{made['id']}")[0] == 404
    assert service.request("DELETE", f"/v1/schedules/{made['id']}")[0] == 404


def set_next(service, milliseconds):
    """Of a service that is stopped: as if all of its schedules were due that much later than now."""
    with sqlite3.connect(service.data / "reprod.db") as db:
        db.execute("UPDATE schedule SET next_ms = ?", (int(time.time() * 1000) + milliseconds,))
    subprocess.run([str(BUILD / "reprod"), "fsck", "--accept-loss", "--data", str(service.data)],
                   capture_output=True, text=True, timeout=LIMIT)


def test_many_that_are_due_together_are_all_made(start_service):
    """Not one a second: forty are made in few turns of the service's clock."""
    service = start_service()
    for i in range(40):
        assert post(service, name=f"s{i}", every="1d")[0] == 201
    assert service.stop() == 0
    set_next(service, -1000)
    service.start()
    service.wait(lambda: service.get("/v1/schedules?limit=100")["items"][0]["jobs"] == 1, "the first job")
    service.wait(lambda: sum(s["jobs"] for s in service.get("/v1/schedules?limit=100")["items"]) == 40, "all jobs")
    made = sorted(job["created_at"] for job in service.items("/v1/jobs") if job["priority"] == "scheduled")
    turns = {at[:19] for at in made}  # seconds: each job would have one of its own
    assert len(made) == 40 and len(turns) <= 20, turns


def test_a_clock_that_was_ahead_silences_no_schedule(start_service):
    service = start_service()
    made = post(service, name="hourly", every="1h")[2]
    nightly = {"name": "nightly", "calendar": "30 2 * * *", "job": JOB}
    assert service.request("POST", "/v1/schedules", nightly)[0] == 201
    assert service.stop() == 0
    set_next(service, 10 * 24 * 3600 * 1000)
    service.start()

    def nearest():
        items = service.get("/v1/schedules")["items"]
        soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 26 * 3600))
        return all(s["next_at"] < soon for s in items)
    service.wait(nearest, "times that follow from now")
    hourly = service.get(f"/v1/schedules/{made['id']}")
    assert hourly["jobs"] == 0 and hourly["skipped"] == 0
    assert "the clock was set back" in hourly["problem"]


def test_what_was_missed_is_made_up_once(start_service):
    service = start_service()
    made = post(service, name="hourly", every="1h")[2]
    set_due(service, 30 * 3600 * 1000)  # thirty times
    path = f"/v1/schedules/{made['id']}"
    service.wait(lambda: service.get(path)["jobs"] == 1, "its job")
    shown = service.get(path)
    assert shown["next_at"] == made["next_at"]  # the rhythm of before
    assert shown["results"][0]["job"] == shown["last_job"]
    job = service.finish_job(shown["last_job"])
    assert job["progress"]["runs_done"] == 4 and job["request"]["note"] == "schedule hourly"
    result = service.get(path)["results"][0]
    assert (result["state"], result["runs_done"], result["runs_failed"]) == ("finished", 4, 0)
    assert service.stop() == 0
    service.start()
    assert service.get(path)["jobs"] == 1
    service.wait(lambda: service.get("/readyz")["status"] == "ready", "ready")
    assert service.get(path)["jobs"] == 1
    code, text = service.fsck()
    assert code == 0, text


@pytest.mark.long
def test_a_time_makes_one_job_whenever_the_service_is_killed(start_service):
    service = start_service()
    made = post(service, name="hourly", every="1h")[2]
    path = f"/v1/schedules/{made['id']}"
    for kill in range(6):
        set_due(service, 60 * 1000)
        if kill % 2:
            service.wait(lambda done=kill: service.get(path)["jobs"] > done, "its job")
        service.kill()
        service.start()
        service.wait(lambda done=kill: service.get(path)["jobs"] > done, "its job")
        assert service.get(path)["jobs"] == kill + 1
        service.finish_job(service.get(path)["last_job"])
    assert len(service.items("/v1/jobs")) == 6


def test_a_job_that_is_still_open_is_not_made_twice(start_service):
    service = start_service()
    made = post(service, name="slow", every="1h",
                job={"workloads": ["selftest_hang"], "runs": 1, "timeout_seconds": 600})[2]
    path = f"/v1/schedules/{made['id']}"
    set_due(service, 1000)
    service.wait(lambda: service.get(path)["jobs"] == 1, "its job")
    first = service.get(path)["last_job"]
    service.kill()  # a stop would wait for what hangs
    make_due(service, 1000)
    service.start()
    service.wait(lambda: service.get(path)["skipped"] == 1, "skipped")
    shown = service.get(path)
    assert shown["jobs"] == 1 and shown["last_job"] == first
    assert shown["problem"] == f"its last job, {first}, is still open" and shown["problem_at"]
    assert service.request("DELETE", f"/v1/jobs/{first}")[0] == 200


def milliseconds(at):
    return round(1000 * datetime.datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp())


def test_a_period_that_is_changed_stays_a_period(start_service):
    """Its times are counted from when it was made, also the first one after a change."""
    service = start_service()
    path = f"/v1/schedules/{post(service, every='6h')[2]['id']}"
    assert service.stop() == 0
    with sqlite3.connect(service.data / "reprod.db") as db:  # as if it had been made five hours ago
        db.execute("UPDATE schedule SET created_ms = created_ms - 18000000, next_ms = next_ms - 18000000")
    subprocess.run([str(BUILD / "reprod"), "fsck", "--accept-loss", "--data", str(service.data)],
                   capture_output=True, text=True, timeout=LIMIT)
    service.start()
    for every, gap in (("6h", 21600000), ("90m", 5400000)):
        status, _, shown = service.request("PUT", path, {"name": "s", "every": every, "job": JOB})
        assert status == 200, shown
        times = [milliseconds(at) for at in [shown["created_at"], *shown["next_times"]]]
        assert {(later - times[0]) % gap for later in times} == {0}, shown
        assert [b - a for a, b in zip(times[1:], times[2:])] == [gap] * 4, shown


def test_hosts_begin_before_it_is_due_again(start_service):
    service = start_service()
    for members, pointer in (({"every": "1h", "spread_seconds": 3600}, "/spread_seconds"),
                             ({"every": None, "calendar": "0,10 * * * *", "spread_seconds": 601}, "/spread_seconds")):
        body = {name: value for name, value in {"name": "s", "job": JOB, **members}.items() if value is not None}
        status, _, problem = service.request("POST", "/v1/schedules", body)
        assert status == 422 and problem["errors"][0]["pointer"] == pointer, problem
        assert "would be due again after" in problem["errors"][0]["detail"]
    assert post(service, every="1h", spread_seconds=3599)[0] == 201


@pytest.mark.parametrize("members,pointer,says", [
    ({"every": "5s"}, "/every", "column 2: must be a number with a unit"),
    ({"every": " 5m"}, "/every", "column 1: must be a number with a unit"),
    ({"every": "5m "}, "/every", "column 3: must be a number with a unit"),
    ({"every": "0h"}, "/every", "column 1: must be a number with a unit"),
    ({"every": "9999w"}, "/every", "a year at most"),
    ({"every": None}, "/every", "must be a text"),
    ({"calendar": "0 0 * * *"}, "", "either 'every' or 'calendar'"),
    ({"name": ""}, "/name", ""),
    ({"job": {}, "colour": 1}, "/colour", "has no member"),
    ({"job": {"workloads": ["selftest_pas"]}}, "/job/workloads/0", "did you mean 'selftest_pass'"),
    ({"job": {"workloads": ["selftest_pass"], "localise": True}}, "/job/localise", "does not localise"),
    ({"job": {"runs": 0}}, "/job/runs", ""),
    ({"spread_seconds": -1}, "/spread_seconds", ""),
])
def test_schedules_that_cannot_be(service, members, pointer, says):
    status, _, body = post(service, **members)
    assert status == 422, body
    assert [(e["pointer"], says in e["detail"]) for e in body["errors"]][0] == (pointer, True), body
    assert service.get("/v1/schedules")["items"] == []


@pytest.mark.parametrize("calendar,says", [
    ("0 2  * * * 1 ", "column 12: there are more than five fields"),
    ("0 24 * * *", "column 3: the number is out of bounds (hour, 0-23)"),
    ("0 0 1 * 1", "column 1: days of the month and days of the week are both given"),
    ("0 0 31 2 *", "it would never be due"),
])
def test_calendars_that_cannot_be(service, calendar, says):
    status, _, body = service.request("POST", "/v1/schedules",
                                      {"name": "c", "calendar": calendar, "job": JOB})
    assert status == 422 and body["errors"][0]["pointer"] == "/calendar"
    assert says in body["errors"][0]["detail"]


def test_more_often_than_its_runs_take(start_service):
    service = start_service()
    service.finish_job(service.post_job(**JOB))
    many = {**JOB, "runs": 100000}  # of two variants, a millisecond each at the very least
    status, _, body = post(service, name="dense", every="1m", job=many)
    assert status == 422 and body["errors"][0]["pointer"] == "/every", body
    assert " s on cpu:" in body["errors"][0]["detail"] and "due again after 1m" in body["errors"][0]["detail"]
    assert post(service, name="dense", every="52w", job=many)[0] == 201
    assert post(service, name="unknown", every="1m", job={"workloads": ["selftest_nan_everywhere"], "runs": 100000})[0] \
        == 201  # it never ran: nothing is known


def test_names_and_keys_are_used_once(start_service):
    service = start_service()
    body = {"name": "one", "every": "1d", "job": JOB}
    key = {"Idempotency-Key": "k"}
    first = service.request("POST", "/v1/schedules", body, headers=key)
    again = service.request("POST", "/v1/schedules", body, headers=key)
    assert (first[0], again[0]) == (201, 200) and first[2]["id"] == again[2]["id"]
    assert again[1]["Idempotent-Replay"] == "true"
    other = service.request("POST", "/v1/schedules", {**body, "name": "two"}, headers=key)
    assert other[0] == 409
    taken = post(service, name="one")
    assert taken[0] == 409 and "has the name 'one' already" in taken[2]["detail"]


def test_what_was_changed_meanwhile_is_not_overwritten(start_service):
    """Two people read a schedule: the second one to change it is told."""
    service = start_service()
    made = post(service, name="shared", every="1d")
    path, body = f"/v1/schedules/{made[2]['id']}", {"name": "shared", "every": "2d", "job": JOB}
    read = service.request("GET", path)[1]["ETag"]

    changed = service.request("PUT", path, body, headers={"If-Match": f'"0", {read}'})
    assert changed[0] == 200 and changed[1]["ETag"] != read
    for method, at, data in (("PUT", path, {**body, "every": "3d"}), ("DELETE", path, None),
                             ("POST", path + "/pause", None), ("POST", path + "/resume", None)):
        status, headers, problem = service.request(method, at, data, headers={"If-Match": read})
        assert (status, problem["type"]) == (412, "/problems/precondition-failed"), (method, problem)
        assert headers["Content-Type"] == "application/problem+json"
        assert changed[1]["ETag"] in problem["detail"]
    assert service.get(path)["every"] == "2d" and not service.get(path)["paused"]
    assert service.request("POST", path + "/pause", headers={"If-Match": changed[1]["ETag"]})[0] == 200
    assert service.request("POST", path + "/resume", headers={"If-Match": "*"})[0] == 200
    assert service.request("DELETE", path, headers={"If-Match": service.request("GET", path)[1]["ETag"]})[0] == 200
    assert service.request("PUT", path, body, headers={"If-Match": "*"})[0] == 404


@pytest.mark.parametrize("tags,status", [(("{}", '"0"'), 200), (('"0"', "{}"), 200), (('"0"', '"1"'), 412)])
def test_a_list_of_tags_may_come_in_several_lines(start_service, tags, status):
    service = start_service()
    path = f"/v1/schedules/{post(service)[2]['id']}"
    read = service.request("GET", path)[1]["ETag"]
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT)
    connection.putrequest("POST", path + "/pause")
    for tag in tags:
        connection.putheader("If-Match", tag.format(read))
    connection.putheader("Content-Length", "0")
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()
    connection.putrequest("GET", path)
    for tag in tags:
        connection.putheader("If-None-Match", tag.format(service.request("GET", path)[1]["ETag"]))
    connection.endheaders()
    assert connection.getresponse().status == (304 if status == 200 else 200)
    connection.close()


def test_a_name_is_no_formula_of_a_spreadsheet(start_service):
    service = start_service()
    post(service, name="=HYPERLINK(1)")
    [row] = csv.DictReader(io.StringIO(service.get("/v1/schedules.csv")))
    assert row["name"] == "'=HYPERLINK(1)"
    assert service.items("/v1/schedules")[0]["name"] == "=HYPERLINK(1)"


def test_a_schedule_that_was_edited_makes_no_job(start_service):
    service = start_service()
    _, _, made = post(service, name="edited")
    # The look at the database that follows a start is over: one that finds the row refuses to remove it.
    service.wait(lambda: " recomputed, " in service.log.read_text(), "a look at the database")
    with sqlite3.connect(service.data / "reprod.db", timeout=LIMIT) as db:
        db.execute("UPDATE schedule SET next_ms = 1")
    post(service, name="another")  # all are read again
    service.wait(lambda: "schedule edited: its row" in service.log.read_text(), "what is wrong")
    assert "not what was stored" in service.get(f"/v1/schedules/{made['id']}")["problem"]
    assert service.items("/v1/jobs") == []
    assert service.request("DELETE", f"/v1/schedules/{made['id']}")[0] == 200
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text


DAY = 24 * 3600
SPREAD = 6 * 3600


def delay_of(schedule, host):
    """When a host begins, in ms after the job was made (daemon/jobs/schedule.h)."""
    value = 0xcbf29ce484222325
    for byte in (schedule + host).encode():
        value = (value ^ byte) * 0x100000001b3 % 2 ** 64
    return (value ^ value >> 32) % (1000 * SPREAD)


def test_hosts_wait_for_their_turn_over_a_restart(tmp_path):
    faults = Faults(tmp_path)
    fleet = Fleet(tmp_path, hosts=2, devices=1)
    service = Service(tmp_path / "service", options=["--no-survey"], env=faults.plan(), config=fleet.config())
    service.start()
    try:
        service.wait(lambda: sum(d["online"] for d in service.get("/v1/devices")["items"]) == 2, "devices")
        while True:  # with a name that has both hosts wait
            made = post(service, job={"workloads": ["imagined"], "runs": 2, "iterations": 2},
                        spread_seconds=SPREAD)[2]
            if min(delay_of(made["id"], host) for host in fleet.names) > 3600 * 1000:
                break
            service.request("DELETE", f"/v1/schedules/{made['id']}")
        assert service.stop() == 0
        faults.set_wall_ahead(DAY)
        service.start()
        service.wait(lambda: service.get("/v1/jobs")["items"], "its job")
        [job] = service.get("/v1/jobs")["items"]

        def starts(ahead):
            """Runs done after a restart at AHEAD, once every device has computed something else."""
            assert service.stop() == 0
            faults.set_wall_ahead(ahead)
            service.start()
            service.wait(lambda: sum(d["online"] for d in service.get("/v1/devices")["items"]) == 2, "devices")
            service.finish_job(service.post_job(workloads=["imagined"], seeds=[5], runs=2, iterations=1))
            return service.get(f"/v1/jobs/{job['id']}")["progress"]["runs_done"]

        assert starts(DAY) == 0, "not at once"
        assert starts(DAY + 1800) == 0
        turns = sorted(delay_of(made["id"], host) / 1000 for host in fleet.names)
        starts(DAY + SPREAD + 60)
        assert service.finish_job(job["id"])["progress"]["runs_done"] == 8 and turns[1] < SPREAD
    finally:
        service.stop()
