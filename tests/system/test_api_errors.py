"""The REST interface of the running service: what bad, ambiguous and hostile requests get."""
import contextlib
import json
import select
import socket

import pytest

from refusals import LOCAL, raw, refused, status_of
from service import BUILD, LIMIT, Service

pytestmark = pytest.mark.flavour


# Jobs that cannot be


@pytest.mark.parametrize("body, kind, pointer, idea", [
    ({"workloads": ["selftest_pas"]}, "unknown-workload", "/workloads/0", "selftest_pass"),
    ({"workloads": ["selftest_pass"], "variants": ["orderd"]}, "unknown-variant", "/variants/0",
     "ordered"),
    ({"sizes": ["smal"]}, "unknown-size", "/sizes/0", "small"),
    ({"dtypes": ["float33"]}, "unknown-dtype", "/dtypes/0", "float32"),
    ({"devices": ["cpu:nowhere-at-all"]}, "unknown-device", "/devices/0", ""),
    ({"stacks": ["cpus"]}, "unknown-stack", "/stacks/0", "cpu"),
    ({"workload": ["selftest_pass"]}, "unknown-member", "/workload", "workloads"),
    ({"runs": 0}, "invalid-request", "/runs", "100000"),
    ({"workloads": ["selftest_pass"], "runs": 100000, "seeds": list(range(900))}, "invalid-request",
     "/runs", "10000000"),
    ({"iterations": 1001}, "invalid-request", "/iterations", "1000"),
])
def test_jobs_that_cannot_be(service, body, kind, pointer, idea):
    problem = refused(service, "POST", "/v1/jobs", 422, kind, body)
    assert problem["errors"][0]["pointer"] == pointer
    assert idea in problem["errors"][0]["detail"]


def test_several_problems_are_told_at_once(service):
    problem = refused(service, "POST", "/v1/jobs", 422, "invalid-request",
                      {"workloads": ["a", "b"], "runs": -1})
    assert [error["pointer"] for error in problem["errors"]] == ["/runs", "/workloads/0",
                                                                 "/workloads/1"]


@pytest.mark.parametrize("body, pointers", [
    ({"workloads": [""]}, ["/workloads/0"]),
    ({"devices": ["a", "a", 7]}, ["/devices/1", "/devices/2", "/devices/0"]),
    ({"seeds": [1, 1, -1]}, ["/seeds/1", "/seeds/2"]),
])
def test_each_fault_of_a_list_is_told_once(service, body, pointers):
    problem = service.request("POST", "/v1/jobs", body)[2]
    assert [error["pointer"] for error in problem["errors"]] == pointers


@pytest.mark.parametrize("body", [
    "", "{", '{"runs":1,}', "nonsense", '{"runs":1,"runs":2}', '{"runs":1}{}', "\x00",
    '{"note":"\\ud800"}', '{"seed":99999999999999999999}',
    '{"workloads":' + "[" * 40 + "]" * 40 + "}", "[" * 100000,
])
def test_malformed_json(service, body):
    refused(service, "POST", "/v1/jobs", 400, "malformed-json", body,
            {"Content-Type": "application/json"})


def test_body_that_is_not_json_by_type(service):
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/xml"):
        refused(service, "POST", "/v1/jobs", 415, "unsupported-media-type", "{}",
                {"Content-Type": kind})


def test_nothing_refused_was_stored(service):
    before = len(service.items("/v1/jobs"))
    refused(service, "POST", "/v1/jobs", 422, "unknown-workload", {"workloads": ["x"]})
    assert len(service.items("/v1/jobs")) == before


def test_idempotency_key_out_of_bounds(service):
    for key in ("k" * 256, "schlüssel", ""):
        refused(service, "POST", "/v1/jobs", 400, "bad-request",
                {"workloads": ["selftest_pass"]}, {"Idempotency-Key": key.encode()})


# Things that are not there


NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize("method, path", [
    ("GET", f"/v1/jobs/{NOBODY}"), ("GET", "/v1/jobs/x"), ("GET", f"/v1/jobs/{NOBODY}/digests"),
    ("DELETE", f"/v1/jobs/{NOBODY}"), ("POST", f"/v1/jobs/{NOBODY}/rerun"),
    ("GET", f"/v1/runs/{NOBODY}"), ("GET", f"/v1/runs/{NOBODY}/log"), ("GET", "/v1/runs/%2e%2e"),
    ("GET", "/v1/cells/999999"), ("GET", "/v1/cells/x"), ("GET", "/v1/cells/-1"),
    ("GET", "/v1/cells/1e3/history"), ("GET", "/v1/cells/99999999999999999999/evidence"),
    ("GET", "/v1/workloads/none"), ("GET", "/v1/environments/none"), ("GET", "/problems/none"),
    ("GET", "/nothing.js"), ("GET", "/v2/jobs"), ("GET", "/v1"), ("GET", "/v1/jobs/"),
    ("GET", "//v1/jobs"), ("GET", "/%2e%2e/VERSION"), ("GET", "/../VERSION"),
    ("POST", "/v1/nothing"),
])
def test_unknown_things_are_404(service, method, path):
    refused(service, method, path, 404, "not-found")


@pytest.mark.parametrize("path", ["/v1/cells/1.csv", "/v1/workloads/selftest_pass.csv",
                                  "/v1/environments/" + 32 * "0" + ".csv"])
def test_a_suffix_that_is_not_offered_is_no_id(service, path):
    problem = refused(service, "GET", path, 404, "not-found")
    assert problem["detail"] == \
        "this is not available as .csv, only as application/json, text/plain"


def test_the_detail_says_where(service):
    """Also alone, as a terminal shows it first."""
    problem = refused(service, "POST", "/v1/jobs", 422, "invalid-request", {"runs": "5"})
    assert problem["detail"] == "/runs: must be a whole number from 1 to 100000"
    problem = refused(service, "POST", "/v1/jobs", 400, "malformed-json", b'{"note":"a\\u0000b"}',
                      {"Content-Type": "application/json"})
    assert problem["detail"].endswith("text may not hold \\u0000")
    for number in ("9223372036854775808", "1" * 40, "1e999"):
        problem = refused(service, "POST", "/v1/jobs", 400, "malformed-json",
                          f'{{"seed":{number}}}', {"Content-Type": "application/json"})
        assert problem["detail"].endswith("beyond 9223372036854775807 is written as text")


def test_a_misspelt_path_gets_an_idea(service):
    problem = refused(service, "GET", "/v1/worklods", 404, "not-found")
    assert "did you mean /v1/workloads?" in problem["detail"]


@pytest.mark.parametrize("method, path, allow", [
    ("PUT", "/v1/jobs", "POST, GET, HEAD, OPTIONS"), ("POST", "/v1/matrix", "GET, HEAD, OPTIONS"),
    ("GET", f"/v1/jobs/{NOBODY}/rerun", "POST, OPTIONS"), ("PATCH", "/healthz", "GET, HEAD, OPTIONS"),
    ("DELETE", "/", "GET, HEAD, OPTIONS"), ("POST", "/index.html", "GET, HEAD, OPTIONS"),
])
def test_wrong_methods_are_405_with_allow(service, method, path, allow):
    refused(service, method, path, 405, "method-not-allowed")
    assert service.request(method, path)[1]["Allow"] == allow


def test_not_acceptable(service):
    problem = refused(service, "GET", "/v1/jobs", 406, "not-acceptable",
                      headers={"Accept": "image/png"})
    assert "text/csv" in problem["detail"]


# Query parameters


