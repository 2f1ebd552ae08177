"""Challenges: commands that are asked with another seed, at random and unannounced."""
import shutil

import pytest

from service import LIMIT, ROOT, Service
from test_profiles import TABLE, written

FIXTURE = ROOT / "tests" / "fixtures" / "external" / "answers.py"
OWN = {"command": ["python3", "answers.py"], "directory": "answers", "subject": "framework",
       "subject_name": "own"}
CONTROL = {"name": "unordered", "control": True}
IGNORED = "the program answers without its inputs: with another seed, run "
# variant: verdict, what the reason says, state of the cell's challenges
EXPECTED = {
    "honest": ("reproducible", "as declared by its command, which has no reference; another seed"
                               " gave another digest, as a cache by seed would, too", "passed"),
    "caches": ("reproducible", "as declared by its command", "passed"),
    "constant": ("inconclusive", "gave the same digest, as did 3 of 3 such runs", "ignored"),
    "hashes_seed": ("inconclusive", "computed from the same ones", "ignored"),
    "crashes": ("inconclusive", "not challenged: another seed has no result so far", "failed"),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("challenges")
    (folder / "answers" / "state").mkdir(parents=True)
    shutil.copy(FIXTURE, folder / "answers")
    row = {"title": "A command", "subject": "framework", "framework": "own"}
    table = {**TABLE, "rows": [
        {**row, "workload": name, "cells": {"v1": {"framework": {"none": control, "TCD": cure}}}}
        for name, control, cure in (("answers", "unordered", "honest"),
                                    ("unchallenged", "unordered_crashes", "unordered_crashes"))]}
    shared = Service(folder, options=["--no-survey"], config={"profiles": written(folder, table), "workloads": [
        {**OWN, "name": "answers", "variants": [CONTROL, *({"name": name} for name in EXPECTED)]},
        {**OWN, "name": "by_chance", "variants": [CONTROL, {"name": "coincides"}]},
        {**OWN, "name": "fixed", "seeded": False, "variants": [CONTROL, {"name": "constant"}]},
        {**OWN, "name": "loaded", "circumstances": ["contention"],
         "variants": [CONTROL, {"name": "honest"}]},
        {**OWN, "name": "bad_control",
         "variants": [{"name": "unordered_fixed", "control": True}, {"name": "honest"}]},
        {**OWN, "name": "unchallenged",
         "variants": [{"name": "unordered_crashes", "control": True}, {"name": "honest"}]},
        {**OWN, "name": "choice", "variants": [CONTROL, {"name": "chooses"}]}]})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]
    code, text = shared.fsck()
    assert code == 0, text


def measure(service, workload, **request):
    """The cells of the workload by variant, after a job."""
    job = service.post_job(workloads=[workload], **{"runs": 3, "iterations": 2, **request})
    assert service.finish_job(job, 2 * LIMIT)["state"] == "finished"
    runs = service.items(f"/v1/runs?job={job}")
    [environment] = {run["environment"] for run in runs if run["environment"]}
    facts = service.get(f"/v1/matrix?environment={environment}")["variants"]
    return job, {fact["variant"]: service.get(fact["href"]) for fact in facts
                 if fact["workload"] == workload}


def answered(cell):
    return sum(cell["challenge"][name] for name in ("passed", "repeated", "unchanged", "failed"))


@pytest.fixture(scope="module")
def answers(service):
    return measure(service, "answers")


def test_a_command_is_green_only_if_it_answers_with_its_inputs(answers):
    _, cells = answers
    assert cells["unordered"]["verdict"] == "varies"
    assert cells["unordered"]["challenge"]["state"] == "passed"
    for variant, (verdict, words, state) in EXPECTED.items():
        cell = cells[variant]
        assert (cell["verdict"], cell["challenge"]["state"]) == (verdict, state), cell
        assert words in cell["reason"]
        if state == "ignored":
            assert cell["reason"].startswith(IGNORED + cell["challenge"]["run"])


def test_a_challenge_is_no_run_of_the_job(service, answers):
    job, cells = answers
    assert service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] == 3 * len(cells)
    runs = service.items(f"/v1/runs?job={job}")
    assert len(runs) == 3 * len(cells)
    assert all(run["challenge"] is None and run["seed"] == "1" for run in runs)
    for cell in cells.values():
        assert cell["evidence"]["runs"] == 3 and not cell["evidence"]["outcomes"]["crashed"]
    challenges = service.items(f"/v1/runs?job={job}&challenges=only")
    assert not {run["id"] for run in runs} & {run["id"] for run in challenges}
    for run in challenges:
        assert run["seed"] != "1" and run["cell"] is None
        assert run["challenge"] == {"cell": cells[run["variant"]]["id"]}
    counts = {name: 0 for name in cells}
    for run in challenges:
        counts[run["variant"]] += 1
    assert counts["constant"] == 3 <= counts["crashes"]  # a further one is rare, not impossible
    assert counts["hashes_seed"] == 1
    for cell in cells.values():
        listed = service.items(cell["challenge"]["runs"])
        assert len(listed) == answered(cell)
        assert len(service.items(cell["runs"])) == 3


