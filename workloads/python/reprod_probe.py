"""Probes for training programs in Python: says to reprod what was computed, place by place.

    import reprod_probe as probe

    for _ in probe.iterations(inputs={"x": x, "y": y}):
        model = probe.monitor_model(make_model(probe.seed()))
        for batch in batches:
            probe.monitor(batch, "data/batch")
            loss = probe.monitor(loss_of(model, batch), "loss")
            ...
            probe.step()
        probe.finish(model, loss)

One file, no dependency, Python 3.8 or newer; numpy, PyTorch and JAX are used where the
program has them and never imported for it (numpy for arrays that only it can read).
Started by reprod, a program speaks the run protocol (workloads/PROTOCOL.md).  By hand,
REPROD_TRACE=FILE has it write the same lines to a file, for reprod_compare.py; with
neither, every function here does nothing.  README.md is the tutorial.

A record is (iteration, step, place, in, out).  OUT is the digest of one array; IN is
 - what `inputs=` says, or the forward hooks of monitor_model saw: the digests of these;
 - the digest of nothing, for what the program gets from outside (names that begin with
   data/ and rng/, variables before the first step, and `inputs=()`);
 - else the digest of everything recorded before in this iteration.  Who does not say what
   a place reads is taken to read all of that, so such a place is named as a cause only
   when nothing before it differed.
"""
import array
import atexit
import base64
import contextlib
import ctypes
import dataclasses
import fnmatch
import functools
import itertools
import json
import mmap
import operator
import os
import pathlib
import platform
import random
import socket
import struct
import sys
import threading
import time
import weakref

# Digests: the definition is workloads/instruments/digest_block.h and digest.c

# Names, codes and sizes of workloads/workload.h; negative codes are for what only Python has.
DTYPES = {
    "float32": (0, 4), "float64": (1, 8), "float16": (2, 2), "bfloat16": (3, 2),
    "int32": (4, 4), "int64": (5, 8), "uint8": (6, 1),
    "bytes": (-1, 1), "bool": (-2, 1), "int8": (-3, 1), "int16": (-4, 2), "uint16": (-5, 2),
    "uint32": (-6, 4), "uint64": (-7, 8), "complex64": (-8, 8), "complex128": (-9, 16),
    "float8_e4m3fn": (-10, 1), "float8_e5m2": (-11, 1), "float8_e4m3fnuz": (-12, 1),
    "float8_e5m2fnuz": (-13, 1), "float8_e8m0fnu": (-14, 1),
}
_M32, _M64 = (1 << 32) - 1, (1 << 64) - 1
_K0, _K1 = 0x9E3779B97F4A7C15, 0x6A09E667F3BCC909
_C0, _C1 = 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B
_BLOCK = 8192
NOTHING = "0" * 32  # what a place reads that reads nothing


# The next two take integers and also numpy's arrays of uint64.
def _mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _M64
    return x ^ x >> 31


def _close_block(a, b, block):
    p = _mix(a ^ (block * _K0 + _C1 & _M64))
    q = _mix(b ^ (block * _K1 + _C0 & _M64))
    return _mix(p + 0x9DDFEA08EB382D69 * q & _M64), _mix(q ^ (p << 32 & _M64 | p >> 32))


