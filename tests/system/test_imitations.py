"""What calls cuBLAS and NCCL, without a GPU: on the simulator, with imitations of the libraries
that compute in host memory (tests/fixtures). What real ones do, only a GPU shows."""
import json
import os
import re

import pytest

from fake_cudnn import ROOT, compile_library
from test_cudasim import SIMULATOR, digests, run, start

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


@pytest.fixture(scope="module")
def cublas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cublas")
    compile_library(folder / "libcublas.so.13", [ROOT / "tests/fixtures/cublas/fake_cublas.c"],
                    "-O2")
    return folder


def with_library(folder, **more):
    return {"REPROD_CUDASIM_LIBRARIES": 1, "LD_LIBRARY_PATH": folder, **more}


def check(workload, variant, env):
    """What --check says, and the lines of the imitation's log."""
    ended = start(SIMULATOR, "--check", "--workload", workload, "--variant", variant, env=env)
    return json.loads(ended.stdout), ended.stderr.decode().splitlines()


def test_no_library_unless_a_test_asks(cublas):
    end = run(SIMULATOR, "matmul_batched", "cublas", env={"LD_LIBRARY_PATH": cublas})[-1]
    assert end["outcome"] == "unsupported" and "no library" in end["cause"]


@pytest.mark.parametrize("variant, function, streams, workspace, config, atomics", [
    ("cublas", "cublasSgemmStridedBatched", 1, False, "none", 0),
    ("cublas_streams", "cublasSgemm", 4, False, "none", 0),
    ("cublas_workspaces", "cublasSgemm", 4, True, "none", 0),
    ("cublas_config_4096_8", "cublasSgemm", 4, False, ":4096:8", 0),
    ("cublas_config_16_8", "cublasSgemm", 4, False, ":16:8", 0),
    ("cublas_atomics", "cublasSgemmStridedBatched", 1, False, "none", 1),
])
def test_products_of_cublas(cublas, variant, function, streams, workspace, config, atomics):
    said, log = check("matmul_batched", variant, with_library(cublas))
    assert said["ok"], said
    calls = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in log if line.startswith(f"{function} ")]
    assert len(calls) == 2 * (8 if streams > 1 else 1)  # in setup and in the iteration
    assert len({call["stream"] for call in calls}) == streams
    assert len({call["workspace"] for call in calls if call["workspace"] != "(nil)"}) \
        == (streams if workspace else 0)
    assert {call["config"] for call in calls} == {config}
    assert {call["atomics"] for call in calls} == {str(atomics)}
    assert {call["math"] for call in calls} == {"0"}  # CUBLAS_DEFAULT_MATH: no TF32


def test_what_is_asked_of_cublas_is_reported(cublas):
    """And the variable of one handle is no fact of the environment."""
    start_event, *_, end = run(SIMULATOR, "matmul_batched", "cublas_config_4096_8", 2,
                               env=with_library(cublas))
    assert end["outcome"] == "completed"
    assert start_event["claim"] == "deterministic"
    assert start_event["algorithm"] == (
        "cublasSgemm, 4 streams of one handle, cuBLAS's own workspace :4096:8, "
        "CUBLAS_DEFAULT_MATH, atomics not allowed")
    assert not [name for name in start_event["environment"] if name.startswith("env.")]


def test_the_variable_of_the_environment_stays(cublas):
    env = with_library(cublas, CUBLAS_WORKSPACE_CONFIG=":16:8")
    for variant, config in ("cublas_streams", ":16:8"), ("cublas_config_4096_8", ":4096:8"):
        start_event = run(SIMULATOR, "matmul_batched", variant, env=env)[0]
        assert start_event["environment"]["env.CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
        assert f"own workspace {config}, " in start_event["algorithm"]


@pytest.mark.parametrize("variable, outcome, cause", [
    ("FAKE_CUBLAS_NO_HANDLE", "infra", "cuBLAS 13.2.2: cublasCreate_v2: FAKE_FAILED"),
    ("FAKE_CUBLAS_REFUSES", "unsupported", "cuBLAS 13.2.2: cublasSgemm_v2: FAKE_NOT_SUPPORTED"),
])
def test_what_cublas_refuses(cublas, variable, outcome, cause):
    start_event, *_, end = run(SIMULATOR, "matmul_batched", "cublas_config_16_8",
                               env=with_library(cublas, **{variable: "1"}))
    assert (end["outcome"], end["cause"]) == (outcome, cause)
    assert not [name for name in start_event["environment"] if name.startswith("env.")]


def test_one_order_of_additions(cublas):
    """The imitation has one, so all ways of calling it give the same bits."""
    seen = {digests(run(SIMULATOR, "matmul_batched", variant, env=with_library(cublas)))[0]
            for variant in ("cublas", "cublas_workspaces", "cublas_atomics")}
    assert len(seen) == 1
