"""What make gpu-check concludes from runs: its judgements on recorded ones."""
import copy
import json
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import algorithms  # noqa: E402
import circumstances  # noqa: E402
import conclude  # noqa: E402
import judge  # noqa: E402
import machine  # noqa: E402
import report  # noqa: E402
import runs  # noqa: E402
import sanitize  # noqa: E402
import session as sessions  # noqa: E402
import timing  # noqa: E402

ASKED = {"workload": "w", "variant": "ordered", "size": "large", "iterations": 2, "device": "GPU-1"}
# As a worker wrote them, with shorter lists.
RECORDED = [
    {"event": "start", "v": 1, "pid": 7, "workload": "w", "version": 1, "variant": "ordered",
     "size": "large", "dtype": "float32", "seed": "1", "iterations": 2, "threads": 1,
     "backend": "cuda", "device": "GPU-1", "algorithm": "tree", "claim": None,
     "input_digest": "e" * 32, "environment": {"backend": "cuda", "model": "GPU"}, "libraries": []},
    {"event": "iteration", "i": 0, "digest": "a" * 32, "weight_sum": "4154ec3984880000",
     "loss": None, "ms": 3.5, "algorithm": "tree"},
    {"event": "iteration", "i": 1, "digest": "a" * 32, "weight_sum": "4154ec3984880000",
     "loss": None, "ms": 1.5, "algorithm": "tree"},
    {"event": "end", "outcome": "completed", "cause": None, "iterations": 2, "elements": 8,
     "bytes_hashed": 64, "device": "GPU-1", "input_digest": "e" * 32},
]


def recorded(*changes, digests=("a", "a"), **how):
    """The recorded run; CHANGES are (index of the event, field, value)."""
    events = copy.deepcopy(RECORDED)
    for event, letter in zip(events[1:3], digests):
        event["digest"] = letter * 32
    for index, field, value in changes:
        events[index][field] = value
    return runs.Run(**{"asked": ASKED, "events": events, "exit_code": 0, "first_iteration": 2.0,
                       "spawned": 1.0, "ended": 3.0, **how})


# One run

def test_the_recorded_run_is_completed():
    assert judge.outcome(recorded()) == ("completed", None)
    early = recorded((3, "outcome", "unsupported"), (3, "cause", "no cuDNN"))
    early.events[1:3] = []
    assert judge.outcome(early) == ("unsupported", "no cuDNN")


@pytest.mark.parametrize("changes, cause", [
    ([(0, "device", "GPU-2")], "device is 'GPU-2', 'GPU-1' was asked for"),
    ([(3, "device", "GPU-2")], "device is 'GPU-2', 'GPU-1' was asked for"),
    ([(3, "elements", 0)], "no proof of work: 0 elements, 64 bytes hashed"),
    ([(3, "bytes_hashed", 0)], "no proof of work: 8 elements, 0 bytes hashed"),
    ([(3, "iterations", 3)], "end counts 3 iterations, 2 were seen"),
    ([(2, "i", 2)], "iteration 2 came where 1 was due"),
    ([(3, "input_digest", "f" * 32)], "the inputs changed during the run"),
    ([(0, "variant", "unordered")], "variant is 'unordered', 'ordered' was asked for"),
    ([(0, "size", "small")], "size is 'small', 'large' was asked for"),
    ([(1, "weight_sum", "7ff8000000000000")], "weight_sum is NaN"),
    ([(1, "loss", "fff0000000000001")], "loss is NaN"),
    ([(1, "weight_sum", "7ff0000000000000")], "weight_sum is infinite"),
    ([(1, "loss", "fff0000000000000")], "loss is infinite"),
    ([(1, "digest", "A" * 32)], "digest is not 32 hex digits"),
    ([(1, "digest", None)], "iteration: digest is missing or of the wrong type"),
    ([(0, "v", 2)], "version 2 of the protocol"),
    ([(3, "outcome", "splendid")], "'splendid' is no outcome that a worker can claim"),
    ([(3, "elements", True)], "end: elements is missing or of the wrong type"),
])
def test_deviations_are_invalid(changes, cause):
    assert judge.outcome(recorded(*changes)) == ("invalid", cause)


