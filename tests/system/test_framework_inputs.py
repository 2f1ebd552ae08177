"""The inputs of frameworks are those of the C instruments, with numpy and without it."""
import ctypes
import importlib.util
import subprocess
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "workloads" / "frameworks"))
import philox  # noqa: E402

SOURCE = """
#include "workloads/instruments/philox.h"
#define EACH(name, type, value)                                                                  \\
    void name(uint64_t seed, const char *w, const char *t, uint64_t n, uint64_t limit, type *to) \\
    {                                                                                            \\
        uint64_t stream = philox_stream(seed, w, t);                                             \\
        (void)limit;                                                                             \\
        for (uint64_t i = 0; i < n; i++) {                                                       \\
            to[i] = value;                                                                       \\
        }                                                                                        \\
    }
EACH(uniform32, float, philox_uniform_f32(seed, stream, i))
EACH(uniform64, double, philox_uniform_f64(seed, stream, i))
EACH(wide32, float, philox_wide_f32(seed, stream, i))
EACH(wide64, double, philox_wide_f64(seed, stream, i))
EACH(index_of, int64_t, (int64_t)philox_index(seed, stream, i, limit))
"""
SEEDS = [0, 1, 2**31 - 1, 2**32 + 5, 2**64 - 1]
COUNTS = [0, 1, 2, 3, 5, 262144 // 256 + 3]
SIZES = {"uniform32": 4, "wide32": 4, "uniform64": 8, "wide64": 8, "index": 8}


@pytest.fixture(scope="module")
def instruments(tmp_path_factory):
    folder = tmp_path_factory.mktemp("philox")
    (folder / "all.c").write_text(SOURCE)
    subprocess.run(["cc", "-std=c17", "-O1", "-shared", "-fPIC", "-I", str(ROOT), "-o",
                    str(folder / "all.so"), str(folder / "all.c")], check=True)
    return ctypes.CDLL(str(folder / "all.so"))


@pytest.fixture(params=["plain", "numpy"])
def numpy(request):
    if request.param == "plain":
        return None
    return pytest.importorskip("numpy", reason="numpy is not installed: make check-frameworks tests"
                                               " its path with real versions")


def of_c(instruments, kind, seed, count, limit):
    to = (ctypes.c_char * (count * SIZES[kind]))()
    function = getattr(instruments, "index_of" if kind == "index" else kind)
    function.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64,
                         ctypes.c_uint64, ctypes.c_void_p]
    function(seed, b"tiny_total", b"values", count, limit, to)
    return bytes(to)


@pytest.mark.parametrize("kind", SIZES)
def test_every_kind_is_that_of_c(instruments, numpy, kind):
    for seed in SEEDS:
        made = philox.Philox(seed, "tiny_total", numpy)
        for count in COUNTS:
            for limit in [1, 7, 2**40 + 3] if kind == "index" else [0]:
                arguments = ("values", count) + ((limit,) if kind == "index" else ())
                values = getattr(made, kind)(*arguments)
                assert values.tobytes() == of_c(instruments, kind, seed, count, limit), (seed, count, limit)


def test_numpy_goes_on_where_its_block_ends(instruments, numpy, monkeypatch):
    monkeypatch.setattr(philox, "AT_ONCE", 5)
    values = philox.Philox(3, "tiny_total", numpy).wide32("values", 103)
    assert values.tobytes() == of_c(instruments, "wide32", 3, 103, 0)


def test_each_tensor_has_a_stream_of_its_own():
    made = philox.Philox(1, "tiny_total")
    first = made.wide32("values", 8)
    assert first == made.wide32("values", 8)
    assert first != made.wide32("other", 8)
    assert first != philox.Philox(2, "tiny_total").wide32("values", 8)
    assert first != philox.Philox(1, "tiny_tota").wide32("lvalues", 8)


def test_a_model_of_one_node_is_what_the_package_onnx_would_write():
    """Its bytes, field by field, without that package."""
    spec = importlib.util.spec_from_file_location(
        "onnx_model", ROOT / "workloads" / "frameworks" / "onnx_model.py")
    onnx_model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(onnx_model)
    data = onnx_model.model("Softmax", [("x", onnx_model.FLOAT, (2, 300))], attributes={"axis": -1})

    def fields(data):
        at, found = 0, []
        while at < len(data):
            key, at = number(data, at)
            if key & 7 == 0:
                value, at = number(data, at)
            else:
                size, at = number(data, at)
                value, at = data[at:at + size], at + size
            found.append((key >> 3, value))
        return found

    def number(data, at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if not data[at - 1] & 128:
                return value, at

    (ir, version), (_, opset), (_, graph) = fields(data)
    assert (ir, version) == (1, 8) and fields(opset) == [(2, 17)]
    node, name, given, result = fields(graph)
    assert [field for field, _ in fields(graph)] == [1, 2, 11, 12] and name == (2, b"graph")
    assert fields(node[1])[:4] == [(1, b"x"), (2, b"y0"), (3, b"node"), (4, b"Softmax")]
    [(_, axis)] = fields(node[1])[4:]
    assert fields(axis) == [(1, b"axis"), (3, 2**64 - 1), (20, 2)]
    [_, (_, kind)] = fields(given[1])
    [(_, tensor)] = fields(kind)
    [(_, dtype), (_, shape)] = fields(tensor)
    assert dtype == 1 and [fields(dim) for _, dim in fields(shape)] == [[(1, 2)], [(1, 300)]]
    assert fields(result[1])[0] == (1, b"y0")
