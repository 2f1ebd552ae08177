"""A framework's run has the circumstances that it says it had, or it is no result."""
import pathlib
import resource
import subprocess
import sys

import pytest

from service import ROOT

FRAMEWORKS = ROOT / "workloads" / "frameworks"
LOAD = FRAMEWORKS / "load.py"
BEGIN = f"""
import argparse, ctypes, os, subprocess, sys
sys.path.insert(0, {str(FRAMEWORKS)!r})
import circumstances

def begun(**asked):
    options = argparse.Namespace(contention=None, memory_poison=None, allocation_jitter=None, threads=1, fork=False)
    vars(options).update(asked)
    under = circumstances.Circumstances(options, "cpu")
    under.begin()
    return under
"""
POISONED = BEGIN + """
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
under = begun(memory_poison=sys.argv[1])
for size in (5000, 100000, 1 << 20):
    block = ctypes.string_at(libc.malloc(size), size)
    assert set(block) == {int(sys.argv[1][:2], 16)}, (size, set(block))
assert under.said == {"memory_poison": sys.argv[1]}
"""
FEWER = BEGIN + """
start, started = subprocess.Popen, []

def fewer(*arguments, **options):
    if len(started) == 2:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    started.append(start(*arguments, **options))
    return started[-1]

subprocess.Popen = fewer
under = begun(contention=3)
print(under.broken())
under.end()
assert all(process.returncode is not None for process in started)
"""


def python(text, *arguments):
    return subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=300)


def load(**options):
    return subprocess.Popen([sys.executable, "-I", "-S", "-B", LOAD, "2"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("word", ["ffffffff", "00000000", "a5a5a5a5"])
def test_memory_is_filled_with_what_the_run_says(word):
    ended = python(POISONED, word)
    assert ended.returncode == 0, ended.stderr


def test_load_that_cannot_be_started_is_missed():
    ended = python(FEWER)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "1 of 3 load processes could not be started\n"


def test_load_has_memory_of_its_own():
    """Memory that nothing was written to is one page, in every cache."""
    process = load()
    try:
        assert process.stdout.readline() == b"computing\n"
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        assert int(status.partition("RssAnon:")[2].split()[0]) >= 16 << 10
    finally:
        process.kill()
        process.communicate()


def test_load_without_memory_ends():
    """It does not say that it computes."""
    process = load(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (26 << 20, 26 << 20)))
    said, _ = process.communicate(timeout=300)
    assert said == b"" and process.returncode != 0
