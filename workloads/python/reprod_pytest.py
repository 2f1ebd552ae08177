"""A plugin for pytest: tests that fail where the bits of a computation diverge.

    pytest_plugins = ["reprod_pytest"]          # in conftest.py, or pytest -p reprod_pytest

    @pytest.mark.reprod(runs=5, control={"ORDER": "any"})
    def test_training(reprod):
        reprod.seed()
        model = reprod.monitor_model(make_model())
        ...
        reprod.finish(model, loss)

`pytest` runs such a test as any other.  `pytest --reprod` runs it in 5 fresh processes of
pytest, one after the other, and compares what the fixture `reprod` recorded there: it has the
functions of reprod_probe.py.  The test fails where two runs diverge, and the first place that
read the same and wrote something else is named.

CONTROL: variables of the environment with which the test has to vary.  Where it does not, nothing
shows that it would have been seen to, and the test fails.  Without a control a test that is equal
passes, and the summary says that it has none.

reprod_probe.py and reprod_compare.py lie beside this file.  Python 3.8, pytest 7 or newer.
"""
import contextlib
import io
import math
import os
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile

import pytest

import reprod_compare
import reprod_probe

HERE = pathlib.Path(__file__).resolve().parent
# What a shell, or a run of reprod around this one, may have set: it would leave out records, or send them elsewhere.
OTHERS = {"REPROD_RESULT_FD", "REPROD_PROBES", "REPROD_PROBE_NAMES", "REPROD_PROBE_STEPS", "REPROD_CAPTURE", reprod_probe.SPEAKER}
SETTINGS = {"runs": 3, "control": None, "timeout": 600}
LOG_LINES = 60  # of a process that failed


class Diverged(Exception):
    """The bits of a test's runs differ."""


class Unverified(Exception):
    """Nothing shows that they are equal, or that a difference would have shown."""


def pytest_addoption(parser):
    group = parser.getgroup("reprod", "bits that are the same in every process")
    group.addoption("--reprod", action="store_true",
                    help="run tests that are marked 'reprod' in fresh processes and compare their bits")
    group.addoption("--reprod-runs", type=int, metavar="N", help="as many processes for each, instead of the mark's")
    group.addoption("--reprod-arguments", default="", metavar="WORDS",
                    help="further arguments of these processes, for options that the tests read")
    group.addoption("--reprod-outcome", metavar="FILE", help="given to these processes alone: where they say what became of the test")


def pytest_configure(config):
    config.addinivalue_line("markers", "reprod(runs=3, control=None, timeout=600): with --reprod, it runs in so many fresh"
                            " processes, and fails where their bits differ, or do not with the variables of control")
    if config.getoption("reprod_outcome"):
        config.pluginmanager.register(Outcome(config.getoption("reprod_outcome")))


def settings_of(item):
    """The mark's, or None.  A mistake in it ends the session: a test that compares nothing is none."""
    mark = item.get_closest_marker("reprod")
    if mark is None:
        return None
    settings = {**SETTINGS, **mark.kwargs}
    runs = item.config.getoption("reprod_runs") or settings["runs"]
    control = settings["control"]
    wrong = ("unknown: %s" % ", ".join(sorted(set(settings) - set(SETTINGS))) if set(settings) != set(SETTINGS)
             else "its settings have names" if mark.args
             else "runs is an integer of 2 or more" if type(runs) is not int or runs < 2
             else "timeout is a number of seconds" if not settings["timeout"] > 0
             else "control is a dict of variables of the environment, texts both" if control is not None and not (
                 isinstance(control, dict) and control and all(isinstance(text, str) for pair in control.items() for text in pair))
             else "the test does not use the fixture 'reprod', so nothing would be recorded"
             if "reprod" not in getattr(item, "fixturenames", ()) else None)
    if wrong:
        raise pytest.UsageError("%s: mark reprod: %s" % (item.nodeid, wrong))
    return {**settings, "runs": runs}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if not config.getoption("reprod") or config.getoption("reprod_outcome"):
        return
    for at, item in enumerate(items):
        settings = settings_of(item)
        if settings:
            items[at] = InProcesses.of(item, settings)


