"""The controls vary, seen from outside: in a few fresh processes each.

A control that does not vary makes a whole workload inconclusive, so it is also tried where
its race is weakest: next to busy processes, and with all its threads on one processor.
A choice by time may fall on the same algorithms in one process of five, as with clang, which makes
one of them faster: so there are many processes to vary in, of which most controls need the first.
`make detection` wants it of five, as in a survey, twenty times, and tries every variant that must
not vary in two hundred.  (That a survey shows the right verdict for all is in test_serve.py.)
"""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
WORKER = BUILD / "reprod-worker"
ITERATIONS = 10  # as in a survey
SURVEYS = int(os.environ.get("REPROD_SURVEYS", "1"))
RUNS = 5 if SURVEYS > 1 else 50
PROCESSES = int(os.environ.get("REPROD_PROCESSES", "0"))  # of each variant that must not vary
# Controls that vary for another reason than threads: the clock, the process, its memory.
NOT_A_RACE = {"conv_autotune", "inference_autotune", "algorithm_cache", "hash_seed_order",
              "dropout", "weight_init", "uninitialized_read"}
# On one processor, three processes in ten vary: too few for five of them.
NEEDS_TWO = {"ring_allreduce": "a rank tells its tensors faster than one processor changes threads"}
LIBRARIES = ("onednn_",)  # prefixes of workloads that compute nothing without a library
FIVE = {"bias_add_bwd", "conv_wgrad", "ctc_loss", "maxpool_bwd", "reduce_sum"}
LIMIT = 600  # seconds after which a test gives up


def catalogue():
    out = subprocess.run([WORKER, "--catalogue"], check=True, capture_output=True,
                         timeout=LIMIT).stdout
    return [json.loads(line) for line in out.splitlines()]


def variants(control):
    return [(workload["workload"], variant["name"]) for workload in catalogue()
            for variant in workload["variants"] if variant["control"] == control
            and not workload["workload"].startswith(LIBRARIES)]


def digests_of_run(workload, variant, threads):
    """The digest of each iteration of one fresh process."""
    read_end, write_end = os.pipe()
    arguments = [WORKER, "--run", "--workload", workload, "--variant", variant,
                 "--threads", str(threads), "--iterations", str(ITERATIONS)]
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("OMP_", "GOMP_", "KMP_"))}
    environment["OMP_WAIT_POLICY"] = "passive"  # as the agent sets it
    environment["REPROD_RESULT_FD"] = str(write_end)
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, pass_fds=[write_end],
                          env=environment) as process:
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            events = [json.loads(line) for line in lines]
        assert process.wait(timeout=LIMIT) == 0
    assert events[-1]["event"] == "end" and events[-1]["outcome"] == "completed", events[-1]
    digests = [event["digest"] for event in events if event["event"] == "iteration"]
    assert len(digests) == ITERATIONS
    return digests


def varies(workload, variant):
    """Whether RUNS fresh processes, or fewer, show two digests."""
    seen = set()
    for _ in range(RUNS):
        seen |= set(digests_of_run(workload, variant, threads=2))
        if len(seen) >= 2:
            return True
    return False


def misses(workload, variant):
    return sum(not varies(workload, variant) for _ in range(SURVEYS))


@contextlib.contextmanager
def busy_processes(count):
    spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(count)]
    try:
        yield
    finally:
        for process in spin:
            process.kill()
            process.wait()


@contextlib.contextmanager
def one_processor():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


CONTROLS = variants(control=True)
every_control = pytest.mark.parametrize("workload, variant", CONTROLS)


def test_five_workloads_have_a_control():
    assert {workload for workload, _ in CONTROLS} >= FIVE


@pytest.mark.flavour
@pytest.mark.skipif(BUILD.name == "build" and SURVEYS == 1, reason="test_serve.py's survey does")
@every_control
def test_controls_vary(workload, variant):
    assert misses(workload, variant) == 0


@pytest.mark.long
@every_control
def test_controls_vary_beside_busy_processes(workload, variant):
    if SURVEYS == 1 and workload not in FIVE:
        pytest.skip("make detection tries them all")
    with busy_processes(2 * (os.cpu_count() or 1)):
        assert misses(workload, variant) == 0


@pytest.mark.long
@every_control
def test_controls_vary_on_one_processor(workload, variant):
    if workload in NEEDS_TWO:
        pytest.skip(NEEDS_TWO[workload])
    with one_processor():
        assert misses(workload, variant) == 0


@pytest.mark.skipif(SURVEYS == 1, reason="test_workloads.c does, in one process")
@pytest.mark.parametrize("workload, variant",
                         [pair for pair in CONTROLS if pair[0] not in NOT_A_RACE])
def test_controls_do_not_vary_with_one_thread(workload, variant):
    """What varies is the race, not something else that would vary in every variant."""
    first, second = (set(digests_of_run(workload, variant, threads=1)) for _ in range(2))
    assert len(first | second) == 1


@pytest.mark.skipif(PROCESSES == 0, reason="make detection tries them")
@pytest.mark.parametrize("workload, variant", variants(control=False))
def test_others_never_vary(workload, variant):
    seen = set()
    for i in range(PROCESSES):
        seen |= set(digests_of_run(workload, variant, threads=(1, 2, 4, 8)[i % 4]))
    assert len(seen) == 1
