"""The views of digest classes: cases by environment and by device."""
import csv
import io

import pytest

from service import BUILD, SELFTEST_WORKER, Service
from test_api import matches

WORKER = BUILD / "reprod-worker"
ONE = {"name": "one", "worker": str(WORKER), "threads": 1}
TWO = {"name": "two", "worker": str(WORKER), "threads": 2}
CLASSES = {"$ref": "#/components/schemas/Classes"}


@pytest.fixture(scope="module")
def stacked(tmp_path_factory):
    """Two environments: reduce_sum in both, softmax_xent in the newer one only."""
    shared = Service(tmp_path_factory.mktemp("environments"), options=["--no-survey"],
                     config={"stacks": [ONE, TWO]})
    shared.start()
    for stack, workloads in (["one"], ["reduce_sum"]), (["two"], ["reduce_sum", "bias_add_bwd"]):
        job = shared.post_job(workloads=workloads, stacks=stack, runs=3, iterations=2)
        assert shared.finish_job(job)["state"] == "finished"
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def rows_of(view):
    return {(row["workload"], row["variant"]): row for group in view["groups"] for row in group["rows"]}


def test_columns_are_environments_newest_first(stacked):
    view = stacked.get("/v1/matrix?view=environments")
    matches(view, CLASSES)
    assert [column["title"] for column in view["columns"]] == ["threads 2", "threads 1"]
    assert view["facts_that_differ"] == ["threads"] and "worker_build" in view["facts_that_are_shared"]
    assert view["columns"][0]["drift"] == \
        f"/v1/drift?from={view['columns'][1]['id']}&to={view['columns'][0]['id']}"
    assert view["columns"][1]["drift"] is None and view["next"] is None


def test_letters_are_the_digests_that_the_runs_have(stacked):
    view = stacked.get("/v1/matrix?view=environments")
    columns = [column["id"] for column in view["columns"]]
    runs = stacked.items("/v1/runs")
    for row in rows_of(view).values():
        for environment, cell in zip(columns, row["cells"]):
            own = [run for run in runs if run["environment"] == environment
                   and (run["workload"], run["variant"]) == (row["workload"], row["variant"])]
            assert (cell is None) == (not own)
            if own and all(run["distinct_digests"] == 1 for run in own) and \
                    len({run["digest"] for run in own}) == 1:
                assert cell["digest"] == own[0]["digest"] and cell["class"]
            elif own:
                assert cell["class"] is None and cell["digest"] is None and cell["mark"] == "≈"
        letters = {cell["class"]: cell["digest"] for cell in row["cells"] if cell and cell["class"]}
        assert len(set(letters.values())) == len(letters) == row["classes"]


def test_text_says_the_same(stacked):
    text = stacked.get("/v1/matrix.txt?view=environments")
    assert "   1 threads 2" in text and "   2 threads 1" in text
    assert max(map(len, text.splitlines())) <= 118
    [line] = [line for line in text.splitlines() if line.startswith("  unordered") and "≈" in line][:1]
    assert line.split()[-1] in "≈·"
    only = stacked.get("/v1/matrix.txt?view=environments&workload=bias_add_bwd")
    assert "reduce_sum" not in only and "bias_add_bwd" in only and "·" in only


def test_csv_has_a_line_for_each_cell(stacked):
    table = list(csv.DictReader(io.StringIO(stacked.get("/v1/matrix.csv?view=environments"))))
    view = stacked.get("/v1/matrix?view=environments")
    assert len(table) == sum(cell is not None for row in rows_of(view).values() for cell in row["cells"])
    assert {line["verdict"] for line in table} >= {"varies", "reproducible"}


def test_only_rows_that_differ(stacked):
    every = stacked.get("/v1/matrix?view=environments")
    some = stacked.get("/v1/matrix?view=environments&rows=differing")
    assert rows_of(some) == {key: row for key, row in rows_of(every).items() if row["differs"]}


def test_pages_of_columns_keep_their_letters(stacked):
    every = stacked.get("/v1/matrix?view=environments")
    first = stacked.get("/v1/matrix?view=environments&limit=1")
    second = stacked.get(f"/v1/matrix?view=environments&limit=1&cursor={first['next']}")
    assert [column["id"] for page in (first, second) for column in page["columns"]] == \
        [column["id"] for column in every["columns"]]
    assert second["next"] is None and first["column_count"] == second["column_count"] == 2
    for key, row in rows_of(every).items():
        assert row["cells"] == rows_of(first)[key]["cells"] + rows_of(second)[key]["cells"]


def test_devices_of_an_environment(stacked):
    newest = stacked.get("/v1/matrix?view=environments")["columns"][0]["id"]
    view = stacked.get(f"/v1/matrix?view=devices&environment={newest}")
    matches(view, CLASSES)
    [column] = view["columns"]
    assert column["id"] == stacked.get("/v1/devices")["items"][0]["id"] and column["devices"] == 1
    marks = {key: row["cells"][0]["mark"] for key, row in rows_of(view).items()}
    assert marks["reduce_sum", "ordered"] == "A" and marks["reduce_sum", "unordered"] == "≈"
    assert "cases by device" in stacked.get("/v1/matrix.txt?view=devices")


@pytest.mark.parametrize("query, kind, words", [
    ("view=environmnts", "unknown-view", "environments"),
    ("view=environments&rows=differring", "invalid-parameter", "differing"),
    ("view=environments&workload=reduce_sun", "unknown-workload", "did you mean 'reduce_sum'?"),
    ("view=environments&table=documents-2020", "invalid-parameter", "not a parameter of this view"),
    ("view=environments&cursor=x", "invalid-parameter", "cursor"),
    ("view=environments&limit=0", "invalid-parameter", "limit"),
    ("rows=all", "invalid-parameter", "not a parameter of this view"),
    ("view=devices&environment=" + "0" * 32, "unknown-environment", "there is no environment"),
])
def test_mistakes_are_explained(stacked, query, kind, words):
    status, _, problem = stacked.request("GET", f"/v1/matrix?{query}")
    assert status == 422 and problem["type"] == f"/problems/{kind}", problem
    assert words in str(problem)


def test_nothing_measured_is_no_column(start_service):
    service = start_service(worker=SELFTEST_WORKER)
    for view in "environments", "devices":
        answer = service.get(f"/v1/matrix?view={view}")
        assert answer["columns"] == [] and answer["groups"] == []
        assert "Nothing has been run yet." in service.get(f"/v1/matrix.txt?view={view}")
