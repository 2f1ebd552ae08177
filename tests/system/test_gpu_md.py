"""GPU.md: written from reports, true to them, and with explanations that outlive them."""
import copy
import json
import subprocess
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import documented  # noqa: E402
import make_gpu_md as gpu_md  # noqa: E402

SURVEY = {"size": "large", "iterations": 5, "runs": 5, "completed": 5, "failures": [], "not_run": [],
          "unsupported": None, "digests": ["a" * 32], "claim": None, "algorithms": ["64 row slots, fixed tree"],
          "input_digests": ["1"], "environments": ["e"]}


def record(workload, variant, digests=1, outcome="passed", **changes):
    return {"workload": workload, "version": 1, "variant": variant, "control": variant == "unordered",
            "no_control": None, "algorithm": "tree", "claim": None, "subject": "model", "subject_name": None, "outcome": outcome, "causes": [],
            "findings": [], "notes": [], "check": {"outcome": "passed", "cause": None, "max_error_to_bound": 0.25},
            "inputs": "equal", "bits": "equal", "large_bits": None, "circumstances": "equal", "sanitizers": {},
            "timing": None, "survey": {**SURVEY, "digests": [f"{i:032x}" for i in range(digests)]}, **changes}


def report(*records, date="2026-11-22T10:00:00.000Z", **changes):
    return {"v": 1, "rehearsal": False, "date": date, "seconds": 400, "deadline_seconds": 470,
            "gpu": "NVIDIA Pretend 9000", "device": "GPU-1", "driver": "580.1", "worker_build": "b" * 40,
            "versions": {"driver": "580.1", "cudnn": "9.9"}, "attributes": {}, "problems": {}, "stages": [],
            "timings": {}, "variants": list(records), "failures": [], "findings": [], "not_run": [], "failed": [],
            "counts": {"passed": len(records)}, **changes}


def page(*found, explanations="", **more):
    return gpu_md.page(list(found), documented.read_tables(), explanations, **more)


def section(text, name):
    [found] = [part for part in text.split("\n### ") if f"`{name}`" in part.splitlines()[0]]
    return found


def test_the_committed_page_is_that_of_the_committed_reports():
    done = subprocess.run([sys.executable, ROOT / "tests" / "gpu" / "make_gpu_md.py"], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "GPU.md").read_text() == done.stdout, "run tests/gpu/make_gpu_md.py > GPU.md"


def test_what_ordered_takes_against_the_library_is_said_where_it_was_measured():
    spread = {"median": 1.5, "least": 1.25, "most": 2, "count": 3}
    measured = record("conv_dgrad", "ordered", library_timing={"size": "large", "baseline": "algo_1", "ratio": spread,
                                                               "ms": None, "baseline_ms": None})
    text = section(page(report(measured, record("conv_dgrad", "algo_1"))), "conv_dgrad")
    assert "- ordered: 1.5 (1.25 to 2) times as long as the library's algo_1" in text
    assert "times as long" not in page(report(record("conv_dgrad", "ordered")))
    assert ("conv_dgrad", "ordered ÷ algo_1", "large", "1.5 (1.25 to 2)", "–", "–") \
        in gpu_md.reports.timing_rows(report(measured))


def test_ptx_on_a_cpu_is_a_level_of_its_own():
    """It is written below what a GPU showed, and says of itself that it is none."""
    one = {"workload": "w", "version": 1, "variant": "ordered", "control": False, "outcome": "passed", "schedules": 3,
           "sizes": ["small"], "digests": {"small": 1}, "bits": "equal", "error": 0.5}
    other = {**one, "variant": "unordered", "control": True, "outcome": "failed", "bits": None, "digests": {"small": None}}
    results = {"v": 1, "date": "2026-11-26T00:00:00.000Z", "toolkit": "release 13.0", "target": "sm_75",
               "variants": [one, other]}
    text = page(ptx=results)
    assert "**No GPU has been seen yet.**" in text and "A level of its own, **no GPU**" in text
    assert "| w | ordered | 1 | passed | small | 1 | 0.5 | equal |" in text
    assert "| w | unordered (control) | 1 | failed | small | – | 0.5 | not promised |" in text
    assert "1 of 2 variants passed at small" in text and "1 of 1 that promise the CPU's bits" in text
    assert "PTX" not in page()


