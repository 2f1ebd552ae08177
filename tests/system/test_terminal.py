"""What workers and agents say can be read on a terminal: nothing in it acts there."""
import json
import re
import urllib.request

import pytest

from agent import PROBE
from service import BUILD, Service

ATTACK = "\x1b]0;x\x07\x1b[2J\r\x7f\x9b31m\u202eevil\u2069"
# C0 without newline and tab, DEL, C1, and what overrides a direction or breaks a line.
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
LISTS = ["devices", "hosts", "stacks", "environments", "runs", "jobs", "workloads", "matrix", "cells"]


def worker(folder):
    """Its device, its complaint and its log hold ATTACK."""
    probe = {**PROBE, "versions": {"lib": ATTACK}, "devices": [
        {"id": "cpu:h", "model": f"CPU{ATTACK}\nfake line"}]}
    (folder / "probe").write_text(json.dumps(probe) + "\n")
    (folder / "noise").write_text(f"{ATTACK}\nsecond\n\x1b[1mthird\n")
    path = folder / "worker"
    path.write_text(f"""#!/bin/sh
case "$1" in
--probe) cat {folder}/noise >&2; cat {folder}/probe;;
--catalogue) ;;
esac
""")
    path.chmod(0o755)
    return path


@pytest.fixture
def service(tmp_path):
    agent = f"cat {tmp_path}/noise >&2; exec {BUILD / 'reprod'} agent --config {tmp_path}/agent.json"
    (tmp_path / "agent.json").write_text(json.dumps(
        {"stacks": [{"name": "cpu", "worker": str(worker(tmp_path))}],
         "workloads": [{"name": "own", "command": ["sh", "-c", f"cat {tmp_path}/noise >&2; exit 3"],
                        "directory": str(tmp_path), "subject": "framework", "subject_name": "own",
                        "no_control": "it fails", "variants": [{"name": "only"}]}]}))
    service = Service(tmp_path, options=["--no-survey"],
                      config={"hosts": [{"name": "h", "launch": ["sh", "-c", agent]}]})
    service.start()
    yield service
    service.stop()


def test_nothing_that_is_told_acts_on_a_terminal(service):
    service.finish_job(service.post_job(workloads=["own"], runs=1))
    [run] = service.get("/v1/runs")["items"]
    text = service.get(f"/v1/runs/{run['id']}/log.txt")
    assert "evil" in text and text.endswith("\nsecond\n\\x1b[1mthird\n") and not ACTS.search(text)
    log = service.get(f"/v1/runs/{run['id']}/log.json")["log"]
    assert log == f"{ATTACK}\nsecond\n\x1b[1mthird\n"
    for name in LISTS:
        for form in ("txt", "csv"):
            status, _, body = service.request("GET", f"/v1/{name}.{form}")
            assert status in (200, 404, 406), (name, form)
            assert status != 200 or not ACTS.search(body.replace("\r\n", "\n")), (name, form, body)
    [row] = [line for line in service.get("/v1/devices.txt").splitlines() if "evil" in line]
    assert row.startswith("cpu:h ") and "\\nfake line" in row
    [line] = [line for line in service.get("/v1/devices/cpu:h.txt").splitlines() if "fake line" in line]
    assert line.startswith("model ")
    [device] = service.get("/v1/devices")["items"]  # JSON says it exactly, and escapes it
    assert device["model"] == f"CPU{ATTACK}\nfake line"
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/v1/devices") as answer:
        assert not ACTS.search(answer.read().decode())
    log = service.log.read_bytes().decode()
    assert "h: \\x1b]0;x\\x07\\x1b[2J\\r\\x7f\\u009b31m\\u202eevil\\u2069\n" in log
    assert not ACTS.search(log), log
