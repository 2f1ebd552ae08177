"""Compares two checkpoints tensor by tensor: safetensors or npz, in any combination.

    python3 reprod_checkpoints.py A B [--json]

Exit status: 0 every tensor is equal, bit by bit; 1 something differs; 2 not comparable: a
file cannot be read, is damaged, or holds no tensor.  Nothing is imported but the standard
library (numpy, where it is installed, makes it faster); nothing is ever unpickled, and
memory does not grow with the files.
"""
import argparse
import array
import itertools
import json
import mmap
import os
import re
import struct
import sys
import zipfile
import zlib

CHUNK_BYTES = 1 << 20  # a multiple of every element's size that has one, 16 at most
HEADER_BYTES_MAX = 32 << 20  # of safetensors; 100 bytes a tensor are usual
NPY_HEADER_BYTES_MAX = 1 << 16
TRANSPOSE_BYTES_MAX = 1 << 30  # Fortran order is turned in memory
NAMES_SHOWN = 20

# name in safetensors: (name here, bytes)
SAFETENSORS = {
    "F64": ("float64", 8), "F32": ("float32", 4), "F16": ("float16", 2), "BF16": ("bfloat16", 2),
    "I64": ("int64", 8), "I32": ("int32", 4), "I16": ("int16", 2), "I8": ("int8", 1),
    "U64": ("uint64", 8), "U32": ("uint32", 4), "U16": ("uint16", 2), "U8": ("uint8", 1),
    "BOOL": ("bool", 1), "C64": ("complex64", 8), "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1), "F8_E8M0": ("float8_e8m0fnu", 1),
}
NPY_KINDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
# Magnitudes above this are NaNs.
NAN_ABOVE = {"float64": 0x7FF0000000000000, "float32": 0x7F800000, "float16": 0x7C00,
             "bfloat16": 0x7F80, "float8_e4m3fn": 0x7E, "float8_e5m2": 0x7C}
NUMBER = re.compile("(float|bfloat|int|uint|complex|bool)")  # the others are just bytes
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Refused(Exception):
    """Why a file, or a pair of files, is not compared."""


def shorten(name):
    text = "".join(c if c.isprintable() else "?" for c in name)
    return text if len(text) <= 100 else text[:97] + "..."


class Tensor:
    """DTYPE, SHAPE and how to read it; BYTES of data in all, SIZE for one element."""

    def __init__(self, dtype, size, shape, read, swap=0, fortran=False):
        self.dtype, self.size, self.shape, self.read = dtype, size, shape, read
        self.swap = swap
        self.elements = 1
        for extent in shape:
            self.elements *= extent
        self.bytes = self.elements * size
        self.fortran = fortran and self.elements and sum(extent > 1 for extent in shape) > 1
        self.step = CHUNK_BYTES // size * size or size

    def chunks(self):
        """The bytes, little-endian, row-major, `step` of them at a time (the last time less)."""
        chunks = self.read()
        if self.swap > 1:
            chunks = (swapped(chunk, self.swap) for chunk in chunks)
        return rows_first(self, chunks) if self.fortran else chunks

    def describe(self):
        return "%s[%s]" % (self.dtype, ",".join(map(str, self.shape)))


def swapped(chunk, size):
    if size in CODES:
        values = array.array(CODES[size], chunk)
        values.byteswap()
        return values.tobytes()
    return b"".join(chunk[i:i + size][::-1] for i in range(0, len(chunk), size))


def rows_first(tensor, chunks):
    if tensor.bytes > TRANSPOSE_BYTES_MAX:
        raise Refused("a tensor of %d bytes is in Fortran order, too large to be turned"
                      % tensor.bytes)
    data, strides, size = b"".join(chunks), [], tensor.size
    for extent in tensor.shape:
        strides.append(strides[-1] * last if strides else size)
        last = extent
    ahead = [range(0, extent * stride, stride) for extent, stride in zip(tensor.shape, strides)]
    piece = bytearray()
    for offsets in itertools.product(*ahead):
        at = sum(offsets)
        piece += data[at:at + size]
        if len(piece) >= tensor.step:
            yield bytes(piece)
            piece = bytearray()
    if piece:
        yield bytes(piece)


# Safetensors


def unique_object(pairs):
    found = {}
    for key, value in pairs:
        if key in found:
            raise Refused("the name '%s' is there twice" % shorten(key))
        found[key] = value
    return found


