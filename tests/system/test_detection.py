"""The controls vary and the others do not, seen from outside: five fresh processes each.

A control that does not vary makes a whole workload inconclusive, so it is also tried where
its race is weakest: beside busy processes, and with all its threads on one processor.
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
RUNS = 5
ITERATIONS = 10  # as in a survey
# Controls that vary for another reason than threads: the clock, the process, its memory.
NOT_A_RACE = {"conv_autotune", "inference_autotune", "algorithm_cache", "hash_seed_order",
              "dropout", "uninitialized_read"}
LIBRARIES = ("onednn_",)  # prefixes of workloads that compute nothing without a library
LIMIT = 120  # seconds after which a test gives up


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


def survey(workload, variant, threads=2, enough=None):
    """Counts the distinct digests of RUNS fresh processes; stops at ENOUGH of them."""
    seen = set()
    for _ in range(RUNS):
        seen |= set(digests_of_run(workload, variant, threads))
        if enough and len(seen) >= enough:
            break
    return len(seen)


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


def test_five_workloads_have_a_control():
    controlled = {workload for workload, _ in variants(control=True)}
    assert controlled >= {"bias_add_bwd", "conv_wgrad", "ctc_loss", "maxpool_bwd",
                          "reduce_sum"}


@pytest.mark.flavour
def test_controls_vary():
    for workload, variant in variants(control=True):
        assert survey(workload, variant, enough=2) >= 2, f"{workload}/{variant}"


def test_controls_vary_beside_busy_processes():
    with busy_processes(2 * (os.cpu_count() or 1)):
        for workload, variant in variants(control=True):
            assert survey(workload, variant, enough=2) >= 2, f"{workload}/{variant}"


def test_controls_vary_on_one_processor():
    with one_processor():
        for workload, variant in variants(control=True):
            assert survey(workload, variant, enough=2) >= 2, f"{workload}/{variant}"


def test_controls_do_not_vary_with_one_thread():
    """What varies is the race, not something else that would vary in every variant."""
    for workload, variant in variants(control=True):
        if workload in NOT_A_RACE:
            continue
        assert survey(workload, variant, threads=1) == 1, f"{workload}/{variant}"


@pytest.mark.flavour
def test_others_do_not_vary():
    for workload, variant in variants(control=False):
        assert survey(workload, variant) == 1, f"{workload}/{variant}"
