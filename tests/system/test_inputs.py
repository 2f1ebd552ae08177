"""Runs of a case that disagree about their inputs: contested, outvoted, decided by a person."""
import json
import shutil

import pytest

from service import LIMIT, ROOT, Service

FIXTURE = ROOT / "tests" / "fixtures" / "external" / "broken.py"
RIGHT, WRONG = "1".rjust(32, "a"), "b" * 32


@pytest.fixture
def service(tmp_path):
    shutil.copy(FIXTURE, tmp_path / "broken.py")
    own = {"name": "own", "command": ["python3", "broken.py"], "subject": "framework",
           "subject_name": "own", "no_control": "for the test",
           "variants": [{"name": "steady"}, {"name": "other_inputs"}]}
    shared = Service(tmp_path, options=["--no-survey"], config={"workloads": [own]})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]
    code, text = shared.fsck()
    assert code == 0, text


def run(service, variant):
    job = service.post_job(workloads=["own"], variants=[variant], runs=1, iterations=1)
    assert service.finish_job(job, LIMIT)["state"] == "finished"


def outcomes(service):
    """Oldest first."""
    return [(each["variant"], each["outcome"]) for each in service.items("/v1/runs")][::-1]


def cell(service, variant):
    [own] = [fact for fact in service.get("/v1/matrix")["variants"]
             if (fact["workload"], fact["variant"]) == ("own", variant)]
    return own["verdict"], own["reason"]


def decide(service, case, **said):
    return service.request("POST", f"/v1/inputs/{case}/decision", said)


def test_a_bad_first_run_is_outvoted_and_a_person_can_decide(service):
    run(service, "other_inputs")
    assert service.items("/v1/inputs") == []
    run(service, "steady")
    [contested] = service.items("/v1/inputs")
    assert contested["state"] == "contested" and contested["digest"] is None
    assert {(camp["digest"], camp["runs"]) for camp in contested["camps"]} == {
        (RIGHT, 1), (WRONG, 1)}
    assert outcomes(service) == [("other_inputs", "completed"), ("steady", "completed")]
    for variant in ("steady", "other_inputs"):
        verdict, reason = cell(service, variant)
        assert verdict == "inconclusive" and "its inputs are contested" in reason, reason
        assert RIGHT[:8] in reason and WRONG[:8] in reason
    run(service, "steady")
    [agreed] = service.items("/v1/inputs")
    assert agreed["state"] == "agreed" and agreed["digest"] == RIGHT
    expected = [("other_inputs", "invalid"), ("steady", "completed"), ("steady", "completed")]
    assert outcomes(service) == expected
    assert cell(service, "other_inputs")[0] == "failing"
    case = agreed["id"]
    status, _, decided = decide(service, case, digest=WRONG, reason="the others read a stale file")
    assert status == 200 and decided["state"] == "decided" and decided["digest"] == WRONG
    flipped = [("other_inputs", "completed"), ("steady", "invalid"), ("steady", "invalid")]
    assert outcomes(service) == flipped
    assert "the others read a stale file" in service.log.read_text()
    service.stop()
    service.start()
    assert outcomes(service) == flipped
    [kept] = service.items("/v1/inputs")
    assert kept["reason"] == "the others read a stale file" and kept["decided_at"]
    status, _, withdrawn = decide(service, case, digest=None, reason="they did not")
    assert status == 200 and withdrawn["state"] == "agreed" and withdrawn["digest"] == RIGHT
    assert outcomes(service) == expected
    assert "agreed" in service.request("GET", "/v1/inputs.txt")[2]


def test_a_wrong_decision_changes_nothing(service):
    run(service, "steady")
    for said, status, words in (
            ({"digest": "c" * 32, "reason": "x"}, 422, "has inputs with digest cccc"),
            ({"digest": "c" * 31, "reason": "x"}, 422, "32 hex digits"),
            ({"digest": RIGHT}, 422, "reason"),
            ({"digest": RIGHT, "reason": ""}, 422, "reason"),
            ({"digest": RIGHT, "reason": "x" * 256}, 422, "reason"),
            ({"reason": "x"}, 422, "digest"),
            ({"digest": RIGHT, "reason": "x", "by": "me"}, 422, "by")):
        code, _, problem = decide(service, 1, **said)
        assert code == status and words in json.dumps(problem), problem
    code, _, problem = decide(service, 999, digest=RIGHT, reason="x")
    assert code == 404, problem
    code, _, problem = service.request("POST", "/v1/inputs/1/decision", "[]")
    assert code == 415 or code == 422, problem
    assert service.items("/v1/inputs") == []
