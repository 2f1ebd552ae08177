"""JAX: its operations as XLA compiles them, with XLA's flags and by the number of threads."""
import importlib.util
import mmap
import os
import re

import gpus
from pack import Pack, Refused, Tools, Unsupported, Variant, array_of, short

GPU_DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
GPU_EXCLUDE = "--xla_gpu_exclude_nondeterministic_ops=true"
NO_EIGEN_THREADS = "--xla_cpu_multi_thread_eigen=false"


def cuda_runtime(said):
    """Of "cuda 12030" 12.3; what is worded otherwise as it is."""
    found = re.search(r"\bcuda (\d{4,6})$", said.strip())
    return gpus.cuda_version(int(found[1])) if found else short(" ".join(said.split()))


class Jax(Pack):
    """The flags of GPUs are known on a CPU, and promise nothing there."""
    backends = ("cpu", "cuda")
    name, subject_name, module, packages, parts = "jax", "JAX", "jax", ("jax",), ("jaxlib",)
    variants = (
        Variant("default", "as XLA compiles by itself", control=True),
        Variant("deterministic_ops", "XLA's flag for operations on GPUs, whatever the backend is",
                variables={"XLA_FLAGS": GPU_DETERMINISTIC}, gpu_claim="deterministic"),
        Variant("exclude_nondeterministic", "XLA's flag that leaves algorithms of GPUs out, whatever"
                " the backend is", variables={"XLA_FLAGS": GPU_EXCLUDE}, gpu_claim="deterministic"),
        Variant("no_eigen_threads", "XLA's flag that keeps products and convolutions in one thread",
                variables={"XLA_FLAGS": NO_EIGEN_THREADS}, backends=("cpu",)),
        Variant("one_thread", "one thread for all that XLA computes", threads=1,
                variables={"XLA_FLAGS": NO_EIGEN_THREADS}, backends=("cpu",)),
    )

    def requirement(self):
        return "jax[cuda12]" if self.backend == "cuda" else "jax"

    def beside(self, version):
        return ["jaxlib<=%s" % version, "numpy<2" if numbers_of(version) < [0, 4, 26] else "numpy"]

    def prepare(self, variant, threads):
        """XLA ends the process when it reads a flag that it does not know."""
        flag = variant.variables.get("XLA_FLAGS", "").lstrip("-").partition("=")[0]
        if flag and not mentions(flag):
            raise Unsupported("its XLA does not know the flag %s" % flag)
        return {"NPROC": str(threads), "PJRT_NPROC": str(threads)}

    def load(self):
        """It takes no more of a GPU's memory than it uses: others use it, too, while it only says what it is."""
        os.environ["JAX_PLATFORMS"] = self.backend
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        super().load()
        self.framework.config.update("jax_enable_x64", True)  # an index of 64 bits stays one
        return self.framework

    def versions(self):
        """Without its backend, which JAX_PLATFORMS names: to ask for it is to start its threads, and a process
        that has them cannot fork others that compute."""
        import jaxlib
        import numpy
        return {"jaxlib": jaxlib.__version__, "numpy": numpy.__version__}

    def check_build(self):
        """Its CUDA is a plugin; in older versions, another build of jaxlib."""
        import jaxlib
        plugins = ("jax_cuda%d_plugin" % version for version in range(11, 16))
        if "cuda" not in jaxlib.__version__ and not any(map(importlib.util.find_spec, plugins)):
            raise Refused("JAX %s was installed without CUDA" % self.version())

    def open_gpu(self):
        """JAX says a RuntimeError of what it was not installed with, and of GPUs that are not there."""
        self.check_build()
        try:
            devices = self.framework.devices()
        except RuntimeError as error:
            raise Refused("JAX %s sees no GPU: %s" % (self.version(), str(error)[:200])) from None
        if any(device.platform not in ("gpu", "cuda") for device in devices):
            raise Refused("JAX %s computes on %s" % (self.version(), devices[0].platform))
        return {"xla_backend": self.framework.default_backend(),
                "cuda_runtime": cuda_runtime(devices[0].client.platform_version)}

    def is_on_gpu(self, value):
        """Its backend has nothing but GPUs; an array that JAX did not make lies elsewhere."""
        if hasattr(value, "devices"):
            devices = value.devices()
        elif callable(getattr(value, "device", None)):  # of old versions
            devices = [value.device()]
        else:
            return False
        return all(device.platform in ("gpu", "cuda") for device in devices)

    def tensor(self, values, shape):
        import numpy
        return self.framework.numpy.asarray(array_of(numpy, values).reshape(shape))

    def explains(self, error):
        return isinstance(error, NotImplementedError) or "UNIMPLEMENTED" in str(error)


