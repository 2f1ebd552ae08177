"""A kernel without pidfds, as before Linux 5.3 and in some sandboxes: processes end all the same."""
import errno
import os
import pathlib
import signal
import sys

import pytest

from service import ROOT, SELFTEST_WORKER, Service

FILTER = ROOT / "tests" / "fixtures" / "without_pidfds.py"


class Older(Service):
    error = errno.ENOSYS

    def command(self):
        return [sys.executable, str(FILTER), str(self.error), *super().command()]


def agent_of(service):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if parent == service.process.pid and b"agent" in words:
            return int(folder.name)
    return None


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_runs_end_and_are_killed_and_an_agent_is_replaced(error, tmp_path):
    service = Older(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"])
    service.error = error
    service.start()
    try:
        jobs = [service.post_job(workloads=["selftest_pass", "selftest_crash"], variants=["ordered", "compute"],
                                 runs=1, iterations=1),
                service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, iterations=1,
                                 timeout_seconds=1)]
        for job in jobs:
            service.finish_job(job)
        ends = {(run["workload"], run["outcome"]) for job in jobs for run in service.items(f"/v1/runs?job={job}")}
        assert {("selftest_pass", "completed"), ("selftest_crash", "crashed"), ("selftest_hang", "timeout")} == ends
        before = agent_of(service)
        os.kill(before, signal.SIGKILL)
        service.wait(lambda: agent_of(service) not in (None, before), "another agent")
        service.wait(lambda: any(device["online"] for device in service.get("/v1/devices")["items"]), "a device")
        job = service.post_job(workloads=["selftest_pass"], runs=1, iterations=1)
        assert service.finish_job(job)["progress"]["runs_failed"] == 0
    finally:
        assert service.stop() == 0, service.log.read_text()[-2000:]
