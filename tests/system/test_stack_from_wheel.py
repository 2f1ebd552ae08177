"""deploy/stack-from-wheel with small wheels of a library that looks like cuDNN."""
import base64
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile

import pytest

import fake_cudnn
from service import BUILD, ROOT

SCRIPT = ROOT / "deploy" / "stack-from-wheel"
REAL_WORKER = BUILD / "reprod-worker-cuda"
# Stands for the worker where that is not built: says what the library says.
WORKER = """#!/usr/bin/env python3
import ctypes, json, os
folder = os.environ["LD_LIBRARY_PATH"].split(":")[0]
name = next(n for n in sorted(os.listdir(folder)) if n.startswith("libcudnn.so."))
library, value, parts = None, ctypes.c_int(), []
try:
    library = ctypes.CDLL(os.path.join(folder, name))
    for i in range(3):
        library.cudnnGetProperty(i, ctypes.byref(value))
        parts.append(str(value.value))
except OSError as error:
    print(json.dumps({"versions": {}, "problems": {"cudnn": str(error)}}))
else:
    print(json.dumps({"versions": {"cudnn": ".".join(parts), "cublas": "13 build x"}}))
"""
needs_real_worker = pytest.mark.skipif(not REAL_WORKER.exists(), reason="CUDA is not built")


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    if REAL_WORKER.exists():
        return REAL_WORKER
    script = tmp_path_factory.mktemp("worker") / "reprod-worker-cuda"
    script.write_text(WORKER)
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module", params=[pytest.param(8, marks=pytest.mark.long), 9])
def major(request):
    return request.param


@pytest.fixture(scope="module")
def installation(major, tmp_path_factory):
    return fake_cudnn.build(tmp_path_factory.mktemp("fake"), major)


def checksum(content):
    return "sha256=" + base64.urlsafe_b64encode(
        hashlib.sha256(content).digest()).rstrip(b"=").decode()


def make_wheel(folder, files, name="nvidia-cudnn-cu13", version="9.2.3.1", record=None,
               machine=None):
    """FILES: member: content.  RECORD replaces checksums."""
    stem = name.replace("-", "_")
    wheel = folder / f"{stem}-{version}-py3-none-manylinux_2_27_{machine or platform.machine()}.whl"
    info = f"{stem}-{version}.dist-info"
    sums = {**{member: checksum(content) for member, content in files.items()}, **(record or {})}
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for member, content in files.items():
            out.writestr(member, content)
        out.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        out.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        out.writestr(f"{info}/RECORD", "".join(f"{m},{s},1\n" for m, s in sums.items()))
    return wheel


def library_files(installation):
    return {f"nvidia/cudnn/lib/{path.name}": path.read_bytes()
            for path in sorted(installation.iterdir())}


@pytest.fixture
def wheel(installation, major, tmp_path):
    files = {**library_files(installation), "nvidia/cudnn/include/cudnn.h": b"",
             "nvidia/cudnn/lib/../../../outside.so.1": b"no", "nvidia/cudnn/lib/__init__.py": b""}
    return make_wheel(tmp_path, files, version=f"{major}.2.3.1")


def install(worker, into, *arguments, env=None):
    return subprocess.run([sys.executable, str(SCRIPT), "--into", str(into), "--worker", str(worker),
                           *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, **(env or {})})


def refuse(worker, into, *arguments):
    """Its message; nothing may be left behind."""
    before = sorted(into.rglob("*")) if into.exists() else []
    done = install(worker, into, *arguments)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("stack-from-wheel: ") and done.stderr.count("\n") == 1, done.stderr
    assert (sorted(into.rglob("*")) if into.exists() else []) == before
    return done.stderr.strip()


def test_a_stack(worker, wheel, major, installation, tmp_path):
    into = tmp_path / "stacks"
    done = install(worker, into, wheel)
    assert done.returncode == 0, done.stderr
    folder = into / f"cudnn-{major}.2.3"
    assert json.loads(done.stdout) == {"name": folder.name, "worker": str(worker),
                                       "library_path": str(folder / "lib")}
    assert sorted(os.listdir(into)) == [folder.name]
    assert sorted(os.listdir(folder)) == ["lib", "wheels.json"]
    assert sorted(os.listdir(folder / "lib")) == sorted(os.listdir(installation))
    for path in installation.iterdir():
        assert (folder / "lib" / path.name).read_bytes() == path.read_bytes()
    [facts] = json.loads((folder / "wheels.json").read_text())
    assert facts["version"] == f"{major}.2.3.1" and facts["wheel"] == wheel.name
    assert not list(tmp_path.glob("**/outside*"))


