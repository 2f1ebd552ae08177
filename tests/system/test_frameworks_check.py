"""The document that a check of frameworks writes says what was found, and nothing else."""
import argparse
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "frameworks"))
import check_frameworks as check  # noqa: E402
import render  # noqa: E402

SILENT = "the control did not vary in 3 runs"


def cell(verdict, reason=SILENT, witness=None):
    return {"verdict": verdict, "reason": reason, "challenge": "passed", "witness": witness}


def version(name, cells, **more):
    return {"stack": name, "environment": "0" * 32, "facts": {"torch": name.partition("-")[2], "threads": 2},
            "unmeasured": [], "cells": cells, "causes": {}, "processes": 99, "imports": 6, "seconds": 7, "load": 0.5,
            "sample": {"same": ["pytorch_b"], "other": []}, "search": None, **more}


@pytest.fixture
def found():
    return {"framework": "pytorch", "runs": 3, "iterations": 5, "shared": True, "date": "2026-11-24",
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


def test_what_is_witnessed_has_a_word_of_its_own(found):
    """And only where nothing but the control is missing."""
    cells = found["versions"][0]["cells"]
    cells["pytorch_b/default"] = cell("inconclusive", witness="pytorch_a/default")
    cells["pytorch_b/deterministic"] = cell("inconclusive", "not challenged", witness="pytorch_a/default")
    assert list(render.rows(found))[1][1:3] == ["witnessed", "inconclusive"]
    assert "  - Witnesses: `pytorch_a/default`." in render.summary(found)


def test_what_a_version_lacks_is_not_what_it_refuses(found):
    """The pack says the one, and the framework the other."""
    found["versions"][0]["causes"]["pytorch_b/deterministic"] = "PyTorch 1 has no switch; it came with 2"
    assert list(render.rows(found))[1][2] == "lacks"
    lines = render.summary(found)
    assert "  - `deterministic` is not in this version, for: `pytorch_b`." in lines and not any("raised" in line for line in lines)
    assert "  - `pytorch_b/deterministic`: “PyTorch 1 has no switch; it came with 2”" in lines


def test_document(found):
    machine = {"model": "EPYC", "processors": 2, "vector_isa": "avx2", "libc": "glibc", "kernel": "6"}
    text = render.document({"machine": machine, "command": "make it",
                            "frameworks": [found]})
    assert "Measured and written by `make it`" in text and "2026-11-24 on EPYC" in text
    joined = render.document({"machine": machine, "command": "make it", "frameworks": [found], "joined": True})
    assert "by `make it`, in parts, which GO_ON joined: nothing" in joined and "GO_ON" not in text
    assert "- **pytorch-1** (torch 1): 2 operations, 1 varied: `pytorch_a`." in text
    assert "  - `deterministic` cured of these: `pytorch_a`." in text
    assert "  - `deterministic` varied with it: `pytorch_a`." in text
    assert "  - `deterministic` raised: `pytorch_b`." in text
    assert "  - `pytorch_b/deterministic` said: “b does not”" in text
    assert "Documented and not measured: `torch.new`." in text
    assert "Other bits: `pytorch_b`." in text
    assert text.count("| pytorch_") == 3
    assert render.text(found).count("\npytorch_") == 3


def test_the_document_says_whose_processes_the_runs_were(found):
    first, one, two = render.time_lines(found)
    assert "3 runs of 5 iterations" in first and "One process imported the framework and forked" in first
    assert one.startswith("pytorch-1: 99 processes of 6 imports, challenges among them, in 7 s, at a load of 0.5.")
    assert one.endswith("Fresh processes had the same bits in 1 of 1 operations that they were asked for.")
    found["versions"][0]["sample"]["other"] = ["pytorch_c"]
    assert render.time_lines(found)[1].endswith("in 1 of 2 operations that they were asked for; other bits: `pytorch_c`.")
    found["shared"] = False
    found["versions"][1]["sample"] = None
    first, _, two = render.time_lines(found)
    assert "Each run is a fresh process" in first and "forked" not in first
    assert two == "pytorch-2: 99 processes, challenges among them, in 7 s, at a load of 0.5."


def test_the_document_says_what_was_searched(found):
    found["versions"][0]["search"] = {
        "under": {"contention": 2}, "operations": 3, "varied": ["pytorch_b"], "threads": 4, "wide": 2,
        "varied_wide": ["pytorch_a", "pytorch_c"], "cured_wide": {"deterministic": ["pytorch_a"]}}
    found["versions"][1]["search"] = {"under": {"contention": 1}, "operations": 0, "varied": [], "threads": 4,
                                      "wide": 0, "varied_wide": [], "cured_wide": {}}
    _, one, two = render.time_lines(found)
    assert one.endswith(" 3 operations had not varied by themselves, and were measured with 2 load processes, filled memory"
                        " and moved allocations; of these varied: `pytorch_b`. 2 had not varied then, and were measured in"
                        " the size large with 4 threads, filled memory and moved allocations; of these varied: `pytorch_a`,"
                        " `pytorch_c`. There `deterministic` cured `pytorch_a`.")
    assert "load process" not in two
    found["versions"][0]["search"].update(under={"contention": 1}, varied=["pytorch_a", "pytorch_b", "pytorch_c"], wide=0,
                                          varied_wide=[], cured_wide={})
    _, one, _ = render.time_lines(found)
    assert "with 1 load process, filled" in one and one.endswith("`pytorch_b`, `pytorch_c`.")


def test_the_document_does_not_say_by_themselves_of_what_varied_under_load(found):
    found["versions"][0]["search"] = {"under": check.SEARCHED, "operations": 1, "varied": ["pytorch_a"], "threads": 4,
                                      "wide": 0, "varied_wide": [], "cured_wide": {}}
    assert "1 varied: `pytorch_a`. Of these varied only under load, with filled memory and moved allocations: `pytorch_a`." \
        in "\n".join(render.summary(found))


def test_an_import_is_shared_where_all_operations_offer_it():
    lines = [{"circumstances": ["shared_import"]}, {"circumstances": ["shared_import", "contention"]}]
    options = argparse.Namespace(fresh=False)
    assert check.shares_import(lines, options)
    assert not check.shares_import(lines + [{"circumstances": []}], options)
    assert not check.shares_import(lines, argparse.Namespace(fresh=True))


def test_a_sample_is_from_all_over():
    assert check.spread("abcdefgh", 4) == list("aceg") and check.spread("abc", 4) == list("abc")
    assert check.spread([], 4) == []


class Answers:
    """What a service says of a job of fresh runs."""

    def __init__(self, digests):
        self.digests, self.asked = digests, None

    def post_job(self, **asked):
        self.asked = asked
        return "job"

    def finish_job(self, job, seconds):
        pass

    def items(self, path):
        return [{"workload": name, "variant": "default", "outcome": "completed", "digest": self.digests[name],
                 "distinct_digests": 1} for name in self.asked["workloads"]]


def test_a_fresh_process_is_compared_with_forked_runs():
    def run(workload, digest, distinct=1, variant="default"):
        return {"workload": workload, "variant": variant, "outcome": "completed", "digest": digest,
                "distinct_digests": distinct}
    forked = [run("a", "1"), run("a", "1"), run("a", "9", variant="other"), run("b", "2"), run("b", "3"),
              run("c", "4", distinct=2), run("d", "5")]
    service = Answers({"a": "1", "d": "6"})
    _, said = check.measure_sample(service, "stack", forked, argparse.Namespace(iterations=2))
    assert said == {"same": ["a"], "other": ["d"]}
    assert service.asked["stacks"] == ["stack"] and "shared_import" not in service.asked


class Searched(Answers):
    """And of cells: a job's runs of an operation are in a cell of its own."""

    def __init__(self, by_itself, under_load="", when_wide=""):
        super().__init__({})
        self.vary, self.jobs = {"": by_itself, "loaded": under_load, "wide": when_wide}, []

    def post_job(self, **asked):
        self.jobs.append(asked)
        return super().post_job(**asked)

    def items(self, path):
        how = "wide" if "sizes" in self.asked else "loaded"
        return [{"workload": name, "variant": variant, "stack": self.asked["stacks"][0], "outcome": "completed",
                 "cell": f"{name}-{variant}-{how}"} for name in self.asked["workloads"] for variant in self.asked["variants"]]

    def get(self, path):
        name, variant, *how = path.rpartition("/")[2].split("-")
        if variant != "default":
            return {"verdict": "reproducible"}
        return {"verdict": "varies" if name in self.vary["".join(how)] else "inconclusive"}


RUNS = [{"workload": name, "variant": variant, "stack": "s", "cell": f"{name}-{variant}",
         "outcome": "unsupported" if name == "c" else "completed"} for name in "abcde" for variant in ("default", "exact")]


def test_what_did_not_vary_is_measured_under_circumstances_and_large():
    service = Searched("a", "b", "d")
    more, wide, said = check.measure_search(service, "s", RUNS, {"runs": 3, "shared": True})
    assert said == {"under": check.SEARCHED, "operations": 3, "varied": ["b"], "threads": check.WIDE_THREADS, "wide": 2,
                    "varied_wide": ["d"], "cured_wide": {"exact": ["d"]}}
    assert len(more) == 4 and len(wide) == 3 and all(run["stack"] == "s-wide" for run in wide)
    assert [(job["stacks"], job["workloads"], job["variants"]) for job in service.jobs] == [
        (["s"], ["b", "d", "e"], ["default"]), (["s"], ["b"], ["exact"]),
        (["s-wide"], ["d", "e"], ["default"]), (["s-wide"], ["d"], ["exact"])]
    assert all(job["shared_import"] for job in service.jobs)
    assert all(job.items() >= check.SEARCHED.items() for job in service.jobs[:2])
    assert all(job.items() >= check.WIDE.items() for job in service.jobs[2:])
    assert check.wide_entry({"name": "s", "worker": "w"}) == {"name": "s-wide", "worker": "w", "threads": check.WIDE_THREADS}


def test_what_varied_is_not_searched():
    service = Searched("abde")
    more, wide, said = check.measure_search(service, "s", RUNS, {"runs": 3, "shared": False})
    assert (more, wide, service.jobs) == ([], [], []) and said["operations"] == said["wide"] == 0


def test_runs_of_each_framework():
    assert check.runs_of("2,pytorch=5", "pytorch") == 5 and check.runs_of("2,pytorch=5", "jax") == 2
    assert check.runs_of("3", "jax") == 3 and check.runs_of("pytorch=9", "jax") == check.RUNS


def test_what_an_earlier_check_found_is_of_the_same(found):
    asked = {"form": check.FORM, "framework": "pytorch", "runs": 3, "iterations": 5, "shared": True, "builds": {"pytorch-1": "b"},
             "titles": found["titles"]}
    whole = {**found, "form": check.FORM, "builds": {"pytorch-1": "b"}, "wrong": []}
    earlier = [{"machine": {"model": "EPYC"}, "frameworks": [{**whole, "framework": "jax"}]},
               {"machine": {"model": "EPYC"}, "frameworks": [whole]}]
    assert check.found_earlier(asked, earlier, {"model": "EPYC"}) is whole
    assert check.found_earlier(asked, earlier, {"model": "Xeon"}) is None
    assert check.found_earlier(asked, [], {"model": "EPYC"}) is None
    for name, value in ("form", 1), ("runs", 4), ("shared", False), ("builds", {"pytorch-1": "c"}), ("titles", {"pytorch_a": "a"}):
        assert check.found_earlier({**asked, name: value}, earlier, {"model": "EPYC"}) is None
    del whole["wrong"]
    assert check.found_earlier(asked, earlier, {"model": "EPYC"}) is None


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