def small_int(text):
    if len(text) > 19:
        raise Refused("a number of %d digits" % len(text))
    return int(text)


def no_constant(text):
    raise Refused("%s in the header" % text)


def read_header(data):
    if len(data) < 8:
        raise Refused("%d bytes are no safetensors file" % len(data))
    length = struct.unpack("<Q", data[:8])[0]
    if length > len(data) - 8:
        raise Refused("the header is said to have %d bytes, the file has %d" % (length, len(data)))
    if length > HEADER_BYTES_MAX:
        raise Refused("a header of %d bytes: more than %d" % (length, HEADER_BYTES_MAX))
    try:
        header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=unique_object,
                            parse_int=small_int, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused("the header is not JSON: %s" % shorten(str(error))) from None
    if not isinstance(header, dict):
        raise Refused("the header is not an object")
    return header, 8 + length


def is_counts(values):
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def read_entry(name, entry):
    """(Tensor without data, begin, end)"""
    def refuse(text):
        raise Refused("tensor '%s': %s" % (shorten(name), text))
    if not isinstance(entry, dict):
        refuse("its entry is not an object")
    dtype, shape, offsets = (entry.get(k) for k in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or dtype not in SAFETENSORS:
        refuse("its dtype %s is not one of %s" % (shorten(json.dumps(dtype)),
                                                  ", ".join(SAFETENSORS)))
    if not is_counts(shape) or len(shape) > 64:
        refuse("its shape is not a list of counts")
    if not is_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        refuse("its data_offsets are not a begin and an end")
    tensor = Tensor(*SAFETENSORS[dtype], tuple(shape), None)
    if tensor.bytes != offsets[1] - offsets[0]:
        refuse("%s takes %d bytes, data_offsets say %d" % (
            tensor.describe(), tensor.bytes, offsets[1] - offsets[0]))
    return tensor, offsets[0], offsets[1]


def slices_of(data, begin, end):
    return lambda: (data[at:min(at + CHUNK_BYTES, end)] for at in range(begin, end, CHUNK_BYTES))


def read_safetensors(data):
    """{name: Tensor}.  As the format has it, the tensors fill the file without a gap or an
    overlap."""
    header, start = read_header(data)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise Refused("__metadata__ is not an object of strings")
    entries = [(name,) + read_entry(name, entry) for name, entry in header.items()]
    tensors, at = {}, 0
    for name, tensor, begin, end in sorted(entries, key=lambda entry: entry[2:]):
        if begin != at:
            raise Refused("tensor '%s' begins at %d, %s at %d" % (
                shorten(name), begin, "the one before ends" if at else "the data begin", at))
        tensor.read = slices_of(data, start + begin, start + end)
        tensors[name], at = tensor, end
    if at != len(data) - start:
        raise Refused("the tensors end at %d, the file at %d" % (at, len(data) - start))
    return {name: tensors[name] for name in header}


# Npz

NPY_HEADER = re.compile(r"""\{\s*'descr':\s*(?P<descr>'[^']*'|\[.*\]),
    \s*'fortran_order':\s*(?P<fortran>True|False),
    \s*'shape':\s*\((?P<shape>(?:\s*\d{1,19}L?\s*,?)*)\s*\),?\s*\}\s*""", re.VERBOSE | re.DOTALL)
# What zipfile raises for files that are not what they seem.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError,
              struct.error, ValueError, OverflowError, UnicodeError)


def npy_dtype(descr):
    """(name, bytes, bytes that are swapped together) of a dtype as numpy writes it"""
    if descr.startswith("["):
        raise Refused("records are not compared")
    match = re.fullmatch(r"([<>|=]?)([a-zA-Z?])(\d{0,4})(\[\w+\])?", descr[1:-1])
    if not match:
        raise Refused("dtype %s is unknown" % shorten(descr))
    order, kind, size = match.group(1), match.group(2), int(match.group(3) or 1)
    if kind == "O":
        raise Refused("it holds pickled objects, which are never loaded")
    if kind in "b?":
        return "bool", 1, 1
    if kind == "f" and size not in (2, 4, 8) or kind == "c" and size not in (8, 16):
        raise Refused("dtype %s has bits that mean nothing" % descr)
    if kind in "iu" and size not in CODES or size == 0:
        raise Refused("dtype %s is unknown" % descr)
    foreign = order == ">" or order in ("", "=") and sys.byteorder == "big"
    if kind in NPY_KINDS:
        unit = size // 2 if kind == "c" else size
        return "%s%d" % (NPY_KINDS[kind], 8 * size), size, unit if foreign else 1
    # Strings, dates, and what numpy has no name for (bfloat16): bytes.
    size *= 4 if kind == "U" else 1
    return descr[1:-1].lstrip("<>|="), size, (4 if kind == "U" else 8) if foreign \
        and kind in "UmM" else 1