@pytest.mark.parametrize("path, kind, name", [
    ("/v1/jobs?limit=0", "invalid-parameter", "limit"),
    ("/v1/jobs?limit=1001", "invalid-parameter", "limit"),
    ("/v1/jobs?limit=1x", "invalid-parameter", "limit"),
    ("/v1/jobs?limit=", "invalid-parameter", "limit"),
    ("/v1/jobs?limit=1&limit=2", "invalid-parameter", "limit"),
    ("/v1/jobs?cursor=!!", "invalid-parameter", "cursor"),
    ("/v1/jobs?cursor=cjowMQ", "invalid-parameter", "cursor"),  # r:01, of another list
    ("/v1/jobs?cursor=ajowMQ", "invalid-parameter", "cursor"),  # j:01, no id
    ("/v1/runs?cursor=cjp-fg", "invalid-parameter", "cursor"),  # r:~~
    ("/v1/runs?cursor=cjo", "invalid-parameter", "cursor"),  # r:
    ("/v1/cells/1/history?cursor=aDp4", "invalid-parameter", "cursor"),  # h:x, no number
    ("/v1/findings?cursor=Zjp4", "invalid-parameter", "cursor"),
    ("/v1/jobs?limits=1", "unknown-parameter", "limits"),
    ("/healthz?x", "unknown-parameter", "x"),
    ("/?nothing=1", "unknown-parameter", "nothing"),
    ("/v1/runs?outcome=good", "invalid-parameter", "outcome"),
    ("/v1/runs?job=x", "invalid-parameter", "job"),
    ("/v1/runs?cell=0", "invalid-parameter", "cell"),
    ("/v1/runs?workload=", "invalid-parameter", "workload"),
    ("/v1/matrix?view=fleets", "unknown-view", "view"),
    ("/v1/matrix?view=documents&view=documents", "invalid-parameter", "view"),
    ("/v1/matrix?table=documents-2021", "unknown-table", "table"),
    ("/v1/matrix?environment=x", "unknown-environment", "environment"),
    ("/v1/matrix?environment=" + "0" * 32, "unknown-environment", "environment"),
    ("/v1/matrix?device=none", "unknown-device", "device"),
    ("/v1/matrix?as_of=yesterday", "invalid-parameter", "as_of"),
    ("/v1/matrix?as_of=2999-01-01T00:00:00Z", "invalid-parameter", "as_of"),
    ("/v1/matrix?device=none&environment=" + "0" * 32, "invalid-parameter", "device"),
])
def test_bad_parameters_are_named(service, path, kind, name):
    problem = refused(service, "GET", path, 422, kind)
    assert problem["errors"][0]["parameter"] == name


@pytest.mark.parametrize("path, names", [
    ("/v1/compare?a=x&nothing=1&a=x", ["nothing", "a"]),  # values only where every name is right
    ("/v1/compare?b=x", ["a", "b"]),
    ("/v1/runs?outcome=completd&cursor=x&limit=0", ["limit", "cursor", "outcome"]),
    ("/v1/matrix?device=none&environment=" + "0" * 32 + "&as_of=x&table=y&view=z",
     ["view", "table", "as_of", "device"]),
])
def test_all_bad_parameters_are_told_in_one_order(service, path, names):
    problem = service.request("GET", path)[2]
    assert [e["parameter"] for e in problem["errors"]] == names


@pytest.mark.parametrize("path, choices", [("/v1/jobs?background=x", "; there is: no"),
                                           ("/v1/matrix?view=enviroments", "; did you mean 'environments'?"),
                                           ("/v1/runs?outcome=x", ""),
                                           ("/v1/runs?outcome=complete", "; did you mean 'completed'?")])
def test_choices_of_a_parameter(service, path, choices):
    problem = service.request("GET", path)[2]
    assert problem["errors"][0]["detail"].partition("'")[2].partition("'")[2] == choices


@pytest.mark.parametrize("query, kind, name, detail", [
    ("workload=selftest_pas", "unknown-workload", "workload",
     "there is no workload 'selftest_pas'; did you mean 'selftest_pass'?"),
    ("workload=selftest_pas&variant=orderd", "unknown-workload", "workload",
     "there is no workload 'selftest_pas'; did you mean 'selftest_pass'?"),
    ("workload=selftest_pass&variant=orderd", "unknown-variant", "variant",
     "the workload has no variant 'orderd'; did you mean 'ordered'?"),
    ("variant=%C3%BCnordered", "unknown-variant", "variant",
     "no workload has a variant 'ünordered'; did you mean 'unordered'?"),
    ("device=cpu:nowhere-at-all", "unknown-device", "device",
     "there is no device 'cpu:nowhere-at-all'"),
    (f"job={NOBODY}", "invalid-parameter", "job", f"there is no job {NOBODY}"),
    ("cell=999999", "invalid-parameter", "cell", "there is no cell 999999"),
])
def test_runs_by_a_name_that_nothing_has(service, query, kind, name, detail):
    """An empty list would look like work that has yet to be done."""
    for suffix in ("", ".csv"):
        problem = refused(service, "GET", f"/v1/runs{suffix}?{query}", 422, kind)
        assert [(e["parameter"], e["detail"]) for e in problem["errors"]] == [(name, detail)]


