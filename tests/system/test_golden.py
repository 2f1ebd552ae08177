"""Golden digests: every variant that computes in a fixed order still gives the bits that
tests/golden/digests.txt has, whatever the compiler and its optimization.
"""
import importlib.util
import os
import pathlib
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
WORKER = str(BUILD / "reprod-worker")
CAMPAIGN = int(os.environ.get("REPROD_SURVEYS", "1")) > 1

spec = importlib.util.spec_from_file_location("update_golden", REPO / "tests" / "update_golden.py")
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)


def problems(known, worker, cases):
    """A line for everything that keeps the digests KNOWN from being those of WORKER."""
    found = []
    for case in sorted(set(known) - set(cases)):
        found.append(f"{' '.join(case)}: stale line: run tests/update_golden.py")
    for case in cases:
        if case not in known:
            found.append(f"{' '.join(case)}: no line: run tests/update_golden.py")
            continue
        digest = golden.digest(worker, case)
        if digest != known[case]:
            found.append(f"{' '.join(case)}: {digest} instead of {known[case]}: numerics changed: "
                         f"bump the version, then run tests/update_golden.py")
    return found


@pytest.mark.parametrize("size", ["small", "medium"])
def test_an_incomplete_checkpoint_shows(size):
    """Resuming with the whole state goes on as if never stopped; each omission differs."""
    digests = {case[2]: digest for case, digest in golden.read().items()
               if case[0] == "checkpoint_resume" and case[3] == size}
    assert digests["resumed"] == digests["ordered"]
    omissions = [name for name in digests if name.startswith("no_")]
    assert len(omissions) == 6
    assert len({digests[name] for name in omissions + ["ordered"]}) == 7


def quick(worker):
    """The digests and the cases of sizes that take milliseconds."""
    return ({case: digest for case, digest in golden.read().items() if not golden.is_long(case)},
            [case for case in golden.cases(worker) if not golden.is_long(case)])


@pytest.mark.flavour
def test_golden_digests():
    known, cases = quick(WORKER)
    assert problems(known, WORKER, cases) == []


def test_every_size_has_its_digest():
    assert set(golden.read()) == set(golden.cases(WORKER))


@pytest.mark.skipif(not CAMPAIGN, reason="make detection computes the larger sizes")
def test_golden_digests_of_larger_sizes():
    known = {case: digest for case, digest in golden.read().items() if golden.is_long(case)}
    cases = [case for case in golden.cases(WORKER) if golden.is_long(case)]
    assert problems(known, WORKER, cases) == []


@pytest.mark.skipif(not CAMPAIGN, reason="make detection builds once more")
def test_golden_digests_without_optimization():
    """The worker built with -O0, in a build folder that is kept."""
    build = REPO / "build" / "o0"
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    made = subprocess.run(["make", "-j2", "CC=gcc", f"B={build.relative_to(REPO)}", "CFLAGS=-O0",
                           f"{build.relative_to(REPO)}/reprod-worker"],
                          cwd=REPO, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-3000:]
    worker = str(build / "reprod-worker")
    known, cases = quick(worker)
    assert problems(known, worker, cases) == []


def test_what_is_wrong_is_seen():
    """Missing, stale and changed lines."""
    case = next(c for c in golden.cases(WORKER) if c[0] == "xla_reduction")
    older = (case[0], "0", *case[2:])
    digest = golden.digest(WORKER, case)
    assert problems({case: digest}, WORKER, [case]) == []
    [line] = problems({}, WORKER, [case])
    assert line.startswith("xla_reduction") and "no line" in line
    [line] = problems({case: digest, older: digest}, WORKER, [case])
    assert "xla_reduction 0" in line and "stale" in line
    [line] = problems({case: digest[::-1]}, WORKER, [case])
    assert "numerics changed: bump the version" in line


def test_the_file_is_sorted_and_names_no_case_twice(tmp_path):
    path = tmp_path / "digests.txt"
    line = "a 1 ordered small float32 1 00"
    path.write_text(f"# comment\n{line}\nb{line[1:]}\n")
    assert len(golden.read(path)) == 2
    for bad in (f"b{line[1:]}\n{line}\n", f"{line}\n{line}\n", "a 1 ordered small\n"):
        path.write_text(bad)
        with pytest.raises(ValueError):
            golden.read(path)
