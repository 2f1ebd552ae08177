#!/usr/bin/env python3
"""Faults that are planted in copies of our sources, each of which must be noticed, and for its own
reason.  Each is compiled by nvcc, translated and linked into a worker of its own, as the real ones
are.  Usage (make sets the variables): planted.py BUILD [FAULT]...

  PTX_NVCC     nvcc with the flags of the build, without an architecture
  PTX_ARCH     the architecture whose PTX is taken
  PTX_CC       the compiler of what was translated, with its flags
  PTX_LINK     the linker with its flags; PTX_OBJECTS, PTX_LIBS: what it links
"""
import dataclasses
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from check import call
from translate import modules_text

ROOT = pathlib.Path(__file__).resolve().parents[2]
BARRIER = "        __syncthreads();\n"


@dataclasses.dataclass
class Fault:
    source: str  # the file that is compiled
    edited: str  # the file in which it is planted
    old: str
    new: str
    variant: tuple  # (workload, variant)
    seen: str  # in what the translator or a watched run says; "" where digests must vary
    watched: str = "all"


FAULTS = {
    "lost -fmad=false": Fault(
        "cuda/bias_add_bwd.cu", "", "-fmad=false", "", ("bias_add_bwd", "ordered"),
        "kernel _Z13atomic_kernel12bias_add_bwdl, bias_add_bwd.cu:21: add.f32 may be contracted: this was not "
        "compiled with -fmad=false"),
    "missing __syncthreads": Fault(
        "cuda/sparse_segment_sum.cu", "cuda/kernels/tree.h", BARRIER, "", ("sparse_segment_sum", "ordered"),
        "and no barrier between them", "races"),
    "wrong size of shared memory": Fault(
        "cuda/sparse_segment_sum.cu", "cuda/sparse_segment_sum.cu", "lanes[SPARSE_LANES * SPARSE_WIDTH_MAX]",
        "lanes[SPARSE_LANES * 2]", ("sparse_segment_sum", "ordered"), "bytes of shared memory"),
    "unordered sum in an ordered kernel": Fault(
        "cuda/bias_add_bwd.cu", "cuda/bias_add_bwd.cu",
        "    LAUNCH_ITEMS(slot_kernel, BIAS_SLOTS * bias->channels, *bias);\n    join(bias, BIAS_SLOTS);\n",
        "    LAUNCH_ITEMS(slot_kernel, BIAS_SLOTS * bias->channels, *bias);\n    compute_unordered(run);\n", ("bias_add_bwd", "ordered"), ""),
    "read beyond the end": Fault(
        "cuda/bias_add_bwd.cu", "cuda/bias_add_bwd.cu", "row < end; row++", "row <= end; row++",
        ("bias_add_bwd", "ordered"), "read of 4 bytes out of bounds"),
}


class Build:
    def __init__(self, folder, build):
        self.folder, self.build = pathlib.Path(folder), build
        self.nvcc, self.compiler, self.link, self.objects, self.libraries = (
            shlex.split(os.environ[name]) for name in ("PTX_NVCC", "PTX_CC", "PTX_LINK", "PTX_OBJECTS", "PTX_LIBS"))

    def plant(self, fault):
        """The options of nvcc, with FAULT in a copy of the file that it is in."""
        options = self.nvcc[1:]
        if not fault.edited:
            assert fault.old in options, f"{fault.old} is no option of the build"
            return [each for each in options if each != fault.old]
        text = (ROOT / fault.edited).read_text()
        assert text.count(fault.old) >= 1, f"{fault.edited} has no '{fault.old}' any more"
        copy = self.folder / fault.edited
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text.replace(fault.old, fault.new, 1))
        return [f"-I{self.folder}", *options]

    def make(self, fault):
        """The worker with FAULT in it, or what the translator said."""
        options = self.plant(fault)
        source = self.folder / fault.source if (self.folder / fault.source).exists() else ROOT / fault.source
        arch = os.environ["PTX_ARCH"]
        ptx, object_file = self.folder / "planted.ptx", self.folder / "planted.o"
        name = fault.source.removesuffix(".cu").replace("/", "__")
        subprocess.run([self.nvcc[0], *options, f"-arch=compute_{arch}", "-ptx", "-o", ptx, source], check=True, cwd=ROOT)
        translated = subprocess.run([sys.executable, ROOT / "tests/ptx/translate.py", "kernels", name, ptx],
                                    capture_output=True, text=True)
        if translated.returncode:
            return None, translated.stderr
        (self.folder / "planted.c").write_text(translated.stdout)
        subprocess.run([self.nvcc[0], *options, f"-arch=sm_{arch}", "-c", "-o", object_file, source], check=True, cwd=ROOT)
        own = f"{self.build}/obj/{fault.source}.o"
        translated_own = f"{self.build}/ptx/{fault.source.removesuffix('.cu')}.ptx.o"
        pairs = [(each.split("/obj/")[1].removesuffix(".cu.o").replace("/", "__"),
                  object_file if each == own else ROOT / each)
                 for each in self.objects if each.endswith(".cu.o")]
        assert own in self.objects and translated_own in self.objects
        (self.folder / "modules.c").write_text(modules_text(pairs))
        for file in ("planted.c", "modules.c"):
            subprocess.run([*self.compiler, "-w", "-c", "-o", self.folder / (file + ".o"), self.folder / file],
                           check=True, cwd=ROOT)
        changed = {own: object_file, translated_own: self.folder / "planted.c.o",
                   f"{self.build}/ptx/modules.o": self.folder / "modules.c.o"}
        worker = self.folder / "worker"
        subprocess.run([*self.link, "-o", worker, *(changed.get(each, each) for each in self.objects),
                        *self.libraries], check=True, cwd=ROOT)
        return worker, ""


def watch(worker, fault):
    """What three watched schedules of --check said, and their digests."""
    said, digests = "", set()
    workload, variant = fault.variant
    for seed in (1, 2, 3):
        _, out, _, error = call(worker, "--check", "--workload", workload, "--variant", variant, seed=seed,
                               watched=fault.watched)
        said += error
        digests.add(out.split('"digest":"')[1][:32] if '"digest":"' in out else "")
    return said, digests


def is_seen(build, name):
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder:
        worker, said = Build(folder, build).make(fault)
        digests = set()
        if worker:
            said, digests = watch(worker, fault)
    if fault.seen:
        return fault.seen in said, said or "nothing"
    return len(digests) == 3 and "" not in digests and not said, said or f"{len(digests)} digests"


def main():
    build, *names = sys.argv[1:]
    missed = 0
    for name in names or FAULTS:
        seen, said = is_seen(build, name)
        missed += not seen
        print(f"{'seen  ' if seen else 'MISSED'} {name}: {said.strip()[-300:]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
