"""What calls libraries, as nvcc compiled it: its host code and, before and after a call, its PTX on a
CPU.  The libraries are the imitations of cuDNN, cuBLAS and NCCL (tests/fixtures/imitation), which
compute in host memory: nothing of NVIDIA's is loaded, and no library is shown to compute anything.

  make check-ptx-libraries

Each variant that needs a library: its result against the workload's float64 reference, shadow memory
on; and the bits that the simulator gives with the same imitation.  Then each function that is called,
told to fail: no status is left unread.
"""
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from service import BUILD, IMITATIONS, SIMULATOR  # noqa: E402
from test_cudasim import catalogue, run, start  # noqa: E402
from test_cudnn_calls import CALLED, SEARCHES, VARIES  # noqa: E402

PTX = BUILD / "tests" / "reprod-worker-ptx"
RANKS = 4
FOLDERS = {"cuDNN": "cudnn", "cuBLAS": "cublas", "NCCL": "nccl"}
# Its choice is another in each process; what was chosen has bits of its own.
CHOOSES = {"autotune", "cached", "filtered"}
FUSES = {"nccl_ring_fused", "nccl_tree_fused", "nccl_ring_two_ranks"}  # by arrival
UNSUPPORTED = ("TF32 needs compute capability 8.0", "CUDNN_STATUS_NOT_SUPPORTED")


def beside(folder, **more):
    """The environment of both workers."""
    return {"REPROD_PTX_LIBRARIES": 1, "REPROD_PTX_DEVICES": RANKS, "REPROD_CUDASIM_LIBRARIES": 1,
            "REPROD_CUDASIM_DEVICES": RANKS, "LD_LIBRARY_PATH": IMITATIONS / folder, **more}


def library_variants():
    """(workload, variant, folder) of each variant that needs a library."""
    return [(name, variant["name"], FOLDERS[variant["subject_name"]])
            for name, entry in catalogue(PTX).items() for variant in entry["variants"]
            if variant["subject"] == "library"]


def check(worker, workload, variant, env):
    ended = start(worker, "--check", "--workload", workload, "--variant", variant, env=env)
    assert ended.stdout, ended.stderr.decode()[-2000:]
    return json.loads(ended.stdout), ended.stderr.decode()


def test_there_are_variants_of_every_library():
    assert {folder for _, _, folder in library_variants()} == set(FOLDERS.values())


def test_no_library_unless_a_test_asks():
    end = run(PTX, "matmul_batched", "cublas", env={"LD_LIBRARY_PATH": IMITATIONS / "cublas"})[-1]
    assert end["outcome"] == "unsupported" and "and no library" in end["cause"]


@pytest.mark.parametrize("workload, variant, folder", library_variants())
def test_is_right_and_has_the_bits_of_the_simulator(workload, variant, folder, tmp_path):
    env = beside(folder, REPROD_CACHE_DIR=tmp_path)  # where a choice is stored
    said, errors = check(PTX, workload, variant, {**env, "REPROD_PTX_SEED": 3, "REPROD_PTX_CHECK": "all"})
    other, _ = check(SIMULATOR, workload, variant, env)
    if said["outcome"] == "unsupported":
        assert any(cause in said["cause"] for cause in UNSUPPORTED) and other["outcome"] == "unsupported"
        return
    assert said["ok"] and other["ok"], (said, errors)
    if (workload, variant) not in VARIES and variant not in CHOOSES | FUSES:
        assert [each["digest"] for each in said["outputs"]] == [each["digest"] for each in other["outputs"]]
        assert said["algorithm"] == other["algorithm"]


CUDNN = [("cudnn", call, function) for call, functions in {**CALLED, **SEARCHES}.items()
         for function in sorted(functions)]
CUBLAS = [("cublas", ("matmul_batched", variant), function) for function, variant in (
    ("cublasCreate_v2", "cublas"), ("cublasSgemmStridedBatched", "cublas"), ("cublasSetMathMode", "cublas"),
    ("cublasSetAtomicsMode", "cublas_atomics"), ("cublasSetStream_v2", "cublas_streams"),
    ("cublasSgemm_v2", "cublas_streams"), ("cublasSetWorkspace_v2", "cublas_workspaces"))]
NCCL = [("nccl", ("ring_allreduce", "nccl_ring"), function) for function in (
    "ncclCommInitAll", "ncclGroupStart", "ncclGroupEnd", "ncclAllReduce", "ncclCommDestroy")]
# What the libraries say, and what becomes of the run.
STATUSES = {"cudnn": [("EXECUTION_FAILED", "infra"), ("NOT_SUPPORTED", "unsupported"), ("ALLOC_FAILED", "infra")],
            "cublas": [("EXECUTION_FAILED", "infra"), ("NOT_SUPPORTED", "unsupported")],
            "nccl": [("ncclSystemError", "infra"), ("ncclInternalError", "infra")]}


@pytest.mark.parametrize("folder, call, function", CUDNN + CUBLAS + NCCL)
def test_a_call_that_fails_ends_the_run(folder, call, function):
    for status, outcome in STATUSES[folder]:
        end = run(PTX, *call, env=beside(folder, REPROD_IMITATION=f"{function}:{status}"))[-1]
        assert (end["outcome"], status in end["cause"], function in end["cause"]) == (outcome, True, True), end