def test_the_largest_number_is_one():
    assert judge.outcome(recorded((1, "weight_sum", "7fefffffffffffff")))[0] == "completed"


def without(*indices):
    run = recorded()
    run.events = [event for index, event in enumerate(run.events) if index not in indices]
    return run


def test_missing_events():
    assert judge.outcome(without(3)) == (
        "crashed", "exit status 0 without an end event; it printed nothing")
    assert judge.outcome(without(0)) == ("invalid", "the first event is not start")
    assert judge.outcome(without(2)) == ("invalid", "1 of 2 iterations")
    assert judge.outcome(without(0, 1, 2, 3))[0] == "crashed"


def test_how_a_process_ends():
    killed = recorded(exit_code=None, signal=11, log="one\ntwo\n")
    assert judge.outcome(killed) == ("crashed", "killed by SIGSEGV; two")
    assert judge.outcome(recorded(exit_code=3)) == ("invalid", "exit status 3 after the end event")
    late = without(2, 3)
    late.timed_out = True
    assert judge.outcome(late) == ("timeout", "killed at its deadline after 1 of 2 iterations")


def test_reading_events():
    lines = "".join(json.dumps(event) + "\n" for event in RECORDED).encode()
    whole, cut, twice, text = (runs.Events() for _ in range(4))
    for start in range(0, len(lines), 100):
        whole.feed(lines[start:start + 100], float(start))
    whole.close()
    assert whole.events == RECORDED and whole.garbage is None
    assert whole.time_of("start") < whole.time_of("end")
    cut.feed(lines[:-10], 0.0)
    cut.close()
    assert cut.garbage == "the last line is cut off" and len(cut.events) == 3
    twice.feed(b'{"event":"start","event":"end"}\n', 0.0)
    assert twice.garbage == "line 1 is no event"
    text.feed(b"[1]\n" + b"x" * 70000, 0.0)
    assert text.garbage == "line 1 is no event" and text.rest == b""
    assert judge.outcome(recorded(garbage=cut.garbage)) == ("invalid", "the last line is cut off")


# The runs of a variant, the variants of a workload

def variant(name, of_runs, **changes):
    """A record whose survey is that; everything else is in order."""
    entry = {"workload": "w", "version": 1, "no_control": None}
    record = conclude.new_record(entry, {"name": name, "control": name == "unordered",
                                         "algorithm": "tree", "claim": None,
                                         "subject": "model", "subject_name": None})
    record.update(check={"outcome": "passed", "cause": None}, inputs="equal", bits="not promised")
    record["survey"] = {"size": "large", "iterations": 2, **judge.judge_runs(of_runs, 2)}
    record.update(changes)
    return record


STEADY = [recorded(), recorded()]
VARYING = [recorded(digests=("a", "b")), recorded(digests=("c", "a"))]


def concluded(*records):
    conclude.conclude(list(records))
    return [(record["outcome"], record["causes"]) for record in records]


def test_a_workload_in_order_passes():
    assert concluded(variant("unordered", VARYING), variant("ordered", STEADY)) == \
        [("passed", []), ("passed", [])]


def test_a_control_that_did_not_vary():
    assert concluded(variant("unordered", STEADY), variant("ordered", STEADY)) == [
        ("inconclusive", ["the control did not vary"]),
        ("inconclusive", ["no control was seen to vary"])]
    choice = variant("unordered", STEADY, kind="choice")
    assert concluded(choice)[0] == ("inconclusive", ["the choice did not vary"])
    assert conclude.unvaried_controls([choice, variant("ordered", STEADY), variant("unordered", [])]) == [
        "w unordered (choice, model): 1 digest in 2 × 2 at large"]


