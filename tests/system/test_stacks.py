"""Several stacks on one device: which of them a job measures, and where its runs count."""
import pathlib
import shutil

import pytest

from service import BUILD, SELFTEST_WORKER, Service
from test_onednn import LIBRARY, installed

WORKER = BUILD / "reprod-worker"
TWO = {"name": "two", "worker": str(WORKER), "threads": 2, "library_path": "/opt/two:/opt/driver"}
THREE = {"name": "three", "worker": str(WORKER), "threads": 3}
BROKEN = {"name": "broken", "worker": "/nonexistent/worker"}
CASE = {"workloads": ["reduce_sum"], "variants": ["ordered"], "runs": 2, "iterations": 2}


@pytest.fixture(scope="module")
def stacked(tmp_path_factory):
    shared = Service(tmp_path_factory.mktemp("stacks"), options=["--no-survey"],
                     config={"stacks": [TWO, THREE, BROKEN]})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def finished_runs(service, **request):
    job = service.post_job(**{**CASE, **request})
    assert service.finish_job(job)["state"] == "finished"
    runs = service.items(f"/v1/runs?job={job}")
    assert [run["outcome"] for run in runs] == ["completed"] * len(runs)
    return runs


def stacks_of(runs):
    return sorted(run["stack"] for run in runs)


def test_stacks_side_by_side(stacked):
    two, three, broken = stacked.get("/v1/stacks")["items"]
    assert [two["name"], three["name"], broken["name"]] == ["two", "three", "broken"]
    assert two["worker"] == three["worker"] == str(WORKER)
    assert two["library_path"] == TWO["library_path"] and three["library_path"] is None
    assert two["versions"] == three["versions"] and two["cause"] is None
    assert two["devices"] == three["devices"]
    assert "exit status" in broken["cause"] and broken["devices"] is None


def test_a_device_and_its_stacks(stacked):
    [device] = stacked.get("/v1/devices")["items"]
    assert device["stack"] == "two" and device["stacks"] == ["two", "three"]
    status, _, metrics = stacked.request("GET", "/metrics")
    assert status == 200 and "\nreprod_devices 1\n" in metrics
    assert "\nreprod_devices_online 1\n" in metrics


def test_a_job_measures_the_first_stack(stacked):
    assert stacks_of(finished_runs(stacked)) == ["two"] * 2


@pytest.mark.parametrize("stacks", ["all", ["three", "two"]])
def test_a_job_measures_the_stacks_it_names(stacked, stacks):
    runs = finished_runs(stacked, stacks=stacks)
    assert stacks_of(runs) == ["three"] * 2 + ["two"] * 2
    environments = {run["stack"]: run["environment"] for run in runs}
    assert len(set(environments.values())) == 2
    for name, threads in ("two", 2), ("three", 3):
        facts = stacked.get(f"/v1/environments/{environments[name]}")["facts"]
        assert facts["threads"] == threads


def test_the_matrix_shows_the_first_stack(stacked):
    """Not whichever ran last: else what is on the page would change under its reader."""
    [device] = stacked.get("/v1/devices")["items"]
    for stack in ("two", "three"):
        [environment] = {run["environment"] for run in finished_runs(stacked, stacks=[stack])}
        if stack == "two":
            first = environment
        assert stacked.get("/v1/matrix")["environment"]["id"] == first
        of_device = stacked.get(f"/v1/matrix?device={device['id']}")
        assert of_device["environment"]["id"] == first
    assert environment != first
    of_three = stacked.get(f"/v1/matrix?environment={environment}")
    assert of_three["environment"]["id"] == environment


def test_one_run_at_a_time_on_a_device(stacked):
    runs = finished_runs(stacked, stacks="all", runs=5)
    spans = sorted((run["started_at"], run["finished_at"]) for run in runs)
    assert len(spans) == 10
    for (_, ended), (started, _) in zip(spans, spans[1:]):
        assert ended <= started


def test_a_survey_measures_every_stack(stacked):
    runs = finished_runs(stacked, survey=True)
    assert stacks_of(runs) == ["three"] * 2 + ["two"] * 2


