"""PyTorch Inductor: what torch.compile generates, with and without Inductor's own switch.  Each run compiles
afresh, and each output is seen to come from code that was generated in that run."""
import contextlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile

from pack import Tools, Unsupported, Variant
from pack_pytorch import PyTorch

# Read in torch/_inductor/config.py of 2.9.1, which does not have it, and of 2.10.0, which does.
DETERMINISTIC_SINCE = "2.10"
CACHE = "TORCHINDUCTOR_CACHE_DIR"


class Inductor(PyTorch):
    name, subject_name = "inductor", "PyTorch Inductor"
    documentation = listed_by = None
    timeout_seconds = 600  # a compiler of C++ on a machine that is loaded
    variants = (
        Variant("default", "as torch.compile compiles by itself", control=True),
        Variant("max_autotune", "TORCHINDUCTOR_MAX_AUTOTUNE: kernels are chosen by how fast they are in each run",
                control=True, kind="choice", variables={"TORCHINDUCTOR_MAX_AUTOTUNE": "1"}, backends=("cuda",)),
        Variant("inductor_deterministic", "TORCHINDUCTOR_DETERMINISTIC: no measured time is to choose what decides"
                " bits", variables={"TORCHINDUCTOR_DETERMINISTIC": "1"}),
        Variant("deterministic", "torch.use_deterministic_algorithms(True)", claim="deterministic",
                recipe="UDA+CWC", variables={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    )

    @property
    def forks(self):
        """What Inductor imports asks CUDA's driver: on a GPU each run imports it itself."""
        return self.backend == "cpu"

    @property
    def parts(self):
        return ("triton",) if self.backend == "cuda" else ()

    @property
    def later(self):
        """A forker has the vector instructions chosen, too: that takes longer than to compile."""
        yield from (*PyTorch.later, "torch._inductor.compile_fx")
        choose = self.find("torch._inductor.cpu_vec_isa.pick_vec_isa") \
            or self.find("torch._inductor.codecache.pick_vec_isa")
        if choose is not None:
            with contextlib.suppress(Exception), own_folder():  # each run says what it is
                choose()

    def prepare(self, variant, threads):
        """Nothing that another run compiled or chose is taken, and no process compiles beside this one."""
        return {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}

    def versions(self):
        facts = {**super().versions(), "pytorchinductor": self.version()}
        if self.backend == "cpu":
            return {**facts, "cxx": self.compiler()}
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            facts["triton"] = importlib.metadata.version("triton")
        return facts

    def compiler(self):
        """What the compiler of C++ that Inductor takes says of itself: the bits are also its own; None: there
        is none, and each run says so."""
        named = self.find("torch._inductor.cpp_builder.get_cpp_compiler") \
            or self.find("torch._inductor.codecache.cpp_compiler")
        try:
            said = subprocess.run([named(), "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except Exception:
            return None
        return (said.stdout.splitlines() or [None])[0]

    def unmeasured(self):
        return []

    def switch(self, variant, threads):
        super().switch(variant, threads)
        if variant.name != "inductor_deterministic":
            return
        config = self.find("torch._inductor.config")
        if not hasattr(config, "deterministic"):
            raise Unsupported("PyTorch %s does not know TORCHINDUCTOR_DETERMINISTIC; it came with %s"
                              % (self.version(), DETERMINISTIC_SINCE))
        if config.deterministic is not True:
            raise Unsupported("TORCHINDUCTOR_DETERMINISTIC=1 was set, and PyTorch %s is not in that mode"
                              % self.version())

    def explains(self, error):
        """Errors of its compiler, beside those of PyTorch."""
        ours = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
        return ours or super().explains(error) or (
            isinstance(error, RuntimeError) and "not supported" in str(error))

    def find_module(self, name):
        found = self.find(name)
        if found is None:
            raise Unsupported("PyTorch %s has no %s: what it compiles cannot be told" % (self.version(), name))
        return found

    def generate(self, function, compute):
        """FUNCTION as it was compiled, and COMPUTE was called with once."""
        try:
            compiled = self.framework.compile(function, fullgraph=True)
            compute(compiled)
        except Exception as error:
            inner = getattr(error, "inner_exception", None)
            if not self.explains(error) or isinstance(inner, (MemoryError, OSError)):
                raise  # the machine's trouble, or nobody's who said what it is
            raise Unsupported(words(error)) from None
        config = self.find("torch._inductor.config")
        if os.environ.get("TORCHINDUCTOR_DETERMINISTIC") == "1" and config.deterministic is not True:
            print("PyTorch %s left the mode of TORCHINDUCTOR_DETERMINISTIC when it had compiled the first graph"
                  % self.version(), file=sys.stderr)
        return compiled

    def compile(self, function, compute):
        """What computes COMPUTE(FUNCTION as it was compiled).  It is compiled here.  Unsupported, in
        Inductor's words, where it is not; and where what computes is not what was generated."""
        with own_folder() as folder:
            compiled = self.generate(function, compute)
            stats = self.find_module("torch._dynamo.utils.counters")["stats"]
            if not self.find_module("torch._inductor.metrics").generated_kernel_count or not stats:
                raise Unsupported("torch.compile generated no code for it")
            made, parts = dict(stats), None

            def again():
                nonlocal parts
                # The thread that is looked at is the one that computes the gradients, too.
                with self.framework.autograd.set_multithreading_enabled(False):
                    outputs, ran = look(folder, compute, compiled)
                if not ran or ran != (parts or ran) or dict(stats) != made:
                    raise Unsupported("what was computed is not what torch.compile had generated")
                parts = ran
                return outputs
            again()
        return again


@contextlib.contextmanager
def own_folder():
    """A folder for what is generated, which is gone afterwards: what was loaded from it stays loaded."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="reprod-inductor-"))
    os.environ[CACHE] = folder
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def look(folder, function, *arguments):
    """(what FUNCTION returns, the files of FOLDER whose Python code ran in this thread)"""
    ran, before = set(), sys.getprofile()

    def see(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(os.path.join(folder, "")):
            ran.add(frame.f_code.co_filename)
    sys.setprofile(see)
    try:
        return function(*arguments), ran
    finally:
        sys.setprofile(before)


def words(error):
    """What the compiler says: an error of Dynamo has that of Inductor within."""
    inner = getattr(error, "inner_exception", None) or error
    lines = [line.strip() for line in str(inner).splitlines() if line.strip()] or ["no reason given"]
    errors = [line for line in lines[1:] if "error:" in line]  # of the compiler of C++
    return ("%s: %s" % (type(inner).__name__, "; ".join(lines[:1] + errors[:1])))[:300]


PACK = Inductor()
torch = Tools(PACK)


def operation(name, title, **more):
    return PACK.operation(name, title, needs="torch.compile", since="PyTorch 2.0", **more)


def forward(function, *inputs):
    return PACK.compile(function, lambda compiled: compiled(*inputs))


def backward(x, function, *inputs, others=()):
    """Compiles FUNCTION(*INPUTS, *OTHERS) and its gradients with respect to INPUTS, for an upstream gradient
    whose order of addition shows."""
    with torch.no_grad():
        upstream = x.wide("upstream", *function(*inputs, *others).shape)

    def compute(compiled):
        leaves = [value.detach().requires_grad_() for value in inputs]
        gradients = torch.autograd.grad(compiled(*leaves, *others), leaves, upstream)
        return {"d%d" % index: gradient for index, gradient in enumerate(gradients)}
    return PACK.compile(function, compute)


# Generated loops that add to the same place: a race.

@operation("index_add", "torch.compile of Tensor.index_add")
def index_add(x, n):
    """rows are doubled, and added where an index says"""
    index, values = x.index("index", 256, n // 16), x.wide("values", n // 16, 16)
    start = x.wide("start", 256, 16)
    return forward(lambda start, index, values: start.index_add(0, index, values * 2.0), start, index, values)


@operation("embedding_bwd", "torch.compile of nn.functional.embedding, backward")
def embedding_bwd(x, n):
    """the gradient of a table whose rows are looked up often, and halved"""
    index, table = x.index("index", 256, n // 16), x.wide("table", 256, 16)
    return backward(x, lambda table, index: torch.nn.functional.embedding(index, table) * 0.5, table,
                    others=(index,))


# Reductions and products: how they are computed is chosen when they are compiled.

@operation("sum_columns", "torch.compile of a product and its sum over rows", kind="choice")
def sum_columns(x, n):
    """sums of columns of products"""
    a, b = x.wide("a", n // 64, 64), x.uniform("b", n // 64, 64)
    return forward(lambda a, b: torch.sum(a * b, 0), a, b)


@operation("softmax_bwd", "torch.compile of softmax, backward", kind="choice")
def softmax_bwd(x, n):
    """the gradient of a softmax of rows"""
    return backward(x, lambda a: torch.softmax(a, 1), x.uniform("a", 64, n // 64))


@operation("layer_norm_bwd", "torch.compile of nn.functional.layer_norm, backward", kind="choice")
def layer_norm_bwd(x, n):
    """gradients of rows, scales and shifts"""
    return backward(x, lambda a, s, b: torch.nn.functional.layer_norm(a, (64,), s, b),
                    x.uniform("rows", n // 64, 64), x.wide("scale", 64), x.wide("shift", 64))


@operation("mlp_bwd", "torch.compile of two layers with gelu, backward", kind="choice")
def mlp_bwd(x, n):
    """gradients of rows, weights and biases of two layers with products, gelu and a residual"""
    def layers(a, w1, b1, w2, b2):
        return torch.nn.functional.gelu(a @ w1 + b1) @ w2 + b2 + a
    return backward(x, layers, x.uniform("rows", n // 64, 64), x.uniform("w1", 64, 96), x.uniform("b1", 96),
                    x.uniform("w2", 96, 64), x.uniform("b2", 64))