def numbers_of(version):
    return [int(part) for part in re.findall(r"\d+", version)[:3]]


def mentions(flag):
    """Whether the XLA that is installed has the name of FLAG in it."""
    found = importlib.util.find_spec("jaxlib")
    for folder in found.submodule_search_locations if found else ():
        for name in sorted(os.listdir(folder)):
            if name.endswith(".so") and name.startswith(("xla_extension", "libjax_common", "_jax")):
                with open(os.path.join(folder, name), "rb") as file, \
                        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
                    if library.find(flag.encode()) >= 0:
                        return True
    return False


PACK = Jax()
operation = PACK.operation


jax = Tools(PACK)


def root(n):
    return int(n ** 0.5)


def compiled(function, *inputs):
    """Computes FUNCTION(*INPUTS), which XLA compiles in the first iteration."""
    compute = jax.jit(function)
    return lambda: compute(*inputs)


def backward(x, function, *inputs):
    """The same of the gradients with respect to INPUTS, for an upstream gradient whose order of
    addition shows."""
    shape = jax.eval_shape(function, *inputs).shape
    upstream = x.wide("upstream", *shape)
    compute = compiled(lambda *given: jax.vjp(function, *given[1:])[1](given[0]), upstream, *inputs)
    return lambda: {"d%d" % index: gradient for index, gradient in enumerate(compute())}


# Scatters, gathers and segments

