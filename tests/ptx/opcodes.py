"""Which opcodes there are: each becomes a call of the function of arith.h that has its name.

An opcode that no row of the table matches is refused, and so are those of which nvcc's -fmad=false
promises that they do not occur: an addition or multiplication that names no rounding may be
contracted into a fused one by the assembler.
"""
import re

from parse import Refused

# Opcode, then the types of result and operands: t is the type that ends the opcode, w the integer of
# twice its width, p a predicate; f and i are the type before it, and a name is itself.
INTEGER, WORD, FLOAT = r"[su](?:16|32|64)", r"[su](?:32|64)", r"f(?:32|64)"
ORDER = "eq|ne|lt|le|gt|ge"
TABLE = [(re.compile(pattern), types.split()) for pattern, types in [
    (rf"(?:add|sub|mul\.lo)\.{INTEGER}", "t t t"),
    (rf"(?:mul\.hi|div|rem|min|max)\.{INTEGER}", "t t t"),
    (r"mul\.wide\.[su](?:16|32)", "w t t"),
    (rf"mad\.lo\.{INTEGER}", "t t t t"),
    (r"mad\.wide\.[su](?:16|32)", "w t t w"),
    (r"(?:neg|abs)\.s(?:16|32|64)", "t t"),
    (r"(?:and|or|xor)\.(?:b16|b32|b64|pred)", "t t t"),
    (r"not\.(?:b16|b32|b64|pred)", "t t"),
    (r"shl\.b(?:16|32|64)", "t t u32"),
    (rf"shr\.(?:{INTEGER}|b16|b32|b64)", "t t u32"),
    (r"bfe\.[su](?:32|64)", "t t u32 u32"),
    (r"bfi\.b(?:32|64)", "t t t u32 u32"),
    (r"(?:brev)\.b(?:32|64)", "t t"),
    (r"(?:popc|clz)\.b(?:32|64)", "u32 t"),
    (r"bfind\.shiftamt\.u32", "u32 t"),
    (r"prmt\.b32", "b32 b32 b32 b32"),
    (r"lop3\.b32", "b32 b32 b32 b32 b32"),
    (rf"setp\.(?:{ORDER})\.(?:{INTEGER})", "p t t"),
    (r"setp\.(?:lo|ls|hi|hs)\.u(?:16|32|64)", "p t t"),
    (r"setp\.(?:eq|ne)\.b(?:16|32|64)", "p t t"),
    (rf"setp\.(?:{ORDER}|equ|neu|ltu|leu|gtu|geu|num|nan)\.{FLOAT}", "p t t"),
    (rf"selp\.(?:{INTEGER}|{FLOAT}|b16|b32|b64)", "t t t p"),
    (rf"(?:add|sub|mul|div)\.rn\.{FLOAT}", "t t t"),
    (rf"fma\.(?:rn|rz|rm|rp)\.{FLOAT}", "t t t t"),
    (rf"(?:sqrt|rcp)\.rn\.{FLOAT}", "t t"),
    (rf"(?:neg|abs)\.{FLOAT}", "t t"),
    (rf"(?:min|max)\.{FLOAT}", "t t t"),
    (r"ex2\.approx\.ftz\.f32", "t t"),
    (r"cvt\.rn\.f32\.f64", "f32 f64"),
    (r"cvt\.f64\.f32", "f64 f32"),
    (r"cvt\.sat\.f32\.f32", "f32 f32"),
    (rf"cvt\.rn\.{FLOAT}\.{INTEGER}", "f t"),
    (rf"cvt\.(?:rzi|rni)\.{WORD}\.{FLOAT}", "i t"),
]]
CONTRACTABLE = re.compile(rf"(?:add|sub|mul|mad)(?:\.ftz)?\.{FLOAT}")


def widened(kind):
    return f"{kind[0]}{2 * int(kind[1:])}"


def signature(opcode):
    """The types of result and operands, or None where the table does not have the opcode."""
    parts = opcode.split(".")
    for pattern, types in TABLE:
        if pattern.fullmatch(opcode):
            names = {"t": parts[-1], "p": "pred", "f": parts[-2], "i": parts[-2]}
            return [widened(parts[-1]) if kind == "w" else names.get(kind, kind) for kind in types]
    return None


def refuse_contractable(opcode):
    if CONTRACTABLE.fullmatch(opcode):
        raise Refused(f"{opcode} may be contracted: this was not compiled with -fmad=false")


# What has the same bits for every kind of integer has one function.
ALIKE = [(re.compile(pattern), name) for pattern, name in [
    (r"(add|sub|mul_lo|mad_lo|setp_eq|setp_ne|shr)_[sb](16|32|64)", r"\1_u\2"),
    (r"selp_[usf](16|32|64)", r"selp_b\1"),
    (r"setp_lo_(u\d+)", r"setp_lt_\1"),
    (r"setp_ls_(u\d+)", r"setp_le_\1"),
    (r"setp_hi_(u\d+)", r"setp_gt_\1"),
    (r"setp_hs_(u\d+)", r"setp_ge_\1"),
]]


def function(opcode):
    """The function of arith.h."""
    name = opcode.replace(".", "_")
    for pattern, same in ALIKE:
        if pattern.fullmatch(name) and not name.startswith("shr_s"):
            return pattern.sub(same, name)
    return name
