"""Old runs are folded while the service runs: nothing that it concludes changes."""
import json
import signal
import subprocess

from service import BUILD, SELFTEST_WORKER, Service

CELLS = 4
RUNS = 400
KEPT = 10
SETTINGS = {"retention_days": 1, "retention_runs": KEPT}


def all_cells(service, environment):
    matrix = service.get(f"/v1/matrix?environment={environment}")
    matrix.pop("as_of")
    return matrix


def cells_of(service, numbers):
    return [service.get(f"/v1/cells/{number}") for number in numbers]


def summaries(service):
    return sum(service.get(f"/v1/runs?cell={cell}&limit=1")["folded"] for cell in range(1, CELLS + 1))


def test_old_runs_are_folded(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"], config=SETTINGS)
    service.data.mkdir()
    # Runs of 1970, of a job that is open.
    subprocess.run([BUILD / "tests/bench-ingest", "store", service.data, str(RUNS), str(CELLS)], check=True,
                   capture_output=True)
    service.start()
    try:
        job = service.get("/v1/jobs")["items"][0]["id"]
        ids = {run["id"] for run in service.items("/v1/runs")}
        service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1))
        cells = cells_of(service, range(1, CELLS + 1))
        matrix = all_cells(service, f"{1:032x}")
        assert summaries(service) == 0
        service.request("DELETE", f"/v1/jobs/{job}")
        service.finish_job(job)
        before = service.get(f"/v1/jobs/{job}")
        digests = {group["variant"] + group["workload"]: group["distinct_first_digests"]
                   for group in service.get(f"/v1/jobs/{job}/digests")["groups"]}
        service.stop()
        service.start()
        service.wait(lambda: summaries(service) > 0, "folded runs")
        service.wait(lambda: "were folded into" in service.log.read_text(), "the end of the pass")
        folded = summaries(service)
        assert folded > RUNS / 4

        # What is said of cells and jobs stays.
        assert cells_of(service, range(1, CELLS + 1)) == cells
        assert all_cells(service, f"{1:032x}") == matrix
        assert service.get(f"/v1/jobs/{job}") == before
        answer = service.get(f"/v1/jobs/{job}/digests")
        assert {group["variant"] + group["workload"]: group["distinct_first_digests"]
                for group in answer["groups"]} == digests
        assert sum(line["runs"] for group in answer["groups"] for line in group["folded"]) == folded
        assert sum(len(group["runs"]) for group in answer["groups"]) == RUNS - folded
        text = service.request("GET", f"/v1/jobs/{job}/digests", headers={"Accept": "text/plain"})[2]
        assert "old runs, folded)" in text and f": {RUNS // CELLS} runs," in text

        # A run is either in the lists or said to be folded; one that never was is unknown.
        left = {run["id"] for run in service.items(f"/v1/runs?job={job}")}
        assert service.get(f"/v1/runs?job={job}")["folded"] == folded == len(ids - left)
        gone = sorted(ids - left)[0]
        for path in (f"/v1/runs/{gone}", f"/v1/runs/{gone}/log", f"/v1/runs/{gone}/trace",
                     f"/v1/compare?a={gone}&b={sorted(left)[0]}"):
            status, _, problem = service.request("GET", path, headers={"Accept": "application/json"})
            assert (status, problem["type"]) == (410, "/problems/folded"), (path, problem)
            assert "retention_days" in problem["detail"] and job in problem["detail"]
        assert service.request("GET", "/v1/runs/01R0000000000000000000000Z")[0] == 404

        # Killed in between, it goes on, and fsck agrees with all of it.
        service.kill()
        service.start()
        assert summaries(service) >= folded
        assert service.fsck()[0] == 0
        service.stop()
        code, text = service.fsck()
        assert code == 0 and "did not change since" in text, text
        full = subprocess.run([BUILD / "reprod", "fsck", "--full", "--data", service.data], check=True,
                              capture_output=True, text=True).stdout
        assert full.startswith(f"{CELLS + 1} cells recomputed") and "did not change" not in full, full
    finally:
        service.stop()


def test_nothing_is_folded_unless_it_is_wanted(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"],
                      config={**SETTINGS, "retention_days": 0})
    service.data.mkdir()
    subprocess.run([BUILD / "tests/bench-ingest", "store", service.data, str(RUNS), str(CELLS)], check=True,
                   capture_output=True)
    service.start()
    try:
        job = service.get("/v1/jobs")["items"][0]["id"]
        service.request("DELETE", f"/v1/jobs/{job}")
        service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1))
        service.wait(lambda: "fsck:" in service.log.read_text(), "a look at the database")
        assert summaries(service) == 0
        # The same service folds once it is told to.
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**config, **SETTINGS}))
        service.process.send_signal(signal.SIGHUP)
        service.wait(lambda: summaries(service) > 0, "folded runs")
    finally:
        service.stop()
