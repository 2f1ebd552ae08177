"""The digests and sums of workloads/python/reprod_probe.py are those of the C instruments."""
import array
import ctypes
import itertools
import os
import pathlib
import random
import struct
import subprocess
import sys

import pytest

from test_instruments import FORMATS, Digest, Values, adversarial, expected_bits

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", ROOT / "build")).resolve()
LIBRARY = BUILD / "libreprod-digest.so"
sys.path.insert(0, str(ROOT / "workloads" / "python"))
import reprod_probe  # noqa: E402

OURS = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"]
SHAPES = [(), (0,), (1,), (3, 5), (0, 4), (1, 1, 1), (7, 293), (1025,), (2, 3, 2048)]


@pytest.fixture(params=["python", "numpy", "library"])
def engine(request, monkeypatch):
    if request.param == "numpy":
        pytest.importorskip("numpy", reason="numpy is not installed: its path is not tested")
    monkeypatch.setenv("REPROD_DIGEST_LIBRARY", str(LIBRARY))
    chosen = reprod_probe.choose_engine(request.param)
    assert chosen.name == request.param
    monkeypatch.setattr(reprod_probe, "_engine", lambda: chosen)
    return chosen


@pytest.fixture(scope="module")
def instruments():
    lib = ctypes.CDLL(str(BUILD / "libreprod-instruments.so"))
    lib.digest_tensor.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int,
                                  ctypes.POINTER(ctypes.c_int64), ctypes.c_int]
    lib.digest_tensor.restype = Digest
    lib.digest_bytes.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    lib.digest_bytes.restype = Digest
    lib.digest_combine.argtypes = [ctypes.POINTER(Digest), ctypes.c_int]
    lib.digest_combine.restype = Digest
    return lib


def text_of(digest):
    return f"{digest.hi:016x}{digest.lo:016x}"


def leaf(dtype, shape, data):
    return reprod_probe._leaf_of_bytes(dtype, shape, data)


@pytest.mark.parametrize("dtype", OURS)
def test_digests_are_those_of_c(engine, instruments, dtype):
    """Random bytes: among them are -0, infinities and NaNs with payloads."""
    rng = random.Random(dtype)
    code, size = reprod_probe.DTYPES[dtype]
    for shape in SHAPES:
        elements = 1
        for extent in shape:
            elements *= extent
        data = bytes(rng.getrandbits(8) for _ in range(elements * size))
        extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        expected = instruments.digest_tensor(data, code, size, len(shape), extents, 1)
        assert leaf(dtype, shape, data).digest() == text_of(expected), (dtype, shape)


def test_text_and_lists_are_those_of_c(engine, instruments):
    for data in (b"", b"a", b"x" * 8192, "\N{SNOWMAN}".encode() * 5000):
        expected = text_of(instruments.digest_bytes(data, len(data)))
        assert reprod_probe.digest(data) == reprod_probe.digest(data.decode()) == expected
    parts = [reprod_probe.digest(text) for text in "abc"]
    for count in range(4):
        c_parts = (Digest * 3)(*(Digest(int(p[:16], 16), int(p[16:], 16)) for p in parts))
        assert reprod_probe.combine(parts[:count]) == text_of(
            instruments.digest_combine(c_parts, count))


def test_every_bit_counts(engine):
    """Signed zeros, NaN payloads, dtype and shape."""
    patterns = [0, 1 << 31, 0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800001, 0x7F800000, 1]
    seen = {leaf("float32", (1,), struct.pack("=I", p)).digest() for p in patterns}
    four = struct.pack("=I", 1)
    seen |= {leaf("int32", (1,), four).digest(), leaf("float32", (), four).digest(),
             leaf("float32", (1, 1), four).digest(), leaf("uint32", (1,), four).digest(),
             leaf("uint8", (4,), four).digest(), leaf("bytes", (4,), four).digest()}
    assert len(seen) == len(patterns) + 6


def test_a_large_array(engine, instruments):
    """Beyond what the engines take at once; few blocks for the slow one."""
    blocks = 40 if engine.name == "python" else 1200
    data = random.Random(1).getrandbits(8 * 8192 * blocks + 24).to_bytes(8192 * blocks + 3, "little")
    extents = (ctypes.c_int64 * 1)(len(data))
    expected = instruments.digest_tensor(data, 6, 1, 1, extents, 2)
    assert leaf("uint8", (len(data),), data).digest() == text_of(expected)


