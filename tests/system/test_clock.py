"""A host whose clock was set back while no service ran."""
import sqlite3

from service import SELFTEST_WORKER, Service

HOUR_MS = 3_600_000


def times(service):
    return [run["finished_at"] for run in service.get("/v1/runs")["items"]]


def test_time_goes_on_from_what_is_on_record(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"])
    service.start()
    try:
        for ahead, said in [(5, "time goes on from there"), (60, "their age is not known")]:
            service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1))
            assert service.stop() == 0
            with sqlite3.connect(service.data / "reprod.db") as database:
                database.execute("UPDATE run SET finished_ms = finished_ms + ?", (ahead * HOUR_MS,))
                database.execute("UPDATE cell SET last_ms = last_ms + ?", (ahead * HOUR_MS,))
            database.close()
            before = len(service.log.read_text())
            service.start()
            assert said in service.log.read_text()[before:]
            known = max(times(service))
            service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1))
            assert (max(times(service)) > known) == (ahead == 5)
    finally:
        service.stop()
