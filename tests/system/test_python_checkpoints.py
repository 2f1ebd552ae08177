"""workloads/python/reprod_checkpoints.py: checkpoints compared, and what is refused."""
import json
import pickle
import struct
import subprocess
import sys
import zipfile

import pytest

from service import ROOT

PYTHON = ROOT / "workloads" / "python"
sys.path.insert(0, str(PYTHON))
import reprod_checkpoints as checkpoints  # noqa: E402


@pytest.fixture(params=["python", "numpy"])
def numpy(request):
    if request.param == "python":
        return None
    return pytest.importorskip("numpy", reason="numpy is not installed: its path is not tested")


def safetensors(path, tensors, header=None, data=None, length=None):
    """TENSORS: {name: (dtype, shape, bytes)}; the rest replaces what would be right"""
    entries, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, content) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(content)]}
        at += len(content)
    text = (json.dumps(entries) if header is None else header).encode()
    body = b"".join(t[2] for t in tensors.values()) if data is None else data
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + body)
    return str(path)


def npy(descr, shape, data, order=False, version=1):
    header = repr({"descr": descr, "fortran_order": order, "shape": tuple(shape)}).encode() + b"\n"
    width = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(width, len(header)) + header + data


def npz(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return str(path)


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


def compare(a, b, numpy=None):
    report = checkpoints.compare(a, b, numpy)
    json.dumps(report)
    return report


def cause_of(path, good):
    """Why PATH is refused; on either side."""
    for pair in ((path, good), (good, path)):
        report = compare(*pair)
        assert report["verdict"] == "not_comparable" and report["tensors"] == {}
    assert report["cause"].startswith(path + ": ")
    return report["cause"][len(path) + 2:]


@pytest.fixture
def good(tmp_path):
    return safetensors(tmp_path / "good.safetensors", {"w": ("F32", [2], floats(1, 2))})


# What is compared


def test_tensors_one_by_one(tmp_path, numpy):
    a = safetensors(tmp_path / "a.safetensors", {
        "same": ("F32", [2, 2], floats(1, 2, 3, 4)), "other": ("F32", [4], floats(1, -1, 0, 5)),
        "dtype": ("F32", [1], floats(1)), "shape": ("F32", [2], floats(1, 2)),
        "gone": ("I64", [], struct.pack("<q", 7)), "empty": ("F16", [0, 3], b"")})
    b = safetensors(tmp_path / "b.safetensors", {
        "empty": ("F16", [0, 3], b""), "same": ("F32", [2, 2], floats(1, 2, 3, 4)),
        "other": ("F32", [4], floats(1, -1.0000001, -0.0, 5)),
        "dtype": ("I32", [1], floats(1)), "shape": ("F32", [2, 1], floats(1, 2)),
        "new": ("U8", [1], b"\0")})
    report = compare(a, b, numpy)
    assert report["verdict"] == "different"
    assert {name: entry["state"] for name, entry in report["tensors"].items()} == {
        "same": "equal", "other": "different", "dtype": "dtype", "shape": "shape",
        "gone": "only_in_a", "empty": "equal", "new": "only_in_b"}
    assert report["tensors"]["other"] == {
        "state": "different", "tensor": "float32[4]", "elements_differing": 2, "elements": 4,
        "first": [1], "last": [2], "bits_differing": "80000001", "max_ulp": 1, "nan": 0}
    assert compare(a, a, numpy)["verdict"] == "equal"


VALUES = {  # dtype: (struct code, values in a, in b, what the signature must say)
    "F64": ("d", [1.0, 2.0], [1.0, 2.0000000000000004], {"max_ulp": 1, "nan": 0}),
    "F16": ("e", [1.0, -1.0], [1.0, 1.0], {"max_ulp": 2 * 0x3C00}),
    "BF16": ("H", [0x7F80, 0x3F80], [0x7FC1, 0x3F81], {"max_ulp": 1, "nan": 1}),
    "I64": ("q", [-(1 << 63), 5], [(1 << 63) - 1, 5], {"max_difference": (1 << 64) - 1}),
    "I8": ("b", [-1, 5], [1, 5], {"max_difference": 2, "bits_differing": "fe"}),
    "U32": ("I", [0, 5], [(1 << 32) - 1, 5], {"max_difference": (1 << 32) - 1}),
    "BOOL": ("?", [True, False], [True, True], {"max_difference": 1}),
    "C64": ("f", [1, 2, 3, 4], [1, 2.0000002, -3, 4],
            {"elements_differing": 2, "max_ulp": 2 * 0x40400000}),
    "F8_E4M3": ("B", [0x7F, 0x38], [0x38, 0x3A], {"max_ulp": 2, "nan": 1}),
}


@pytest.mark.parametrize("dtype", VALUES)
def test_signatures(tmp_path, numpy, dtype):
    code, x, y, wanted = VALUES[dtype]
    pair = []
    for name, values in (("a", x), ("b", y)):
        data = struct.pack("<%d%s" % (len(values), code), *values)
        shape = [len(values) // (2 if dtype == "C64" else 1)]
        pair.append(safetensors(tmp_path / name, {"t": (dtype, shape, data)}))
    entry = compare(*pair, numpy)["tensors"]["t"]
    assert {key: entry[key] for key in wanted} == wanted
    assert compare(*reversed(pair), numpy)["tensors"]["t"]["elements_differing"] == \
        entry["elements_differing"]


def test_large_tensors(tmp_path, numpy):
    """Over several chunks, in both formats: first and last, by place."""
    data = bytearray(3 << 20)
    a = npz(tmp_path / "a.npz", {"w.npy": npy("<f4", (768, 1024), bytes(data))})
    for index in (5, 300_000, 700_000):
        struct.pack_into("<I", data, 4 * index, index)
    b = safetensors(tmp_path / "b", {"w": ("F32", [768, 1024], bytes(data))})
    entry = compare(a, b, numpy)["tensors"]["w"]
    assert entry["elements_differing"] == 3 and entry["max_ulp"] == 700_000
    assert entry["first"] == [0, 5] and entry["last"] == [683, 608]


def test_formats_and_orders_of_bytes_do_not_matter(tmp_path, numpy):
    little = floats(*range(6))
    a = safetensors(tmp_path / "a", {"w": ("F32", [2, 3], little)})
    for name, member in {
            "big": npy(">f4", (2, 3), struct.pack(">6f", *range(6))),
            "columns": npy("<f4", (2, 3), floats(0, 3, 1, 4, 2, 5), True),
            "version2": npy("<f4", (2, 3), little, version=2)}.items():
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            b = npz(tmp_path / name, {"w.npy": member}, compression)
            assert compare(a, b, numpy)["verdict"] == "equal", name
    other = npz(tmp_path / "other", {"w.npy": npy("<f4", (2, 3), floats(0, 3, 1, 4, 9, 5), True)})
    assert compare(a, other, numpy)["tensors"]["w"]["first"] == [0, 2]


def test_strings_and_unknown_types_are_bytes(tmp_path, numpy):
    words = npy("<U2", (2,), "abcd".encode("utf-32-le")), npy(">U2", (2,), "abxd".encode("utf-32-be"))
    a, b = (npz(tmp_path / n, {"s.npy": w, "v.npy": npy("|V2", (1,), b"ab")})
            for n, w in zip("ab", words))
    report = compare(a, b, numpy)["tensors"]
    assert report["v"]["state"] == "equal"
    assert report["s"] == {"state": "different", "tensor": "U2[2]", "elements_differing": 1,
                           "elements": 2, "first": [1], "last": [1]}


def test_what_numpy_itself_writes(tmp_path):
    np = pytest.importorskip("numpy", reason="numpy is not installed: its files are not tested")
    arrays = {"w": np.arange(12, dtype="f4").reshape(3, 4), "t": np.asfortranarray(np.ones((2, 3))),
              "n": np.int64(3), "e": np.zeros((0, 2), "f2"), "c": np.ones(2, "c16"),
              "d": np.array(["2026-01-01"], "M8[s]"), "s": np.array(["text"]), "b": np.array([True])}
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **arrays)
    report = compare(str(tmp_path / "a.npz"), str(tmp_path / "b.npz"))
    assert report["verdict"] == "equal" and set(report["tensors"]) == set(arrays), report
    arrays["w"] = arrays["w"].copy()
    arrays["w"][2, 1] += 1
    np.savez(tmp_path / "c.npz", **arrays)
    report = compare(str(tmp_path / "a.npz"), str(tmp_path / "c.npz"))
    assert report["tensors"]["w"]["first"] == [2, 1]
    np.savez(tmp_path / "o.npz", o=np.array([{}]))
    assert "never loaded" in compare(str(tmp_path / "o.npz"), str(tmp_path / "a.npz"))["cause"]


# What is refused


def header(**entries):
    return json.dumps(entries)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize("text, length, cause", [
    (None, 1 << 40, "the header is said to have 1099511627776 bytes"),
    (None, (1 << 64) - 1, "the header is said to have"),
    ("{", None, "the header is not JSON"),
    ("[" * 100000, None, "the header is not JSON"),
    ("[]", None, "the header is not an object"),
    ("\udc80", None, None),
    ('{"w":{},"w":{}}', None, "the name 'w' is there twice"),
    ('{"w":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}}', None, "NaN in the header"),
    ('{"w":{"dtype":"F32","shape":[%s],"data_offsets":[0,8]}}' % ("9" * 5000), None,
     "a number of 5000 digits"),
    (header(w=3), None, "its entry is not an object"),
    (header(w={**ENTRY, "dtype": "F4"}), None, 'its dtype "F4" is not one of'),
    (header(w={**ENTRY, "dtype": ["F32"]}), None, "is not one of"),
    (header(w={**ENTRY, "shape": [-2]}), None, "its shape is not a list of counts"),
    (header(w={**ENTRY, "shape": [True, 2]}), None, "its shape is not a list of counts"),
    (header(w={**ENTRY, "shape": [1 << 40]}), None, "data_offsets say 8"),
    (header(w={**ENTRY, "data_offsets": [8, 0]}), None, "not a begin and an end"),
    (header(w={**ENTRY, "data_offsets": [0]}), None, "not a begin and an end"),
    (header(w={**ENTRY, "data_offsets": [4, 12]}), None, "begins at 4, the data begin at 0"),
    (header(v=ENTRY, w=ENTRY), None, "begins at 0, the one before ends at 8"),
    (header(v=ENTRY, w={**ENTRY, "data_offsets": [4, 12]}), None, "begins at 4, the one before"),
    (header(w={**ENTRY, "shape": [1], "data_offsets": [0, 4]}), None,
     "the tensors end at 4, the file at 8"),
    (header(w={**ENTRY, "shape": [3], "data_offsets": [0, 12]}), None,
     "the tensors end at 12, the file at 8"),
    (header(w=ENTRY, __metadata__={"a": 1}), None, "__metadata__ is not an object of strings"),
    (header(), None, "the tensors end at 0, the file at 8"),
])
def test_hostile_safetensors(tmp_path, good, text, length, cause):
    path = tmp_path / "bad"
    if cause is None:
        path.write_bytes(struct.pack("<Q", 1) + b"\x80")
        cause = "the header is not JSON"
    else:
        safetensors(path, {"w": ("F32", [2], floats(1, 2))}, header=text, length=length)
    assert cause in cause_of(str(path), good)


def local_headers_at(path, offset_of):
    """Rewrites where the central directory says that members begin."""
    data = bytearray(open(path, "rb").read())
    at = data.index(b"PK\x01\x02")
    while data[at:at + 4] == b"PK\x01\x02":
        sizes = struct.unpack_from("<HHH", data, at + 28)
        struct.pack_into("<I", data, at + 42, offset_of)
        at += 46 + sum(sizes)
    open(path, "wb").write(data)
    return path


class Bomb:
    def __reduce__(self):
        return print, ("unpickled",)


ZEROS = npy("<f4", (2,), bytes(8))


@pytest.mark.parametrize("members, cause", [
    ({"o.npy": npy("|O", (1,), pickle.dumps([Bomb()]))}, "holds pickled objects, which are never"),
    ({"r.npy": npy([("a", "<f4"), ("b", "|O")], (1,), bytes(12))}, "records are not compared"),
    ({"l.npy": npy("<f16", (1,), bytes(16))}, "has bits that mean nothing"),
    ({"q.npy": npy("<i3", (1,), bytes(3))}, "dtype '<i3' is unknown"),
    ({"x.npy": b"text"}, "member 'x.npy': it is not an npy array"),
    ({"x.txt": b"text"}, "it is not an npy array"),
    ({"x.npy": ZEROS[:-1]}, "takes 8 bytes, 7 are there"),
    ({"x.npy": ZEROS + b"\0"}, "takes 8 bytes, 9 are there"),
    ({"x.npy": npy("<f4", (1 << 62,), bytes(8))}, "takes 18446744073709551616 bytes"),
    ({"x.npy": b"\x93NUMPY\2\0\xff\xff\xff\xff"}, "its header is said to have 4294967295 bytes"),
    ({"x.npy": b"\x93NUMPY\1\0\x10\0" + b"__import__('os')"}, "not one that numpy writes"),
    ({"x.npy": b"\x93NUMPY\1\0\xff\xff{"}, "not one that numpy writes"),
    ({"x.npy": b"\x93NUMPY\1\0\x60\xea" + b"(" * 60000}, "not one that numpy writes"),
    ({"x.npy": ZEROS, "x": ZEROS}, "array 'x' is there twice"),
    ({"model/data.pkl": pickle.dumps(Bomb()), "model/version": b"3"}, "PyTorch's own format"),
    ({}, "it holds no tensor"),
])
def test_hostile_npz(tmp_path, good, capfd, members, cause):
    assert cause in cause_of(npz(tmp_path / "bad.npz", members), good)
    assert "unpickled" not in capfd.readouterr().out


def test_members_that_share_bytes(tmp_path, good):
    path = npz(tmp_path / "bomb.npz", {"a.npy": ZEROS, "b.npy": ZEROS})
    assert "overlap" in cause_of(local_headers_at(path, 0), good).lower()


def test_damaged_members(tmp_path, good):
    path = npz(tmp_path / "w.npz", {"w.npy": npy("<f4", (2,), floats(1, 2))}, zipfile.ZIP_STORED)
    data = bytearray(open(path, "rb").read())
    data[data.index(floats(1, 2))] ^= 1
    open(path, "wb").write(data)
    report = compare(path, good)
    assert report["verdict"] == "not_comparable" and "CRC" in report["cause"]
    open(path, "wb").write(data[:60])
    assert "zip" in cause_of(path, good)


def test_a_zip_bomb_takes_no_memory(tmp_path, good):
    """64 MiB of zeros in 65 KiB: within what honest checkpoints do, and read in pieces."""
    path = tmp_path / "bomb.npz"
    content = npy("|u1", (1 << 26,), b"")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("w.npy", "w") as member:
            member.write(content)
            for _ in range(64):
                member.write(bytes(1 << 20))
    assert path.stat().st_size < 80_000
    code = ("import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (96 << 20, 96 << 20));"
            "sys.path.insert(0, %r); import reprod_checkpoints as c;"
            "print(c.compare(%r, %r)['verdict'])" % (str(PYTHON), str(path), str(path)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.parametrize("content, cause", [
    (b"", "the file is empty"), (b"abc", "3 bytes are no safetensors file"),
    (pickle.dumps({"w": 1}, 4), "a pickle, which is never loaded"), (None, "No such file"),
    (struct.pack("<Q", 2) + b"{}", "it holds no tensor")])
def test_other_files(tmp_path, good, content, cause):
    path = tmp_path / "other"
    if content is not None:
        path.write_bytes(content)
    assert cause in cause_of(str(path), good)


# The command


def command(*arguments):
    done = subprocess.run([sys.executable, str(PYTHON / "reprod_checkpoints.py"), *arguments],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_command(tmp_path, good):
    other = safetensors(tmp_path / "other.safetensors", {
        "w": ("F32", [2], floats(1, 2.0000002)), "evil\n\x1b[31m": ("U8", [0], b"")})
    assert command(good, good) == (0, f"a: {good} (safetensors, 1 tensors)\n"
                                      f"b: {good} (safetensors, 1 tensors)\nequal: 1 equal\n")
    code, text = command(good, other)
    assert code == 1 and text.splitlines()[2:] == [
        "different  w  float32[2]  1 of 2 elements differ, first at [1], at most 1 ulp apart",
        "only in b  evil??[31m  uint8[0]", "different: 1 different, 1 only in b"]
    code, text = command("--json", good, other)
    assert code == 1 and json.loads(text)["tensors"]["w"]["max_ulp"] == 1
    code, text = command(good, str(tmp_path / "missing"))
    assert code == 2 and "not comparable: " in text
