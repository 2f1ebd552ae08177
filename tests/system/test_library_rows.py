"""The rows of the tables that are about cuDNN, without a GPU: their codes are earned by cuDNN's own
variants, here by an imitation that computes in host memory (tests/fixtures/imitation)."""
import pytest

from service import SIMULATOR, Service
from test_library_misbehaves import measure, stack

pytestmark = [pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator"),
              pytest.mark.long]
TABLES = ["documents-2020", "documents-2023", "pytorch"]
# What a search finds is left to no chance: it is the first algorithm, which races.
FOUND = "cudnnFindConvolutionBackwardDataAlgorithmEx:steady "
CASES = {"conv_dgrad": ["unordered", "ordered", "autotune", "algo_0", "algo_1"],
         "ctc_loss": ["unordered", "ordered", "cudnn_non_deterministic", "cudnn_deterministic"],
         "maxpool_bwd": ["unordered", "ordered", "cudnn_max", "cudnn_max_deterministic"]}
TOLD = {
    "honest": "",
    "lying": "CUDNN_CTC_LOSS_ALGO_DETERMINISTIC:varies CUDNN_CONVOLUTION_BWD_DATA_ALGO_1:varies",
    "steady": "CUDNN_POOLING_MAX:steady",
    "refusing": "cudnnPoolingBackward:NOT_SUPPORTED cudnnCTCLoss:EXECUTION_FAILED",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    stacks = [stack(name, "cudnn", f"version:9.1.{i} {FOUND}{told}")
              for i, (name, told) in enumerate(TOLD.items())]
    shared = Service(tmp_path_factory.mktemp("service"), options=["--no-survey"],
                     config={"stacks": [{"name": "cpu"}, *stacks]})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def rows(service, name):
    """(table, row, subject, column): (state, code) of all that was measured in a stack."""
    for workload, variants in CASES.items():
        cells = measure(service, name, workload, variants)
    [environment] = {cell["environment"] for cell in cells.values()}
    found = {}
    for table in TABLES:
        matrix = service.get(f"/v1/matrix?table={table}&environment={environment}")
        for row in matrix["rows"]:
            for cell in row["cells"]:
                key = table, row["id"], row["subject"], cell["column"]
                found[key] = cell["state"], cell.get("code")
    return found


@pytest.fixture(scope="module")
def honest(service):
    return rows(service, "honest")


def changed(honest, other):
    assert honest.keys() == other.keys()
    return {key: other[key] for key in honest if other[key] != honest[key]}


def of_cudnn(honest, *workloads, codes=lambda code: code is not None):
    """The cells of these workloads' library rows that have such a code."""
    return {key for key, (_, code) in honest.items()
            if key[1] in workloads and key[2] == "library" and codes(code)}


def test_an_honest_library_earns_its_rows(honest):
    for table, column, code in (("documents-2020", "tf-2.3", "TDO"), ("pytorch", "pytorch-1.6", "CD")):
        for workload in CASES:
            assert honest[table, workload, "library", column] == ("measured", code)
    assert honest["documents-2020", "ctc_loss", "library", "tf-2.1"] == ("measured", "NS")


@pytest.mark.parametrize("stack, expected", [
    ("lying", {("conv_dgrad", "ctc_loss"): ("measured", "NS")}),
    ("steady", {("maxpool_bwd",): ("inconclusive", None)}),
    ("refusing", {("maxpool_bwd",): ("unsupported", None), ("ctc_loss",): ("unmeasured", None)}),
])
def test_only_the_rows_of_what_misbehaves_change(service, honest, stack, expected):
    """In every column of every table, and never the model's."""
    other = {}
    for workloads, state in expected.items():
        other.update(dict.fromkeys(of_cudnn(honest, *workloads, codes=lambda code: code and (
            stack != "lying" or not code.startswith("NS"))), state))
    assert other and changed(honest, rows(service, stack)) == other