def test_without_a_report_it_claims_nothing():
    text = page()
    assert "**No GPU has been seen yet.**" in text
    for row in documented.rows(documented.read_tables()):
        part = section(text, row)
        assert "Observed: nothing yet. Expected: " in part and "|---|" not in part
    assert "`ordered` is reproducible" in section(text, "conv_wgrad")
    assert "passed" not in text


def test_kernels_of_another_shape_are_named():
    """tests/gpu/reshaped.json: until a report has them as they are."""
    old, new = (report(record("cumsum", "ordered"), record("gather_bwd", "sorted"), date=date)
                for date in ("2026-11-26T01:20:00.000Z", "2026-11-27T00:00:00.000Z"))
    assert "No GPU has run the kernels of `cumsum` as they are now" in page(old)
    assert "as they are now" not in page(new) and "as they are now" not in page(old, new)


def test_a_report_row_by_row():
    text = page(report(record("bias_add_bwd", "unordered", 25), record("bias_add_bwd", "ordered"),
                       record("bias_add_bwd", "patched", 2, "failed", causes=["varied: 2 digests"]),
                       record("atomics", "add_int")))
    assert "NVIDIA Pretend 9000, driver 580.1, cudnn 9.9: 2026-11-22" in text and "No GPU" not in text
    part = section(text, "bias_add_bwd")
    assert "| unordered (control) | model | varies | passed | 25 digests in 5 runs of 5 | yes | large |" in part
    assert ("| ordered | model | reproducible | passed | 1 digest in 5 runs of 5: a run differs with less than 53 % "
            "| yes | large | 0.25 | equal | equal |") in part
    assert "| patched | model | reproducible | failed | 2 digests in 5 runs of 5 | NO |" in part
    assert "- patched: varied: 2 digests" in part and gpu_md.NOBODY in part
    assert "Observed: nothing yet" in section(text, "conv_wgrad")
    assert "| add_int | model | – | passed |" in section(text, "atomics")


@pytest.mark.parametrize("digests, outcome, found", [
    (1, "passed", "yes"), (2, "failed", "NO"), (1, "failed", "–"), (1, "inconclusive", "–"),
    (1, "unsupported", "–"), (1, "not_run", "–"),
])
def test_what_did_not_pass_is_not_as_documented(digests, outcome, found):
    assert gpu_md.as_expected({True}, record("w", "ordered", digests, outcome)) == found


def test_a_control_that_did_not_vary_is_not_as_documented():
    assert gpu_md.as_expected({False}, record("w", "unordered", 1, "failed")) == "NO"
    assert gpu_md.as_expected({False, True}, record("w", "unordered", 9)) == "–"
    assert gpu_md.as_expected(None, record("w", "unordered", 9)) == "–"
    lost = record("w", "unordered", 0, "failed", survey={**SURVEY, "completed": 0, "digests": []})
    assert gpu_md.as_expected({False}, lost) == "–" and gpu_md.observed(lost) == "–"


def test_the_newest_report_that_judged_a_variant_counts():
    old = report(record("bias_add_bwd", "ordered", 3, "failed"), record("bias_add_bwd", "patched"))
    new = report(record("bias_add_bwd", "ordered"), record("bias_add_bwd", "patched", outcome="not_run"),
                 date="2026-11-23T10:00:00.000Z")
    records = gpu_md.newest([new, old])
    assert records["bias_add_bwd", "ordered"][0]["outcome"] == "passed"
    assert records["bias_add_bwd", "patched"][0]["outcome"] == "passed"
    assert page(new, old).index("2026-11-23") < page(new, old).index("2026-11-22")


def test_explanations_survive_another_report():
    explanations = "# Explanations\n\nNot taken over.\n\n## bias_add_bwd\n\nAtomics add as they come.\n\n- and so on\n"
    for found in ([], [report(record("bias_add_bwd", "unordered", 25))], [report(record("bias_add_bwd", "unordered"))]):
        part = section(page(*found, explanations=explanations), "bias_add_bwd")
        assert "**Explanation.** Atomics add as they come.\n\n- and so on" in part
        assert "Not taken over" not in part


