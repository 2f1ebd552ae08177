"""What a pack is: one framework, its operations, and how it is switched.

A pack is a file that defines PACK, an instance of a subclass of Pack.  An operation is a function of
(x, n): it asks X for its inputs, and returns what computes the outputs from them, again in each
iteration.  Names of workloads are PACK.name + "_" + the operation's name, for ever."""
import contextlib
import ctypes
import hashlib
import importlib
import re
import sys

import philox


class Unsupported(Exception):
    """This variant cannot do this case here."""


class Refused(Exception):
    """The framework is not usable here, or is not what it says."""


class Variant:
    """VARIABLES are set before the framework is imported; KIND is why a control varies; BACKENDS are
    those where it switches anything; GPU_CLAIM is what is promised on a GPU, where that is more."""

    def __init__(self, name, summary, control=False, kind=None, claim=None, recipe=None,
                 variables=None, threads=None, backends=("cpu", "cuda"), gpu_claim=None):
        self.backends, self.gpu_claim = backends, gpu_claim or claim
        self.name, self.summary, self.control, self.claim = name, summary, control, claim
        self.kind, self.recipe, self.threads = kind or ("race" if control else None), recipe, threads
        self.variables = dict(variables or {})


class Operation:
    """KIND is why its controls vary, where it is no race; SINCE is the version that NEEDS came with; LOSS
    says what the attribute `loss` of its outputs is, where they are what a training ends with."""

    def __init__(self, function, name, title, needs=(), since=None, documented=(), sizes=None,
                 kind=None, version=1, loss=None):
        self.function, self.name, self.title, self.version = function, name, title, version
        self.needs = (needs,) if isinstance(needs, str) else tuple(needs)
        self.since, self.documented, self.kind, self.loss = since, tuple(documented), kind, loss
        self.sizes = sizes or {"small": 1 << 17, "large": 1 << 21}
        self.summary = " ".join((function.__doc__ or title).split())


class Inputs:
    """The inputs of one case, from Philox, by name; what is recorded here is what the run says
    that it computes from."""

    def __init__(self, pack, workload, seed):
        self.pack, self.made = pack, {}
        self.philox = philox.Philox(seed, workload, numpy_if_any())

    def take(self, name, values, shape):
        if name in self.made:
            raise ValueError("two inputs are named %r" % name)
        self.made[name] = self.pack.tensor(values, tuple(int(extent) for extent in shape))
        return self.made[name]

    def wide(self, name, *shape):
        """float32 of random sign and of exponents from -12 to 12."""
        return self.take(name, self.philox.wide32(name, count_of(shape)), shape)

    def uniform(self, name, *shape):
        """float32 in [-1, 1)."""
        return self.take(name, self.philox.uniform32(name, count_of(shape)), shape)

    def wide64(self, name, *shape):
        return self.take(name, self.philox.wide64(name, count_of(shape)), shape)

    def index(self, name, limit, *shape):
        """int64 in [0, LIMIT)."""
        return self.take(name, self.philox.index(name, count_of(shape), limit), shape)


def numpy_if_any():
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def count_of(shape):
    count = 1
    for extent in shape:
        count *= int(extent)
    return count


class Tools:
    """The framework of PACK and its parts, where they are used: a pack is read before its framework is
    imported."""

    def __init__(self, pack):
        self._pack = pack

    def __getattr__(self, name):
        return getattr(self._pack.framework, name)


