"""What tests/ptx makes of an opcode, against results that are known: from the PTX ISA, or computed
here with Python's own arithmetic.  Needs no CUDA: the PTX is written here.
"""
import math
import shutil
import struct
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "ptx"))
import harness  # noqa: E402
import opcodes  # noqa: E402
from emit import Emitter, module_text  # noqa: E402
from parse import BITS, Refused, parse  # noqa: E402

pytestmark = [pytest.mark.long,
              pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("g++"), reason="needs gcc and g++")]

MINUS = -1 & 2**64 - 1


def f32(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f64(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


NAN, INF = 0x7fffffff, f32(math.inf)
NAN64, INF64 = f64(math.nan), f64(math.inf)
TINY = 1  # the smallest subnormal number
HALF_ULP = f32(2.0**-24)

# Opcode, operands, result: all as bits, predicates as 0 and 1.
ROWS = [
    # Integers wrap.
    ("add.s32", [0x7fffffff, 1], 0x80000000), ("add.u16", [0xffff, 2], 1), ("sub.s64", [0, 1], MINUS),
    ("sub.s16", [0, 1], 0xffff), ("mul.lo.s32", [0x10001, 0x10001], 0x20001), ("mul.lo.u16", [0x101, 0x101], 0x201),
    ("mul.lo.s64", [MINUS, 3], 2**64 - 3), ("mul.hi.u32", [0xffffffff, 0xffffffff], 0xfffffffe),
    ("mul.hi.s32", [0xffffffff, 2], 0xffffffff), ("mul.hi.u64", [MINUS, MINUS], MINUS - 1),
    ("mul.hi.s64", [MINUS, 2], MINUS), ("mul.hi.u16", [0xffff, 0xffff], 0xfffe),
    ("mul.wide.s32", [0xffffffff, 2], 2**64 - 2), ("mul.wide.u32", [0xffffffff, 2], 0x1fffffffe),
    ("mul.wide.u16", [0xffff, 0xffff], 0xfffe0001), ("mul.wide.s16", [0xffff, 2], 0xfffffffe),
    ("mad.lo.s32", [3, 5, 0xffffffff], 14), ("mad.wide.s32", [0xffffffff, 2, 5], 3), ("mad.lo.s64", [2, 3, 4], 10),
    ("div.s32", [-7 & 0xffffffff, 2], -3 & 0xffffffff), ("rem.s32", [-7 & 0xffffffff, 2], 0xffffffff),
    ("div.u32", [0xfffffff9, 2], 0x7ffffffc), ("rem.u64", [10, 4], 2), ("div.s64", [-7 & MINUS, 2], -3 & MINUS),
    ("div.s32", [0x80000000, 0xffffffff], 0x80000000), ("rem.s32", [0x80000000, 0xffffffff], 0),
    ("div.s64", [2**63, MINUS], 2**63), ("div.u64", [MINUS, 10], MINUS // 10), ("div.u16", [100, 7], 14),
    ("min.s32", [0xffffffff, 1], 0xffffffff), ("max.u32", [0xffffffff, 1], 0xffffffff),
    ("max.s64", [MINUS, 1], 1), ("min.u64", [MINUS, 1], 1), ("neg.s32", [5], -5 & 0xffffffff),
    ("abs.s32", [-5 & 0xffffffff], 5), ("abs.s32", [0x80000000], 0x80000000),
    # Bits, and shifts by more than the width.
    ("and.b32", [12, 10], 8), ("or.b64", [12, 10], 14), ("xor.b16", [12, 10], 6), ("not.b16", [0], 0xffff),
    ("and.pred", [1, 0], 0), ("or.pred", [1, 0], 1), ("xor.pred", [1, 1], 0), ("not.pred", [1], 0),
    ("shl.b32", [1, 31], 0x80000000), ("shl.b32", [1, 32], 0), ("shl.b32", [1, 33], 0), ("shl.b64", [1, 63], 2**63),
    ("shl.b64", [1, 64], 0), ("shl.b16", [1, 16], 0), ("shr.u32", [0x80000000, 32], 0), ("shr.u64", [2**63, 64], 0),
    ("shr.s32", [0x80000000, 31], 0xffffffff), ("shr.s32", [0x80000000, 99], 0xffffffff),
    ("shr.s64", [2**63, 200], MINUS), ("shr.s32", [0x40000000, 99], 0), ("shr.s16", [0x8000, 4], 0xf800),
    ("shr.b64", [2**63, 63], 1), ("bfe.u32", [0xabcd1234, 8, 8], 0x12), ("bfe.u32", [0xabcd1234, 8, 0], 0),
    ("bfe.s32", [0x00008000, 8, 8], 0xffffff80), ("bfe.s32", [0x80000000, 28, 8], 0xfffffff8),
    ("bfe.s32", [0x80000000, 40, 4], 0xffffffff), ("bfe.u64", [0xab << 56, 56, 99], 0xab),
    ("bfe.u32", [0xffffffff, 4, 255], 0x0fffffff), ("bfi.b32", [0xff, 0, 8, 4], 0xf00),
    ("bfi.b64", [0xff, MINUS, 60, 64], MINUS), ("bfi.b64", [0, MINUS, 32, 32], 0xffffffff),
    ("bfi.b32", [0xff, 7, 32, 4], 7), ("brev.b32", [1], 0x80000000), ("popc.b64", [MINUS], 64), ("popc.b32", [7], 3),
    ("bfind.shiftamt.u32", [1], 31), ("bfind.shiftamt.u32", [0x80000000], 0), ("bfind.shiftamt.u32", [0], 0xffffffff),
    ("clz.b32", [0], 32), ("clz.b32", [1], 31), ("clz.b64", [0], 64), ("clz.b64", [1], 63),
    ("prmt.b32", [0x44332211, 0x88776655, 0x3210], 0x44332211), ("prmt.b32", [0x44332211, 0x88776655, 0x7654], 0x88776655),
    ("prmt.b32", [0x44332211, 0x88776655, 0xf000], 0xff111111), ("prmt.b32", [0x44332211, 0, 0x8888], 0),
    ("lop3.b32", [0xf0, 0xcc, 0xaa, 0x80], 0x80), ("lop3.b32", [0xf0, 0xcc, 0xaa, 0x96], 0x96),
    # Comparisons and choices.
    ("setp.lt.s32", [0xffffffff, 0], 1), ("setp.lt.u32", [0xffffffff, 0], 0), ("setp.ge.s64", [MINUS, 0], 0),
    ("setp.gt.u64", [MINUS, 0], 1), ("setp.eq.b32", [5, 5], 1), ("setp.ne.s16", [5, 5], 0),
    ("setp.lo.u32", [1, 2], 1), ("setp.hs.u64", [1, 2], 0), ("setp.le.s16", [0xffff, 0], 1),
    ("selp.b32", [1, 2, 1], 1), ("selp.f64", [1, 2, 0], 2), ("selp.u16", [1, 2, 1], 1),
    *[(f"setp.{name}.f32", [NAN, f32(1)], result) for name, result in
      {"eq": 0, "ne": 0, "lt": 0, "ge": 0, "equ": 1, "neu": 1, "ltu": 1, "geu": 1, "nan": 1, "num": 0}.items()],
    *[(f"setp.{name}.f64", [f64(1), f64(2)], result) for name, result in
      {"eq": 0, "ne": 1, "lt": 1, "gt": 0, "leu": 1, "gtu": 0, "nan": 0, "num": 1}.items()],
    ("setp.eq.f32", [0, 0x80000000], 1),
    # Single precision: to nearest even, subnormal numbers kept, one NaN.
    ("add.rn.f32", [f32(1), HALF_ULP], f32(1)), ("add.rn.f32", [f32(1), HALF_ULP + 1], 0x3f800001),
    ("add.rn.f32", [0x3f800001, HALF_ULP], 0x3f800002), ("add.rn.f32", [INF, f32(-math.inf)], NAN),
    ("add.rn.f32", [0x7f812345, f32(1)], NAN), ("add.rn.f32", [TINY, TINY], 2), ("sub.rn.f32", [2, TINY], TINY),
    ("add.rn.f32", [0x80000000, 0x80000000], 0x80000000), ("sub.rn.f32", [f32(1), f32(1)], 0),
    ("mul.rn.f32", [f32(3.0e38), f32(2)], INF), ("mul.rn.f32", [0, INF], NAN),
    ("mul.rn.f32", [0x00800000, f32(0.5)], 0x00400000), ("div.rn.f32", [f32(1), f32(3)], 0x3eaaaaab),
    ("div.rn.f32", [f32(1), 0], INF), ("div.rn.f32", [0, 0], NAN), ("sqrt.rn.f32", [f32(2)], 0x3fb504f3),
    ("sqrt.rn.f32", [f32(-1)], NAN), ("rcp.rn.f32", [f32(3)], 0x3eaaaaab), ("neg.f32", [NAN], 0xffffffff),
    ("abs.f32", [0x80000000], 0), ("min.f32", [NAN, f32(1)], f32(1)), ("max.f32", [f32(1), NAN], f32(1)),
    ("min.f32", [NAN, 0x7f800001], NAN), ("min.f32", [0, 0x80000000], 0x80000000), ("max.f32", [0x80000000, 0], 0),
    ("max.f32", [f32(-2), f32(-1)], f32(-1)), ("min.f64", [f64(2), f64(1)], f64(1)),
    # A fused multiplication rounds once: 1 + 2^-12, squared, less 1 + 2^-11.
    ("fma.rn.f32", [f32(1 + 2**-12), f32(1 + 2**-12), f32(-1 - 2**-11)], f32(2.0**-24)),
    ("fma.rn.f32", [f32(1), f32(1), HALF_ULP], f32(1)), ("fma.rp.f32", [f32(1), f32(1), TINY], 0x3f800001),
    ("fma.rm.f32", [f32(1), f32(1), TINY | 0x80000000], 0x3f7fffff), ("fma.rz.f32", [f32(1), f32(1), TINY], f32(1)),
    ("fma.rm.f32", [f32(-1), f32(1), TINY | 0x80000000], 0xbf800001), ("fma.rn.f32", [0, INF, 0], NAN),
    # Double precision.
    ("add.rn.f64", [f64(1), f64(2.0**-53)], f64(1)), ("mul.rn.f64", [f64(0.1), f64(3)], f64(0.1 * 3)),
    ("div.rn.f64", [f64(1), f64(3)], f64(1 / 3)), ("sqrt.rn.f64", [f64(2)], f64(math.sqrt(2))),
    ("sub.rn.f64", [f64(0.3), f64(0.1)], f64(0.3 - 0.1)), ("rcp.rn.f64", [f64(3)], f64(1 / 3)),
    ("fma.rn.f64", [f64(1 + 2**-30), f64(1 + 2**-30), f64(-1 - 2**-29)], f64(2.0**-60)),
    ("neg.f64", [f64(1)], f64(-1)), ("abs.f64", [f64(-1)], f64(1)),
    ("ex2.approx.ftz.f32", [f32(3)], f32(8)), ("ex2.approx.ftz.f32", [f32(-140)], 0),
    ("ex2.approx.ftz.f32", [f32(-math.inf)], 0), ("ex2.approx.ftz.f32", [NAN], NAN),
    # Conversions: rounding, saturation, NaN.
    ("cvt.rn.f32.f64", [f64(1 + 2**-24)], f32(1)), ("cvt.rn.f32.f64", [f64(1e300)], INF),
    ("cvt.rn.f32.f64", [NAN64], NAN), ("cvt.f64.f32", [f32(0.1)], f64(struct.unpack("<f", struct.pack("<f", 0.1))[0])),
    ("cvt.sat.f32.f32", [f32(-3)], 0), ("cvt.sat.f32.f32", [f32(3)], f32(1)), ("cvt.sat.f32.f32", [NAN], 0),
    ("cvt.sat.f32.f32", [f32(0.25)], f32(0.25)), ("cvt.sat.f32.f32", [0x80000000], 0),
    ("cvt.rn.f32.s32", [0x01000001], f32(16777216)), ("cvt.rn.f32.s32", [0xffffffff], f32(-1)),
    ("cvt.rn.f32.u64", [MINUS], f32(2.0**64)), ("cvt.rn.f32.s64", [MINUS], f32(-1)),
    ("cvt.rn.f64.s64", [2**53 + 1], f64(2.0**53)), ("cvt.rn.f64.u32", [0xffffffff], f64(2**32 - 1)),
    ("cvt.rn.f32.u16", [0xffff], f32(65535)), ("cvt.rzi.s32.f32", [f32(-1.9)], 0xffffffff),
    ("cvt.rzi.s32.f32", [f32(3e9)], 0x7fffffff), ("cvt.rzi.s32.f32", [f32(-3e9)], 0x80000000),
    ("cvt.rzi.s32.f32", [NAN], 0), ("cvt.rzi.u32.f32", [f32(-1)], 0), ("cvt.rzi.u32.f32", [f32(1e10)], 0xffffffff),
    ("cvt.rzi.s64.f32", [NAN], 2**63), ("cvt.rzi.s32.f64", [NAN64], 0x80000000), ("cvt.rzi.s64.f64", [f64(1e30)], 2**63 - 1),
    ("cvt.rzi.u64.f32", [INF], MINUS), ("cvt.rzi.s64.f64", [f64(-2.5)], -2 & MINUS),
    ("cvt.rni.s32.f32", [f32(2.5)], 2), ("cvt.rni.s32.f32", [f32(3.5)], 4), ("cvt.rni.s32.f32", [NAN], 0),
]
TYPE = {1: "pred", 16: "b16", 32: "b32", 64: "b64"}


def row_text(number, opcode, count, at):
    """Its operands are COUNT words from AT; its result replaces the first."""
    types = opcodes.signature(opcode)
    names, lines = [], []
    for i, kind in enumerate(types[1:]):
        name, where = f"%x{number}_{i}", f"[%in+{8 * (at + i)}]"
        lines.append(f".reg .{TYPE[BITS[kind]]} {name};")
        if kind == "pred":
            lines += [f"ld.global.u64 %wide, {where};", f"setp.ne.s64 {name}, %wide, 0;"]
        elif opcode.startswith("lop3") and i == 3:
            name = str(ROWS[number][1][3])
        else:
            lines.append(f"ld.global.b{BITS[kind]} {name}, {where};")
        names.append(name)
    lines += [f".reg .{TYPE[BITS[types[0]]]} %y{number};", f"{opcode} %y{number}, {', '.join(names)};"]
    if types[0] == "pred":
        lines += [f"selp.u64 %wide, 1, 0, %y{number};", f"st.global.u64 [%in+{8 * at}], %wide;"]
    else:
        lines += ["mov.u64 %wide, 0;", f"st.global.u64 [%in+{8 * at}], %wide;",
                  f"st.global.b{BITS[types[0]]} [%in+{8 * at}], %y{number};"]
    assert len(types) == count + 1, opcode
    return lines


def entry(name, lines):
    return "\n".join([f".entry {name}(.param .u64 {name}_param_0)", "{", ".reg .b64 %in;", ".reg .b64 %wide;",
                      f"ld.param.u64 %in, [{name}_param_0];", *lines, "ret;", "}", ""])


TOGETHER = entry("shuffles", """
.reg .b32 %tid; .reg .b32 %v; .reg .b32 %got; .reg .pred %in_range; .reg .b64 %to; .reg .b64 %at; .reg .pred %odd;
.reg .b32 %flag; .reg .b32 %ballot; .reg .pred %all; .reg .pred %any; .reg .pred %uni; .reg .b32 %one;
mov.u32 %tid, %tid.x;
mul.wide.u32 %at, %tid, 64;
add.s64 %to, %in, %at;
mad.lo.s32 %v, %tid, 10, 7;
shfl.sync.up.b32 %got|%in_range, %v, 1, 0, -1;
selp.u32 %flag, 1, 0, %in_range;
st.global.u32 [%to], %got;
st.global.u32 [%to+4], %flag;
shfl.sync.down.b32 %got|%in_range, %v, 2, 31, -1;
selp.u32 %flag, 1, 0, %in_range;
st.global.u32 [%to+8], %got;
st.global.u32 [%to+12], %flag;
shfl.sync.bfly.b32 %got, %v, 16, 31, -1;
st.global.u32 [%to+16], %got;
shfl.sync.idx.b32 %got, %v, 9, 6175, -1;
st.global.u32 [%to+20], %got;
and.b32 %one, %tid, 1;
setp.eq.s32 %odd, %one, 1;
vote.sync.ballot.b32 %ballot, %odd, -1;
st.global.u32 [%to+24], %ballot;
vote.sync.all.pred %all, %odd, -1;
vote.sync.any.pred %any, %odd, -1;
vote.sync.uni.pred %uni, !%odd, -1;
selp.u32 %flag, 1, 0, %all;
st.global.u32 [%to+28], %flag;
selp.u32 %flag, 1, 0, %any;
st.global.u32 [%to+32], %flag;
selp.u32 %flag, 1, 0, %uni;
st.global.u32 [%to+36], %flag;
bar.warp.sync -1;""".replace("; ", ";\n").split("\n"))

ATOMS = {  # operation.type: old, operands, new; in global and in shared memory
    "add.u32": (0xffffffff, [2], 1), "add.u64": (MINUS, [2], 1), "min.s32": (1, [0xffffffff], 0xffffffff),
    "max.s32": (1, [0xffffffff], 1), "min.u32": (5, [3], 3), "max.u32": (5, [7], 7), "and.b32": (12, [10], 8),
    "or.b32": (12, [10], 14), "xor.b32": (12, [10], 6), "exch.b32": (1, [9], 9), "exch.b64": (1, [9], 9),
    "inc.u32": (3, [3], 0), "dec.u32": (0, [7], 7), "cas.b32": (4, [4, 6], 6), "cas.b64": (4, [5, 6], 4),
    "add.f32": (f32(1), [f32(2)], f32(3)), "add.f64": (f64(1), [f64(2)], f64(3)),
}


def atom_text():
    lines, at = [".shared .align 8 .b8 cell[8];"], 0
    for number, (name, (_, operands, _)) in enumerate(ATOMS.items()):
        bits = BITS[name.split(".")[1]]
        lines += [f".reg .b{bits} %a{number}_{i};" for i in range(len(operands) + 1)]
        values = ", ".join(f"%a{number}_{i + 1}" for i in range(len(operands)))
        lines += [f"ld.global.b{bits} %a{number}_{i + 1}, [%in+{8 * (at + 2 + i)}];" for i in range(len(operands))]
        lines += [f"ld.global.b{bits} %a{number}_0, [%in+{8 * at}];", f"st.shared.b{bits} [cell], %a{number}_0;",
                  f"atom.shared.{name} %a{number}_0, [cell], {values};",
                  f"st.global.b{bits} [%in+{8 * (at + 1)}], %a{number}_0;",
                  f"ld.shared.b{bits} %a{number}_0, [cell];",
                  f"atom.global.{name} _, [%in+{8 * at}], {values};",
                  f"st.global.b{bits} [%in+{8 * (at + 2)}], %a{number}_0;"]
        at += 4
    return entry("atoms", lines)


REST = entry("rest", """
.reg .b16 %h; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>; .reg .pred %p;
.local .align 8 .b8 depot[16];
.reg .b64 %local;
ld.global.s8 %r1, [%in];
st.global.s32 [%in+8], %r1;
ld.global.u8 %r1, [%in];
st.global.u32 [%in+12], %r1;
ld.global.s32 %rd1, [%in+16];
st.global.u64 [%in+24], %rd1;
ld.global.v2.u32 {%r2, %r3}, [%in+32];
st.global.v2.u32 [%in+40], {%r3, %r2};
cvt.s64.s32 %rd2, %r2;
st.global.u64 [%in+48], %rd2;
cvt.u16.u64 %h, %rd2;
cvt.u32.u16 %r4, %h;
st.global.u64 [%in+56], 0;
st.global.u32 [%in+56], %r4;
mov.b64 {%r5, %r6}, %rd2;
mov.b64 %rd3, {%r6, %r5};
st.global.u64 [%in+64], %rd3;
mov.u64 %local, depot;
st.local.u64 [%local+8], %rd3;
ld.u32 %r7, [%local+8];
st.global.u64 [%in+72], 0;
st.global.u32 [%in+72], %r7;
setp.eq.s32 %p, %r7, 12345;
@%p bra $END;
@!%p mov.u64 %wide, 77;
st.global.u64 [%in+80], %wide;
$END:
cvt.s8.s32 %r8, %r3;
st.global.u32 [%in+88], %r8;
{ .reg .b32 tmp; mov.b64 {tmp, %r8}, %rd3; }
st.global.u32 [%in+92], %r8;""".replace("; ", ";\n").split("\n"))
# What a test of faults wants, in lines of CUDA: each is wrong in one way.
SUM = """.shared .align 4 .b8 words[128];
.reg .b32 %tid; .reg .b32 %other; .reg .b32 %at; .reg .b32 %v; .reg .b64 %to; .reg .b64 %by;
mov.u32 %tid, %tid.x;
shl.b32 %at, %tid, 2;
mov.u32 %other, words;
add.s32 %at, %at, %other;
{before}
bar.sync 0;
{after}"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    lines, at = [], 0
    for number, (opcode, operands, _) in enumerate(ROWS):
        lines += row_text(number, opcode, len(operands), at)
        at += len(operands)
    return harness.build(entry("opcodes", lines) + TOGETHER + atom_text() + REST, tmp_path_factory.mktemp("opcodes"))


def test_opcodes_of_the_table(library):
    words = [value for _, operands, _ in ROWS for value in operands]
    found, at, wrong = harness.launch(library, "opcodes", words), 0, []
    for opcode, operands, expected in ROWS:
        if found[at] != expected:
            wrong.append(f"{opcode} {[hex(each) for each in operands]}: {found[at]:#x}, not {expected:#x}")
        at += len(operands)
    assert wrong == []


def test_every_row_of_the_table_has_its_function(tmp_path):
    """A function of arith.h for each opcode that a pattern takes, as far as nvcc writes it."""
    names = {opcode for opcode, _, _ in ROWS}
    assert len(names) > 100
    assert all(opcodes.signature(name) for name in names)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_lanes_of_a_warp(library, seed):
    found = harness.launch_apart(library, "shuffles", [0] * 8 * 32, seed=seed, block=32)[0]
    values = [10 * lane + 7 for lane in range(32)]
    for lane in range(32):
        up, down, last, votes, uni = found[8 * lane:8 * lane + 5]
        assert up == (values[lane - 1] | 1 << 32 if lane else values[0])
        assert down == (values[lane + 2] | 1 << 32 if lane < 30 else values[lane])
        # The last shuffle: lane 9 of a segment of 8, which is lane 1 of one's own.
        assert last == values[lane ^ 16] | values[lane // 8 * 8 + 1] << 32
        assert votes == 0xaaaaaaaa and uni == 1


def test_atomics(library):
    words = [word for old, operands, _ in ATOMS.values() for word in ([old, 0, *operands] + [0])[:4]]
    found = harness.launch(library, "atoms", words)
    for number, (name, (old, _, new)) in enumerate(ATOMS.items()):
        assert found[4 * number:4 * number + 2] == [new, old], name
        mask = (1 << BITS[name.split(".")[1]]) - 1
        assert found[4 * number + 2] & mask == new, name


def test_single_precision_atomics_flush_in_global_memory_only(tmp_path):
    text = entry("k", """.shared .align 4 .b8 cell[4];
.reg .f32 %f1; .reg .f32 %f2;
ld.global.f32 %f1, [%in];
st.shared.f32 [cell], %f1;
atom.shared.add.f32 %f2, [cell], %f1;
ld.shared.f32 %f2, [cell];
st.global.f32 [%in+8], %f2;
red.global.add.f32 [%in], %f1;""".replace("; ", ";\n").split("\n"))
    assert harness.launch(harness.build(text, tmp_path), "k", [TINY, 0]) == [0, 2]


def test_memory_moves_and_jumps(library):
    words = [0x80, 0, 0xfffffffe, 0, 0x3_fffffff9, 0, 0, 0, 0, 0, 0, 0]
    found = harness.launch(library, "rest", words)
    assert found[1] == 0x80_ffffff80
    assert found[3] == -2 & MINUS
    assert found[5] == 0xfffffff9_00000003
    assert found[6] == -7 & MINUS and found[7] == 0xfff9
    assert found[8] == 0xfffffff9_ffffffff and found[9] == 0xffffffff
    assert found[10] == 77
    assert found[11] == 0xfffffff9_00000003


# Refused

@pytest.mark.parametrize("line, message", [
    ("add.f32 %f1, %f2, %f3;", "add.f32 may be contracted: this was not compiled with -fmad=false"),
    ("mul.f32 %f1, %f2, %f3;", "mul.f32 may be contracted"),
    ("sub.f64 %d1, %d2, %d3;", "sub.f64 may be contracted"),
    ("add.rz.f32 %f1, %f2, %f3;", "unknown opcode add.rz.f32"),
    ("add.rn.ftz.f32 %f1, %f2, %f3;", "unknown opcode add.rn.ftz.f32"),
    ("sin.approx.f32 %f1, %f2;", "unknown opcode sin.approx.f32"),
    ("div.approx.f32 %f1, %f2, %f3;", "unknown opcode div.approx.f32"),
    ("bar.sync 1;", "unknown opcode bar.sync"),
    ("atom.global.add.noftz.f16 %r1, [%rd1], %r2;", "unknown opcode atom.global.add.noftz.f16"),
    ("atom.global.and.f32 %f1, [%rd1], %f2;", "unknown opcode atom.global.and.f32"),
    ("setp.lt.and.s32 %p1, %r1, %r2, %p2;", "unknown opcode setp.lt.and.s32"),
    ("add.s32 %r1, %r2, %unknown;", "unknown operand '%unknown'"),
    ("add.s32 %r1, %r2;", "unknown operands of add.s32"),
    ("ld.const.u32 %r1, [%rd1];", "unknown opcode ld.const.u32"),
    ("wgmma.fence.sync.aligned;", "unknown opcode wgmma.fence.sync.aligned"),
])
def test_what_is_not_known_is_refused_by_name(line, message):
    registers = [f".reg .{kind} %{name}<9>;" for kind, name in (("f32", "f"), ("f64", "d"), ("b32", "r"), ("b64", "rd"),
                                                              ("pred", "p"))]
    text = harness.HEAD + '.file 1 "/somewhere/own.cu"\n' + entry(
        "wrong_kernel", [*registers, ".loc 1 12 3", line])
    with pytest.raises(Refused) as refused:
        module_text(parse(text), "m")
    assert str(refused.value).startswith("kernel wrong_kernel, own.cu:12: ")
    assert message in str(refused.value)


def test_unknown_statements_are_refused():
    for text in (".global .align 4 .b8 table[4];", ".const .b32 x;", ".func (.param .b32 r) f()"):
        with pytest.raises(Refused):
            parse(harness.HEAD + text)


def test_parameters_have_their_names_whatever_is_said_of_their_pointers():
    text = (".entry k(.param .u64 .ptr .align 1 a, .param .u64 .ptr b, .param .u64 .ptr .global .align 4 c,\n"
            ".param .align 8 .b8 d[24], .param .u32 e)\n{\nret;\n}\n")
    assert parse(text).kernels[0].parameters == {"a": 8, "b": 8, "c": 8, "d": 24, "e": 4}


def test_shared_memory_is_laid_out():
    """Static variables by their alignment, and what a launch adds behind them."""
    [kernel] = parse(harness.HEAD + ".extern .shared .align 16 .b8 more[];\n" + entry("k", [
        ".shared .align 1 .b8 flag[1];", ".shared .align 8 .b8 sums[24];", ".shared .align 4 .b8 unused[400];",
        ".reg .b32 %r<9>;", "mov.u32 %r1, flag;", "mov.u32 %r2, sums;", "mov.u32 %r3, more;"])).kernels
    emitter = Emitter(kernel, "f")
    assert emitter.shared == {"flag": 0, "sums": 8}
    assert "(uint32_t)32u" in emitter.lines[-2] or any("32u" in line for line in emitter.lines)
    assert ", 32, 1024, 0 }," in emitter.entry()


# Faults

def faulty(before, after):
    text = SUM.replace("{before}", before).replace("{after}", after).replace("; ", ";\n")
    return entry("faulty", text.split("\n"))


STORE = "st.shared.u32 [%at], %tid;"
OTHER = "xor.b32 %at, %at, 64;\nld.shared.u32 %v, [%at];\nmul.wide.u32 %by, %tid, 8;\nadd.s64 %to, %in, %by;\nst.global.u32 [%to], %v;"
GLOBAL = "mul.wide.u32 %by, %tid, 8;\nadd.s64 %to, %in, %by;\n"
FAULTS = {
    "none": (STORE, OTHER, "", None),
    "no_barrier": (STORE + "\n" + OTHER, "", "races", "and no barrier between them"),
    "write_after_read": (STORE + "\nbar.sync 0;\n" + OTHER + "\nxor.b32 %at, %at, 64;\nst.shared.u32 [%at], %v;", "", "races",
                         "and no barrier between them"),
    "unwritten": ("", OTHER, "initialised", "of shared memory, which nobody wrote"),
    "too_small": (STORE, "ld.shared.u32 %v, [%at+4];", "", "access of 4 bytes at 128 of 128 bytes of shared memory"),
    "misaligned": (STORE, "ld.shared.u32 %v, [%at+2];", "", "misaligned access of 4 bytes"),
    "misaligned_global": ("", "ld.global.u32 %v, [%in+2];", "", "misaligned access of 4 bytes"),
    "beyond": (GLOBAL, "ld.global.u64 %by, [%to+8];", "memory", "read of 8 bytes out of bounds, 256 bytes after the "
               "start of an allocation of 256 bytes"),
    "before": (GLOBAL, "st.global.u32 [%to+-4], %tid;", "memory", "write of 4 bytes out of bounds"),
    "divergent": ("setp.ne.s32 %p, %tid, 0;\n@%p bra $L;", "$L:\nret;", "", "divergent barrier"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", [0, 3])
def test_what_a_gpu_would_not_survive_ends_the_process(tmp_path, name, seed):
    before, after, check, message = FAULTS[name]
    text = faulty(".reg .pred %p;\n" + before, after)
    built = harness.build(text, tmp_path)
    words, error = harness.launch_apart(built, "faulty", [0] * 32, seed=seed, check=check or "all", block=32)
    if message is None:
        assert words == [lane ^ 16 for lane in range(32)], error
        return
    assert words is None and message in error and "kernel faulty, block (0,0,0), thread (" in error
    if check:  # and only what was asked for is looked at
        others = {"races": "memory", "memory": "races", "initialised": "races"}[check]
        assert harness.launch_apart(built, "faulty", [0] * 64, seed=seed, check=others, block=32)[0], name


def test_a_read_of_what_nobody_wrote_is_seen(tmp_path):
    built = harness.build(entry("k", ["ld.global.u64 %wide, [%in];", "st.global.u64 [%in+8], %wide;"]), tmp_path)
    for check, written, seen in (("initialised", False, True), ("initialised", True, False), ("memory", False, False)):
        words, error = harness.launch_apart(built, "k", [5, 0], check=check, written=written)
        assert (words is None) == seen and ("read of 8 bytes that nobody wrote" in error) == seen


def test_blocks_are_interleaved(tmp_path):
    """A sum that reads, adds and writes loses additions of other blocks, between volatile accesses."""
    text = entry("add", [".reg .b32 %v;", "ld.volatile.global.u32 %v, [%in];", "add.s32 %v, %v, 1;",
                         "st.volatile.global.u32 [%in], %v;"])
    built = harness.build(text, tmp_path)
    sums = {harness.launch_apart(built, "add", [0], seed=seed, grid=64)[0][0] for seed in range(1, 5)}
    assert max(sums) < 64 and len(sums) > 1
    assert harness.launch_apart(built, "add", [0], seed=0, grid=64)[0] == [64]


def test_a_seed_is_a_schedule(tmp_path):
    text = entry("order", [".reg .b32 %n;", ".reg .b32 %id;", ".reg .b64 %to;", "mov.u32 %id, %ctaid.x;",
                           "atom.global.add.u32 %n, [%in], 1;", "mul.wide.u32 %wide, %n, 8;",
                           "add.s64 %to, %in, %wide;", "st.global.u32 [%to+8], %id;"])
    built = harness.build(text, tmp_path)
    orders = [harness.launch_apart(built, "order", [0] * 33, seed=seed, grid=32)[0] for seed in (0, 1, 1, 2)]
    assert orders[0] == [32, *range(32)] and orders[1] == orders[2] != orders[3]
    assert all(sorted(each[1:]) == list(range(32)) for each in orders)
