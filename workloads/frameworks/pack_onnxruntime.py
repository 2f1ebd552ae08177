"""ONNX Runtime: models of one node, by the number of threads within a node and with
use_deterministic_compute."""
import re

import onnx_model
from pack import Pack, Refused, Unsupported, Variant, array_of

FLOAT, INT64 = onnx_model.FLOAT, onnx_model.INT64
GPU = "CUDAExecutionProvider"


class OnnxRuntime(Pack):
    name, subject_name, module = "onnxruntime", "ONNX Runtime", "onnxruntime"
    packages = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-training")
    backends = ("cpu", "cuda")
    variants = (
        Variant("default", "as many threads within a node as the run has", control=True),
        Variant("deterministic", "use_deterministic_compute", claim="deterministic"),
        Variant("one_thread", "one thread within a node", threads=1, backends=("cpu",)),
    )

    def requirement(self):
        return "onnxruntime-gpu[cuda,cudnn]" if self.backend == "cuda" else "onnxruntime"

    def beside(self, version):
        """Versions before 1.19 were built for the numpy before 2."""
        numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
        return ["numpy<2" if numbers < [1, 19] else "numpy"]

    def versions(self):
        said = getattr(self.framework, "get_build_info", lambda: "")()
        return {"onnxruntime_commit": (re.findall(r"git-commit-id=(\w+)", said) or [None])[0]}

    def switch(self, variant, threads):
        options = self.options = self.framework.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        if variant.name == "deterministic":
            options.use_deterministic_compute = True
        if self.backend == "cuda":
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")

    def check_build(self):
        """A session leaves to the CPU what its GPU has no code for, unless it is told not to: versions
        before 1.16 cannot be told."""
        numbers = [int(part) for part in re.findall(r"\d+", self.version())[:2]]
        if GPU not in self.framework.get_available_providers():
            raise Refused("ONNX Runtime %s was built without CUDA" % self.version())
        if numbers < [1, 16]:
            raise Refused("ONNX Runtime %s does not say what it leaves to the CPU; 1.16 does"
                          % self.version())

    def open_gpu(self):
        self.check_build()
        if hasattr(self.framework, "preload_dlls"):
            self.framework.preload_dlls()
        return {"cuda_runtime": self.find("onnxruntime.capi.build_and_package_info.cuda_version")}

    def is_on_gpu(self, value):
        """Results are copied to the host; the session was made for nothing but the GPU."""
        return True

    def tensor(self, values, shape):
        import numpy
        return array_of(numpy, values).reshape(shape)

    def explains(self, error):
        said = str(error)
        return "NOT_IMPLEMENTED" in said or "fallback to CPU EP" in said \
            or "NotImplemented" in type(error).__name__

    def session(self, kind, inputs, **arguments):
        """What runs a model of one node on INPUTS, {name: array}."""
        described = [(name, INT64 if value.dtype == "i8" else FLOAT, value.shape)
                     for name, value in inputs.items()]
        provider = GPU if self.backend == "cuda" else "CPUExecutionProvider"
        session = self.framework.InferenceSession(
            onnx_model.model(kind, described, **arguments), self.options, providers=[provider])
        if session.get_providers()[0] != provider:
            raise Unsupported("ONNX Runtime chose %s: its log says why" % session.get_providers()[0])
        return lambda: session.run(None, inputs)


PACK = OnnxRuntime()
operation, session = PACK.operation, PACK.session


def root(n):
    return int(n ** 0.5)