def read_npy_header(file):
    """(Tensor without data, the header's bytes)"""
    start = file.read(8)
    if len(start) < 8 or start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise Refused("it is not an npy array")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(file.read(width).ljust(width, b"\xff"), "little")
    if length > NPY_HEADER_BYTES_MAX:
        raise Refused("its header is said to have %d bytes" % length)
    text = file.read(length)
    match = NPY_HEADER.fullmatch(text.decode("latin-1")) if len(text) == length else None
    if not match:
        raise Refused("its header is not one that numpy writes")
    shape = tuple(int(n) for n in re.findall(r"\d+", match.group("shape")))
    dtype, size, swap = npy_dtype(match.group("descr"))
    tensor = Tensor(dtype, size, shape, None, swap, match.group("fortran") == "True")
    return tensor, 8 + width + length


def member_chunks(archive, info, skip, step):
    def chunks():
        with archive.open(info) as file:
            file.read(skip)
            while True:
                chunk = file.read(step)
                if not chunk:
                    return
                yield chunk
    return chunks


def check_members(infos, file_bytes):
    """Members that share bytes could unpack to far more than a file of this size holds."""
    at, names = 0, set()
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < at:
            raise Refused("member '%s' overlaps another" % shorten(info.filename))
        at = info.header_offset + 30 + info.compress_size
        if info.filename in names:
            raise Refused("member '%s' is there twice" % shorten(info.filename))
        names.add(info.filename)
        if info.flag_bits & 1:
            raise Refused("member '%s' is encrypted" % shorten(info.filename))
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused("member '%s' is compressed in a way that numpy does not write"
                          % shorten(info.filename))
    if at > file_bytes:
        raise Refused("its members end beyond the end of the file")


def read_npz(path):
    archive = zipfile.ZipFile(path)
    if any(name.endswith("data.pkl") for name in archive.namelist()):
        raise Refused("PyTorch's own format, a pickle, which is never loaded: save it as"
                      " safetensors")
    check_members(archive.infolist(), os.path.getsize(path))
    tensors = {}
    for info in archive.infolist():
        name = info.filename[:-4] if info.filename.endswith(".npy") else info.filename
        try:
            with archive.open(info) as file:
                tensor, skip = read_npy_header(file)
        except Refused as error:
            raise Refused("member '%s': %s" % (shorten(info.filename), error)) from None
        if name in tensors:
            raise Refused("array '%s' is there twice" % shorten(name))
        if tensor.bytes != info.file_size - skip:
            raise Refused("member '%s': %s takes %d bytes, %d are there" % (
                shorten(info.filename), tensor.describe(), tensor.bytes, info.file_size - skip))
        tensor.read = member_chunks(archive, info, skip, tensor.step)
        tensors[name] = tensor
    return tensors


# Comparison


def open_checkpoint(path):
    """(format, {name: Tensor})"""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
                return "npz", read_npz(path)
            if not start:
                raise Refused("the file is empty")
            if start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5") \
                    and int.from_bytes(start, "little") > os.path.getsize(path):
                raise Refused("a pickle, which is never loaded: save it as safetensors")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return "safetensors", read_safetensors(data)
    except OSError as error:
        raise Refused("%s: %s" % (path, error.strerror or error)) from None
    except Refused as error:
        raise Refused("%s: %s" % (path, error)) from None
    except ZIP_ERRORS as error:
        raise Refused("%s: %s" % (path, shorten(str(error)))) from None