@functools.lru_cache(maxsize=None)
def _keys():
    """For lanes a and b: the lower halves of the keys of all slots, and the upper ones."""
    keys = [[_mix(j * k + c & _M64) for j in range(_BLOCK // 8)]
            for k, c in ((_K0, _C0), (_K1, _C1))]
    return [([k & _M32 for k in lane], [k >> 32 for k in lane]) for lane in keys]


@functools.lru_cache(maxsize=None)
def _zeros():
    """For lanes a and b: what zeros from a slot to the end of a block add to its sum."""
    return [list(itertools.accumulate([0] + list(map(operator.mul, low, high))[::-1]))[::-1]
            for low, high in _keys()]


def _absorb(state, word):
    hi, lo = state
    hi = _mix(hi ^ (word * _K0 + _C0 & _M64)) + lo & _M64
    return hi, _mix(lo + (word ^ _C1) * _K1 & _M64) ^ hi


def _hex(state):
    return "%016x%016x" % state


def combine(digests):
    """One digest for an ordered list of digests (32 hex digits each): digest_combine."""
    digests = list(digests)
    state = _absorb((_C0, _C1), len(digests))
    for digest in digests:
        state = _absorb(_absorb(state, int(digest[:16], 16)), int(digest[16:], 16))
    return _hex(state)


def _digest_of_places(digests):
    """What a place reads or writes: nothing, one array, or several (PROTOCOL.md)."""
    digests = list(digests)
    return combine(digests) if len(digests) > 1 else digests[0] if digests else NOTHING


def _memory(address, count):
    return memoryview((ctypes.c_ubyte * count).from_address(address)) if count else b""


class PythonEngine:
    """Digests of blocks and exact sums in plain Python: slow, and right."""
    name = "python"

    def blocks(self, address, count):
        data, a, b = _memory(address, count), 0, 0
        for block, at in enumerate(range(0, count, _BLOCK)):
            piece = bytes(data[at:at + _BLOCK])
            slots = -(-len(piece) // 8)
            words = struct.unpack("<%dI" % (2 * slots), piece.ljust(8 * slots, b"\0"))
            sums = [sum(map(operator.mul, [w + k & _M32 for w, k in zip(words[::2], low)],
                            [w + k & _M32 for w, k in zip(words[1::2], high)]),
                        zeros[slots]) & _M64
                    for (low, high), zeros in zip(_keys(), _zeros())]
            mixed = _close_block(sums[0], sums[1], block)
            a, b = a + mixed[0], b + mixed[1]
        return a & _M64, b & _M64

    def new_sum(self):
        return ExactSum(self)

    def integers(self, code, address, count):
        data = _memory(address, count * struct.calcsize(code))
        return sum(struct.unpack("=%d%s" % (count, code), data))

    def bins(self, code, fraction_bits, address, count):
        """{sign and exponent: [how many values, the sum of their fractions]}"""
        data, found = _memory(address, count * struct.calcsize(code)), {}
        for bits in struct.unpack("=%d%s" % (count, code), data):
            bin_ = found.setdefault(bits >> fraction_bits, [0, 0])
            bin_[0] += 1
            bin_[1] += bits & (1 << fraction_bits) - 1
        return found


class NumpyEngine(PythonEngine):
    """The same at a useful speed, where the program has numpy."""
    name = "numpy"
    AT_ONCE = 512 * _BLOCK

    def __init__(self, numpy):
        self.numpy = numpy
        self.keys = [[numpy.array(half, "u4") for half in lane] for lane in _keys()]

    def blocks(self, address, count):
        numpy, data, a, b = self.numpy, _memory(address, count), 0, 0
        for at in range(0, count, self.AT_ONCE):
            piece = data[at:at + self.AT_ONCE]
            if len(piece) % _BLOCK:
                piece = bytes(piece).ljust(-(-len(piece) // _BLOCK) * _BLOCK, b"\0")
            words = numpy.frombuffer(piece, "<u4").reshape(-1, _BLOCK // 4)
            first = at // _BLOCK
            index = numpy.arange(first, first + len(words), dtype="u8")
            sums = [((words[:, ::2] + low).astype("u8") * (words[:, 1::2] + high))
                    .sum(axis=1, dtype="u8") for low, high in self.keys]
            mixed = _close_block(sums[0], sums[1], index)
            a, b = a + int(mixed[0].sum(dtype="u8")), b + int(mixed[1].sum(dtype="u8"))
        return a & _M64, b & _M64

    def integers(self, code, address, count):
        size = struct.calcsize(code)
        values = self.numpy.frombuffer(_memory(address, count * size), "=%s%d"
                                       % ("u" if code.isupper() else "i", size))
        # Halves, so that no sum of them overflows.
        low = int((values & _M32).sum(dtype="u8")) if size == 8 else 0
        return low + ((int((values >> 32).sum(dtype="i8")) << 32) if size == 8
                      else int(values.sum(dtype="i8")))

    def bins(self, code, fraction_bits, address, count):
        """Halves of fractions, so that float64 holds the sums of 2^26 of them exactly."""
        numpy, size, found = self.numpy, struct.calcsize(code), {}
        half = (fraction_bits + 1) // 2
        for at in range(0, count, 1 << 20):
            bits = numpy.frombuffer(_memory(address + at * size, min(count - at, 1 << 20) * size),
                                    "=u%d" % size)
            bins = (bits >> fraction_bits).astype("i8")
            fractions = bits & (1 << fraction_bits) - 1
            low = numpy.bincount(bins, fractions & (1 << half) - 1)
            high = numpy.bincount(bins, fractions >> half)
            counts = numpy.bincount(bins)
            for i in counts.nonzero()[0].tolist():
                bin_ = found.setdefault(i, [0, 0])
                bin_[0] += int(counts[i])
                bin_[1] += int(low[i]) + (int(high[i]) << half)
        return found


class ExactSum:
    """The sum of any values, rounded once: workloads/instruments/exact_sum.h."""
    # unsigned struct code, bits of the exponent, bits of the fraction
    FORMATS = {"float32": ("I", 8, 23), "float64": ("Q", 11, 52), "float16": ("H", 5, 10),
               "bfloat16": ("H", 8, 7)}
    INTEGERS = {"int32": "i", "int64": "q", "uint8": "B"}
    UNIT = 1074  # the total is in units of the smallest subnormal, 2^-1074

    def __init__(self, engine):
        self.engine, self.total, self.kinds = engine, 0, set()

    def add(self, dtype, address, count):
        if dtype in self.INTEGERS:
            if count:
                self.kinds.add("other")
                self.total += self.engine.integers(self.INTEGERS[dtype], address, count) << self.UNIT
            return
        code, exponent_bits, fraction_bits = self.FORMATS[dtype]
        last = (1 << exponent_bits) - 1
        for bin_, (values, fractions) in self.engine.bins(code, fraction_bits, address,
                                                          count).items():
            negative, exponent = bin_ > last, bin_ & last
            self.kinds.add("-0" if negative and not exponent and not fractions else "other")
            if exponent == last:
                self.kinds.add("nan" if fractions else "-inf" if negative else "inf")
                continue
            significands = fractions + (values << fraction_bits if exponent else 0)
            power = max(exponent, 1) - (last >> 1) - fraction_bits + self.UNIT
            self.total += (-significands if negative else significands) << power

    def bits(self):
        """The 64 bits of the correctly rounded binary64, ties to even."""
        if "nan" in self.kinds or {"inf", "-inf"} <= self.kinds:
            return 0x7FF8000000000000
        if {"inf", "-inf"} & self.kinds:
            return 0x7FF0000000000000 if "inf" in self.kinds else 0xFFF0000000000000
        if self.total == 0:
            return 1 << 63 if self.kinds == {"-0"} else 0
        sign = 1 << 63 if self.total < 0 else 0
        try:  # the quotient of two integers is correctly rounded, also into subnormals
            value = abs(self.total) / (1 << self.UNIT)
        except OverflowError:
            value = float("inf")
        return sign | struct.unpack("<Q", struct.pack("<d", value))[0]


class _Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class _Accumulator(ctypes.Structure):
    _fields_ = [("limbs", ctypes.c_int64 * 68), ("flags", ctypes.c_bool * 5)]


class LibraryEngine:
    """The instruments themselves: libreprod-digest.so, which make builds."""
    name = "library"

    def __init__(self, path):
        self.library = lib = ctypes.CDLL(path)
        address, count = ctypes.c_void_p, ctypes.c_int64
        lib.digest_blocks.argtypes = [address] + [ctypes.c_uint64] * 3
        lib.digest_blocks.restype = _Pair
        lib.exact_sum_init.argtypes = [ctypes.POINTER(_Accumulator)]
        lib.exact_sum_add.argtypes = [ctypes.POINTER(_Accumulator), ctypes.c_int, address, count]
        lib.exact_sum_round.argtypes = [ctypes.POINTER(_Accumulator)]
        lib.exact_sum_round.restype = ctypes.c_double

    def blocks(self, address, count):
        pair = self.library.digest_blocks(address, count, 0, _M64)
        return pair.a, pair.b

    def new_sum(self):
        return _LibrarySum(self.library)


class _LibrarySum:
    def __init__(self, library):
        self.library, self.state = library, _Accumulator()
        library.exact_sum_init(ctypes.byref(self.state))

    def add(self, dtype, address, count):
        self.library.exact_sum_add(ctypes.byref(self.state), DTYPES[dtype][0], address, count)

    def bits(self):
        value = self.library.exact_sum_round(ctypes.byref(self.state))
        return struct.unpack("<Q", struct.pack("<d", value))[0]


def _library_agrees(engine):
    """Another version's library must not pass for this one."""
    data = (ctypes.c_ubyte * 8200)(*(j * 37 % 251 for j in range(8200)))
    sums = engine.new_sum(), PythonEngine().new_sum()
    for total in sums:
        total.add("uint8", ctypes.addressof(data), 8200)
        total.add("float32", ctypes.addressof(data), 50)
    return (engine.blocks(ctypes.addressof(data), 8200)
            == PythonEngine().blocks(ctypes.addressof(data), 8200)
            and sums[0].bits() == sums[1].bits())


def _library_paths():
    """Beside this file, in the source tree, and where make install puts it."""
    if os.environ.get("REPROD_DIGEST_LIBRARY"):
        return [os.environ["REPROD_DIGEST_LIBRARY"]]
    here, name = os.path.dirname(os.path.realpath(__file__)), "libreprod-digest.so"
    folders = (here, os.path.join(here, "../../build"), os.path.join(here, "../../../lib/reprod"),
               "/usr/local/lib/reprod", "/usr/lib/reprod")
    paths = [os.path.normpath(os.path.join(folder, name)) for folder in folders]
    return [path for path in paths if os.path.exists(path)]


def choose_engine(wanted=None):
    """The fastest there is; WANTED (or REPROD_DIGEST): "library", "numpy" or "python"."""
    wanted = wanted or os.environ.get("REPROD_DIGEST")
    if wanted not in (None, "library", "numpy", "python"):
        raise ValueError("REPROD_DIGEST is %r, not library, numpy or python" % wanted)
    for path in _library_paths() if wanted in (None, "library") else []:
        try:
            engine = LibraryEngine(path)
            if _library_agrees(engine):
                return engine
            _say("%s is of another version: not used" % path)
        except (OSError, AttributeError) as error:
            _say("%s cannot be used: %s" % (path, error))
    if wanted == "library":
        raise RuntimeError("there is no libreprod-digest.so that can be used")
    if wanted in (None, "numpy"):
        with contextlib.suppress(ImportError):
            import numpy
            return NumpyEngine(numpy)
    if wanted == "numpy":
        raise RuntimeError("there is no numpy")
    return PythonEngine()


@functools.lru_cache(maxsize=None)
def _engine():
    return choose_engine()


def _say(text):
    print("reprod_probe: " + text, file=sys.stderr, flush=True)


# Values: whatever a program holds, as arrays in memory


class Leaf:
    """A dense array in row-major order; OWNER keeps the memory at ADDRESS alive."""
    __slots__ = ("dtype", "shape", "address", "nbytes", "owner")

    def __init__(self, dtype, shape, address, owner):
        if dtype not in DTYPES:
            raise TypeError("reprod_probe cannot read arrays of dtype %s" % dtype)
        self.dtype, self.shape = dtype, tuple(int(extent) for extent in shape)
        self.address, self.owner = address, owner
        self.nbytes = DTYPES[dtype][1] * self.elements()

    def elements(self):
        return functools.reduce(operator.mul, self.shape, 1)

    def digest(self):
        state = _engine().blocks(self.address, self.nbytes)
        for word in (self.nbytes, DTYPES[self.dtype][0], len(self.shape)) + self.shape:
            state = _absorb(state, word & _M64)
        return _hex(state)

    def data(self, start, count):
        return bytes(_memory(self.address + start, count))

    def copy(self):
        return _leaf_of_bytes(self.dtype, self.shape, self.data(0, self.nbytes))

    def add_to(self, total):
        if self.dtype in ExactSum.FORMATS or self.dtype in ExactSum.INTEGERS:
            total.add(self.dtype, self.address, self.elements())
        elif self.dtype == "bool":
            total.add("uint8", self.address, self.elements())
        elif self.dtype.startswith("complex"):
            total.add("float%d" % (4 * DTYPES[self.dtype][1]), self.address, 2 * self.elements())
        elif self.dtype[:3] in ("int", "uin"):
            code = {1: "b", 2: "h", 4: "i", 8: "q"}[DTYPES[self.dtype][1]]
            code = code.upper() if self.dtype[0] == "u" else code
            halves = []
            for value in struct.unpack("=%d%s" % (self.elements(), code),
                                       self.data(0, self.nbytes)):
                halves += (value >> 1, value >> 1, value & 1)
            wide = array.array("q", halves)
            total.add("int64", wide.buffer_info()[0], len(wide))
        else:
            raise TypeError("reprod_probe cannot sum values of dtype %s" % self.dtype)


def _leaf_of_bytes(dtype, shape, data):
    address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
    return Leaf(dtype, shape, address, data)


def _leaf_of_number(value):
    if isinstance(value, bool):
        return _leaf_of_bytes("bool", (), struct.pack("?", value))
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return _leaf_of_bytes("int64", (), struct.pack("=q", value))
        return _leaf_of_text(str(value).encode())
    if isinstance(value, float):
        return _leaf_of_bytes("float64", (), struct.pack("=d", value))
    return _leaf_of_bytes("complex128", (), struct.pack("=dd", value.real, value.imag))


def _leaf_of_text(data):
    return _leaf_of_bytes("bytes", (len(data),), bytes(data))


def _leaf_of_file(path):
    """The bytes of a file, which need not fit the memory."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return _leaf_of_text(b"")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    memory = (ctypes.c_ubyte * size).from_buffer(mapped)
    return Leaf("bytes", (size,), ctypes.addressof(memory), memory)


def _leaf_of_torch(tensor):
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return Leaf(str(tensor.dtype).split(".")[-1], tensor.shape, tensor.data_ptr(), tensor)


def _leaf_of_numpy(numpy, values):
    shape = values.shape
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    values = numpy.ascontiguousarray(values)
    return Leaf(values.dtype.name, shape, values.ctypes.data, values)


def _leaf_of_buffer(value):
    view = memoryview(value)
    code = view.format.lstrip("@=<") if view.format[:1] not in "!>" else "big-endian"
    family = {"b": "int", "h": "int", "i": "int", "l": "int", "q": "int", "n": "int",
              "f": "float", "d": "float", "e": "float", "Zf": "complex", "Zd": "complex",
              "?": "bool", "c": "uint"}.get(code, "uint" if code in tuple("BHILQN") else code)
    dtype = "bool" if family == "bool" else "%s%d" % (family, 8 * view.itemsize)
    if view.c_contiguous and not view.readonly and view.nbytes:
        memory = (ctypes.c_ubyte * view.nbytes).from_buffer(view)
        return Leaf(dtype, view.shape, ctypes.addressof(memory), (memory, view))
    return _leaf_of_bytes(dtype, view.shape, view.tobytes())


def _is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def leaf_of(value):
    """VALUE, one array, number or text, as a Leaf.  TypeError where it is none of these."""
    if isinstance(value, (bool, int, float, complex)):
        return _leaf_of_number(value)
    if isinstance(value, str):
        return _leaf_of_text(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return _leaf_of_text(value)
    if isinstance(value, pathlib.Path):
        return _leaf_of_file(value)
    if _is_torch(value):
        try:
            return _leaf_of_torch(value)
        except (RuntimeError, ValueError, AttributeError) as error:
            raise TypeError("reprod_probe cannot read a %s of dtype %s on %s: %s" % (
                type(value).__name__, str(value.dtype).split(".")[-1], value.device,
                _cause(error))) from None
    if hasattr(value, "__array__"):
        import numpy
        return _leaf_of_numpy(numpy, numpy.asarray(value))
    try:
        return _leaf_of_buffer(value)
    except TypeError:
        raise TypeError("reprod_probe cannot read a %s" % type(value).__name__) from None


def _cause(error):
    return str(error).split("\n")[0][:160]


def _leaf_at(place, value):
    """leaf_of(VALUE), where an error says which value it was."""
    try:
        return leaf_of(value)
    except (TypeError, RuntimeError) as error:
        raise TypeError("%s: %s" % (place, _cause(error))) from None


def _sparse_parts(tensor):
    """The dense parts of a sparse PyTorch tensor, else None."""
    layout = str(getattr(tensor, "layout", "")) if _is_torch(tensor) else ""
    if layout == "torch.sparse_coo":
        return {"indices": tensor._indices(), "values": tensor._values()}
    for kind, (rows, columns) in {"csr": ("crow", "col"), "csc": ("ccol", "row")}.items():
        if layout in ("torch.sparse_" + kind, "torch.sparse_b" + kind[1:]):
            return {rows: getattr(tensor, rows + "_indices")(),
                    columns: getattr(tensor, columns + "_indices")(), "values": tensor.values()}
    return None


def _children(value):
    """[(name, child), ...] of a container, in its order; None where VALUE is none.  A list
    of plain numbers is one array, one of texts one text (JSON)."""
    if hasattr(value, "__array__"):
        parts = _sparse_parts(value)
        return None if parts is None else list(parts.items())
    if hasattr(value, "items") and hasattr(value, "keys"):
        return [(str(key), value[key]) for key in value]
    if isinstance(value, (list, tuple)):
        kinds = {type(item) for item in value}
        if len(kinds) == 1 and len(value) > 1 and kinds <= {bool, int, float}:
            code = {bool: "b", int: "q", float: "d"}[kinds.pop()]
            with contextlib.suppress(OverflowError):
                return [("", array.array(code, value))]
        if kinds == {str} and len(value) > 1:
            return [("", json.dumps(value))]
        return list(zip(getattr(value, "_fields", map(str, range(len(value)))), value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return None


def flatten(value, name=""):
    """(name, array, number or text) of everything in VALUE, containers opened, None left out."""
    children = None if isinstance(value, (str, bytes)) else _children(value)
    if children is None:
        if value is not None:
            yield name, value
        return
    for key, child in children:
        for found in flatten(child, "/".join(filter(None, (name, key)))):
            yield found


def digest(value):
    """The digest of VALUE, 32 hex digits: of an array, number or text as the C instruments
    compute it; of a container, combine() over its parts."""
    parts = list(flatten(value))
    if len(parts) == 1 and not parts[0][0] and parts[0][1] is value:
        return leaf_of(value).digest()
    return combine(leaf_of(part).digest() for _, part in parts)


def exact_sum(value):
    """The sum of all numbers in VALUE, rounded once: the 16 hex digits of a binary64."""
    return _sum_of(leaf_of(part) for _, part in flatten(value))


def _sum_of(leaves):
    total = _engine().new_sum()
    for leaf in leaves:
        leaf.add_to(total)
    return "%016x" % total.bits()


# The environment of a run

_VARIABLES = (
    "BLIS_*", "CUBLAS*", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_FORCE_PTX_JIT",
    "CUDA_LAUNCH_BLOCKING", "CUDNN_*", "DNNL_*", "GLIBC_TUNABLES", "GOMP_*",
    "HOROVOD_FUSION_THRESHOLD", "JAX_*", "KMP_*", "LD_PRELOAD", "MKL_*", "NCCL_*",
    "NVIDIA_TF32_OVERRIDE", "NVTE_*", "OMP_*", "ONEDNN_*", "OPENBLAS_*", "PYTHONHASHSEED",
    "PYTORCH_*", "TF_AUTOTUNE_THRESHOLD", "TF_CUDNN_*", "TF_DETERMINISTIC_OPS", "TF_DISABLE_*",
    "TF_ENABLE_*", "TF_USE_*", "TF_XLA_FLAGS", "TORCHINDUCTOR_COORDINATE_DESCENT_*",
    "TORCHINDUCTOR_DETERMINISTIC", "TORCHINDUCTOR_MAX_AUTOTUNE*", "TORCH_*",
    "VLLM_ATTENTION_BACKEND", "VLLM_BATCH_INVARIANT", "VLLM_USE_*", "XLA_FLAGS")
_PACKAGES = ("numpy", "torch", "jax", "jaxlib", "tensorflow")


def _first_line(path, start=""):
    with contextlib.suppress(OSError, UnicodeDecodeError), open(path) as file:
        for line in file:
            if line.startswith(start):
                return line.split(":", 1)[-1].strip()
    return ""


def _cpu_model():
    model = _first_line("/proc/cpuinfo", "model name").split("@")[0] + " "
    for part in ("(R)", "(TM)", "(tm)", " CPU"):
        model = model.replace(part, "")
    return " ".join(model.split()) or platform.machine() or "unknown"


def _vector_isa():
    flags = _first_line("/proc/cpuinfo", "flags").split()
    return " ".join(f for f in ("avx512f", "avx2", "avx", "fma") if f in flags
                    and not (f == "avx" and "avx2" in flags)) or "baseline"


def _torch_cuda():
    """torch.cuda where this program uses it, else None."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_available() else None


def _is_capturing_graph():
    """Whether CUDA only writes down what is asked of it: nothing can be read then, and to try
    would end the capture."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return False
    capturing = getattr(cuda, "is_current_stream_capturing", lambda: False)()
    if capturing:
        _say_once("what is computed while a CUDA graph is captured, and by its replays, is not"
                  " recorded")
    return capturing


def _device_id(wanted):
    """The id of the device, as the libraries that compute say it."""
    if not wanted.startswith("cpu:"):
        cuda = _torch_cuda()
        if cuda is None:
            return "unknown"
        uuid = str(getattr(cuda.get_device_properties(cuda.current_device()), "uuid", "unknown"))
        return uuid if uuid.startswith(("GPU-", "MIG-", "unknown")) else "GPU-" + uuid
    return "cpu:" + socket.gethostname()


def _threads(request):
    torch = sys.modules.get("torch")
    if hasattr(torch, "get_num_threads"):
        if request.threads:
            torch.set_num_threads(request.threads)
        return torch.get_num_threads()
    return request.threads or os.cpu_count() or 1


def _program_build():
    """A digest of the program: its script and what is imported from the script's folder."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if not script:
        return "command:" + leaf_of(pathlib.Path("/proc/self/cmdline").read_bytes()).digest()
    folder = os.path.dirname(os.path.realpath(script))
    files = {os.path.realpath(script), os.path.realpath(__file__)}
    for module in list(sys.modules.values()):
        path = os.path.realpath(getattr(module, "__file__", None) or "/")
        if path.startswith(folder + os.sep) and "site-packages" not in path \
                and "dist-packages" not in path and os.path.isfile(path):
            files.add(path)
    return "files:" + combine(leaf_of(pathlib.Path(path)).digest() for path in
                              sorted(files, key=lambda path: os.path.relpath(path, folder)))


def _environment(request, threads, build):
    facts = {"backend": request.backend, "model": _cpu_model(), "worker_build": build,
             "architecture": platform.machine(), "vector_isa": _vector_isa(),
             "threads": threads, "libc": " ".join(platform.libc_ver()),
             "python": platform.python_version()}
    for name in _PACKAGES:
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            facts[name] = str(version)
    cuda = _torch_cuda()
    if request.backend == "cuda" and cuda is not None:
        torch = sys.modules["torch"]
        facts["model"] = cuda.get_device_name()
        told = {"cuda_runtime": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                "driver": _first_line("/sys/module/nvidia/version")}
        facts.update((name, str(value)) for name, value in told.items() if value)
    for name, value in os.environ.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in _VARIABLES) \
                and name != "OMP_NUM_THREADS" and len(name) <= 128:
            short = value if len(value) <= 256 else "digest:" + digest(value)
            facts["env." + name] = short.encode("utf-8", "replace").decode()
    return facts


def _build_id(path):
    """The build id of a 64-bit ELF file in hex, or None."""
    with contextlib.suppress(OSError, struct.error), open(path, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            return None
        table, size, count = struct.unpack("<Q14xHH", head[32:58])
        file.seek(table)
        headers = file.read(size * count)
        for at in range(0, size * count, size):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", headers, at)
            if kind != 4 or length > 65536:  # PT_NOTE
                continue
            file.seek(offset)
            notes = file.read(length)
            while len(notes) >= 12:
                owner, data, note = struct.unpack_from("<III", notes)
                start = 12 + (owner + 3) // 4 * 4
                if note == 3 and notes[12:12 + owner] == b"GNU\0":
                    return notes[start:start + data].hex()
                notes = notes[start + (data + 3) // 4 * 4:]
    return None


def _libraries(budget=40000):
    """The mapped shared libraries, as many as BUDGET bytes of JSON take."""
    paths = set()
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").split(None, 5)[5:]
            if path and path[0][0] == "/" and ".so" in os.path.basename(path[0]):
                paths.add(path[0])
    found = []
    for path in sorted(paths):
        budget -= len(path.encode("utf-8", "replace")) + 80
        if budget < 0:
            found.append({"path": "%d more" % (len(paths) - len(found)), "build_id": None})
            break
        found.append({"path": path.encode("utf-8", "replace").decode(),
                      "build_id": _build_id(path)})
    return found


# The run

RECORDS_MAX = 262144  # a run's; the rest is dropped and counted
LINE_MAX = 60000
TENSOR_BYTES_MAX, CAPTURE_BYTES_MAX, CHUNK_BYTES = 4 << 20, 16 << 20, 32 << 10
TENSORS_MAX, RANK_MAX = 128, 32
PLACE_BYTES_MAX = 128
SPEAKER = "REPROD_PROBE_SPEAKER"  # the process whose run this is, for those that it starts


def _number(name, default):
    text = os.environ.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError("%s is %r, not a number" % (name, text))
    return int(text) if text else default


class Request:
    """What reprod asked for, in variables of the environment; or what stands for it by hand."""

    def __init__(self):
        get = os.environ.get
        script = getattr(sys.modules.get("__main__"), "__file__", None) or "program"
        self.workload = get("REPROD_WORKLOAD") or pathlib.Path(script).stem
        self.version = _number("REPROD_VERSION", 1)
        self.variant = get("REPROD_VARIANT") or "default"
        self.size = get("REPROD_SIZE") or "default"
        self.dtype = get("REPROD_DTYPE") or "float32"
        self.seed = _number("REPROD_SEED", 1)
        self.iterations = _number("REPROD_ITERATIONS", 1)
        self.threads = _number("REPROD_THREADS", 0)
        self.recipe = get("REPROD_RECIPE") or "none"
        self.device = get("REPROD_DEVICE") or "cpu:" + socket.gethostname()
        self.backend = get("REPROD_BACKEND") or (
            "cpu" if self.device.startswith("cpu:") else "cuda")
        self.file = None if get("REPROD_RESULT_FD") else get("REPROD_TRACE")
        self.every = _number("REPROD_PROBES", 1 if self.file else 0)
        self.names = get("REPROD_PROBE_NAMES") or "*"
        first, dash, last = (get("REPROD_PROBE_STEPS") or "0-").partition("-")
        if not (first.isdigit() and dash and (last.isdigit() or last == "")):
            raise ValueError("REPROD_PROBE_STEPS is %r, not A-B" % get("REPROD_PROBE_STEPS"))
        self.first_step, self.last_step = int(first), int(last) if last else float("inf")
        self.capture = None
        if get("REPROD_CAPTURE"):
            parts = get("REPROD_CAPTURE").split(":", 2)
            if len(parts) != 3 or not parts[0].isdigit() or not parts[1].isdigit():
                raise ValueError("REPROD_CAPTURE is %r, not ITERATION:STEP:PLACE"
                                 % get("REPROD_CAPTURE"))
            self.capture = int(parts[0]), int(parts[1]), parts[2]


def _open_result(request):
    """A descriptor that this process alone has, or None: nobody wants to know, or another
    process speaks, whose descriptor's number may be another file's here."""
    if os.environ.get(SPEAKER, str(os.getpid())) != str(os.getpid()):
        return None
    if request.file:
        return os.open(request.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    if not os.environ.get("REPROD_RESULT_FD"):
        return None
    fd = _number("REPROD_RESULT_FD", 3)
    try:
        os.set_inheritable(fd, False)
    except OSError as error:
        raise RuntimeError(
            "REPROD_RESULT_FD is %d, which is not open here (%s): what started this program"
            " closes descriptors; in Python, subprocess has pass_fds" % (fd, error)) from None
    return fd


def _place_name(name):
    """NAME as the protocol allows it: printable, at most 128 bytes of UTF-8."""
    name = "".join(c if c.isprintable() else "?" for c in str(name)) or "?"
    data = name.encode("utf-8", "replace")
    if len(data) <= PLACE_BYTES_MAX:
        return data.decode()
    return data[:PLACE_BYTES_MAX - 9].decode("utf-8", "ignore") + "~" + digest(name)[:8]


@functools.lru_cache(maxsize=None)
def _may_match(place, pattern):
    """Whether PATTERN matches PLACE or may match something that begins with it."""
    return any(fnmatch.fnmatchcase(place, pattern[:end]) for end in range(len(pattern) + 1))


class Run:
    """One process's run: what was asked, what was said."""

    def __init__(self):
        self.request = Request()
        self.fd = _open_result(self.request)
        self.prefix = ""  # of every place: which rank this process is
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self.started = self.ended = False
        self.iteration = self.step = 0
        self.bytes_hashed = self.records_made = self.dropped = 0
        self.chain, self.chained, self.capture_done = NOTHING, False, False
        self.pending, self.pending_bytes = [], 0
        self.depth = 0
        self.frames = threading.local()
        self.seen, self.watched = {}, {}  # by id: tensors that were recorded, that have hooks
        self.traced = False
        self.begin_clock()
        if self.fd is not None:
            atexit.register(self.at_exit)

    # A child process has a copy of all this, and nothing to say.
    def active(self):
        return self.fd is not None and not self.ended and self.pid == os.getpid()

    def write(self, event):
        line = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
        line = line.encode("utf-8", "replace") + b"\n"
        while line:
            line = line[os.write(self.fd, line):]

    def begin_clock(self):
        self.probe_ns, self.began_ns = 0, time.perf_counter_ns()

    @contextlib.contextmanager
    def probe_time(self):
        """What is done here is no part of the iteration's time."""
        with self.lock:
            if self.depth == 0:
                cuda = getattr(sys.modules.get("torch"), "cuda", None)
                if cuda is not None and cuda.is_initialized():
                    cuda.synchronize()  # what a probe waits for is the computation's time
                self.entered_ns = time.perf_counter_ns()
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.probe_ns += time.perf_counter_ns() - self.entered_ns

    def start(self, inputs, algorithm, claim, build, facts, device=None, circumstances=None):
        request = self.request
        os.environ[SPEAKER] = str(self.pid)
        self.inputs = inputs
        self.algorithm = algorithm or request.variant
        threads = _threads(request)
        self.device = device or _device_id(request.device)
        self.input_digest = self.read_inputs()
        self.libraries = _libraries()
        environment = {**_environment(request, threads, build or _program_build()),
                       **(facts or {})}
        self.started = True
        self.write({
            "event": "start", "v": 1, "pid": self.pid,
            "nonce": os.environ.get("REPROD_NONCE"), "workload": request.workload,
            "version": request.version, "variant": request.variant, "size": request.size,
            "dtype": request.dtype, "seed": str(request.seed), "iterations": request.iterations,
            "threads": request.threads if "threads" in (facts or {}) else threads,
            "backend": request.backend, "device": self.device,
            "algorithm": self.algorithm, "claim": claim, "input_digest": self.input_digest,
            **({"circumstances": circumstances} if circumstances else {}),
            "environment": {name: fact for name, fact in environment.items()
                            if fact is not None},
            "libraries": self.libraries})
        self.begin_clock()

    def read_inputs(self):
        """Where the program names no inputs, the request is all that is known of them."""
        if self.inputs is None:
            request = self.request
            return digest([request.workload, str(request.version), request.size, request.dtype,
                           str(request.seed)])
        return combine(leaf_of(value).digest() for _, value in flatten(self.inputs))

    def step_wanted(self):
        request = self.request
        return (request.every > 0 and self.step % request.every == 0
                and request.first_step <= self.step <= request.last_step)

    def probing(self, place=None):
        """Whether a place is looked at.  Until the one that is to be captured has come by, all
        are: what comes before it may be all that is known of what it reads."""
        if not self.active():
            return False
        if self.step_wanted() or self.request.capture:
            if _is_capturing_graph():
                return False
        capture = self.request.capture
        if capture and not self.capture_done and (self.iteration, self.step) <= capture[:2]:
            return True
        return self.step_wanted() and (place is None
                                       or fnmatch.fnmatchcase(self.prefix + place, self.request.names))

    def probing_below(self, place):
        """Whether PLACE, or a part of it, may be looked at: PLACE/KEY, with any KEY."""
        capture = self.request.capture
        if capture and not self.capture_done and (self.iteration, self.step) <= capture[:2]:
            return self.probing()
        return self.probing() and _may_match(self.prefix + place, self.request.names)

    def captures(self, place):
        """Whether PLACE, or a part of it, is to be captured now."""
        capture = self.request.capture
        return (capture is not None and not self.capture_done
                and capture[:2] == (self.iteration, self.step)
                and (capture[2] + "/").startswith(self.prefix + place + "/"))

    def record(self, place, leaf, reads=None, read_leaves=()):
        """READS: the digest of what the place read; None: everything recorded before.  The digest of
        LEAF."""
        place = _place_name(self.prefix + place) if self.prefix else place
        with self.probe_time():
            out = leaf.digest()
            self.chained = self.chained or reads != NOTHING
            reads = self.chain if reads is None else reads
            self.chain = combine([self.chain, out])
            open_frames = getattr(self.frames, "open", None)
            if open_frames:
                open_frames[-1].reads.append(out)
            captured = (not self.capture_done
                        and self.request.capture == (self.iteration, self.step, place))
            if captured or (self.step_wanted() and fnmatch.fnmatchcase(place, self.request.names)):
                self.write_record([place, reads, out], captured)
            if captured:
                self.capture_done = True
                self.flush()
                room = CAPTURE_BYTES_MAX - min(leaf.nbytes, TENSOR_BYTES_MAX)
                self.capture(place, "in", read_leaves[:TENSORS_MAX - 1], room)
                self.capture(place, "out", [("", leaf)], TENSOR_BYTES_MAX)
            return out

    def write_record(self, record, always):
        if self.records_made >= RECORDS_MAX and not always:
            self.dropped += 1
            return
        self.records_made += 1
        self.pending.append(record)
        self.pending_bytes += 2 * len(record[0].encode()) + 80
        if self.pending_bytes > LINE_MAX - 1000:
            self.flush()

    def flush(self):
        if self.pending:
            self.write({"event": "probes", "i": self.iteration, "step": self.step,
                        "records": self.pending})
            self.pending, self.pending_bytes = [], 0

    def capture(self, place, role, leaves, room):
        for index, (name, leaf) in enumerate(leaves):
            end = min(leaf.nbytes, TENSOR_BYTES_MAX, room)
            room -= end
            shape = leaf.shape if len(leaf.shape) <= RANK_MAX else [leaf.elements()]
            for offset in range(0, max(end, 1), CHUNK_BYTES):
                data = leaf.data(offset, min(CHUNK_BYTES, end - offset))
                self.write({"event": "tensor", "i": self.iteration, "step": self.step,
                            "place": place, "role": role, "index": index,
                            "name": _place_name(name) if name else "", "dtype": leaf.dtype,
                            "shape": list(shape), "bytes_total": leaf.nbytes,
                            "captured_bytes": end, "offset": offset,
                            "data": base64.b64encode(data).decode()})

    def settle(self):
        """Waits for what compiled JAX programs still have to record."""
        if self.traced:
            sys.modules["jax"].effects_barrier()

    def next_step(self):
        """Waits for no device, so that a run without probes races as it would by itself."""
        self.settle()
        with self.lock:
            self.flush()
            self.step += 1
            self.seen = {key: known for key, known in self.seen.items() if known[0]() is not None}

    def next_iteration(self, weights, loss, algorithm):
        self.settle()
        request = self.request
        if self.iteration >= request.iterations:
            raise RuntimeError("finish() was called more often than the %d times that were"
                               " asked for (REPROD_ITERATIONS)" % request.iterations)
        with self.probe_time():
            nanoseconds = time.perf_counter_ns() - self.began_ns - self.probe_ns
            self.flush()
            weights = weights.state_dict() if hasattr(weights, "state_dict") else weights
            leaves = [_leaf_at("finish: weights/" + (key or "value"), value)
                      for key, value in flatten(weights)]
            # What is reported is digested, the loss too: equal weights with another loss differ.
            reported = leaves if loss is None else [*leaves, _leaf_at("finish: loss", loss)]
            self.elements = sum(leaf.elements() for leaf in reported)
            self.bytes_hashed += sum(leaf.nbytes for leaf in reported)
            self.algorithm = algorithm or self.algorithm
            self.write({"event": "iteration", "i": self.iteration,
                        "digest": combine(leaf.digest() for leaf in reported),
                        "weight_sum": _sum_of(leaves),
                        "loss": None if loss is None else exact_sum(loss),
                        "ms": max(nanoseconds, 0) / 1e6, "algorithm": self.algorithm})
        self.iteration += 1
        self.step, self.chain, self.chained = 0, NOTHING, False
        if self.iteration == request.iterations:
            self.end("completed", None)
        self.begin_clock()

    def end(self, outcome, cause):
        self.flush()
        event = {"event": "end", "outcome": outcome, "cause": cause, "iterations": self.iteration,
                 "elements": self.elements if self.iteration else 0,
                 "bytes_hashed": self.bytes_hashed, "device": self.device,
                 "input_digest": self.read_inputs() if outcome == "completed"
                 else self.input_digest}
        libraries = _libraries()
        if libraries != self.libraries:
            event["libraries"] = libraries
        if self.dropped:
            event["probes_dropped"] = self.dropped
        self.write(event)
        self.ended = True

    def at_exit(self):
        if self.active() and self.started:
            with contextlib.suppress(OSError):
                self.flush()
            _say("this run has no end: %d of %d iterations were finished; finish(weights, loss)"
                 " ends each of them" % (self.iteration, self.request.iterations))


@functools.lru_cache(maxsize=None)
def _run():
    return Run()


def _started():
    """The run, if anybody wants to know; started."""
    run = _run()
    if run.active() and not run.started:
        start()
    return run if run.active() else None


# What programs call


def request():
    """What was asked for: .variant, .size, .dtype, .seed, .iterations, .threads, .device, …"""
    return _run().request


def seed():
    """Seeds Python's, numpy's and PyTorch's generators, of those that the program has
    imported, with the seed that was asked for.  Returns it, for others."""
    value = request().seed
    random.seed(value)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(value % (1 << 32))
    if hasattr(sys.modules.get("torch"), "manual_seed"):
        sys.modules["torch"].manual_seed(value)
    return value


def start(inputs=None, algorithm=None, claim=None, build=None, facts=None, device=None,
          circumstances=None):
    """Says what this run is.  After the imports and before anything is computed; implied by
    the first other call.  INPUTS: what the computation starts from (arrays, nested as for
    monitor; a pathlib.Path stands for the file's bytes).  They are digested now and again at
    the end, and two runs are of one case only if they agree.  BUILD names the program's
    version; by default a digest of its script and of what is imported from its folder.  FACTS
    are further facts of the environment, or replace some; one that is None is left out.  DEVICE:
    the id of what computes, as the program read it back, where it is not PyTorch that does.
    CIRCUMSTANCES: those that it computes under, by name, where it was asked for some."""
    run = _run()
    if run.active() and not run.started:
        run.start(inputs, algorithm, claim, build, facts, device, circumstances)


def iterations(inputs=None, **arguments):
    """start(...), then the numbers of the iterations that were asked for, each of which must
    end in finish()."""
    start(inputs, **arguments)
    for i in range(request().iterations):
        _run().begin_clock()
        yield i


def monitor(value, name, inputs=None):
    """Records VALUE as place NAME and returns it.  Of containers each array is a place of its
    own, NAME/KEY.  The gradients that reach PyTorch tensors are recorded as gradient/NAME, of
    LAYER/forward as LAYER/backward.
    INPUTS: all that the place reads; () for nothing; not given: see the top of this file."""
    run = _started()
    if run is None or not (run.request.every or run.request.capture):
        return value
    if _has_tracer(value):
        return _monitor_traced(run, value, name)
    if _has_symbol(value):
        return sys.modules["reprod_keras"].monitor_graph(run, value, name)
    if not run.probing():
        return value
    run.settle()
    parts = [(_place_name("/".join(filter(None, (name, key)))), part)
             for key, part in flatten(value)]
    wanted = [place for place, _ in parts if run.probing(place)]
    with run.probe_time() if wanted else run.lock:
        reads, leaves = _reads_of(run, name, inputs) if wanted else (NOTHING, ())
        if reads is None:  # the same for all that VALUE contains
            reads, run.chained = run.chain, True
        for place, part in parts:
            if run.probing(place):
                run.record(place, _leaf_at(place, part), reads, leaves)
            _watch_gradient(run, part, _gradient_place(place))
            _remember(run, part)
    return value


def monitor_rng():
    """Records the states of Python's, numpy's and PyTorch's generators as rng/…"""
    run = _started()
    if run is None or not run.probing():
        return
    torch, states = sys.modules.get("torch"), {"python": list(random.getstate()[1])}
    if "numpy" in sys.modules:
        kind, keys, position = sys.modules["numpy"].random.get_state()[:3]
        states["numpy"] = {"keys": keys, "position": position}
    if hasattr(torch, "get_rng_state"):
        states["torch"] = torch.get_rng_state()
        cuda = _torch_cuda()
        if cuda is not None and cuda.is_initialized():
            states["torch-cuda"] = cuda.get_rng_state()
    monitor(states, "rng")


def summarize_variables(variables, moment="before"):
    """Records every variable as variable/NAME/MOMENT ("before" or "after" an update), and
    what an optimizer keeps as optimizer/PARAMETER/KEY.  VARIABLES: a model with state_dict(),
    an optimizer of PyTorch, a dict, or any nesting."""
    run = _started()
    if run is None or not run.probing():
        return
    run.settle()
    optimizer = hasattr(variables, "param_groups")
    if optimizer:
        variables = variables.state_dict().get("state", {})
    elif hasattr(variables, "state_dict"):
        variables = variables.state_dict()
    parts = [(_place_name("optimizer/%s" % key if optimizer
                          else "variable/%s/%s" % (key or "value", moment)), part)
             for key, part in flatten(variables)]
    parts = [(place, part) for place, part in parts if run.probing(place)]
    if not parts:
        return
    with run.probe_time():
        reads = NOTHING if run.step == 0 and not run.chained else None
        for place, part in parts:
            if _is_torch(part):
                for _, _, leaf in _readable(place, part):
                    run.record(place, leaf, reads)
            else:
                run.record(place, _leaf_at(place, part), reads)


def step():
    """The end of a step: what is recorded from here on belongs to the next one."""
    run = _started()
    if run is not None:
        run.next_step()


def finish(weights, loss=None, algorithm=None):
    """The end of an iteration.  WEIGHTS: its results (a model with state_dict(), arrays,
    nested): digested together with LOSS, and summed exactly.  The last one ends the run."""
    run = _started()
    if run is not None:
        run.next_iteration(weights, loss, algorithm)


def unsupported(cause):
    """Ends the run and the process: this variant cannot do this case here, because of CAUSE."""
    _end_early("unsupported", cause)


def infra(cause):
    """Ends the run and the process: the machine is not usable, because of CAUSE."""
    _end_early("infra", cause)


def _end_early(outcome, cause):
    run = _started()
    if run is not None:
        run.end(outcome, str(cause))
        sys.exit(0)
    sys.exit("%s: %s" % (outcome, cause))


def _reads_of(run, name, inputs):
    """(digest or None, leaves) of what place NAME reads."""
    if inputs is None:
        outside = name.split("/")[0] in ("data", "rng")
        return (NOTHING if outside else None), ()
    leaves = [(key or "%s/input" % name, leaf_of(part)) for key, part in flatten(inputs)]
    return _digest_of_places(leaf.digest() for _, leaf in leaves), leaves


# PyTorch: gradients and modules


def _gradient_place(place):
    """LAYER/forward has LAYER/backward, anything else gradient/NAME."""
    parts = place.split("/")
    if "forward" in parts[1:]:
        parts[1 + parts[1:].index("forward")] = "backward"
        return _place_name("/".join(parts))
    return _place_name("gradient/" + place)


def _watch_gradient(run, tensor, place):
    if not _is_torch(tensor) or not tensor.requires_grad:
        return
    known = run.watched.get((id(tensor), place))
    if known is not None and known() is tensor:
        return  # a variable, monitored in every step
    try:
        tensor.register_hook(functools.partial(_record_gradient, run, place))
        if tensor.is_leaf:
            run.watched[id(tensor), place] = weakref.ref(tensor)
    except (RuntimeError, ValueError) as error:  # of a lazy module before its first call
        _say_once("%s: is not recorded: %s" % (place, _cause(error)))


def _record_gradient(run, place, gradient):
    if run.probing(place):
        for key, part in flatten(gradient):
            run.record(_place_name("/".join(filter(None, (place, key)))), leaf_of(part))


def _version(tensor):
    """Changes with every operation in place."""
    try:
        return 0 if tensor.is_inference() else tensor._version
    except ValueError:  # of a lazy module before its first call
        return -1


def _remember(run, value):
    """Notes that this tensor, as it is now, has been recorded."""
    if _is_torch(value):
        run.seen[id(value)] = weakref.ref(value), _version(value)


def _is_remembered(run, value):
    known, version = run.seen.get(id(value), (None, None))
    return known is not None and known() is value and version == _version(value)


@functools.lru_cache(maxsize=None)
def _say_once(text):
    _say(text)


def _readable(name, value):
    """(key, tensor, leaf) of the tensors in VALUE.  A model is not stopped for one that has
    no bytes to read (quantized, nested, of a compiler); it is not silently left out either."""
    for key, part in flatten(value):
        if _is_torch(part):
            try:
                leaf = leaf_of(part)
            except TypeError as error:
                _say_once("%s: a tensor is not recorded: %s" % (name, error))
            else:
                yield key, part, leaf


class _Frame:
    """A call of a module: digests of what it read, and of what was recorded inside it."""

    def __init__(self, owner):
        self.owner, self.reads, self.leaves = owner, [], []


class _ModuleProbe:
    """The hooks of one module.  A copy of the module keeps them; one that is saved and
    loaded has hooks without a run, which do nothing."""

    def __init__(self, run, name):
        self.run, self.name, self.place = run, name, _place_name(name + "/forward")

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _ModuleProbe, (None, self.name)

    def before(self, module, args, kwargs=None):
        run = self.run
        if run is None or not run.probing():
            return
        frames = run.frames.__dict__.setdefault("open", [])
        if not frames:
            run.frames.variables = {}
        frame = _Frame(self)
        if not (run.probing_below(self.place)
                or run.probing_below(_place_name(self.name + "/input"))):
            frames.append(frame)  # what is recorded inside is recorded all the same
            return
        with run.probe_time():
            for key, part, leaf in _readable(self.name, [args, kwargs or {}]):
                if not _is_remembered(run, part):
                    # Made by code between modules: a place of its own, or nobody saw it.
                    place = _place_name("%s/input/%s" % (self.name, key.split("/", 1)[1]))
                    if run.probing(place):
                        run.record(place, leaf)
                    _remember(run, part)
                frame.reads.append(leaf.digest())
                # A module may write into what it reads.
                frame.leaves.append((key, leaf.copy() if run.captures(self.place) else leaf))
            self.read_variables(module, frame)
            frames.append(frame)

    def read_variables(self, module, frame):
        """Each variable once in an outermost call, unless it changes during it."""
        known = self.run.frames.variables
        for tensor in list(module.parameters()) + list(module.buffers()):
            key = id(tensor), _version(tensor)
            if key not in known:
                known[key] = [leaf.digest() for _, _, leaf in _readable(self.name, tensor)]
            frame.reads += known[key]

    def after(self, module, args, *rest):
        run, output = self.run, rest[-1]
        frames = getattr(run.frames, "open", []) if run is not None else []
        if all(frame.owner is not self for frame in frames):
            return  # nobody looked when it was called
        while frames[-1].owner is not self:
            frames.pop()  # left by an exception
        frame = frames.pop()
        if not run.probing_below(self.place):
            for _, part in flatten(output):
                _remember(run, part)
            self.watch_gradients(output)
            return
        with run.probe_time():
            reads = _digest_of_places(frame.reads)
            for key, part, leaf in _readable(self.name, output):
                place = _place_name("/".join(filter(None, (self.place, key))))
                if run.probing(place):
                    run.record(place, leaf, reads, frame.leaves)
                _remember(run, part)
        self.watch_gradients(output)

    def watch_gradients(self, output):
        for key, part in flatten(output):
            if _is_torch(part):
                place = _place_name("/".join(filter(None, (self.place, key))))
                _watch_gradient(self.run, part, _gradient_place(place))


def monitor_model(module, name=""):
    """Hooks into every submodule of a torch.nn.Module and returns MODULE: NAME/forward with
    its inputs and variables as what it reads, NAME/backward, and gradient/VARIABLE of every
    parameter.  NAME/input is what reaches a module from code outside modules."""
    run = _started()
    if run is None or not (run.request.every or run.request.capture):
        return module
    for path, part in module.named_modules():
        probe = _ModuleProbe(run, ".".join(filter(None, (name, path))) or "model")
        try:
            part.register_forward_pre_hook(probe.before, with_kwargs=True)
            part.register_forward_hook(probe.after, with_kwargs=True)
        except TypeError:  # before PyTorch 2.0
            part.register_forward_pre_hook(probe.before)
            part.register_forward_hook(probe.after)
    for path, parameter in module.named_parameters():
        _watch_gradient(run, parameter,
                        _place_name("gradient/" + ".".join(filter(None, (name, path)))))
    return module


# JAX: inside compiled functions


def _has_tracer(value):
    jax = sys.modules.get("jax")
    return hasattr(jax, "core") and any(isinstance(part, jax.core.Tracer)
                                        for _, part in flatten(value))


def _has_symbol(value):
    """Of TensorFlow's graphs, where the program looks into them at all."""
    keras = sys.modules.get("reprod_keras")
    return keras is not None and "tensorflow" in sys.modules and keras.in_graph(value)


def _record_traced(run, place, value):
    if run.probing(place):
        run.record(place, leaf_of(value))


def _monitor_traced(run, value, name):
    """VALUE with probes in it: each is recorded when the compiled program runs, and so is
    its gradient where one is computed."""
    jax = sys.modules["jax"]
    run.traced = True

    def tap(part, place):
        jax.debug.callback(functools.partial(_record_traced, run, place), part, ordered=True)
        return part

    def probe(part, place):
        tapped = jax.custom_vjp(lambda x: tap(x, place))
        tapped.defvjp(lambda x: (tap(x, place), None),
                      lambda _, gradient: (tap(gradient, _gradient_place(place)),))
        return tapped(part)

    def key_of(entry):
        return str(getattr(entry, "key", getattr(entry, "idx", getattr(entry, "name", entry))))

    leaves, tree = jax.tree_util.tree_flatten_with_path(value)
    return tree.unflatten([probe(leaf, _place_name("/".join([name] + [key_of(e) for e in path])))
                           for path, leaf in leaves])
