"""A whole check of an H100 with cuDNN, cuBLAS and NCCL, as documents describe them, judged: nothing
has failed.  And one wrong record for each way to fail."""
import json
import os
import subprocess
import sys
import types

import pytest

from service import BUILD, ROOT

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import algorithms  # noqa: E402
import circumstances  # noqa: E402
import conclude  # noqa: E402
import report as reports  # noqa: E402
import stages  # noqa: E402
from test_gpu_judge import SAID, recorded  # noqa: E402

SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"  # its catalogue is that of the CUDA worker
pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
# As the documents of the libraries have it, of variants without a claim.
VARIES = {("matmul_batched", "cublas_streams"), ("matmul_batched", "cublas_atomics"),
          ("ring_allreduce", "nccl_ring_fused"), ("ring_allreduce", "nccl_tree_fused"),
          ("conv_autotune", "filtered")}
# An H100 may always find the same one the fastest, and one GPU has no second rank.
STEADY_CHOICES = {("conv_autotune", "autotune"), ("inference_autotune", "autotune"),
                  ("algorithm_cache", "autotune"), ("conv_dgrad", "autotune"), ("conv_wgrad", "autotune")}
ONLY_BY_CHOICE = ("conv_autotune", "inference_autotune", "algorithm_cache")  # no other control
UNSUPPORTED = {("ring_allreduce", "nccl_ring_two_ranks"): "NCCL needs two GPUs, 1 is visible",
               ("cudnn_conv_fwd", "algo_3_direct"): "cuDNN 91400: NOT_SUPPORTED",
               ("cudnn_conv_wgrad", "algo_4_winograd"): "cuDNN 91400: NOT_SUPPORTED"}


def catalogue(worker):
    said = subprocess.run([worker, "--catalogue"], capture_output=True, check=True, timeout=60)
    return {entry["workload"]: entry for entry in map(json.loads, said.stdout.splitlines())}


@pytest.fixture(scope="module")
def catalogues():
    return catalogue(SIMULATOR), catalogue(BUILD / "reprod-worker")


def survey(digests, claim, algorithm, **changes):
    return {"size": "large", "dtype": "float32", "iterations": 5, "runs": 5, "completed": 5, "failures": [], "not_run": [],
            "unsupported": None, "digests": digests, "claim": claim, "algorithms": [algorithm],
            "input_digests": ["e" * 32], "environments": ["model=H100"], **changes}


def whole(catalogues, vary=lambda key: True):
    """The records of everything, as the stages leave them; VARY says of what may vary whether it did."""
    cuda, cpu = catalogues
    session = types.SimpleNamespace(continues=[], cpu_catalogue=cpu)
    records = [conclude.new_record(entry, variant) for entry in cuda.values()
               for variant in entry["variants"]]
    for number, record in enumerate(records):
        key = record["workload"], record["variant"]
        if key in UNSUPPORTED:
            cause = UNSUPPORTED[key]
            record.update(check={"outcome": "unsupported", "cause": cause}, inputs="equal",
                          bits="not promised",
                          survey=survey([], None, "", completed=0, unsupported=cause))
            continue
        may_vary = record["control"] or record["claim"] == "non-deterministic" or key in VARIES
        one = [f"{number:032x}"]
        digests = one + [f"{number + 1000:032x}"] if may_vary and vary(key) else one
        many = algorithms.is_algorithm(record)
        promised = stages.promised(session, record)
        record.update(
            check={"outcome": "passed", "cause": None, "max_error_to_bound": 0.25},
            inputs="no twin" if many else "equal", bits="equal" if promised else "not promised",
            large_bits="equal" if promised else None,
            circumstances="equal" if conclude.promises(record) else "no promise",
            sanitizers={"memcheck": "passed", "racecheck": "passed"},
            survey=survey(digests, record["claim"], record["algorithm"]))
        if many:
            record["cases"] = [{**survey(digests, record["claim"], record["algorithm"]),
                                "dtype": "float16", "check": record["check"], "ms": 1.0}]
    return records


