"""GET /v1/operations: what two versions of a framework earned, operation by operation."""
import sys

import pytest

from service import ROOT, Service
from test_api import matches

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operations")
    stacks = [{"name": name, "worker": str(tiny.stack(folder / name, version, **how))} for name, version, how in (
        ("tiny-1", "1.0", {}), ("tiny-2", "2.0", {"start": "1e-9", "more": tiny.SCALED}))]
    own = Service(folder, options=["--no-survey"], config={"stacks": stacks})
    own.start()
    assert own.get("/v1/operations")["items"] == []
    for name in "tiny-1", "tiny-2":  # one after the other: the second is compared with the first
        known = ["total", "refuses", "scaled"] if name == "tiny-2" else ["total", "refuses"]
        job = own.post_job(workloads=[f"tiny_{operation}" for operation in known], runs=3, iterations=2,
                           stacks=[name], shared_import=True)
        assert own.finish_job(job)["state"] == "finished"
    yield own
    assert own.stop() == 0


@pytest.fixture(scope="module")
def rows(service):
    return {(row["operation"], row["version"]): row for row in service.get("/v1/operations")["items"]}


def test_codes_name_the_switch_that_cured(rows):
    for version in "1.0", "2.0":
        row = rows["tiny_total", version]
        assert (row["code"], row["state"], row["reason"]) == ("deterministic", "measured", None), row
        assert [variant["variant"] for variant in row["variants"]] == ["default", "deterministic"]
        assert row["seen"].startswith("default varies ") and row["seen"].endswith(", deterministic reproducible 1/3")


def test_what_raises_says_so_in_its_own_words(rows):
    row = rows["tiny_refuses", "1.0"]
    assert (row["code"], row["state"]) == (None, "unsupported")
    [raises] = [variant for variant in row["variants"] if variant["variant"] == "deterministic"]
    assert raises["verdict"] == "unsupported"
    assert raises["reason"] == "refuses has no deterministic implementation"


def test_bits_are_compared_with_the_version_before(rows):
    first, second = rows["tiny_total", "1.0"], rows["tiny_total", "2.0"]
    assert first["bits"] is None and first["before"] is None
    assert second["bits"] == "other" and second["before"] == first["environment"]
    assert rows["tiny_refuses", "2.0"]["bits"] == "unknown"  # it varies in both
    assert rows["tiny_scaled", "2.0"]["bits"] == "new"


def test_one_framework(service, rows):
    for name in "Tiny Frame", "tiny frame":
        said = service.get("/v1/operations?framework=" + name.replace(" ", "%20"))["items"]
        assert len(said) == len(rows)
    assert service.get("/v1/operations?framework=JAX")["items"] == []


def test_all_formats_and_the_schema(service, rows):
    schema = service.get("/openapi.json")["components"]["schemas"]["Operation"]
    for row in rows.values():
        matches(row, schema)
    header, *lines = service.get("/v1/operations.txt").splitlines()
    assert header.split()[:4] == ["OPERATION", "FRAMEWORK", "VERSION", "CODE"] and len(lines) == len(rows)
    assert service.get("/v1/operations.csv").splitlines()[0] == \
        "operation,framework,version,code,state,seen,bits,reason"
