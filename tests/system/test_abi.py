"""Our declarations of cuDNN, cuBLAS and NCCL against the headers of those that are installed."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
FOLDERS = [pathlib.Path(NVCC).resolve().parents[1] / "include", pathlib.Path("/usr/include"),
           pathlib.Path("/usr/local/include")]
LIBRARIES = {"cudnn": "cudnn.h", "cublas": "cublas_v2.h", "nccl": "nccl.h"}
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


def folder_of(header):
    """Where HEADER is together with CUDA's own; skips the test where it is not."""
    for folder in FOLDERS:
        if (folder / header).exists() and any((f / "cuda_runtime.h").exists() for f in FOLDERS):
            return folder
    pytest.skip(f"{header} is not installed")


def expanded(library):
    """abi.h of LIBRARY after the preprocessor, without system headers."""
    text = subprocess.run(["cc", "-E", "-I", str(ROOT), "-x", "c", "-"], text=True, check=True,
                          input=f'#include "cuda/{library}/abi.h"\n', capture_output=True).stdout
    ours, here = [], False
    for line in text.splitlines():
        if line.startswith("# "):
            here = "cuda/" in line and "/abi.h" in line
        elif here:
            ours.append(line)
    return "\n".join(ours)


def names(library):
    """What is declared there: numbers, structs with their members, other types, functions."""
    text = expanded(library)
    numbers = re.findall(r"\b((?:CUDNN|CUBLAS|nccl)\w+) = \d+", text)
    structs = {name: re.findall(r"(\w+)(?:\[\d+\])?;", body) for body, name in
               re.findall(r"typedef struct\s*\{([^}]*)\}\s*(\w+)", text)}
    types = re.findall(r"(?:typedef (?:struct \w+ \*|unsigned )|typedef enum\s*\{[^}]*\}\s*)(\w+_t);",
                       text)
    functions = re.findall(r"\b(\w+)\((?!\()[^()]*\)\s*;", text)
    return numbers, structs, types, functions


def check(library, text=None):
    """A program that compiles where all of it is the same."""
    numbers, structs, types, functions = names(library)
    ours = text or expanded(library)
    lines = ["#include <cuda_runtime.h>", f"#include <{LIBRARIES[library]}>", "namespace ours {",
             ours, "}", '#include "tests/fixtures/abi/same.h"', "TWINS(CUstream_st, CUstream_st)",
             "TWINS(library_property, libraryPropertyType)"]
    # Pointers to structs that nobody looks into are the same type: `struct x` is theirs there.
    lines += [f"TWINS({name}, {name})" for name in [*types, *structs] if f"*{name};" not in ours]
    lines += [f"ALIKE({name}, {name})" for name in [*types, *structs]]
    lines += ["ALIKE(library_property, libraryPropertyType)"]
    lines += [f"SAME_NUMBER({name})" for name in numbers]
    lines += [f"SAME_MEMBER({name}, {member})" for name in structs for member in structs[name]]
    lines += [f"SAME_FUNCTION({name})" for name in functions]
    for ours_name, theirs in ("LIBRARY_MAJOR", "MAJOR_VERSION"), ("LIBRARY_MINOR", "MINOR_VERSION"), \
            ("LIBRARY_PATCH", "PATCH_LEVEL"):
        lines.append(f"static_assert((int)ours::{ours_name} == (int)::{theirs});")
    return "\n".join(lines) + "\n"


def compile_check(compiler, library, text=None):
    """What the compiler complains about; empty when all is the same."""
    folders = [option for folder in dict.fromkeys([folder_of(LIBRARIES[library]), *FOLDERS[:1]])
               if folder != pathlib.Path("/usr/include") for option in ("-isystem", str(folder))]
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-w", "-I", str(ROOT), *folders,
                           "-x", "c++", "-"], input=check(library, text), capture_output=True,
                          text=True)
    assert done.returncode == 0 or "error:" in done.stderr, done.stderr
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_list_is_declared(library):
    """Every function of the table, and nothing else."""
    source = "functions.h" if library == "cudnn" else "loader.h"
    listed = re.findall(r"^    X\((\w+)\)", (ROOT / "cuda" / library / source).read_text(), re.M)
    assert sorted(listed) == sorted(names(library)[3])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_ours_equal_theirs(compiler, library):
    assert compile_check(compiler, library) == ""


def test_the_statuses_of_the_imitation_are_those_of_cudnn():
    """cuDNN 9's: what the simulator's stand-in ends a wrong call with (tests/fixtures/imitation)."""
    text = (ROOT / "tests/fixtures/imitation/cudnn.h").read_text()
    statuses = dict(re.findall(r"X\((CUDNN_STATUS_\w+), (\d+)\)", text))
    lines = [f"static_assert((int){name} == {number}, \"{name}\");"
             for name, number in statuses.items()]
    done = subprocess.run([COMPILERS[0], "-fsyntax-only", "-w", "-isystem",
                           str(folder_of("cudnn.h")), "-x", "c++", "-"], text=True,
                          input="\n".join(["#include <cudnn.h>", *lines]), capture_output=True)
    assert len(statuses) > 10 and done.returncode == 0, done.stderr


@pytest.mark.parametrize("library, right, wrong, complaint", [
    ("cudnn", "CUDNN_POOLING_MAX = 0", "CUDNN_POOLING_MAX = 1", "value of CUDNN_POOLING_MAX"),
    ("cudnn", "size_t memory;", "int memory;", "AlgoPerf_t.memory"),
    ("cudnn", "int reserved[3]", "int reserved[9]", "type cudnnConvolutionFwdAlgoPerf_t"),
    ("cudnn", "size_t workspace_bytes, void *workspace)", "void *workspace, size_t workspace_bytes)",
     "prototype of cudnnCTCLoss_v8"),
    ("cudnn", "typedef unsigned cudnnStatus_t", "typedef int cudnnStatus_t", "type cudnnStatus_t"),
    ("cublas", "long long stride_b", "int stride_b", "prototype of cublasSgemmStridedBatched"),
    ("cublas", "cublasAtomicsMode_t mode", "cublasMath_t mode", "prototype of cublasSetAtomicsMode"),
    ("nccl", "ncclFloat32 = 7", "ncclFloat32 = 6", "value of ncclFloat32"),
    ("nccl", "size_t count", "unsigned count", "prototype of ncclAllReduce"),
])
def test_a_difference_is_found(library, right, wrong, complaint):
    text = re.sub(r"\s+", " ", expanded(library))
    assert right in text
    assert complaint in compile_check(COMPILERS[0], library, text.replace(right, wrong))
