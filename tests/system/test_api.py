"""The REST interface of the running service: what it answers when all is well."""
import csv
import io
import json
import math
import os
import pathlib
import re
import statistics
import struct
import subprocess

import pytest

from service import LIMIT

pytestmark = pytest.mark.flavour

# All but the paths, which come from the table of routes.
DESCRIPTION = json.loads(
    (pathlib.Path(__file__).resolve().parents[2] / "api" / "openapi.json").read_text())
ULID = re.compile(r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


@pytest.fixture(scope="module")
def done(service):
    """A finished job: selftest_pass, both variants, three runs of four iterations."""
    found = service.post_job(workloads=["selftest_pass"], variants=["unordered"], localise=True,
                             runs=2, runs_max=4)
    job = service.post_job(workloads=["selftest_pass"], runs=3, iterations=4)
    service.finish_job(found)
    status, _, schedule = service.request("POST", "/v1/schedules", {
        "name": "weekly", "every": "1w", "job": {"workloads": ["selftest_pass"]}})
    assert status == 201, schedule
    status, _, webhook = service.request("POST", "/v1/webhooks", {
        "name": "paused", "url": "http://localhost:9/", "types": ["host.lost"]})
    assert status == 201, webhook
    for what in ("pause", "test"):
        assert service.request("POST", f"/v1/webhooks/{webhook['id']}/{what}")[0] == 200
    return {**service.finish_job(job), "localised": found, "schedule": schedule["id"], "webhook": webhook["id"]}


# The description is true


def matches(value, schema, where="$"):
    """VALUE against the part of JSON Schema that the description uses."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return matches(value, DESCRIPTION["components"]["schemas"][name], where)
    for part in schema.get("allOf", []):
        matches(value, part, where)
    if "oneOf" in schema:
        fitting = 0
        for part in schema["oneOf"]:
            try:
                matches(value, part, where)
                fitting += 1
            except AssertionError:
                pass
        assert fitting == 1, (where, value)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    python = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
              "null": type(None), "object": dict, "array": list}
    if kinds:
        fits = any(isinstance(value, python[kind])
                   and not (isinstance(value, bool) and kind in ("integer", "number"))
                   for kind in kinds)
        assert fits, (where, kinds, value)
    if "enum" in schema:
        assert value in schema["enum"], (where, value)
    if "const" in schema:
        assert value == schema["const"], (where, value)
    if isinstance(value, str) and "pattern" in schema:
        assert re.search(schema["pattern"], value), (where, value)
    if isinstance(value, str) and schema.get("format") == "date-time":
        assert TIME.match(value), (where, value)
    if isinstance(value, dict):
        for name in schema.get("required", []):
            assert name in value, (where, name)
        properties = schema.get("properties", {})
        for name, member in value.items():
            if name in properties:
                matches(member, properties[name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                raise AssertionError((where, name))
    if isinstance(value, list):
        for index, item in enumerate(value):
            matches(item, schema.get("items", {}), f"{where}[{index}]")


def paths_of(service, done):
    """Every path of the description that GET can read, with real ids."""
    run = service.get(f"/v1/runs?job={done['id']}&limit=1")["items"][0]
    names = {"/v1/jobs/{id}": done["id"], "/v1/jobs/{id}/localisation": done["localised"], "/v1/runs/{id}": run["id"],
             "/v1/cells/{id}": str(run["cell"]), "/v1/workloads/{name}": "selftest_pass",
             "/v1/environments/{id}": run["environment"], "/v1/devices/{id}": run["device"],
             "/v1/verdict/{host}": os.uname().nodename, "/problems/{name}": "not-found",
             "/v1/schedules/{id}": done["schedule"], "/v1/webhooks/{id}": done["webhook"], "/{asset}": "index.html"}
    for pattern, operations in service.get("/openapi.json")["paths"].items():
        # The last three need more: test_trace.py, test_compare.py and test_drift.py.
        if "get" not in operations or pattern in ("/v1/events", "/v1/runs/{id}/trace", "/v1/compare", "/v1/drift"):
            continue
        path = pattern
        for prefix, value in names.items():
            if pattern.startswith(prefix) and (prefix != "/{asset}" or pattern == prefix):
                path = re.sub(r"\{\w+\}", value, pattern)
        assert "{" not in path, pattern
        yield pattern, path, operations["get"]


def test_every_resource_is_as_described(service, done):
    checked = 0
    for pattern, path, operation in paths_of(service, done):
        content = operation["responses"]["200"]["content"]
        for kind in content:
            status, headers, body = service.request("GET", path, headers={"Accept": kind})
            assert status == 200, (path, kind, body)
            if kind != "*/*":
                assert headers["Content-Type"].split(";")[0] == kind, path
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert body or path.endswith("/log"), path
            if kind == "application/json":
                matches(body, content[kind]["schema"], pattern)
            checked += 1
    assert checked > 55


def test_served_description_is_the_one_in_the_repository_and_the_paths(service):
    served = service.get("/openapi.json")
    assert len(served.pop("paths")) > 30
    assert served == DESCRIPTION


def test_suffixes_are_the_same_as_accept(service, done):
    for pattern, path, operation in paths_of(service, done):
        if pattern in ("/", "/openapi.json", "/{asset}", "/metrics") or "readyz" in path:
            continue
        for kind, suffix in (("text/plain", ".txt"), ("text/csv", ".csv"),
                             ("application/json", ".json")):
            status, headers, body = service.request("GET", path + suffix)
            if kind in operation["responses"]["200"]["content"]:
                assert status == 200, (path + suffix, body)
                assert headers["Content-Type"].startswith(kind)
            else:
                assert status == 404, (path + suffix, body)


def test_every_get_has_an_etag_and_304(service, done):
    for pattern, path, _ in paths_of(service, done):
        status, headers, body = service.request("GET", path)
        if pattern == "/metrics":
            assert headers["ETag"]
            continue
        again, second, empty = service.request(
            "GET", path, headers={"If-None-Match": f'"zzz", {headers["ETag"]}'})
        assert (again, empty) == (304, ""), path
        assert second["ETag"] == headers["ETag"]
        other, _, _ = service.request("GET", path, headers={"If-None-Match": '"zzz"'})
        assert other == 200


def test_head_is_get_without_body(service, done):
    for _, path, _ in paths_of(service, done):
        _, headers, _ = service.request("GET", path)
        status, bare, body = service.request("HEAD", path)
        assert (status, body) == (200, ""), path
        assert bare["Content-Type"] == headers["Content-Type"]
        if path != "/metrics":
            assert bare["Content-Length"] == headers["Content-Length"]


# Jobs


def test_post_answers_201_with_location(service):
    status, headers, job = service.request(
        "POST", "/v1/jobs", {"workloads": ["selftest_pass"], "variants": ["ordered"], "runs": 2,
                             "note": "µ"})
    assert status == 201
    assert ULID.match(job["id"])
    assert headers["Location"] == f"/v1/jobs/{job['id']}"
    assert job["request"] == {"workloads": ["selftest_pass"], "variants": ["ordered"], "runs": 2,
                              "note": "µ"}
    assert job["progress"]["runs_total"] == 2
    finished = service.finish_job(job["id"])
    assert finished["state"] == "finished"
    assert finished["progress"]["runs_done"] == 2
    assert finished["progress"]["eta_seconds"] is None


def test_curl_as_people_type_it(service):
    answer = subprocess.run(
        ["curl", "-s", "-d", '{"workloads":["selftest_pass"],"variants":["unordered","ordered"],'
                             '"runs":2,"iterations":3}',
         f"http://127.0.0.1:{service.port}/v1/jobs"], capture_output=True, text=True, timeout=LIMIT)
    job = json.loads(answer.stdout)
    assert service.finish_job(job["id"])["progress"]["runs_done"] == 4
    text = subprocess.run(["curl", "-s", f"http://localhost:{service.port}/"],
                          capture_output=True, text=True, timeout=LIMIT).stdout
    assert text.startswith("reprod: sources of non-determinism")
    assert max(len(line) for line in text.splitlines()) <= 120


def test_a_browser_gets_the_page(service):
    accept = "text/html,application/xhtml+xml,*/*;q=0.8"
    status, headers, body = service.request("GET", "/?table=documents-2020&cell=x",
                                            headers={"Accept": accept})
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert headers["Vary"] == "Accept"
    for name in re.findall(r'(?:src|href)="/?([\w.-]+\.(?:js|css|svg))"', body):
        status, headers, _ = service.request("GET", f"/{name}")
        assert status == 200, name
        kind = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        assert headers["Content-Type"].startswith(kind[name.rsplit(".", 1)[1]])


def test_idempotency_key(service):
    body = {"workloads": ["selftest_pass"], "variants": ["ordered"], "runs": 1}
    key = {"Idempotency-Key": "a key of mine"}
    first = service.request("POST", "/v1/jobs", body, key)
    again = service.request("POST", "/v1/jobs", dict(reversed(body.items())), key)
    other = service.request("POST", "/v1/jobs", dict(body, runs=2), key)
    assert first[0] == 201 and "Idempotent-Replay" not in first[1]
    assert again[0] == 200 and again[1]["Idempotent-Replay"] == "true"
    assert again[2]["id"] == first[2]["id"]
    assert other[0] == 409 and other[2]["type"] == "/problems/idempotency-conflict"
    assert sum(job["request"] == body for job in service.items("/v1/jobs")) == 1


def test_rerun_repeats_the_request(service, done):
    status, headers, job = service.request("POST", f"/v1/jobs/{done['id']}/rerun")
    assert status == 201
    assert job["id"] != done["id"]
    assert job["request"] == done["request"]
    service.finish_job(job["id"])


def test_cancel_is_idempotent(start_service):
    service = start_service()
    job = service.post_job(workloads=["selftest_pass"], runs=100000)
    for _ in range(2):
        status, _, body = service.request("DELETE", f"/v1/jobs/{job}")
        assert (status, body["state"]) == (200, "cancelled")
    assert service.get(f"/v1/jobs/{job}")["state"] == "cancelled"


def test_a_finished_job_cannot_be_cancelled(service, done):
    status, _, body = service.request("DELETE", f"/v1/jobs/{done['id']}")
    assert (status, body["type"]) == (409, "/problems/conflict")


def test_pages_are_complete_and_in_order(service):
    for _ in range(3):
        service.finish_job(service.post_job(workloads=["selftest_pass"], runs=1))
    for listed in ("/v1/jobs", "/v1/runs"):
        all_ids = [each["id"] for each in service.get(f"{listed}?limit=1000")["items"]]
        assert len(all_ids) > 2
        assert all_ids == sorted(all_ids, reverse=True)
        seen, path = [], f"{listed}?limit=2"
        while path:
            status, headers, page = service.request("GET", path)
            assert status == 200 and len(page["items"]) <= 2
            seen += [each["id"] for each in page["items"]]
            link = re.match(r'<([^>]+)>; rel="next"$', headers.get("Link", ""))
            assert bool(link) == bool(page["next"])
            path = link and link.group(1)
        assert seen == all_ids


def test_digests_table(service, done):
    body = service.get(f"/v1/jobs/{done['id']}/digests")
    by_variant = {group["variant"]: group for group in body["groups"]}
    assert len(by_variant["ordered"]["runs"]) == 3
    assert by_variant["ordered"]["distinct_first_digests"] == 1
    text = service.get(f"/v1/jobs/{done['id']}/digests.txt")
    assert "SUM OF WEIGHTS       | FINAL LOSS" in text
    line = re.compile(r"^  (-?[\d.]+(?:e[+-]\d+)?) +\| (\S+)", re.M)
    sums = [match[0] for match in line.findall(text)]
    assert len(sums) == 6
    assert sums == [run["weight_sum"] for group in body["groups"] for run in group["runs"]]


# Runs, cells, matrix


def test_runs_can_be_narrowed(service, done):
    runs = service.get(f"/v1/runs?job={done['id']}&variant=ordered&outcome=completed")["items"]
    assert len(runs) == 3
    run = runs[0]
    assert run["weight_sum_bits"] and float(run["weight_sum"]) is not None
    assert run["work"]["iterations"] == run["iterations"] == 4
    assert run["milliseconds"]["min"] <= run["milliseconds"]["median"] <= run["milliseconds"]["max"]
    assert service.get(f"/v1/runs?job={done['id']}&outcome=crashed")["items"] == []
    assert len(service.get(f"/v1/runs?cell={run['cell']}&limit=1000")["items"]) >= 3
    assert service.get(f"/v1/runs/{run['id']}")["id"] == run["id"]


def test_log_of_a_crash(service):
    job = service.post_job(workloads=["selftest_crash"], runs=1, iterations=1)
    service.finish_job(job)
    runs = service.get(f"/v1/runs?job={job}&outcome=crashed")["items"]
    assert runs
    for run in runs:
        assert run["cause"]
        log = service.get(f"/v1/runs/{run['id']}/log.json")
        assert len(log["log"].encode()) >= log["bytes_kept"]
        assert log["truncated"] == (log["bytes_written"] > log["bytes_kept"])
    digests = service.get(f"/v1/jobs/{job}/digests.txt")
    assert "(crashed)" in digests


def test_cell_with_history_and_evidence(service, done):
    run = service.get(f"/v1/runs?job={done['id']}&variant=ordered")["items"][0]
    cell = service.get(f"/v1/cells/{run['cell']}")
    evidence = service.get(f"/v1/cells/{run['cell']}/evidence")
    history = service.get(f"/v1/cells/{run['cell']}/history")
    assert cell["variant"] == "ordered"
    assert cell["evidence"]["distinct_digests"] == len(evidence["items"]) == 1
    assert sum(item["iterations"] for item in evidence["items"]) == cell["evidence"]["iterations"]
    assert history["items"][0]["verdict"] == cell["verdict"]
    times = [item["at"] for item in history["items"]]
    assert times == sorted(times, reverse=True)
    page = service.get(f"/v1/cells/{run['cell']}/history?limit=1")
    if page["next"]:
        older = service.get(f"/v1/cells/{run['cell']}/history?limit=1&cursor={page['next']}")
        assert older["items"][0] == history["items"][1]


def test_how_often_a_cell_departs(service):
    """One iteration of each run, which is not its first."""
    job = service.post_job(workloads=["selftest_varies_once"], variants=["ordered"], runs=3, iterations=8)
    service.finish_job(job)
    path = f"/v1/cells/{service.get(f'/v1/runs?job={job}')['items'][0]['cell']}"
    found = service.get(path)["departures"]
    assert found == service.get(f"{path}/evidence")["departures"]
    for rate, departed, of in (found["runs"], 3, 3), (found["iterations"], 3, 21):
        assert (rate["departed"], rate["of"]) == (departed, of)
        # The probability of as many or more, and of as many or fewer, at the ends.
        tails = [sum(math.comb(of, k) * p ** k * (1 - p) ** (of - k) for k in ks) for p, ks in (
            (rate["lower"], range(departed, of + 1)), (rate["upper"], range(departed + 1)))]
        assert abs(tails[0] - 0.025) < 1e-9
        assert abs(tails[1] - 0.025) < 1e-9 or departed == of and rate["upper"] == 1
    words = ("another digest than the most frequent one in 3 of 3 runs (29-100 %) and in 3 of 21 iterations "
             "after a run's first (3.0-37 % if independent)")
    assert found["text"] == words and words in service.get(f"{path}.txt")
    variant, = [v for v in service.get("/v1/matrix")["variants"] if v["workload"] == "selftest_varies_once"]
    assert variant["departures"] == found
    line, = [each for each in service.get("/v1/matrix.txt").splitlines() if "selftest_varies_once" in each]
    assert "29-100 %" in line


def test_how_much_a_cell_varies(service, done):
    """From the runs as the API lists them."""
    path = "/v1/cells/{cell}".format(**service.get(f"/v1/runs?job={done['id']}&variant=unordered")["items"][0])
    found = service.get(path)
    spread = found["spread"]
    matches(spread, service.get("/openapi.json")["components"]["schemas"]["Spread"])
    runs = [run for run in service.items(f"/v1/runs?cell={found['id']}") if run["outcome"] == "completed"]
    assert len(runs) > 1 and (spread["runs"], spread["runs_left_out"]) == (len(runs), 0)
    words = sorted(int(run["weight_sum_bits"], 16) for run in runs)
    assert words[-1] < 1 << 63  # no sign: they are in the order of the values
    values = [struct.unpack(">d", word.to_bytes(8, "big"))[0] for word in words]
    sums = spread["weight_sum"]
    assert (sums["runs"], sums["not_finite"], sums["distinct"]) == (len(runs), 0, len(set(words)))
    assert (sums["least_bits"], sums["greatest_bits"]) == (f"{words[0]:016x}", f"{words[-1]:016x}")
    assert int(sums["float64_ulp"]) == words[-1] - words[0]
    assert math.isclose(sums["range"], values[-1] - values[0], rel_tol=1e-8)
    assert math.isclose(sums["standard_deviation"], statistics.stdev(values), rel_tol=1e-8)
    assert spread["iterations"] == sum(run["work"]["iterations"] for run in runs) == found["evidence"]["iterations"]
    assert f"last iterations of {len(runs)} runs ({spread['iterations']} iterations), weight_sum range " in spread["text"]
    assert spread["text"] in service.get(f"{path}.txt")


def test_what_does_not_vary_departs_nowhere(service, done):
    run = service.get(f"/v1/runs?job={done['id']}&variant=ordered")["items"][0]
    cell = service.get(f"/v1/cells/{run['cell']}")
    assert cell["departures"] is None and cell["spread"] is None


def test_evidence_that_is_cut_says_so(service, done):
    """`done` has runs of the unordered variant with probes and without."""
    run = service.get(f"/v1/runs?job={done['id']}&variant=unordered")["items"][0]
    path = f"/v1/cells/{run['cell']}/evidence"
    whole, cut = service.get(path), service.get(f"{path}?limit=1")
    assert len(whole["alike"]) > 1 and not whole["alike_truncated"]
    assert cut["alike"] == whole["alike"][:1] and cut["alike_truncated"]
    assert cut["items"] == whole["items"][:1] and cut["truncated"]
    assert re.search(r"^alike_truncated +true$", service.get(f"{path}.txt?limit=1"), re.M)


def test_matrix_is_honest_about_what_was_not_measured(service, done):
    matrix = service.get("/v1/matrix")
    assert matrix["table"] == "documents-2020" and matrix["environment"]["id"]
    for row in matrix["rows"]:
        assert [cell["column"] for cell in row["cells"]] == [c["id"] for c in matrix["columns"]]
        for cell in row["cells"]:
            assert cell["state"] in ("unmeasured", "absent") and cell["code"] is None
    variants = {(each["workload"], each["variant"]): each for each in matrix["variants"]}
    assert variants[("selftest_pass", "ordered")]["verdict"] == "reproducible"
    assert variants[("selftest_pass", "unordered")]["verdict"] == "varies"


def test_matrix_of_an_environment_a_device_and_a_time(service, done):
    environment = service.get("/v1/environments")["items"][0]["id"]
    device = service.get("/v1/devices")["items"][0]["id"]
    assert service.get(f"/v1/matrix?environment={environment}")["environment"]["id"] == environment
    assert service.get(f"/v1/matrix?device={device}")["environment"]["id"] == environment
    first = min(job["created_at"] for job in service.items("/v1/jobs"))
    past = service.get(f"/v1/matrix?as_of={first}")
    assert past["as_of"] == first and past["variants"] == []
    assert service.get("/v1/matrix")["variants"]


def test_matrix_csv(service, done):
    table = list(csv.DictReader(io.StringIO(service.get("/v1/matrix.csv"))))
    assert len(table) == 95
    assert {(line["subject"], line["subject_title"]) for line in table} == {
        ("framework", "TensorFlow"), ("library", "cuDNN"), ("model", "our models")}
    assert {line["state"] for line in table} == {"unmeasured", "absent"}


def test_matrix_follows_the_store(start_service):
    """The shared body is renewed by a commit, and only then."""
    service = start_service()
    service.wait(lambda: service.get("/v1/devices")["items"], "what its hello commits")
    _, first, _ = service.request("GET", "/v1/matrix")
    _, same, _ = service.request("GET", "/v1/matrix")
    assert first["ETag"] == same["ETag"]
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=2, iterations=2))
    _, after, body = service.request("GET", "/v1/matrix")
    assert after["ETag"] != first["ETag"]
    assert {each["verdict"] for each in body["variants"]} >= {"reproducible", "varies"}


# The rest


def test_metrics_have_help_type_and_no_double(service, done):
    text = service.get("/metrics")
    seen = set()
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        float(value)
        assert series not in seen
        seen.add(series)
        assert f"# TYPE {series.split('{')[0]} " in text
    assert 'reprod_runs_total{outcome="completed"}' in seen


def test_options(service):
    status, headers, body = service.request("OPTIONS", "/v1/jobs")
    assert (status, body) == (204, "")
    assert headers["Allow"] == "POST, GET, HEAD, OPTIONS"


def test_keep_alive_serves_many(service):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT)
    for _ in range(200):
        connection.request("GET", "/v1/jobs?limit=1")
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()
    connection.close()