def test_nothing_is_overwritten(worker, wheel, major, tmp_path):
    into = tmp_path / "stacks"
    assert install(worker, into, wheel).returncode == 0
    assert "exists: remove it first" in refuse(worker, into, wheel)
    assert install(worker, into, wheel, "--name", "other").returncode == 0
    (into / "dangling").symlink_to("nowhere")
    assert "exists" in refuse(worker, into, wheel, "--name", "dangling")


def test_a_library_path_of_more(worker, wheel, tmp_path):
    compat = tmp_path / "compat"
    compat.mkdir()
    done = install(worker, tmp_path / "stacks", wheel, "--library-path", compat)
    assert json.loads(done.stdout)["library_path"].endswith(f"/lib:{compat}")
    done = install(worker, tmp_path / "stacks", wheel, "--library-path", "compat")
    assert done.returncode == 2 and "not the absolute path" in done.stderr


def test_two_wheels_make_one_stack(worker, wheel, tmp_path):
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    cublas = fake_cudnn.compile_library(tmp_path / "b" / "libcublas.so.13", [source])
    second = make_wheel(tmp_path, {"nvidia/cublas/lib/libcublas.so.13": cublas.read_bytes()},
                        name="nvidia-cublas", version="13.1.0.3")
    done = install(worker, tmp_path / "stacks", wheel, second)
    assert done.returncode == 0 and done.stderr == ""
    folder = json.loads(done.stdout)["library_path"]
    assert "libcublas.so.13" in os.listdir(folder)


def test_a_cublas_of_another_major_is_told(worker, installation, major, tmp_path):
    wheel = make_wheel(tmp_path, library_files(installation), name="nvidia-cudnn-cu11",
                       version=f"{major}.2.3.1")
    done = install(worker, tmp_path / "stacks", wheel)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: this cuDNN is for CUDA 11, and the cuBLAS")


@pytest.mark.parametrize("break_it, words", [
    (lambda wheel: wheel.write_bytes(wheel.read_bytes()[:5000]), "File is not a zip file"),
    (lambda wheel: wheel.write_bytes(b""), "File is not a zip file"),
    (lambda wheel: wheel.unlink(), "No such file"),
])
def test_a_damaged_wheel(worker, wheel, tmp_path, break_it, words):
    break_it(wheel)
    assert words in refuse(worker, tmp_path / "stacks", wheel)


