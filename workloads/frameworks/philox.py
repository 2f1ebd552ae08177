"""The generator of all inputs, as workloads/instruments/philox.h defines it, bit for bit.

Counter-based: every value is a function of (seed, stream, element's index) alone.  With numpy
whole arrays are computed at once; without it, one value after the other."""
import array
import struct

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
AT_ONCE = 1 << 16  # blocks that numpy computes at once


def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & M64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & M64
    return x ^ x >> 31


def stream_of(seed, workload, tensor):
    """The stream of the tensor named TENSOR of the workload named WORKLOAD."""
    value = mix64(seed ^ 0xCBF29CE484222325)
    for byte in b"\0".join((workload.encode(), tensor.encode(), b"")):
        value = (value ^ byte) * 0x100000001B3 & M64
    return mix64(value)


def rounds(key, c0, c1, c2, c3):
    """Philox4x32-10 of integers, or of numpy's arrays of uint64 that hold 32 bits each."""
    k0, k1 = key & M32, key >> 32
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & M32, p0 >> 32 ^ c3 ^ k1, p0 & M32
        k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
    return c0, c1, c2, c3


class Plain:
    """Words in plain Python: slow, and right.  Words are lists of integers."""

    def words32(self, seed, stream, count):
        words = []
        for block in range(-(-count // 4)):
            words += rounds(seed, block & M32, block >> 32, stream & M32, stream >> 32)
        return words[:count]

    def words64(self, seed, stream, count):
        words = self.words32(seed, stream, 2 * count)
        return [low | high << 32 for low, high in zip(words[::2], words[1::2])]

    def uniform32(self, words):
        return array.array("f", [((w >> 8) - (1 << 23)) * 2.0 ** -23 for w in words])

    def uniform64(self, words):
        return array.array("d", [((w >> 10) - (1 << 53)) * 2.0 ** -53 for w in words])

    def wide32(self, words):
        bits = [w & 0x807FFFFF | (((w >> 32) * 25 >> 32) - 12 + 127) << 23 for w in words]
        return array.array("f", struct.pack("=%dI" % len(bits), *bits))

    def wide64(self, low, high):
        bits = [l & 0x800FFFFFFFFFFFFF | (((h & M32) * 25 >> 32) - 12 + 1023) << 52
                for l, h in zip(low, high)]
        return array.array("d", struct.pack("=%dQ" % len(bits), *bits))

    def index(self, words, limit):
        return array.array("q", [w * limit >> 64 for w in words])


class Vectorised(Plain):
    """The same with numpy, of any version."""

    def __init__(self, numpy):
        self.numpy = numpy

    def words32(self, seed, stream, count):
        numpy, blocks = self.numpy, -(-count // 4)
        words = numpy.empty((blocks, 4), "u4")
        for first in range(0, blocks, AT_ONCE):
            index = numpy.arange(first, min(first + AT_ONCE, blocks), dtype="u8")
            part = [index & numpy.uint64(M32), index >> numpy.uint64(32)]
            part += [numpy.full(len(index), half, "u8") for half in (stream & M32, stream >> 32)]
            for lane, values in enumerate(self.rounds(seed, *part)):
                words[first:first + len(index), lane] = values
        return words.reshape(-1)[:count]

    def rounds(self, key, c0, c1, c2, c3):
        u64 = self.numpy.uint64
        k0, k1, low = key & M32, key >> 32, u64(M32)
        for _ in range(10):
            p0, p1 = c0 * u64(0xD2511F53), c2 * u64(0xCD9E8D57)
            c0, c1, c2, c3 = (p1 >> u64(32) ^ c1 ^ u64(k0), p1 & low,
                              p0 >> u64(32) ^ c3 ^ u64(k1), p0 & low)
            k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
        return c0, c1, c2, c3

    def words64(self, seed, stream, count):
        return self.words32(seed, stream, 2 * count).view("u8")

    def uniform32(self, words):
        return ((words >> self.numpy.uint32(8)).astype("i4") - (1 << 23)).astype("f4") \
            * self.numpy.float32(2.0 ** -23)

    def uniform64(self, words):
        return ((words >> self.numpy.uint64(10)).astype("i8") - (1 << 53)).astype("f8") \
            * self.numpy.float64(2.0 ** -53)

    def wide32(self, words):
        u64 = self.numpy.uint64
        exponents = ((words >> u64(32)) * u64(25) >> u64(32)) + u64(127 - 12)
        return (words & u64(0x807FFFFF) | exponents << u64(23)).astype("u4").view("f4")

    def wide64(self, low, high):
        u64 = self.numpy.uint64
        exponents = ((high & u64(M32)) * u64(25) >> u64(32)) + u64(1023 - 12)
        return (low & u64(0x800FFFFFFFFFFFFF) | exponents << u64(52)).view("f8")

    def index(self, words, limit):
        u64 = self.numpy.uint64
        w0, w1, l0, l1 = words & u64(M32), words >> u64(32), u64(limit & M32), u64(limit >> 32)
        middle = w1 * l0 + (w0 * l0 >> u64(32))
        low_middle = w0 * l1 + (middle & u64(M32))
        return (w1 * l1 + (middle >> u64(32)) + (low_middle >> u64(32))).view("i8")


class Philox:
    """The tensors of one workload and seed.  Each is an array of the standard library, or of
    numpy where there is one, of COUNT values."""

    def __init__(self, seed, workload, numpy=None):
        self.seed, self.workload = seed, workload
        self.engine = Vectorised(numpy) if numpy is not None else Plain()

    def words(self, tensor, count, bits):
        stream = stream_of(self.seed, self.workload, tensor)
        return getattr(self.engine, "words%d" % bits)(self.seed, stream, count)

    def uniform32(self, tensor, count):
        """Of the 2^24 multiples of 2^-23 in [-1, 1)."""
        return self.engine.uniform32(self.words(tensor, count, 32))

    def uniform64(self, tensor, count):
        return self.engine.uniform64(self.words(tensor, count, 64))

    def wide32(self, tensor, count):
        """Random sign, mantissa in [1, 2), exponent in -12 .. 12: order shows in a sum."""
        return self.engine.wide32(self.words(tensor, count, 64))

    def wide64(self, tensor, count):
        words = self.words(tensor, 2 * count, 64)
        return self.engine.wide64(words[::2], words[1::2])

    def index(self, tensor, count, limit):
        """Integers in [0, LIMIT)."""
        return self.engine.index(self.words(tensor, count, 64), limit)
