"""Hosts that are started where there is work, so many at once; and hosts that go away."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from agent import wait_until
from service import BUILD, ROOT, SELFTEST_WORKER, Service
from test_processes import children_of

sys.path.insert(0, str(ROOT / "tests" / "fleets"))
from fleet_sim import Fleet  # noqa: E402

NEEDED = {"keep": "needed", "idle_release_s": 1}


@pytest.fixture
def serve(tmp_path):
    with contextlib.ExitStack() as stack:
        def start(hosts, ready=True):
            service = Service(tmp_path, options=["--no-survey"], config={"hosts": hosts, "background": {"budget_percent": 0}})
            stack.callback(lambda: service.process and service.stop())
            return service.start(ready)
        yield start


def shown(service):
    return {host["name"]: host for host in service.get("/v1/hosts")["items"]}


def states(service):
    return {name: host["state"] for name, host in shown(service).items()}


def agents_of(service, word):
    """Pids of the children of SERVICE that have WORD in their command line."""
    found = []
    for pid in children_of(service.process.pid):
        with contextlib.suppress(OSError):
            if word in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found


def test_a_host_is_there_while_there_is_work(serve, tmp_path):
    fleet = Fleet(tmp_path, hosts=2, devices=1)
    service = serve([{**fleet.host(name), **NEEDED} for name in fleet.names])
    service.wait(lambda: set(states(service).values()) == {"released"}, "nothing to do")
    wait_until("the agents are gone", lambda: not agents_of(service, "truth.json"))
    assert service.request("GET", "/readyz")[0] == 200
    for device in service.get("/v1/devices")["items"]:
        assert (device["online"], device["state"]) == (False, "released") and "nothing to do" in device["cause"]
    metrics = service.get("/metrics")
    for line in ("reprod_devices 2", "reprod_devices_online 0", "reprod_devices_released 2", "reprod_devices_withheld 0",
                 'reprod_condition{name="hosts"} 0', 'reprod_condition{name="devices"} 0'):
        assert f"\n{line}\n" in metrics
    verdict = service.get("/v1/verdict/host-1")
    assert not verdict["online"] and [device["there"] for device in verdict["devices"]] == [True]
    before = shown(service)["host-1"]["since"]
    job = service.post_job(workloads=["imagined"], devices=["GPU-00"], runs=2, iterations=1)
    assert service.finish_job(job)["progress"]["runs_done"] == 4
    assert shown(service)["host-1"]["since"] == before  # nobody wanted it
    job = service.post_job(workloads=["imagined"], runs=2, iterations=1)  # on each device that can be had
    assert service.finish_job(job)["progress"]["runs_done"] == 8
    service.wait(lambda: set(states(service).values()) == {"released"}, "nothing to do")
    assert {run["outcome"] for run in service.items("/v1/runs")} == {"completed"}
    assert "warning host" not in service.log.read_text()


@pytest.mark.long
def test_no_more_at_once_than_the_entry_allows(serve, tmp_path):
    fleet = Fleet(tmp_path, hosts=3, devices=1)
    commands = {name: fleet.host(name)["launch"] for name in fleet.names}
    log = tmp_path / "agents"
    program, agent, _ = commands["host-0"]
    service = serve([{"name": "host-[0-2]", **NEEDED, "at_once": 1, "launch": [
        "sh", "-c", f"echo + {{host}} >> {log}; {program} {agent} {tmp_path}/{{host}}.truth.json; echo - {{host}} >> {log}"]}])
    service.wait(lambda: "waiting" in states(service).values(), "one that waits")
    [cause] = {host["cause"] for host in shown(service).values() if host["state"] == "waiting"}
    assert "waits for room" in cause and "at_once" in cause
    service.wait(lambda: set(states(service).values()) == {"released"}, "all were heard")
    job = service.post_job(workloads=["imagined"], runs=2, iterations=1)
    assert service.finish_job(job)["progress"]["runs_done"] == 12
    service.wait(lambda: set(states(service).values()) == {"released"}, "nothing to do")
    wait_until("the agents are gone", lambda: not agents_of(service, "truth.json"))
    lines = log.read_text().split("\n")[:-1]
    assert [line[0] for line in lines] == ["+", "-"] * 6
    assert [line[2:] for line in lines[::2]] == [*fleet.names] * 2  # by turns


def test_a_host_that_does_not_come_or_dies_holds_up_no_other(serve, tmp_path):
    """One hangs in its launch, one refuses, one dies in the middle of a run; a fourth is well."""
    fleet = Fleet(tmp_path, hosts=2, devices=1)
    fleet.hosts["host-0"] = {"mute": True}
    service = serve([{"name": "hangs", "launch": ["sh", "-c", "cat > /dev/null"], "hello_s": 0},
                     {"name": "refuses", "launch": ["sh", "-c", "echo no such node >&2; exit 1"], **NEEDED},
                     fleet.host("host-0"), {**fleet.host("host-1"), **NEEDED}])
    service.wait(lambda: len(service.get("/v1/devices")["items"]) == 2, "two devices")
    job = service.post_job(workloads=["imagined"], variants=["ordered"], devices=["GPU-00", "GPU-01"], runs=1, iterations=1)
    service.wait(lambda: [run for run in service.items(f"/v1/runs?job={job}") if run["device"] == "GPU-01" and
                          run["outcome"] == "completed"], "the host that is well")
    service.wait(lambda: [run for run in service.items(f"/v1/runs?job={job}") if run["device"] == "GPU-00" and
                          run["process"]["pid"]], "the run that does not end")
    hosts = shown(service)
    assert hosts["hangs"]["state"] == "starting" and hosts["refuses"]["state"] == "offline"
    assert hosts["refuses"]["cause"] == "the agent went away: exit status 1: no such node"
    fleet.hosts.clear()
    fleet.host("host-0")
    [pid] = agents_of(service, "host-0.truth.json")
    os.kill(pid, signal.SIGKILL)
    assert service.finish_job(job)["progress"]["runs_done"] == 2
    runs = [run for run in service.items(f"/v1/runs?job={job}") if run["device"] == "GPU-00"]
    assert sorted(run["outcome"] for run in runs) == ["completed", "lost"]
    [lost] = [run for run in runs if run["outcome"] == "lost"]
    assert lost["cause"] == "the agent went away: killed by SIGKILL"
    [condition] = [line for line in service.log.read_text().split("\n") if "of 4 hosts" in line][-1:]
    assert "refuses: " in condition and "hangs" not in condition  # it may take as long as it takes


def test_a_job_says_which_device_no_host_has(serve, tmp_path):
    fleet = Fleet(tmp_path, hosts=2, devices=1)
    service = serve([fleet.host(name) for name in fleet.names])
    service.wait(lambda: set(states(service).values()) == {"online"}, "the hosts")
    job = service.post_job(workloads=["imagined"], runs=1000, iterations=1)
    assert service.get(f"/v1/jobs/{job}")["waits_for"] == []
    assert service.stop() == 0
    settings = json.loads(service.config.read_text())
    service.config.write_text(json.dumps({**settings, "hosts": settings["hosts"][:1]}))
    service.start()
    service.wait(lambda: shown(service)["host-0"]["online"], "the host that is left")
    [word] = service.get(f"/v1/jobs/{job}")["waits_for"]
    assert word == "device GPU-01: no host has it now"


def real(name, *options):
    return {"name": name, "launch": [str(BUILD / "reprod"), "agent", "--stack", f"cpu-{name}={SELFTEST_WORKER}", *options]}


@pytest.mark.parametrize("how", [pytest.param("no notice", marks=pytest.mark.long), "killed within the notice"])
def test_what_is_preempted_is_made_again(serve, how):
    """It is nobody's failure: not lost, and not the run's."""
    service = serve([real("taken", "--notice", "0" if how == "no notice" else "3600")])
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, iterations=1, timeout_seconds=600)

    def runs():
        return service.items(f"/v1/runs?job={job}")
    service.wait(lambda: [run for run in runs() if run["process"]["pid"]], "the run")
    [pid] = agents_of(service, "cpu-taken=")
    os.kill(pid, signal.SIGTERM)
    if how != "no notice":
        service.wait(lambda: states(service)["taken"] == "ending", "the host's state")
        [device] = service.get("/v1/devices")["items"]
        assert device["state"] == "ending" and "told to end: SIGTERM" in device["cause"]
        assert any("told to end" in text for text in service.get(f"/v1/jobs/{job}")["waits_for"])
        other = service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1, iterations=1,
                                 priority="interactive")
        os.kill(pid, signal.SIGKILL)
    service.wait(lambda: len(runs()) == 2 and runs()[0]["process"]["pid"], "the run, made again")
    assert runs()[1]["outcome"] == "cancelled" and runs()[1]["cause"].startswith("preempted: SIGTERM")
    assert service.get(f"/v1/jobs/{job}")["progress"]["runs_failed"] == 0
    assert "the agent was told to end: SIGTERM" in service.log.read_text()
    assert service.request("DELETE", f"/v1/jobs/{job}")[0] in (200, 202)
    if how != "no notice":
        assert service.finish_job(other)["progress"]["runs_done"] == 1
    assert service.stop() == 0
    assert service.fsck()[0] == 0


@pytest.mark.long
def test_an_orphan_does_not_hold_its_device(serve, tmp_path):
    """Its launch command outlives the service, which is killed, and keeps its input open; the next service ends it."""
    wrapper = tmp_path / "wrapper"
    wrapper.write_text("#!/bin/sh\nmkfifo in\n\"$@\" < in &\nexec 3> in\ncat >&3\necho $$ > outlived\nexec sleep 1000\n")
    wrapper.chmod(0o755)
    host = real("far", "--silence", "15")
    service = serve([{**host, "launch": ["env", "-C", str(tmp_path), str(wrapper), *host["launch"]]}])
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, iterations=1, timeout_seconds=600)
    service.wait(lambda: [run for run in service.items(f"/v1/runs?job={job}") if run["process"]["pid"]], "the run")
    worker = service.items(f"/v1/runs?job={job}")[0]["process"]["pid"]
    service.kill()
    outlived = tmp_path / "outlived"
    try:
        wait_until("the launch command saw the end", lambda: outlived.exists() and outlived.read_text().strip())
        wait_until("the worker is gone", lambda: not pathlib.Path(f"/proc/{worker}").exists())
        process = pathlib.Path(f"/proc/{outlived.read_text().strip()}")
        assert process.exists()
        (tmp_path / "in").unlink()
        service.start(ready=False)
        wait_until("the launch command is gone", lambda: not process.exists())
        assert "which a service before this one had started" in service.log.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(outlived.read_text()), signal.SIGKILL)


@pytest.mark.parametrize("entry, problem", [
    ({"keep": "need"}, "/hosts/0/keep: must be"),
    ({"kep": "needed"}, "/hosts/0/kep: a host has no member 'kep'; did you mean 'keep'?"),
    ({"idle_release_s": 0}, "/hosts/0/idle_release_s: must be"),
    ({"hello_s": -1}, "/hosts/0/hello_s: must be"),
    ({"at_once": 1}, "/hosts/0/at_once: is 1 of 2 hosts")])
def test_settings_that_are_wrong(tmp_path, entry, problem):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"hosts": [{"name": "n[1-2]", "launch": ["ssh", "{host}", "reprod", "agent"], **entry}]}))
    done = subprocess.run([str(BUILD / "reprod"), "serve", "--config", str(config), "--data", str(tmp_path / "data")],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and problem in done.stderr
