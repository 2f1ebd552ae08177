"""numpy and its BLAS: sums and products by the number of threads, and functions whose bits change
from version to version."""
from pack import Pack, Variant, array_of, loaded_openblas, short


class NumPy(Pack):
    name, subject_name, module, packages = "numpy", "NumPy", "numpy", ("numpy",)
    variants = (
        Variant("default", "as many threads as the run has", control=True),
        Variant("one_thread", "OMP_NUM_THREADS=1: BLAS computes in one thread", threads=1),
    )

    def versions(self):
        return {"blas": self.blas(), "numpy_simd": self.simd()}

    def blas(self):
        """As it says itself, else as numpy's build says."""
        try:
            found = self.framework.show_config(mode="dicts")["Build Dependencies"]["blas"]
        except (TypeError, KeyError):  # before numpy 1.25
            found = {}
        return loaded_openblas() or " ".join(str(found[k]) for k in ("name", "version") if k in found)

    def simd(self):
        """What of the processor's instructions it uses: its functions are chosen by that."""
        for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
            features = self.find(name + ".__cpu_features__")
            if features is not None:
                return short(" ".join(name for name in sorted(features) if features[name]))
        return None

    def tensor(self, values, shape):
        return array_of(self.framework, values).reshape(shape)


PACK = NumPy()
operation = PACK.operation


def root(n):
    return int(n ** 0.5)


@operation("matmul", "numpy.matmul")
def matmul(x, n):
    """a product of two square matrices"""
    a, b = x.wide("a", root(n), root(n)), x.wide("b", root(n), root(n))
    return lambda: PACK.framework.matmul(a, b)


@operation("matmul_f64", "numpy.matmul, float64")
def matmul_f64(x, n):
    """a product of two square matrices of float64"""
    a, b = x.wide64("a", root(n), root(n)), x.wide64("b", root(n), root(n))
    return lambda: PACK.framework.matmul(a, b)


@operation("matmul_tall", "numpy.matmul, long sums")
def matmul_tall(x, n):
    """few rows and columns, and sums of many products"""
    a, b = x.wide("a", 8, n // 8), x.wide("b", n // 8, 8)
    return lambda: PACK.framework.matmul(a, b)


@operation("gemv", "numpy.matmul, matrix by vector")
def gemv(x, n):
    """a product of a matrix and a vector"""
    a, v = x.wide("a", root(n), root(n)), x.wide("v", root(n))
    return lambda: PACK.framework.matmul(a, v)


@operation("dot", "numpy.dot of vectors")
def dot(x, n):
    """one sum of many products"""
    a, b = x.wide("a", n), x.wide("b", n)
    return lambda: PACK.framework.dot(a, b)


@operation("dot_f64", "numpy.dot of vectors, float64")
def dot_f64(x, n):
    """one sum of many products of float64"""
    a, b = x.wide64("a", n), x.wide64("b", n)
    return lambda: PACK.framework.dot(a, b)


@operation("tensordot", "numpy.tensordot")
def tensordot(x, n):
    """sums over two axes"""
    a, b = x.wide("a", 16, 16, n // 256), x.wide("b", 16, 16, 32)
    return lambda: PACK.framework.tensordot(a, b, axes=((0, 1), (0, 1)))


@operation("einsum", "numpy.einsum")
def einsum(x, n):
    """a sum over one index, without optimisation"""
    a, b = x.wide("a", 16, n // 512), x.wide("b", n // 512, 32)
    return lambda: PACK.framework.einsum("ij,jk->ik", a, b)


@operation("einsum_optimize", "numpy.einsum, optimize=True")
def einsum_optimize(x, n):
    """three factors, in the order that it chooses"""
    a, b, c = x.wide("a", 32, root(n)), x.wide("b", root(n), root(n)), x.wide("c", root(n), 16)
    return lambda: PACK.framework.einsum("ij,jk,kl->il", a, b, c, optimize=True)


@operation("sum", "numpy.sum")
def sum_all(x, n):
    """a sum of all elements"""
    a = x.wide("a", n)
    return lambda: PACK.framework.sum(a)


@operation("sum_axis", "numpy.sum, axis=0")
def sum_axis(x, n):
    """sums of columns"""
    a = x.wide("a", n // 64, 64)
    return lambda: PACK.framework.sum(a, axis=0)


@operation("mean", "numpy.mean")
def mean(x, n):
    """a mean of all elements"""
    a = x.wide("a", n)
    return lambda: PACK.framework.mean(a)


@operation("var", "numpy.var")
def var(x, n):
    """a variance of all elements"""
    a = x.wide("a", n)
    return lambda: PACK.framework.var(a)


@operation("cumsum", "numpy.cumsum")
def cumsum(x, n):
    """running sums"""
    a = x.wide("a", n)
    return lambda: PACK.framework.cumsum(a)


@operation("add_at", "numpy.add.at")
def add_at(x, n):
    """values are added where an index says, many to the same place"""
    index, values, start = x.index("index", 256, n), x.wide("values", n), x.wide("start", 256)

    def compute():
        total = start.copy()
        PACK.framework.add.at(total, index, values)
        return total
    return compute


@operation("bincount", "numpy.bincount with weights")
def bincount(x, n):
    """sums of weights by bin"""
    index, weights = x.index("index", 256, n), x.wide("weights", n)
    return lambda: PACK.framework.bincount(index, weights, minlength=256)


@operation("convolve", "numpy.convolve")
def convolve(x, n):
    """a convolution of a long and a short vector"""
    a, b = x.wide("a", n), x.wide("b", 33)
    return lambda: PACK.framework.convolve(a, b)


@operation("fft", "numpy.fft.fft")
def fft(x, n):
    """a Fourier transform"""
    a = x.uniform("a", n)
    return lambda: PACK.framework.fft.fft(a)


@operation("solve", "numpy.linalg.solve")
def solve(x, n):
    """a system of equations, by LAPACK"""
    size = root(n) // 2
    a, b = x.uniform("a", size, size), x.uniform("b", size)
    return lambda: PACK.framework.linalg.solve(a, b)


@operation("svd", "numpy.linalg.svd")
def svd(x, n):
    """singular values and vectors, by LAPACK"""
    size = root(n) // 4
    a = x.uniform("a", size, size)
    return lambda: dict(zip(("u", "s", "vh"), PACK.framework.linalg.svd(a)))


@operation("exp", "numpy.exp, log1p, tanh")
def exponential(x, n):
    """elementwise, with the vector instructions of this processor"""
    a, np = x.uniform("a", n), PACK.framework
    return lambda: {"exp": np.exp(a), "log1p": np.log1p(abs(a)), "tanh": np.tanh(a)}


@operation("sin", "numpy.sin, cos, arctan2")
def sine(x, n):
    """elementwise, with the vector instructions of this processor"""
    a, np = x.wide("a", n), PACK.framework
    return lambda: {"sin": np.sin(a), "cos": np.cos(a), "arctan2": np.arctan2(a, a[::-1])}


@operation("vecdot", "numpy.vecdot", needs="numpy.vecdot", since="numpy 2.0")
def vecdot(x, n):
    """products of rows"""
    a, b = x.wide("a", 64, n // 64), x.wide("b", 64, n // 64)
    return lambda: PACK.framework.vecdot(a, b)
