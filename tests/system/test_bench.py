"""make bench runs and its report is complete.  How fast anything was is no test's business."""
import json
import math
import subprocess
import sys

import pytest

from service import BUILD, ROOT

BENCH = ROOT / "tests" / "bench" / "bench.py"
BENCHMARKS = {"ingest", "start", "matrix", "turnaround", "post", "compare", "events", "instruments",
              "probes", "determinism", "fresh-process", "reads", "stalled"}


def run(*arguments):
    return subprocess.run([sys.executable, BENCH, *arguments], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "REPROD_BUILD": str(BUILD)}, check=False)


@pytest.mark.long
def test_the_short_form_is_complete(tmp_path):
    done = run("--quick", "--json", tmp_path / "report.json")
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert {row["benchmark"] for row in report["rows"]} == BENCHMARKS
    for row in report["rows"]:
        assert row["benchmark"] in done.stdout and row["what"] in done.stdout
        assert row["met"] is None, "the short form judges no target"
        if "not_measured" in row:
            assert row["not_measured"] == "quick"
            continue
        assert math.isfinite(row["median"]) and row["count"] > 0
        assert row["quartiles"][0] <= row["median"] <= row["quartiles"][1]
        if row["peer"]:
            assert row["peer"]["median"] > 0 and row["ratio"]["median"] > 0
    assert any(row["peer"] for row in report["rows"]) and any(row["target"] for row in report["rows"])


def test_a_benchmark_that_there_is_not():
    done = run("--quick", "ingset")
    assert done.returncode == 2 and "there is no ingset" in done.stderr
