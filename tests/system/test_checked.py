"""What runs compute is compared with the float64 reference before anything is green."""
import csv
import io

import pytest

from service import SELFTEST_WORKER, Service
from test_profiles import TABLE, written
from test_worker import WORKER, digests, run

OLDER = """#!/bin/sh
# A worker from before runs could check themselves.
case " $* " in
*" --checked "*) exit 2;;
*" --probe "*) %(worker)s "$@" | sed 's/"checks":true,//';;
*) exec %(worker)s "$@";;
esac
"""


# A run that was told what passed, from before workers knew that; no other argument changes.
NOT_TOLD = OLDER.replace("--checked", "--passed").replace('"checks":true,', '"passed":true,')


def check_of(ended):
    """The check event; what it is of must be what its iteration reported."""
    events = {event["event"]: event for event in ended.events}
    assert ended.status == 0 and events["end"]["outcome"] == "completed"
    check = events["check"]
    before = [] if check["result"] == "known" else ["checking"]
    assert [event["event"] for event in ended.events][-2 - len(before):] == [*before, "check", "end"]
    if check["result"] in ("passed", "failed"):
        iteration = [event for event in ended.events if event["event"] == "iteration"][check["i"]]
        assert [check[key] for key in ("digest", "weight_sum")] == \
            [iteration[key] for key in ("digest", "weight_sum")]
    return check


def test_a_run_is_checked_when_it_is_asked():
    assert "check" not in {event["event"] for event in run("selftest_pass").events}
    check = check_of(run("selftest_pass", "ordered", checked=60))
    assert (check["result"], check["share"], check["output"]) == ("passed", 0, "y")


def test_the_worst_element_is_named():
    check = check_of(run("selftest_wrong", "ordered", checked=60))
    assert (check["result"], check["got"], check["bound"], check["share"]) == ("failed", 42, 0, "inf")
    ended = run("selftest_wrong", "at_first", checked=60, passed=digests(run("selftest_wrong", "at_first"))[0])
    check = check_of(ended)
    assert (check["result"], check["index"], check["i"]) == ("failed", 63, 2)
    assert abs(check["got"] - check["expected"] - 1) < 1e-6


def test_it_is_of_the_first_iteration_that_did_not_pass_before():
    ended = run("selftest_pass", "unordered", 6, checked=60)
    first = check_of(ended)
    assert (first["result"], first["i"]) == ("passed", 0)
    # The control's digests come from its entropy: those of this run are no other's.
    assert check_of(run("selftest_pass", "unordered", 6, checked=60, passed="0" * 32))["i"] == 0
    passed = digests(run("selftest_pass", "ordered"))[0]
    assert check_of(run("selftest_pass", "ordered", checked=60, passed=passed)) == {"event": "check", "result": "known"}


def test_a_real_one():
    check = check_of(run("gradient_gating", "ordered", checked=60, binary=WORKER))
    assert check["result"] == "passed" and 0 < check["share"] < 1


def test_a_reference_that_takes_too_long_is_given_up():
    check = check_of(run("selftest_slow_reference", "ordered", seed=99, checked=1))
    assert check == {"event": "check", "result": "given_up", "cause": "it takes more than 1 s on this host"}


@pytest.mark.parametrize("seed", [97, 98])
def test_a_reference_that_dies_is_given_up(start_service, seed):
    """Not the workload's crash alone, and not again for ever."""
    service = start_service()
    job = service.post_job(workloads=["selftest_dying_reference"], variants=["ordered"], seeds=[str(seed)], runs=4,
                           iterations=2)
    service.finish_job(job)
    found = sorted(service.items(f"/v1/runs?job={job}"), key=lambda run: run["id"])
    assert [(run["outcome"], run["check"] and run["check"]["state"]) for run in found] == \
        2 * [("crashed", "cut_off")] + (len(found) - 2) * [("completed", None)]
    assert len(found) > 2
    assert found[0]["cause"].startswith("while it compared with the float64 reference: killed by SIGABRT")
    cell = service.get(service.get("/v1/matrix")["variants"][0]["href"])
    assert (cell["verdict"], cell["check"]["state"], cell["check"]["cut_off"]) == ("failing", "cut_off", 2)


WORKLOADS = ("selftest_pass", "selftest_wrong", "selftest_wrong_control")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """(cells by workload and variant, runs, the matrix of a table of these, its text, its CSV)"""
    folder = tmp_path_factory.mktemp("checked")
    row = {key: value for key, value in TABLE["rows"][0].items() if key != "workload"}
    table = {**TABLE, "rows": [{**row, "workload": name, "title": name} for name in WORKLOADS]}
    service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"],
                      config={"profiles": written(folder, table)}).start()
    job = service.post_job(workloads=list(WORKLOADS), runs=3, iterations=4)
    service.finish_job(job)
    matrix = service.get("/v1/matrix?table=ours")
    cells = {(fact["workload"], fact["variant"]): service.get(fact["href"]) for fact in matrix["variants"]}
    found = (cells, service.items(f"/v1/runs?job={job}"), matrix, service.get("/v1/matrix.txt?table=ours"),
             list(csv.DictReader(io.StringIO(service.get("/v1/matrix.csv?table=ours")))))
    found += (service.get(cells["selftest_wrong", "at_first"]["digests"]),)
    assert service.stop() == 0
    assert service.fsck()[0] == 0
    return found


