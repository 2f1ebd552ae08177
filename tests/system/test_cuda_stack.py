"""The stack of the CUDA worker in the service: on a machine without a GPU, where it must
trouble nobody, and with the simulator in the place of a GPU, from request to matrix."""
import os
import pathlib
import sys

import pytest

from service import BUILD, IMITATIONS, SIMULATOR

ONE_WRONG = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "one_wrong_device.py"
CUDA = BUILD / "reprod-worker-cuda"
CASE = {"workloads": ["bias_add_bwd"], "runs": 2, "iterations": 2}

needs_no_gpu = pytest.mark.skipif(
    not CUDA.exists() or any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))),
    reason="needs the CUDA worker, and a machine without a GPU")


@needs_no_gpu
def test_without_a_gpu_the_stack_says_why_and_nothing_else_changes(start_service):
    both = start_service(worker=None)
    alone = start_service(worker=None, config={"stacks": [{"name": "cpu"}]})
    cpu, cuda = both.get("/v1/stacks")["items"]
    assert [cpu["name"], cuda["name"]] == ["cpu", "cuda"]
    assert cpu["cause"] is None
    assert cuda["cause"].startswith("no NVIDIA driver") and cuda["devices"] == []
    for path in ("/healthz", "/readyz"):
        assert both.get(path) == alone.get(path)
    devices = [[(device["id"], device["stacks"]) for device in service.get("/v1/devices")["items"]]
               for service in (both, alone)]
    assert devices[0] == devices[1] and len(devices[0]) == 1
    runs = []
    for service in (both, alone):
        job = service.post_job(survey=True)
        runs.append(service.get(f"/v1/jobs/{job}")["progress"]["runs_total"])
        assert service.request("DELETE", f"/v1/jobs/{job}")[0] in (200, 202, 204)
        service.finish_job(job)
    assert runs[0] == runs[1]


@pytest.fixture
def simulated(start_service):
    if not SIMULATOR.exists():
        pytest.skip("this flavour has no simulator")
    return start_service(worker=None, config={"stacks": [
        {"name": "cpu"},
        {"name": "sim", "worker": str(SIMULATOR), "env": {"REPROD_CUDASIM_SEED": "3"}}]})


def test_a_cuda_device_from_request_to_matrix(simulated):
    job = simulated.post_job(**CASE)
    assert simulated.finish_job(job)["state"] == "finished"
    runs = simulated.items(f"/v1/runs?job={job}")
    assert {run["outcome"] for run in runs} == {"completed"}
    of = {backend: {run["variant"]: run for run in runs if run["device"].startswith(backend)}
          for backend in ("cpu:", "sim:")}
    assert set(of["sim:"]) == {"unordered", "ordered", "patched"} == set(of["cpu:"])
    for variant in ("ordered", "patched"):
        assert of["sim:"][variant]["digest"] == of["cpu:"][variant]["digest"]
        assert of["sim:"][variant]["weight_sum_bits"] == of["cpu:"][variant]["weight_sum_bits"]
    assert of["sim:"]["unordered"]["distinct_digests"] == 2
    environment = of["sim:"]["ordered"]["environment"]
    facts = simulated.get(f"/v1/environments/{environment}")["facts"]
    assert facts["backend"] == "cuda" and facts["model"] == "simulator, no GPU"
    matrix = simulated.get(f"/v1/matrix?environment={environment}")
    source, model = [row for row in matrix["rows"] if row["workload"] == "bias_add_bwd"]
    assert (source["subject_name"], source["is_source"]) == ("TensorFlow", True)
    assert {cell["state"] for cell in source["cells"]} == {"unmeasured", "absent"}
    assert model["subject"] == "model" and "measured" in {cell["state"] for cell in model["cells"]}


@pytest.mark.long
def test_one_of_eight_simulated_devices_is_named_by_the_first_survey(start_service, tmp_path):
    """The agent, the worker and its code are those of a GPU; only the device is simulated."""
    if not SIMULATOR.exists():
        pytest.skip("this flavour has no simulator")
    worker = tmp_path / "worker"
    worker.write_text(f"#!/bin/sh\nexec {sys.executable} {ONE_WRONG} \"$@\"\n")
    worker.chmod(0o755)
    service = start_service(worker=None, options=(), config={
        "stacks": [{"name": "sim", "worker": str(worker),
                    "env": {"REPROD_CUDASIM_DEVICES": "8", "REPROD_CUDASIM_SEED": "3", "ONE_WRONG_DEVICE": "sim:5",
                            "ONE_WRONG_WORKER": str(SIMULATOR)}}]})
    service.wait(lambda: service.get("/v1/jobs")["items"] and
                 all(job["state"] == "finished" for job in service.get("/v1/jobs")["items"]), "the survey")
    cells = {cell["variant"]: cell for cell in (service.get(f"/v1/cells/{n}") for n in (1, 2, 3))}
    assert cells["unordered"]["verdict"] == "varies"
    for variant in ("ordered", "patched"):
        dissent = cells[variant]["dissent"]
        assert cells[variant]["verdict"] == "devices_disagree", cells[variant]
        assert [d["device"] for d in dissent["dissenters"]] == ["sim:5"]
        assert (dissent["majority"]["devices"], dissent["majority"]["verdict"]) == (7, "reproducible")
    assert [d["id"] for d in service.get("/v1/devices")["items"] if d["dissents"]] == ["sim:5"]
    assert {f["device"] for f in service.get("/v1/findings")["items"]
            if f["finding"] == "device dissents from its equals"} == {"sim:5"}
    assert '\nreprod_device_dissents{device="sim:5"} 2\n' in service.get("/metrics")
    assert service.fsck()[0] == 0


