"""Signals to a service, and what it does while it stops."""
import json
import os
import pathlib
import signal

import pytest

from test_processes import children_of
from test_profiles import TABLE


def said(service, before=0):
    return service.log.read_text()[before:]


def reload(service, settings):
    """What the log says of a SIGHUP after the configuration became SETTINGS."""
    before = len(said(service))
    service.config.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    service.process.send_signal(signal.SIGHUP)
    service.wait(lambda: "read again" in said(service, before) or "stays as it was" in
                 said(service, before), "the reload")
    return said(service, before)


def tables(service):
    return [table["id"] for table in service.get("/v1/profiles")["items"]]


def test_sighup_reads_the_configuration_again(start_service, tmp_path):
    service = start_service()
    settings = json.loads(service.config.read_text())
    path = tmp_path / "ours.json"
    path.write_text(json.dumps(TABLE))
    assert "ours" not in tables(service)

    log = reload(service, {**settings, "profiles": [str(path)], "stale_after_hours": 5})
    assert "stale_after_hours: 5" in log and "next start" not in log
    assert "ours" in tables(service)
    assert "A workload that can be made" in service.get("/v1/matrix.txt?table=ours")

    path.write_text(json.dumps({**TABLE, "title": "Ours, again"}))
    reload(service, {**settings, "profiles": [str(path)]})
    assert "Ours, again" in service.get("/v1/matrix.txt?table=ours")

    for wrong, why in [("{", "line 1 column 1"),
                       ({**settings, "stale_after_hours": -1}, "/stale_after_hours"),
                       ({**settings, "profiles": ["/nowhere.json"]}, "/nowhere.json")]:
        log = reload(service, wrong)
        assert "error reload: the configuration stays as it was" in log and why in log
        assert "ours" in tables(service)
    path.write_text(json.dumps({**TABLE, "rows": [{**TABLE["rows"][0], "workload": "nobodys"}]}))
    log = reload(service, {**settings, "profiles": [str(path)]})
    assert "stays as it was" in log and "nobodys" in log
    assert "Ours, again" in service.get("/v1/matrix.txt?table=ours")

    log = reload(service, settings)
    assert "ours" not in tables(service)
    assert service.request("GET", "/readyz")[0] == 200


def test_what_cannot_be_reloaded_is_told(start_service):
    service = start_service()
    settings = json.loads(service.config.read_text())
    for name, value in [("listen", "127.0.0.1:1"), ("data", "/elsewhere"), ("grace_ms", 301),
                        ("connection_limit", 8), ("stacks", []),
                        ("hosts", [{"name": "h", "launch": ["true"]}])]:
        log = reload(service, {**settings, name: value})
        if name in ("listen", "data"):  # the command line has the last word
            assert "next start" not in log
        else:
            assert log.count("next start") == 1
            assert f"'{name}' is another one now: it takes effect at the next start" in log
    assert service.request("GET", "/readyz")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_no_such_signal_ends_a_service(start_service, number):
    service = start_service()
    [agent] = children_of(service.process.pid)
    service.process.send_signal(number)
    os.kill(agent, number)
    job = service.finish_job(service.post_job(workloads=["selftest_pass"], runs=2))
    assert job["progress"]["runs_failed"] == 0
    assert service.process.poll() is None and agent in children_of(service.process.pid)


def ignored(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    mask = int(status.split("SigIgn:")[1].split()[0], 16)
    return {number for number in range(1, 65) if mask >> number - 1 & 1}


def test_nor_does_any_other_that_means_nothing(start_service):
    """To a service, its agent, and reprod-launch; the program that it starts has the default of all."""
    service = start_service()
    [agent] = children_of(service.process.pid)
    numbers = [signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT,
               signal.SIGXFSZ, signal.SIGXCPU, signal.SIGPIPE, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)]
    for number in numbers:
        service.process.send_signal(number)
        os.kill(agent, number)
    job = service.finish_job(service.post_job(workloads=["selftest_pass"], runs=2))
    assert job["progress"]["runs_failed"] == 0
    assert service.process.poll() is None and agent in children_of(service.process.pid)
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, timeout_seconds=600)
    service.wait(lambda: any(run["started_at"] for run in service.items(f"/v1/runs?job={job}")), "a run")
    worker = next(child for child in children_of(agent))
    service.wait(lambda: not ignored(worker) & set(numbers) - {signal.SIGPIPE}, "the defaults")
    service.request("DELETE", f"/v1/jobs/{job}")


def test_nothing_is_accepted_during_a_stop(start_service):
    service = start_service(config={"grace_ms": 10000})
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1,
                           timeout_seconds=600)
    service.wait(lambda: any(run["started_at"] for run in service.items(f"/v1/runs?job={job}")),
                 "a run")
    service.process.send_signal(signal.SIGTERM)
    service.wait(lambda: "a second signal cancels" in said(service), "the signal")
    for method, path, body in [("POST", "/v1/jobs", {"workloads": ["selftest_pass"]}),
                               ("POST", f"/v1/jobs/{job}/rerun", None),
                               ("DELETE", f"/v1/jobs/{job}", None)]:
        status, headers, problem = service.request(method, path, body)
        assert status == 503 and int(headers["Retry-After"]) > 0, (method, path, problem)
        assert "the service is stopping" in problem["detail"]
    assert service.request("GET", f"/v1/jobs/{job}")[0] == 200
    assert service.stop(signal.SIGINT) == 0
