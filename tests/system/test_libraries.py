"""The libraries of a stack, loaded by the code of the CUDA worker without a GPU: what is there,
what is not, and what is damaged."""
import os
import shutil
import subprocess

import pytest

import fake_cudnn
from service import BUILD

TRY = BUILD / "tests" / "try-libraries"

pytestmark = pytest.mark.skipif(not TRY.exists(), reason="built for the plain flavour only")


def say(what="cudnn", *path):
    """The lines that the loaders print with that library path."""
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":".join(map(str, path))}
    done = subprocess.run([str(TRY), what], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


@pytest.fixture(scope="module", params=[8, 9])
def fake(request, tmp_path_factory):
    """A fake cuDNN: its major version and its folder, which no test changes."""
    folder = tmp_path_factory.mktemp(f"cudnn{request.param}")
    return request.param, fake_cudnn.build(folder, request.param)


@pytest.fixture
def copy(fake, tmp_path):
    major, folder = fake
    return major, shutil.copytree(folder, tmp_path / "copy")


def test_both_majors_load(fake):
    major, folder = fake
    version, *_, ctc, end = say("cudnn", folder)
    assert version == f"cudnn: {major}.2.3"
    assert ctc == "ctc: ok"
    words = ": the fake has no GPU" if major == 9 else ""
    assert end == f"infra: cuDNN {major}.2.3: cudnnCreate: FAKE_NOT_INITIALIZED{words}"


def test_the_path_comes_before_the_system(fake):
    """Also where the system has a newer major."""
    major, folder = fake
    assert say("cudnn", "/nonexistent", folder, "/usr/local/cuda/lib64")[0] == \
        f"cudnn: {major}.2.3"


def test_the_first_of_two_installations_counts(tmp_path):
    eight = fake_cudnn.build(tmp_path / "eight", 8)
    nine = fake_cudnn.build(tmp_path / "nine", 9)
    assert say("cudnn", eight, nine)[0] == "cudnn: 8.2.3"
    assert say("cudnn", nine, eight)[0] == "cudnn: 9.2.3"


@pytest.mark.parametrize("mismatch", [False, True], ids=["not-supported", "arch-mismatch"])
def test_not_supported_has_another_number_in_each_major(mismatch, tmp_path):
    for major in 8, 9:
        folder = fake_cudnn.build(tmp_path / str(major), major, refused_rank=3, mismatch=mismatch)
        end = say("cudnn", folder)[-1]
        assert end.startswith(f"unsupported: cuDNN {major}.2.3: cudnnSetTensorNdDescriptor: "
                              "FAKE_NOT_SUPPORTED")


@pytest.mark.parametrize("keep", [0, 10, 64, 5000, -1])
def test_a_truncated_library(copy, keep):
    """Without a look at its length the process would be killed by SIGBUS."""
    major, folder = copy
    for name in f"libcudnn.so.{major}", f"libcudnn_{fake_cudnn.PARTS[major][-1]}.so.{major}":
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[:keep])
        [end] = say("cudnn", folder)
        assert end.startswith(f"infra: cuDNN: {folder / name}: is "), end
        (folder / name).write_bytes(whole)


@pytest.mark.parametrize("damage, words", [
    (lambda whole: b"#!/bin/sh\n" * 1000, "is no 64-bit ELF file"),
    (lambda whole: whole[:4] + b"\1" + whole[5:], "is no 64-bit ELF file"),
    (lambda whole: whole[:56] + b"\xff\xff" + whole[58:], "program headers that cannot be right"),
    (lambda whole: whole[:32] + b"\xff" * 8 + whole[40:], "is truncated"),
])
def test_a_file_that_is_something_else(copy, damage, words):
    major, folder = copy
    library = folder / f"libcudnn.so.{major}"
    library.write_bytes(damage(library.read_bytes()))
    [end] = say("cudnn", folder)
    assert end.startswith(f"infra: cuDNN: {library}: ") and words in end


def test_a_folder_in_its_place(copy):
    major, folder = copy
    library = folder / f"libcudnn.so.{major}"
    library.unlink()
    library.mkdir()
    assert say("cudnn", folder) == [f"infra: cuDNN: {library}: is not a file"]


def test_a_missing_function(fake, tmp_path):
    major, _ = fake
    folder = fake_cudnn.build(tmp_path, major, without=["cudnnPoolingBackward"])
    assert say("cudnn", folder) == [
        f"unsupported: cuDNN {major}.2.3 ({folder}/libcudnn.so.{major}) has no function "
        "cudnnPoolingBackward"]


def test_a_file_that_says_another_version(fake, tmp_path):
    major, _ = fake
    for says in 7, 17 - major, 10:
        folder = fake_cudnn.build(tmp_path / str(says), major, says=says)
        [end] = say("cudnn", folder)
        assert end.startswith(f"unsupported: {folder}/libcudnn.so.{major} is cuDNN {says}.2.3;")


def test_a_major_that_is_not_spoken(copy):
    major, folder = copy
    (folder / f"libcudnn.so.{major}").rename(folder / "libcudnn.so.10")
    [end] = say("cudnn", folder)
    assert end == (f"unsupported: cuDNN: the stack's library path has {folder}/libcudnn.so.10; "
                   "what can be used is libcudnn.so.9")


def test_a_part_from_another_installation(copy, fake, tmp_path):
    """The dynamic linker takes what one lacks from the next, without a word."""
    major, folder = copy
    (folder / f"libcudnn_{fake_cudnn.PARTS[major][-1]}.so.{major}").unlink()
    end = say("cudnn", folder, fake[1])[-1]
    assert end.startswith("infra: cuDNN is mixed from several installations: ")
    assert str(folder) in end and str(fake[1]) in end


def test_links_to_one_installation_are_no_mixture(fake, tmp_path):
    major, folder = fake
    for library in folder.iterdir():
        (tmp_path / library.name).symlink_to(library)
    (tmp_path / f"libcudnn_{fake_cudnn.PARTS[major][-1]}.so.{major}").unlink()
    assert "mixed" not in say("cudnn", tmp_path, folder)[-1]


def test_a_library_that_needs_another(tmp_path):
    """It is there, and cannot be loaded: the installation is broken."""
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    needed = fake_cudnn.compile_library(tmp_path / "a" / "libneeded.so.1", [source])
    folder = tmp_path / "b"
    fake_cudnn.compile_library(folder / "libcudnn.so.9", [source], "-Wl,--no-as-needed",
                               str(needed))
    [end] = say("cudnn", folder)
    assert end.startswith("infra: cuDNN: libneeded.so.1: cannot open shared object file")


@pytest.mark.parametrize("what, library", [("cublas", "libcublas.so.12"), ("nccl", "libnccl.so.2")])
def test_others_are_checked_alike(what, library, tmp_path):
    (tmp_path / library).write_bytes(b"\x7fELF")
    [end] = say(what, tmp_path)
    assert end.startswith("infra: ") and str(tmp_path / library) in end
    (tmp_path / library).unlink()
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    fake_cudnn.compile_library(tmp_path / library, [source])
    [end] = say(what, tmp_path)
    assert end.startswith("unsupported: ") and "has no function" in end
