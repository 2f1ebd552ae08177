"""Everything that our workloads ask of cuDNN, without a GPU: on the simulator, with an imitation
that computes in host memory (tests/fixtures/imitation).  Results are those of the workload's own
float64 reference, and vary where the library says that they may.  Convolutions by each algorithm
are in test_conv_algorithms.py; what cuDNN's kernels do, only a GPU shows."""
import json

import pytest

from service import IMITATIONS
from test_cudasim import SIMULATOR, catalogue, digests, run, start

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
WORKLOADS = ["maxpool_bwd", "ctc_loss", "batchnorm_bwd", "spatial_sampler_bwd", "depthwise_wgrad",
             "conv_dgrad"]
SLOW = ["conv_wgrad", "conv_autotune"]  # and every search: its workspace is filled
VARIES = {("maxpool_bwd", "cudnn_max"), ("ctc_loss", "cudnn_non_deterministic"),
          ("ctc_loss", "cudnn_v8_non_deterministic"), ("spatial_sampler_bwd", "cudnn"),
          ("depthwise_wgrad", "algo_0"), ("depthwise_wgrad", "algo_3"), ("conv_dgrad", "algo_0"),
          ("conv_wgrad", "algo_0"), ("conv_wgrad", "algo_3")}


def with_cudnn(**more):
    return {"REPROD_CUDASIM_LIBRARIES": 1, "LD_LIBRARY_PATH": IMITATIONS / "cudnn", **more}


def calls():
    """Every variant that calls cuDNN, as pytest's parameters."""
    if not SIMULATOR.exists():
        return
    for workload in WORKLOADS + SLOW:
        for variant in catalogue(SIMULATOR)[workload]["variants"]:
            name = variant["name"]
            if workload == "conv_autotune" or name.startswith(("cudnn", "algo_", "autotune")):
                long = workload in SLOW or name == "autotune"
                yield pytest.param(workload, name, marks=[pytest.mark.long] if long else [])


def check(workload, variant, *options, **told):
    ended = start(SIMULATOR, "--check", "--workload", workload, "--variant", variant, *options,
                  env=with_cudnn(**told))
    return json.loads(ended.stdout)


@pytest.mark.parametrize("workload, variant", calls())
def test_is_right_and_varies_where_it_may(workload, variant, tmp_path):
    env = {"REPROD_CACHE_DIR": tmp_path}  # where a choice is stored
    said = check(workload, variant, **env)
    assert said["ok"], said
    events = run(SIMULATOR, workload, variant, 2, env=with_cudnn(**env))
    assert events[-1]["outcome"] == "completed" and events[0]["environment"]["cudnn"] == "9.1.1"
    assert len(set(digests(events))) == 1 + ((workload, variant) in VARIES)
    if variant != "autotune":
        assert (events[0].get("claim") == "non-deterministic") == ((workload, variant) in VARIES)


@pytest.mark.parametrize("workload, variant, size", [
    ("conv_dgrad", "algo_1", "deconv"),  # a stride of 2
    ("conv_autotune", "fixed", "narrow"),
])
def test_other_shapes_are_right(workload, variant, size):
    said = check(workload, variant, "--size", size)
    assert said["ok"], said


@pytest.mark.long
def test_the_choice_of_a_search_differs_between_processes():
    """As that of cuDNN, which takes what was the fastest; and so do bits."""
    def seen(told):
        events = [run(SIMULATOR, "conv_autotune", "autotune", env=with_cudnn(**told))
                  for _ in range(4)]
        return ({each[0]["algorithm"] for each in events}, {digests(each)[0] for each in events})

    assert all(len(each) > 1 for each in seen({}))
    told = {"REPROD_IMITATION": "cudnnFindConvolutionForwardAlgorithmEx:steady"}
    assert all(len(each) == 1 for each in seen(told))


def test_each_way_to_compute_has_its_own_bits():
    """So that taking another is seen."""
    env = with_cudnn()
    for workload, some in (("batchnorm_bwd", ["cudnn_spatial", "cudnn_persistent"]),
                           ("depthwise_wgrad", ["algo_0", "algo_1", "algo_3"])):
        assert len({digests(run(SIMULATOR, workload, name, env=env))[0] for name in some}) \
            == len(some)