@pytest.mark.parametrize("name", FORMATS)
def test_exact_sums_equal_fractions(engine, name):
    values, rng = Values(name), random.Random(f"python sums {name}")
    results = set()
    for patterns in itertools.islice(adversarial(values, rng), 400):
        data = values.pack(patterns)
        total = engine.new_sum()
        cut = rng.randint(0, len(patterns)) * len(data) // max(len(patterns), 1)
        for piece in (data[:cut], data[cut:]):
            size = reprod_probe.DTYPES[name][1]
            leaf(name, (len(piece) // size,), piece).add_to(total)
        expected = expected_bits(values, patterns)
        assert total.bits() == expected, [hex(p) for p in patterns]
        results.add(expected)
    assert len(results) > 200


def bits_of(value):
    return struct.pack(">d", float(value)).hex()


def test_sums_of_integers_and_others(engine):
    rng = random.Random(3)
    for code, low, high in [("b", -128, 127), ("B", 0, 255), ("h", -2**15, 2**15 - 1),
                            ("H", 0, 2**16 - 1), ("i", -2**31, 2**31 - 1), ("I", 0, 2**32 - 1),
                            ("q", -2**63, 2**63 - 1), ("Q", 0, 2**64 - 1)]:
        values = [rng.randint(low, high) for _ in range(300)] + [low, high, high]
        assert reprod_probe.exact_sum(array.array(code, values)) == bits_of(sum(values)), code
    assert reprod_probe.exact_sum([True, False, True]) == bits_of(2)
    assert reprod_probe.exact_sum(1 + 2j) == bits_of(3)
    assert reprod_probe.exact_sum(-0.0) == bits_of(-0.0)
    assert reprod_probe.exact_sum([[1e300, 1.0], {"a": -1e300}]) == bits_of(1)
    assert reprod_probe.exact_sum(()) == bits_of(0)
    with pytest.raises(TypeError, match="cannot sum values of dtype bytes"):
        reprod_probe.exact_sum({"a": "text"})


# Values


def test_buffers_are_read_as_they_are(engine):
    data = array.array("f", [1, 2, 3, 4, 5, 6])
    flat = reprod_probe.digest(data)
    assert flat == leaf("float32", (6,), data.tobytes()).digest()
    view = memoryview(bytearray(data.tobytes())).cast("B").cast("f", (2, 3))
    assert reprod_probe.digest(view) == leaf("float32", (2, 3), data.tobytes()).digest()
    assert reprod_probe.digest(view.toreadonly()) == reprod_probe.digest(view)
    every_other = memoryview(data)[::2]
    assert reprod_probe.digest(every_other) == reprod_probe.digest(array.array("f", [1, 3, 5]))
    number = (ctypes.c_int32 * 2)(7, -7)
    assert reprod_probe.digest(number) == reprod_probe.digest(array.array("i", [7, -7]))
    assert reprod_probe.digest(3) == leaf("int64", (), struct.pack("=q", 3)).digest()
    assert reprod_probe.digest(True) != reprod_probe.digest(1) != reprod_probe.digest(1.0)
    assert reprod_probe.digest(1 << 80) == reprod_probe.digest(str(1 << 80))
    big_endian = (ctypes.c_float.__ctype_be__ * 2)(1, 2)
    for unreadable in (object(), big_endian, {1, 2}):
        with pytest.raises(TypeError, match="reprod_probe cannot read"):
            reprod_probe.digest(unreadable)


def test_files_are_bytes(engine, tmp_path):
    file = tmp_path / "data"
    for data in (b"", b"some text" * 5000):
        file.write_bytes(data)
        assert reprod_probe.digest(file) == reprod_probe.digest(data)


def test_containers_are_opened():
    import collections
    import dataclasses
    Point = collections.namedtuple("Point", "x y")

    @dataclasses.dataclass
    class Output:
        loss: float
        logits: list

    nested = {"a": [1.5, {"b": Point(1, "text")}], 7: None, "c": Output(0.5, [1, 2, 3]), "d": (),
              "e": ["x", "y"]}
    found = dict(reprod_probe.flatten(nested, "top"))
    assert list(found) == ["top/a/0", "top/a/1/b/x", "top/a/1/b/y", "top/c/loss", "top/c/logits",
                           "top/e"]
    assert found["top/c/logits"] == array.array("q", [1, 2, 3])
    assert reprod_probe.digest([[1, 2], [3, 4]]) == reprod_probe.combine(
        [reprod_probe.digest(array.array("q", pair)) for pair in ([1, 2], [3, 4])])


def test_numpy_arrays(engine, instruments):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed: its path is not tested")
    values = numpy.arange(24, dtype="f4").reshape(2, 3, 4)
    expected = leaf("float32", (2, 3, 4), values.tobytes()).digest()
    for same in (values, numpy.asfortranarray(values), values.astype(">f4"),
                 values.transpose(2, 0, 1).copy().transpose(1, 2, 0)):
        assert reprod_probe.digest(same) == expected
    assert reprod_probe.digest(numpy.float32(1.5)) == leaf(
        "float32", (), struct.pack("=f", 1.5)).digest()
    assert reprod_probe.digest(numpy.array([True])) == leaf("bool", (1,), b"\1").digest()
    for unreadable in (numpy.array([object()]), numpy.zeros(2, "U3"), numpy.zeros(2, "i4,f4")):
        with pytest.raises(TypeError, match="cannot read arrays of dtype"):
            reprod_probe.digest(unreadable)


# Which engine


def choose(env, code="import reprod_probe; print(reprod_probe.choose_engine().name)"):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "workloads" / "python"), **env})
    return done.stdout.strip(), done.stderr


def test_a_wrong_library_is_not_used(tmp_path):
    """A file that is none, a library of something else, and one that computes otherwise."""
    other = tmp_path / "other.c"
    other.write_text("""
        struct pair { unsigned long a, b; };
        struct pair digest_blocks(void *d, unsigned long n) { return (struct pair){ 1, n }; }
        void exact_sum_init(void *s) { }
        void exact_sum_add(void *s) { }
        double exact_sum_round(void *s) { return 0; }""")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", tmp_path / "other.so", other], check=True)
    (tmp_path / "text.so").write_text("no library")
    for path, cause in [(tmp_path / "other.so", "is of another version"),
                        (tmp_path / "text.so", "cannot be used"), ("libm.so.6", "cannot be used"),
                        (tmp_path / "missing.so", "cannot be used")]:
        name, log = choose({"REPROD_DIGEST_LIBRARY": str(path)})
        assert name in ("numpy", "python") and cause in log, (path, name, log)


def test_the_engine_can_be_named():
    assert choose({"REPROD_DIGEST": "python"})[0] == "python"
    assert choose({"REPROD_DIGEST_LIBRARY": str(LIBRARY)})[0] == "library"
    assert "REPROD_DIGEST is 'fast', not library" in choose({"REPROD_DIGEST": "fast"})[1]


def test_it_is_python_3_8():
    import ast
    for file in sorted((ROOT / "workloads" / "python").rglob("*.py")):
        ast.parse(file.read_text(), feature_version=(3, 8))