def test_without_the_runs_of_its_control_nothing_passes():
    control = variant("unordered", [])
    assert concluded(control, variant("ordered", STEADY)) == [
        ("not_run", ["survey: 0 of 2 runs"]), ("not_run", ["the runs of its control are missing"])]
    unsupported = variant("unordered", VARYING)
    unsupported["survey"].update(unsupported="no such library", digests=[], completed=0)
    assert concluded(unsupported, variant("ordered", STEADY)) == [
        ("unsupported", ["no such library"]), ("inconclusive", ["no control was seen to vary"])]


@pytest.mark.parametrize("changes, outcome, cause", [
    ({"check": {"outcome": "failed", "cause": "db: 3 of 8 elements out of bound"}},
     "inconclusive", "its control varied, and failed itself"),
    ({"sanitizers": {"memcheck": "8 bytes were read before they were written"}},
     "inconclusive", "its control varied, and failed itself"),
    ({"inputs": "the inputs are not those of the CPU"}, "inconclusive", "its control varied, and failed itself"),
    ({"check": None}, "not_run", "the check of its control is missing"),
])
def test_a_control_that_is_wrong_vouches_for_nothing(changes, outcome, cause):
    """It may vary by what is wrong with it."""
    records = [variant("unordered", [recorded(digests="ab"), recorded(digests="cd")], **changes),
               variant("ordered", [recorded(), recorded()])]
    conclude.conclude(records)
    assert (records[1]["outcome"], records[1]["causes"]) == (outcome, [cause])
    wrong = variant("unordered", [recorded(digests="ab"), recorded(exit_code=None, signal=11)])
    records = [wrong, variant("ordered", [recorded(), recorded()])]
    conclude.conclude(records)
    assert [record["outcome"] for record in records] == ["failed", "inconclusive"]


def test_an_ordered_variant_that_varied():
    between = [recorded(), recorded(digests=("b", "b"))]  # each process agrees with itself
    for varying, digests in ((VARYING, 3), (between, 2)):
        assert concluded(variant("unordered", VARYING), variant("ordered", varying))[1] == \
            ("failed", [f"varied: {digests} digests in 2 runs of 2 iterations"])


def test_a_control_vouches_for_its_kind_alone():
    """Random numbers of the process always vary, and show nothing about races."""
    entropy, race = variant("unordered", VARYING, kind="entropy"), variant("shared", STEADY, control=True,
                                                                           kind="race")
    named = variant("seeded", STEADY, kind="entropy")
    assert concluded(entropy, race, variant("ordered", STEADY), named) == [
        ("passed", []), ("inconclusive", ["the control did not vary, another control did"]),
        ("inconclusive", ["no control of kind race was seen to vary"]), ("passed", [])]
    assert concluded(entropy, variant("ordered", STEADY))[1] == ("passed", [])


def library(name, of_runs, claim, **changes):
    return variant(name, of_runs, claim=claim, subject="library", subject_name="cuDNN", **changes)


@pytest.mark.parametrize("of", [VARYING, STEADY])  # the control
@pytest.mark.parametrize("claim, outcome, causes", [
    ("deterministic", "failed", ["varied: 3 digests in 2 runs of 2 iterations"]),
    ("non-deterministic", "passed", ["varied, as claimed"]),
    (None, "inconclusive", ["varied, and cuDNN claims nothing of it"]),
])
def test_what_a_library_varies_is_judged_by_its_claim(claim, outcome, causes, of):
    record = library("algo", VARYING, claim)
    assert concluded(variant("unordered", of), record)[1] == (outcome, causes)
    assert bool(record["findings"]) == (claim == "deterministic")
    case = library("algo", STEADY, claim, cases=[case_of(VARYING)])
    conclude.conclude([variant("unordered", of), case])
    assert (case["outcome"] == "failed") == (claim == "deterministic")