class Pack:
    name = subject_name = module = None
    packages = ()  # names of the distribution that has the module: the first that is installed
    parts = ()     # modules of other distributions, of the same names, that compute for it
    variants = ()
    backends = ("cpu",)  # what its operations compute on
    backend = "cpu"      # which of them is asked, from before the framework is imported
    documentation = None  # address of what `documented` names,
    listed_by = None      # and what it documents
    timeout_seconds = 300
    forks = True  # a process that imported it can fork others that compute with it
    later = ()    # modules that it imports when it is used: a forker does so before

    def __init__(self):
        self.operations = {}

    def operation(self, name, title, **arguments):
        """Registers the decorated function; ARGUMENTS as of Operation."""
        def register(function):
            assert re.fullmatch("[a-z][a-z0-9_]*", name) and name not in self.operations, name
            self.operations[name] = Operation(function, name, title, **arguments)
            return function
        return register

    def requirement(self):
        """What pip installs a version of, for the backend that is asked."""
        return self.packages[0]

    def beside(self, version):
        """What deploy/framework installs beside the package of VERSION: requirements of pip."""
        return []

    def prepare(self, variant, threads):
        """Variables to be set before the framework is imported, beside those of VARIANT.  Unsupported
        where what is installed does not know how VARIANT switches it."""
        return {}

    def load(self):
        self.framework = importlib.import_module(self.module)
        return self.framework

    def version(self):
        return str(getattr(self.framework, "__version__", "") or "")

    def versions(self):
        """Read back from what is loaded: facts of the environment."""
        return {}

    def has(self, operation):
        """Whether this version has all that OPERATION needs: dotted names."""
        return all(self.find(name) is not None for name in operation.needs)

    def find(self, name):
        first, *rest = name.split(".")
        try:
            value = sys.modules.get(first) or importlib.import_module(first)
            for index, part in enumerate(rest):
                if not hasattr(value, part):
                    importlib.import_module(".".join([first, *rest[:index + 1]]))
                value = getattr(value, part)
        except (ImportError, AttributeError):
            return None
        return value

    def unmeasured(self):
        """What this version's documentation lists, and no operation covers."""
        return []

    def switch(self, variant, threads):
        """Puts the loaded framework into the state that VARIANT names."""

    def asked(self):
        """The variants of the backend that is asked."""
        return [variant for variant in self.variants if self.backend in variant.backends]

    def promised(self, variant):
        return variant.gpu_claim if self.backend == "cuda" else variant.claim

    def claim(self, operation, variant):
        """What this version promises of OPERATION."""
        return self.promised(variant)

    def check_build(self):
        """Refused where what is installed was built without what a GPU needs."""

    def open_gpu(self):
        """Readies the loaded framework for the GPUs that are visible.  What it says of its CUDA, as
        facts.  Refused where it was built without, or sees none."""
        raise NotImplementedError

    def scope(self):
        """In which operations are made and computed, but not switched: to enter it may begin to use
        the framework, which is too late for that."""
        return contextlib.nullcontext()

    def wait(self):
        """Until the GPU has computed what it was asked to."""

    def is_on_gpu(self, value):
        """Whether VALUE, an output, was computed there: frameworks go on elsewhere without a word."""
        raise NotImplementedError

    def tensor(self, values, shape):
        """VALUES, an array of the standard library or of numpy, as the framework's tensor."""
        raise NotImplementedError

    def explains(self, error):
        """Whether ERROR is how the framework says that it cannot do this."""
        return isinstance(error, NotImplementedError)


def array_of(numpy, values):
    """VALUES as an array of numpy that has its own memory."""
    dtypes = {"f": "f4", "d": "f8", "q": "i8"}
    dtype = dtypes.get(getattr(values, "typecode", None)) or values.dtype
    return numpy.array(values, dtype=dtype)


def short(text):
    """TEXT as a fact: its digest where it is long."""
    return text if len(text) <= 80 else "digest:" + hashlib.sha256(text.encode()).hexdigest()[:32]


def loaded_libraries(part):
    """Paths of the mapped libraries whose names have PART."""
    paths = set()
    with open("/proc/self/maps", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").split(None, 5)[5:]
            if path and path[0].startswith("/") and part in path[0].rsplit("/", 1)[-1]:
                paths.add(path[0])
    return sorted(paths)


def loaded_openblas():
    """What the OpenBLAS of this process says of itself, with the core that it chose; None: none."""
    for path in loaded_libraries("openblas"):
        library = ctypes.CDLL(path)
        said = []
        for word in ("config", "corename"):
            for form in ("openblas_get_%s", "openblas_get_%s64_", "scipy_openblas_get_%s64_",
                         "scipy_openblas_get_%s"):
                function = getattr(library, form % word, None)
                if function is not None:
                    function.restype = ctypes.c_char_p
                    said.append(function().decode("utf-8", "replace").strip())
                    break
        if said:
            return ", ".join(said)
    return None
