"""workloads/python/reprod_pytest.py: marked tests fail where the bits of fresh processes differ, and only pass
where they would have been seen to."""
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from service import BUILD, ROOT

PYTHON = ROOT / "workloads" / "python"
TESTS = '''
import os, random, time
import pytest

def total(reprod, order):
    source = random.Random(reprod.seed())
    names = reprod.monitor([f"tag{source.random()}" for i in range(200)], "data/names")
    worth = {name: source.gauss(0, 1) * 10 ** source.uniform(-6, 6) for name in names}
    result = 0.0
    for name in set(names) if order == "set" else names:
        result = result / 3 + worth[name]  # what came last outweighs the rest: two orders never agree by luck
    return reprod.monitor(result, "total", inputs=(names, list(worth.values())))

@pytest.fixture
def elsewhere():
    with open(os.environ["LOG"], "a") as file:
        file.write("%d\\n" % os.getpid())
'''


def suite(folder, text, *words, more="", **variables):
    """(exit status, what was printed, {name of a test: its element in JUnit XML})"""
    (folder / "conftest.py").write_text('pytest_plugins = ["reprod_pytest"]\n' + more)
    (folder / "test_own.py").write_text(TESTS + text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "REPROD"))}
    environment.pop("PYTHONHASHSEED", None)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--junitxml", "j.xml", *words], cwd=folder, capture_output=True,
                          text=True, timeout=300, env={**environment, "PYTHONPATH": str(PYTHON), "LOG": str(folder / "log"),
                                                       "REPROD_DIGEST_LIBRARY": str(BUILD / "libreprod-digest.so"), **variables})
    cases = ElementTree.parse(folder / "j.xml").getroot().iter("testcase") if (folder / "j.xml").exists() else ()
    return done.returncode, done.stdout + done.stderr, {case.get("name"): case for case in cases}


def message(case):
    """What is wrong with it, or ''."""
    return "".join(part.text or "" for part in case if part.tag in ("failure", "error"))


def test_what_differs_fails_at_its_place_and_what_is_equal_passes(tmp_path):
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod(runs=3, control={"ORDER": "set"})
def test_in_order(reprod, elsewhere):
    reprod.finish(total(reprod, os.environ.get("ORDER")))

@pytest.mark.reprod
def test_set(reprod):
    total(reprod, "set")

@pytest.mark.reprod(runs=2)
@pytest.mark.parametrize("x", ["a b", 2])
def test_results_alone(reprod, x):
    reprod.finish([len(str(x))])

def test_plain():
    pass
''', "--reprod", "-p", "no:cacheprovider")
    assert code == 1 and [name for name, case in cases.items() if message(case)] == ["test_set"], said
    assert "test_set: its bits differ: at 'total', step 0" in message(cases["test_set"])
    assert "Root cause     total, step 0 of iteration 0 (record 2)" in message(cases["test_set"])
    assert "test_own.py::test_in_order: equal in 3 runs; its control varied in " in said
    assert "test_own.py::test_results_alone[a b]: equal in 2 runs, without a control" in said
    processes = (tmp_path / "log").read_text().split()
    assert len(processes) == len(set(processes)) >= 5, "each run is a process, and none is the one that compares"


@pytest.mark.long
def test_what_shows_nothing_fails(tmp_path):
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod(runs=2, control={"NOTHING": "1"})
def test_control(reprod):
    total(reprod, "sorted")

@pytest.mark.reprod(runs=2)
def test_nothing(reprod):
    pass

@pytest.mark.reprod
def test_asserts(reprod):
    assert total(reprod, "sorted") is None, "of its own"

@pytest.mark.reprod(timeout=1)
def test_hangs(reprod):
    time.sleep(600)

@pytest.mark.reprod
def test_ends(reprod):
    os._exit(0)

@pytest.mark.reprod(runs=2)
def test_nan(reprod):
    reprod.finish([float("nan")])

@pytest.mark.reprod(runs=2)
def test_loss_is_nan(reprod):
    reprod.finish([1.0], float("nan"))

@pytest.mark.reprod(runs=2)
def test_other_inputs(reprod):
    reprod.start(inputs=[os.urandom(8)])
    total(reprod, "sorted")
''', "--reprod")
    assert code == 1 and all(message(case) for case in cases.values()), said
    for name, words in {"nan": "its results have NaNs: equal NaNs prove nothing", "loss_is_nan": "its results have NaNs",
                        "control": "equal in 2 runs, but the control did not vary in 2", "nothing": "run0: it has no records",
                        "hangs": "run0 did not end within 1 seconds", "ends": "run0 ended with status 0: nothing was run"}.items():
        assert f"test_{name}: unverified: {words}" in message(cases["test_" + name])
    assert "run0 ended with status 1: failed" in message(cases["test_asserts"])
    assert "AssertionError: of its own" in message(cases["test_asserts"]), "what the process printed"


@pytest.mark.long
def test_what_would_not_be_compared_fails(tmp_path):
    """What is recorded after the result, and a process that skips where others did not."""
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod(runs=2)
def test_later(reprod):
    reprod.finish([1.0])
    reprod.monitor([random.SystemRandom().random()], "later")

@pytest.mark.reprod(runs=2)
def test_again(reprod):
    reprod.finish([1.0])
    with pytest.raises(RuntimeError):
        reprod.finish([random.SystemRandom().random()])

