"""The instruments against independent arithmetic, and against themselves when built in
other ways."""

import ctypes
import itertools
import os
import pathlib
import random
import shutil
import struct
import subprocess
from fractions import Fraction

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", ROOT / "build")).resolve()
MASK = (1 << 64) - 1
CANONICAL_NAN = 0x7FF8000000000000

# name: (enum dtype of workloads/workload.h, struct code, exponent bits, fraction bits)
FORMATS = {
    "float32": (0, "I", 8, 23),
    "float64": (1, "Q", 11, 52),
    "float16": (2, "H", 5, 10),
    "bfloat16": (3, "H", 8, 7),
}


class Digest(ctypes.Structure):
    _fields_ = [("hi", ctypes.c_uint64), ("lo", ctypes.c_uint64)]


class ExactSum(ctypes.Structure):
    _fields_ = [("limbs", ctypes.c_int64 * 68), ("flags", ctypes.c_bool * 5)]


@pytest.fixture(scope="module")
def library():
    lib = ctypes.CDLL(str(BUILD / "libreprod-instruments.so"))
    pointer, i64 = ctypes.POINTER(ExactSum), ctypes.c_int64
    lib.exact_sum_init.argtypes = [pointer]
    lib.exact_sum_add.argtypes = [pointer, ctypes.c_int, ctypes.c_char_p, i64]
    lib.exact_sum_merge.argtypes = [pointer, pointer]
    lib.exact_sum_round.argtypes = [pointer]
    lib.exact_sum_round.restype = ctypes.c_double
    lib.digest_tensor.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t,
                                  ctypes.c_int, ctypes.POINTER(i64), ctypes.c_int]
    lib.digest_tensor.restype = Digest
    return lib


# Exact sums


class Values:
    """Bit patterns of one format, and what they are worth."""

    def __init__(self, name):
        self.name = name
        self.dtype, self.code, self.exponent_bits, self.fraction_bits = FORMATS[name]
        self.sign = 1 << (self.exponent_bits + self.fraction_bits)
        self.infinity = self.sign - (1 << self.fraction_bits)

    def pack(self, patterns):
        return struct.pack(f"={len(patterns)}{self.code}", *patterns)

    def worth(self, pattern):
        """A finite pattern as a Fraction."""
        exponent = (pattern & ~self.sign) >> self.fraction_bits
        fraction = pattern & ((1 << self.fraction_bits) - 1)
        if exponent:
            fraction += 1 << self.fraction_bits
        bias = (1 << (self.exponent_bits - 1)) - 1
        power = max(exponent, 1) - bias - self.fraction_bits
        value = Fraction(fraction) * Fraction(2) ** power
        return -value if pattern & self.sign else value

    def finite(self, rng, low=0, high=None):
        """A random finite pattern with exponent field in low .. high."""
        high = (1 << self.exponent_bits) - 2 if high is None else high
        magnitude = rng.randint(low, high) << self.fraction_bits
        magnitude |= rng.getrandbits(self.fraction_bits)
        return magnitude | (self.sign if rng.random() < 0.5 else 0)


def round_fraction(value):
    """The nearest binary64, ties to even, with overflow; as bits."""
    sign = 1 << 63 if value < 0 else 0
    value = abs(value)
    if value >= Fraction(2) ** 1024 - Fraction(2) ** 970:
        return sign | 0x7FF0000000000000
    # The quotient of two integers rounds correctly, also into subnormals.
    return sign | struct.unpack("<Q", struct.pack("<d", value.numerator / value.denominator))[0]


def expected_bits(values, patterns):
    magnitudes = [p & ~values.sign for p in patterns]
    infinities = {p for p in patterns if p & ~values.sign == values.infinity}
    if any(m > values.infinity for m in magnitudes) or len(infinities) == 2:
        return CANONICAL_NAN
    if infinities:
        return 0xFFF0000000000000 if infinities.pop() & values.sign else 0x7FF0000000000000
    total = sum((values.worth(p) for p in patterns), Fraction(0))
    if total == 0:
        return 1 << 63 if patterns and all(p == values.sign for p in patterns) else 0
    return round_fraction(total)


