"""GET /v1/operations: what two versions of a framework earned, operation by operation."""
import csv
import io
import json
import sys

import pytest

from service import ROOT, Service
from test_api import matches

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402


# What documents say of two eras of it.
TABLE = {
    "table": "tiny-documents", "title": "Tiny Frame", "source": "nobody",
    "recipes": [{"name": "UDA", "title": "call use_deterministic"}],
    "columns": [
        {"id": "one", "title": "Tiny Frame 1", "recipes": ["UDA"],
         "versions": {"framework": "Tiny Frame", "from": "1.0", "to": "1"}},
        {"id": "other", "title": "Tiny Frame, patched", "recipes": ["UDA"]}],
    "rows": [
        {"id": "refuses", "title": "tinyframe.refuses, on a CPU", "subject": "framework", "framework": "Tiny Frame",
         "operations": ["tiny_refuses"], "backend": "cpu", "cells": {"one": {"documented": "NS!", "note": "since ever"}}},
        {"id": "sums", "title": "tinyframe.total", "subject": "framework", "framework": "Tiny Frame",
         "operations": ["tiny_total", "tiny_scaled"], "cells": {"one": {"documented": "UDA"}, "other": {"documented": "DET"}}},
        {"id": "unknown", "title": "tinyframe.unknown", "subject": "framework", "framework": "Tiny Frame",
         "operations": ["tiny_nowhere"], "cells": {"one": {"documented": "NS"}}}]}