@pytest.mark.reprod(runs=2)
def test_skips_later(reprod):
    reprod.finish([1.0])
    with open("count", "a") as file:
        file.write("x")
        if file.tell() > 1:
            pytest.skip("not again")

@pytest.mark.reprod(runs=2, control={"ORDER": "set"})
def test_control_skips(reprod):
    total(reprod, "sorted")
    if "ORDER" in os.environ:
        pytest.skip("no such order")

@pytest.mark.reprod(runs=2)
@pytest.mark.xfail(strict=True, reason="it is known to differ")
def test_passes_strictly(reprod):
    total(reprod, "sorted")
''', "--reprod")
    assert code == 1 and all(message(case) for case in cases.values()), said
    assert "RuntimeError: monitor() after finish(): it would not be compared" in message(cases["test_later"])
    assert "RuntimeError: finish() after finish(): it would not be compared" in message(cases["test_again"])
    assert "unverified: run1 ended with status 0: skipped: Skipped: not again" in message(cases["test_skips_later"])
    assert "unverified: control0 ended with status 0: skipped: Skipped: no such" in message(cases["test_control_skips"])
    assert "XPASS(strict)" in message(cases["test_passes_strictly"])


@pytest.mark.long
@pytest.mark.parametrize("variable, value", [
    ("REPROD_PROBES", "9"), ("REPROD_PROBE_NAMES", "data/*"), ("REPROD_PROBE_STEPS", "0-0"), ("REPROD_PROBE_SPEAKER", "1"),
    ("REPROD_PYTEST_OUTCOME", "outcome"),
])
def test_what_a_shell_has_set_leaves_nothing_out(tmp_path, variable, value):
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod(runs=2)
def test_set(reprod):
    reprod.monitor([1.0], "data/names")
    reprod.step()
    reprod.monitor([random.SystemRandom().random()], "x")
''', "--reprod", **{variable: value})
    assert code == 1 and "its bits differ: at 'x/0', step 1" in message(cases["test_set"]), said


def test_a_process_has_one_test(tmp_path):
    (tmp_path / "test_other.py").write_text("def test_other(reprod):\n    reprod.finish([1.0])\n")
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod(runs=2)
def test_set(reprod):
    total(reprod, "set")
''', "--reprod", "--reprod-arguments", "test_other.py", "test_own.py")
    assert code == 1 and "2 tests, not one" in message(cases["test_set"]), said


def test_without_the_option_it_is_any_test(tmp_path):
    code, said, _ = suite(tmp_path, '''
@pytest.mark.reprod(runs=5)
def test_set(reprod, elsewhere):
    assert reprod.finish(total(reprod, "set")) is None
''', "--strict-markers")
    assert code == 0 and len((tmp_path / "log").read_text().split()) == 1, said


@pytest.mark.long
def test_marks_of_others_hold(tmp_path):
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod
def test_skips(reprod):
    pytest.skip("no GPU")

@pytest.mark.reprod
@pytest.mark.skipif("os.name", reason="a condition")
def test_condition(reprod):
    raise SystemExit

@pytest.mark.reprod(runs=2)
@pytest.mark.xfail(reason="known")
def test_known(reprod):
    total(reprod, "set")

@pytest.mark.reprod(runs=2)
def test_option(reprod, request):
    total(reprod, request.config.getoption("--order"))
''', "--reprod", "--reprod-arguments", "--order 'in order'",
                              more='def pytest_addoption(parser):\n    parser.addoption("--order", default="set")\n')
    assert code == 0 and not any(message(case) for case in cases.values()), said
    assert {name: case[0].get("message") for name, case in cases.items() if len(case) and case[0].tag == "skipped"} == {
        "test_skips": "Skipped: no GPU", "test_condition": "a condition", "test_known": "known"}


@pytest.mark.long
@pytest.mark.parametrize("mark, words", [
    ("runs=1", "runs is an integer of 2 or more"), ("runs='3'", "runs is an integer of 2 or more"),
    ("rns=3", "unknown: rns"), ("3", "its settings have names"), ("timeout=0", "timeout is a number of seconds"),
    ("control={}", "control is a dict of variables"), ("control={'A': 1}", "control is a dict of variables"),
])
def test_a_mistake_in_the_mark_ends_the_session(tmp_path, mark, words):
    code, said, _ = suite(tmp_path, f"@pytest.mark.reprod({mark})\ndef test_it(reprod):\n    pass\n", "--reprod")
    assert code == 4 and f"test_own.py::test_it: mark reprod: {words}" in said


def test_a_test_without_the_fixture_is_a_mistake(tmp_path):
    code, said, _ = suite(tmp_path, "@pytest.mark.reprod\ndef test_it():\n    pass\n", "--reprod")
    assert code == 4 and "the test does not use the fixture 'reprod', so nothing would be recorded" in said


@pytest.mark.long
def test_beside_workers_of_xdist(tmp_path):
    pytest.importorskip("xdist")
    code, said, cases = suite(tmp_path, '''
@pytest.mark.reprod(runs=2, control={"ORDER": "set"})
@pytest.mark.parametrize("x", [1, 2])
def test_it(reprod, x):
    total(reprod, os.environ.get("ORDER"))

@pytest.mark.reprod(runs=2)
def test_set(reprod):
    total(reprod, "set")
''', "--reprod", "-n2")
    assert code == 1 and [name for name, case in cases.items() if message(case)] == ["test_set"], said
    assert said.count("equal in 2 runs; its control varied in 2") == 2
