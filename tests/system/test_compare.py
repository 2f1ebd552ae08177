"""Two runs compared: where they diverge, what is the cause, and what is honestly not comparable."""
import pytest

from test_api import matches
from traces import run_pair, trace_service

SCHEMA = {"$ref": "#/components/schemas/Comparison"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    shared = trace_service(tmp_path_factory.mktemp("compare")).start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def compare(service, a, b, suffix=""):
    return service.get(f"/v1/compare{suffix}?a={a['id']}&b={b['id']}")


def compare_workload(service, workload, iterations=1):
    """(the comparison, its text)"""
    a, b = run_pair(service, workload, iterations)
    result = compare(service, a, b)
    matches(result, SCHEMA)
    assert (result["a"], result["b"]) == (a["id"], b["id"])
    assert result["equal"] == (result["verdict"] == "equal")
    return result, compare(service, a, b, ".txt")


def moment(difference):
    return difference["step"], difference["probe"], difference["occurrence"]


def test_equal(service):
    result, text = compare_workload(service, "trace_equal")
    assert result["verdict"] == "equal"
    assert (result["probes_compared"], result["steps_compared"]) == (70, 5)
    assert result["first_difference"] is result["root_cause"] is result["structure_parts"] is None
    assert result["places"] == result["roots"] == []
    for section in ("variables_at_start", "data", "algorithm", "environment", "inputs", "result"):
        assert result[section]["equal"] is True, section
    assert result["rng"]["equal"] is None
    assert result["variables_at_start"]["compared"] == 3
    assert text.startswith("EQUAL ") and "70 records of 5 steps" in text.splitlines()[0]


@pytest.mark.flavour
def test_root_cause(service):
    result, text = compare_workload(service, "trace_root")
    root = result["root_cause"]
    assert result["verdict"] == "different"
    assert root == result["first_difference"] == result["roots"][0]
    assert moment(root) == (2, "gradient/conv2", 0)
    assert root["kind"] == "root" and root["inputs_equal"] and not root["outputs_equal"]
    assert root["a"] != root["b"] and root["inputs"]["a"] == root["inputs"]["b"]
    assert result["records"] == {"compared": 70, "equal": 45, "roots": 1, "infected": 24,
                                 "absorbed": 0}
    first = {place["place"]: place["first"] for place in result["places"]}
    assert list(first)[:3] == ["gradient/conv2", "variable/conv2/after", "variable/conv2/before"]
    assert first["variable/conv2/after"]["step"] == 2
    assert first["variable/conv2/before"]["step"] == first["loss"]["step"] == 3
    assert first["conv1/forward"]["step"] == 4 and first["conv1/forward"]["kind"] == "infected"
    assert "data/batch" not in first and result["data"]["equal"]
    lines = text.splitlines()
    assert lines[0].split(None, 1) == [
        "DIFFERENT", "root cause: gradient/conv2, step 2: equal inputs, another output"]
    rows = dict(line.split() for line in lines if line.startswith("  ") and len(line.split()) == 2)
    assert rows["gradient/conv2"] == "··R##" and rows["conv1/forward"] == "····#"
    assert "Before it      38 records agree" in lines


def test_a_difference_from_outside(service):
    """Its inputs differ first, and nothing that is probed wrote them."""
    result, text = compare_workload(service, "trace_outside")
    first = result["first_difference"]
    assert result["verdict"] == "different" and result["root_cause"] is None
    assert moment(first) == (1, "conv1/forward", 0)
    assert first["kind"] == "infected" and not first["inputs_equal"]
    assert "Differs first  conv1/forward, step 1" in text
    assert "Root cause     none found" in text


def test_iterations(tmp_path):
    service = trace_service(tmp_path / "iterations").start()
    result, text = compare_workload(service, "trace_root", iterations=2)
    assert service.stop() == 0
    assert (result["probes_compared"], result["steps_compared"]) == (140, 10)
    assert [(root["iteration"], root["step"]) for root in result["roots"]] == [(0, 2)]
    assert result["records"]["roots"] == 2
    assert "root cause: gradient/conv2, step 2 of iteration 0:" in text
    assert "gradient/conv2, step 2 of iteration 0: 1 of them behind it" in text
    rows = dict(line.split() for line in text.splitlines() if "·" in line and len(line.split()) == 2)
    assert rows["gradient/conv2"] == "··R##··R##"
    assert "  iteration:step         0:0    1:4" in text.splitlines()


def test_many_steps_and_places_fit_a_terminal(service):
    result, text = compare_workload(service, "trace_long")
    assert (result["steps_compared"], result["places_different"]) == (130, 49)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    assert "  a column is up to 3 steps, and shows the worst of them" in lines
    rows = [line for line in lines if line.startswith("  …")]  # all but the loss
    assert len(rows) == 39 and "  and 9 more that differ" in lines
    assert "  and 1 in which every record agrees" in lines
    name, picture = rows[0].split()
    assert name.endswith("/a/name/that/is/not/short/3") and len(name) == 36
    assert picture == "·" * 46 + "R" + "#" * 13


def test_it_does_not_matter_which_is_a(service):
    a, b = run_pair(service, "trace_end")
    one, other = compare(service, a, b), compare(service, b, a)
    assert moment(one["root_cause"]) == moment(other["root_cause"]) == (4, "gradient/dense", 0)
    assert (one["root_cause"]["a"], one["records"]) == (other["root_cause"]["b"], other["records"])
    assert compare(service, a, a)["verdict"] == "equal"


@pytest.mark.flavour
def test_structure_is_not_guessed_over(service):
    result, text = compare_workload(service, "trace_parts")
    parts = result["structure_parts"]
    assert result["verdict"] == "different" and result["first_difference"] is None
    assert parts["position"] == result["probes_compared"] == 49
    assert (parts["a"]["probe"], parts["b"]["probe"]) == ("loss", "other")
    assert "A has loss, step 3" in text and "B has other, step 3" in text


def test_other_seeds_show_in_the_variables(service):
    result, text = compare_workload(service, "trace_seed")
    start = result["variables_at_start"]
    assert (start["equal"], start["compared"], start["different"]) == (False, 3, 3)
    assert result["root_cause"]["reads_nothing"]
    assert [moment(root)[1] for root in result["roots"]] == [
        f"variable/{layer}/before" for layer in ("conv1", "conv2", "dense")]
    assert result["data"]["equal"] and "differs before anything was computed" in result["reason"]
    assert "Variables      different: 3 of 3" in text


def test_data_in_another_order(service):
    result, text = compare_workload(service, "trace_data")
    assert result["root_cause"]["probe"] == "data/batch" and result["root_cause"]["step"] == 2
    assert result["data"]["reordered"] and result["data"]["different"] == 2
    assert result["variables_at_start"]["equal"]
    assert "the same ones in another" in text and "the data differ" in text.splitlines()[0]


def test_a_place_twice_in_a_step(service):
    result, text = compare_workload(service, "trace_twice")
    assert moment(result["root_cause"]) == (0, "cell", 1)
    assert "cell, step 0, time 2 in it" in text


def test_results_that_differ_where_nothing_is_probed(service):
    result, text = compare_workload(service, "trace_unprobed")
    assert result["verdict"] == "different" and result["first_difference"] is None
    assert result["result"]["equal"] is False
    assert "where there is no probe" in " ".join(text.split())


def test_environments(service):
    result, text = compare_workload(service, "trace_environment")
    assert result["verdict"] == "equal" and result["environment"]["equal"] is False
    assert result["environment"]["differences"] == [{"name": "driver", "a": "1.0", "b": "2.0"}]
    assert "driver: A 1.0, B 2.0" in text


@pytest.mark.flavour
def test_what_is_cut_is_not_comparable(service):
    result, text = compare_workload(service, "trace_crash")
    assert result["verdict"] == "not_comparable" and not result["equal"]
    assert "20 records that both have agree; B ends there: crashed" in result["reason"]
    assert result["structure_parts"]["b"] is None
    assert text.startswith("NOT COMPARABLE ")
    result, _ = compare_workload(service, "trace_dropped")
    assert result["verdict"] == "not_comparable" and "not kept" in result["reason"]


def test_runs_that_cannot_be_compared(service):
    result, text = compare_workload(service, "trace_none")
    assert result["verdict"] == "not_comparable" and result["reason"] == "both have no trace"
    assert result["traces"] == {"a": None, "b": None}
    assert result["result"]["equal"] is False and "Results        different" in text
    a, _ = run_pair(service, "trace_equal")
    b, _ = run_pair(service, "trace_none")
    result = compare(service, a, b)
    matches(result, SCHEMA)
    assert result["verdict"] == "not_comparable" and "different workloads" in result["reason"]
    assert result["case"]["differences"] == [
        {"name": "workload", "a": "trace_equal", "b": "trace_none"}]
    assert result["subject"] == {"equal": True, "a": "our models", "b": "our models"}


def test_bad_requests(service):
    a, b = run_pair(service, "trace_equal")
    unknown = "0" * 26
    for query, status, word in ((f"a={a['id']}", 422, "must be given"), ("", 422, "must be given"),
                                (f"a={a['id']}&b=7", 422, "'7' is not the id of a run"),
                                (f"a={a['id']}&b={unknown}", 404, unknown),
                                (f"a={a['id']}&b={b['id']}&c=1", 422, "there are: a b")):
        got, headers, problem = service.request("GET", f"/v1/compare?{query}")
        assert got == status and word in str(problem), (query, problem)
        assert headers["Content-Type"] == "application/problem+json"


def test_it_can_be_cached(service):
    a, b = run_pair(service, "trace_equal")
    path = f"/v1/compare?a={a['id']}&b={b['id']}"
    _, headers, _ = service.request("GET", path)
    status, _, _ = service.request("GET", path, headers={"If-None-Match": headers["ETag"]})
    assert status == 304
