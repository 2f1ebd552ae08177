"""What the service makes of a library that does not do what it says, without a GPU: each cell gets
the state that is true, and never a green one that was not earned.  The library is an imitation of
cuDNN or cuBLAS that computes in host memory and is told to misbehave (tests/fixtures/imitation)."""
import pytest

from service import IMITATIONS, SIMULATOR, Service

WITH_LIBRARY = {"REPROD_CUDASIM_LIBRARIES": "1", "REPROD_CUDASIM_SEED": "3"}
pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
LONG = pytest.mark.long
# Each is a stack of one service, of a version of its own, so that cells of two never meet; but
# `rebuilt`, which says that it is the honest one.
TOLD = {
    "honest": "",
    "deterministic_varies": "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1:varies CUDNN_BATCHNORM_SPATIAL:varies "
                            "CUDNN_CTC_LOSS_ALGO_DETERMINISTIC:varies "
                            "CUDNN_POOLING_MAX_DETERMINISTIC:varies "
                            "CUDNN_CONVOLUTION_BWD_DATA_ALGO_1:varies "
                            "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:varies",
    "race_is_steady": "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0:steady "
                      "CUDNN_CONVOLUTION_BWD_DATA_ALGO_0:steady cudnnSpatialTfSamplerBackward:steady "
                      "CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC:steady CUDNN_POOLING_MAX:steady "
                      "cudnnFindConvolutionForwardAlgorithmEx:steady",
    "loaded": "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1:loaded",
    "other_numbers": "sums:reversed",
    "rebuilt": "version:9.1.0 sums:reversed",
    "refuses": "cudnnGetConvolutionBackwardFilterWorkspaceSize:NOT_SUPPORTED "
               "cudnnSpatialTfSamplerBackward:ALLOC_FAILED "
               "cudnnBatchNormalizationBackward:EXECUTION_FAILED "
               "cudnnPoolingBackward:NOT_SUPPORTED cudnnCTCLoss:EXECUTION_FAILED",
    "short_workspace": "workspace:1",
    "no_memory": "workspace:1099511627776",
}


def stack(name, library, told, **more):
    return {"name": name, "worker": str(SIMULATOR), "library_path": str(IMITATIONS / library),
            "env": {**WITH_LIBRARY, "REPROD_IMITATION": told, **more}}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    stacks = [stack(name, "cudnn", f"{told} version:9.1.{i}")
              for i, (name, told) in enumerate(TOLD.items())]
    shared = Service(tmp_path_factory.mktemp("service"), options=["--no-survey"],
                     config={"stacks": [{"name": "cpu"}, *stacks]})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def measure(service, stack, workload, variants, runs=2, **more):
    """The cells of a job, by variant."""
    job = service.post_job(workloads=[workload], variants=variants, stacks=[stack], runs=runs,
                           iterations=2, **more)
    assert service.finish_job(job)["state"] == "finished"
    runs = service.items(f"/v1/runs?job={job}")
    assert runs and all(each["device"].startswith("sim:") for each in runs)
    whose = {(each["variant"], each["subject"], each["subject_name"]) for each in runs}
    assert {("unordered", "model", None), ("ordered", "model", None)} & whose == {
        each for each in whose if each[0] in ("unordered", "ordered")}
    assert all(name in ("cuDNN", "cuBLAS", "NCCL") for _, subject, name in whose if subject == "library")
    return {each["variant"]: service.get(f"/v1/cells/{each['cell']}") for each in runs}


def verdicts(cells):
    return {name: cell["verdict"] for name, cell in cells.items()}


def findings(service, cells):
    """The variants of CELLS that a finding is about; each says whose code it is."""
    items = service.items("/v1/findings")
    assert {(each["subject"], each["subject_name"]) for each in items} <= {
        ("library", "cuDNN"), ("library", "cuBLAS"), ("library", "NCCL")}
    found = {each["cell"] for each in items}
    return {name for name, cell in cells.items() if cell["id"] in found}


DEPTHWISE = ("depthwise_wgrad", {"unordered": "varies", "algo_0": "varies",
                                 "algo_1": "reproducible"})
NORM = ("batchnorm_bwd", {"unordered": "varies", "ordered": "reproducible",
                          "cudnn_spatial": "reproducible", "cudnn_persistent": "reproducible"})
SAMPLER = ("spatial_sampler_bwd", {"unordered": "varies", "ordered": "reproducible",
                                   "cudnn": "varies"})
