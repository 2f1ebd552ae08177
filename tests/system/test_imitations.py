"""What calls cuBLAS and NCCL, without a GPU: on the simulator, with imitations of the libraries
that compute in host memory (tests/fixtures). What real ones do, only a GPU shows."""
import json
import re

import pytest

from service import IMITATIONS
from test_cudasim import SIMULATOR, digests, run, start

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


CUBLAS, NCCL_FOLDER = IMITATIONS / "cublas", IMITATIONS / "nccl"


def with_library(folder, **more):
    return {"REPROD_CUDASIM_LIBRARIES": 1, "LD_LIBRARY_PATH": folder, **more}


def check(workload, variant, env):
    """What --check says, and the lines of the imitation's log."""
    ended = start(SIMULATOR, "--check", "--workload", workload, "--variant", variant, env=env)
    return json.loads(ended.stdout), ended.stderr.decode().splitlines()


def test_no_library_unless_a_test_asks():
    end = run(SIMULATOR, "matmul_batched", "cublas", env={"LD_LIBRARY_PATH": CUBLAS})[-1]
    assert end["outcome"] == "unsupported" and "no library" in end["cause"]


@pytest.mark.parametrize("variant, function, streams, workspace, config, atomics", [
    ("cublas", "cublasSgemmStridedBatched", 1, False, "none", 0),
    ("cublas_streams", "cublasSgemm", 4, False, "none", 0),
    ("cublas_workspaces", "cublasSgemm", 4, True, "none", 0),
    ("cublas_config_4096_8", "cublasSgemm", 4, False, ":4096:8", 0),
    ("cublas_config_16_8", "cublasSgemm", 4, False, ":16:8", 0),
    ("cublas_atomics", "cublasSgemmStridedBatched", 1, False, "none", 1),
])
def test_products_of_cublas(variant, function, streams, workspace, config, atomics):
    said, log = check("matmul_batched", variant, with_library(CUBLAS))
    assert said["ok"], said
    calls = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in log if line.startswith(f"{function} ")]
    assert len(calls) == 2 * (8 if streams > 1 else 1)  # in setup and in the iteration
    assert len({call["stream"] for call in calls}) == streams
    assert len({call["workspace"] for call in calls if call["workspace"] != "(nil)"}) \
        == (streams if workspace else 0)
    assert {call["config"] for call in calls} == {config}
    assert {call["atomics"] for call in calls} == {str(atomics)}
    assert {call["math"] for call in calls} == {"0"}  # CUBLAS_DEFAULT_MATH: no TF32


def test_what_is_asked_of_cublas_is_reported():
    """And the variable of one handle is no fact of the environment."""
    start_event, *_, end = run(SIMULATOR, "matmul_batched", "cublas_config_4096_8", 2,
                               env=with_library(CUBLAS))
    assert end["outcome"] == "completed"
    assert start_event["claim"] == "deterministic"
    assert start_event["algorithm"] == (
        "cublasSgemm, 4 streams of one handle, cuBLAS's own workspace :4096:8, "
        "CUBLAS_DEFAULT_MATH, atomics not allowed")
    assert not [name for name in start_event["environment"] if name.startswith("env.")]


