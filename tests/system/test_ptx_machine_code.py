"""The gate on machine code: what it reads of cuobjdump, and each thing that it must refuse."""
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "ptx"))
import machine_code  # noqa: E402
from parse import Instruction, Kernel, Variable  # noqa: E402

SAID = """
Fatbin elf code:
================
arch = sm_75
identifier = cuda/x.cu

Resource usage:
 Common:
  GLOBAL:0
 Function _Z1av:
  REG:31 STACK:0 SHARED:16 LOCAL:0 CONSTANT[0]:441 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z1bv:
  REG:50 STACK:24 SHARED:0 LOCAL:0 CONSTANT[0]:424 TEXTURE:0 SURFACE:0 SAMPLER:0

\tcode for sm_75
\t\tFunction : _Z1av
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   FMUL R2, R3, R4 ;
\t\tFunction : _Z1bv
        /*0000*/                   @P0 FFMA.FTZ R2, R3, R4, R5 ;

Fatbin elf code:
================
arch = sm_90
 Function _Z1av:
  REG:40 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:441 TEXTURE:0
\t\tFunction : _Z1av
        /*0000*/                   DFMA R2, R3, R4, R5 ;
"""


def kernel(*opcodes, arrays=0):
    return Kernel("_Z1av", body=[Instruction(opcode, (), "", "") for opcode in opcodes],
                  local={"depot": Variable(8, arrays)} if arrays else {})


def code(**changes):
    return {"registers": 32, "stack": 0, "shared": 0, "local": 0, "fused": False, **changes}


def test_what_is_read():
    found = machine_code.read_code(SAID)
    assert found == {("sm_75", "_Z1av"): code(registers=31, shared=16),
                     ("sm_75", "_Z1bv"): code(registers=50, stack=24, fused=True),
                     ("sm_90", "_Z1av"): code(registers=40, fused=True)}


@pytest.mark.parametrize("changes, opcodes, arrays, threads, message", [
    ({"fused": True}, ["add.rn.f32", "div.s64", "mul.rn.f32"], 0, 256, "fused multiplications, of which its PTX has none"),
    ({"fused": None}, [], 0, 256, "its machine code is not there"),
    ({"stack": 8}, [], 0, 256, "8 bytes of local memory, of which its PTX has 0: spilled"),
    ({"local": 8}, [], 0, 256, "spilled"),
    ({}, [], 16, 256, "16 bytes of arrays in local memory, which LOCAL does not have"),
    ({"shared": 49153}, [], 0, 256, "49153 bytes of shared memory"),
    ({"registers": 65}, [], 0, 1024, "73728 registers for a block of 1024 threads"),
])
def test_what_is_refused(changes, opcodes, arrays, threads, message):
    [problem] = machine_code.problems(code(**changes), kernel(*opcodes, arrays=arrays), threads)
    assert message in problem


@pytest.mark.parametrize("opcode", ["div.rn.f32", "sqrt.rn.f64", "ex2.approx.ftz.f32", "fma.rn.f32"])
def test_what_makes_fused_multiplications(opcode):
    assert machine_code.problems(code(fused=True, registers=64), kernel(opcode), 1024) == []


def test_comments_make_no_other_ptx():
    assert machine_code.is_same_ptx(".entry k(\n)\n{ ret;\n}", "// Generated\n.entry k(\n)  // demoted\n{\tret; }")
    assert not machine_code.is_same_ptx("add.rn.f32 %f1, %f2, %f3;", "add.f32 %f1, %f2, %f3;")


def test_the_largest_block_counts(tmp_path):
    path = tmp_path / "launches"
    path.write_text("a 256\na 1024\nb 32\na 64\n")
    assert machine_code.read_launches(path) == {"a": 1024, "b": 32}
    assert machine_code.read_launches(tmp_path / "none") == {}