def places(x, n):
    """An index into 256 rows of 16, a value for each, and what they are added to."""
    return x.index("index", 256, n // 16), x.wide("values", n // 16, 16), x.wide("start", 256, 16)


def factors(x, n):
    """The same, of values whose products neither overflow nor vanish."""
    index, values, start = x.index("index", 256, n // 16), x.uniform("values", n // 16, 16), x.uniform("start", 256, 16)
    return index, near_one(values), near_one(start)


def near_one(values):
    return 1 + values / 16


def scatter(kind, name, summary, make=places, version=1):
    @operation("scatter_" + name, "Array.at[].%s" % kind, version=version)
    def compute(x, n):
        index, values, start = make(x, n)
        return compiled(lambda start, index, values: getattr(start.at[index], kind)(values),
                        start, index, values)
    PACK.operations["scatter_" + name].summary = summary


scatter("add", "add", "rows are added where an index says, many to the same place")
scatter("set", "set", "rows are written where an index says, many to the same place: one of them stays")
scatter("multiply", "mul", "rows are multiplied where an index says, many to the same place",
        factors, version=2)
scatter("max", "max", "maxima of the rows that an index sends to the same place")


@operation("scatter_add_1d", "Array.at[].add of a vector")
def scatter_add_1d(x, n):
    """elements of a vector are added where an index says"""
    return compiled(lambda start, index, values: start.at[index].add(values), x.wide("start", 256),
                    x.index("index", 256, n), x.wide("values", n))


@operation("gather_bwd", "indexing, backward")
def gather_bwd(x, n):
    """the gradient of rows that are looked up often"""
    index = x.index("index", 256, n // 16)
    return backward(x, lambda rows: rows[index], x.wide("rows", 256, 16))


@operation("embedding_bwd", "jax.numpy.take, backward")
def embedding_bwd(x, n):
    """the gradient of a table whose rows are looked up often"""
    index = x.index("index", 256, n // 256, 16)
    return backward(x, lambda table: jax.numpy.take(table, index, axis=0), x.wide("table", 256, 16))


@operation("one_hot_bwd", "jax.nn.one_hot, product, backward")
def one_hot_bwd(x, n):
    """the gradient of a table that is read by a product with ones and zeros"""
    index = x.index("index", 256, n // 16)
    return backward(x, lambda table: jax.nn.one_hot(index, 256, dtype="float32") @ table, x.wide("table", 256, 16))


def segment(kind, make=places, version=1):
    @operation("segment_" + kind, "jax.ops.segment_" + kind, version=version)
    def compute(x, n):
        index, values, _ = make(x, n)
        return compiled(lambda values, index: getattr(jax.ops, "segment_" + kind)(
            values, index, num_segments=256), values, index)
    PACK.operations["segment_" + kind].summary = "a %s of the rows of each segment" % kind


segment("sum")
segment("prod", factors, version=2)
segment("max")


@operation("bincount", "jax.numpy.bincount with weights")
def bincount(x, n):
    """sums of weights by bin"""
    return compiled(lambda index, weights: jax.numpy.bincount(index, weights, length=256),
                    x.index("index", 256, n), x.wide("weights", n))


# Sums, orders and products

def reduction(name, title, summary, function, make="wide", version=1):
    @operation(name, title, version=version)
    def compute(x, n):
        return compiled(lambda values: function(values), getattr(x, make)("values", 64, n // 64))
    PACK.operations[name].summary = summary


reduction("sum", "jax.numpy.sum", "a sum of all elements", lambda a: jax.numpy.sum(a))
reduction("sum_rows", "jax.numpy.sum, axis=1", "sums of rows", lambda a: jax.numpy.sum(a, 1))
reduction("sum_columns", "jax.numpy.sum, axis=0", "sums of columns", lambda a: jax.numpy.sum(a, 0))
reduction("mean", "jax.numpy.mean", "a mean of all elements", lambda a: jax.numpy.mean(a))
reduction("var", "jax.numpy.var", "a variance of all elements", lambda a: jax.numpy.var(a))
reduction("prod", "jax.numpy.prod, axis=1", "products of rows", lambda a: jax.numpy.prod(near_one(a), 1), "uniform",
          version=2)
reduction("logsumexp", "jax.nn.logsumexp", "logarithms of sums of exponentials",
          lambda a: jax.nn.logsumexp(a, 1), "uniform")
reduction("softmax", "jax.nn.softmax", "a softmax of rows", lambda a: jax.nn.softmax(a, 1), "uniform")
reduction("cumsum", "jax.numpy.cumsum", "running sums", lambda a: jax.numpy.cumsum(a, 1))
reduction("cumprod", "jax.numpy.cumprod", "running products", lambda a: jax.numpy.cumprod(a, 1),
          "uniform")
reduction("exp", "exp, log1p, tanh", "elementwise",
          lambda a: {"exp": jax.numpy.exp(a), "log1p": jax.numpy.log1p(abs(a)), "tanh": jax.numpy.tanh(a)},
          "uniform")
reduction("fft", "jax.numpy.fft.rfft", "Fourier transforms of rows",
          lambda a: jax.numpy.abs(jax.numpy.fft.rfft(a)), "uniform")


@operation("sort_ties", "jax.lax.sort, not stable")
def sort_ties(x, n):
    """rows of few different values, and where they were"""
    keys = x.index("keys", 8, 64, n // 64)
    return compiled(lambda keys: dict(zip(("keys", "places"), jax.lax.sort(
        (keys, jax.lax.broadcasted_iota("int32", keys.shape, 1)), num_keys=1, is_stable=False))), keys)


@operation("argsort", "jax.numpy.argsort")
def argsort(x, n):
    """where the elements of rows of few different values belong"""
    return compiled(lambda keys: jax.numpy.argsort(keys, axis=1), x.index("keys", 8, 64, n // 64))


@operation("top_k", "jax.lax.top_k")
def top_k(x, n):
    """the largest of rows of few different values, and where they were"""
    return compiled(lambda keys: dict(zip(("values", "places"), jax.lax.top_k(keys, 16))),
                    x.index("keys", 8, 64, n // 64))


@operation("matmul", "jax.numpy.matmul")
def matmul(x, n):
    """a product of two square matrices"""
    return compiled(lambda a, b: a @ b, x.wide("a", root(n), root(n)), x.wide("b", root(n), root(n)))


@operation("matmul_tall", "jax.numpy.matmul, long sums")
def matmul_tall(x, n):
    """few rows and columns, and sums of many products"""
    return compiled(lambda a, b: a @ b, x.wide("a", 8, n // 8), x.wide("b", n // 8, 8))


@operation("gemv", "jax.numpy.matmul, matrix by vector")
def gemv(x, n):
    """a product of a matrix and a vector"""
    return compiled(lambda a, v: a @ v, x.wide("a", root(n), root(n)), x.wide("v", root(n)))


@operation("dot", "jax.numpy.dot of vectors")
def dot(x, n):
    """one sum of many products"""
    return compiled(lambda a, b: jax.numpy.dot(a, b), x.wide("a", n), x.wide("b", n))


@operation("einsum", "jax.numpy.einsum")
def einsum(x, n):
    """batches of products of matrices"""
    return compiled(lambda a, b: jax.numpy.einsum("bij,bjk->bik", a, b),
                    x.wide("a", 8, 16, n // 128), x.wide("b", 8, n // 128, 16))


# Layers

def convolution(name, title, summary, channels=8, groups=1, strides=1):
    @operation(name, title)
    def compute(x, n):
        side = root(n // 16)
        return backward(x, lambda images, filters: jax.lax.conv_general_dilated(
            images, filters, (strides, strides), "SAME", feature_group_count=groups,
            dimension_numbers=("NHWC", "HWIO", "NHWC")),
            x.wide("images", 2, side, side, 8), x.wide("filters", 3, 3, 8 // groups, channels))
    PACK.operations[name].summary = summary


convolution("conv_bwd", "jax.lax.conv_general_dilated, backward", "gradients of images and filters")
convolution("conv_strided_bwd", "jax.lax.conv_general_dilated, strides of 2, backward",
            "gradients of images and filters, every second place", strides=2)
convolution("conv_depthwise_bwd", "jax.lax.conv_general_dilated, depthwise, backward",
            "gradients of images and filters, each channel by itself", groups=8)


@operation("conv_transpose_bwd", "jax.lax.conv_transpose, backward")
def conv_transpose_bwd(x, n):
    """gradients of images and filters of a transposed convolution"""
    side = root(n // 16)
    return backward(x, lambda images, filters: jax.lax.conv_transpose(images, filters, (2, 2), "SAME"),
                    x.wide("images", 2, side, side, 8), x.wide("filters", 3, 3, 8, 8))


def pool(name, kind, summary):
    @operation(name, "jax.lax.reduce_window(%s), backward" % kind)
    def compute(x, n):
        side = root(n // 16)
        start, function = (-float("inf"), "max") if kind == "max" else (0.0, "add")
        return backward(x, lambda images: jax.lax.reduce_window(
            images, start, getattr(jax.lax, function), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
            x.wide("images", 2, side, side, 8))
    PACK.operations[name].summary = summary


pool("max_pool_bwd", "max", "the gradient of images, of overlapping windows' maxima")
pool("average_pool_bwd", "sum", "the gradient of images, of overlapping windows' sums")


@operation("resize_bilinear_bwd", "jax.image.resize(bilinear), backward")
def resize_bilinear_bwd(x, n):
    """the gradient of images that are made twice as wide and high"""
    side = root(n // 16)
    return backward(x, lambda images: jax.image.resize(images, (2, 2 * side, 2 * side, 8), "bilinear"),
                    x.wide("images", 2, side, side, 8))


@operation("softmax_cross_entropy_bwd", "softmax cross-entropy, backward")
def softmax_cross_entropy_bwd(x, n):
    """the gradient of a loss of rows of classes"""
    classes = x.index("classes", 64, n // 64)
    return backward(x, lambda scores: -jax.numpy.take_along_axis(
        jax.nn.log_softmax(scores), classes[:, None], axis=1).mean(), x.uniform("scores", n // 64, 64))


@operation("batch_norm_bwd", "batch normalisation, backward")
def batch_norm_bwd(x, n):
    """gradients of images, scales and shifts, in training"""
    def normalise(images, scale, shift):
        mean, var = images.mean((0, 1, 2)), images.var((0, 1, 2))
        return (images - mean) * jax.lax.rsqrt(var + 1e-5) * scale + shift
    side = root(n // 16)
    return backward(x, normalise, x.wide("images", 2, side, side, 8), x.wide("scale", 8), x.wide("shift", 8))


@operation("layer_norm_bwd", "layer normalisation, backward")
def layer_norm_bwd(x, n):
    """gradients of rows, scales and shifts"""
    def normalise(rows, scale, shift):
        mean, var = rows.mean(1, keepdims=True), rows.var(1, keepdims=True)
        return (rows - mean) * jax.lax.rsqrt(var + 1e-5) * scale + shift
    return backward(x, normalise, x.uniform("rows", n // 64, 64), x.wide("scale", 64), x.wide("shift", 64))


@operation("attention_bwd", "attention, backward")
def attention_bwd(x, n):
    """gradients of queries, keys and values"""
    def attend(query, key, value):
        scores = jax.numpy.einsum("bhqd,bhkd->bhqk", query, key) / 32 ** 0.5
        return jax.numpy.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), value)
    shape = 2, 4, max(n // 1024, 16), 32
    return backward(x, attend, *(x.uniform(name, *shape) for name in ("query", "key", "value")))


@operation("scan_bwd", "jax.lax.scan, backward")
def scan_bwd(x, n):
    """gradients of sequences and weights of a recurrent layer"""
    def layer(sequences, weights):
        def step(state, rows):
            state = jax.numpy.tanh(rows + state @ weights)
            return state, state
        return jax.lax.scan(step, jax.numpy.zeros(sequences.shape[1:], "float32"), sequences)[1]
    return backward(x, layer, x.uniform("sequences", 16, max(n // 512, 2), 32), x.uniform("weights", 32, 32))


@operation("dropout", "jax.random.bernoulli")
def dropout(x, n):
    """elements that a generator with a key chose"""
    return compiled(lambda values, key: jax.numpy.where(
        jax.random.bernoulli(jax.random.PRNGKey(key[0]), 0.5, values.shape), values, 0.0),
        x.uniform("values", n), x.index("key", 1 << 30, 1))
