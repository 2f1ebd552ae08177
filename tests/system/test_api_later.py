"""Jobs that are to come back later: before the service is ready, and while others take the room."""
import contextlib
import json
import socket

import pytest

from refusals import LOCAL, refused, status_of
from service import LIMIT, Service

pytestmark = pytest.mark.flavour


def test_jobs_wait_for_an_agent(start_service, tmp_path):
    """A worker that never says what it can do: reading works, submitting asks to come back."""
    slow = tmp_path / "slow-worker"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    service = Service(tmp_path / "waiting", worker=slow, options=["--no-survey"])
    service.start(ready=False)
    try:
        refused(service, "POST", "/v1/jobs", 503, "not-ready", {})
        refused(service, "GET", "/v1/workloads", 503, "not-ready")
        refused(service, "GET", "/readyz", 503, "not-ready")
        assert service.get("/healthz")["status"] == "ok"
        assert service.get("/v1/runs?workload=what_may_be_there")["items"] == []
        assert service.get("/v1/matrix")["environment"] is None
        assert "nothing has been run here yet" in service.get("/v1/matrix.txt")
    finally:
        service.stop()


def test_jobs_that_come_at_a_time_wait_for_room(start_service):
    """Those that are being stored are as good as open."""
    service = start_service(config={"open_items_limit": 10000})
    body = json.dumps({"workloads": ["selftest_hang"], "variants": ["ordered"],
                       "seeds": [str(seed) for seed in range(1000)]}).encode()
    request = (b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Type: application/json\r\nConnection: close\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body) + body)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port), LIMIT)) for _ in range(40)]
        for client in clients:
            client.sendall(request)
        found = [status_of(client.recv(12) + b" ") for client in clients]
    items = sum(len(service.get(f"/v1/jobs/{job['id']}")["items"]) for job in service.items("/v1/jobs"))
    assert 0 < items <= 10000 and set(found) == {201, 429}
    assert service.stop_at_once() == 0


def test_jobs_wait_for_room(start_service):
    """What is open is in memory: beyond the limit a job is refused until another one ends."""
    service = start_service(config={"open_items_limit": 10000})
    large = {"workloads": ["selftest_hang"], "seeds": [str(seed) for seed in range(1000)]}
    small = {"workloads": ["selftest_pass"]}
    open_items = 0
    while True:
        status, headers, answer = service.request("POST", "/v1/jobs", large)
        if status != 201:
            break
        items = len(service.get(f"/v1/jobs/{answer['id']}")["items"])
        open_items += items
        last = answer["id"]
    assert open_items <= 10000 < open_items + items
    assert status == 429 and answer["type"] == "/problems/too-many-jobs", answer
    assert f"the open jobs have {open_items} items, this one has {items}" in answer["detail"]
    assert int(headers["Retry-After"]) > 0
    refused(service, "POST", f"/v1/jobs/{last}/rerun", 429, "too-many-jobs")
    assert service.request("DELETE", f"/v1/jobs/{last}")[0] == 200
    assert service.request("POST", "/v1/jobs", large)[0] == 201
    assert service.request("POST", "/v1/jobs", small)[0] in (201, 429)
    assert service.stop_at_once() == 0
