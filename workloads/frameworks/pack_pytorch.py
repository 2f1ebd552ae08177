"""PyTorch: the operations that torch.use_deterministic_algorithms lists, forwards and backwards as the
lists say, with and without it."""
import re

import attention_pytorch
import trainings_pytorch
from pack import Pack, Refused, Tools, Variant, array_of, short

LISTED = ("torch", "nn", "Tensor", "functional")


class PyTorch(Pack):
    name, subject_name, module, packages = "pytorch", "PyTorch", "torch", ("torch",)
    documentation = "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html"
    listed_by = "torch.use_deterministic_algorithms"
    backends = ("cpu", "cuda")
    # By the first gradient, use_deterministic_algorithms, and optimizers: half a second each.
    later = ("torch.fx.experimental.symbolic_shapes", "torch._inductor.config", "torch._dynamo")
    variants = (
        Variant("default", "as PyTorch computes by itself", control=True),
        Variant("cudnn_deterministic", "torch.backends.cudnn.deterministic, for convolutions and what else"
                " cuDNN computes", recipe="CD", backends=("cuda",)),
        Variant("deterministic", "torch.use_deterministic_algorithms(True)", claim="deterministic",
                recipe="UDA+CWC", variables={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    )

    def beside(self, version):
        """The inputs are made by numpy, in a useful time."""
        numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
        return ["numpy<2" if numbers < [2, 3] else "numpy"]

    def versions(self):
        """On a GPU without what only CUDA's runtime can say: to ask it is to begin to use it, and a process
        that did cannot fork others that compute."""
        facts = {} if self.backend == "cuda" else self.built_with()
        return {**facts, "torch_git": getattr(self.framework.version, "git_version", None)}

    def built_with(self):
        config = self.framework.__config__.show()
        found = {"onednn": r"(?:oneDNN|MKL-DNN|Intel\(R\) Deep Neural Network Library)[^\n]*?v([\w.]+)",
                 "mkl": r"Math Kernel Library Version ([\w.]+)",
                 "torch_cpu_capability": r"CPU capability usage: (\S+)"}
        facts = {name: (re.findall(pattern, config) or [None])[0] for name, pattern in found.items()}
        return {**facts, "torch_config": short(config)}

    def switch(self, variant, threads):
        torch = self.framework
        torch.set_num_threads(threads)
        if variant.name == "cudnn_deterministic":
            torch.backends.cudnn.deterministic = True
        if variant.name == "deterministic":
            if not hasattr(torch, "use_deterministic_algorithms"):
                from pack import Unsupported
                raise Unsupported("PyTorch %s has no use_deterministic_algorithms; it came with 1.8"
                                  % self.version())
            torch.use_deterministic_algorithms(True)

    def claim(self, operation, variant):
        """Before 2.1 nothing is said of memory that nobody wrote."""
        filled = hasattr(self.framework.utils, "deterministic")
        return self.promised(variant) if filled or operation.kind != "poison" else None

    def check_build(self):
        if not self.framework.version.cuda:
            raise Refused("PyTorch %s was built without CUDA" % self.version())

    def open_gpu(self):
        self.check_build()
        torch = self.framework
        if not torch.cuda.is_available() or torch.cuda.device_count() < 1:
            raise Refused("PyTorch %s, which was built for CUDA %s, sees no GPU"
                          % (self.version(), torch.version.cuda))
        return {**self.built_with(), "cuda_runtime": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}

    def wait(self):
        self.framework.cuda.synchronize()

    def is_on_gpu(self, value):
        return getattr(getattr(value, "device", None), "type", None) == "cuda"

    def tensor(self, values, shape):
        """Without torch.from_numpy: old versions of one do not know new ones of the other."""
        torch = self.framework
        dtypes = {"f": torch.float32, "d": torch.float64, "q": torch.int64}
        code = getattr(values, "typecode", None) or values.dtype.char.replace("l", "q")
        tensor = torch.frombuffer(bytearray(values.tobytes()), dtype=dtypes[code]).reshape(shape)
        return tensor.to(self.backend)

    def explains(self, error):
        return isinstance(error, NotImplementedError) or (
            isinstance(error, RuntimeError) and "determinis" in str(error))

    def listed(self):
        """The names in the lists of this version's own documentation."""
        text = getattr(getattr(self.framework, "use_deterministic_algorithms", None), "__doc__", "")
        entries = re.findall(r"^\s*\* (.*(?:\n\s+[^*\s].*)*)", text or "", re.M)
        names = (re.search(r":(?:class|func|meth|attr):`~?([\w.]+)", entry) for entry in entries)
        return sorted({name[1] for name in names if name})

    def unmeasured(self):
        known = {name for operation in self.operations.values() if self.has(operation)
                 for name in operation.documented}
        return [name for name in self.listed() if name not in known]


PACK = PyTorch()


torch = Tools(PACK)


def operation(name, title, *documented, **arguments):
    return PACK.operation(name, title, documented=documented, **arguments)


def functional():
    return PACK.framework.nn.functional


def side(n, channels):
    """The side of an image of about N elements with CHANNELS channels and batches."""
    return max(int((n // channels) ** 0.5), 4)


def cube(n, channels):
    return max(int(round((n // channels) ** (1 / 3))), 4)


def backward(x, function, *inputs, others=()):
    """Computes the gradients of FUNCTION(*INPUTS, *OTHERS) with respect to INPUTS, for an upstream
    gradient whose order of addition shows."""
    with torch.no_grad():
        result = function(*inputs, *others)
    upstream = x.wide("upstream", *result.shape)

    def compute():
        leaves = [value.detach().requires_grad_() for value in inputs]
        gradients = torch.autograd.grad(function(*leaves, *others), leaves, upstream)
        return {"d%d" % index: gradient for index, gradient in enumerate(gradients)}
    return compute


# Scatters and gathers

def places(x, n):
    """An index into 256 rows of 16, and a value for each."""
    return x.index("index", 256, n // 16), x.wide("values", n // 16, 16)


@operation("index_put", "Tensor.index_put_(accumulate=True)", "torch.Tensor.index_put_",
           "torch.Tensor.index_put",
           "torch.index_put")
def index_put(x, n):
    """rows are added where an index says, many to the same place"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    return lambda: start.clone().index_put_((index,), values, accumulate=True)


@operation("index_put_replace", "Tensor.index_put_(accumulate=False)", "torch.Tensor.index_put_",
           "torch.Tensor.index_put",
           "torch.index_put")
def index_put_replace(x, n):
    """rows are written where an index says, many to the same place: the last one stays"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    return lambda: start.clone().index_put_((index,), values, accumulate=False)


@operation("index_add", "Tensor.index_add", "torch.index_add", "torch.index_add_",
           "torch.Tensor.index_add_", "torch.Tensor.index_add")
def index_add(x, n):
    """rows are added where an index says"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    return lambda: start.index_add(0, index, values)


@operation("index_copy", "Tensor.index_copy", "torch.index_copy", "torch.Tensor.index_copy",
           "torch.Tensor.index_copy_")
def index_copy(x, n):
    """rows are copied where an index says, many to the same place"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    return lambda: start.index_copy(0, index, values)


@operation("index_reduce", "Tensor.index_reduce(mean)", "torch.Tensor.index_reduce",
           needs="torch.Tensor.index_reduce", since="PyTorch 1.12")
def index_reduce(x, n):
    """means of the rows that an index sends to the same place"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    return lambda: start.index_reduce(0, index, values, "mean")


@operation("index_select_bwd", "index_select, backward", "torch.index_select")
def index_select_bwd(x, n):
    """the gradient of rows that are looked up often"""
    index, rows = x.index("index", 256, n // 16), x.wide("rows", 256, 16)
    return backward(x, lambda rows: torch.index_select(rows, 0, index), rows)


@operation("getitem_bwd", "Tensor.__getitem__, backward", "torch.Tensor.__getitem__", "torch.__getitem__")
def getitem_bwd(x, n):
    """the gradient of rows that are looked up often by indexing"""
    index, rows = x.index("index", 256, n // 16), x.wide("rows", 256, 16)
    return backward(x, lambda rows: rows[index], rows)


@operation("gather_bwd", "gather, backward", "torch.gather")
def gather_bwd(x, n):
    """the gradient of elements that are looked up often"""
    index, rows = x.index("index", 256, n // 16, 16), x.wide("rows", 256, 16)
    return backward(x, lambda rows: torch.gather(rows, 0, index), rows)


@operation("gather_1d_bwd", "gather of a vector, backward", "torch.gather")
def gather_1d_bwd(x, n):
    """the gradient of elements of a vector that are looked up often"""
    index, rows = x.index("index", 256, n), x.wide("rows", 256)
    return backward(x, lambda rows: torch.gather(rows, 0, index), rows)


@operation("scatter", "Tensor.scatter", "torch.Tensor.scatter")
def scatter(x, n):
    """elements are written where an index says, many to the same place"""
    index, values = x.index("index", 256, n // 16, 16), x.wide("values", n // 16, 16)
    start = x.wide("start", 256, 16)
    return lambda: start.scatter(0, index, values)


@operation("scatter_add", "Tensor.scatter_add_", "torch.Tensor.scatter_add_",
           "torch.Tensor.scatter_add", "torch.scatter_add_")
def scatter_add(x, n):
    """elements are added where an index says, many to the same place"""
    index, values = x.index("index", 256, n // 16, 16), x.wide("values", n // 16, 16)
    start = x.wide("start", 256, 16)
    return lambda: start.clone().scatter_add_(0, index, values)


@operation("scatter_add_1d", "Tensor.scatter_add_ of a vector", "torch.Tensor.scatter_add_")
def scatter_add_1d(x, n):
    """elements of a vector are added where an index says"""
    index, values, start = x.index("index", 256, n), x.wide("values", n), x.wide("start", 256)
    return lambda: start.clone().scatter_add_(0, index, values)


def scatter_reduce(kind):
    @operation("scatter_reduce_" + kind, "Tensor.scatter_reduce(%s)" % kind, "torch.Tensor.scatter_reduce",
               needs="torch.Tensor.scatter_reduce_", since="PyTorch 1.12")  # before, it had no values
    def compute(x, n):
        make = x.uniform if kind == "prod" else x.wide
        index, values = x.index("index", 256, n // 16, 16), make("values", n // 16, 16)
        start = make("start", 256, 16)
        return lambda: start.scatter_reduce(0, index, values, kind)
    PACK.operations["scatter_reduce_" + kind].summary = (
        "a %s of the elements that an index sends to the same place" % kind)


for reduction in ("sum", "mean", "prod", "amax"):
    scatter_reduce(reduction)


@operation("put", "Tensor.put_(accumulate=False)", "torch.Tensor.put_")
def put(x, n):
    """elements are written where an index says, many to the same place"""
    index, values, start = x.index("index", 4096, n), x.wide("values", n), x.wide("start", 4096)
    return lambda: start.clone().put_(index, values, accumulate=False)


@operation("put_accumulate", "Tensor.put_(accumulate=True)", "torch.Tensor.put_")
def put_accumulate(x, n):
    """elements are added where an index says, many to the same place"""
    index, values, start = x.index("index", 4096, n), x.wide("values", n), x.wide("start", 4096)
    return lambda: start.clone().put_(index, values, accumulate=True)


@operation("repeat_interleave_bwd", "repeat_interleave, backward", "torch.repeat_interleave")
def repeat_interleave_bwd(x, n):
    """the gradient of rows that are repeated as often as a count says"""
    counts, rows = x.index("counts", n // 2048, 256), x.wide("rows", 256, 16)
    return backward(x, lambda rows: torch.repeat_interleave(rows, counts, 0), rows)


@operation("embedding_bwd", "nn.functional.embedding, backward", "torch.nn.Embedding")
def embedding_bwd(x, n):
    """the gradient of a table whose rows are looked up often"""
    index, table = x.index("index", 256, n // 16), x.wide("table", 256, 16)
    return backward(x, lambda table: functional().embedding(index, table), table)


def embedding_bag(mode):
    @operation("embedding_bag_%s_bwd" % mode, "nn.functional.embedding_bag(%s), backward" % mode,
               "torch.nn.EmbeddingBag")
    def compute(x, n):
        index, table = x.index("index", 256, n // 256, 16), x.wide("table", 256, 16)
        return backward(x, lambda table: functional().embedding_bag(index, table, mode=mode), table)
    PACK.operations["embedding_bag_%s_bwd" % mode].summary = (
        "the gradient of a table, for bags of rows, mode %s" % mode)


for mode in ("sum", "mean", "max"):
    embedding_bag(mode)


# Counts, orders and sums

@operation("bincount", "bincount with weights", "torch.bincount")
def bincount(x, n):
    """sums of weights by bin"""
    index, weights = x.index("index", 256, n), x.wide("weights", n)
    return lambda: torch.bincount(index, weights, 256)


@operation("histc", "histc", "torch.histc")
def histc(x, n):
    """a histogram"""
    values = x.uniform("values", n)
    return lambda: torch.histc(values, 64, -1.0, 1.0)


@operation("median", "median with indices", "torch.median")
def median(x, n):
    """medians of rows and where they are"""
    values = x.uniform("values", 64, n // 64)
    return lambda: dict(zip(("values", "indices"), torch.median(values, 1)))


@operation("kthvalue", "kthvalue", "torch.kthvalue")
def kthvalue(x, n):
    """the kth of each row and where it is"""
    values = x.uniform("values", 64, n // 64)
    return lambda: dict(zip(("values", "indices"), torch.kthvalue(values, n // 256, 1)))


@operation("sort", "sort, not stable")
def sort(x, n):
    """rows of few different values, and where they were"""
    values = x.index("values", 8, 64, n // 64)
    return lambda: dict(zip(("values", "indices"), torch.sort(values, 1)))


@operation("cumsum", "cumsum", "torch.cumsum")
def cumsum(x, n):
    """running sums"""
    values = x.wide("values", n)
    return lambda: torch.cumsum(values, 0)


@operation("logcumsumexp", "logcumsumexp")
def logcumsumexp(x, n):
    """logarithms of running sums of exponentials"""
    values = x.uniform("values", n)
    return lambda: torch.logcumsumexp(values, 0)


@operation("sum", "sum")
def sum_all(x, n):
    """a sum of all elements"""
    values = x.wide("values", n)
    return lambda: torch.sum(values)


@operation("sum_columns", "sum over rows")
def sum_columns(x, n):
    """sums of columns"""
    values = x.wide("values", n // 64, 64)
    return lambda: torch.sum(values, 0)


@operation("softmax_bwd", "softmax, backward")
def softmax_bwd(x, n):
    """the gradient of a softmax of rows"""
    return backward(x, lambda a: torch.softmax(a, 1), x.uniform("a", 64, n // 64))


# Products and convolutions

@operation("mm", "mm", "torch.mm")
def mm(x, n):
    """a product of two square matrices"""
    a, b = x.wide("a", side(n, 1), side(n, 1)), x.wide("b", side(n, 1), side(n, 1))
    return lambda: torch.mm(a, b)


@operation("mm_tall", "mm, long sums", "torch.mm")
def mm_tall(x, n):
    """few rows and columns, and sums of many products"""
    a, b = x.wide("a", 8, n // 8), x.wide("b", n // 8, 8)
    return lambda: torch.mm(a, b)


@operation("mv", "mv", "torch.mv")
def mv(x, n):
    """a product of a matrix and a vector"""
    a, v = x.wide("a", side(n, 1), side(n, 1)), x.wide("v", side(n, 1))
    return lambda: torch.mv(a, v)


@operation("bmm", "bmm", "torch.bmm")
def bmm(x, n):
    """a batch of products"""
    a, b = x.wide("a", 16, side(n, 16), side(n, 16)), x.wide("b", 16, side(n, 16), side(n, 16))
    return lambda: torch.bmm(a, b)


@operation("sparse_mm", "sparse.mm", "torch.bmm")
def sparse_mm(x, n):
    """a product of a sparse matrix, whose places may be equal, and a dense one"""
    places_, values = x.index("places", 256, 2, n // 16), x.wide("values", n // 16)
    dense = x.wide("dense", 256, 32)
    return lambda: torch.sparse.mm(torch.sparse_coo_tensor(places_, values, (256, 256)), dense)


def convolution(dimensions, transposed):
    name = "conv%s%dd_bwd" % ("_transpose" if transposed else "", dimensions)
    title = "conv%s%dd" % ("_transpose" if transposed else "", dimensions)

    @operation(name, "nn.functional.%s, backward" % title,
               "torch.nn.Conv%s%dd" % ("Transpose" if transposed else "", dimensions))
    def compute(x, n):
        extent = {1: n // 16, 2: side(n, 16), 3: cube(n, 16)}[dimensions]
        images = x.wide("images", 2, 8, *[extent] * dimensions)
        filters = x.wide("filters", 8, 8, *[3] * dimensions)
        bias = x.wide("bias", 8)
        function = getattr(functional(), title)
        return backward(x, lambda *inputs: function(*inputs), images, filters, bias)
    PACK.operations[name].summary = "gradients of images, filters and bias, %d dimensions" % dimensions


for rank in (1, 2, 3):
    convolution(rank, False)
    convolution(rank, True)


# Pools, pads and interpolations

def of_images(name, title, documented, function, rank=2, needs=(), since=None):
    """The gradient of FUNCTION(images), with images of RANK dimensions."""
    @operation(name, title, *documented, needs=needs, since=since)
    def compute(x, n):
        extent = {1: n // 16, 2: side(n, 16), 3: cube(n, 16)}[rank]
        return backward(x, function, x.wide("images", 2, 8, *[extent] * rank))
    PACK.operations[name].summary = "the gradient of images of %d dimension%s" % (rank, "s" * (rank > 1))


def pool(name, module, rank, function):
    of_images(name + "_bwd", "nn.functional.%s, backward" % name, ["torch.nn." + module], function, rank)


pool("avg_pool3d", "AvgPool3d", 3, lambda a: functional().avg_pool3d(a, 3, 2))
pool("adaptive_avg_pool2d", "AdaptiveAvgPool2d", 2, lambda a: functional().adaptive_avg_pool2d(a, 7))
pool("adaptive_avg_pool3d", "AdaptiveAvgPool3d", 3, lambda a: functional().adaptive_avg_pool3d(a, 5))
pool("adaptive_max_pool2d", "AdaptiveMaxPool2d", 2, lambda a: functional().adaptive_max_pool2d(a, 7))
pool("max_pool2d", "MaxPool2d", 2, lambda a: functional().max_pool2d(a, 3, 2))
pool("max_pool3d", "MaxPool3d", 3, lambda a: functional().max_pool3d(a, 3, 2))


def fractional(rank):
    name, title = "fractional_max_pool%dd_bwd" % rank, "fractional_max_pool%dd" % rank

    @operation(name, "nn.functional.%s, backward" % title, "torch.nn.FractionalMaxPool%dd" % rank)
    def compute(x, n):
        extent = side(n, 16) if rank == 2 else cube(n, 16)
        samples = x.uniform("samples", 2, 8, rank) * 0.5 + 0.5
        function = getattr(functional(), title)
        ratio = (0.5,) * rank  # PyTorch 2 takes no number for all dimensions
        return backward(x, lambda a: function(a, 3, output_ratio=ratio, _random_samples=samples),
                        x.wide("images", 2, 8, *[extent] * rank))
    PACK.operations[name].summary = "the gradient of images, pooled at places that are given"


fractional(2)
fractional(3)


def unpool(rank):
    name, title = "max_unpool%dd" % rank, "max_unpool%dd" % rank

    @operation(name, "nn.functional." + title, "torch.nn.MaxUnpool%dd" % rank)
    def compute(x, n):
        extent = {1: n // 16, 2: side(n, 16), 3: cube(n, 16)}[rank] // 2 * 2
        pooled, indices = getattr(functional(), "max_pool%dd" % rank)(
            x.uniform("images", 2, 8, *[extent] * rank), 2, return_indices=True)
        return lambda: getattr(functional(), title)(pooled, indices, 2)
    PACK.operations[name].summary = "puts pooled values back to where they were"


for rank in (1, 2, 3):
    unpool(rank)


def pad(mode, module, rank):
    name = "%s_pad%dd_bwd" % (mode, rank)
    of_images(name, "nn.functional.pad(%s), %d dimension%s, backward" % (mode, rank, "s" * (rank > 1)),
              ["torch.nn.%s%dd" % (module, rank)],
              lambda a: functional().pad(a, [3] * (2 * rank), mode=mode), rank)


for rank in (1, 2, 3):
    pad("reflect", "ReflectionPad", rank)
    pad("replicate", "ReplicationPad", rank)


def interpolate(mode, rank):
    corners = {} if mode in ("nearest", "area") else {"align_corners": False}
    of_images("interpolate_%s%dd_bwd" % (mode, rank) if mode == "nearest" else "interpolate_%s_bwd" % mode,
              "nn.functional.interpolate(%s), backward" % mode, ["torch.nn.functional.interpolate"],
              lambda a: functional().interpolate(a, scale_factor=2, mode=mode, **corners), rank)


interpolate("linear", 1)
interpolate("bilinear", 2)
interpolate("bicubic", 2)
interpolate("trilinear", 3)
interpolate("nearest", 2)


@operation("grid_sample_bwd", "nn.functional.grid_sample, backward", "torch.nn.functional.grid_sample")
def grid_sample_bwd(x, n):
    """gradients of images that are read at places between pixels, and of the places"""
    images, grid = x.wide("images", 2, 8, 32, 32), x.uniform("grid", 2, side(n, 16), side(n, 16), 2)
    return backward(x, lambda a, g: functional().grid_sample(a, g, align_corners=False), images, grid)


# Losses, normalisations, attention

@operation("nll_loss", "nn.functional.nll_loss", "torch.nn.NLLLoss")
def nll_loss(x, n):
    """a loss of images of classes"""
    scores = x.uniform("scores", 2, 8, side(n, 16), side(n, 16))
    classes = x.index("classes", 8, 2, side(n, 16), side(n, 16))
    return lambda: functional().nll_loss(scores, classes)


@operation("cross_entropy_bwd", "nn.functional.cross_entropy, backward")
def cross_entropy_bwd(x, n):
    """the gradient of a loss of rows of classes"""
    classes = x.index("classes", 64, n // 64)
    return backward(x, lambda a: functional().cross_entropy(a, classes), x.uniform("scores", n // 64, 64))


@operation("ctc_loss_bwd", "nn.functional.ctc_loss, backward", "torch.nn.CTCLoss")
def ctc_loss_bwd(x, n):
    """the gradient of a loss of sequences of labels"""
    steps, batch, labels = 64, max(n // 4096, 2), 15
    targets = x.index("targets", 31, batch, labels) + 1
    lengths = torch.full((batch,), steps), torch.full((batch,), labels)
    return backward(x, lambda a: functional().ctc_loss(torch.log_softmax(a, 2), targets, *lengths),
                    x.uniform("scores", steps, batch, 32))


@operation("batch_norm_bwd", "nn.functional.batch_norm, backward")
def batch_norm_bwd(x, n):
    """gradients of images, scales and shifts, in training"""
    return backward(x, lambda a, s, b: functional().batch_norm(a, None, None, s, b, training=True),
                    x.wide("images", 2, 8, side(n, 16), side(n, 16)), x.wide("scale", 8), x.wide("shift", 8))


@operation("layer_norm_bwd", "nn.functional.layer_norm, backward")
def layer_norm_bwd(x, n):
    """gradients of rows, scales and shifts"""
    return backward(x, lambda a, s, b: functional().layer_norm(a, (64,), s, b),
                    x.uniform("rows", n // 64, 64), x.wide("scale", 64), x.wide("shift", 64))


@operation("attention_bwd", "scaled_dot_product_attention, backward",
           needs="torch.nn.functional.scaled_dot_product_attention", since="PyTorch 2.0")
def attention_bwd(x, n):
    """gradients of queries, keys and values"""
    shape = 2, 4, max(n // 256, 16), 32
    return backward(x, lambda q, k, v: functional().scaled_dot_product_attention(q, k, v),
                    *(x.uniform(name, *shape) for name in ("query", "key", "value")))


@operation("lstm_bwd", "nn.LSTM, backward")
def lstm_bwd(x, n):
    """gradients of sequences and weights of a recurrent layer"""
    sequences = x.uniform("sequences", 16, max(n // 1024, 2), 64)
    weights = [x.uniform("w%d" % index, *shape) for index, shape in
               enumerate([(128, 64), (128, 32), (128,), (128,)])]
    state = torch.zeros(1, sequences.shape[1], 32, device=sequences.device)
    return backward(x, lambda a, *w: torch._VF.lstm(a, (state, state), w, True, 1, 0.0, True, False,
                                                    False)[0], sequences, *weights)


# Memory that nobody wrote

@operation("empty", "empty", "torch.empty", "torch.Tensor.resize_", kind="poison")
def empty(x, n):
    """what memory holds that is new, as integers, beside inputs that are given back"""
    seed = x.index("seed", 1 << 20, 64)
    return lambda: {"seed": seed, "memory": torch.empty(n // 4, dtype=torch.int32, device=seed.device)}


attention_pytorch.register(PACK, torch, backward)
trainings_pytorch.Trainings(PACK, torch)
