"""Jobs that localise: one request finds the place where runs diverge."""
import os

import pytest

from service import ROOT, SELFTEST_WORKER, Service

# A training in Python: "mix" of step 2 adds a number that no two processes share.
TRAINING = """
import array, os, sys
sys.path.insert(0, sys.argv[1])
import reprod_probe as probe

for _ in probe.iterations(inputs={"x": array.array("f", range(8))}):
    values = array.array("f", range(8))
    for step in range(4):
        scaled = array.array("f", [v * 0.5 for v in values])
        probe.monitor(scaled, "scale", inputs=[values])
        mixed = array.array("f", scaled)
        if step == 2:
            mixed[5] += int.from_bytes(os.urandom(2), "little") / 1024
        probe.monitor(mixed, "mix", inputs=[scaled])
        values = mixed
        probe.step()
    probe.finish(values, sum(values))
"""
LOCALISATIONS = int(os.environ.get("REPROD_LOCALISATIONS", "2"))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("localise"), worker=SELFTEST_WORKER,
                      options=["--no-survey"]).start()
    yield service
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text


def localise(service, workload, variant, seconds=600, **more):
    """(id, the localisation when its job has ended)"""
    job = service.post_job(workloads=[workload], variants=[variant], localise=True, **more)
    ended = service.finish_job(job, seconds)
    assert ended["state"] == "finished"
    assert ended["progress"]["runs_done"] == ended["progress"]["runs_total"]
    shown = service.get(f"/v1/jobs/{job}/localisation")
    assert ended["localisation"]["state"] == shown["state"]
    return job, shown


@pytest.mark.parametrize("number", range(LOCALISATIONS))
def test_one_operation_of_forty_at_one_step_in_one_of_twenty_runs(service, number):
    # That no run in 600 is a rare one, which is what luck would have to be: 1 in 10^13.
    job, found = localise(service, "selftest_rare_training", "unordered", 600, runs_max=600)
    print(number, found["reason"])
    assert found["state"] == "localised", found
    assert (found["place"], found["step"], found["iteration"]) == ("op23/forward", 37, 0)
    assert found["search"]["first_difference"]["place"] == found["place"]
    assert 2 <= found["runs_searched"] <= 600
    tensors = found["difference"]["tensors"]
    assert len(tensors) == 1
    assert 0 < tensors[0]["signature"]["differ"] <= tensors[0]["signature"]["elements"]
    text = service.get(f"/v1/jobs/{job}/localisation.txt")
    assert "op23/forward" in text and "units in the last place" in text


@pytest.mark.flavour
def test_what_differs_in_every_run(service):
    job, found = localise(service, "selftest_pass", "unordered", runs=3, runs_max=9)
    assert found["state"] == "localised"
    assert found["place"] == "output/y" and found["step"] == 0
    assert found["runs_searched"] == 3
    assert found["search"]["pairs_parted"] == 3
    difference = found["difference"]
    assert difference["a"] != difference["b"]
    signature = difference["tensors"][0]["signature"]
    assert (signature["elements"], signature["differ"]) == (64, 1)
    assert (signature["first"], signature["last"]) == (0, 0)
    assert sum(signature["bits"]) >= 1 and int(signature["max_ulp"]) >= 1
    # The cell's spread names these elements, apart from the sums of all its runs.
    runs = service.items(f"/v1/runs?job={job}")
    spread = service.get("/v1/cells/{cell}".format(**runs[0]))["spread"]
    assert spread["runs"] >= len(runs) and spread["weight_sum"]["distinct"] > 1
    assert spread["elements"] == {
        "place": "output/y", "output": 0, "name": difference["tensors"][0]["name"], "dtype": "float32",
        "elements": 64, "differ": 1, "element_ulp": signature["max_ulp"], "a": difference["a"],
        "b": difference["b"], "localisation": f"/v1/jobs/{job}/localisation"}


