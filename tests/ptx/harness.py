"""PTX that a test wrote, translated, compiled and launched: for the tests of the translator itself."""
import ctypes
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ptx"))

from emit import module_text  # noqa: E402
from parse import parse  # noqa: E402

FLAGS = ["-I", str(ROOT), "-O1", "-fPIC", "-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing", "-fwrapv"]
HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"


def build(text, folder):
    """A library of the kernels of TEXT, with what runs them."""
    source, fiber, library = (pathlib.Path(folder) / name for name in ("kernels.c", "fiber.o", "kernels.so"))
    source.write_text(module_text(parse(HEAD + text), "test"))
    subprocess.run(["g++", "-std=c++20", *FLAGS, "-c", "-o", fiber, ROOT / "tests/simulator/fiber.cpp"], check=True)
    subprocess.run(["gcc", "-std=gnu17", *FLAGS, "-w", "-shared", "-o", library, source, fiber,
                    ROOT / "tests/ptx/schedule.c", ROOT / "tests/ptx/shadow.c", "-lstdc++", "-lm"], check=True)
    return library


class Launch(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3),
                ("shared_bytes", ctypes.c_uint32), ("args", ctypes.POINTER(ctypes.c_void_p))]


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("run", ctypes.c_void_p), ("params", ctypes.c_int),
                ("param_bytes", ctypes.c_void_p), ("shared_bytes", ctypes.c_uint32),
                ("threads_max", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


def launch(library, name, words, grid=1, block=1, dynamic=0, written=True):
    """WORDS, 64 bits each, are at the kernel's one parameter; gives them as the kernel left them."""
    loaded = ctypes.CDLL(str(library))
    loaded.shadow_allocate.restype = ctypes.c_void_p
    loaded.shadow_written.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    size = 8 * len(words)
    memory = loaded.shadow_allocate(ctypes.c_size_t(size))
    array = (ctypes.c_uint64 * len(words)).from_address(memory)
    array[:] = words
    if written:
        loaded.shadow_written(memory, size)
    kernels = (Kernel * 1000).in_dll(loaded, "ptx_kernels_test")
    for kernel in kernels:
        if kernel.name == name.encode():
            break
    pointer = ctypes.c_uint64(memory)
    args = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    loaded.schedule_run(ctypes.byref(Launch(ctypes.addressof(kernel), (grid, 1, 1), (block, 1, 1),
                                            kernel.shared_bytes + dynamic, args)))
    return list(array)


def launch_apart(library, name, words, seed=0, check="", **shape):
    """The same in a process of its own, which a fault may end: (words or None, standard error)."""
    program = ("import sys; sys.path.insert(0, sys.argv[1]); import harness; "
               "print(*harness.launch(sys.argv[2], sys.argv[3], eval(sys.argv[4]), **eval(sys.argv[5])))")
    done = subprocess.run([sys.executable, "-c", program, str(ROOT / "tests" / "ptx"), str(library), name,
                           repr(words), repr(shape)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "REPROD_PTX_SEED": str(seed), "REPROD_PTX_CHECK": check})
    return ([int(each) for each in done.stdout.split()] if done.returncode == 0 else None), done.stderr
