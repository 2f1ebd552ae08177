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
        def start(**options):
            service = Service(tmp_path, options=["--no-survey"], **options)
            stack.callback(lambda: service.process and service.stop())
            return service.start()
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
