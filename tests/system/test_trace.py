"""What the probes of a run saw reaches the store and comes back, in program order."""
import csv
import io

import pytest

from test_api import matches
from traces import run_pair, trace_service

RECORDS = 70
SCHEMA = {"$ref": "#/components/schemas/Trace"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    shared = trace_service(tmp_path_factory.mktemp("traces")).start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


@pytest.fixture(scope="module")
def pair(service):
    return run_pair(service, "trace_equal")


@pytest.fixture(scope="module")
def path(pair):
    return f"/v1/runs/{pair[0]['id']}/trace"


@pytest.fixture(scope="module")
def whole(service, path):
    return service.get(f"{path}?limit=1000")


def test_a_run_says_that_it_has_one(service, pair):
    for run in pair:
        assert run["outcome"] == "completed"
        assert run["trace"] == {"records": RECORDS, "dropped": 0, "truncated": False,
                                "href": f"/v1/runs/{run['id']}/trace"}
        matches(run, {"$ref": "#/components/schemas/RunWithDigests"})
        listed = service.get(f"/v1/runs?job={run['job']}")["items"]
        assert run["trace"] in [other["trace"] for other in listed]


def test_records_are_in_program_order(whole):
    matches(whole, SCHEMA)
    items = whole["items"]
    assert [item["position"] for item in items] == list(range(RECORDS))
    assert whole["places"] == 14 and whole["next"] is None
    assert items[0] | {"out": ""} == {"position": 0, "iteration": 0, "step": 0, "in": None,
                                      "place": "variable/conv1/before", "out": ""}
    assert [item["step"] for item in items] == [step for step in range(5) for _ in range(14)]
    forward = next(item for item in items if item["place"] == "conv2/forward")
    assert forward["in"] and forward["out"]


@pytest.mark.flavour
def test_pages_make_up_the_whole(service, path, whole):
    items, cursor, pages = [], "", 0
    while cursor is not None:
        page = service.get(f"{path}?limit=30{cursor and '&cursor=' + cursor}")
        items += page["items"]
        cursor = page["next"]
        pages += 1
    assert pages == 3 and items == whole["items"]
    _, headers, _ = service.request("GET", f"{path}?limit=30&place=conv*")
    assert headers.get("Link") is None
    _, headers, _ = service.request("GET", f"{path}?limit=3&place=conv*")
    assert 'rel="next"' in headers["Link"] and "place=conv%2A" in headers["Link"]


@pytest.mark.parametrize("query, keep", [
    ("step=2", lambda r: r["step"] == 2),
    ("step=2-3", lambda r: r["step"] in (2, 3)),
    ("place=gradient/*", lambda r: r["place"].startswith("gradient/")),
    ("place=*/conv?/*", lambda r: "/conv" in r["place"] and r["place"].count("/") == 2),
    ("place=loss&step=4", lambda r: r["place"] == "loss" and r["step"] == 4),
    ("iteration=0", lambda r: True),
    ("iteration=1-9", lambda r: False),
    ("place=loss&step=40", lambda r: False),
])
def test_filters(service, path, whole, query, keep):
    assert service.get(f"{path}?limit=1000&{query}")["items"] == list(filter(keep, whole["items"]))


@pytest.mark.parametrize("query, parameter", [
    ("step=3-2", "step"), ("step=x", "step"), ("step=-1", "step"), ("step=", "step"),
    ("step=99999999999999999999", "step"), ("iteration=1.5", "iteration"), ("place=", "place"),
    ("limit=10001", "limit"), ("cursor=x", "cursor"), ("steps=1", "steps"),
])
def test_bad_parameters(service, path, query, parameter):
    status, headers, problem = service.request("GET", f"{path}?{query}")
    assert status == 422 and headers["Content-Type"] == "application/problem+json"
    assert problem["errors"][0]["parameter"] == parameter


def test_a_place_that_the_trace_does_not_have(service, path):
    for place, idea in (("Loss", "; did you mean 'loss'?"), ("gradients/*", "")):
        status, _, problem = service.request("GET", f"{path}?place={place}")
        assert status == 422
        assert problem["detail"] == f"place: no place of this trace matches '{place}'{idea}"


def test_text_and_csv(service, path, whole):
    rows = list(csv.DictReader(io.StringIO(service.get(f"{path}.csv?limit=1000"))))
    assert [int(row["position"]) for row in rows] == list(range(RECORDS))
    assert rows[3]["out"] == whole["items"][3]["out"]
    text = service.get(f"{path}.txt?limit=20")
    assert "POSITION" in text and "gradient/conv2" in text and "more with ?cursor=" in text


def test_it_can_be_cached(service, path):
    _, headers, _ = service.request("GET", path)
    status, _, _ = service.request("GET", path, headers={"If-None-Match": headers["ETag"]})
    assert status == 304
    status, head, body = service.request("HEAD", path)
    assert (status, body, head["ETag"]) == (200, "", headers["ETag"])


def test_both_forms_of_the_event_make_the_same(service, whole):
    single, _ = run_pair(service, "trace_single")
    assert service.get(f"/v1/runs/{single['id']}/trace?limit=1000")["items"] == whole["items"]


def test_without_a_trace(service):
    none, _ = run_pair(service, "trace_none")
    assert none["trace"] is None
    for run, reason in ((none["id"], "recorded no probes"), ("0" * 26, "no run"), ("x", "no run")):
        status, headers, problem = service.request("GET", f"/v1/runs/{run}/trace")
        assert status == 404 and reason in problem["detail"]
        assert headers["Content-Type"] == "application/problem+json"


@pytest.mark.flavour
def test_of_runs_that_fail(service):
    _, crashed = run_pair(service, "trace_crash")
    assert crashed["outcome"] == "crashed" and crashed["trace"]["records"] == 20
    bad, _ = run_pair(service, "trace_bad")
    assert bad["outcome"] == "invalid" and "probes: records/0: out must be 32" in bad["cause"]
    assert bad["trace"]["records"] == RECORDS


def test_what_the_program_left_out_is_counted(service):
    run, _ = run_pair(service, "trace_dropped")
    assert run["outcome"] == "completed"
    assert (run["trace"]["dropped"], run["trace"]["truncated"]) == (5, True)
    assert service.get(f"/v1/runs/{run['id']}/trace")["truncated"]


def test_it_outlives_a_kill(tmp_path):
    service = trace_service(tmp_path / "killed").start()
    run, _ = run_pair(service, "trace_equal")
    before = service.get(f"/v1/runs/{run['id']}/trace")
    service.kill()
    service.start()
    assert service.get(f"/v1/runs/{run['id']}/trace") == before
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0 and "1 traces unpacked, 0 wrong" in text, text


def test_the_description_has_it(service):
    paths = service.get("/openapi.json")["paths"]
    assert paths["/v1/runs/{id}/trace"]["get"]["responses"]["200"]