def test_a_bit_that_flipped_in_the_wheel(worker, wheel, tmp_path):
    with zipfile.ZipFile(wheel) as file:
        info = max(file.infolist(), key=lambda entry: entry.compress_size)
    content = bytearray(wheel.read_bytes())
    content[info.header_offset + 30 + len(info.filename) + info.compress_size // 2] ^= 1
    wheel.write_bytes(content)
    refuse(worker, tmp_path / "stacks", wheel)


@pytest.mark.parametrize("record, words", [
    (checksum(b"else"), "is not what the wheel's RECORD says"),
    ("", "has no SHA-256"),
    ("md5=abc", "has no SHA-256"),
])
def test_contents_that_the_record_does_not_vouch_for(worker, installation, major, tmp_path, record,
                                                     words):
    files = library_files(installation)
    wheel = make_wheel(tmp_path, files, version=f"{major}.2.3.1",
                       record={f"nvidia/cudnn/lib/libcudnn.so.{major}": record})
    assert words in refuse(worker, tmp_path / "stacks", wheel)


def test_wheels_that_make_no_stack(worker, installation, wheel, major, tmp_path):
    into, apart = tmp_path / "stacks", tmp_path / "apart"
    apart.mkdir()
    empty = make_wheel(apart, {"nvidia/cudnn/include/cudnn.h": b""})
    assert "has no shared library" in refuse(worker, into, empty)
    other = make_wheel(apart, {"nvidia/cublas/lib/libcublas.so.13": b"x"}, name="nvidia-cublas")
    assert "one of the wheels must be cuDNN's" in refuse(worker, into, other)
    assert "2 of them have libcudnn.so" in refuse(worker, into, wheel, wheel)
    part = f"libcudnn_{fake_cudnn.PARTS[major][0]}.so.{major}"
    twice = make_wheel(apart, {f"nvidia/other/lib/{part}": b"x"}, name="nvidia-other")
    assert f"{part} is in another wheel too" in refuse(worker, into, wheel, twice)
    foreign = make_wheel(apart, library_files(installation), machine="s390x")
    assert "is for manylinux_2_27_s390x" in refuse(worker, into, foreign)
    with zipfile.ZipFile(apart / "plain.whl", "w") as out:
        out.writestr("readme", "x")
    assert "not a Python wheel" in refuse(worker, into, apart / "plain.whl")


def test_a_version_that_is_another(worker, installation, major, tmp_path):
    wheel = make_wheel(tmp_path, library_files(installation), version=f"{major}.7.0.1")
    assert f"finds cuDNN {major}.2.3 instead of {major}.7.0" in \
        refuse(worker, tmp_path / "stacks", wheel)


@needs_real_worker
def test_libraries_that_cannot_be_used(installation, major, tmp_path):
    files = library_files(installation)
    main = f"nvidia/cudnn/lib/libcudnn.so.{major}"
    cut = make_wheel(tmp_path, {**files, main: files[main][:6000]}, version=f"{major}.2.3.1")
    message = refuse(REAL_WORKER, tmp_path / "stacks", cut)
    assert "the worker cannot use it: " in message and "is truncated" in message
    lacking = fake_cudnn.build(tmp_path / "lacking", major, without=["cudnnCTCLoss"])
    wheel = make_wheel(tmp_path, library_files(lacking), version=f"{major}.2.3.1")
    assert "has no function cudnnCTCLoss" in refuse(REAL_WORKER, tmp_path / "stacks", wheel)


@pytest.mark.parametrize("program, words", [
    ("#!/bin/sh\nkill -BUS $$\n", "ended with signal 7"),
    ("#!/bin/sh\necho no >&2; exit 3\n", "ended with status 3: no"),
    ("#!/bin/sh\necho '{}'\n", "finds cuDNN None instead"),
])
def test_a_worker_that_fails(wheel, tmp_path, program, words):
    bad = tmp_path / "bad"
    bad.write_text(program)
    bad.chmod(0o755)
    assert words in refuse(bad, tmp_path / "stacks", wheel)
    assert "not a program" in refuse(tmp_path / "none", tmp_path / "stacks", wheel)


def test_the_configuration(worker, wheel, major, tmp_path):
    config, into = tmp_path / "reprod.json", tmp_path / "stacks"
    first = json.loads(install(worker, into, wheel, "--config", config).stdout)
    assert json.loads(config.read_text()) == {
        "stacks": [{"name": "cpu"}, {"name": "cuda", "worker": str(worker)}, first]}
    config.chmod(0o600)
    config.write_text(json.dumps({"survey": False, "stacks": [first]}))
    second = json.loads(install(worker, into, wheel, "--config", config, "--name", "b").stdout)
    assert json.loads(config.read_text()) == {"survey": False, "stacks": [first, second]}
    assert config.stat().st_mode & 0o777 == 0o600
    shutil.rmtree(into / "b")
    assert "has a stack 'b' already" in refuse(worker, into, wheel, "--config", config, "--name", "b")
    for content in "{", "[]", '{"stacks":{}}', '{"stacks":[1]}':
        config.write_text(content)
        refuse(worker, into, wheel, "--config", config, "--name", "c")
        assert config.read_text() == content


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "", "x" * 64, "a b"])
def test_names(worker, wheel, tmp_path, name):
    done = install(worker, tmp_path / "stacks", wheel, f"--name={name or ' '}")
    assert done.returncode == 2 and "is not a name" in done.stderr


def has_pip():
    return subprocess.run([sys.executable, "-m", "pip", "--version"],
                          capture_output=True).returncode == 0


@pytest.mark.skipif(not has_pip(), reason="this Python has no pip")
def test_downloading(worker, wheel, major, tmp_path):
    """From a folder of wheels: no network."""
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    into = tmp_path / "stacks"
    done = install(worker, into, "--version", f"{major}.2.3.1", "--cuda", "13", env=env)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(into)) == [f"cudnn-{major}.2.3"]
    done = install(worker, into, "--version", "9.9.9", "--name", "x", env=env)
    assert done.returncode == 1 and "pip download nvidia-cudnn-cu12==9.9.9: ERROR" in done.stderr
    done = install(worker, into, "--version", "9.2.3", wheel)
    assert done.returncode == 2