@pytest.mark.parametrize("text, words", [
    ("## bias_add_bwt\nx", "there is no workload 'bias_add_bwt'; did you mean 'bias_add_bwd'?"),
    ("## conv_wgrad\nx\n## conv_wgrad\ny", "'conv_wgrad' is explained twice"),
])
def test_a_heading_that_is_no_workload_is_a_mistake(text, words):
    with pytest.raises(gpu_md.Refused) as refused:
        page(explanations=text)
    assert words in str(refused.value)


def test_a_rehearsal_is_refused_or_says_so_everywhere(tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(report(record("bias_add_bwd", "ordered"), rehearsal=True)))
    command = [sys.executable, ROOT / "tests" / "gpu" / "make_gpu_md.py", tmp_path / "report.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "is a rehearsal, which shows nothing about a GPU" in done.stderr
    done = subprocess.run([*command, "--rehearsal"], capture_output=True, text=True, timeout=60)
    headings = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert len(headings) > 20 and all("REHEARSAL on a simulator" in line for line in headings)
    (tmp_path / "report.json").write_text("[]")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "not a report of this repository" in done.stderr


def test_what_a_code_says_of_variants():
    cell = {"model": {"none": "unordered", "TCD": "unordered", "TDP": "patched"}, "documented": "TDP"}
    assert documented.expected_of(cell, "model") == {"unordered": False, "patched": True}
    for code, found in (("TCD or TDP", {"a": False, "b": True, "c": True}), ("NS", {"a": False, "b": False, "c": False}),
                        ("DET", {"a": True}), ("TDO ?", {}), (None, {})):
        assert documented.expected_of({"model": {"none": "a", "TCD": "b", "TDP": "c"}, "documented": code},
                                      "model") == found
    assert documented.expected_of({"model": {"none": "a", "UDA": "raises"}, "documented": "NS!"}, "model") == {"a": False}
    assert documented.expected_of({"library": {"none": "algo_0", "TCD": "algo_1"}, "documented": "TCD"}, "library") == {
        "algo_0": False, "algo_1": True}
    assert documented.expected_of({"model": {"none": "a", "TCD": "b"}, "documented": "TCD"}, "library") == {}


def test_algorithms_of_cudnn_have_a_table_of_their_own():
    def algorithm(name, **changes):
        survey = {**SURVEY, "dtype": "float32", "check": None, "digests": ["a" * 32]}
        return record("cudnn_conv_wgrad", name, survey=survey, cases=[], claim="deterministic", **changes)

    text = page(report(record("bias_add_bwd", "ordered"), algorithm("algo_1"), algorithm("algo_3")),
                explanations="## cudnn_conv_wgrad\nBoth are one.\n")
    part = text[text.index("## Algorithms of cuDNN's convolutions"):]
    assert "| cudnn_conv_wgrad | algo_3 | float32 | large | deterministic | 1 in 5 × 5 | A | no |" in part
    assert "**Explanation of `cudnn_conv_wgrad`.** Both are one." in part
    assert "### `cudnn_conv_wgrad`" not in text


def test_what_a_campaign_measured():
    spread = {"median": 700.0, "least": 600.0, "most": 900.0, "count": 9}
    summary = {"rehearsal": False, "date": "2026-11-22T11:00:00.000Z", "gpu": "NVIDIA Pretend 9000",
               "stacks": [{"name": "cudnn-9.9", "versions": {"cudnn": "9.9", "driver": "580.1"}}],
               "findings": ["conv_wgrad algo_1 (small): claims deterministic, seen to vary, 2 digests in 3 runs"],
               "figures": {"agreement": {"cuDNN": {"equal": 3, "different": []}}, "turnaround_ms": spread}}
    text = page(report(record("bias_add_bwd", "ordered")), campaigns=[copy.deepcopy(summary)])
    part = text[text.index("## Measured by the service, 2026-11-22, NVIDIA Pretend 9000"):]
    for words in ("- stack cudnn-9.9: cudnn 9.9, driver 580.1", "- of cuDNN, 3 variants have the same bits with every stack",
                  "- from the start of a run to that of the next: 700 ms (600 to 900), 9 times", "claims deterministic"):
        assert words in part