class InProcesses(pytest.Item):
    """A test that runs in processes of its own; its fixtures are set up there alone."""

    @classmethod
    def of(cls, item, settings):
        own = cls.from_parent(item.parent, name=item.name)
        own.settings, own.place = settings, item.location
        own.own_markers.extend(item.own_markers)
        own.keywords.update(item.keywords)
        own.obj = item.obj  # for conditions of skipif
        return own

    def reportinfo(self):
        return self.path, self.place[1], self.name

    def runtest(self):
        runs, control = self.settings["runs"], self.settings["control"]
        with tempfile.TemporaryDirectory(prefix="reprod-pytest-") as folder:
            found = compare([self.run(folder, "run%d" % i, {}) for i in range(runs)])
            if found["verdict"] == "different":
                raise Diverged(words_of(found).replace(folder + os.sep, ""))
            if found["verdict"] != "equal":
                raise Unverified(found["cause"].replace(folder + os.sep, ""))
            self.user_properties.append(("reprod", "equal in %d runs" % runs + (
                "; its control varied in %d" % self.vary(folder, runs, control) if control else ", without a control")))

    def vary(self, folder, runs, control):
        """How many runs with CONTROL it took until two differed."""
        traces = []
        for i in range(runs):
            traces.append(self.run(folder, "control%d" % i, control))
            found = compare(traces) if i else {"verdict": "equal"}
            if found["verdict"] == "different":
                return len(traces)
            if found["verdict"] != "equal":
                raise Unverified("its control: " + found["cause"].replace(folder + os.sep, ""))
        raise Unverified("equal in %d runs, but the control did not vary in %d: nothing shows that a difference would"
                         " have been seen" % (runs, runs))

    def run(self, folder, name, variables):
        """The trace of the test in a fresh process.  If the first skips it, it is skipped."""
        trace, outcome = (os.path.join(folder, name + end) for end in ("", ".outcome"))
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "reprod_pytest", "--reprod-outcome", outcome,
                 "--runxfail", "--rootdir", str(self.config.rootpath), *shlex.split(self.config.getoption("reprod_arguments"))]
        words += ["-c", str(self.config.inipath)] if self.config.inipath else []
        words += ["-n0"] if self.config.pluginmanager.hasplugin("xdist") else []
        folders = [str(HERE)] + [word for word in os.environ.get("PYTHONPATH", "").split(os.pathsep) if word]
        try:
            done = subprocess.run(
                [*words, str(self.path) + self.nodeid[self.nodeid.index("::"):]], timeout=self.settings["timeout"],
                cwd=str(self.config.invocation_params.dir), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, errors="replace", env={
                    **{name: os.environ[name] for name in os.environ if name not in OTHERS},
                    "PYTHONPATH": os.pathsep.join(folders), "REPROD_ITERATIONS": "1", **variables, "REPROD_TRACE": trace})
        except subprocess.TimeoutExpired:
            raise Unverified("%s did not end within %s seconds" % (name, self.settings["timeout"])) from None
        said = pathlib.Path(outcome).read_text() if os.path.exists(outcome) else "nothing was run"
        if said.startswith("skipped: ") and name == "run0":
            pytest.skip(said[len("skipped: "):])
        if done.returncode != 0 or said != "passed":
            lines = done.stdout.splitlines()[-LOG_LINES:]
            raise Unverified("%s ended with status %d: %s\n%s" % (name, done.returncode, said, "\n".join(lines)))
        return trace

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (Diverged, Unverified)):
            word = "its bits differ" if isinstance(excinfo.value, Diverged) else "unverified"
            return "%s: %s: %s" % (self.nodeid, word, excinfo.value)
        return super().repr_failure(excinfo)


def compare(traces):
    found = reprod_compare.report(traces)
    if found["verdict"] == "equal" and any(is_nan(sums) for trace in traces
                                           for sums in reprod_compare.Trace(trace).results):
        return {"verdict": "not_comparable", "cause": "its results have NaNs: equal NaNs prove nothing"}
    return found


def is_nan(result):
    """Whether the sum of weights or the loss, as bits, is one."""
    return any(math.isnan(struct.unpack(">d", bytes.fromhex(bits))[0]) for bits in result[1:] if bits)


def words_of(found):
    """The report, in which the place comes first."""
    root = found["root_cause"] or found["first_difference"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        reprod_compare.print_text(found)
    return "%s\n%s" % ("where, no probe tells" if root is None else "%s '%s', step %d" % (
        "at" if found["root_cause"] else "seen first at", root["place"], root["step"]), text.getvalue())


class Probes:
    """What the fixture is: reprod_probe.py, with a finish() whose results are recorded, too.
    COMPARED: in a process whose trace is.  What comes after finish() would be in none."""

    def __init__(self, compared):
        self._compared, self._finished, self._late = compared, False, None

    def __getattr__(self, name):
        if name in ("monitor", "monitor_model", "monitor_rng", "summarize_variables"):
            self._check(name)
        return getattr(reprod_probe, name)

    def _check(self, name):
        if self._compared and self._finished:
            self._late = "%s() after finish(): it would not be compared" % name
            raise RuntimeError(self._late)

    def finish(self, weights, loss=None, algorithm=None):
        self._check("finish")
        self._finished = True
        if self._compared:
            reprod_probe.monitor(weights.state_dict() if hasattr(weights, "state_dict") else weights, "result/weights")
            if loss is not None:
                reprod_probe.monitor(loss, "result/loss")
        reprod_probe.finish(weights, loss, algorithm)


@pytest.fixture
def reprod(request):
    """The probes of reprod_probe.py, in one iteration."""
    probes = Probes(bool(request.config.getoption("reprod_outcome")))
    yield probes
    if probes._late:
        raise RuntimeError(probes._late)
    if probes._compared and not probes._finished:
        reprod_probe.finish(())


class Outcome:
    """In a process of a test: what became of it, for the one that waits."""

    def __init__(self, path):
        self.path = path

    def pytest_collection_finish(self, session):
        if len(session.items) > 1:  # they would write one trace
            raise pytest.UsageError("%d tests, not one: %s" % (len(session.items), ", ".join(item.nodeid for item in session.items)))

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
            with open(self.path, "w", encoding="utf-8") as file:
                file.write("%s: %s" % (report.outcome, reason) if reason else report.outcome)


def pytest_terminal_summary(terminalreporter):
    said = [(text, report.nodeid) for report in terminalreporter.stats.get("passed", ())
            for name, text in report.user_properties if name == "reprod"]
    if said:
        terminalreporter.section("reprod")
        for text, nodeid in said:
            terminalreporter.write_line("%s: %s" % (nodeid, text))