def test_the_claim_of_runs_that_differ():
    said = [recorded((0, "claim", claim)) for claim in ("deterministic", None, "non-deterministic")]
    assert [judge.claim_of(some) for some in (said[:1], said[:2], said[1:2], said, [])] == \
        ["deterministic", None, None, "non-deterministic", None]


def test_a_lying_claim_is_a_finding():
    honest, liar = (variant("unordered", VARYING, claim=claim)
                    for claim in ("non-deterministic", "deterministic"))
    assert concluded(honest, liar) == [("passed", []), ("passed", [])]
    assert honest["findings"] == []
    assert liar["findings"] == ["claims deterministic, seen to vary"]


def test_a_crash_is_a_failure_even_once():
    crashed = recorded(exit_code=None, signal=6)
    assert concluded(variant("unordered", VARYING), variant("ordered", [recorded(), crashed]))[1] == \
        ("failed", ["crashed: killed by SIGABRT; it printed nothing"])


def test_runs_must_have_one_input_and_one_environment():
    other = recorded((0, "input_digest", "d" * 32), (3, "input_digest", "d" * 32),
                     (0, "environment", {"backend": "cuda", "model": "other"}))
    assert concluded(variant("unordered", VARYING), variant("ordered", [recorded(), other]))[1] == \
        ("failed", ["the runs had different inputs", "the runs had different environments"])


def test_what_the_deadline_cut_shows_nothing():
    cut = recorded(timed_out=True, cut=True)
    assert concluded(variant("unordered", VARYING), variant("ordered", [recorded(), cut]))[1] == \
        ("not_run", ["survey: 1 of 2 runs"])


@pytest.mark.parametrize("changes, outcome, cause", [
    ({"check": None}, "not_run", "check: not run"),
    ({"inputs": None}, "not_run", "inputs: not run"),
    ({"survey": None}, "not_run", "survey: not run"),
    ({"check": {"outcome": "failed", "cause": "y: far off"}}, "failed", "check: y: far off"),
    ({"check": {"outcome": "unsupported", "cause": "no cuDNN"}}, "unsupported", "no cuDNN"),
    ({"inputs": "different"}, "failed", "different"),
    ({"bits": "different"}, "failed", "different"),
    ({"large_bits": "different"}, "failed", "different"),
    ({"sanitizers": {"memcheck": "2 errors"}}, "failed", "memcheck: 2 errors"),
    ({"circumstances": "other bits under load"}, "failed", "other bits under load"),
])
def test_every_comparison_counts(changes, outcome, cause):
    assert concluded(variant("unordered", VARYING), variant("ordered", STEADY, **changes))[1] == \
        (outcome, [cause])


def test_what_has_to_vary_does_not_pass_steady():
    """Another control varied, so nothing is wrong with the check; and nothing is shown."""
    steady = variant("algo_0", STEADY, control=True)
    promised = variant("algo_3", STEADY, claim="non-deterministic")
    assert concluded(variant("unordered", VARYING), steady, promised)[1:] == [
        ("inconclusive", ["the control did not vary, another control did"]),
        ("inconclusive", ["claimed to be non-deterministic, and did not vary"])]


def case_of(of_runs, **changes):
    return {"dtype": "float16", "size": "medium", "iterations": 2, "check": None,
            **judge.judge_runs(of_runs, 2), **changes}


@pytest.mark.parametrize("case, failures", [
    (case_of(STEADY), []),
    (case_of([]), []),  # not run: said next to the report, and does not count for `passed`
    (case_of(VARYING), ["varied: 3 digests in 2 runs of 2 iterations"]),
    (case_of(STEADY, check={"outcome": "failed", "cause": "y: far off"}), ["check: y: far off"]),
    (case_of([recorded(), recorded(exit_code=None, signal=6)]),
     ["crashed: killed by SIGABRT; it printed nothing"]),
])
def test_cases_of_an_algorithm(case, failures):
    record = variant("algo_1", STEADY, cases=[case])
    assert concluded(variant("unordered", VARYING), record)[1] == (
        ("failed", [f"float16 at medium: {what}" for what in failures]) if failures
        else ("passed", []))
    control = variant("algo_0", VARYING, control=True, cases=[case_of(VARYING)])
    assert concluded(control) == [("passed", [])]


