"""PyTorch's table has what its documentation lists, in every version, and nothing else."""
import json

import pytest

from service import ROOT

TABLE = json.loads((ROOT / "workloads" / "profiles" / "pytorch.json").read_text())
LISTS = json.loads((ROOT / "tests" / "fixtures" / "pytorch-lists.json").read_text())
VERSIONS = [tag[1:].rpartition(".")[0] for tag in LISTS["tags"]]
ROWS = {row.get("id", row.get("workload")): row for row in TABLE["rows"]}
# What the lists do not have: what was before them, and what is said elsewhere.
BEFORE = "pytorch-1.6"
ELSEWHERE = {"conv_autotune", "max_pool_cudnn"}
COLUMNS = [column["id"] for column in TABLE["columns"] if column["id"] != BEFORE]


def column_of(version):
    """The last column that begins with VERSION or before it."""
    started = [column for column in COLUMNS
               if VERSIONS.index(column.removeprefix("pytorch-")) <= VERSIONS.index(version)]
    return started[-1]


def listed(operation, version):
    last = None
    for since, what in operation["since"].items():
        if VERSIONS.index(since) <= VERSIONS.index(version):
            last = what
    return last


def code(what, version):
    call = "SD" if version == "1.7" else "UDA"
    return {"deterministic": call, "raises": "NS!"}.get(what, f"{call}+CWC")


def expected(version):
    """{row: codes} of the lists of VERSION"""
    found = {}
    for operation in LISTS["operations"]:
        what = listed(operation, version)
        if what:
            found.setdefault(operation["row"], set()).add(code(what, version))
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_operation_of_both_lists(version):
    column = column_of(version)
    said = {name: {row["cells"][column]["documented"]} for name, row in ROWS.items()
            if column in row["cells"] and name not in ELSEWHERE}
    assert said == expected(version)


def test_a_column_for_each_version_at_which_a_list_changed():
    changed = [version for index, version in enumerate(VERSIONS)
               if index == 0 or expected(version) != expected(VERSIONS[index - 1])
               or any(version in operation["since"] for operation in LISTS["operations"])]
    assert [f"pytorch-{version}" for version in changed] == COLUMNS


def test_what_no_workload_stands_for_is_only_documented(start_service):
    service = start_service()
    matrix = service.get("/v1/matrix?table=pytorch")
    bare = [row for row in matrix["rows"] if row["workload"] is None]
    assert {row["id"] for row in bare} == {name for name, row in ROWS.items() if "workload" not in row}
    for row in bare:
        for cell in row["cells"]:
            assert cell["state"] == ("no_model" if cell["documented"] else "absent")
            assert (cell["code"], cell["agrees"], cell["choices"]) == (None, None, [])
    counted = sum(cell["state"] not in ("absent", "no_model") for row in matrix["rows"] for cell in row["cells"])
    assert sum(count["cells"] for count in matrix["counts"]) == counted
    text = service.request("GET", "/v1/matrix.txt?table=pytorch")[2]
    assert "\ntorch.histc\n  no model  " in text and "[NS!]" in text
    assert "\n  [ ]  " in text and all(len(line) <= 120 for line in text.splitlines())
    rows = [line.split(",") for line in service.request("GET", "/v1/matrix.csv?table=pytorch")[2].splitlines()]
    assert [line[2] for line in rows if line[3] == "torch.histc"] == [""] * len(TABLE["columns"])


def test_no_pooling_of_cudnn_stands_for_pytorchs():
    """PyTorch's source computes pooling by kernels of its own; the rows name it."""
    pooling = [row for row in TABLE["rows"] if "pool" in row["title"].lower()]
    assert len(pooling) >= 4
    for row in pooling:
        assert "library" not in row and "workload" not in row, row["title"]
    assert not [row for row in TABLE["rows"] if row.get("workload") == "maxpool_bwd"]
