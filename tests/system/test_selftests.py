"""Workloads that misbehave, through the whole service: none earns green, each says why."""
import pytest

from service import SELFTEST_WORKER, Service

# (workload, variant): the outcomes a run may have, and what its cause must say
MISBEHAVIOUR = {
    ("selftest_crash", "setup"): ({"crashed"}, "SIG"),
    ("selftest_crash", "compute"): ({"crashed"}, "SIG"),
    ("selftest_crash", "teardown"): ({"crashed"}, "SIG"),
    ("selftest_crash", "at_exit"): ({"crashed", "invalid"}, ""),
    ("selftest_crash", "exit_status"): ({"crashed", "invalid"}, ""),
    ("selftest_hang", "ordered"): ({"timeout"}, ""),
    ("selftest_ignores_term", "ordered"): ({"timeout"}, ""),
    ("selftest_exit_zero_silent", "ordered"): ({"crashed"}, "end"),
    ("selftest_zero_elements", "ordered"): ({"invalid"}, "elements"),
    ("selftest_wrong_device", "ordered"): ({"invalid"}, "device"),
    ("selftest_wrong_device", "start"): ({"invalid"}, "device"),
    ("selftest_truncated_line", "ordered"): ({"invalid", "crashed"}, ""),
    ("selftest_garbage", "ordered"): ({"invalid"}, "JSON"),
    ("selftest_duplicate_keys", "ordered"): ({"invalid"}, ""),
    ("selftest_wrong_count", "ordered"): ({"invalid"}, "iteration"),
    ("selftest_wrong_count", "extra"): ({"invalid"}, "iteration"),
    ("selftest_wrong_count", "claimed"): ({"invalid"}, "iteration"),
    ("selftest_flood", "ordered"): ({"invalid", "timeout"}, ""),
    ("selftest_huge_line", "ordered"): ({"invalid"}, ""),
    ("selftest_input_scribbler", "ordered"): ({"invalid"}, "input"),
    ("selftest_nan_everywhere", "ordered"): ({"invalid"}, "NaN"),
    ("selftest_closes_fd3", "ordered"): ({"crashed", "invalid"}, ""),
    ("selftest_out_of_memory", "ordered"): ({"out_of_memory"}, ""),
    ("selftest_infra", "ordered"): ({"infra"}, ""),
    ("selftest_infra", "setup"): ({"infra"}, ""),
    ("selftest_telemetry", "no_object"): ({"invalid"}, "telemetry must be an object"),
    ("selftest_telemetry", "nested"): ({"invalid"}, "telemetry/gpu"),
    ("selftest_telemetry", "too_large"): ({"invalid"}, "4096"),
    ("selftest_library", "unnamed"): ({"crashed"}, "SIGABRT"),
    ("selftest_library", "uncalled"): ({"crashed"}, "SIGABRT"),
    ("selftest_library", "another"): ({"crashed"}, "SIGABRT"),
    ("selftest_unsupported", "ordered"): ({"unsupported"}, ""),
    ("selftest_unsupported", "setup"): ({"unsupported"}, ""),
}
# The cells these leave behind may be anything but reproducible; these exactly:
VERDICTS = {
    ("selftest_pass", "unordered"): {"varies"},
    ("selftest_pass", "ordered"): {"reproducible"},
    ("selftest_no_control", "ordered"): {"inconclusive"},
    ("selftest_varies_once", "ordered"): {"varies"},
    ("selftest_claims", "broken"): {"varies"},
    ("selftest_claims", "kept"): {"reproducible"},
    ("selftest_claims", "warned"): {"inconclusive"},
    ("selftest_stale_output", "ordered"): {"failing"},
    ("selftest_stale_output", "partial"): {"failing"},
    ("selftest_wrong", "unordered"): {"varies"},
    ("selftest_wrong", "ordered"): {"failing"},
    ("selftest_wrong", "at_first"): {"failing"},
    ("selftest_wrong_control", "unordered"): {"failing"},
    ("selftest_wrong_control", "ordered"): {"inconclusive"},
    ("selftest_unsupported", "ordered"): {"unsupported"},
    ("selftest_hang", "ordered"): {"failing"},
    ("selftest_crash", "compute"): {"failing"},
    ("selftest_exit_zero_silent", "ordered"): {"failing", "unmeasured"},
    ("selftest_infra", "ordered"): {"unmeasured", "absent"},
}
GREEN = {("selftest_pass", "ordered"), ("selftest_claims", "kept"),
         ("selftest_slow_reference", "ordered"),
         ("selftest_dying_reference", "ordered"),
         # one digest is what these two have until they do not, which is the point of them
         ("selftest_varies_rarely", "ordered"), ("selftest_fork_bomb", "ordered"),
         ("selftest_flood", "log"),
         # it misbehaves in another environment: test_drift.py
         *(("selftest_planted", variant) for variant in ("ordered", "planted", "turning", "breaking")),
         # a defect that only poisoned memory shows: test_circumstances.py
         ("selftest_library", "honest"), ("selftest_memory", "scratch"), ("selftest_memory", "recycled")}


# What never ends by itself: {workload: how many runs it gets, of how many seconds}.  The others
# get as long as they need.  A start that comes late leaves no cell and no log.
ENDLESS = {"selftest_hang": (3, 2), "selftest_ignores_term": (3, 1), "selftest_flood": (1, 4)}


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Every self-test workload, three runs of what ends."""
    service = Service(tmp_path_factory.mktemp("selftests"), worker=SELFTEST_WORKER,
                      options=["--no-survey"], config={"grace_ms": 200}).start()
    names = [w["workload"] for w in service.get("/v1/workloads")["items"]
             if w["workload"].startswith("selftest_")]
    jobs = [service.post_job(workloads=[name for name in names if name not in ENDLESS], runs=3,
                             iterations=4)]
    for name, (count, seconds) in ENDLESS.items():
        jobs.append(service.post_job(workloads=[name], runs=count, iterations=4,
                                     timeout_seconds=seconds))
    shown = [service.finish_job(job, 240) for job in jobs]
    runs = [run for job in jobs for run in service.items(f"/v1/runs?job={job}")]
    facts = service.get("/v1/matrix")["variants"]
    log = {r["id"]: service.get(f"/v1/runs/{r['id']}/log.txt") for r in runs
           if (r["workload"], r["variant"]) == ("selftest_flood", "log")}
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text
    return shown, runs, {(f["workload"], f["variant"]): f for f in facts}, log


def test_the_jobs_ended(survey):
    assert {job["state"] for job in survey[0]} == {"finished"}


@pytest.mark.parametrize("key", sorted(MISBEHAVIOUR), ids="/".join)
def test_outcome_says_what_happened(survey, key):
    outcomes, cause = MISBEHAVIOUR[key]
    runs = [r for r in survey[1] if (r["workload"], r["variant"]) == key]
    assert runs
    for run in runs:
        assert run["outcome"] in outcomes, run
        assert cause in run["cause"], run


@pytest.mark.parametrize("key", sorted(VERDICTS), ids="/".join)
def test_verdict(survey, key):
    fact = survey[2].get(key)
    assert (fact["verdict"] if fact else "absent") in VERDICTS[key], fact


def test_nothing_else_is_green(survey):
    green = {key for key, fact in survey[2].items() if fact["verdict"] == "reproducible"}
    assert green <= GREEN
    assert ("selftest_pass", "ordered") in green


def test_log_is_a_bounded_tail(survey):
    assert survey[3]
    assert all(0 < len(text) <= 9000 for text in survey[3].values())
