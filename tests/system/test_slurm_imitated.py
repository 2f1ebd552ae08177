"""Hosts of a Slurm that is imitated, for what a real one does seldom, and as newer versions speak."""
import os
import pathlib
import shutil
import signal

import pytest

from service import BUILD, ROOT, SELFTEST_WORKER, Service
from test_processes import children_of


class Site:
    def __init__(self, folder, agent=()):
        self.folder = folder
        for name in ("sinfo", "squeue", "scancel", "srun"):
            shutil.copy(ROOT / "tests" / "slurm" / "imitation", folder / name)
        (folder / "jobs").mkdir()
        (folder / "nodes.json").write_text('{"n1": ["IDLE"]}')
        self.service = Service(folder / "site", options=["--no-survey"], config={
            "hosts": [{"name": "n1", "engine": "slurm",
                       "agent": [str(BUILD / "reprod"), "agent", "--stack", f"cpu={SELFTEST_WORKER}", *agent]}],
            "slurm": {"every_seconds": 1}}, env={"PATH": f"{folder}:{os.environ['PATH']}", "IMITATION": str(folder)})
        self.service.start()

    def hang(self):
        """A job of the service with a run that does not end by itself."""
        job = self.service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, iterations=1, timeout_seconds=600)
        self.service.wait(lambda: [run for run in self.runs(job) if run["process"]["pid"]], "the run")
        return job

    def runs(self, job):
        return self.service.items(f"/v1/runs?job={job}")

    def kill_agent(self, end):
        """Its job is in state END from then on, although srun exits with 0."""
        (self.folder / "n1.end").write_text(end)
        [srun] = [pid for pid in children_of(self.service.process.pid)
                  if "--nodelist=n1" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
        [agent] = children_of(srun)
        os.kill(agent, signal.SIGKILL)


pytestmark = pytest.mark.long


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    if site.service.process:
        assert site.service.stop() == 0
    assert site.service.fsck()[0] == 0


def test_a_node_dies_while_the_service_ends(site):
    """That is said of its run, and nobody waits for it."""
    job = site.hang()
    site.service.process.send_signal(signal.SIGTERM)
    site.service.wait(lambda: "may finish" in site.service.log.read_text(), "the end began")
    site.kill_agent("NODE_FAIL")
    assert site.service.process.wait() == 0
    site.service.process.stdout.close()
    site.service.process = None
    assert "slurm: node failure of n1 (job 101)" in site.service.log.read_text()
    (site.folder / "n1.wait").touch()
    site.service.start(ready=False)
    assert [run["outcome"] for run in site.runs(job) if run["outcome"]] == ["lost"]