def test_the_table_of_algorithms():
    asked = {"dtype": "float32", "ms": 0.5, "check": {"outcome": "passed", "max_error_to_bound": .25}}
    control, other = (variant(name, of_runs, workload="cudnn_conv_x", claim=claim)
                      for name, of_runs, claim in (("unordered", VARYING, None),
                                                   ("algo_1", STEADY, "deterministic")))
    control["survey"].update(asked)
    other["survey"].update(asked)
    absent = case_of([])
    absent.update(unsupported="cuDNN 9: NOT_SUPPORTED")
    other["cases"] = [case_of(STEADY), absent]
    unlike = variant("algo_2", [recorded(digests=("b", "b"))] * 2, workload="cudnn_conv_x",
                     claim="deterministic")
    unlike["survey"]["dtype"] = "float32"
    unlike["check"] = None
    assert algorithms.rows([control, other, unlike, variant("ordered", STEADY)])[1:] == [
        ("cudnn_conv_x", "algo_1", "float32", "large", "deterministic", "1 in 2 × 2", "A", "yes",
         "0.25", "0.5", "tree"),
        ("cudnn_conv_x", "algo_1", "float16", "medium", "deterministic", "1 in 2 × 2", "A", "no", "–",
         "–", "tree"),
        ("cudnn_conv_x", "algo_1", "float16", "medium", "deterministic", "unsupported", "–", "–", "–",
         "–", "cuDNN 9: NOT_SUPPORTED"),
        ("cudnn_conv_x", "algo_2", "float32", "large", "deterministic", "1 in 2 × 2", "B", "yes", "–",
         "–", "tree")]


def test_a_workload_without_control_shows_nothing():
    alone = variant("ordered", STEADY, no_control="nothing races")
    assert concluded(alone) == [("inconclusive", ["no control: nothing races"])]


def answer(exit_code=0, **said):
    return runs.Answer(exit_code, json.dumps(said), "")


def output(**changes):
    return {"name": "y", "elements": 8, "failed": 0, "ok": True, "max_error_to_bound": 0.5,
            "instruments_ok": True, **changes}


@pytest.mark.parametrize("said, outcome", [
    (answer(ok=True, outputs=[output()]), "passed"),
    (answer(ok=True, outputs=[]), "failed"),
    (answer(ok=True, outputs=[output(elements=0)]), "failed"),
    (answer(ok=True, outputs=[output(), output(ok=False)]), "failed"),
    (answer(ok=True, outputs=[output(instruments_ok=False)]), "failed"),
    (answer(1, ok=False, outputs=[output()]), "failed"),
    (answer(5, ok=False, outcome="unsupported", cause="c"), "unsupported"),
    (answer(5, ok=False, outcome="infra", cause="c"), "failed"),
    (answer(None), "failed"),
    (runs.Answer(-6, "", "abort"), "failed"),
])
def test_check_answers(said, outcome):
    assert judge.judge_check(said)["outcome"] == outcome


def test_timing():
    assert timing.milliseconds(recorded()) == 1.5  # without the first iteration
    assert timing.gap(recorded(), recorded(first_iteration=3.25)) == 250
    assert timing.spread([3, 1, 2]) == {"median": 2, "least": 1, "most": 3, "count": 3}
    assert timing.spread([]) is None
    control, ordered, other = variant("unordered", VARYING), variant("ordered", STEADY), \
        variant("matmul", STEADY)
    assert timing.pairs([control, other, ordered]) == [(control, ordered)]
    assert timing.pairs([control, variant("ordered", [])]) == []


