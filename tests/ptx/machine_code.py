#!/usr/bin/env python3
"""What nvcc put into our own objects: the machine code of each architecture of the build.  Usage:

  machine_code.py [--launches FILE] BUILD

  - the PTX that was translated is the one in the fat binary, comments aside;
  - a fused multiplication only where the PTX has one, or divides, takes a root or a power of two:
    nowhere did ptxas contract a multiplication and an addition;
  - no more local memory than the arrays that the PTX has: nothing is spilled;
  - at most 48 KB of shared memory, and registers for the largest block that was launched.

cuobjdump and nvdisasm are found on PATH, next to nvcc, or in the wheels nvidia-cuda-cuobjdump and
nvidia-cuda-nvdisasm.  Status 77: they are not there.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT / "tests" / "gpu"))
from machine import wheel_files  # noqa: E402
from parse import Label, parse  # noqa: E402

SKIPPED = 77
SHARED_MAX, REGISTERS, LANES = 48 * 1024, 65536, 32
PER_WARP = 256  # registers are given to a warp in pieces of so many
FUSED = re.compile(r"\b[FD]FMA\b")
# What ptxas itself writes with fused multiplications; rcp and sqrt are steps of divisions, too.
MAKES_FUSED = re.compile(r"(?:fma|div|sqrt|rcp|ex2)\..*f(?:32|64)")
# Arrays in local memory that the sources have, in bytes; no others.
LOCAL = {
    "_Z11fill_kernel11weight_init5seeds": 32,
    "_Z11fill_kernel6tensor7fillingll": 16,
    "_Z11loss_kernel5dense": 40,
    "_Z12store_kernel11multinomial": 16,
    "_Z13thread_kernelILi128EEvPKfllPf": 512,
    "_Z13thread_kernelILi64EEvPKfllPf": 256,
    "_Z14counter_kernel7dropoutmm": 16,
    "_Z14largest_kernel11multinomial": 16,
    "_Z14maximum_kernel11multinomial": 16,
    "_Z14ordered_kernel11multinomial": 16,
    "_Z17sort_count_kernel8row_sortii": 160,
    "_Z17sort_place_kernel8row_sortii": 160,
    "_Z18column_tree_kernel13xla_reductionl": 128,
    "_Z18last_thread_kernel15stateful_randoml": 16,
    "_Z18sort_starts_kernel8row_sorti": 88,
    "_Z9op_kernel15stateful_random7placing": 16,
}
THREADS = 256  # of a block that nobody launched (cuda/kernels/kernel.h)


def tools():
    """The folder of cuobjdump and nvdisasm, or None."""
    wheels = [path.parent for path in wheel_files("bin/cuobjdump")]
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    found = shutil.which("cuobjdump")
    for folder in ([pathlib.Path(found).parent] if found else []) + [pathlib.Path(nvcc).parent, *wheels]:
        if (folder / "cuobjdump").exists() and ((folder / "nvdisasm").exists() or shutil.which("nvdisasm")):
            return folder
    return None


def read_code(text):
    """{(architecture, kernel): {"registers", "stack", "shared", "local", "fused"}} of cuobjdump's output."""
    found = {}
    for part in re.split(r"^Fatbin elf code:$", text, flags=re.M)[1:]:
        arch = re.search(r"^arch = (\w+)", part, re.M).group(1)
        for name, *numbers in re.findall(
                r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", part):
            registers, stack, shared, local = map(int, numbers)
            found[arch, name] = {"registers": registers, "stack": stack, "shared": shared, "local": local,
                                 "fused": None}
        code = re.split(r"^\s*Function : (\S+)$", part, flags=re.M)
        for name, lines in zip(code[1::2], code[2::2]):
            found[arch, name]["fused"] = bool(FUSED.search(lines))
    return found


def problems(code, kernel, threads):
    """What is wrong with CODE of KERNEL (of the PTX), of which blocks had at most so many THREADS."""
    found = []
    if code["fused"] is None:
        found.append("its machine code is not there")
    makes_fused = any(MAKES_FUSED.match(each.opcode) for each in kernel.body if not isinstance(each, Label))
    if code["fused"] and not makes_fused:
        found.append("fused multiplications, of which its PTX has none")
    arrays = sum(variable.size for variable in kernel.local.values())
    if code["stack"] + code["local"] > arrays:
        found.append(f"{code['stack'] + code['local']} bytes of local memory, of which its PTX has {arrays}: spilled")
    if arrays > LOCAL.get(kernel.name, 0):
        found.append(f"{arrays} bytes of arrays in local memory, which LOCAL does not have")
    if code["shared"] > SHARED_MAX:
        found.append(f"{code['shared']} bytes of shared memory")
    warps = -(-threads // LANES)
    registers = warps * -(-code["registers"] * LANES // PER_WARP) * PER_WARP
    if registers > REGISTERS:
        found.append(f"{registers} registers for a block of {threads} threads")
    return found


def is_same_ptx(fat, own):
    """cuobjdump leaves the comments out."""
    first, second = (" ".join(re.sub(r"//[^\n]*", "", text).split()) for text in (fat, own))
    return first == second


def fat_ptxs(folder, path, environment):
    """The PTX in an object: of the newest architecture, which is translated, and of the oldest."""
    with tempfile.TemporaryDirectory() as own:
        subprocess.run([folder / "cuobjdump", "-xptx", "all", path.resolve()], check=True, capture_output=True,
                       cwd=own, env=environment)
        return [found.read_text(encoding="latin-1") for found in pathlib.Path(own).glob("*.ptx")]


def read_launches(path):
    """{kernel: threads of its largest block}."""
    largest = {}
    if path and path.exists():
        for line in path.read_text().splitlines():
            name, threads = line.split()
            largest[name] = max(int(threads), largest.get(name, 0))
    return largest


def examine(build, folder, source, launches):
    """(what is wrong, how many kernels) of one source."""
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    path = build / "obj" / f"{source}.cu.o"
    text = subprocess.run([folder / "cuobjdump", "-sass", "-res-usage", path],
                          check=True, capture_output=True, text=True, env=environment).stdout
    ptx = (build / "ptx" / f"{source}.ptx").read_text(encoding="latin-1")
    kernels = {kernel.name: kernel for kernel in parse(ptx).kernels}
    code = read_code(text)
    wrong = [f"{name}, {arch}: {problem}" for (arch, name), each in code.items()
             for problem in problems(each, kernels[name], launches.get(name, THREADS))]
    if not any(is_same_ptx(fat, ptx) for fat in fat_ptxs(folder, path, environment)):
        wrong.append(f"{source}: the PTX in the fat binary is another one than what was translated")
    missing = set(kernels) - {name for _, name in code}
    return wrong + [f"{name}: no architecture has it" for name in missing], len(code)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--launches", type=pathlib.Path, help="what check.py saw launched")
    options = parser.parse_args()
    folder = tools()
    if folder is None:
        print("skipped: the machine code, since there is no cuobjdump with nvdisasm")
        return SKIPPED
    launches, wrong, count = read_launches(options.launches), [], 0
    sources = sorted(str(path.relative_to(options.build / "ptx").with_suffix(""))
                     for path in (options.build / "ptx" / "cuda").rglob("*.ptx"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found, kernels in pool.map(lambda each: examine(options.build, folder, each, launches), sources):
            wrong += found
            count += kernels
    print("\n".join([*wrong, f"machine code of {count} kernels in {len(sources)} files: {len(wrong)} wrong"]))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