def report_of(records):
    conclude.conclude(records)
    session = types.SimpleNamespace(continues=[], 
        device="GPU-1", rehearsal=False, seconds=470, left=lambda: 20, stages=[], timings={},
        records={(record["workload"], record["variant"]): record for record in records},
        failures=[], not_run=[], chosen=None)
    found = reports.build(session, {"devices": [{"id": "GPU-1", "model": "NVIDIA H100"}]})
    assert reports.markdown(found)
    return found


def outcomes(report):
    return {(record["workload"], record["variant"]): record["outcome"] for record in report["variants"]}


def test_textbook_behaviour_has_not_failed(catalogues):
    report = report_of(whole(catalogues, lambda key: key not in STEADY_CHOICES))
    assert len(report["variants"]) == sum(len(entry["variants"]) for entry in catalogues[0].values())
    assert report["failed"] == [] and report["findings"] == []
    found = outcomes(report)
    assert {key for key, outcome in found.items() if outcome == "unsupported"} == set(UNSUPPORTED)
    assert {line.split(" (")[0] for line in report["unvaried_controls"]} == \
        {" ".join(key) for key in STEADY_CHOICES}
    shown_by_choice = {key for key in found if key[0] in ONLY_BY_CHOICE}
    assert {key for key, outcome in found.items() if outcome == "inconclusive"} == \
        shown_by_choice | VARIES | STEADY_CHOICES
    record = next(record for record in report["variants"] if record["variant"] == "cudnn_max")
    assert (record["outcome"], record["causes"]) == ("passed", ["varied, as claimed"])


def judge_again(path):
    return subprocess.run([sys.executable, ROOT / "tests" / "gpu" / "again.py", path], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "REPROD_BUILD": str(BUILD)})


def test_a_report_is_judged_again_by_the_catalogue_of_today(catalogues, tmp_path):
    """It was written while an autotuning variant, which always chose the same, was no control."""
    records = whole(catalogues, lambda key: key not in STEADY_CHOICES)
    by_key = {(record["workload"], record["variant"]): record for record in records}
    by_key["conv_dgrad", "autotune"].update(control=False, kind=None, claim=None)
    by_key["conv_wgrad", "autotune"].update(control=False, kind=None, algorithm="another by now")
    report = report_of(records)
    assert outcomes(report)["conv_dgrad", "autotune"] == outcomes(report)["conv_wgrad", "autotune"] == "passed"
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    said = judge_again(path)
    assert (said.returncode, said.stdout) == (
        0, "conv_dgrad autotune: passed, now inconclusive: the choice did not vary, another control did\n")
    again = json.loads(path.read_text())
    before, after = outcomes(report), outcomes(again)
    assert {key for key in before if before[key] != after[key]} == {("conv_dgrad", "autotune")}
    assert again["counts"]["passed"] == report["counts"]["passed"] - 1
    assert again["date"] == report["date"]  # of what was measured
    [one] = again["judged_again"]
    assert f"Judged again {one['date']}" in path.with_suffix(".md").read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.json", "report.md"]


@pytest.mark.parametrize("name, damage", [
    ("report.json", lambda report: report["variants"][0].pop("claim")),
    ("report.json", lambda report: report["variants"].append(None)),
    ("report.json", lambda report: report.pop("driver")),  # which only the text for people has
    ("report.json", lambda report: report.update(v=2)),
    ("report.json.part", lambda report: None),  # would become a report
])
def test_what_is_no_report_is_not_judged_again(catalogues, tmp_path, name, damage):
    report = report_of(whole(catalogues, lambda key: key not in STEADY_CHOICES))
    damage(report)
    path = tmp_path / name
    path.write_text(json.dumps(report))
    said = judge_again(path)
    assert said.returncode == 1 and said.stderr.startswith("again.py: ") and said.stderr.count("\n") == 1
    assert path.read_text() == json.dumps(report)
    assert list(tmp_path.iterdir()) == [path]