def test_ordered_is_timed_against_what_a_library_claims_to_be_deterministic():
    def of_library(name, **changes):
        return variant(name, STEADY, **{"subject": "library", "claim": "deterministic", **changes})

    control, ordered, library = variant("unordered", VARYING), variant("ordered", STEADY), of_library("algo_1")
    racy = of_library("algo_0", claim="non-deterministic")
    choice = of_library("autotune", control=True)
    assert timing.library_pairs([control, racy, choice, library, ordered, of_library("algo_2")]) \
        == [(library, ordered)]
    assert timing.library_pairs([control, ordered, racy, choice]) == []
    smaller = of_library("algo_1")
    smaller["survey"]["size"] = "medium"
    liar = of_library("algo_3")
    liar["survey"]["claim"] = "non-deterministic"
    elsewhere = of_library("algo_1", workload="v")
    assert timing.library_pairs([ordered, smaller, liar, elsewhere, of_library("algo_4", survey=None)]) == []
    assert timing.library_pairs([library, variant("ordered", STEADY, library_timing={"ratio": 1})]) == []
    assert timing.library_pairs([library, of_library("ordered")]) == []  # only our own code's


@pytest.mark.parametrize("slow, fast, marked", [(2.0, 1.0, False), (2.0, 0.9, True), (0.9, 2.0, True)])
def test_a_ratio_of_launches_is_marked(slow, fast, marked):
    said = report.ratio_of({"ratio": timing.spread([slow / fast]), "ms": timing.spread([slow]),
                            "baseline_ms": timing.spread([fast])})
    assert said.startswith(f"{slow / fast:.3g} (") and ("launch latency" in said) == marked
    assert report.ratio_of({}) == "–"


RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at void {kernel}(float *)+0x120 in k.cu:7
=========     and Read access at void {kernel}(float *)+0x80 in k.cu:5 [16 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_sanitizer_logs():
    clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    bad = ("========= Invalid __global__ read of size 4 bytes\n=========     at k(float *)+0x1\n"
           "========= ERROR SUMMARY: 1 error\n")
    assert sanitize.judge_memcheck(clean) == "passed"
    assert sanitize.judge_memcheck(bad).startswith("1 errors; Invalid __global__ read")
    assert sanitize.judge_memcheck("========= COMPUTE-SANITIZER\n") is None
    kernels = sanitize.own_kernels(ROOT)
    assert {"digest_kernel", "gather_kernel"} <= kernels
    ours, theirs = (RACE.format(kernel=name) for name in ("digest_kernel", "cutlass_kernel"))
    assert sanitize.judge_racecheck(ours, kernels).startswith("1 reports about our kernels; Error: Race")
    assert sanitize.judge_racecheck(theirs, kernels) == "passed"
    assert sanitize.judge_racecheck("", kernels) is None
    unknown = "========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\n"
    assert sanitize.judge_racecheck(unknown, kernels).startswith("3 hazards")


CHECKED = ('{"ok":true,"outputs":[{"name":"y","ok":true,"instruments_ok":true,"elements":8,'
           '"max_error_to_bound":0.5}]}\n')
CLEAN, FOUND = "========= ERROR SUMMARY: 0 errors\n", "========= ERROR SUMMARY: 1 error\n"
NO_DEVICE = "========= Error: Device not supported. Please refer to the documentation\n"


@pytest.mark.parametrize("code, output, log, found", [
    (0, CHECKED, CLEAN, "passed"), (0, "========= COMPUTE-SANITIZER\n" + CHECKED + "=========\n", CLEAN, "passed"),
    (0, "", CLEAN, None), (1, "", CLEAN, None), (None, "", CLEAN, None), (1, CHECKED, CLEAN, None),
    (0, CHECKED, NO_DEVICE + CLEAN, None), (1, "", NO_DEVICE + FOUND, None), (1, NO_DEVICE, FOUND, None),
    (1, "", FOUND, "1 errors; no report"), (0, CHECKED, "", None),
])
def test_a_sanitizer_that_saw_nothing_computed_says_nothing(code, output, log, found, monkeypatch):
    session, record = sessions.Session("worker", "cpu", 100, 1), variant("ordered", STEADY)
    monkeypatch.setattr(sanitize, "answer_and_log", lambda *_: (runs.Answer(code, output, ""), log))
    sanitize.sanitize(session, [record], "tool", ROOT, session.until(1))
    assert record["sanitizers"].get("memcheck") == found
    assert any("memcheck: " in item["what"] for item in session.not_run) == (found is None)


def test_libraries_of_python_packages_are_found(tmp_path, monkeypatch):
    library = tmp_path / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert library in machine.wheel_files("lib/libcudnn.so.*")


def test_a_driver_that_the_linker_does_not_know_is_found(tmp_path, monkeypatch):
    """And the libraries of Python packages, which go before it."""
    def probe(_, env):
        path = env.get("LD_LIBRARY_PATH", "")
        return {"devices": ["GPU-1"] if str(tmp_path / "driver") in path else [],
                "problems": {} if "cudnn" in path else {"cudnn": "not found", "other": "no library"}}

    for file in ("driver/libcuda.so.1", "nvidia/cudnn/lib/libcudnn.so.9"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(machine, "probe", probe)
    monkeypatch.setattr(machine, "DRIVER_FOLDERS", ("/none", str(tmp_path / "driver")))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(machine.site, "getsitepackages", lambda: [])
    monkeypatch.setattr(machine.site, "getusersitepackages", lambda: "")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/given")
    env = {}
    assert machine.probe_with_wheels("worker", env) == {"devices": ["GPU-1"], "problems": {}}
    assert env == {"LD_LIBRARY_PATH": f"{tmp_path}/nvidia/cudnn/lib:{tmp_path}/driver:/given"}
    monkeypatch.setattr(machine, "DRIVER_FOLDERS", ("/none",))
    none = {}
    assert machine.probe_with_wheels("worker", none)["devices"] == [] and none == {}


# Load, poison and jitter

SAID = {"contention": 1, "memory_poison": "0badcafe", "allocation_jitter": "7"}


@pytest.mark.parametrize("run, found", [
    (recorded((0, "circumstances", SAID)), "equal"),
    (recorded((0, "circumstances", SAID), digests=("a", "b")), "digests aaaa"),
    (recorded((0, "circumstances", SAID), digests=("b", "b")), "digests bbbb"),
    (recorded(), "the run says no circumstances"),
    (recorded((0, "circumstances", {**SAID, "contention": 2})), "was asked for"),
    (recorded((0, "circumstances", SAID), exit_code=None, signal=11), "crashed: killed by SIGSEGV"),
    (recorded((0, "circumstances", SAID), timed_out=True), None),
    (recorded((3, "outcome", "infra"), (3, "cause", "load process 1 of 1 does not compute")), None),
    (recorded((3, "outcome", "infra"), (3, "cause", "cudaDeviceSynchronize(): an illegal memory access was encountered"
                                                    " (cudaErrorIllegalAddress, 700)")),
     "under load, poison and jitter, infra: cudaDeviceSynchronize()"),
    (recorded((3, "outcome", "infra"), (3, "cause", "cudaMalloc: busy (cudaErrorDevicesUnavailable, 46)")), None),
])
def test_runs_under_circumstances(run, found):
    record = variant("ordered", STEADY)
    seen = circumstances.judge_run(record, run)
    assert seen == found if found in (None, "equal") else found in seen
    assert conclude.failures_of({**record, "circumstances": seen}) == \
        ([] if found in (None, "equal") else [seen])
    if found and found != "equal" and "digests" in found:
        for loose in (variant("unordered", VARYING), library("algo_0", STEADY, "non-deterministic"),
                      library("autotune", STEADY, None)):
            assert circumstances.judge_run(loose, run) == "no promise"
        assert circumstances.judge_run(library("algo_1", STEADY, "deterministic"), run) == seen
