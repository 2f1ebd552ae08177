"""Every algorithm of cuDNN's convolutions, without a GPU: on the simulator, with an imitation of
cuDNN that convolves in host memory (tests/fixtures/cudnn). What is asked of cuDNN, what a run
reports and that its result is right is tested; what cuDNN's kernels do, only a GPU shows."""
import json
import re

import pytest

from service import IMITATIONS
from test_cudasim import CPU, SIMULATOR, catalogue, digests, run, start

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
PASSES = {"cudnn_conv_fwd": ("Forward", 8), "cudnn_conv_dgrad": ("BackwardData", 6),
          "cudnn_conv_wgrad": ("BackwardFilter", 7)}
ABSENT = {("cudnn_conv_fwd", 3), ("cudnn_conv_wgrad", 4)}  # cuDNN has no such kernels
RACES = {"cudnn_conv_fwd": set(), "cudnn_conv_dgrad": {0}, "cudnn_conv_wgrad": {0, 3}}
FMA, DEFAULT, TENSOR = "3", "0", "1"
FLOAT, HALF = "0", "2"


def with_cudnn(**more):
    return {"REPROD_CUDASIM_LIBRARIES": 1, "LD_LIBRARY_PATH": IMITATIONS / "cudnn",
            "REPROD_CUDASIM_MAJOR": 8, **more}


def variants(workload):
    return {v["name"]: v for v in catalogue(SIMULATOR)[workload]["variants"]}


def number(variant):
    return int(re.match(r"algo_(\d+)", variant)[1])


def check(workload, variant, dtype, env):
    ended = start(SIMULATOR, "--check", "--workload", workload, "--variant", variant,
                  "--dtype", dtype, env=env)
    return json.loads(ended.stdout), ended.stderr.decode().splitlines()


def test_each_number_is_there_with_and_without_tf32():
    for workload, (_, count) in PASSES.items():
        named = variants(workload)
        plain = [name for name in named if name.startswith("algo_") and not name.endswith("_tf32")]
        assert [number(name) for name in plain] == list(range(count))
        assert set(named) == {"unordered", *plain, *(f"{name}_tf32" for name in plain)}
        for name in plain:
            real = named[name]["algorithm"]
            rest = name.removeprefix(f"algo_{number(name)}").strip("_").upper()
            assert real.endswith(rest or str(number(name))), (name, real)


def test_no_cell_is_green_without_a_control_that_varied():
    """What is not promised to be deterministic has to vary, and the forward pass has a control of
    ours."""
    for workload in PASSES:
        for name, variant in variants(workload).items():
            races = name == "unordered" or number(name) in RACES[workload]
            assert variant["control"] == races, name
            assert variant["claim"] != "deterministic" or not races
        assert catalogue(SIMULATOR)[workload]["no_control"] is None


def test_they_are_no_workloads_of_the_cpu():
    assert not PASSES.keys() & catalogue(CPU).keys()


@pytest.mark.parametrize("workload", PASSES)
@pytest.mark.parametrize("dtype, suffix, math, data", [
    ("float32", "", FMA, FLOAT), ("float32", "_tf32", DEFAULT, FLOAT),
    # On a CPU half precision is computed in software.
    pytest.param("float16", "", TENSOR, HALF, marks=pytest.mark.long)])
def test_what_is_asked_of_cudnn(workload, dtype, suffix, math, data):
    for variant in variants(workload):
        if not variant.startswith("algo_") or variant.endswith("_tf32") != bool(suffix):
            continue
        said, log = check(workload, variant, dtype, with_cudnn())
        if (workload, number(variant)) in ABSENT:
            assert said["outcome"] == "unsupported" and not log
            assert said["cause"].startswith("cuDNN 9.1.1: CUDNN_CONVOLUTION_")
            assert ": CUDNN_STATUS_NOT_SUPPORTED: cudnnGetConvolution" in said["cause"]
            continue
        assert said["ok"], said
        assert log == [f"{PASSES[workload][0]} algorithm={number(variant)} math={math} "
                       f"dtype={data} accumulator={FLOAT} workspace=4096"]


def test_a_run_reports_what_computed():
    for variant, math, options in (("algo_1", "CUDNN_FMA_MATH", ()),
                                   ("algo_1_tf32", "CUDNN_DEFAULT_MATH (TF32 permitted)", ()),
                                   ("algo_1", "CUDNN_TENSOR_OP_MATH", ("--dtype", "float16"))):
        events = run(SIMULATOR, "cudnn_conv_wgrad", variant, 2, env=with_cudnn(),
                     options=options)
        assert events[0]["algorithm"] == (f"CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, {math}, NCHW, "
                                          "workspace of 4096 bytes, claimed deterministic")
        assert events[0]["claim"] == "deterministic"
        assert events[0]["environment"]["cudnn"] == "9.1.1"
        assert events[-1]["outcome"] == "completed" and len(set(digests(events))) == 1


def test_a_lie_is_seen():
    """The imitation's races vary; where it lies, so does what it claims to be deterministic."""
    honest, lying = with_cudnn(), with_cudnn(
        REPROD_IMITATION="CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT:varies")
    for variant, env, claim, different in (("algo_0", honest, "non-deterministic", 2),
                                           ("algo_2_fft", honest, "deterministic", 1),
                                           ("algo_2_fft", lying, "deterministic", 2)):
        events = run(SIMULATOR, "cudnn_conv_wgrad", variant, 2, env=env)
        assert (events[0]["claim"], len(set(digests(events)))) == (claim, different)


@pytest.mark.parametrize("options, env, cause", [
    ((), {"REPROD_CUDASIM_MAJOR": 7},
     "TF32 needs compute capability 8.0, and this device has 7.0"),
    (("--dtype", "float16"), {},
     "TF32 is how float32 is computed with; another dtype has the variant without _tf32"),
])
def test_where_there_is_no_tf32(options, env, cause):
    end = run(SIMULATOR, "cudnn_conv_fwd", "algo_4_fft_tf32", env=with_cudnn(**env),
              options=options)[-1]
    assert (end["outcome"], end["cause"]) == ("unsupported", cause)


@pytest.mark.parametrize("workload", PASSES)
def test_the_control_is_right_in_16_bits(workload):
    said, _ = check(workload, "unordered", "float16", {})
    assert said["ok"] and said["dtype"] == "float16", said