def test_where_nothing_varies_nothing_has_failed_and_nothing_passes(catalogues):
    report = report_of(whole(catalogues, lambda key: False))
    assert report["failed"] == []
    assert set(outcomes(report).values()) == {"inconclusive", "unsupported"}
    controls = [record for record in report["variants"] if record["control"]]
    assert len(report["unvaried_controls"]) == len(controls) > 50


def test_libraries_promise_no_bits_of_the_cpu(catalogues):
    cuda, cpu = catalogues
    promised = {(record["workload"], record["variant"]): record["subject"]
                for record in whole(catalogues)
                if stages.promised(types.SimpleNamespace(cpu_catalogue=cpu), record)}
    assert set(promised.values()) == {"model"} and len(promised) > 50
    accident = {variant["name"]: variant["algorithm"] for variant in cuda["conv_autotune"]["variants"]}
    assert any(accident.get(variant["name"]) == variant["algorithm"]
               for variant in cpu["conv_autotune"]["variants"])


ORDERED, CLAIMED = ("reduce_sum", "ordered"), ("conv_wgrad", "algo_1")
TWO = ["a" * 32, "b" * 32]


def under(record, run):
    return circumstances.judge_run(record, run)


@pytest.mark.parametrize("key, change, cause", [
    (ORDERED, lambda r: r.update(bits="digest a, b on the CPU"), "digest a, b on the CPU"),
    (ORDERED, lambda r: r.update(large_bits="digest a at size large"), "digest a at size large"),
    (ORDERED, lambda r: r.update(inputs="input digest a, b on the CPU"), "input digest a, b on the CPU"),
    (ORDERED, lambda r: r.update(check={"outcome": "failed", "cause": "y: far off"}), "check: y: far off"),
    (CLAIMED, lambda r: r.update(check={"outcome": "failed", "cause": "y: far off"}), "check: y: far off"),
    (ORDERED, lambda r: r["survey"].update(digests=TWO), "varied: 2 digests in 5 runs of 5 iterations"),
    (CLAIMED, lambda r: r["survey"].update(digests=TWO), "varied: 2 digests in 5 runs of 5 iterations"),
    (ORDERED, lambda r: r["survey"].update(failures=["crashed: killed by SIGSEGV"]),
     "crashed: killed by SIGSEGV"),
    (("reduce_sum", "unordered"), lambda r: r["survey"].update(failures=["crashed: killed by SIGSEGV"]),
     "crashed: killed by SIGSEGV"),
    (("conv_wgrad", "algo_0"), lambda r: r["survey"].update(failures=["invalid: no proof of work"]),
     "invalid: no proof of work"),
    (ORDERED, lambda r: r["survey"].update(failures=["the runs had different inputs"]),
     "the runs had different inputs"),
    (ORDERED, lambda r: r["sanitizers"].update(memcheck="1 errors"), "memcheck: 1 errors"),
    (ORDERED, lambda r: r.update(circumstances=under(
        {**r, "survey": survey(["a" * 32], None, "tree")},
        recorded((0, "circumstances", SAID), digests=("b", "b")))),
     f"under load, poison and jitter, digests {'b' * 32}, {'a' * 32} without (pattern 0badcafe, seed 7)"),
    (("cudnn_conv_fwd", "algo_0_implicit_gemm"), lambda r: r["cases"][0].update(digests=TWO),
     "float16 at large: varied: 2 digests in 5 runs of 5 iterations"),
])
def test_each_way_to_fail(catalogues, key, change, cause):
    records = whole(catalogues)
    [record] = [record for record in records if (record["workload"], record["variant"]) == key]
    change(record)
    report = report_of(records)
    assert report["failed"] == [f"{key[0]} {key[1]}: {cause}"]
    lied = record["claim"] == "deterministic" and "varied" in cause
    assert len(report["findings"]) == lied