# Two rows of one operation: the code of one is within that of the other.
CODES = {
    "table": "tiny-codes", "title": "Tiny Frame", "source": "nobody",
    "recipes": [{"name": "UDA", "title": "call use_deterministic"}, {"name": "FIX", "title": "patch it"}],
    "columns": [{"id": "two", "title": "Tiny Frame 2", "recipes": ["UDA"],
                 "versions": {"framework": "Tiny Frame", "from": "2.0"}}],
    "rows": [{"id": name, "title": name, "subject": "framework", "framework": "Tiny Frame",
              "operations": ["tiny_scaled"], "cells": {"two": {"documented": code}}}
             for name, code in (("both", "FIX or UDA"), ("one", "UDA"), ("again", "UDA"))]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("operations")
    (folder / "documents.json").write_text(json.dumps(TABLE))
    (folder / "codes.json").write_text(json.dumps(CODES))
    stacks = [{"name": name, "worker": str(tiny.stack(folder / name, version, **how))} for name, version, how in (
        ("tiny-1", "1.0", {}), ("tiny-2", "2.0", {"start": "1e-9", "more": tiny.SCALED}))]
    stacks.append({**stacks[0], "name": "tiny-wide", "threads": 7})
    own = Service(folder, options=["--no-survey"], config={
        "stacks": stacks, "profiles": [str(folder / "documents.json"), str(folder / "codes.json")]})
    own.start()
    for path in "/v1/operations", "/v1/operations?framework=JAX", "/v1/operations?table=tiny-documents":
        assert own.get(path)["items"] == []
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


def test_what_varied_beside_it_is_named(service, rows):
    """And it stays without a code."""
    row = rows["tiny_scaled", "2.0"]
    assert (row["code"], row["state"]) == (None, "inconclusive")
    assert row["seen"] == "default inconclusive 1/3 (witnessed), deterministic inconclusive 1/3 (witnessed)"
    for variant in row["variants"]:
        assert variant["witness"] and variant["witness"] == service.get(variant["href"])["witness"]
    for row in rows["tiny_total", "2.0"], rows["tiny_refuses", "1.0"]:
        assert "witnessed" not in row["seen"] and all(variant["witness"] is None for variant in row["variants"])


def test_bits_are_compared_with_the_version_before(rows):
    first, second = rows["tiny_total", "1.0"], rows["tiny_total", "2.0"]
    assert first["bits"] is None and first["before"] is None
    assert second["bits"] == "other" and second["before"] == first["environment"]
    assert rows["tiny_refuses", "2.0"]["bits"] == "unknown"  # it varies in both
    assert rows["tiny_scaled", "2.0"]["bits"] == "new"


def test_a_version_with_changed_files_does_not_have_its_name_alone(tmp_path):
    program = tiny.stack(tmp_path / "changed", "1.0")
    with open(tmp_path / "changed" / "lib" / "tinyframe" / "__init__.py", "a") as source:
        source.write("_exact = constant\n\n\ndef constant(values):\n    return _exact(values) + 1.0\n")
    own = Service(tmp_path, options=["--no-survey"], config={"stacks": [{"name": "changed", "worker": str(program)}]})
    own.start()
    job = own.post_job(workloads=["tiny_constant"], runs=1, iterations=1)
    assert own.finish_job(job)["state"] == "finished"
    [row] = own.get("/v1/operations")["items"]
    assert row["version"] == "1.0, with changed files" and row["environment_title"].endswith(" · with changed files")
    assert "  1.0, with changed files  " in own.request("GET", "/v1/operations.txt")[2]
    assert own.stop() == 0


def test_one_framework(service, rows):
    for name in "Tiny Frame", "tiny frame":
        said = service.get("/v1/operations?framework=" + name.replace(" ", "%20"))["items"]
        assert len(said) == len(rows)


@pytest.mark.parametrize("query, kind, parameter, words", [
    ("framework=Tiny%20Fame", "unknown-framework", "framework", "did you mean 'Tiny Frame'?"),
    ("framework=JAX", "unknown-framework", "framework", "no operation of 'JAX' was measured here"),
    ("framework=%3Cscript%3E%25n", "unknown-framework", "framework", "<script>%n"),
    ("framework=", "invalid-parameter", "framework", "1 to 63 bytes"),
    ("framework=" + "x" * 64, "invalid-parameter", "framework", "1 to 63 bytes"),
    ("table=tiny-document", "unknown-table", "table", "did you mean 'tiny-documents'?"),
    ("table=", "unknown-table", "table", "there is no table ''"),
    ("version=1.0", "unknown-parameter", "version", "framework"),
    ("limit=1", "unknown-parameter", "limit", "framework"),
])
def test_what_is_refused(service, rows, query, kind, parameter, words):
    status, _, problem = service.request("GET", f"/v1/operations?{query}")
    assert status == 422 and problem["type"] == f"/problems/{kind}", problem
    [error] = problem["errors"]
    assert error["parameter"] == parameter and words in error["detail"], problem


def test_one_run_is_no_comparison(service, rows):
    """What varies may look in one run as if it did not: then its bits changed from version to version."""
    for name in "tiny-1", "tiny-2":
        job = service.post_job(workloads=["tiny_total"], variants=["default"], sizes=["small"], seed="77", runs=1,
                               iterations=1, stacks=[name])
        assert service.finish_job(job)["state"] == "finished"
    row = {(row["operation"], row["version"]): row for row in service.get("/v1/operations")["items"]}
    assert row["tiny_refuses", "2.0"]["bits"] == "unknown" and row["tiny_total", "2.0"]["bits"] == "other"


def test_what_documents_say_is_of_the_era_and_of_the_device(rows):
    [said] = rows["tiny_total", "1.0"]["documented"]
    assert (said["table"], said["row"], said["column"], said["code"]) == ("tiny-documents", "sums", "one", "UDA")
    assert said["backend"] == "cuda" and said["applies"] is False  # it ran on a CPU
    assert rows["tiny_total", "1.0"]["documents"] == "UDA (Tiny Frame 1, of GPUs)"
    [said] = rows["tiny_refuses", "1.0"]["documented"]
    assert said["applies"] is True and said["note"] == "since ever"
    assert rows["tiny_refuses", "1.0"]["documents"] == "NS! (Tiny Frame 1)"
    for operation in "tiny_total", "tiny_refuses":  # no column is of version 2
        [said] = rows[operation, "2.0"]["documented"]
        assert (said["column"], said["code"]) == (None, None)
    assert rows["tiny_total", "2.0"]["documents"] == "no code (no column, of GPUs)"
    assert {row["backend"] for row in rows.values()} == {"cpu"} and all(row["model"] for row in rows.values())
    claims = {variant["variant"]: variant["claim"] for variant in rows["tiny_total", "1.0"]["variants"]}
    assert claims == {"default": None, "deterministic": "deterministic"}


def test_what_documents_say_is_said_once_and_whole(rows):
    said = rows["tiny_scaled", "2.0"]["documents"].split("; ")
    assert sorted(said) == ["FIX or UDA (Tiny Frame 2, of GPUs)", "UDA (Tiny Frame 2, of GPUs)",
                            "no code (no column, of GPUs)"]


def test_the_lines_of_a_table(service, rows):
    """A line for each of its sources, operation and version, in its order; nothing of others."""
    listed = service.get("/v1/operations?table=tiny-documents")["items"]
    assert [(row["documented"][0]["row"], row["operation"], row["version"]) for row in listed] == [
        ("refuses", "tiny_refuses", "1.0"), ("refuses", "tiny_refuses", "2.0"), ("sums", "tiny_scaled", "2.0"),
        ("sums", "tiny_total", "1.0"), ("sums", "tiny_total", "2.0")]
    assert all(len(row["documented"]) == 1 for row in listed)
    for row in listed:
        assert {**row, "documented": None, "documents": None, "source": None} == \
            {**rows[row["operation"], row["version"]], "documented": None, "documents": None}
    assert service.get("/v1/operations?table=pytorch")["items"] == []


def test_the_table_says_where_they_are(service, rows):
    environment = rows["tiny_total", "1.0"]["environment"]
    matrix = service.get(f"/v1/matrix?table=tiny-documents&environment={environment}")
    for row in matrix["rows"]:
        assert row["operations"] == [each for each in TABLE["rows"] if each["id"] == row["id"]][0]["operations"]
        for cell in row["cells"]:
            assert cell["code"] is None and cell["agrees"] is None, "no measurement is under the title of an era"
            assert cell["state"] == "absent" or "/v1/operations?table=tiny-documents" in cell["reason"]
    [table] = [each for each in service.get("/v1/profiles")["items"] if each["id"] == "tiny-documents"]
    assert [column["versions"] for column in table["columns"]] == [
        {"framework": "Tiny Frame", "from": "1.0", "to": "1"}, None]


def test_all_formats_and_the_schema(service, rows):
    schemas = service.get("/openapi.json")["components"]["schemas"]
    for row in rows.values():
        matches(row, schemas["Operation"])
    assert service.get("/v1/operations")["environments_left_out"] == 0
    header, *lines = service.get("/v1/operations.txt").splitlines()
    assert header.split()[:4] == ["OPERATION", "FRAMEWORK", "VERSION", "CODE"] and len(lines) == len(rows)
    listed = list(csv.DictReader(io.StringIO(service.get("/v1/operations.csv?table=tiny-documents"))))
    assert list(listed[0]) == ["operation", "framework", "version", "code", "state", "seen", "bits", "backend",
                               "threads", "environment", "source", "documents", "reason"]
    assert (listed[0]["source"], listed[0]["documents"]) == ("tinyframe.refuses, on a CPU", "NS! (Tiny Frame 1)")


def test_another_number_of_threads_is_not_compared(service):
    """And stands beside, by its own number."""
    job = service.post_job(workloads=["tiny_total"], runs=2, iterations=2, stacks=["tiny-wide"], shared_import=True)
    assert service.finish_job(job)["state"] == "finished"
    [row] = [row for row in service.get("/v1/operations")["items"] if row["threads"] == 7]
    assert (row["operation"], row["version"], row["before"], row["bits"]) == ("tiny_total", "1.0", None, None)