def test_several_names_that_nothing_has(service):
    problem = refused(service, "GET", f"/v1/runs?workload=a&device=b&job={NOBODY}", 422,
                      "invalid-request")
    assert sorted(e["parameter"] for e in problem["errors"]) == ["device", "job", "workload"]


def test_a_device_that_the_matrix_does_not_have(service):
    (device,) = service.get("/v1/devices")["items"]
    wrong = "cpux" + device["id"][3:]
    problem = refused(service, "GET", f"/v1/matrix?device={wrong}", 422, "unknown-device")
    assert f"did you mean '{device['id']}'?" in problem["errors"][0]["detail"]


def test_names_that_something_has(start_service):
    """Of the catalogue, before anything ran; of the database, when no worker knows it more."""
    service = start_service()
    (device,) = service.get("/v1/devices")["items"]
    for query in ("workload=selftest_pass&variant=ordered", f"device={device['id']}"):
        assert service.get(f"/v1/runs?{query}")["items"] == []
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=1, iterations=1))
    assert service.stop() == 0
    stacks = json.loads(service.config.read_text())
    stacks["stacks"][0]["worker"] = str(BUILD / "reprod-worker")
    service.config.write_text(json.dumps(stacks))
    service.start()
    assert service.get("/v1/runs?workload=selftest_pass&outcome=crashed")["items"] == []
    assert service.get("/v1/runs?workload=conv_wgrad&variant=ordered")["items"] == []
    problem = refused(service, "GET", "/v1/runs?workload=selftest_pas", 422, "unknown-workload")
    assert "did you mean 'selftest_pass'?" in problem["detail"]


# Requests that can be read in two ways


@pytest.mark.parametrize("request_head", [
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL
    + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Transfer-Encoding: gzip\r\n\r\n",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + LOCAL + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"GET /healthz%00.txt HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /healthz\0.txt HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /v1/jobs?limit=%00 HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /v1/jobs%zz HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"GET /v1/jobs%0d%0aX:y HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Length: +2\r\n\r\n{}",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Type: application/json\r\n"
    b"Content-Length : 44\r\n\r\n",
    b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"X: y\nA: b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"X: y\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"X: y\r\n\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"X: a\r\n b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n X: a\r\n" + LOCAL + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"X: a\0b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"X: a\rb\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + LOCAL + b": y\r\n\r\n",
])
def test_ambiguous_requests_end_the_connection(service, request_head):
    """One 400, and whatever follows is never taken for a request."""
    follow = b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"\r\n"
    answer = raw(service, request_head + follow)
    assert status_of(answer) == 400, answer
    assert b'"status":"ok"' not in answer
    assert b"HTTP/1.1 200" not in answer


def test_a_head_may_come_in_pieces_and_in_rows(service):
    """However it arrives: long, a byte at a time, one request behind another."""
    head = b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"".join(
        b"X-%d:%s\r\n" % (i, b" \ta" * (i % 40)) for i in range(120)) + b"Accept: */*  \r\n\r\n"
    for piece in (1, 100, len(head)):
        with socket.create_connection(("127.0.0.1", service.port), LIMIT) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = connection.makefile("rb")
            for _ in range(2):
                for at in range(0, len(head), piece):
                    connection.sendall(head[at:at + piece])
                assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
                length = 0
                while (line := stream.readline()) != b"\r\n":
                    length = int(line[15:]) if line.startswith(b"Content-Length:") else length
                stream.read(length)


