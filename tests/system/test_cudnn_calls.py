"""Everything that our workloads ask of cuDNN, without a GPU: on the simulator, with an imitation
that computes in host memory (tests/fixtures/imitation).  Results are those of the workload's own
float64 reference, and vary where the library says that they may.  Convolutions by each algorithm
are in test_conv_algorithms.py; what cuDNN's kernels do, only a GPU shows."""
import json
import re

import pytest

from service import IMITATIONS, ROOT
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
    if variant != "autotune":  # it may find one that varies, and has no claim
        assert len(set(digests(events))) == 1 + ((workload, variant) in VARIES)
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


@pytest.mark.parametrize("workload, direct, transforms", [
    ("conv_autotune", "FWD_ALGO_GEMM", "FWD_ALGO_FFT FWD_ALGO_WINOGRAD_NONFUSED"),
    ("conv_dgrad", "BWD_DATA_ALGO_1", "BWD_DATA_ALGO_FFT_TILING BWD_DATA_ALGO_WINOGRAD_NONFUSED"),
    pytest.param("conv_wgrad", "BWD_FILTER_ALGO_1", "BWD_FILTER_ALGO_FFT BWD_FILTER_ALGO_WINOGRAD_NONFUSED",
                 marks=pytest.mark.long)])
def test_what_a_search_found_has_the_bound_of_its_method(workload, direct, transforms):
    """A right result of a transform is further from the reference than a sum of products is."""
    def ratio(algorithm):
        said = check(workload, "autotune", REPROD_IMITATION=f"CUDNN_CONVOLUTION_{algorithm}:fastest")
        assert said["ok"] and algorithm.split("ALGO_")[1] in said["algorithm"], said
        return said["outputs"][0]["max_error_to_bound"]

    summed = ratio(direct)
    for algorithm in transforms.split():
        assert 0 < ratio(algorithm) < summed, algorithm


def test_each_way_to_compute_has_its_own_bits():
    """So that taking another is seen."""
    env = with_cudnn()
    for workload, some in (("batchnorm_bwd", ["cudnn_spatial", "cudnn_persistent"]),
                           ("depthwise_wgrad", ["algo_0", "algo_1", "algo_3"])):
        assert len({digests(run(SIMULATOR, workload, name, env=env))[0] for name in some}) \
            == len(some)


DESCRIBED = {f"cudnn{each}" for each in (
    "Create", "CreateTensorDescriptor", "SetTensor4dDescriptor", "CreateFilterDescriptor",
    "SetFilter4dDescriptor", "CreateConvolutionDescriptor", "SetConvolution2dDescriptor",
    "SetConvolutionMathType", "SetConvolutionGroupCount", "GetConvolution2dForwardOutputDim")}


def pass_functions(name):
    return {f"cudnnGetConvolution{name}Algorithm_v7", f"cudnnGetConvolution{name}WorkspaceSize",
            f"cudnnConvolution{name}"}


CALLED = {  # the functions that a variant calls
    ("depthwise_wgrad", "algo_1"): DESCRIBED | pass_functions("BackwardFilter"),
    ("conv_dgrad", "algo_1"): pass_functions("BackwardData"),
    ("cudnn_conv_fwd", "algo_2_gemm"): pass_functions("Forward"),
    ("maxpool_bwd", "cudnn_max"): {"cudnnCreatePoolingDescriptor", "cudnnSetPooling2dDescriptor",
                                   "cudnnPoolingForward", "cudnnPoolingBackward"},
    ("batchnorm_bwd", "cudnn_spatial"): {"cudnnDeriveBNTensorDescriptor",
                                         "cudnnBatchNormalizationBackward"},
    ("spatial_sampler_bwd", "cudnn"): {"cudnnCreateSpatialTransformerDescriptor",
                                       "cudnnSetSpatialTransformerNdDescriptor",
                                       "cudnnSpatialTfSamplerBackward"},
    ("ctc_loss", "cudnn_deterministic"): {"cudnnCreateCTCLossDescriptor", "cudnnSetTensorNdDescriptor",
                                          "cudnnSetCTCLossDescriptorEx", "cudnnGetCTCLossWorkspaceSize",
                                          "cudnnCTCLoss"},
    ("ctc_loss", "cudnn_v8_deterministic"): {"cudnnSetCTCLossDescriptor_v9",
                                             "cudnnGetCTCLossWorkspaceSize_v8", "cudnnCTCLoss_v8"},
}
SEARCHES = {("conv_autotune", "autotune"): {"cudnnFindConvolutionForwardAlgorithmEx"},
            ("conv_dgrad", "autotune"): {"cudnnFindConvolutionBackwardDataAlgorithmEx"},
            ("conv_wgrad", "autotune"): {"cudnnFindConvolutionBackwardFilterAlgorithmEx"}}
# Not called by a workload here, or not to compute.
UNCALLED = {"cudnnGetProperty", "cudnnGetErrorString", "cudnnGetTensorSizeInBytes",
            "cudnnGetPooling2dForwardOutputDim", "cudnnSetCTCLossDescriptor_v8"}


def test_every_function_is_told_to_fail():
    listed = re.findall(r"^    X\((\w+)\)", (ROOT / "cuda/cudnn/functions.h").read_text(), re.M)
    told = set().union(*CALLED.values(), *SEARCHES.values())
    assert set(listed) == told | UNCALLED | {"cudnnGetLastErrorString"}


@pytest.mark.parametrize("call, functions", [
    *CALLED.items(), *(pytest.param(*each, marks=pytest.mark.long) for each in SEARCHES.items())],
    ids=lambda each: "-".join(each) if isinstance(each, tuple) else "")
def test_a_call_that_fails_ends_the_run(call, functions):
    """Whichever it is: no status is left unread."""
    kinds = [("EXECUTION_FAILED", "infra"), ("NOT_SUPPORTED", "unsupported"), ("ALLOC_FAILED", "infra")]
    for i, function in enumerate(sorted(functions)):
        status, outcome = kinds[i % len(kinds)]
        end = run(SIMULATOR, *call, env=with_cudnn(REPROD_IMITATION=f"{function}:{status}"))[-1]
        assert end["outcome"] == outcome, (function, end)
        assert f": CUDNN_STATUS_{status}: {function}: it was told to" in end["cause"]


@pytest.mark.parametrize("number, outcome", [(3999, "unsupported"), (2999, "infra"), (6001, "infra")])
def test_a_status_of_a_later_version(number, outcome):
    told = {"REPROD_IMITATION": f"cudnnSpatialTfSamplerBackward:{number} version:9.99.0"}
    end = run(SIMULATOR, "spatial_sampler_bwd", "cudnn", env=with_cudnn(**told))[-1]
    assert end["outcome"] == outcome
    assert end["cause"].startswith("cuDNN 9.99.0: cudnnSpatialTfSamplerBackward: CUDNN_UNKNOWN_STATUS: ")
