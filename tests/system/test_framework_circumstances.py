"""Runs of frameworks under load, with filled memory and moved allocations: what they say, and that it is so."""
import argparse
import importlib.util
import json
import os
import sys

import pytest

from service import ROOT, Service
from test_frameworks import run_worker
from test_shared_import import Forker

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402

# What an operation sees of the circumstances: its children and their processor time, and what malloc gives.
SEES = '''
import ctypes, glob, json, signal, time
libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def ticks(pid):
    fields = open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def scaled(values, factors):
    children = sorted(int(pid) for path in glob.glob("/proc/self/task/*/children") for pid in open(path).read().split())
    before = {pid: ticks(pid) for pid in children}
    while any(ticks(pid) == before[pid] for pid in children):  # until each has computed
        time.sleep(0.01)
    memory = libc.malloc(1 << 20)
    filled = ctypes.string_at(memory + 64, 1 << 16)
    print("SAW", json.dumps({"children": children, "fill": sorted(set(filled)), "at": memory}), flush=True)
    libc.free(memory)
    if os.environ.get("TINY_KILLS") and children:
        os.kill(children[0], signal.SIGKILL)
        os.waitid(os.P_PID, children[0], os.WEXITED | os.WNOWAIT)
    return 1.0
'''


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    return tiny.stack(tmp_path_factory.mktemp("worker") / "w", "2.0", more=SEES)


def run(worker, **circumstances):
    """(the circumstances that it says, what the operation saw in each iteration, the events)"""
    status, events, log = run_worker(worker, workload="tiny_scaled", variant="default", **circumstances)
    assert status == 0 and events, log
    saw = [json.loads(line[len("SAW "):]) for line in log.splitlines() if line.startswith("SAW ")]
    return events[0].get("circumstances"), saw, events


def test_without_any_there_are_none(worker):
    said, saw, _ = run(worker)
    assert not said and [one["children"] for one in saw] == [[], []]


def test_load_computes_beside_the_run_and_ends_with_it(worker):
    said, saw, _ = run(worker, contention="2")
    assert said == {"contention": 2}
    assert [len(one["children"]) for one in saw] == [2, 2]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in saw[0]["children"])


def test_load_that_is_gone_was_no_load(worker, monkeypatch):
    monkeypatch.setenv("TINY_KILLS", "1")
    _, _, events = run(worker, contention="2")
    assert (events[-1]["outcome"], events[-1]["cause"]) == ("infra", "1 of 2 load processes ended before the run did")


def test_memory_is_filled_with_what_is_said(worker):
    said, saw, _ = run(worker, memory_poison="a5a5a5a5")
    assert said == {"memory_poison": "a5a5a5a5"} and saw[0]["fill"] == [0xa5]
    said, saw, _ = run(worker, memory_poison="random")
    assert [saw[0]["fill"]] == [sorted(set(bytes.fromhex(said["memory_poison"])))]


def test_allocations_lie_elsewhere(worker):
    said, saw, _ = run(worker, allocation_jitter="7", iterations="6")
    assert said == {"allocation_jitter": "7"} and len(saw) == 6
    said, _, _ = run(worker, allocation_jitter="random")
    assert said["allocation_jitter"].isdigit()


def test_what_is_kept_moves_what_comes_next(monkeypatch):
    """In a process in which nothing else allocates: each block that is kept is one that the next cannot have."""
    monkeypatch.syspath_prepend(str(ROOT / "workloads" / "frameworks"))  # for pack.py
    source = ROOT / "workloads" / "frameworks" / "circumstances.py"  # another file has that name, too
    spec = importlib.util.spec_from_file_location("circumstances_of_frameworks", source)
    circumstances = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(circumstances)
    options = argparse.Namespace(contention=None, memory_poison=None, allocation_jitter="7", threads=1, fork=False)
    under = circumstances.Circumstances(options, "cpu")
    under.begin()
    kept = len(under.kept)
    under.move()
    assert under.said == {"allocation_jitter": "7"}
    assert len(under.kept) > kept and len(set(under.kept)) == len(under.kept)


@pytest.mark.parametrize("wrong, message", [
    ({"contention": "65"}, "--contention is 1 to 64"),
    ({"contention": "x"}, "invalid int value: 'x'"),
    ({"memory_poison": "0dd3c0e2"}, "--memory-poison is 'random' or four equal bytes"),
    ({"memory_poison": "zzzzzzzz"}, "--memory-poison is 'random' or four equal bytes"),
    ({"allocation_jitter": "-1"}, "--allocation-jitter is 'random' or a seed"),
])
def test_what_cannot_be_had_is_refused(worker, wrong, message):
    status, events, log = run_worker(worker, workload="tiny_scaled", variant="default", **wrong)
    assert status in (1, 2) and events == [] and message in log


def test_on_a_gpu_they_are_not_offered(tmp_path):
    worker = tiny.stack(tmp_path / "w", "2.0", backend="cuda", cuda="12.4")
    status, events, log = run_worker(worker, workload="tiny_total", variant="default", contention="2")
    assert status == 1 and events == [] and "frameworks do not compute under it on cuda" in log


def test_a_forked_run_has_them_for_itself(worker):
    forker = Forker(worker)
    [start, *_, end, _] = forker.run(**{"contention": "1", "memory-poison": "random"})
    assert start["circumstances"].keys() == {"contention", "memory_poison", "shared_import"}
    assert end["outcome"] == "completed"
    [start, *_, end, _] = forker.run(seed="2")
    assert start["circumstances"] == {"shared_import": 1} and end["outcome"] == "completed"
    assert forker.end() == 0


@pytest.mark.long
def test_a_job_has_them(tmp_path):
    service = Service(tmp_path / "service", options=["--no-survey"], config={"stacks": [
        {"name": "cpu"}, {"name": "tiny", "worker": str(tiny.stack(tmp_path / "tiny", "2.0", more=SEES))}]})
    service.start()
    try:
        [line] = service.get("/v1/workloads/tiny_total")["items"]
        assert line["circumstances"] == ["contention", "memory_poison_bytes", "allocation_jitter", "shared_import"]
        status, _, said = service.request("POST", "/v1/jobs", {"workloads": ["tiny_total"], "memory_poison": "a1b2c3d4"})
        assert status == 422 and said["errors"][0]["pointer"] == "/memory_poison" and "byte by byte" in said["detail"]
        job = service.post_job(workloads=["tiny_total"], stacks=["tiny"], runs=2, iterations=1, contention=1,
                               memory_poison=True, allocation_jitter=True)
        assert service.finish_job(job)["state"] == "finished"
        runs = service.items(f"/v1/runs?job={job}")
        assert {run["outcome"] for run in runs} == {"completed"}
        assert all(run["circumstances"].keys() == {"contention", "memory_poison", "allocation_jitter"} for run in runs)
    finally:
        assert service.stop() == 0