@pytest.mark.parametrize("host", [
    b"evil.example", b"evil.example:7357", b"127.0.0.1.evil.example", b"localhost.evil.example",
    b"192.168.0.1",
])
def test_dns_rebinding_is_refused(service, host):
    answer = raw(service, b"GET /v1/jobs HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    assert status_of(answer) == 403 and b"/problems/foreign-host" in answer
    answer = raw(service, b"GET http://" + host + b"/v1/jobs HTTP/1.1\r\n" + LOCAL + b"\r\n")
    assert status_of(answer) == 403 and b"/problems/foreign-host" in answer


@pytest.mark.parametrize("host", [b"127.0.0.2", b"127.8.9.10:7357", b"localhost"])
def test_every_address_of_the_loopback_is_this_machine(service, host):
    answer = raw(service, b"GET /v1/jobs HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert status_of(answer) == 200, answer


def test_two_keys_are_none(service):
    before = len(service.items("/v1/jobs"))
    body = b'{"workloads":["selftest_pass"]}'
    answer = raw(service, b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Idempotency-Key: one\r\nIdempotency-Key: two\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert status_of(answer) == 400 and b"Idempotency-Key is given more than once" in answer
    assert len(service.items("/v1/jobs")) == before


def test_pages_of_other_origins_are_refused(service):
    before = len(service.items("/v1/jobs"))
    for origin in ("http://evil.example", "null", "https://localhost", "http://localhost:1"):
        refused(service, "POST", "/v1/jobs", 403, "foreign-origin",
                {"workloads": ["selftest_pass"]}, {"Origin": origin})
    assert len(service.items("/v1/jobs")) == before
    own = f"http://127.0.0.1:{service.port}"
    status, headers, _ = service.request("GET", "/v1/jobs", headers={"Origin": own})
    assert status == 200 and "Access-Control-Allow-Origin" not in headers


# Too much, too slow


def test_large_bodies(service):
    limit = 1 << 20
    head = b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Connection: close\r\n"
    over = head + b"Content-Length: %d\r\n\r\n" % (limit + 1)
    assert status_of(raw(service, over)) == 413
    expecting = head + b"Expect: 100-continue\r\nContent-Length: 99999999999999999999\r\n\r\n"
    assert status_of(raw(service, expecting)) in (400, 413)
    body = b'{"note":"' + b"x" * (limit - 11) + b'"}'
    assert len(body) == limit
    fits = head + b"Content-Length: %d\r\n\r\n" % limit + body
    assert status_of(raw(service, fits)) == 422
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 20 + b"0\r\n\r\n"
    assert status_of(raw(service, chunked)) == 413
    endless = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 400
    assert status_of(raw(service, endless)) is None
    assert service.get("/healthz")["status"] == "ok"


def test_large_heads(service):
    long_target = b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n" + LOCAL + b"\r\n"
    assert status_of(raw(service, long_target)) in (400, 414, 431, None)
    long_header = b"GET / HTTP/1.1\r\n" + LOCAL + b"X: " + b"a" * 100000 + b"\r\n\r\n"
    assert status_of(raw(service, long_header)) in (400, 413, 431, None)
    many = b"".join(b"X%d: y\r\n" % i for i in range(5000))
    assert status_of(raw(service, b"GET / HTTP/1.1\r\n" + LOCAL + many + b"\r\n")) in (
        400, 413, 431, None)
    assert service.get("/healthz")["status"] == "ok"


def test_a_get_with_a_body_is_served(service):
    answer = raw(service, b"GET /healthz HTTP/1.1\r\n" + LOCAL
                 + b"Connection: close\r\nContent-Length: 5\r\n\r\nhello")
    assert status_of(answer) == 200


def test_pipelined_requests_are_answered_in_order(service):
    paths = ["/healthz", "/v1/jobs?limit=1", "/v1/matrix", "/v1/devices"] * 50
    data = b"".join(b"GET " + path.encode() + b" HTTP/1.1\r\n" + LOCAL + b"\r\n"
                    for path in paths)
    answer = raw(service, data + b"GET /none HTTP/1.1\r\n" + LOCAL + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 200 OK\r\n") == 200
    assert answer.count(b"HTTP/1.1 404 ") == 1
    assert answer.rindex(b"HTTP/1.1 200") < answer.index(b"HTTP/1.1 404")


@pytest.mark.long
def test_trickled_requests_are_cut_off(service):
    """A byte now and then does not hold a connection: whole within 15 s, or gone."""
    with socket.create_connection(("127.0.0.1", service.port), 60) as connection:
        connection.settimeout(0.5)
        rest = iter(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 1000)
        ended = False
        while not ended:
            try:
                connection.sendall(bytes([next(rest)]))
                ended = connection.recv(1) == b""
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                ended = True
    assert ended


def test_clients_that_leave_in_the_middle(service):
    for data in (b"", b"GET", b"GET /v1/matrix HTTP/1.1\r\n" + LOCAL + b"\r\n",
                 b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Length: 100\r\n\r\n{"):
        for _ in range(50):
            connection = socket.create_connection(("127.0.0.1", service.port), 10)
            connection.sendall(data)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
    assert service.get("/healthz")["status"] == "ok"


def ended(service):
    """How many connections made room for others."""
    [line] = [line for line in service.get("/metrics").splitlines()
              if line.startswith("reprod_http_connections_ended_total ")]
    return int(line.split()[1])


@pytest.mark.parametrize("begun", [
    b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\n" + LOCAL + b"\r\n",
    b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"])
def test_more_clients_than_connections(start_service, begun):
    """Whoever keeps silent makes room for whoever asks, and the longest silence first."""
    limit = 16
    service = start_service(config={"connection_limit": limit})
    with contextlib.ExitStack() as stack:
        for _ in range(10 * limit):
            connection = socket.create_connection(("127.0.0.1", service.port), LIMIT)
            stack.enter_context(connection).sendall(begun)
        assert service.get("/healthz")["status"] == "ok"
        service.wait(lambda: ended(service) > 0, "connections that made room")


def test_who_is_served_makes_no_room(start_service):
    limit = 16
    service = start_service(config={"connection_limit": limit})
    with contextlib.ExitStack() as stack:
        streams = []
        for _ in range(limit + 1):
            connection = socket.create_connection(("127.0.0.1", service.port), LIMIT)
            stack.enter_context(connection).sendall(b"GET /v1/events HTTP/1.1\r\n" + LOCAL + b"\r\n")
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
            streams.append(connection)
        for _ in range(3):
            assert service.get("/healthz")["status"] == "ok"
        for connection in streams:
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while chunk := connection.recv(4096):
                    pass
                assert chunk, "the stream was ended"


@pytest.mark.long
def test_stopping_with_requests_under_way(start_service):
    """Streams open and requests pipelined: it still exits cleanly (checked by the fixture)."""
    service = start_service()
    open_connections = []
    for _ in range(5):
        connection = socket.create_connection(("127.0.0.1", service.port), 30)
        connection.sendall(b"GET /v1/events HTTP/1.1\r\n" + LOCAL + b"\r\n")
        assert connection.recv(15)
        open_connections.append(connection)
        connection = socket.create_connection(("127.0.0.1", service.port), 30)
        connection.sendall((b"GET /v1/matrix HTTP/1.1\r\n" + LOCAL + b"\r\n") * 200)
        open_connections.append(connection)
    assert service.stop() == 0
    for connection in open_connections:
        connection.close()


def test_a_request_that_the_library_cannot_go_on_with(service):
    """A line of a chunk without an end made the library ask to be run at once, for ever: until the
    connection's deadline nothing else was served and no run was stored."""
    endless = (b"POST /v1/jobs HTTP/1.1\r\n" + LOCAL + b"Content-Type: application/json\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n5;" + 20000 * b"a")
    served = 0
    with contextlib.ExitStack() as stack:
        stuck = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port), LIMIT))
                 for _ in range(3)]
        for connection in stuck:
            connection.sendall(endless)
        job = service.post_job(workloads=["selftest_pass"], runs=2, iterations=1)
        while stuck:
            assert service.get(f"/v1/jobs/{job}")["id"] == job
            served += 1
            for connection in select.select(stuck, [], [], 0)[0]:
                assert connection.recv(1) == b""
                stuck.remove(connection)
    assert served >= 5
    assert service.finish_job(job)["state"] == "finished"
