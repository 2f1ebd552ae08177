"""GET /v1/verdict/{host} and deploy/node-check: what a prolog asks before a job begins."""
import os
import subprocess

import pytest

from service import ROOT
from test_api import matches
from test_screening import fleets  # noqa: F401: a fixture

CHECK = ROOT / "deploy" / "node-check"


def verdict(service, host):
    said = service.get(f"/v1/verdict/{host}")
    matches(said, {"$ref": "#/components/schemas/NodeVerdict"})
    return said


def node_check(service, *words):
    server = service if isinstance(service, str) else f"127.0.0.1:{service.port}"
    done = subprocess.run([str(CHECK), *words], capture_output=True, text=True, env={**os.environ, "REPROD_SERVER": server})
    return done.returncode, done.stdout, done.stderr


def test_a_host_is_as_its_worst_device(fleets):  # noqa: F811
    f = fleets(hosts=2, devices=4, wrong={"GPU-03": {}})
    f.screened()
    said = {host: verdict(f.service, host) for host in ("host-0", "host-1")}
    own = next(host for host in said if "GPU-03" in f.fleet.devices[host])
    other = next(host for host in said if host != own)
    assert said[own]["verdict"] == "dissents" and said[own]["cause"] == "it gives other bits than its equals in 1 of 2 cells"
    assert {each["device"]: each["verdict"] for each in said[own]["devices"]}["GPU-03"] == "dissents"
    assert said[other]["verdict"] == "passed" and said[other]["online"]
    assert all(each["verdict"] == "passed" and each["screened_at"] for each in said[other]["devices"])
    code, printed, _ = node_check(f.service, "--host", own)
    assert code == 1 and printed.startswith("dissents\n") and "dissents    GPU-03: it gives other bits" in printed
    assert node_check(f.service, "--host", other)[0] == 0
    # It is taken out of its host: what is left counts.
    f.fleet.devices[own].remove("GPU-03")
    f.restart()
    assert verdict(f.service, own)["verdict"] == "passed"
    assert "GPU-03: it gives other bits than its equals in 1 of 2 cells (its host does not have it now)" in node_check(
        f.service, "--host", own)[1]


def test_what_is_not_known_is_not_passed(fleets):  # noqa: F811
    f = fleets(hosts=1, devices=1)
    f.screened()
    said = verdict(f.service, "host-0")
    assert said["verdict"] == "unverified" and "measured on no equal of it" in said["cause"], "nothing to compare it with"
    assert node_check(f.service, "--host", "host-0")[0] == 2
    code, printed, _ = node_check(f.service, "--host", "host-00")
    assert code == 2 and "there is no host 'host-00'; did you mean 'host-0'?" in printed
    status, _, body = f.service.request("GET", "/v1/verdict/host-7")
    assert status == 404


@pytest.mark.parametrize("status, allowed", [(0, True), (1, False), (2, True), (3, True)])
def test_the_prolog_stops_only_what_dissents(tmp_path, status, allowed):
    """The example, with another node-check."""
    (tmp_path / "node-check").write_text(f"#!/bin/sh\necho \"$@\"; exit {status}\n")
    (tmp_path / "node-check").chmod(0o755)
    text = (ROOT / "deploy" / "slurm" / "prolog").read_text()
    assert text.count("/usr/local/share/reprod/") == 1, "where make install puts it"
    (tmp_path / "prolog").write_text(text.replace("/usr/local/share/reprod/", f"{tmp_path}/"))
    done = subprocess.run(["sh", str(tmp_path / "prolog")], capture_output=True, text=True,
                          env={**os.environ, "SLURMD_NODENAME": "gpu2", "REPROD_SERVER": "http://a:1"})
    assert (done.returncode == 0) == allowed and done.stdout == "--server http://a:1 --host gpu2\n"


@pytest.mark.long
def test_a_screening_that_is_not_over(fleets):  # noqa: F811
    f = fleets(hosts=1, devices=2, settings={"survey": False})
    said = verdict(f.service, "host-0")
    assert said["verdict"] == "unverified" and said["cause"] == "its screening (new) is due"


@pytest.mark.parametrize("words, code, message", [
    (["--host"], 2, "--host needs a value"), (["--hots", "a"], 2, "unexpected '--hots'"),
    (["--host", "a/b"], 2, "'a/b' is no name of a host"), (["--host", "a"], 3, "127.0.0.1"),
])
def test_the_command_says_what_is_wrong(words, code, message):
    done = node_check("127.0.0.1:1", *words)
    assert done[0] == code and message in done[2]