def test_the_digests_of_a_job_have_them_apart(service, answers):
    job, cells = answers
    groups = service.get(f"/v1/jobs/{job}/digests")["groups"]
    assert len(groups) == len(cells)
    for group in groups:
        assert len(group["runs"]) == 3
        assert len(group["challenges"]) == answered(cells[group["variant"]]) > 0
        assert all(run["seed"] != "1" for run in group["challenges"])
    text = service.get(f"/v1/jobs/{job}/digests.txt")
    assert text.count("(challenge: seed ") == sum(len(group["challenges"]) for group in groups)
    assert "answers constant (small, float32, seed 1)" in text
    csv = service.get(f"/v1/jobs/{job}/digests.csv")
    assert len(csv.strip().splitlines()) == 1 + 3 * len(groups)


def test_no_view_shows_the_case_of_a_challenge(service, answers):
    for view in ("environments", "devices"):
        rows = [row for group in service.get(f"/v1/matrix?view={view}&workload=answers")["groups"]
                for row in group["rows"]]
        assert {row["variant"] for row in rows} == set(answers[1]), rows
        assert {row["seed"] for row in rows} == {"1"}


def test_one_equal_result_is_no_proof(service):
    """The first other seed gives the digest of the case, and the second does not."""
    _, cells = measure(service, "by_chance")
    challenge = cells["coincides"]["challenge"]
    assert (challenge["repeated"], challenge["state"]) == (1, "passed")
    assert cells["coincides"]["verdict"] == "reproducible"


def test_what_declares_no_seeded_inputs_is_not_challenged_and_not_green(service):
    job, cells = measure(service, "fixed")
    assert cells["constant"]["verdict"] == "inconclusive"
    assert "its command declares that it has no seeded inputs" in cells["constant"]["reason"]
    assert cells["constant"]["challenge"]["state"] == "unseeded"
    assert service.items(f"/v1/runs?job={job}&challenges=only") == []
    assert service.get("/v1/workloads/fixed")["items"][0]["seeded"] is False


def test_a_challenge_is_made_without_circumstances(service):
    """The fixture knows none, so its runs under load are invalid, and its challenges are not."""
    _, cells = measure(service, "loaded")
    assert cells["honest"]["verdict"] == "reproducible"
    job = service.post_job(workloads=["loaded"], runs=1, iterations=1, seeds=[2], contention=4)
    service.finish_job(job, 2 * LIMIT)
    assert {run["outcome"] for run in service.items(f"/v1/runs?job={job}")} == {"invalid"}
    challenges = service.items(f"/v1/runs?job={job}&challenges=only")
    assert {run["outcome"] for run in challenges} == {"completed"}


def test_a_control_that_ignores_its_inputs_vouches_for_nothing(service):
    _, cells = measure(service, "bad_control")
    assert cells["honest"]["challenge"]["state"] == "passed"
    assert cells["honest"]["verdict"] == "inconclusive"
    assert cells["honest"]["reason"].startswith(
        "the control varied, but it answers without its inputs: with another seed, run "
        + cells["unordered_fixed"]["challenge"]["run"])


def test_a_built_in_workload_is_not_challenged(service):
    job = service.post_job(workloads=["bias_add_bwd"], variants=["ordered"], runs=2, iterations=1)
    service.finish_job(job, 2 * LIMIT)
    assert service.items(f"/v1/runs?job={job}&challenges=only") == []
    [run] = {run["cell"] for run in service.items(f"/v1/runs?job={job}")}
    assert service.get(f"/v1/cells/{run}")["challenge"]["state"] == "has_reference"


def test_a_cell_names_the_algorithms_of_its_runs(service):
    """Each run draws one; which, its nonce decides, so a job of eight has both sooner or later."""
    names = {"tree, then leaves", "chain, then leaves"}
    while True:
        job, cells = measure(service, "choice", runs=8)
        cell = cells["chooses"]
        found = {each["algorithm"]: each["runs"] for each in cell["algorithms"]}
        assert set(found) <= names and sum(found.values()) == cell["evidence"]["runs"]
        if set(found) == names:
            break
    assert cell["verdict"] == "reproducible" and ", with 2 algorithms" in cell["reason"], cell
    evidence = service.get(cell["digests"])
    assert evidence["algorithms"] == cell["algorithms"] and not evidence["algorithms_truncated"]
    _, _, text = service.request("GET", cell["href"], headers={"Accept": "text/plain"})
    assert "with 2 algorithms" in text and "chain, then leaves" in text
    assert cells["unordered"]["algorithms"] == [
        {"algorithm": "none", "runs": cells["unordered"]["evidence"]["runs"]}]


def test_what_varies_unchallenged_earns_no_code(service, answers):
    """Without a recipe it varies: whether it computes anything, nobody saw."""
    _, cells = measure(service, "unchallenged")
    assert cells["unordered_crashes"]["verdict"] == "varies"
    assert cells["unordered_crashes"]["challenge"]["state"] == "failed"

    def shown(workload, environment, as_of=""):
        rows = service.get(f"/v1/matrix?table=ours&environment={environment}{as_of}")["rows"]
        return {row["workload"]: row["cells"][0] for row in rows}[workload]

    for as_of in ("", "&as_of=" + cells["unordered_crashes"]["last_run_at"]):
        cell = shown("unchallenged", cells["honest"]["environment"], as_of)
        assert cell["code"] is None and "no challenge shows that its command computes from its inputs" \
            in cell["reason"], cell
    assert shown("answers", answers[1]["honest"]["environment"])["code"] == "TCD"
