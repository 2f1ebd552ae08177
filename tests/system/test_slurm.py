"""Hosts that a real Slurm starts: three nodes on this machine."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

import slurm
from service import ROOT
from slurm import NODES, Cluster, Site
from test_processes import children_of

pytestmark = [pytest.mark.long, pytest.mark.skipif(slurm.missing() is not None, reason=str(slurm.missing()))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        yield cluster.start()
    finally:
        cluster.loopback("stop")


@pytest.fixture
def site(cluster, tmp_path):
    site = Site(cluster, tmp_path / "site")
    yield site.start()
    if site.service.process:
        site.let_go()
        assert site.service.stop() == 0
    assert site.service.fsck()[0] == 0
    assert cluster.jobs() == []


def test_nodes_are_surveyed_through_one_service(site):
    """Their features and devices are shown, and jobs of one step each are all that there is."""
    site.online()
    nodes = {name: host["node"] for name, host in site.hosts().items()}
    assert {name: (node["features"], node["gres"]) for name, node in nodes.items()} == {
        "n1": (["a", "driver-1"], "gpu:a:2"), "n2": (["b", "driver-2"], "gpu:b:2"), "n3": (["a", "driver-2"], "gpu:a:1")}
    site.service.wait(lambda: all(host["node"]["job"] for host in site.hosts().values()), "the jobs")
    assert sorted(node for _, node, state in site.cluster.jobs() if state == "RUNNING") == list(NODES)
    job = site.service.post_job(workloads=["selftest_pass", "selftest_wrong"], variants=["ordered"], runs=3, iterations=2)
    done = site.service.finish_job(job)
    assert done["state"] == "finished"
    assert {name: [run["outcome"] for run in runs] for name, runs in site.runs(job).items()}.keys() == set(NODES)


def test_a_node_dies_one_is_drained_and_a_job_is_preempted(site):
    """In the middle of their runs.  Each run is accounted for, and each is made in the end."""
    cluster, service = site.cluster, site.service
    site.online()
    job = service.post_job(workloads=["waits"], variants=["only"], runs=1, iterations=1, timeout_seconds=600)
    service.wait(lambda: site.running(job) == set(NODES), "three runs")

    cluster.kill_node("n1")
    cluster.run("scontrol", "update", "nodename=n2", "state=drain", "reason=flaky ECC")
    urgent = cluster.background("srun", "-p", "urgent", "-w", "n3", "-N1", "--exclusive", "sleep", "600")
    try:
        service.wait(lambda: "slurm: draining: flaky ECC" in site.cause("n2"), "a held host")
        assert site.running(job) >= {"n2"}, "a drained node ends what it has"
        service.wait(lambda: len(site.runs(job)["n3"]) and site.runs(job)["n3"][0]["outcome"] not in (None, "running"),
                     "the end of the run on n3")
        service.wait(lambda: "slurm: job" in site.cause("n3"), "a job that waits")
        assert len([one for one in cluster.jobs() if one[1] == "n3"]) == 1
        service.wait(lambda: site.runs(job)["n1"][0]["outcome"] == "lost", "the run on n1")
        site.let_go()
        service.wait(lambda: site.runs(job)["n2"][0]["outcome"] == "completed", "the run on n2")
        service.wait(lambda: "slurm: drained: flaky ECC" in site.cause("n2") and not site.hosts()["n2"]["online"],
                     "a host that is let go")
        assert {node for _, node, _ in cluster.jobs()} <= {"n1", "n3"}
    finally:
        urgent.kill()
        urgent.wait()
        cluster.run("scancel", "--partition=urgent")
        cluster.run("scontrol", "update", "nodename=n2", "state=resume")
        cluster.loopback("slurmd", "n1")
    done = service.finish_job(job)
    site.online()
    runs = site.runs(job)
    assert done["state"] == "finished" and done["progress"]["runs_done"] == 3
    assert [run["outcome"] for run in runs["n1"]] == ["lost", "completed"]
    # Slurm notices first, unless this machine is very slow.
    assert any(words in runs["n1"][0]["cause"] for words in ("slurm: node failure of n1", "it does not answer"))
    assert [run["outcome"] for run in runs["n2"]] == ["completed"]
    assert [run["outcome"] for run in runs["n3"]] == ["cancelled", "completed"]
    assert "preempted" in runs["n3"][0]["cause"]
    assert [state for _, _, state in cluster.jobs() if state == "PENDING"] == []
    [cell] = {run["cell"] for each in runs.values() for run in each if run["outcome"] == "completed"}
    assert service.get(f"/v1/cells/{cell}")["verdict"] == "inconclusive"


def test_the_exit_status_of_srun_is_not_believed(site):
    """It is 0 where Slurm takes a node for lost."""
    site.online()
    job = site.service.post_job(workloads=["waits"], variants=["only"], runs=1, iterations=1, timeout_seconds=600)
    site.service.wait(lambda: site.running(job) == set(NODES), "three runs")
    site.cluster.run("scontrol", "update", "nodename=n1", "state=down", "reason=lost GPU")
    # Its slurmd lives, and may tell the agent before srun ends.
    site.service.wait(lambda: site.runs(job)["n1"][0]["outcome"] in ("lost", "cancelled"), "the run on n1")
    assert "slurm: node failure of n1 (job " in site.runs(job)["n1"][0]["cause"]
    assert "exit status 0" in site.runs(job)["n1"][0]["cause"]
    site.let_go()
    site.cluster.run("scontrol", "update", "nodename=n1", "state=resume", check=False)  # its slurmd may have done it
    assert site.service.finish_job(job)["progress"]["runs_done"] == 3


def test_a_health_check_drains_what_dissents_and_undoes_only_that(cluster, tmp_path):
    check = tmp_path / "node-check"

    def health(said, status, **env):
        check.write_text(f"#!/bin/sh\necho '{said}'\nexit {status}\n")
        check.chmod(0o755)
        done = subprocess.run([ROOT / "deploy" / "slurm" / "health-check"], capture_output=True, text=True, env={
            **os.environ, **cluster.env, "SLURMD_NODENAME": "n2", "REPROD_NODE_CHECK": str(check), **env})
        assert done.returncode == 0, done.stderr
        return done.stdout, reason()

    def reason():
        return [node["reason"] for node in json.loads(cluster.run("sinfo", "--json"))["nodes"] if node["name"] == "n2"][0]
    drain = {"REPROD_DRAIN": "1", "REPROD_DRAIN_PERCENT": "50"}
    assert health("passed", 0) == ("", "")
    assert health("dissents GPU-1", 1) == ("n2: dissents GPU-1\n", "")
    assert health("unverified", 2, **drain) == ("n2: unverified\n", "")
    assert health("dissents GPU-1", 1, **drain, REPROD_DRAIN_MOST="0")[1] == ""
    assert health("dissents GPU-1", 1, **drain)[1] == "reprod: dissents GPU-1"
    assert health("unverified", 2, **drain)[1] == "reprod: dissents GPU-1"
    assert health("passed", 0, **drain)[1] == ""
    cluster.run("scontrol", "update", "nodename=n2", "state=drain", "reason=flaky ECC")
    assert health("dissents GPU-1", 1, **drain)[1] == "flaky ECC"
    assert health("passed", 0, **drain)[1] == "flaky ECC"
    cluster.run("scontrol", "update", "nodename=n2", "state=resume")
    cluster.run("scontrol", "update", "nodename=n1", "state=drain", "reason=reprod: dissents GPU-9")
    said, now = health("dissents GPU-1", 1, REPROD_DRAIN="1")
    assert "not drained: 1 of 3 nodes" in said and now == ""
    cluster.run("scontrol", "update", "nodename=n1", "state=resume")


def test_health_checks_of_all_nodes_at_once_drain_no_more_than_may_be(cluster, tmp_path):
    """That is how Slurm runs them: each sees none that is drained."""
    check = tmp_path / "node-check"
    check.write_text("#!/bin/sh\necho 'dissents GPU-1'\nexit 1\n")
    check.chmod(0o755)
    together = tmp_path / "scontrol"  # which waits for the others
    together.write_text(f"#!/bin/sh\ntouch {tmp_path}/came-$SLURMD_NODENAME\n"
                        f"while [ $(ls {tmp_path} | grep -c came) != 3 ]; do sleep 0.05; done\n"
                        f"PATH=${{PATH#*:}}\nexec scontrol \"$@\"\n")
    together.chmod(0o755)
    running = [subprocess.Popen([ROOT / "deploy" / "slurm" / "health-check"], stdout=subprocess.PIPE, text=True, env={
        **os.environ, **cluster.env, "PATH": f"{tmp_path}:{slurm.PATH}", "SLURMD_NODENAME": node, "REPROD_NODE_CHECK": str(check),
        "REPROD_DRAIN": "1", "REPROD_DRAIN_PERCENT": "100", "REPROD_DRAIN_MOST": "2"}) for node in NODES]
    said = [process.communicate()[0] for process in running]
    nodes = {node["name"]: node["reason"] for node in json.loads(cluster.run("sinfo", "--json"))["nodes"]}
    for node in [name for name, reason in nodes.items() if reason]:
        cluster.run("scontrol", "update", f"nodename={node}", "state=resume")
    assert sorted(nodes.values()) == ["", "reprod: dissents GPU-1", "reprod: dissents GPU-1"], said
    assert sum("not drained: 2 of 3 nodes" in text for text in said) == 1


def test_slurmctld_dies_and_comes_back(site):
    """What runs goes on; nothing is started meanwhile."""
    cluster, service = site.cluster, site.service
    site.online()
    job = service.post_job(workloads=["waits"], variants=["only"], runs=1, iterations=1, timeout_seconds=600)
    service.wait(lambda: site.running(job) == set(NODES), "three runs")
    cluster.saved()
    os.kill(cluster.pid("slurmctld"), signal.SIGKILL)
    for pid in children_of(service.process.pid):
        if "--nodelist=n1" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    service.wait(lambda: "slurm: s" in site.cause("n1"), "that Slurm is not heard")
    assert site.hosts()["n2"]["online"] and site.hosts()["n3"]["online"]
    site.let_go()
    service.wait(lambda: [site.runs(job)[name][-1]["outcome"] for name in ("n2", "n3")] == ["completed"] * 2, "two runs")
    cluster.loopback("slurmctld")
    assert service.finish_job(job)["progress"]["runs_done"] == 3
    assert [run["outcome"] for run in site.runs(job)["n1"]] == ["lost", "completed"]


def test_jobs_of_a_service_that_was_killed_are_gone_before_others_begin(site):
    """It, and what holds its jobs; so nobody tells their agents."""
    cluster, service = site.cluster, site.service
    site.online()
    job = service.post_job(workloads=["waits"], variants=["only"], runs=1, iterations=1, timeout_seconds=600)
    service.wait(lambda: site.running(job) == set(NODES), "three runs")
    others = cluster.background("srun", "-w", "n3", "-p", "work", "--job-name=others-reprod", "sleep", "600")
    before = {each for each, _, state in cluster.jobs() if state == "RUNNING"}
    groups = children_of(service.process.pid)
    for pid in [service.process.pid, *groups]:
        os.kill(pid, signal.SIGSTOP)
    service.kill()
    for pid in groups:
        os.killpg(pid, signal.SIGKILL)
    assert {each for each, _, state in cluster.jobs() if state == "RUNNING"} >= before, "orphans"
    site.let_go()
    site.start().online("n1", "n2")
    assert len(cluster.jobs("others-reprod")) == 1, "somebody else's"
    others.kill()
    others.wait()
    site.online()
    now = {each for each, _, state in cluster.jobs() if state == "RUNNING"}
    assert not now & before
    assert "of the service before are cancelled" in service.log.read_text()
    assert service.finish_job(job)["progress"]["runs_done"] == 3
    assert {name: [run["outcome"] for run in runs] for name, runs in site.runs(job).items()} == {
        name: ["lost", "completed"] for name in NODES}


def test_nodes_are_asked_for_when_there_is_work_and_so_many_at_once(cluster, tmp_path):
    site = Site(cluster, tmp_path / "site", keep="needed", idle_release_s=1, at_once=1).start()
    service = site.service

    def released():
        assert len(cluster.jobs()) <= 1
        return {host["state"] for host in site.hosts().values()} == {"released"}
    service.wait(released, "three hosts that were heard, one after another")
    cluster.wait(lambda: cluster.jobs() == [], "no jobs")
    job = service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1, iterations=1)
    service.wait(lambda: released() and service.get(f"/v1/jobs/{job}")["state"] == "finished", "the job")
    assert {name: [run["outcome"] for run in runs] for name, runs in site.runs(job).items()} == {
        name: ["completed"] for name in NODES}
    assert service.stop() == 0
    assert cluster.jobs() == []


def test_at_most_one_job_of_a_node_waits(cluster, tmp_path):
    """Behind a job of somebody else; a stop leaves none."""
    other = cluster.background("srun", "-w", "n2", "-p", "work", "-N1", "--exclusive", "--job-name=other", "sleep", "600")
    cluster.wait(lambda: [job for job in cluster.jobs("other") if job[2] == "RUNNING"], "somebody's job")
    site = Site(cluster, tmp_path / "site").start()
    site.online("n1", "n3")
    site.service.wait(lambda: site.cause("n2").startswith("slurm: job "), "why it waits")
    assert site.cause("n2").endswith(("waits: Resources", "waits: Priority"))
    [waiting] = [job for job in cluster.jobs() if job[2] == "PENDING"]
    assert site.hosts()["n2"]["node"]["job"]["id"] == waiting[0] and waiting[1] == "n2"
    assert site.service.stop() == 0
    assert cluster.jobs() == []
    other.kill()
    other.wait()
    cluster.run("scancel", "--name=other")