def test_42_everywhere_is_failing(measured):
    cell = measured[0]["selftest_wrong", "ordered"]
    assert cell["verdict"] == "failing" and cell["evidence"]["distinct_digests"] == 1
    assert cell["reason"].startswith("out of bound of the float64 reference: y[0] is 42, the reference ")
    assert cell["reason"].endswith("; 1 digest in 3 runs / 12 iterations")
    assert (cell["check"]["state"], cell["check"]["failed"]) == ("failed", 1)
    assert cell["check"]["worst"].startswith("y[0] is 42")


def test_what_is_wrong_earns_no_code_anywhere(measured):
    _, _, matrix, text, table, _ = measured
    codes = {row["title"]: row["cells"][0] for row in matrix["rows"]}
    assert {name: cell["code"] for name, cell in codes.items()} == {
        "selftest_pass": "TCD", "selftest_wrong": None, "selftest_wrong_control": None}
    assert codes["selftest_wrong"]["state"] == "failing"
    assert "out of bound of the float64 reference" in codes["selftest_wrong"]["reason"]
    assert {line["title"]: line["code"] for line in table} == {
        "selftest_pass": "TCD", "selftest_wrong": "", "selftest_wrong_control": ""}
    lines = [line for line in text.splitlines() if line.startswith("selftest_wrong")]
    assert any(" failing " in line for line in lines)
    assert not [line for line in lines if "TCD" in line or "reproducible" in line]
    assert "y[0] is 42" in text.replace("\n", " ")


def test_right_on_one_digest_and_wrong_on_another_is_failing(measured):
    cell = measured[0]["selftest_wrong", "at_first"]
    assert (cell["verdict"], cell["evidence"]["distinct_digests"]) == ("failing", 2)
    assert "; 2 digests in 3 runs / 12 iterations" in cell["reason"]


def test_the_evidence_says_which_bits_were_wrong(measured):
    checks = [digest["check"] for digest in measured[5]["items"]]
    assert sorted(checks, key=str) == ["failed", "passed"]


def test_random_numbers_are_no_control(measured):
    control = measured[0]["selftest_wrong_control", "unordered"]
    assert (control["verdict"], control["check"]["state"]) == ("failing", "failed")
    cell = measured[0]["selftest_wrong_control", "ordered"]
    assert (cell["verdict"], cell["check"]["state"]) == ("inconclusive", "passed")
    assert cell["reason"].startswith("the control varied, but it is out of bound of the float64 reference: y[")


def test_one_run_with_the_digest_is_checked(measured):
    cells, runs = measured[:2]
    cell = cells["selftest_pass", "ordered"]
    assert cell["verdict"] == "reproducible"
    assert cell["reason"].endswith("; within bound of the float64 reference")
    assert cell["check"] == {"state": "passed", "passed": 1, "failed": 0, "given_up": 0, "cut_off": 0,
                             "unanswered": 0, "digests_passed": 1, "share": 0, "worst": None}
    mine = [run for run in runs if (run["workload"], run["variant"]) == ("selftest_pass", "ordered")]
    checks = [run["check"] for run in mine if run["check"]]
    assert [check["state"] for check in checks] == ["passed"]
    assert checks[0]["digest"] == cell["digest"]


def test_two_digests_of_a_control_are_checked(measured):
    cells, runs = measured[:2]
    cell = cells["selftest_pass", "unordered"]
    assert (cell["verdict"], cell["check"]["passed"], cell["check"]["digests_passed"]) == ("varies", 2, 2)
    mine = [run for run in runs if (run["workload"], run["variant"]) == ("selftest_pass", "unordered")]
    checked = [run["check"]["digest"] for run in mine if run["check"]]
    assert len(checked) == len(set(checked)) == 2


def test_a_slow_reference_is_not_the_workloads_timeout(start_service):
    """The deadline is of what is computed: the reference sleeps for longer."""
    service = start_service()
    job = service.post_job(workloads=["selftest_slow_reference"], variants=["ordered"], seeds=["99"], runs=1,
                           iterations=1, timeout_seconds=2.5)
    service.finish_job(job)
    found = service.items(f"/v1/runs?job={job}")
    assert [(run["outcome"], run["check"]["state"]) for run in found] == [("completed", "passed")]


def test_an_older_worker_is_not_asked_and_not_blamed(start_service, tmp_path):
    worker = tmp_path / "older"
    worker.write_text(OLDER % {"worker": SELFTEST_WORKER})
    worker.chmod(0o755)
    service = start_service(worker=worker)
    job = service.post_job(workloads=["selftest_pass"], runs=2, iterations=2)
    service.finish_job(job)
    runs = service.items(f"/v1/runs?job={job}")
    assert {(run["outcome"], run["check"]["state"]) for run in runs} == {("completed", "asked")}
    facts = {fact["variant"]: fact for fact in service.get("/v1/matrix")["variants"]}
    assert facts["unordered"]["verdict"] == "varies"
    assert facts["ordered"]["verdict"] == "inconclusive"
    assert "too old" in facts["ordered"]["reason"]
    cell = service.get(facts["ordered"]["href"])
    assert cell["check"]["state"] == "asked" and cell["check"]["unanswered"] == 2


def test_a_worker_that_cannot_be_told_vouches_for_little(start_service, tmp_path):
    worker = tmp_path / "older"
    worker.write_text(NOT_TOLD % {"worker": SELFTEST_WORKER})
    worker.chmod(0o755)
    service = start_service(worker=worker)
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3, iterations=2))
    facts = {fact["variant"]: fact for fact in service.get("/v1/matrix")["variants"]}
    assert facts["unordered"]["verdict"] == "varies"
    assert facts["ordered"]["verdict"] == "inconclusive"
    assert facts["ordered"]["reason"] == ("the control varied, but only one of its digests was compared with the "
                                          "float64 reference, which its worker or agent is too old to do")
