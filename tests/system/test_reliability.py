"""RELIABILITY.md says what the committed results say, and no result that failed is rendered as a success."""
import json
import pathlib
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests/reliability"))
import make_reliability  # noqa: E402


def test_the_document_is_what_the_results_render_to():
    assert (ROOT / "RELIABILITY.md").read_text() == make_reliability.render(), "make reliability"


@pytest.mark.parametrize("name", [path.stem for path in (ROOT / "tests/reliability/results").glob("*.json")])
def test_every_result_is_rendered_and_says_where_it_is_from(name):
    assert name.split("-")[0] in dict(make_reliability.SECTIONS)
    result = json.loads((ROOT / f"tests/reliability/results/{name}.json").read_text())
    assert all(result[key] for key in ("date", "commit", "machine", "command"))
    assert result["command"].startswith("make ") and result["command"] in make_reliability.render()


@pytest.mark.parametrize("name, fail", [
    ("kills", lambda result: result["failures"].append("seed 1: lost")),
    ("outages", lambda result: result["failures"].append("seed 1, chapter 0")),
    ("faults", lambda result: result["failures"].append({"fault": "serve write 1", "at": [], "failure": "lost"})),
    ("tests", lambda result: result["files"][0].update(failed=1)),
    ("fuzz", lambda result: result["targets"][0].update(passed=False)),
    ("large", lambda result: result["failures"].append("0 cells were recomputed, not 2000")),
])
def test_what_failed_is_said(tmp_path, name, fail):
    path = pathlib.Path(ROOT / f"tests/reliability/results/{name}.json")
    result = json.loads(path.read_text())
    fail(result)
    (tmp_path / path.name).write_text(json.dumps(result))
    assert "failed**" in make_reliability.render(tmp_path)
