"""A host whose clock was set back while no service ran, or is set while one does."""
import pathlib
import sys

from service import SELFTEST_WORKER, Service

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from plan import Faults  # noqa: E402


def times(service):
    return [run["finished_at"] for run in service.get("/v1/runs")["items"]]


def test_time_goes_on_from_what_is_on_record(tmp_path):
    for ahead, said in [(5, "time goes on from there"), (60, "their age is not known")]:
        faults = Faults(tmp_path)
        service = Service(tmp_path / str(ahead), worker=SELFTEST_WORKER, options=["--no-survey"], env=faults.plan())
        faults.set_wall_ahead(3600 * ahead)
        service.start()
        try:
            service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1))
            assert service.stop() == 0
            faults.set_wall_ahead(0)
            before = len(service.log.read_text())
            service.start()
            assert said in service.log.read_text()[before:]
            known = max(times(service))
            service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1))
            assert (max(times(service)) > known) == (ahead == 5)
        finally:
            service.stop()


def test_the_clock_is_set_during_runs(tmp_path):
    """Forwards and backwards by hours, again and again: no run ends before it began, nothing is stale."""
    faults = Faults(tmp_path)
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"], env=faults.plan()).start()
    jobs = []
    try:
        for hours in (5, -7, 30, -30, 0):
            faults.set_wall_ahead(3600 * hours)
            job = service.post_job(workloads=["selftest_pass"], runs=3, iterations=2)
            service.wait(lambda job=job: service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] > 0, "a run")
            faults.set_wall_ahead(-3600 * hours)
            shown = service.finish_job(job)
            assert shown["created_at"] <= shown["finished_at"], shown
            jobs.append(job)
        for job in jobs:
            for run in service.items(f"/v1/runs?job={job}"):
                assert run["outcome"] == "completed" and run["started_at"] <= run["finished_at"], run
        [row] = [row for row in service.get("/v1/matrix")["variants"]
                 if (row["workload"], row["variant"]) == ("selftest_pass", "ordered")]
        assert (row["verdict"], row["runs"]) == ("reproducible", 15)
        assert service.get("/readyz")["conditions"] == []
    finally:
        assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text