def test_an_honest_negative(service):
    job, found = localise(service, "selftest_pass", "ordered", runs_max=8)
    assert found["state"] == "not_found"
    assert found["reason"] == ("no pair parted in 8 runs; per-run difference probability "
                               "< 35 % (95 %)")
    assert found["place"] is None and found["difference"] is None
    assert found["runs_searched"] == 8 and found["runs_captured"] == 0
    assert 0.34 < found["search"]["difference_probability_upper_bound"] < 0.35
    assert "no pair parted in 8 runs" in service.get(f"/v1/jobs/{job}/localisation.txt")


def test_runs_that_fail_prove_nothing(service):
    _, found = localise(service, "selftest_crash", "compute", runs=2, runs_max=9)
    assert found["state"] == "failed"
    assert found["reason"] == "none of 2 runs completed"
    _, found = localise(service, "selftest_unsupported", "ordered", runs=2, runs_max=9)
    assert found["state"] == "failed"
    assert "unsupported" in found["reason"]


def test_cancelled(service):
    job = service.post_job(workloads=["selftest_pass"], variants=["ordered"], localise=True,
                           runs_max=10000)
    service.wait(lambda: service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] > 0, "a run")
    assert service.request("DELETE", f"/v1/jobs/{job}")[0] == 200
    shown = service.get(f"/v1/jobs/{job}/localisation")
    assert shown["state"] == "cancelled" and shown["search"] is None


def test_what_cannot_be_localised(service):
    def refused(**request):
        status, _, body = service.request("POST", "/v1/jobs", {"localise": True, **request})
        assert status == 422, body
        return {error["pointer"] for error in body["errors"]}

    assert refused(workloads=["selftest_pass"]) == {"/variants"}
    assert refused(variants=["ordered"]) == {"/workloads"}
    assert refused(workloads=["selftest_pass"], variants=["ordered"], seeds=[1, 2]) == {"/seeds"}
    assert refused(workloads=["selftest_pass"], variants=["ordered"], runs=1) == {"/runs"}
    job = service.post_job(workloads=["selftest_pass"], variants=["ordered"], runs=1)
    assert service.request("GET", f"/v1/jobs/{job}/localisation")[0] == 404


@pytest.mark.parametrize("variant, state", [("unordered", "localised"), ("ordered", "not_found")])
def test_killed_in_the_middle(tmp_path, variant, state):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    job = service.post_job(workloads=["selftest_pass"], variants=[variant], localise=True, runs=12,
                           runs_max=14)
    for more in (3, 7):
        service.wait(lambda: service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] >= more,
                     "progress")
        service.kill()
        service.start()
    assert service.finish_job(job)["state"] == "finished"
    found = service.get(f"/v1/jobs/{job}/localisation")
    assert found["state"] == state
    assert found["runs_searched"] == (12 if state == "localised" else 14)
    assert found["search"]["runs"] == found["runs_searched"]
    if state == "localised":
        assert found["place"] == "output/y"
        assert found["difference"]["tensors"][0]["signature"]["differ"] == 1
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text


def test_a_training_of_somebody_else(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING)
    service = Service(tmp_path, options=["--no-survey"], config={"workloads": [
        {"name": "theirs", "command": ["python3", "train.py", str(ROOT / "workloads" / "python")], "subject": "framework", "subject_name": "own",
         "variants": [{"name": "plain", "control": True}]}]}).start()
    _, found = localise(service, "theirs", "plain", runs=3, runs_max=9)
    assert (found["state"], found["place"], found["step"]) == ("localised", "mix", 2), found
    signature = found["difference"]["tensors"][0]["signature"]
    assert (signature["elements"], signature["differ"], signature["first"]) == (8, 1, 5)
    assert service.stop() == 0


def test_a_real_training(tmp_path):
    service = Service(tmp_path, options=["--no-survey"]).start()
    _, found = localise(service, "train_cnn", "unordered", runs=3, runs_max=60)
    assert found["state"] == "localised", found
    root = found["search"]["root"]
    assert root["place"] == found["place"]
    print(found["reason"])
    # Not where all differences end up, nor what a step begins with, but a computation.
    assert not root["place"].startswith(("output/", "data/", "rng/", "variable/")), root
    assert found["difference"] is None or found["difference"]["tensors"][0]["signature"]["differ"]
    assert service.stop() == 0