CTC = ("ctc_loss", {"unordered": "varies", "ordered": "reproducible",
                    "cudnn_non_deterministic": "varies", "cudnn_deterministic": "reproducible",
                    "cudnn_v8_non_deterministic": "varies", "cudnn_v8_deterministic": "reproducible"})
POOLING = ("maxpool_bwd", {"unordered": "varies", "ordered": "reproducible", "cudnn_max": "varies",
                           "cudnn_max_deterministic": "reproducible"})
WGRAD = ("conv_wgrad", {"unordered": "varies", "ordered": "reproducible", "algo_0": "varies",
                        "algo_1": "reproducible", "algo_3": "varies"})
DGRAD = ("conv_dgrad", {"unordered": "varies", "ordered": "reproducible", "algo_0": "varies",
                        "algo_1": "reproducible"})


@pytest.mark.parametrize("workload, honest, lie, steady", [
    (*DEPTHWISE, {"algo_1"}, {"algo_0"}),
    pytest.param(*NORM, {"cudnn_spatial"}, set(), marks=LONG),
    pytest.param(*SAMPLER, set(), {"cudnn"}, marks=LONG),
    pytest.param(*CTC, {"cudnn_deterministic", "cudnn_v8_deterministic"},
                 {"cudnn_non_deterministic", "cudnn_v8_non_deterministic"}, marks=LONG),
    pytest.param(*POOLING, {"cudnn_max_deterministic"}, {"cudnn_max"}, marks=LONG),
    pytest.param(*DGRAD, {"algo_1"}, {"algo_0"}, marks=LONG),
    pytest.param(*WGRAD, {"algo_1"}, {"algo_0"}, marks=LONG),
])
def test_only_the_cells_of_what_misbehaves_change(service, workload, honest, lie, steady):
    cells = measure(service, "honest", workload, list(honest))
    assert verdicts(cells) == honest and not findings(service, cells)

    cells = measure(service, "deterministic_varies", workload, list(honest))
    assert verdicts(cells) == {**honest, **dict.fromkeys(lie, "varies")}
    assert findings(service, cells) == lie

    cells = measure(service, "race_is_steady", workload, list(honest))
    assert verdicts(cells) == {**honest, **dict.fromkeys(steady, "inconclusive")}
    for name in steady:
        assert cells[name]["reason"] == (
            "1 digest in 2 runs / 4 iterations, of an algorithm that its library calls "
            "non-deterministic: not seen to vary is not enough")
    assert not findings(service, cells)


@LONG
@pytest.mark.parametrize("stack, autotune, fixed, found", [
    ("honest", "varies", "reproducible", set()),
    ("deterministic_varies", "varies", "varies", {"fixed"}),
    ("race_is_steady", "inconclusive", "inconclusive", set()),
])
def test_a_search(service, stack, autotune, fixed, found):
    """A search that finds the same everywhere is no control."""
    cells = measure(service, stack, "conv_autotune", ["autotune", "fixed"], runs=4)
    assert verdicts(cells) == {"autotune": autotune, "fixed": fixed}
    assert findings(service, cells) == found


def test_a_control_of_the_library_that_is_steady_vouches_for_nothing(service):
    cells = measure(service, "race_is_steady", "cudnn_conv_wgrad", ["algo_0", "algo_1"])
    assert verdicts(cells) == {"algo_0": "inconclusive", "algo_1": "inconclusive"}
    assert cells["algo_0"]["reason"].startswith("the control did not vary: 1 digest")
    assert cells["algo_1"]["reason"] == "the control did not vary in 2 runs"


def test_what_varies_only_under_load(service):
    """Plain runs earn what plain runs can; what was seen under load then stays."""
    case = "depthwise_wgrad", ["unordered", "algo_1"]
    plain = measure(service, "loaded", *case)
    assert verdicts(plain) == {"unordered": "varies", "algo_1": "reproducible"}
    loaded = measure(service, "loaded", *case, contention=1)
    assert loaded["algo_1"]["verdict"] == "varies"
    assert loaded["algo_1"]["reason"].endswith(", 2 of the runs under contention")
    again = measure(service, "loaded", *case)
    assert verdicts(again) == {"unordered": "varies", "algo_1": "varies"}
    assert findings(service, again) == {"algo_1"}


