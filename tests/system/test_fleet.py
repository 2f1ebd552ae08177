"""Hosts that contradict each other, and the lists of the fleet."""
import contextlib
import json
import os
import signal

import pytest

from service import BUILD, SELFTEST_WORKER, Service
from test_processes import children_of


@pytest.fixture
def start_service(tmp_path):
    with contextlib.ExitStack() as stack:
        def start(ready=True, **options):
            service = Service(tmp_path, options=["--no-survey"], **options)
            stack.callback(lambda: service.process and service.stop())
            return service.start(ready)
        yield start


def host(folder, name, title):
    """A host whose agent starts only while the file NAME exists."""
    config = folder / f"{name}.json"
    config.write_text(json.dumps({
        "stacks": [{"name": f"cpu-{name}", "worker": str(SELFTEST_WORKER)}],
        "workloads": [{"name": "own", "title": title, "command": ["true"], "subject": "framework", "subject_name": "own",
                       "directory": str(folder), "no_control": "it only is there",
                       "variants": [{"name": "only"}]}]}))
    (folder / name).touch()
    return {"name": name, "launch": [
        "sh", "-c", f"[ -e {folder / name} ] && exec {BUILD / 'reprod'} agent --config {config}"]}


def test_a_host_that_contradicts_another_waits_for_it_to_leave(start_service, tmp_path):
    hosts = [host(tmp_path, "one", "as it was"), host(tmp_path, "two", "as it is")]
    service = start_service(config={"hosts": hosts})

    def shown():
        return {item["name"]: item for item in service.get("/v1/hosts")["items"]}
    service.wait(lambda: any("contradict" in (h["cause"] or "") or "differently" in
                             (h["cause"] or "") for h in shown().values()), "a refusal")
    [out] = [h for h in shown().values() if not h["online"]]
    [inside] = [h for h in shown().values() if h["online"]]
    assert inside["cause"] is None
    assert out["cause"].startswith(f"contradicts host {inside['name']}: stack external: two "
                                   "configurations describe workload own on cpu differently")
    assert out["cause"] in service.get("/v1/hosts.txt")
    title = service.get("/v1/workloads/own")["items"][0]["title"]
    (tmp_path / inside["name"]).unlink()
    for pid in children_of(service.process.pid):
        if inside["name"] + ".json" in " ".join(
                open(f"/proc/{pid}/cmdline").read().split("\0")):
            os.kill(pid, signal.SIGKILL)
    service.wait(lambda: shown()[out["name"]]["online"], "the other host")
    assert shown()[out["name"]]["cause"] is None
    assert "went away" in shown()[inside["name"]]["cause"]
    assert service.get("/v1/workloads/own")["items"][0]["title"] != title
    [device] = service.get("/v1/devices")["items"]
    assert device["online"] and f"cpu-{out['name']}" in device["stacks"]


def plain(folder, name):
    """A host of this machine, whose agent starts only while the file NAME exists."""
    return {"name": name, "launch": [
        "sh", "-c", f"[ -e {folder / name} ] && exec {BUILD / 'reprod'} agent --stack cpu-{name}={SELFTEST_WORKER}"]}


def test_a_device_that_another_host_has(start_service, tmp_path):
    """The second host that says it has a device does not get it, though it is the first of the
    configuration; the run there goes on, and so do the next ones."""
    service = start_service(config={"hosts": [plain(tmp_path, "late"), plain(tmp_path, "early")]}, ready=False)

    def shown():
        return {item["name"]: item for item in service.get("/v1/hosts")["items"]}
    (tmp_path / "early").touch()
    service.wait(lambda: shown()["early"]["online"], "the first host")
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, iterations=1, timeout_seconds=600)
    service.wait(lambda: [run for run in service.items(f"/v1/runs?job={job}") if run["process"]["pid"]], "the run")
    (tmp_path / "late").touch()
    service.wait(lambda: shown()["late"]["online"], "the second host")
    [device] = service.get("/v1/devices")["items"]
    refusal = f"it says that it has device {device['id']}, which host early has: it is not used there"
    assert shown()["late"]["cause"] == refusal and shown()["early"]["cause"] is None
    assert refusal in service.get("/v1/hosts.txt")
    service.wait(lambda: f"hosts: 1 of 2 hosts: late: {refusal}" in service.log.read_text(), "the log")
    assert device["host"] == "early" and device["online"]
    assert service.request("DELETE", f"/v1/jobs/{job}")[0] in (200, 202)
    service.wait(lambda: service.items(f"/v1/runs?job={job}")[0]["outcome"] == "cancelled", "the end of the run")
    after = service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=3, iterations=1)
    assert service.finish_job(after)["progress"]["runs_done"] == 3
    (tmp_path / "early").unlink()  # both had it: that one of them is away does not say whose it is
    for pid in children_of(service.process.pid):
        if "cpu-early=" in open(f"/proc/{pid}/cmdline").read():
            os.kill(pid, signal.SIGKILL)
    service.wait(lambda: not shown()["early"]["online"], "the end of the first host")
    [device] = service.get("/v1/devices")["items"]
    assert device["host"] == "early" and not device["online"]
    assert shown()["late"]["cause"] == refusal


def test_an_entry_stands_for_many_hosts(start_service):
    """Each has a command of its own; all are of this machine, so that one has its device."""
    service = start_service(config={"hosts": [{"name": "n-[08-09,17]", "launch": [
        str(BUILD / "reprod"), "agent", "--stack", f"cpu-{{host}}={SELFTEST_WORKER}"]}]})
    service.wait(lambda: all(host["online"] for host in service.get("/v1/hosts")["items"]), "all hosts")
    assert [host["name"] for host in service.get("/v1/hosts")["items"]] == ["n-08", "n-09", "n-17"]
    assert {stack["name"] for stack in service.get("/v1/stacks")["items"]} >= {"cpu-n-08", "cpu-n-09", "cpu-n-17"}


def test_stacks_as_a_table(start_service, tmp_path):
    """Devices by their ids, and what cannot be used, in a line each."""
    service = start_service(worker=SELFTEST_WORKER, config={"workloads": [
        {"name": "gone", "command": ["/nowhere/at/all"], "subject": "framework", "subject_name": "own", "directory": str(tmp_path),
         "no_control": "it never runs", "variants": [{"name": "only"}]}]})
    [device] = service.get("/v1/devices")["items"]
    text = service.get("/v1/stacks.txt")
    assert device["id"] in text and "PROBLEMS" in text and "{" not in text
    assert "gone: " in text and "/nowhere/at/all" in text


def test_pages_of_environments(start_service):
    """Two, by two numbers of threads."""
    service = start_service(config={"stacks": [
        {"name": f"cpu-{n}", "worker": str(SELFTEST_WORKER), "threads": n} for n in (2, 3)]})
    service.finish_job(service.post_job(workloads=["selftest_pass"], variants=["ordered"],
                                        runs=1, stacks="all"))
    whole = service.get("/v1/environments")
    assert len(whole["items"]) == 2 and whole["next"] is None
    status, headers, first = service.request("GET", "/v1/environments?limit=1")
    assert first["items"] == whole["items"][:1] and 'rel="next"' in headers["Link"]
    second = service.get(f"/v1/environments?limit=1&cursor={first['next']}")
    assert second["items"] == whole["items"][1:] and second["next"] is None
    for cursor in (service.get("/v1/jobs?limit=1")["next"] or "ajp4", "ZTd4", "ZTcuMHg"):
        status, _, problem = service.request("GET", f"/v1/environments?cursor={cursor}")
        assert status == 422 and "cursor" in json.dumps(problem["errors"]), problem
