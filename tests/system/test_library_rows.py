"""The rows of the tables that are about cuDNN, without a GPU: their codes are earned by cuDNN's own
variants, here by an imitation that computes in host memory (tests/fixtures/imitation)."""
import pytest

from service import SIMULATOR, Service
from test_library_misbehaves import measure, stack

pytestmark = [pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator"),
              pytest.mark.long]
TABLES = ["documents-2020", "documents-2023", "pytorch"]
# What a search finds is left to no chance: it is the first algorithm, which races, unless the library was told otherwise.
FOUND = ("cudnnFindConvolutionBackwardDataAlgorithmEx:steady "
         "cudnnFindConvolutionBackwardFilterAlgorithmEx:steady ")
# The variants that any row selects.
CUDNN = {"conv_wgrad": ["unordered", "ordered", "autotune", "algo_0", "algo_1"],
         "conv_dgrad": ["unordered", "ordered", "autotune", "algo_0", "algo_1"],
         "conv_autotune": ["autotune", "single", "fixed"],
         "ctc_loss": ["unordered", "ordered", "cudnn_non_deterministic", "cudnn_deterministic"],
         "maxpool_bwd": ["unordered", "ordered", "cudnn_max", "cudnn_max_deterministic"],
         "spatial_sampler_bwd": ["unordered", "ordered", "cudnn"]}
CUBLAS = {"matmul_batched": ["unordered", "ordered", "cublas", "cublas_streams", "cublas_config_4096_8"]}
# What a library is told, and whose rows of it must change to what, where they have a code
# (deterministic: other than NS; racing: any).
TOLD = {
    "honest": ("", {}),
    "deterministic_varies": (
        "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1:varies CUDNN_CONVOLUTION_BWD_DATA_ALGO_1:varies "
        "CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:varies "
        "CUDNN_CTC_LOSS_ALGO_DETERMINISTIC:varies CUDNN_POOLING_MAX_DETERMINISTIC:varies",
        {("conv_wgrad", "conv_dgrad", "conv_autotune", "ctc_loss", "maxpool_bwd"): ("measured", "NS")}),
    "race_is_steady": (
        "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0:steady CUDNN_CONVOLUTION_BWD_DATA_ALGO_0:steady "
        "CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC:steady CUDNN_POOLING_MAX:steady "
        "cudnnSpatialTfSamplerBackward:steady cudnnFindConvolutionForwardAlgorithmEx:steady",
        {tuple(CUDNN): ("inconclusive", None)}),
    # A deterministic algorithm that is the fastest here: another may be on another day.
    "finds_the_deterministic": (
        "cudnnFindConvolutionBackwardDataAlgorithmEx:second cudnnFindConvolutionBackwardFilterAlgorithmEx:second",
        {("conv_wgrad", "conv_dgrad"): ("inconclusive", None)}),
    "refuses": (
        "cudnnGetConvolutionBackwardFilterWorkspaceSize:NOT_SUPPORTED "
        "cudnnConvolutionBackwardData:EXECUTION_FAILED cudnnPoolingBackward:NOT_SUPPORTED "
        "cudnnCTCLoss:EXECUTION_FAILED cudnnSpatialTfSamplerBackward:ALLOC_FAILED",
        {("maxpool_bwd", "conv_wgrad"): ("unsupported", None),
         ("ctc_loss", "conv_dgrad", "spatial_sampler_bwd"): ("unmeasured", None)}),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    stacks = [stack(name, "cudnn", f"version:9.1.{i} {told} {FOUND}")
              for i, (name, (told, _)) in enumerate(TOLD.items())]
    shared = Service(tmp_path_factory.mktemp("service"), options=["--no-survey"],
                     config={"stacks": [{"name": "cpu"}, *stacks]})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def rows(service, name, cases, **more):
    """(table, row, subject, column): (state, code) of all that was measured in a stack."""
    found = {}
    for workload, variants in cases.items():
        # Two searches may find the same.
        runs = 4 if workload == "conv_autotune" else 2
        cells = measure(service, name, workload, variants, runs=runs, **more)
    [environment] = {cell["environment"] for cell in cells.values()}
    for table in TABLES:
        matrix = service.get(f"/v1/matrix?table={table}&environment={environment}")
        for row in matrix["rows"]:
            for cell in row["cells"]:
                key = table, row["id"], row["subject"], cell["column"]
                found[key] = cell["state"], cell.get("code")
    return found


@pytest.fixture(scope="module")
def honest(service):
    return rows(service, "honest", CUDNN)


def changed(honest, other):
    assert honest.keys() == other.keys()
    return {key: other[key] for key in honest if other[key] != honest[key]}


def of_library(honest, workloads, with_cure):
    """The cells of these workloads' library rows that have a code; WITH_CURE: not NS, not NS!."""
    return {key for key, (_, code) in honest.items() if key[1] in workloads and key[2] == "library"
            and code and not (with_cure and code.startswith("NS"))}


def test_an_honest_library_earns_its_rows(honest):
    # PyTorch pools with kernels of its own.
    for table, column, code, without in (("documents-2020", "tf-2.3", "TDO", set()),
                                         ("pytorch", "pytorch-1.6", "CD", {"maxpool_bwd"})):
        for workload in set(CUDNN) - {"spatial_sampler_bwd"}:
            key = table, workload, "library", column
            assert honest.get(key) == (None if workload in without else ("measured", code)), key
    assert honest["documents-2020", "ctc_loss", "library", "tf-2.1"] == ("measured", "NS")
    assert {code for key, (_, code) in honest.items()
            if key[1:3] == ("spatial_sampler_bwd", "library")} == {None, "NS!"}


@pytest.mark.parametrize("name", [name for name in TOLD if name != "honest"])
def test_only_the_rows_of_what_misbehaves_change(service, honest, name):
    """In every column of every table, and never the model's."""
    expected = {}
    for workloads, state in TOLD[name][1].items():
        expected.update(dict.fromkeys(of_library(honest, workloads, name == "deterministic_varies"), state))
    assert expected and changed(honest, rows(service, name, CUDNN)) == expected


@pytest.mark.parametrize("told, then", [
    ("cublasSgemmStridedBatched:varies", {"CD": ("measured", "NS")}),
    # cuBLAS neither promises nor warns: what was measured is said, where a recipe does not raise.
    ("cublasSgemm_v2:steady", {"CD": ("measured", "DET"), "SD+CWC": ("inconclusive", None),
                               "UDA+CWC": ("inconclusive", None)}),
])
def test_the_row_of_cublas(start_service, told, then):
    """In two services: the version of cuBLAS is that of its file, whatever it is told."""
    honest, other = (rows(start_service(worker=None, config={"stacks": [
        {"name": "cpu"}, stack("simulator", "cublas", each)]}), "simulator", CUBLAS, devices=["sim:0"])
        for each in ("", told))
    own = {key: code for key, (_, code) in honest.items() if key[1:3] == ("matmul_batched", "library") and code}
    assert set(own.values()) == {"CD", "SD+CWC", "UDA+CWC"}
    assert changed(honest, other) == {key: then[code] for key, code in own.items() if code in then}