def test_a_later_version_with_other_numbers(service):
    """It is another environment: the control of the first does not vouch for it."""
    case = "depthwise_wgrad", ["unordered", "algo_1"]
    first = measure(service, "honest", *case)["algo_1"]
    alone = measure(service, "other_numbers", "depthwise_wgrad", ["algo_1"])["algo_1"]
    assert alone["environment"] != first["environment"] and alone["id"] != first["id"]
    assert (alone["verdict"], alone["reason"]) == (
        "inconclusive", "the control was not measured for this case here")
    both = measure(service, "other_numbers", *case)
    assert verdicts(both) == {"unordered": "varies", "algo_1": "reproducible"}
    assert service.get(f"/v1/cells/{first['id']}")["verdict"] == "reproducible"
    bits = [{each["digest"] for each in service.items(f"/v1/runs?cell={cell['id']}")}
            for cell in (first, both["algo_1"])]
    assert len(bits[0]) == len(bits[1]) == 1 and bits[0] != bits[1]


def test_a_library_that_was_replaced_under_its_version(service):
    """Nothing tells the two apart but their bits, and one cell has both."""
    case = "cudnn_conv_wgrad", ["unordered", "algo_1"]
    assert measure(service, "honest", *case)["algo_1"]["verdict"] == "reproducible"
    cells = measure(service, "rebuilt", *case)
    assert cells["algo_1"]["verdict"] == "varies" and findings(service, cells) == {"algo_1"}


@pytest.mark.parametrize("stack, workload, variant, verdict, outcome, cause", [
    ("refuses", "depthwise_wgrad", "algo_1", "unsupported", "unsupported",
     "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1: CUDNN_STATUS_NOT_SUPPORTED"),
    ("refuses", "spatial_sampler_bwd", "cudnn", "unmeasured", "infra",
     "cudnnSpatialTfSamplerBackward: CUDNN_STATUS_ALLOC_FAILED"),
    ("refuses", "batchnorm_bwd", "cudnn_spatial", "unmeasured", "infra",
     "cudnnBatchNormalizationBackward: CUDNN_STATUS_EXECUTION_FAILED"),
    pytest.param("refuses", "maxpool_bwd", "cudnn_max_deterministic", "unsupported", "unsupported",
                 "cudnnPoolingBackward: CUDNN_STATUS_NOT_SUPPORTED", marks=LONG),
    pytest.param("refuses", "ctc_loss", "cudnn_deterministic", "unmeasured", "infra",
                 "cudnnCTCLoss: CUDNN_STATUS_EXECUTION_FAILED", marks=LONG),
    ("short_workspace", "depthwise_wgrad", "algo_1", "unmeasured", "infra",
     "cudnnConvolutionBackwardFilter: CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT"),
    ("no_memory", "depthwise_wgrad", "algo_1", "failing", "out_of_memory",
     "no 1099511627776 bytes of device memory for scratch"),
])
def test_what_fails_is_no_evidence(service, stack, workload, variant, verdict, outcome, cause):
    cell = measure(service, stack, workload, [variant])[variant]
    assert cell["verdict"] == verdict and cause in cell["last_cause"], cell
    assert {each["outcome"] for each in service.items(f"/v1/runs?cell={cell['id']}")} == {outcome}
    assert not findings(service, {variant: cell})


@LONG
@pytest.mark.parametrize("library, workload, told, more, honest, lie", [
    ("cublas", "matmul_batched", "cublasSgemmStridedBatched:varies", {},
     {"unordered": "varies", "cublas": "reproducible", "cublas_streams": "varies",
      "cublas_workspaces": "reproducible", "cublas_config_4096_8": "reproducible"}, {"cublas"}),
    ("nccl", "ring_allreduce", "ncclAllReduce:varies", {"REPROD_CUDASIM_DEVICES": "4"},
     {"unordered": "varies", "nccl_ring": "reproducible", "nccl_tree": "reproducible"},
     {"nccl_ring", "nccl_tree"}),
])
def test_other_libraries(start_service, library, workload, told, more, honest, lie):
    """In two services: the version of cuBLAS is that of its file, whatever it is told.  NCCL promises
    nothing, so what varies there is no finding."""
    for words, expected, found in (("", honest, set()),
                                   (told, {**honest, **dict.fromkeys(lie, "varies")}, lie & {"cublas"})):
        service = start_service(worker=None, config={"stacks": [
            {"name": "cpu"}, stack("simulator", library, words, **more)]})
        cells = measure(service, "simulator", workload, list(honest), devices=["sim:0"])
        assert verdicts(cells) == expected and findings(service, cells) == found
