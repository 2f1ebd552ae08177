"""A run whose libraries come from two installations is no evidence about either."""
import os
import subprocess

import pytest

from test_worker import WORKER, check_protocol, run

# Loads a library when the first iteration is timed, as cuDNN loads parts of itself.
LATE = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int loaded;
    if (!loaded++ && !dlopen(getenv("LATE"), RTLD_NOW))
        abort();
    return (int)syscall(SYS_clock_gettime, clock, time);
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that makes an empty library (or one of a SOURCE) of that name."""
    folder = tmp_path_factory.mktemp("libraries")

    def make(name, source="int nothing;\n"):
        library = folder / name
        library.parent.mkdir(exist_ok=True)
        code = folder / "code.c"
        code.write_text(source)
        subprocess.run([os.environ.get("CC", "cc"), "-D_GNU_SOURCE", "-shared", "-fPIC",
                        "-Wl,--build-id", "-o", str(library), str(code), "-ldl"], check=True)
        return str(library)

    return make


def run_with(*libraries, late=None):
    env = {"LD_PRELOAD": ":".join(libraries), "LATE": late or ""}
    return run("reduce_sum", binary=WORKER, env=env, iterations=2)


@pytest.mark.parametrize("title, first, second", [
    ("cuDNN", "libcudnn.so.9", "libcudnn_ops.so.9"),
    ("cuDNN", "libcudnn_ops_infer.so.8", "libcudnn_cnn_train.so.8"),
    ("cuBLAS", "libcublas.so.13", "libcublasLt.so.13"),
    ("NVRTC", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"),
    ("NCCL", "libnccl.so.2", "libnccl.so.2.28"),
])
def test_two_directories(compiled, title, first, second):
    mine, other = compiled(f"a/{first}"), compiled(f"b/{second}")
    start, iterations, end = check_protocol(run_with(mine, other), 2, "infra")
    assert end["cause"] == f"{title} is mixed from several installations: {mine} and {other}"
    assert iterations == []
    assert {mine, other} <= {library["path"] for library in start["libraries"]}
    check_protocol(run_with(mine, compiled(f"a/{second}")), 2)


def test_two_libraries_may_lie_apart(compiled):
    check_protocol(run_with(compiled("a/libcudnn.so.9"), compiled("b/libcublas.so.13"),
                            compiled("c/libnccl-net.so"), compiled("d/libnccl.so.2")), 2)


def test_what_was_loaded_during_the_computation(compiled):
    late = compiled("late/liblate.so", LATE)
    mine, other = compiled("a/libcudnn.so.9"), compiled("b/libcudnn_adv.so.9")
    ended = run_with(late, mine, late=other)
    start, *iterations, end = ended.events
    assert len(iterations) == 2 and end["outcome"] == "infra"
    assert end["cause"].startswith("cuDNN is mixed from several installations: ")
    assert other not in {library["path"] for library in start["libraries"]}
    assert {mine, other} <= {library["path"] for library in end["libraries"]}
    same = compiled("a/libcudnn_adv.so.9")
    _, _, end = check_protocol(run_with(late, mine, late=same), 2)
    assert same in {library["path"] for library in end["libraries"]}
    _, _, end = check_protocol(run_with(mine), 2)
    assert "libraries" not in end, "the same as in start"