class Signature:
    """How two tensors differ."""

    def __init__(self, tensor, numpy):
        self.tensor, self.numpy = tensor, numpy
        self.parts = 2 if tensor.dtype.startswith("complex") else 1
        self.number = ("float%d" % (4 * tensor.size) if self.parts == 2 else tensor.dtype)
        self.code = CODES.get(tensor.size // self.parts) if NUMBER.match(tensor.dtype) else None
        self.differ, self.first, self.last = 0, None, None
        self.nans, self.max_ulp, self.max_difference, self.bits = 0, None, None, 0

    def take(self, index, x, y):
        """One element, or one part of it; X and Y are unsigned bits, or bytes."""
        if index != self.last:
            self.differ += 1
            self.first = index if self.first is None else self.first
            self.last = index
        if not isinstance(x, int):
            return
        self.bits |= x ^ y
        width = 8 * self.tensor.size // self.parts
        sign = 1 << (width - 1)
        if self.number in NAN_ABOVE:
            limit = NAN_ABOVE[self.number]
            if x & ~sign > limit or y & ~sign > limit:
                self.nans += 1
                return
            x, y = (sign - v if v & sign else v for v in (x, y))
            self.max_ulp = max(self.max_ulp or 0, abs(x - y))
        else:
            if self.number.startswith("int"):
                x, y = ((v ^ sign) - sign for v in (x, y))
            self.max_difference = max(self.max_difference or 0, abs(x - y))

    def scan(self, offset, a, b):
        """A and B, equally long, begin at byte OFFSET of the tensors."""
        if not self.code:
            size = self.tensor.size
            for at in range(0, len(a), size):
                if a[at:at + size] != b[at:at + size]:
                    self.take((offset + at) // size, a[at:at + size], b[at:at + size])
            return
        part = self.tensor.size // self.parts
        if self.numpy:
            self.scan_numpy(offset // part, a, b)
            return
        for at in range(0, len(a), 4096):
            if a[at:at + 4096] != b[at:at + 4096]:
                pairs = zip(array.array(self.code, a[at:at + 4096]),
                            array.array(self.code, b[at:at + 4096]))
                for i, (x, y) in enumerate(pairs, (offset + at) // part):
                    if x != y:
                        self.take(i // self.parts, x, y)

    def scan_numpy(self, start, a, b):
        """As scan, in bulk: of each chunk take() sees only the element that is farthest off."""
        numpy = self.numpy
        x, y = (numpy.frombuffer(data, "<u%d" % (self.tensor.size // self.parts))
                for data in (a, b))
        where = (x != y).nonzero()[0]
        if not len(where):
            return
        x, y = x[where], y[where]
        whole = numpy.unique((where + start) // self.parts)
        before, first, last = self.differ, self.first, self.last
        sign = 1 << (8 * self.tensor.size // self.parts - 1)
        magnitudes = [v & (sign - 1) for v in (x, y)]
        if self.number in NAN_ABOVE:
            limit = NAN_ABOVE[self.number]
            nan = (magnitudes[0] > limit) | (magnitudes[1] > limit)
            above, below = numpy.maximum(*magnitudes), numpy.minimum(*magnitudes)
            distance = numpy.where((x ^ y) & sign, above + below, above - below)
        else:
            flip = sign if self.number.startswith("int") else 0
            above, below = numpy.maximum(x ^ flip, y ^ flip), numpy.minimum(x ^ flip, y ^ flip)
            nan, distance = numpy.zeros(len(x), bool), above - below
        numbers = (~nan).nonzero()[0]
        if len(numbers):
            i = numbers[distance[numbers].argmax()]
            self.take(int(where[i] + start) // self.parts, int(x[i]), int(y[i]))
        self.bits |= int(numpy.bitwise_or.reduce(x ^ y))
        self.nans += int(nan.sum())
        self.differ = before + len(whole) - int(last == whole[0])
        self.first, self.last = first if before else int(whole[0]), int(whole[-1])

    def place(self, index):
        """[i, j, …] of element INDEX."""
        found = []
        for extent in reversed(self.tensor.shape):
            found.insert(0, index % extent)
            index //= extent
        return found

    def report(self):
        found = {"elements_differing": self.differ, "elements": self.tensor.elements,
                 "first": self.place(self.first), "last": self.place(self.last)}
        if self.code:
            found["bits_differing"] = "%0*x" % (2 * self.tensor.size // self.parts, self.bits)
        if self.number in NAN_ABOVE:
            found.update(max_ulp=self.max_ulp, nan=self.nans)
        elif self.code:
            found["max_difference"] = self.max_difference
        return found


def compare_tensors(a, b, numpy):
    if a.dtype != b.dtype:
        return {"state": "dtype", "a": a.describe(), "b": b.describe()}
    if a.shape != b.shape:
        return {"state": "shape", "a": a.describe(), "b": b.describe()}
    signature, offset, total = Signature(a, numpy), 0, 0
    for x, y in itertools.zip_longest(a.chunks(), b.chunks(), fillvalue=b""):
        if len(x) != len(y):
            raise Refused("a tensor ends before its data do")
        if x != y:
            signature.scan(offset, x, y)
        offset += len(x)
        total += len(x)
    if total != a.bytes:
        raise Refused("a tensor ends before its data do")
    if signature.differ:
        return dict({"state": "different", "tensor": a.describe()}, **signature.report())
    return {"state": "equal", "tensor": a.describe()}


def compare(path_a, path_b, numpy=None):
    """The whole report; {"verdict": "not_comparable", "cause": …} instead of an exception."""
    report = {"a": {"path": path_a}, "b": {"path": path_b}, "verdict": "not_comparable",
              "cause": None, "tensors": {}}
    try:
        sides = []
        for side, path in (("a", path_a), ("b", path_b)):
            report[side]["format"], tensors = open_checkpoint(path)
            report[side]["tensors"] = len(tensors)
            if not tensors:
                raise Refused("%s: it holds no tensor" % path)
            sides.append(tensors)
        a, b = sides
        found = report["tensors"]
        for name in list(a) + [name for name in b if name not in a]:
            if name in a and name in b:
                try:
                    found[name] = compare_tensors(a[name], b[name], numpy)
                except Refused as error:
                    raise Refused("tensor '%s': %s" % (shorten(name), error)) from None
                except ZIP_ERRORS as error:
                    raise Refused("tensor '%s': %s" % (shorten(name), shorten(str(error)))) \
                        from None
            else:
                side, tensor = ("a", a[name]) if name in a else ("b", b[name])
                found[name] = {"state": "only_in_" + side, side: tensor.describe()}
        states = {entry["state"] for entry in found.values()}
        report["verdict"] = "equal" if states == {"equal"} else "different"
    except Refused as error:
        report["cause"] = str(error)
        report["tensors"] = {}
    return report


def line_of(name, entry):
    name = shorten(name)
    if entry["state"] == "different":
        text = "%s  %d of %d elements differ, first at %s" % (
            entry["tensor"], entry["elements_differing"], entry["elements"], entry["first"])
        for key, word in (("max_ulp", "at most %d ulp apart"), ("max_difference", "by at most %d")):
            if entry.get(key) is not None:
                text += ", " + word % entry[key]
        return "different  %s  %s%s" % (name, text, ", %d NaN" % entry["nan"]
                                        if entry.get("nan") else "")
    if entry["state"] in ("dtype", "shape"):
        return "%-9s  %s  %s became %s" % (entry["state"], name, entry["a"], entry["b"])
    return "only in %s  %s  %s" % (entry["state"][-1], name, entry[entry["state"][-1]])


def print_text(report, show_all):
    for side in "ab":
        print("%s: %s%s" % (side, report[side]["path"], " (%s, %d tensors)" % (
            report[side]["format"], report[side]["tensors"]) if "tensors" in report[side] else ""))
    if report["cause"]:
        print("not comparable: " + report["cause"])
        return
    other = [(name, entry) for name, entry in report["tensors"].items()
             if entry["state"] != "equal"]
    shown = other if show_all else other[:NAMES_SHOWN]
    for name, entry in shown:
        print(line_of(name, entry))
    if len(other) > len(shown):
        print("… and %d more (--all shows them)" % (len(other) - len(shown)))
    counts = {}
    for entry in report["tensors"].values():
        counts[entry["state"]] = counts.get(entry["state"], 0) + 1
    print("%s: %s" % (report["verdict"], ", ".join(
        "%d %s" % (count, state.replace("_", " ")) for state, count in sorted(counts.items()))))


def main():
    parser = argparse.ArgumentParser(description="Compare two checkpoints, tensor by tensor.",
                                     epilog="exit status: 0 equal, 1 different, 2 not comparable")
    parser.add_argument("a")
    parser.add_argument("b")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--all", action="store_true", help="every tensor that is not equal")
    arguments = parser.parse_args()
    try:
        import numpy
    except ImportError:
        numpy = None
    report = compare(arguments.a, arguments.b, numpy)
    if arguments.json:
        print(json.dumps(report, indent=1))
    else:
        print_text(report, arguments.all)
    return {"equal": 0, "different": 1}.get(report["verdict"], 2)


if __name__ == "__main__":
    sys.exit(main())
