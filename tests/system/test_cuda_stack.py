"""The stack of the CUDA worker in the service: on a machine without a GPU, where it must
trouble nobody, and with the simulator in the place of a GPU, from request to matrix."""
import os

import pytest

from service import BUILD

CUDA = BUILD / "reprod-worker-cuda"
SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"
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
    [row] = [row for row in matrix["rows"] if row["workload"] == "bias_add_bwd"]
    assert row["cells"]


def test_a_training_has_one_line_on_both_backends(simulated):
    job = simulated.post_job(workloads=["train_cnn"], variants=["ordered"], runs=2, iterations=1)
    assert simulated.finish_job(job)["state"] == "finished"
    groups = simulated.get(f"/v1/jobs/{job}/digests")["groups"]
    assert sorted(len(group["runs"]) for group in groups) == [2, 2]
    lines = {(run["weight_sum"], run["loss"]) for group in groups for run in group["runs"]}
    [(weight_sum, loss)] = lines
    text = simulated.request("GET", f"/v1/jobs/{job}/digests.txt")[2]
    assert text.count(f"  {weight_sum} | {loss} (") == 4
