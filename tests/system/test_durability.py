"""SIGKILL at random moments: nothing acknowledged is lost, nothing finished is run again."""
import http.client
import os
import random
import subprocess
import time

import pytest

from service import LIMIT, SELFTEST_WORKER, Service

KILLS = int(os.environ.get("REPROD_KILLS", "30"))
RUNS = 6
IDENTITY = ("outcome", "digest", "weight_sum_bits", "iterations", "environment", "device")


def remember_finished(service, job, finished):
    """Notes every finished run of JOB that the service shows; a noted one must not change."""
    for run in service.items(f"/v1/runs?job={job}"):
        if run["finished_at"] is None:
            continue
        identity = {key: run[key] for key in IDENTITY}
        if run["id"] in finished:
            assert finished[run["id"]] == identity
        finished[run["id"]] = identity


def post_job(service, end):
    """The job's id, or None where END came before the service took jobs."""
    while time.monotonic() < end:
        status, _, body = service.request(
            "POST", "/v1/jobs", {"workloads": ["selftest_pass"], "runs": RUNS, "iterations": 3})
        if status == 201:
            return body["id"]
        assert status == 503, body
        time.sleep(0.005)
    return None


def live_at_start(service, rng):
    """The kill comes while the service starts, or soon after."""
    service.start(ready=False)
    time.sleep(rng.uniform(0.0, 0.35))


def live_with_a_job(service, jobs, finished, rng):
    """The kill comes after a job was acknowledged, however long the start took."""
    service.start(ready=False)
    job = post_job(service, time.monotonic() + LIMIT)
    assert job, f"no job taken within {LIMIT} s"
    jobs.append(job)
    end = time.monotonic() + rng.uniform(0.0, 0.35)
    while time.monotonic() < end:
        remember_finished(service, rng.choice(jobs[-3:]), finished)


def check_job(service, job):
    """Every item was answered exactly as often as it was asked for."""
    shown = service.finish_job(job)
    assert shown["state"] == "finished"
    answered = {}
    for run in service.items(f"/v1/runs?job={job}"):
        assert run["finished_at"] is not None
        if run["outcome"] != "lost":
            assert run["outcome"] == "completed", run
            key = (run["variant"], run["device"])
            answered[key] = answered.get(key, 0) + 1
    for item in shown["items"]:
        wanted = answered.get((item["variant"], item["device"]), 0)
        assert wanted == RUNS or item["state"] == "given-up", (item, answered)
        assert wanted <= RUNS


@pytest.mark.flavour
def test_kill_at_random_moments(tmp_path):
    seed = int(os.environ.get("REPROD_SEED", str(int(time.time()))))
    print("REPROD_SEED", seed)
    rng = random.Random(seed)
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"])
    jobs, finished = [], {}
    for kill in range(KILLS):
        try:
            if kill % 4 == 3:
                live_at_start(service, rng)
            else:
                live_with_a_job(service, jobs, finished, rng)
        except (ConnectionError, http.client.HTTPException) as broken:
            raise AssertionError(f"the service failed by itself: {broken!r}") from broken
        finally:
            service.kill()
        if rng.random() < 0.1:
            code, text = service.fsck()
            assert code == 0, text
    service.start()
    assert len(jobs) == KILLS - KILLS // 4
    for job in jobs:
        check_job(service, job)
        remember_finished(service, job, finished)
    for run, identity in finished.items():
        shown = service.get(f"/v1/runs/{run}")
        assert {key: shown[key] for key in IDENTITY} == identity
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text
    assert " 0 differ" in text


def test_restart_goes_on_with_the_same_job(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    job = service.post_job(workloads=["selftest_pass"], runs=200, iterations=3)
    service.wait(lambda: service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] > 5, "progress")
    assert service.stop() == 0
    service.start()
    before = service.get(f"/v1/jobs/{job}")
    assert before["progress"]["runs_done"] > 5
    after = service.finish_job(job)
    assert after["progress"]["runs_done"] == after["progress"]["runs_total"]
    assert after["progress"]["runs_failed"] == 0
    assert service.stop() == 0


def test_the_data_are_their_owners_and_served_once(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"])
    service.start()
    assert service.data.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o777 for path in service.data.iterdir()}
    assert files["reprod.db"] == files["reprod.db-wal"] == 0o600, files
    for path in service.data.iterdir():  # nothing that can be removed is the lock
        path.rename(service.folder / path.name)
    second = subprocess.run(service.command(), capture_output=True, text=True, timeout=LIMIT)
    assert second.returncode == 8 and "another reprod serves" in second.stderr, second
    for path in service.folder.glob("reprod.db*"):
        path.rename(service.data / path.name)
    service.stop()
    service.data.chmod(0o755)
    service.start()
    assert "is open to other users (mode 0755)" in service.log.read_text()
    assert service.stop() == 0
