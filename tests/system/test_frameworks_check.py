"""The document that a check of frameworks writes says what was found, and nothing else."""
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "frameworks"))
import check_frameworks as check  # noqa: E402
import render  # noqa: E402

SILENT = "the control did not vary in 3 runs"


def cell(verdict, reason=SILENT):
    return {"verdict": verdict, "reason": reason, "challenge": "passed"}


def version(name, cells, **more):
    return {"stack": name, "environment": "0" * 32, "facts": {"torch": name.partition("-")[2], "threads": 2},
            "unmeasured": [], "cells": cells, "causes": {}, **more}


@pytest.fixture
def found():
    return {"framework": "pytorch", "runs": 3, "iterations": 5, "processes": 99, "seconds": 7,
            "titles": {"pytorch_a": "a", "pytorch_b": "b", "pytorch_c": "c"},
            "versions": [
                version("pytorch-1", {"pytorch_a/default": cell("varies"),
                                      "pytorch_a/deterministic": cell("reproducible"),
                                      "pytorch_b/default": cell("inconclusive"),
                                      "pytorch_b/deterministic": cell("unsupported")},
                        causes={"pytorch_b/deterministic": "b does not"}, unmeasured=["torch.new"]),
                version("pytorch-2", {"pytorch_a/default": cell("varies"),
                                      "pytorch_a/deterministic": cell("varies"),
                                      "pytorch_b/default": cell("inconclusive"),
                                      "pytorch_b/deterministic": cell("inconclusive", "not challenged"),
                                      "pytorch_c/default": cell("inconclusive")})],
            "drift": [{"title": "torch 1 → 2", "headline": "1 case varies now.", "kinds": {
                "pytorch_a/default": "varies", "pytorch_a/deterministic": "varies_now",
                "pytorch_b/default": "bits_changed", "pytorch_c/default": "appeared"}}]}


def test_rows(found):
    assert render.head(found) == ["operation", "1 default", "1 deterministic", "2 default",
                                  "2 deterministic", "bits"]
    assert list(render.rows(found)) == [
        ["pytorch_a", "varies", "reproducible", "varies", "varies",
         "default: varies in both, deterministic: varies now"],
        ["pytorch_b", "did not vary", "raises", "did not vary", "inconclusive", "other bits"],
        ["pytorch_c", "not there", "not there", "did not vary", "not there", "new"]]


def test_document(found):
    machine = {"model": "EPYC", "processors": 2, "vector_isa": "avx2", "libc": "glibc", "kernel": "6"}
    text = render.document({"machine": machine, "date": "2026-11-24", "command": "make it",
                            "frameworks": [found]})
    assert "Measured and written by `make it`" in text and "2026-11-24 on EPYC" in text
    assert "- **pytorch-1** (torch 1): 2 operations, 1 varied by themselves: `pytorch_a`." in text
    assert "  - `deterministic` cured of these: `pytorch_a`." in text
    assert "  - `deterministic` varied with it: `pytorch_a`." in text
    assert "  - `deterministic` raised: `pytorch_b`." in text
    assert "  - `pytorch_b/deterministic` said: “b does not”" in text
    assert "Documented and not measured: `torch.new`." in text
    assert "Other bits: `pytorch_b`." in text
    assert text.count("| pytorch_") == 3
    assert render.text(found).count("\npytorch_") == 3


def test_a_green_word_needs_a_green_verdict():
    for verdict in "varies", "inconclusive", "unsupported", "failing", "unmeasured", "stale":
        assert "reproducible" not in render.word(cell(verdict))
    assert render.word(None) == "not there"


def test_an_installed_version_is_asked_with_the_packs_of_this_tree(tmp_path):
    """The cache outlives the tree that filled it."""
    folder = tmp_path / "jax-1.0"
    folder.mkdir()
    (folder / "worker").write_text("#!/bin/sh\nunset PYTHONPATH\nexec '/opt/a b/python' -s -B /gone/worker.py --pack"
                                   " /gone/pack_jax.py --packages /gone/lib \"$@\"\n")
    (tmp_path / "programs").mkdir()
    program = check.own_worker(folder, "jax", tmp_path / "programs")
    packs = ROOT / "workloads" / "frameworks"
    assert program.read_text().splitlines()[-1] == (
        f"exec '/opt/a b/python' -s -B {packs}/worker.py --pack {packs}/pack_jax.py --packages {folder}/lib \"$@\"")
    assert "/gone" not in program.read_text() and program.stat().st_mode & 0o111