@pytest.mark.parametrize("stacks, kind, pointer, words", [
    (["two", "tree"], "unknown-stack", "/stacks/1", "did you mean 'three'?"),
    ("two", "invalid-request", "/stacks", "must be an array of 1 to 1000 names, or \"all\""),
    ([], "invalid-request", "/stacks", "leave the member out"),
])
def test_stacks_that_are_refused(stacked, stacks, kind, pointer, words):
    status, _, problem = stacked.request("POST", "/v1/jobs", {**CASE, "stacks": stacks})
    assert status == 422 and problem["type"] == f"/problems/{kind}", problem
    [error] = problem["errors"]
    assert error["pointer"] == pointer and words in error["detail"]


def test_a_stack_that_is_not_usable_may_be_so_later(stacked):
    status, headers, problem = stacked.request("POST", "/v1/jobs", {**CASE, "stacks": ["broken"]})
    assert status == 503 and headers["Retry-After"], problem
    assert "stack broken of host" in problem["detail"] and "is not usable" in problem["detail"]


def test_the_first_survey_has_every_stack(tmp_path):
    """Also where the workers of the stacks have different workloads."""
    stacks = [{"name": "own", "worker": str(SELFTEST_WORKER)}, THREE]
    service = Service(tmp_path, config={"stacks": stacks})
    service.start()
    try:
        service.wait(lambda: service.get("/v1/jobs")["items"], "a survey")
        [job] = service.get("/v1/jobs")["items"]
        assert job["survey"] and job["request"] == {"survey": True}
        items = service.get(f"/v1/jobs/{job['id']}")["items"]
        service.request("DELETE", f"/v1/jobs/{job['id']}")
    finally:
        service.stop()
    by_stack = {name: {item["workload"] for item in items if item["stack"] == name}
                for name in ("own", "three")}
    assert "conv_wgrad" in by_stack["own"] & by_stack["three"]
    assert by_stack["own"] - by_stack["three"], "self-tests that only one worker has"
    assert not by_stack["three"] - by_stack["own"]


@installed
def test_a_library_under_test_beside_the_processor_alone(start_service):
    """Surveyed with both stacks, and only the one that has the library shows its workloads."""
    onednn = {"name": "onednn", "worker": str(WORKER), "env": {"REPROD_ONEDNN": LIBRARY}}
    missing = {"name": "missing", "worker": str(WORKER), "env": {"REPROD_ONEDNN": "/none.so"}}
    cpu = {"name": "cpu", "worker": str(WORKER)}
    service = start_service(worker=None, config={"stacks": [cpu, onednn, missing]})
    stacks = {stack["name"]: stack for stack in service.get("/v1/stacks")["items"]}
    assert stacks["cpu"]["problems"] == {} and "onednn" not in stacks["cpu"]["versions"]
    assert stacks["onednn"]["versions"]["onednn"].startswith("2.")
    assert stacks["missing"]["problems"]["onednn"].startswith("/none.so is not installed")
    job = service.post_job(survey=True, workloads=["onednn_matmul", "reduce_sum"], runs=2,
                           iterations=2, stacks=["cpu", "onednn"])
    assert service.finish_job(job)["state"] == "finished"
    outcomes = {(run["stack"], run["workload"], run["outcome"])
                for run in service.items(f"/v1/runs?job={job}")}
    assert outcomes == {("cpu", "onednn_matmul", "unsupported"),
                        ("cpu", "reduce_sum", "completed"),
                        ("onednn", "onednn_matmul", "completed"),
                        ("onednn", "reduce_sum", "completed")}
    titles = [each["title"] for each in service.items("/v1/environments")]
    assert sorted("oneDNN" in title for title in titles) == [False, True]


CUDA_WORKER = BUILD / "reprod-worker-cuda"
STUB = pathlib.Path("/usr/local/cuda/lib64/stubs/libcuda.so")


@pytest.mark.skipif(not CUDA_WORKER.exists() or not STUB.exists(), reason="CUDA is not installed")
def test_a_driver_in_the_library_path(start_service, tmp_path):
    """As the user-mode driver of cuda-compat: a stack can bring its own.  The stub of the toolkit
    stands for it; it says that it is one."""
    shutil.copy(STUB, tmp_path / "libcuda.so.1")
    stack = {"name": "compat", "worker": str(CUDA_WORKER), "library_path": str(tmp_path)}
    cpu = {"name": "cpu", "worker": str(WORKER)}
    service = start_service(worker=None, config={"stacks": [cpu, stack]})
    _, compat = service.get("/v1/stacks")["items"]
    assert compat["devices"] == [] and "34" in compat["cause"]