def test_a_training_has_one_line_on_both_backends(simulated):
    job = simulated.post_job(workloads=["train_cnn"], variants=["ordered"], runs=2, iterations=1)
    assert simulated.finish_job(job)["state"] == "finished"
    groups = simulated.get(f"/v1/jobs/{job}/digests")["groups"]
    assert sorted(len(group["runs"]) for group in groups) == [2, 2]
    lines = {(run["weight_sum"], run["loss"]) for group in groups for run in group["runs"]}
    [(weight_sum, loss)] = lines
    text = simulated.request("GET", f"/v1/jobs/{job}/digests.txt")[2]
    assert text.count(f"  {weight_sum} | {loss}") == 4, "one iteration has no time"


@pytest.fixture
def with_cudnn(start_service):
    """The simulator in a stack of its own, with an imitation of cuDNN that races where cuDNN says
    that it does."""
    if not SIMULATOR.exists():
        pytest.skip("this flavour has no simulator")
    return start_service(worker=None, config={"stacks": [
        {"name": "cpu"},
        {"name": "sim", "worker": str(SIMULATOR), "library_path": str(IMITATIONS / "cudnn"),
         "env": {"REPROD_CUDASIM_LIBRARIES": "1", "REPROD_CUDASIM_SEED": "3"}}]})


def verdicts(service, **case):
    """variant: (verdict, reason) of the cells of a job of cudnn_conv_wgrad."""
    job = service.post_job(workloads=["cudnn_conv_wgrad"], runs=2, iterations=2, **case)
    assert service.finish_job(job)["state"] == "finished"
    runs = service.items(f"/v1/runs?job={job}")
    assert all(run["device"].startswith("sim:") for run in runs)
    cells = {run["variant"]: service.get(f"/v1/cells/{run['cell']}") for run in runs}
    return {name: (cell["verdict"], cell["reason"]) for name, cell in cells.items()}


def test_an_algorithm_is_green_where_a_control_varied_in_its_dtype(with_cudnn):
    alone = verdicts(with_cudnn, variants=["algo_1"], dtypes=["float16"])
    assert alone["algo_1"] == ("inconclusive", "the control was not measured for this case here")
    wide = verdicts(with_cudnn, variants=["unordered", "algo_0", "algo_1", "algo_4_winograd"])
    assert {name: verdict for name, (verdict, _) in wide.items()} == {
        "unordered": "varies", "algo_0": "varies", "algo_1": "reproducible",
        "algo_4_winograd": "unsupported"}
    again = verdicts(with_cudnn, variants=["algo_1"], dtypes=["float16"])
    assert again["algo_1"][0] == "inconclusive", "a control of another dtype vouched for it"
    half = verdicts(with_cudnn, variants=["algo_0", "algo_1", "algo_1_tf32"], dtypes=["float16"])
    assert {name: verdict for name, (verdict, _) in half.items()} == {
        "algo_0": "varies", "algo_1": "reproducible", "algo_1_tf32": "unsupported"}


def test_a_workload_of_cuda_alone_is_none_of_a_cpu(with_cudnn):
    [found] = with_cudnn.get("/v1/workloads/cudnn_conv_fwd")["items"]
    assert found["backend"] == "cuda" and found["dtypes"] == ["float32", "float16"]
    matrix = with_cudnn.get("/v1/matrix")
    assert not [row for row in matrix["rows"] if row["workload"].startswith("cudnn_conv")]
    cpu = next(device["id"] for device in with_cudnn.get("/v1/devices")["items"]
               if device["id"].startswith("cpu:"))
    status, _, said = with_cudnn.request("POST", "/v1/jobs", {
        "workloads": ["cudnn_conv_fwd"], "devices": [cpu]})
    assert status == 422 and said["detail"].startswith(
        "/workloads/0: workload 'cudnn_conv_fwd' has no implementation for any chosen device and stack; it is in stack ")