def sum_bits(library, values, patterns, cuts=()):
    """Adds the pieces between CUTS, every other one through an accumulator of its own."""
    total = ExactSum()
    library.exact_sum_init(ctypes.byref(total))
    bounds = [0, *cuts, len(patterns)]
    for i, (start, end) in enumerate(zip(bounds, bounds[1:])):
        data = values.pack(patterns[start:end])
        target = ExactSum() if i % 2 else total
        if i % 2:
            library.exact_sum_init(ctypes.byref(target))
        library.exact_sum_add(ctypes.byref(target), values.dtype, data, end - start)
        if i % 2:
            library.exact_sum_merge(ctypes.byref(total), ctypes.byref(target))
    return struct.unpack("<Q", struct.pack("<d", library.exact_sum_round(ctypes.byref(total))))[0]


def adversarial(values, rng):
    """An endless stream of arrays of bit patterns, one of each kind after another."""
    top = (1 << values.exponent_bits) - 2
    largest = values.infinity - 1
    middle = top // 2
    window = min(4, middle)

    def many(low=0, high=top, longest=40):
        return [values.finite(rng, low, high) for _ in range(rng.randint(1, longest))]

    def cancelling():
        some = many()
        return some + [p ^ values.sign for p in some] + many(0, rng.randint(0, top), 3)

    def tie():
        """A value, half a unit of its sum in binary64, and perhaps a speck."""
        exponent = rng.randint(min(60, middle), top)
        base = exponent << values.fraction_bits
        half = max(exponent - 53, 0) << values.fraction_bits
        patterns = [base, base + 1, half | rng.choice([0, values.sign])]
        if rng.random() < 0.7:
            patterns.append(rng.choice([1, values.sign | 1, 2, values.sign | 3]))
        return patterns

    def beyond_and_back():
        times = rng.randint(1, 6)
        back = values.sign | largest
        return [largest] * times + [back] * (times - rng.randint(0, 1)) + many(0, top, 4)

    def edge_of_range():
        half_unit = (top - 53 if top > 53 else 0) << values.fraction_bits
        speck = rng.choice([[], [1], [values.sign | 1]])
        patterns = [largest, half_unit] + speck
        return [p ^ values.sign for p in patterns] if rng.random() < 0.5 else patterns

    def zeros():
        mix = [[values.sign], [0], [0, values.sign]][rng.randint(0, 2)]
        return [rng.choice(mix) for _ in range(rng.randint(0, 9))]

    def zeros_in_subnormals():
        some = [values.finite(rng, 0, 0) for _ in range(rng.randint(1, 5))]
        return some + [p ^ values.sign for p in some] + [values.sign]

    def infinities():
        signs = rng.choice([[0], [values.sign], [0, values.sign]])
        return many() + [values.infinity | rng.choice(signs) for _ in range(rng.randint(1, 3))]

    def nans():
        payload = [rng.randint(1, (1 << values.fraction_bits) - 1)
                   for _ in range(rng.randint(1, 4))]
        quiet = values.infinity | 1 << (values.fraction_bits - 1)
        some = [values.infinity | p for p in payload] + [quiet] * rng.randint(0, 3)
        return zeros() + [p | rng.choice([0, values.sign]) for p in some] + infinities()[-1:]

    kinds = [many, lambda: many(0, 0), lambda: many(0, 2), lambda: many(top - 1, top),
             lambda: many(middle - window, middle + window, 200), cancelling, tie,
             beyond_and_back, edge_of_range, zeros, zeros_in_subnormals, infinities, nans]
    for kind in itertools.cycle(kinds):
        patterns = kind()
        rng.shuffle(patterns)
        yield patterns


@pytest.mark.parametrize("name", FORMATS)
def test_exact_sums_equal_fractions(library, name):
    values, rng = Values(name), random.Random(f"exact sums {name}")
    results = set()
    for patterns in itertools.islice(adversarial(values, rng), 3000):
        expected = expected_bits(values, patterns)
        cuts = sorted(rng.randint(0, len(patterns)) for _ in range(rng.randint(0, 5)))
        for attempt in (cuts, ()):
            got = sum_bits(library, values, patterns, attempt)
            assert got == expected, (
                f"{got:016x} instead of {expected:016x} for "
                f"{[hex(p) for p in patterns]} cut at {attempt}")
        results.add(expected)
    specials = {0, 1 << 63, CANONICAL_NAN, 0x7FF0000000000000, 0xFFF0000000000000}
    assert specials < results and len(results) > 1000


