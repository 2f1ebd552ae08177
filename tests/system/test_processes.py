"""Workloads that are more than one process: what becomes of a run when one of them fails, and
of the others when the worker itself ends.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.flavour

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
WORKER = BUILD / "reprod-worker"
LIMIT = 120  # seconds after which a test gives up


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended
        if int(parent) == pid and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def wait_until_gone(pids):
    deadline = time.monotonic() + LIMIT
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, f"{pids} outlive their worker"
        time.sleep(0.01)


class Run:
    """A run in progress; iterating reads its events as they come."""

    def __init__(self, workload, variant, iterations, size="small", env=None):
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen(
            [WORKER, "--run", "--workload", workload, "--variant", variant, "--size", size,
             "--iterations", str(iterations)],
            pass_fds=[write_end], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "REPROD_RESULT_FD": str(write_end), **(env or {})})
        os.close(write_end)
        self.lines = os.fdopen(read_end)

    def __iter__(self):
        return map(json.loads, self.lines)

    def until(self, event):
        return next(e for e in self if e["event"] == event)

    def close(self):
        """The exit status and the log."""
        _, log = self.process.communicate(timeout=LIMIT)
        self.lines.close()
        return self.process.returncode, log.decode()


@pytest.fixture
def ranks():
    """A long run of four ranks, past its first iteration, and the processes of the ranks."""
    run = Run("ring_allreduce", "ordered", 1000)
    run.until("iteration")
    pids = children_of(run.process.pid)
    assert len(pids) == 4
    yield run, pids
    run.process.kill()
    run.close()


@pytest.mark.parametrize("number", range(4))
def test_rank_that_dies_ends_the_run(ranks, number):
    run, pids = ranks
    os.kill(pids[number], signal.SIGKILL)
    end = run.until("end")
    assert end["outcome"] == "infra"
    assert re.fullmatch(r"rank [0-3] of 4 was ended by signal 9 \(Killed\)", end["cause"])
    assert run.close() == (0, "")
    wait_until_gone(pids)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_do_not_outlive_their_worker(ranks, how):
    run, pids = ranks
    os.kill(run.process.pid, how)
    assert run.close()[0] == -how
    wait_until_gone(pids)


def test_ranks_end_with_the_run():
    run = Run("ring_allreduce", "two_ranks", 2)
    run.until("start")
    pids = children_of(run.process.pid)
    assert run.until("end")["outcome"] == "completed"
    assert run.close() == (0, "")
    assert not [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], "not waited for"
