"""TensorFlow: the operations that the lists of framework determinism name, forwards and backwards as
they say, and some that enable_op_determinism makes raise."""
import os

import trainings_tensorflow
from pack import Pack, Refused, Tools, Unsupported, Variant, array_of, short

STATUS = "https://github.com/NVIDIA/framework-reproducibility/blob/master/doc/d9m/tensorflow_status.md"


class TensorFlow(Pack):
    name, subject_name, module = "tensorflow", "TensorFlow", "tensorflow"
    packages = ("tensorflow-cpu", "tensorflow", "tensorflow-intel", "tensorflow-cpu-aws")
    backends = ("cpu", "cuda")
    documentation, listed_by = STATUS, "the status of determinism in TensorFlow"
    variants = (
        Variant("default", "as TensorFlow computes by itself", control=True),
        Variant("deterministic_ops", "TF_DETERMINISTIC_OPS", claim="deterministic", recipe="TDO",
                variables={"TF_DETERMINISTIC_OPS": "1"}),
        Variant("op_determinism", "tf.config.experimental.enable_op_determinism, with the seeds set",
                claim="deterministic", recipe="EOD"),
        Variant("one_thread", "one thread within an operation and one between them", threads=1, backends=("cpu",)),
    )

    def requirement(self):
        return "tensorflow[and-cuda]" if self.backend == "cuda" else self.packages[0]

    def load(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        return super().load()

    def versions(self):
        tf = self.framework
        build = tf.sysconfig.get_build_info()
        facts = {"tensorflow_git": getattr(tf.version, "GIT_VERSION", None),
                 "tensorflow_build": short(" ".join("%s=%s" % item for item in sorted(build.items())))}
        keras = self.find("keras.__version__")
        return {**facts, "keras": keras, "numpy": self.find("numpy.__version__")}

    def switch(self, variant, threads):
        tf = self.framework
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        if variant.name == "op_determinism":
            if self.find("tensorflow.config.experimental.enable_op_determinism") is None:
                raise Unsupported("TensorFlow %s has no enable_op_determinism; it came with 2.8"
                                  % self.version())
            self.seeded = True
            self.restart()
            tf.config.experimental.enable_op_determinism()

    seeded = False

    def restart(self):
        """Each iteration draws what the first one drew, where the seeds are set at all."""
        if self.seeded:
            self.framework.keras.utils.set_random_seed(1)

    def check_build(self):
        if not self.framework.test.is_built_with_cuda():
            raise Refused("TensorFlow %s was built without CUDA" % self.version())

    def open_gpu(self):
        """An operation without code for GPUs raises then, instead of being computed elsewhere."""
        self.check_build()
        tf = self.framework
        gpus = tf.config.list_physical_devices("GPU")
        if not gpus:
            raise Refused("TensorFlow %s sees no GPU: its log says which library is missing"
                          % self.version())
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.set_soft_device_placement(False)
        build = tf.sysconfig.get_build_info()
        return {"cuda_runtime": build.get("cuda_version"), "cudnn": build.get("cudnn_version")}

    def scope(self):
        return self.framework.device("/GPU:0") if self.backend == "cuda" else super().scope()

    def wait(self):
        """Reading a result waits for it; there is no call for all, in all versions."""
        sync = self.find("tensorflow.test.experimental.sync_devices")
        if sync is not None:
            sync()

    def is_on_gpu(self, value):
        return "GPU:" in str(getattr(value, "device", ""))

    def tensor(self, values, shape):
        import numpy
        with self.scope():
            return self.framework.constant(array_of(numpy, values).reshape(shape))

    def explains(self, error):
        """What it is asked to compute deterministically and cannot is UNIMPLEMENTED; what draws
        random numbers without a seed is a RuntimeError."""
        return isinstance(error, NotImplementedError) or "determinis" in str(error) \
            or "Could not satisfy device specification" in str(error) \
            or type(error).__name__ == "UnimplementedError"


PACK = TensorFlow()


tf = Tools(PACK)


def operation(name, title, *documented, **arguments):
    return PACK.operation(name, title, documented=documented, **arguments)


def summarise(name, summary):
    PACK.operations[name].summary = summary


def root(n):
    return int(n ** 0.5)


def side(n, channels=16):
    return max(root(n // channels), 8)


def backward(x, function, *inputs):
    """Computes the gradients of FUNCTION(*INPUTS) with respect to INPUTS, for an upstream gradient
    whose order of addition shows."""
    upstream = x.wide("upstream", *function(*inputs).shape)

    def compute():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            result = function(*inputs)
        gradients = tape.gradient(result, inputs, upstream)
        return {"d%d" % index: tf.convert_to_tensor(gradient)
                for index, gradient in enumerate(gradients)}
    return compute


def images_of(x, n, channels=8):
    return x.wide("images", 2, side(n), side(n), channels)


# Convolutions

def convolution(name, title, summary, listed, shapes, function):
    """SHAPES of n: of the images and of the filters."""
    @operation(name, title, listed)
    def compute(x, n):
        images, filters = shapes(n)
        return backward(x, function, x.wide("images", *images), x.wide("filters", *filters))
    summarise(name, summary)


def cube(n):
    return max(int(round((n // 16) ** (1 / 3))), 4)


convolution("conv1d_bwd", "tf.nn.conv1d, backward", "gradients of sequences and filters",
            "tf.nn.conv1d", lambda n: ((2, n // 16, 8), (3, 8, 8)),
            lambda a, w: tf.nn.conv1d(a, w, 1, "SAME"))
convolution("conv2d_bwd", "tf.nn.conv2d, backward", "gradients of images and filters", "tf.nn.conv2d",
            lambda n: ((2, side(n), side(n), 8), (3, 3, 8, 8)), lambda a, w: tf.nn.conv2d(a, w, 1, "SAME"))
convolution("conv3d_bwd", "tf.nn.conv3d, backward", "gradients of volumes and filters", "tf.nn.conv3d",
            lambda n: ((2, cube(n), cube(n), cube(n), 8), (3, 3, 3, 8, 8)),
            lambda a, w: tf.nn.conv3d(a, w, [1] * 5, "SAME"))
convolution("depthwise_conv2d_bwd", "tf.nn.depthwise_conv2d, backward",
            "gradients of images and filters, each channel by itself", "tf.nn.depthwise_conv2d",
            lambda n: ((2, side(n), side(n), 8), (3, 3, 8, 2)),
            lambda a, w: tf.nn.depthwise_conv2d(a, w, [1] * 4, "SAME"))
convolution("conv2d_transpose_bwd", "tf.nn.conv2d_transpose, backward",
            "gradients of images and filters of a transposed convolution", "tf.nn.conv2d_transpose",
            lambda n: ((2, side(n), side(n), 8), (3, 3, 8, 8)),
            lambda a, w: tf.nn.conv2d_transpose(a, w, [2, 2 * a.shape[1], 2 * a.shape[2], 8], 2))
convolution("dilation2d_bwd", "tf.nn.dilation2d, backward",
            "gradients of images and filters of a dilation", "tf.nn.dilation2d",
            lambda n: ((2, side(n), side(n), 8), (3, 3, 8)),
            lambda a, w: tf.nn.dilation2d(a, w, [1] * 4, "SAME", "NHWC", [1] * 4))


# What works on images

def of_images(name, title, summary, listed, function, backwards=True):
    @operation(name, title + (", backward" if backwards else ""), listed)
    def compute(x, n):
        images = images_of(x, n)
        return backward(x, function, images) if backwards else lambda: function(images)
    summarise(name, summary)


def doubled(images):
    return [2 * images.shape[1], 2 * images.shape[2]]


of_images("max_pool2d_bwd", "tf.nn.max_pool2d", "the gradient of overlapping windows' maxima",
          "tf.nn.max_pool2d", lambda a: tf.nn.max_pool2d(a, 3, 2, "SAME"))
of_images("avg_pool2d_bwd", "tf.nn.avg_pool2d", "the gradient of overlapping windows' means",
          "tf.nn.avg_pool2d", lambda a: tf.nn.avg_pool2d(a, 3, 2, "SAME"))
of_images("resize_bilinear_bwd", "tf.image.resize(bilinear)",
          "the gradient of images that are made twice as wide and high", "tf.image.resize(bilinear)",
          lambda a: tf.image.resize(a, doubled(a), "bilinear"))
of_images("resize_nearest_bwd", "tf.image.resize(nearest)",
          "the gradient of images that are made twice as wide and high", "tf.image.resize(nearest)",
          lambda a: tf.image.resize(a, doubled(a), "nearest"))
of_images("resize_bicubic_bwd", "tf.image.resize(bicubic)",
          "the gradient of images that are made twice as wide and high", "tf.image.resize(bicubic)",
          lambda a: tf.image.resize(a, doubled(a), "bicubic"))
of_images("adjust_contrast", "tf.image.adjust_contrast", "images further from their mean",
          "tf.image.adjust_contrast", lambda a: tf.image.adjust_contrast(a[..., :3], 1.5), False)
of_images("adjust_hue", "tf.image.adjust_hue", "images of other hues", "tf.image.adjust_hue",
          lambda a: tf.image.adjust_hue(tf.sigmoid(a[..., :3]), 0.1), False)
of_images("adjust_saturation", "tf.image.adjust_saturation", "images of other saturation",
          "tf.image.adjust_saturation", lambda a: tf.image.adjust_saturation(tf.sigmoid(a[..., :3]), 1.5), False)


@operation("crop_and_resize_bwd", "tf.image.crop_and_resize, backward", "tf.image.crop_and_resize")
def crop_and_resize_bwd(x, n):
    """gradients of images and of the boxes, which overlap, that are cut from them"""
    count = max(n // 2048, 8)
    corners, owner = tf.sigmoid(x.uniform("corners", count, 2)), x.index("owner", 2, count)
    return backward(x, lambda images, corners: tf.image.crop_and_resize(
        images, tf.concat([corners / 2, corners / 2 + 0.5], 1), tf.cast(owner, "int32"), [14, 14]),
        x.wide("images", 2, 64, 64, 8), corners)


@operation("bias_add_bwd", "tf.nn.bias_add, backward", "tf.nn.bias_add")
def bias_add_bwd(x, n):
    """gradients of images and of what is added to each channel"""
    return backward(x, lambda a, b: tf.nn.bias_add(a, b), images_of(x, n), x.wide("bias", 8))


def batch_norm(name, training):
    @operation(name, "fused_batch_norm(is_training=%s), backward" % training,
               "tf.compat.v1.nn.fused_batch_norm")
    def compute(x, n):
        mean, variance = (None, None) if training else (tf.zeros(8), tf.ones(8))
        return backward(x, lambda a, s, b: tf.compat.v1.nn.fused_batch_norm(
            a, s, b, mean=mean, variance=variance, is_training=training)[0],
            images_of(x, n), x.wide("scale", 8), x.wide("offset", 8))
    summarise(name, "gradients of images, scales and offsets, %s" % (
        "in training" if training else "with means and variances that are given"))


batch_norm("batch_norm_bwd", True)
batch_norm("batch_norm_frozen_bwd", False)


# Segments, scatters and gathers

def places(x, n):
    """An index into 256 rows of 16, and a value for each."""
    return x.index("index", 256, n // 16), x.wide("values", n // 16, 16)


def segment(kind, sorted_):
    name = ("segment_" if sorted_ else "unsorted_segment_") + kind
    title = "tf.math." + name

    @operation(name, title, title, version=2 if kind == "prod" else 1)
    def compute(x, n):
        index, values = places(x, n) if kind != "prod" else (
            x.index("index", 256, n // 16), 1 + x.uniform("values", n // 16, 16) / 16)  # products stay finite
        if sorted_:
            index = tf.sort(index)
            return lambda: getattr(tf.math, name)(values, index)
        return lambda: getattr(tf.math, name)(values, index, 256)
    summarise(name, "a %s of the rows of each segment%s" % (
        kind, ", which lie together" if sorted_ else ""))


for kind_ in ("sum", "prod", "mean"):
    segment(kind_, True)
    segment(kind_, False)
segment("sqrt_n", False)
segment("max", False)


@operation("sparse_segment_sum", "tf.sparse.segment_sum", "tf.sparse.segment_sum")
def sparse_segment_sum(x, n):
    """sums of the rows that an index chooses for each segment"""
    index, rows = x.index("index", 256, n // 16), x.wide("rows", 256, 16)
    segments = tf.sort(x.index("segments", 64, n // 16))
    return lambda: tf.sparse.segment_sum(rows, index, segments)


@operation("gather_bwd", "tf.gather, backward", "tf.gather")
def gather_bwd(x, n):
    """the gradient of rows that are looked up often"""
    index = x.index("index", 256, n // 16)
    return backward(x, lambda rows: tf.gather(rows, index), x.wide("rows", 256, 16))


@operation("embedding_bwd", "tf.nn.embedding_lookup, backward", "tf.convert_to_tensor(tf.IndexedSlices)")
def embedding_bwd(x, n):
    """the gradient of a table whose rows are looked up often"""
    index = x.index("index", 256, n // 256, 16)
    return backward(x, lambda table: tf.nn.embedding_lookup(table, index), x.wide("table", 256, 16))


@operation("scatter_nd", "tf.scatter_nd", "tf.scatter_nd")
def scatter_nd(x, n):
    """rows are added where an index says, many to the same place"""
    index, values = places(x, n)
    return lambda: tf.scatter_nd(index[:, None], values, tf.constant([256, 16], "int64"))


def tensor_scatter(kind, summary):
    @operation("tensor_scatter_nd_" + kind, "tf.tensor_scatter_nd_" + kind, "tf.tensor_scatter_nd_" + kind)
    def compute(x, n):
        (index, values), start = places(x, n), x.wide("start", 256, 16)
        return lambda: getattr(tf, "tensor_scatter_nd_" + kind)(start, index[:, None], values)
    summarise("tensor_scatter_nd_" + kind, summary)


tensor_scatter("add", "rows are added where an index says, many to the same place")
tensor_scatter("sub", "rows are subtracted where an index says, many from the same place")
tensor_scatter("update", "rows are written where an index says, many to the same place: one of them stays")
tensor_scatter("max", "maxima of the rows that an index sends to the same place")


@operation("scatter_nd_update", "tf.compat.v1.scatter_nd_add of a variable", "tf.compat.v1.scatter_nd_add")
def scatter_nd_update(x, n):
    """rows are added to a variable where an index says"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    return lambda: tf.Variable(start).scatter_nd_add(index[:, None], values)


@operation("sparse_dense_matmul", "tf.sparse.sparse_dense_matmul", "tf.sparse.sparse_dense_matmul")
def sparse_dense_matmul(x, n):
    """a product of a sparse matrix, whose places may be equal, and a dense one"""
    place, values = x.index("places", 256, n // 16, 2), x.wide("values", n // 16)
    dense = x.wide("dense", 256, 32)
    return lambda: tf.sparse.sparse_dense_matmul(tf.SparseTensor(place, values, [256, 256]), dense)


@operation("bincount", "tf.math.bincount with weights", "tf.math.bincount")
def bincount(x, n):
    """sums of weights by bin"""
    index, weights = tf.cast(x.index("index", 256, n), "int32"), x.wide("weights", n)
    return lambda: tf.math.bincount(index, weights, minlength=256)


# Losses

@operation("softmax_cross_entropy_bwd", "tf.nn.softmax_cross_entropy_with_logits, backward",
           "tf.nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_bwd(x, n):
    """the gradient of a loss of rows of classes, given as probabilities"""
    labels = tf.nn.softmax(x.uniform("labels", n // 64, 64))
    return backward(x, lambda a: tf.nn.softmax_cross_entropy_with_logits(labels, a),
                    x.uniform("scores", n // 64, 64))


@operation("sparse_softmax_cross_entropy_bwd", "tf.nn.sparse_softmax_cross_entropy_with_logits, backward",
           "tf.nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_bwd(x, n):
    """the gradient of a loss of rows of classes"""
    classes = x.index("classes", 64, n // 64)
    return backward(x, lambda a: tf.nn.sparse_softmax_cross_entropy_with_logits(classes, a),
                    x.uniform("scores", n // 64, 64))


@operation("ctc_loss_bwd", "tf.nn.ctc_loss, backward", "tf.nn.ctc_loss")
def ctc_loss_bwd(x, n):
    """the gradient of a loss of sequences of labels"""
    steps, batch, labels = 64, max(n // 4096, 2), 15
    targets = tf.cast(x.index("targets", 31, batch, labels) + 1, "int32")
    lengths = tf.fill([batch], labels), tf.fill([batch], steps)
    return backward(x, lambda a: tf.nn.ctc_loss(targets, a, *lengths, blank_index=0),
                    x.uniform("scores", steps, batch, 32))


# Quantisation, decomposition, and what a debugger sums up

def fake_quant(name, title, limits):
    """LIMITS: how many there are below and above."""
    @operation(name, title + ", backward")
    def compute(x, n):
        values, low, high = x.wide("values", n // 8, 8), tf.fill(limits, -2.0), tf.fill(limits, 2.0)
        return backward(x, getattr(tf.quantization, title.rpartition(".")[2]), values, low, high)
    summarise(name, "gradients of values that are rounded to 256 steps, and of the limits beyond which they are cut")


fake_quant("fake_quant_bwd", "tf.quantization.fake_quant_with_min_max_vars", [])
fake_quant("fake_quant_channels_bwd", "tf.quantization.fake_quant_with_min_max_vars_per_channel", [8])


@operation("svd", "tf.linalg.svd")
def svd(x, n):
    """singular values and vectors of a batch of matrices"""
    matrices = x.uniform("matrices", max(n // 1024, 2), 32, 32)
    return lambda: dict(zip(("s", "u", "v"), tf.linalg.svd(matrices)))


@operation("debug_numeric_summary", "tf.raw_ops.DebugNumericSummaryV2")
def debug_numeric_summary(x, n):
    """how many elements are infinite, not a number, negative, zero or positive"""
    values = x.wide("values", n)
    return lambda: tf.raw_ops.DebugNumericSummaryV2(input=values, tensor_debug_mode=4, tensor_id=1)


# Sums and products

def reduction(name, title, summary, function, make="wide", listed=()):
    @operation(name, title, *listed)
    def compute(x, n):
        values = getattr(x, make)("values", 64, n // 64)
        return lambda: function(values)
    summarise(name, summary)


reduction("reduce_sum", "tf.reduce_sum", "a sum of all elements", lambda a: tf.reduce_sum(a),
          listed=["tf.reduce_sum"])
reduction("reduce_mean", "tf.reduce_mean", "a mean of all elements", lambda a: tf.reduce_mean(a),
          listed=["tf.reduce_mean"])
reduction("reduce_sum_columns", "tf.reduce_sum, axis=0", "sums of columns", lambda a: tf.reduce_sum(a, 0))
reduction("cumsum", "tf.cumsum", "running sums", lambda a: tf.cumsum(a, 1))
reduction("softmax", "tf.nn.softmax", "a softmax of rows", lambda a: tf.nn.softmax(a), "uniform")
reduction("exp", "exp, log1p, tanh", "elementwise",
          lambda a: {"exp": tf.exp(a), "log1p": tf.math.log1p(abs(a)), "tanh": tf.tanh(a)}, "uniform")


def compiled(name, title, summary, function, shapes, listed):
    """FUNCTION as XLA compiles it, in the first iteration."""
    @operation(name, title + ", jit_compile=True", listed)
    def compute(x, n):
        inputs = [x.wide("x%d" % index, *shape) for index, shape in enumerate(shapes(n))]
        jitted = tf.function(function, jit_compile=True)
        return lambda: jitted(*inputs)
    summarise(name, summary + ", compiled by XLA")


compiled("xla_reduce_sum", "tf.reduce_sum", "a sum of all elements", lambda a: tf.reduce_sum(a),
         lambda n: [(64, n // 64)], "XLA reductions")
compiled("xla_reduce_columns", "tf.reduce_sum, axis=0", "sums of columns", lambda a: tf.reduce_sum(a, 0),
         lambda n: [(n // 64, 64)], "XLA reductions")
compiled("xla_matmul", "tf.matmul", "a product of two square matrices", lambda a, b: tf.matmul(a, b),
         lambda n: [(root(n), root(n))] * 2, "XLA")


@operation("xla_scatter", "tf.tensor_scatter_nd_add, jit_compile=True", "XLA Scatter")
def xla_scatter(x, n):
    """rows are added where an index says, compiled by XLA"""
    (index, values), start = places(x, n), x.wide("start", 256, 16)
    jitted = tf.function(lambda *given: tf.tensor_scatter_nd_add(*given), jit_compile=True)
    return lambda: jitted(start, index[:, None], values)


@operation("matmul", "tf.matmul")
def matmul(x, n):
    """a product of two square matrices"""
    a, b = x.wide("a", root(n), root(n)), x.wide("b", root(n), root(n))
    return lambda: tf.matmul(a, b)


@operation("matmul_tall", "tf.matmul, long sums")
def matmul_tall(x, n):
    """few rows and columns, and sums of many products"""
    a, b = x.wide("a", 8, n // 8), x.wide("b", n // 8, 8)
    return lambda: tf.matmul(a, b)


@operation("einsum", "tf.einsum")
def einsum(x, n):
    """batches of products of matrices"""
    a, b = x.wide("a", 8, 16, n // 128), x.wide("b", 8, n // 128, 16)
    return lambda: tf.einsum("bij,bjk->bik", a, b)


# Random numbers

@operation("dropout_unseeded", "tf.nn.dropout without a seed", kind="entropy")
def dropout_unseeded(x, n):
    """elements that a generator chose, whose seed is the operation's own"""
    values = x.uniform("values", n)

    def compute():
        PACK.restart()
        return tf.nn.dropout(values, 0.5)
    return compute


@operation("random_normal_unseeded", "tf.random.normal without a seed", kind="entropy")
def random_normal_unseeded(x, n):
    """noise from a generator whose seed is the operation's own, added to elements"""
    values = x.uniform("values", n)

    def compute():
        PACK.restart()
        return values + tf.random.normal(values.shape)
    return compute


@operation("dataset_map", "tf.data.Dataset.map in parallel, with random numbers", kind="race")
def dataset_map(x, n):
    """batches that parallel calls make with one generator, in the order in which they are ready"""
    values = x.uniform("values", 64, n // 64)

    def compute():
        generator = tf.random.Generator.from_seed(1)
        data = tf.data.Dataset.from_tensor_slices(values).map(
            lambda row: row + generator.normal(row.shape), num_parallel_calls=8, deterministic=False)
        return tf.stack(list(data))
    return compute


trainings_tensorflow.Trainings(PACK, tf)