def test_rounding_of_the_oracle():
    """What the test above compares with is itself right where it matters."""
    tiny = Fraction(2) ** -1074
    assert round_fraction(tiny / 2) == 0
    assert round_fraction(tiny * Fraction(3, 2)) == 2
    assert round_fraction(-tiny) == 1 << 63 | 1
    assert round_fraction(Fraction(1) + Fraction(2) ** -53) == 0x3FF0000000000000
    assert round_fraction(Fraction(1) + Fraction(2) ** -53 + tiny) == 0x3FF0000000000001
    assert round_fraction(Fraction(2) ** 1024 - Fraction(2) ** 970 - tiny) == 0x7FEFFFFFFFFFFFFF


def test_plain_float_sums_would_fail():
    """The arrays are adversarial: adding in float64 gets many of them wrong."""
    values, rng = Values("float64"), random.Random("exact sums float64")
    wrong = 0
    for patterns in itertools.islice(adversarial(values, rng), 300):
        expected = expected_bits(values, patterns)
        total = 0.0
        for value in struct.unpack(f"<{len(patterns)}d", values.pack(patterns)):
            total += value
        if expected != CANONICAL_NAN:
            wrong += struct.unpack("<Q", struct.pack("<d", total))[0] != expected
    assert wrong > 30


# Digests


def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def reference_digest(data, dtype, shape):
    """The definition in digest_block.h and digest.c, in Python's integers."""
    k0, k1 = 0x9E3779B97F4A7C15, 0x6A09E667F3BCC909
    c0, c1 = 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B
    low32 = (1 << 32) - 1

    def product(word, key):
        return ((word + key) & low32) * (((word >> 32) + (key >> 32)) & low32)

    hi = lo = 0
    for block, start in enumerate(range(0, len(data), 8192)):
        words = struct.unpack("<1024Q", data[start:start + 8192].ljust(8192, b"\0"))
        a = sum(product(w, mix64(j * k0 + c0 & MASK)) for j, w in enumerate(words)) & MASK
        b = sum(product(w, mix64(j * k1 + c1 & MASK)) for j, w in enumerate(words)) & MASK
        p = mix64(a ^ (block * k0 + c1 & MASK))
        q = mix64(b ^ (block * k1 + c0 & MASK))
        hi = hi + mix64(p + 0x9DDFEA08EB382D69 * q & MASK) & MASK
        lo = lo + mix64(q ^ (p << 32 & MASK | p >> 32)) & MASK
    for word in (len(data), dtype & MASK, len(shape), *shape):
        hi = mix64(hi ^ (word * k0 + c0 & MASK)) + lo & MASK
        lo = mix64(lo + (word ^ c1) * k1 & MASK) ^ hi
    return hi, lo


@pytest.mark.parametrize("size", [0, 1, 8, 8191, 8192, 8193, 40001])
def test_digest_is_its_definition(library, size):
    data = random.Random(size).randbytes(size)
    shape = (ctypes.c_int64 * 2)(size, 1)
    for data in (data, bytes(size)):
        got = library.digest_tensor(data, 6, 1, 2, shape, 2)
        assert (got.hi, got.lo) == reference_digest(data, 6, [size, 1])


# Other builds

SOURCES = ["tests/fixtures/instruments_streams.c", "workloads/instruments/digest.c",
           *sorted(str(p.relative_to(ROOT))
                   for p in (ROOT / "workloads/instruments").glob("exact_sum*.c"))]


@pytest.mark.long
def test_other_builds_give_the_same_bits(tmp_path):
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    outputs = {}
    for compiler, level in itertools.product(compilers, ("-O0", "-O2")):
        program = tmp_path / f"{compiler}{level}"
        subprocess.run([compiler, level, "-std=c17", "-D_GNU_SOURCE", "-I.",
                        "-ffp-contract=off", "-o", program, *SOURCES], cwd=ROOT, check=True)
        outputs[compiler, level] = subprocess.run(
            [program], check=True, capture_output=True, text=True).stdout
    first = next(iter(outputs.values()))
    assert len(first.splitlines()) == 32
    for line in first.splitlines():
        name, chosen, plain, _ = line.split()
        assert chosen == plain, f"{name}: AVX2 and plain C differ"
    for build, output in outputs.items():
        assert output == first, f"{build} differs"
    if len(compilers) < 2:
        pytest.skip("only one of gcc and clang is installed; it agrees with itself")


def test_headers_compile_for_cuda(tmp_path):
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("nvcc is not on PATH")
    subprocess.run([nvcc, "-std=c++17", "-I.", "-Werror", "all-warnings", "-c",
                    "-o", tmp_path / "instruments.o", "tests/gpu/instruments_compile.cu"],
                   cwd=ROOT, check=True)