@operation("conv", "Conv")
def conv(x, n):
    """a convolution of 3 by 3"""
    return session("Conv", {"x": x.wide("x", 2, 16, root(n // 32), root(n // 32)),
                            "w": x.wide("w", 32, 16, 3, 3)}, attributes={"pads": [1, 1, 1, 1]})


@operation("conv_1x1", "Conv, 1 by 1")
def conv_1x1(x, n):
    """a convolution of 1 by 1: a product of matrices"""
    return session("Conv", {"x": x.wide("x", 2, 64, root(n // 128), root(n // 128)),
                            "w": x.wide("w", 64, 64, 1, 1)})


@operation("conv_depthwise", "Conv, depthwise")
def conv_depthwise(x, n):
    """a convolution of each channel by itself"""
    return session("Conv", {"x": x.wide("x", 2, 16, root(n // 32), root(n // 32)),
                            "w": x.wide("w", 16, 1, 3, 3)}, attributes={"group": 16})


@operation("conv_transpose", "ConvTranspose")
def conv_transpose(x, n):
    """a transposed convolution"""
    return session("ConvTranspose", {"x": x.wide("x", 2, 16, root(n // 32), root(n // 32)),
                                     "w": x.wide("w", 16, 8, 3, 3)}, attributes={"strides": [2, 2]})


@operation("matmul", "MatMul")
def matmul(x, n):
    """a product of two square matrices"""
    return session("MatMul", {"a": x.wide("a", root(n), root(n)), "b": x.wide("b", root(n), root(n))})


@operation("matmul_tall", "MatMul, long sums")
def matmul_tall(x, n):
    """few rows and columns, and sums of many products"""
    return session("MatMul", {"a": x.wide("a", 8, n // 8), "b": x.wide("b", n // 8, 8)})


@operation("gemm", "Gemm")
def gemm(x, n):
    """a product of matrices, one of them transposed, and a sum"""
    return session("Gemm", {"a": x.wide("a", root(n), root(n)), "b": x.wide("b", root(n), root(n)),
                            "c": x.wide("c", root(n))}, attributes={"transB": 1, "alpha": 0.5})


@operation("einsum", "Einsum")
def einsum(x, n):
    """batches of products of matrices"""
    return session("Einsum", {"a": x.wide("a", 8, 16, n // 128), "b": x.wide("b", 8, n // 128, 16)},
                   attributes={"equation": "bij,bjk->bik"})


def reduction(name, kind, summary, constants=None, attributes=None, positive=False):
    @operation(name, kind)
    def reduce(x, n):
        make = x.uniform if positive else x.wide
        return session(kind, {"x": make("x", 8, n // 8)}, constants=constants,
                       attributes=attributes)
    PACK.operations[name].summary = summary


reduction("reduce_sum", "ReduceSum", "a sum of all elements", attributes={"keepdims": 0})
reduction("reduce_sum_rows", "ReduceSum", "sums of rows", constants={"axes": [1]})
reduction("reduce_sum_columns", "ReduceSum", "sums of columns", constants={"axes": [0]})
reduction("reduce_mean", "ReduceMean", "a mean of all elements", attributes={"keepdims": 0})
reduction("reduce_l2", "ReduceL2", "a norm of all elements", attributes={"keepdims": 0})
reduction("reduce_log_sum_exp", "ReduceLogSumExp", "a logarithm of sums of exponentials",
          attributes={"axes": [1]}, positive=True)
reduction("cumsum", "CumSum", "running sums", constants={"axis": [1]})
reduction("softmax", "Softmax", "a softmax of rows", positive=True)
reduction("erf", "Erf", "elementwise", positive=True)
reduction("tanh", "Tanh", "elementwise", positive=True)


@operation("layer_normalization", "LayerNormalization")
def layer_normalization(x, n):
    """a normalisation of rows"""
    return session("LayerNormalization", {"x": x.uniform("x", n // 256, 256),
                                          "scale": x.uniform("scale", 256)})


@operation("average_pool", "AveragePool")
def average_pool(x, n):
    """means of windows of 3 by 3"""
    return session("AveragePool", {"x": x.wide("x", 2, 16, root(n // 32), root(n // 32))},
                   attributes={"kernel_shape": [3, 3]})


@operation("global_average_pool", "GlobalAveragePool")
def global_average_pool(x, n):
    """means of channels"""
    return session("GlobalAveragePool", {"x": x.wide("x", 2, 16, root(n // 32), root(n // 32))})


def resize(mode):
    @operation("resize_" + mode, "Resize, " + mode)
    def compute(x, n):
        return session("Resize", {"x": x.wide("x", 1, 8, root(n // 32), root(n // 32))},
                       constants={"roi": None, "scales": [1.0, 1.0, 2.0, 2.0]},
                       attributes={"mode": mode})
    PACK.operations["resize_" + mode].summary = "twice as wide and high, by %s interpolation" % mode


resize("linear")
resize("cubic")
resize("nearest")


@operation("scatter_elements", "ScatterElements, reduction=add")
def scatter_elements(x, n):
    """values are added where an index says, many to the same place"""
    return session("ScatterElements", {"start": x.wide("start", 256), "index": x.index("index", 256, n),
                                       "values": x.wide("values", n)}, attributes={"reduction": "add"})


@operation("scatter_nd", "ScatterND, reduction=add")
def scatter_nd(x, n):
    """rows are added where an index says, many to the same place"""
    return session("ScatterND", {"start": x.wide("start", 64, 32),
                                 "index": x.index("index", 64, n // 32, 1),
                                 "values": x.wide("values", n // 32, 32)},
                   attributes={"reduction": "add"})


@operation("lstm", "LSTM")
def lstm(x, n):
    """a recurrent layer of 16 steps"""
    return session("LSTM", {"x": x.uniform("x", 16, 8, n // 2048), "w": x.uniform("w", 1, 128, n // 2048),
                            "r": x.uniform("r", 1, 128, 32)}, attributes={"hidden_size": 32}, outputs=1)
