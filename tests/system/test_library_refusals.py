"""The imitations of cuDNN, cuBLAS and NCCL (tests/fixtures/imitation) refuse what the libraries'
documentation says that they refuse, with the status that it says.  So a workload that gave a wrong
descriptor, size, pointer, workspace or stream would not complete a run on the simulator.

Each function is called rightly first.  Then every argument is made wrong in each way that its kind
can be, and in some that are its own."""
import ctypes
import functools
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_longlong, c_size_t, c_void_p

import pytest

from service import IMITATIONS, SIMULATOR

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
FLOAT, DOUBLE, HALF, INT32 = 0, 1, 2, 4
NCHW, NHWC = 0, 1
OK = "SUCCESS"
NULL, BAD = "BAD_PARAM_NULL_POINTER", "BAD_PARAM"
FAULT = "EXECUTION_FAILED"


class Handle(c_void_p):
    """Of a library."""


class Descriptor(c_void_p):
    """Of cuDNN; `blank` makes one of its kind that nobody has set."""


class Memory(c_void_p):
    """Of a device, exactly as long as it has to be."""


class Host(c_void_p):
    """Memory of the host."""


@functools.cache
def load(name):
    ctypes.CDLL(str(IMITATIONS / "libmemory.so"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(IMITATIONS / name))
    for function in "cudnnGetErrorString", "cublasGetStatusString", "ncclGetErrorString":
        if hasattr(library, function):
            getattr(library, function).restype = c_char_p
    return library


@functools.cache
def simulator():
    """With two devices: a process of CUDA reads once which there are."""
    library = ctypes.CDLL(str(IMITATIONS / "libmemory.so"), mode=ctypes.RTLD_GLOBAL)
    count = c_int()
    os.environ["REPROD_CUDASIM_DEVICES"] = "2"
    assert library._Z18cudaGetDeviceCountPi(byref(count)) == 0 and count.value == 2
    del os.environ["REPROD_CUDASIM_DEVICES"]
    return library


def memory(size, device=0):
    found = Memory()
    assert simulator()._Z13cudaSetDevicei(device) == 0
    assert simulator()._Z10cudaMallocPPvm(byref(found), c_size_t(size)) == 0
    assert simulator()._Z13cudaSetDevicei(0) == 0
    ctypes.memset(found, 0, size)
    return found


def stream():
    found = c_void_p()
    assert simulator()._Z16cudaStreamCreatePP11CUstream_st(byref(found)) == 0
    return found


KEPT = []  # what C code has pointers to


def host(values):
    KEPT.append(values)
    return Host(ctypes.addressof(values))


def ints(*values):
    return host((c_int * len(values))(*values))


ONE, ZERO = host(c_float(1)), host(c_float(0))


def call(name, *arguments):
    """The status of a function of cuDNN, by its name."""
    library = load("cudnn/libcudnn.so.9")
    arguments = [c_double(each) if isinstance(each, float) else each for each in arguments]
    status = getattr(library, name)(*arguments)
    return library.cudnnGetErrorString(status).decode().removeprefix("CUDNN_STATUS_")


def make(kind, setter=None, *arguments):
    made = Descriptor()
    assert call(f"cudnnCreate{kind}Descriptor", byref(made)) == OK
    made.kind = kind
    if setter:
        assert call(setter, made, *arguments) == OK
    return made


def tensor(*extents, dtype=FLOAT, order=NCHW):
    return make("Tensor", "cudnnSetTensor4dDescriptor", order, dtype, *extents)


def logits(*extents, dtype=FLOAT):
    strides = ints(extents[1] * extents[2], extents[2], 1)
    return make("Tensor", "cudnnSetTensorNdDescriptor", dtype, 3, ints(*extents), strides)


def filter_(*extents, dtype=FLOAT, order=NCHW):
    return make("Filter", "cudnnSetFilter4dDescriptor", dtype, order, *extents)


def convolution(pad=1, stride=1):
    return make("Convolution", "cudnnSetConvolution2dDescriptor", pad, pad, stride, stride, 1, 1, 1,
                FLOAT)


def pooling(mode=0):
    return make("Pooling", "cudnnSetPooling2dDescriptor", mode, 1, 3, 3, 1, 1, 1, 1)


def transformer(*extents):
    return make("SpatialTransformer", "cudnnSetSpatialTransformerNdDescriptor", 0, FLOAT, 4,
                ints(*extents))


def ctc(most=3, normalization=1):
    return make("CTCLoss", "cudnnSetCTCLossDescriptor_v9", FLOAT, normalization, 0, most)


def handle():
    found = Handle()
    assert call("cudnnCreate", byref(found)) == OK
    return found


def convolutions():
    """Right arguments of the functions of all passes: x[2,3,5,5] w[4,3,3,3] y[2,4,5,5]."""
    x, w, y = tensor(2, 3, 5, 5), filter_(4, 3, 3, 3), tensor(2, 4, 5, 5)
    of = {"x": (x, memory(2 * 3 * 25 * 4)), "w": (w, memory(4 * 3 * 9 * 4)),
          "y": (y, memory(2 * 4 * 25 * 4))}
    for name, first, second, result in (("Forward", "x", "w", "y"), ("BackwardData", "w", "y", "x"),
                                        ("BackwardFilter", "x", "y", "w")):
        (a_as, a), (b_as, b), (c_as, c) = of[first], of[second], of[result]
        perf, count, size = (ctypes.create_string_buffer(4096), c_int(), c_size_t())
        KEPT.extend([perf, count, size])
        described = {f"{first}_as": a_as, f"{second}_as": b_as, "how": convolution(),
                     f"{result}_as": c_as}
        workspace = {"workspace": memory(4096), "bytes": c_size_t(4096)}
        yield f"cudnnConvolution{name}", {
            "handle": handle(), "alpha": ONE, f"{first}_as": a_as, first: a, f"{second}_as": b_as,
            second: b, "how": convolution(), "algorithm": 1, **workspace, "beta": ZERO,
            f"{result}_as": c_as, result: c}
        yield f"cudnnGetConvolution{name}WorkspaceSize", {
            "handle": handle(), **described, "algorithm": 1, "ret_bytes": byref(size)}
        yield f"cudnnGetConvolution{name}Algorithm_v7", {
            "handle": handle(), **described, "room": 8, "ret_count": byref(count), "ret_list": perf}
        yield f"cudnnFindConvolution{name}AlgorithmEx", {
            "handle": handle(), f"{first}_as": a_as, first: a, f"{second}_as": b_as, second: b,
            "how": convolution(), f"{result}_as": c_as, result: c, "room": 8,
            "ret_count": byref(count), "ret_list": perf, **workspace}


def losses():
    """Right arguments of both functions: 4 times, 2 examples, 3 symbols; labels 1 2, 1."""
    rows, values = logits(4, 2, 3), memory(4 * 2 * 3 * 4)
    lists = {"labels": (1, 2, 1), "label_lengths": (2, 1), "time_lengths": (4, 3)}
    on_host = {name: ints(*each) for name, each in lists.items()}
    on_device = {}
    for name, each in lists.items():
        on_device[name] = memory(4 * len(each))
        ctypes.memmove(on_device[name], on_host[name], 4 * len(each))
    size = c_size_t()
    KEPT.append(size)
    common = {"logits_as": rows, "logits": values}
    results = {"losses": memory(8), "gradient_as": rows, "gradient": memory(4 * 2 * 3 * 4)}
    room = {"workspace": memory(4096), "bytes": c_size_t(4096)}
    yield "cudnnCTCLoss", {"handle": handle(), **common, **on_host, **results, "algorithm": 0,
                           "ctc": ctc(), **room}
    yield "cudnnCTCLoss_v8", {"handle": handle(), "algorithm": 0, "ctc": ctc(), **common, **on_device,
                              **results, "bytes": room["bytes"], "workspace": room["workspace"]}
    yield "cudnnGetCTCLossWorkspaceSize", {
        "handle": handle(), "logits_as": rows, "gradient_as": rows, **on_host, "algorithm": 0,
        "ctc": ctc(), "ret_bytes": byref(size)}
    yield "cudnnGetCTCLossWorkspaceSize_v8", {
        "handle": handle(), "algorithm": 0, "ctc": ctc(), "logits_as": rows, "gradient_as": rows,
        "ret_bytes": byref(size)}


def others():
    pixels, plane = tensor(2, 3, 5, 5, order=NHWC), 2 * 3 * 25 * 4
    yield "cudnnPoolingForward", {
        "handle": handle(), "pooling": pooling(), "alpha": ONE, "x_as": pixels, "x": memory(plane),
        "beta": ZERO, "y_as": pixels, "y": memory(plane)}
    yield "cudnnPoolingBackward", {
        "handle": handle(), "pooling": pooling(), "alpha": ONE, "y_as": pixels, "y": memory(plane),
        "dy_as": pixels, "dy": memory(plane), "x_as": pixels, "x": memory(plane), "beta": ZERO,
        "dx_as": pixels, "dx": memory(plane)}
    yield "cudnnBatchNormalizationBackward", {
        "handle": handle(), "mode": 1, "alpha_dx": ONE, "beta_dx": ZERO, "alpha": ONE, "beta": ZERO,
        "x_as": pixels, "x": memory(plane), "dy_as": pixels, "dy": memory(plane), "dx_as": pixels,
        "dx": memory(plane), "channels_as": tensor(1, 3, 1, 1), "scale": memory(12),
        "dscale": memory(12), "dbias": memory(12), "epsilon": 1e-5, "mean": memory(12),
        "inverse_deviation": memory(12)}
    x, dy = tensor(2, 3, 5, 5), tensor(2, 3, 1, 7)
    yield "cudnnSpatialTfSamplerBackward", {
        "handle": handle(), "transformer": transformer(2, 3, 1, 7), "alpha": ONE, "x_as": x,
        "x": memory(plane), "beta": ZERO, "dx_as": x, "dx": memory(plane), "alpha_dgrid": ONE,
        "dy_as": dy, "dy": memory(2 * 3 * 7 * 4), "grid": memory(2 * 7 * 2 * 4), "beta_dgrid": ZERO,
        "dgrid": memory(2 * 7 * 2 * 4)}


@functools.cache
def right():
    return {**dict(convolutions()), **dict(losses()), **dict(others())}


def moved(pointer, count):
    return type(pointer)(pointer.value + count)


def wrongs(function, arguments):
    """(argument, its wrong value, the status): what can be wrong with anything of that kind."""
    for name, value in arguments.items():
        if isinstance(value, Handle):
            yield name, None, "NOT_INITIALIZED"
            yield name, tensor(1, 1, 1, 1), "NOT_INITIALIZED"
        elif isinstance(value, Descriptor):
            yield name, None, NULL
            yield name, make(value.kind), BAD
            yield name, handle(), BAD
        elif isinstance(value, Memory) and name in ("labels", "label_lengths", "time_lengths"):
            yield name, None, NULL
            yield name, ints(1, 1, 1), FAULT
        elif isinstance(value, Memory):
            yield name, None, BAD if name in ("mean", "inverse_deviation") else NULL
            yield name, moved(value, 1), "BAD_PARAM_MISALIGNED_POINTER"
            yield name, moved(value, 16 if name == "workspace" else 4), FAULT
            if name != "workspace":
                yield name, host((c_float * 2048)()), FAULT
        elif isinstance(value, Host):
            yield name, None, NULL
            if name in ("labels", "label_lengths", "time_lengths"):
                yield name, memory(64), FAULT
        elif name == "bytes":
            yield name, c_size_t(4095), "BAD_PARAM_SIZE_INSUFFICIENT"
            yield name, c_size_t(4112), FAULT
        elif name == "room":
            yield name, 0, BAD


OWN = {
    "cudnnConvolutionForward": [
        ("algorithm", lambda: 3, "NOT_SUPPORTED"), ("algorithm", lambda: 8, "NOT_SUPPORTED"),
        ("y_as", lambda: tensor(2, 4, 5, 4), "BAD_PARAM_SHAPE_MISMATCH"),
        ("w_as", lambda: filter_(4, 2, 3, 3), "BAD_PARAM_SHAPE_MISMATCH"),
        ("how", lambda: convolution(stride=2), "BAD_PARAM_SHAPE_MISMATCH"),
        ("x_as", lambda: tensor(2, 3, 5, 5, dtype=HALF), BAD),
        ("x_as", lambda: tensor(2, 3, 5, 5, order=NHWC), "NOT_SUPPORTED_LAYOUT"),
        ("w_as", lambda: filter_(4, 3, 3, 3, order=NHWC), "NOT_SUPPORTED_LAYOUT")],
    "cudnnConvolutionBackwardFilter": [("algorithm", lambda: 4, "NOT_SUPPORTED")],
    "cudnnGetConvolutionForwardWorkspaceSize": [("algorithm", lambda: 3, "NOT_SUPPORTED")],
    "cudnnPoolingForward": [
        ("y_as", lambda: tensor(2, 3, 5, 4, order=NHWC), "BAD_PARAM_SHAPE_MISMATCH"),
        ("y_as", lambda: tensor(2, 3, 5, 5, dtype=HALF, order=NHWC), BAD),
        ("pooling", lambda: pooling(mode=1), "NOT_SUPPORTED")],
    "cudnnPoolingBackward": [
        ("dy_as", lambda: tensor(2, 3, 5, 5, order=NCHW), BAD),
        ("dx_as", lambda: tensor(2, 3, 5, 4, order=NHWC), BAD),
        ("dx_as", lambda: tensor(2, 3, 5, 5, dtype=HALF, order=NHWC), BAD)],
    "cudnnBatchNormalizationBackward": [
        ("mode", lambda: 3, BAD), ("mode", lambda: 0, "NOT_SUPPORTED"),
        ("epsilon", lambda: -1e-5, BAD), ("channels_as", lambda: tensor(1, 4, 1, 1), BAD),
        ("dy_as", lambda: tensor(2, 3, 5, 4, order=NHWC), BAD),
        ("dx_as", lambda: tensor(2, 3, 5, 5, order=NCHW), "NOT_SUPPORTED")],
    "cudnnSpatialTfSamplerBackward": [
        ("transformer", lambda: transformer(2, 3, 1, 6), "BAD_PARAM_SHAPE_MISMATCH"),
        ("dx_as", lambda: tensor(2, 3, 5, 4), BAD)],
    "cudnnCTCLoss": [
        ("algorithm", lambda: 2, "NOT_SUPPORTED"), ("labels", lambda: ints(0, 2, 1), BAD),
        ("labels", lambda: ints(1, 3, 1), BAD), ("label_lengths", lambda: ints(4, 0), BAD),
        ("time_lengths", lambda: ints(5, 3), BAD), ("ctc", lambda: ctc(most=1), BAD),
        ("ctc", lambda: ctc(normalization=0), "NOT_SUPPORTED"),
        ("gradient_as", lambda: logits(4, 2, 4), BAD),
        ("logits_as", lambda: logits(4, 2, 3, dtype=DOUBLE), "NOT_SUPPORTED"),
        ("logits_as", lambda: tensor(4, 2, 3, 1), BAD)],
}


def functions():
    return sorted([*(f"cudnn{kind}Convolution{name}{end}"
                     for kind, end in (("", ""), ("Get", "WorkspaceSize"), ("Get", "Algorithm_v7"),
                                       ("Find", "AlgorithmEx"))
                     for name in ("Forward", "BackwardData", "BackwardFilter")),
                   "cudnnCTCLoss", "cudnnCTCLoss_v8", "cudnnGetCTCLossWorkspaceSize",
                   "cudnnGetCTCLossWorkspaceSize_v8", "cudnnPoolingForward", "cudnnPoolingBackward",
                   "cudnnBatchNormalizationBackward", "cudnnSpatialTfSamplerBackward"])


@pytest.mark.parametrize("function", functions())
def test_what_cudnn_refuses(function):
    arguments = right()[function]
    assert call(function, *arguments.values()) == OK
    own = [(name, make_wrong(), status) for name, make_wrong, status in OWN.get(function, [])]
    tried = 0
    for name, wrong, status in [*wrongs(function, arguments), *own]:
        said = call(function, *({**arguments, name: wrong}).values())
        words = ctypes.create_string_buffer(200)
        load("cudnn/libcudnn.so.9").cudnnGetLastErrorString(words, c_size_t(200))
        assert said == status, (function, name, wrong, words.value)
        tried += 1
    assert tried > 5
    assert call(function, *arguments.values()) == OK, "a refusal changed something"


SETTERS = {
    "cudnnSetTensor4dDescriptor": (
        "Tensor", (NCHW, FLOAT, 2, 3, 4, 5),
        [(0, 2, BAD), (1, 99, BAD), (2, 0, BAD), (5, -1, BAD), (2, 1 << 30, "NOT_SUPPORTED")]),
    "cudnnSetTensorNdDescriptor": (
        "Tensor", (FLOAT, 3, ints(4, 2, 3), ints(6, 3, 1)),
        [(0, 99, BAD), (1, 2, "NOT_SUPPORTED"), (1, 9, "NOT_SUPPORTED"), (2, ints(4, 0, 3), BAD),
         (2, None, NULL), (3, None, NULL), (3, ints(6, 3, 0), BAD)]),
    "cudnnSetFilter4dDescriptor": (
        "Filter", (FLOAT, NCHW, 4, 3, 3, 3), [(0, 99, BAD), (1, 2, BAD), (2, 0, BAD), (5, -3, BAD)]),
    "cudnnSetConvolution2dDescriptor": (
        "Convolution", (1, 1, 1, 1, 1, 1, 1, FLOAT),
        [(0, -1, BAD), (1, -1, BAD), (2, 0, BAD), (3, 0, BAD), (4, 0, BAD), (5, -1, BAD), (6, 2, BAD),
         (7, HALF, "NOT_SUPPORTED")]),
    "cudnnSetPooling2dDescriptor": (
        "Pooling", (0, 1, 3, 3, 1, 1, 1, 1),
        [(0, 4, BAD), (1, 2, BAD), (2, 0, BAD), (3, -1, BAD), (4, -1, BAD), (5, 3, BAD), (6, 0, BAD),
         (7, 0, BAD)]),
    "cudnnSetSpatialTransformerNdDescriptor": (
        "SpatialTransformer", (0, FLOAT, 4, ints(2, 3, 1, 7)),
        [(0, 1, BAD), (1, HALF, BAD), (2, 5, "NOT_SUPPORTED"), (3, ints(2, 3, 0, 7), BAD),
         (3, None, NULL)]),
    "cudnnSetCTCLossDescriptorEx": (
        "CTCLoss", (FLOAT, 1, 0), [(0, DOUBLE, BAD), (1, 2, BAD), (2, 2, BAD)]),
    "cudnnSetCTCLossDescriptor_v8": (
        "CTCLoss", (FLOAT, 1, 0, 24), [(0, HALF, BAD), (1, 2, BAD), (2, 2, BAD), (3, 256, BAD),
                                       (3, -1, BAD)]),
    "cudnnSetCTCLossDescriptor_v9": (
        "CTCLoss", (FLOAT, 1, 0, 24), [(0, HALF, BAD), (1, 2, BAD), (2, 2, BAD), (3, 256, BAD)]),
}


@pytest.mark.parametrize("setter", SETTERS)
def test_what_a_descriptor_cannot_be(setter):
    kind, arguments, wrong = SETTERS[setter]
    assert call(setter, make(kind), *arguments) == OK
    assert call(setter, None, *arguments) == NULL
    for at, value, status in wrong:
        changed = [*arguments]
        changed[at] = value
        assert call(setter, make(kind), *changed) == status, (at, value)


def test_what_the_setters_of_a_convolution_refuse():
    for setter, wrong in ("cudnnSetConvolutionMathType", 4), ("cudnnSetConvolutionGroupCount", 0):
        assert call(setter, convolution(), 1) == OK
        assert call(setter, convolution(), wrong) == BAD
        assert call(setter, make("Convolution"), 1) == BAD, "it is set before it is described"


def cublas(name, *arguments):
    library = load("cublas/libcublas.so.13")
    status = getattr(library, name)(*arguments)
    return library.cublasGetStatusString(status).decode().removeprefix("CUBLAS_STATUS_")


def test_what_cublas_refuses():
    made = c_void_p()
    assert cublas("cublasCreate_v2", byref(made)) == OK
    a, b, c = memory(2 * 6 * 4), memory(2 * 12 * 4), memory(2 * 8 * 4)
    # 2 products: c[2,4] = a[2,3] * b[3,4], column by column
    arguments = {"handle": made, "on_a": 0, "on_b": 0, "rows": 2, "columns": 4, "inner": 3,
                 "alpha": ONE, "a": a, "lda": 2, "stride_a": c_longlong(6), "b": b, "ldb": 3,
                 "stride_b": c_longlong(12), "beta": ZERO, "c": c, "ldc": 2,
                 "stride_c": c_longlong(8), "count": 2}
    invalid = "INVALID_VALUE"
    wrong = [("handle", None, "NOT_INITIALIZED"), ("on_a", 3, invalid), ("on_b", 4, invalid),
             ("on_a", 1, "NOT_SUPPORTED"), ("rows", -1, invalid), ("columns", -1, invalid),
             ("inner", -1, invalid), ("lda", 1, invalid), ("ldb", 2, invalid), ("ldc", 1, invalid),
             ("alpha", None, invalid), ("beta", None, invalid), ("c", None, invalid),
             ("count", -1, invalid), ("a", host((c_float * 64)()), FAULT), ("a", moved(a, 4), FAULT),
             ("b", moved(b, 2), FAULT), ("b", moved(b, 4), FAULT), ("c", moved(c, 4), FAULT),
             ("stride_c", c_longlong(9), FAULT), ("count", 3, FAULT)]
    for single in False, True:
        given = {name: value for name, value in arguments.items()
                 if not single or not (name.startswith("stride") or name == "count")}
        function = "cublasSgemm_v2" if single else "cublasSgemmStridedBatched"
        assert cublas(function, *given.values()) == OK
        for name, value, status in wrong:
            if name in given and not (single and status == FAULT):
                assert cublas(function, *({**given, name: value}).values()) == status, (name, value)
        for changed, status in (({"rows": 0, "lda": 0}, invalid), ({"columns": 1, "a": moved(a, 2)}, FAULT),
                                ({"columns": 1, "inner": 1, "a": moved(a, 2)}, FAULT)):
            assert cublas(function, *({**given, **changed}).values()) == status, changed


def test_what_a_handle_of_cublas_refuses():
    made, room = c_void_p(), memory(512)
    assert cublas("cublasCreate_v2", None) == "INVALID_VALUE"
    assert cublas("cublasCreate_v2", byref(made)) == OK
    for function, good, wrong, status in (
            ("cublasSetStream_v2", [stream()], [host(c_int(0))], FAULT),
            ("cublasSetWorkspace_v2", [room, c_size_t(512)], [moved(room, 16), c_size_t(64)],
             "INVALID_VALUE"),
            ("cublasSetWorkspace_v2", [room, c_size_t(512)], [room, c_size_t(513)], FAULT),
            ("cublasSetAtomicsMode", [1], [2], "INVALID_VALUE"),
            ("cublasSetMathMode", [3], [4], "INVALID_VALUE")):
        assert cublas(function, made, *good) == OK, function
        assert cublas(function, made, *wrong) == status, function
        assert cublas(function, None, *good) == "NOT_INITIALIZED", function


def test_what_nccl_refuses():
    simulator()
    library = load("nccl/libnccl.so.2")

    def nccl(name, *arguments):
        status = getattr(library, name)(*arguments)
        return library.ncclGetErrorString(status).decode().removeprefix("nccl")

    comms = (c_void_p * 2)()
    assert nccl("ncclCommInitAll", comms, 2, ints(1, 1)) == "InvalidUsage"
    assert nccl("ncclCommInitAll", comms, 0, ints(0)) == "InvalidArgument"
    assert nccl("ncclCommInitAll", comms, 2, ints(0, 1)) == "Success"
    mine, other = memory(64, device=0), memory(64, device=1)
    count, comm = c_size_t(16), c_void_p(comms[0])
    arguments = {"send": mine, "receive": mine, "count": count, "type": 7, "operation": 0,
                 "comm": comm, "stream": stream()}
    assert nccl("ncclAllReduce", *arguments.values()) == "InvalidUsage", "outside of a group"
    assert nccl("ncclGroupStart") == "Success"
    for changed in ({"type": 6}, {"operation": 1}, {"comm": None}, {"stream": host(c_int(0))},
                    {"count": c_size_t(17)}, {"send": other, "receive": other},
                    {"send": moved(mine, 2), "receive": moved(mine, 2)},
                    {"send": host((c_float * 16)()), "receive": KEPT[-1]},
                    {"comm": c_void_p(comms[1])}):
        assert nccl("ncclAllReduce", *({**arguments, **changed}).values()) == "InvalidArgument", changed
    assert nccl("ncclAllReduce", *arguments.values()) == "Success"
    assert nccl("ncclGroupEnd") == "InvalidUsage", "one of two ranks did not call"
