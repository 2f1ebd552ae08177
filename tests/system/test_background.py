"""Background evidence: what is measured while nobody requests anything."""
import datetime
import json
import sqlite3
import subprocess

from service import BUILD, LIMIT

EAGER = {"background": {"budget_percent": 50, "target_percent": 1, "target_days": 30, "every_seconds": 1}}


def background_jobs(service):
    everything = {job["id"] for job in service.items("/v1/jobs")}
    return everything - {job["id"] for job in service.items("/v1/jobs?background=no")}


def bounds(service):
    """Of the reproducible cells: the runs that stand behind each."""
    with sqlite3.connect(service.data / "reprod.db") as db:
        return dict(db.execute("SELECT c.id, c.completed FROM cell c JOIN case_key k ON k.number = c.case_key"
                               " WHERE c.verdict = 'reproducible' AND NOT k.is_control").fetchall())


def standing(service):
    [device] = service.get("/v1/background")["items"]
    return device


def test_bounds_fall_by_themselves(start_service):
    service = start_service(options=(), config={**EAGER, "survey": False})
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3, iterations=3))
    before = bounds(service)
    assert len(before) == 1
    service.wait(lambda: all(now > before[cell] for cell, now in bounds(service).items()), "more runs")
    shown = service.get("/v1/background")
    assert shown["budget_percent"] == 50 and shown["every_seconds"] == 1
    device = shown["items"][0]
    assert device["device"].startswith("cpu:") and device["spent_seconds"] > 0
    assert "cpu:" in service.get("/v1/background.txt")
    # The look before a job saw what was there; a later one sees that it fell.
    service.wait(lambda: 0 < standing(service)["weakest_bound"] < 0.7, "a weakest bound that fell")
    device = standing(service)
    assert device["cells"] == 1 and device["looked_at"] >= device["oldest_run_at"] > service.get(
        f"/v1/cells/{next(iter(before))}")["first_run_at"]
    job = service.finish_job(min(background_jobs(service)))
    assert job["request"]["note"] == "background evidence" and job["request"]["priority"] == "background"
    assert {item["variant"] for item in job["items"]} == {"ordered", "unordered"}  # with its control
    assert len(service.items("/v1/jobs?background=no")) == 1


def test_what_was_spent_was_saved_before(start_service):
    """However slow runs are: what a device gave and has left is never more than its share."""
    service = start_service(options=(), config={**EAGER, "survey": False})
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3, iterations=3))
    service.wait(lambda: len(background_jobs(service)) >= 3, "background jobs")
    device = service.get("/v1/background")["items"][0]
    passed = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(device["since"])
    assert device["spent_seconds"] > 0
    assert device["spent_seconds"] + device["saved_seconds"] <= 0.5 * passed.total_seconds() + 0.1


def test_what_is_requested_comes_first(start_service):
    """A job that comes meanwhile starts after the run that is going on, not after the job."""
    service = start_service(options=(), config={**EAGER, "survey": False})
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3, iterations=3))
    service.wait(lambda: background_jobs(service), "a background job")
    asked = service.post_job(workloads=["selftest_pass"], runs=3, iterations=3)
    service.finish_job(asked)
    rows = [(run["job"], run["started_at"]) for run in reversed(service.items("/v1/runs"))]
    created = service.get(f"/v1/jobs/{asked}")["created_at"]
    between = [job for job, started in rows if started and started > created]
    first = between.index(asked)
    assert first <= 1, between[:5]
    mine = [index for index, job in enumerate(between) if job == asked]
    assert mine == list(range(first, first + len(mine))), between


def test_nothing_where_nothing_is_wanted(start_service):
    service = start_service(config=EAGER)  # with --no-survey
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3, iterations=3))
    shown = service.get("/v1/background")
    assert shown["budget_percent"] == 0 and shown["items"] == []
    assert background_jobs(service) == set()


def test_a_budget_that_cannot_be(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"background": {"budget_percent": 101}}))
    done = subprocess.run([str(BUILD / "reprod"), "serve", "--config", str(config), "--data", str(tmp_path / "data")],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2
    assert "/background/budget_percent: must be a number from 0 to 100" in done.stderr, done.stderr
