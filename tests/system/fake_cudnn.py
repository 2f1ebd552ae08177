"""Builds libraries that look like cuDNN to its loader (tests/fixtures/cudnn)."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "fixtures" / "cudnn"
PARTS = {8: ["ops_infer", "cnn_infer", "adv_train"], 9: ["ops", "cnn", "adv"]}


def compile_library(path, sources, *options):
    path.parent.mkdir(parents=True, exist_ok=True)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-I", str(ROOT), f"-Wl,-soname,{path.name}",
                    "-Wl,--build-id", "-o", str(path), *options, *map(str, sources), "-ldl"],
                   check=True)
    return path


def build(folder, major, says=None, without=(), refused_rank=-1, mismatch=False):
    """A whole installation of a fake cuDNN MAJOR; returns its folder."""
    folder = pathlib.Path(folder)
    compile_library(folder / f"libcudnn.so.{major}",
                    [SOURCES / "fake_cudnn.c", SOURCES / "fake_cudnn_rest.c"],
                    f"-DFAKE_MAJOR={major}", f"-DFAKE_VERSION={says or major}",
                    f"-DFAKE_REFUSED_RANK={refused_rank}", *(["-DFAKE_ARCH_MISMATCH"] if mismatch else []),
                    *(f"-D{name}=left_out_{name}" for name in without))
    empty = folder / "part.c"
    empty.write_text("int fake_part = 1;\n")
    for part in PARTS[major]:
        compile_library(folder / f"libcudnn_{part}.so.{major}", [empty])
    empty.unlink()
    return folder