def test_the_variable_of_the_environment_stays():
    env = with_library(CUBLAS, CUBLAS_WORKSPACE_CONFIG=":16:8")
    for variant, config in ("cublas_streams", ":16:8"), ("cublas_config_4096_8", ":4096:8"):
        start_event = run(SIMULATOR, "matmul_batched", variant, env=env)[0]
        assert start_event["environment"]["env.CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
        assert f"own workspace {config}, " in start_event["algorithm"]


def test_tf32_of_cublas():
    """It is asked for, reported and bounded; a device without it does not pass for one."""
    env = with_library(CUBLAS, REPROD_CUDASIM_MAJOR=8)
    said, log = check("matmul_batched", "cublas_tf32", env)
    exact, _ = check("matmul_batched", "cublas", env)
    calls = [line for line in log if line.startswith("cublasSgemmStridedBatched ")]
    assert len(calls) == 2 and all(" math=3 " in call for call in calls)
    assert ", CUBLAS_TF32_TENSOR_OP_MATH, " in said["algorithm"]
    (reduced,), (full,) = said["outputs"], exact["outputs"]
    assert said["ok"] and 0.01 < reduced["max_error_to_bound"] < 1
    assert reduced["worst"]["bound"] > 4 * full["worst"]["bound"]
    assert reduced["digest"] != full["digest"]
    end = run(SIMULATOR, "matmul_batched", "cublas_tf32",
              env=with_library(CUBLAS, REPROD_CUDASIM_MAJOR=7))[-1]
    assert (end["outcome"], end["cause"]) == (
        "unsupported", "TF32 needs compute capability 8.0, and this device has 7.0")


@pytest.mark.parametrize("told, outcome", [
    ("cublasCreate_v2:NOT_INITIALIZED", "infra"), ("cublasSetStream_v2:ALLOC_FAILED", "infra"),
    ("cublasSgemm_v2:EXECUTION_FAILED", "infra"), ("cublasSgemm_v2:NOT_SUPPORTED", "unsupported"),
])
def test_what_cublas_refuses(told, outcome):
    function, status = told.split(":")
    start_event, *_, end = run(SIMULATOR, "matmul_batched", "cublas_config_16_8",
                               env=with_library(CUBLAS, REPROD_IMITATION=told))
    assert (end["outcome"], end["cause"]) == (
        outcome, f"cuBLAS 13.2.2: {function}: CUBLAS_STATUS_{status}")
    assert not [name for name in start_event["environment"] if name.startswith("env.")]


def test_one_order_of_additions():
    """The imitation has one, so all ways of calling it give the same bits."""
    seen = {digests(run(SIMULATOR, "matmul_batched", variant, env=with_library(CUBLAS)))[0]
            for variant in ("cublas", "cublas_workspaces", "cublas_atomics")}
    assert len(seen) == 1


NCCL = [("nccl_ring_fused", "Ring", 4, 1), ("nccl_ring", "Ring", 4, 96),
        ("nccl_tree_fused", "Tree", 4, 1), ("nccl_tree", "Tree", 4, 96),
        ("nccl_ring_two_ranks", "Ring", 2, 1)]


def gpus(count, **more):
    return {"REPROD_CUDASIM_DEVICES": count, "REPROD_CUDASIM_SEED": 1, **more}


@pytest.mark.parametrize("variant, algorithm, ranks, calls", NCCL)
def test_sums_of_nccl(variant, algorithm, ranks, calls):
    said, log = check("ring_allreduce", variant, with_library(NCCL_FOLDER, **gpus(5)))
    assert said["ok"], said
    reduced = [line for line in log if line.startswith("ncclAllReduce ")]
    assert len(reduced) == calls
    devices = ",".join(map(str, range(ranks)))
    for line in reduced:
        assert line.startswith(f"ncclAllReduce ranks={ranks} ")
        assert line.endswith(f" algorithm={algorithm} devices={devices}")
    assert sum(line.startswith("ncclCommDestroy") for line in log) == ranks


def test_the_ring_of_nccl_has_the_bits_of_ours():
    """Where each tensor goes round by itself, and the imitation's ring begins where ours does."""
    env = with_library(NCCL_FOLDER, **gpus(4))
    ours, theirs = (digests(run(SIMULATOR, "ring_allreduce", variant, 2, env=env))
                    for variant in ("ordered", "nccl_ring"))
    assert ours == theirs and len(set(ours)) == 1


def test_fusion_by_arrival_moves_what_a_ring_begins_with():
    env = with_library(NCCL_FOLDER, **gpus(4))
    assert len(set(digests(run(SIMULATOR, "ring_allreduce", "nccl_ring_fused", 2, env=env)))) == 2
    assert len(set(digests(run(SIMULATOR, "ring_allreduce", "nccl_tree_fused", 2, env=env)))) == 1


@pytest.mark.parametrize("variant, seen, cause", [
    ("nccl_ring", 1, "4 ranks, and this process sees 1 GPU"),
    ("nccl_tree_fused", 3, "4 ranks, and this process sees 3 GPUs"),
    ("nccl_ring_two_ranks", 1, "2 ranks, and this process sees 1 GPU"),
])
def test_too_few_gpus_are_unsupported(variant, seen, cause):
    end = run(SIMULATOR, "ring_allreduce", variant, env=with_library(NCCL_FOLDER, **gpus(seen)))[-1]
    assert (end["outcome"], end["cause"]) == ("unsupported",
                                              f"NCCL takes one GPU for each rank: {cause}")


def test_what_is_asked_of_nccl_is_reported():
    env = with_library(NCCL_FOLDER, NCCL_ALGO="Tree", **gpus(4))
    start_event = run(SIMULATOR, "ring_allreduce", "nccl_ring", env=env)[0]
    assert start_event["algorithm"] == (
        "ncclAllReduce, NCCL_ALGO=Ring, 4 GPUs of one process, each tensor by itself")
    assert start_event["environment"]["nccl"] == "2.28.9"
    assert start_event["environment"]["env.NCCL_ALGO"] == "Tree"


@pytest.mark.parametrize("function", ["ncclCommInitAll", "ncclGroupStart", "ncclAllReduce", "ncclGroupEnd"])
def test_a_failure_of_nccl_is_infra(function):
    end = run(SIMULATOR, "ring_allreduce", "nccl_tree",
              env=with_library(NCCL_FOLDER, REPROD_IMITATION=f"{function}:ncclSystemError", **gpus(4)))[-1]
    assert (end["outcome"], end["cause"]) == ("infra", f"NCCL 2.28.9: {function}: ncclSystemError")


def test_the_other_ranks_are_on_the_devices_behind_this_one():
    env = with_library(NCCL_FOLDER, **gpus(4))
    ended = start(SIMULATOR, "--check", "--workload", "ring_allreduce", "--variant",
                  "nccl_ring_fused", "--device", "sim:2", env=env)
    assert json.loads(ended.stdout)["ok"]
    assert b"devices=2,3,0,1" in ended.stderr
