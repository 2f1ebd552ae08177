"""The circumstances of a run (workloads/PROTOCOL.md): load on its device, poisoned memory, moved
allocations.  They show defects and perturb races, never change what is computed, and leave
nothing behind.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from service import LIMIT, Service
from test_processes import Run, children_of, stat_of, wait_until_gone
from test_worker import BUILD, SELFTEST, WORKER, digests, run, worker

pytestmark = pytest.mark.flavour
SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"
EVERYTHING = {"contention": 2, "memory-poison": "random", "allocation-jitter": "random"}


def completed(*arguments, **options):
    ended = run(*arguments, **options)
    assert ended.status == 0 and ended.events[-1]["outcome"] == "completed", ended.events
    return ended


def test_start_says_the_circumstances():
    assert "circumstances" not in completed("selftest_pass").events[0]
    said = completed("selftest_pass", **EVERYTHING).events[0]["circumstances"]
    assert said["contention"] == 2 and len(said["memory_poison"]) == 8
    again = completed("selftest_pass", **EVERYTHING).events[0]["circumstances"]
    assert said["memory_poison"] != again["memory_poison"]
    assert said["allocation_jitter"] != again["allocation_jitter"]
    fixed = {"memory-poison": "0badcafe", "allocation-jitter": "18446744073709551615"}
    assert completed("selftest_pass", **fixed).events[0]["circumstances"] == {
        "memory_poison": "0badcafe", "allocation_jitter": "18446744073709551615"}


def test_environment_is_that_of_any_run():
    plain = completed("selftest_pass").events[0]
    perturbed = completed("selftest_pass", **EVERYTHING).events[0]
    assert plain["environment"] == perturbed["environment"]
    assert plain["input_digest"] == perturbed["input_digest"]


def test_controls_vary_and_ordered_stays_under_contention():
    """Also with its memory moved and poisoned."""
    if "san" in BUILD.name:
        pytest.skip("a sanitizer under load is slow and shows nothing more")
    beside = {"contention": 4, "iterations": 3, "binary": WORKER}
    seen = digests(completed("conv_wgrad", "ordered", **{**EVERYTHING, **beside}))
    assert set(seen) == set(digests(completed("conv_wgrad", "ordered", binary=WORKER)))
    assert any(len(set(digests(completed("conv_wgrad", "unordered", **beside)))) > 1
               for _ in range(10))  # that two threads race in so few iterations is chance


@pytest.mark.parametrize("workload", ["checkpoint_resume", "ring_allreduce"])
def test_workloads_of_several_processes(workload):
    plain = completed(workload, "ordered", iterations=1, binary=WORKER)
    perturbed = completed(workload, "ordered", iterations=1, binary=WORKER, **EVERYTHING)
    assert digests(plain) == digests(perturbed)


@pytest.mark.parametrize("binary", [WORKER, SIMULATOR], ids=["cpu", "simulator"])
def test_uninitialized_read_shows(binary):
    """Two runs of one iteration each differ; with one pattern they would not."""
    if not binary.exists():
        pytest.skip("the simulator is not in this build")

    def seen(variant, pattern):
        return digests(completed("uninitialized_read", variant, iterations=1, binary=binary,
                                 **{"memory-poison": pattern}))
    assert seen("uncleared", "random") != seen("uncleared", "random")
    assert seen("uncleared", "00000001") == seen("uncleared", "00000001")
    assert seen("uncleared", "00000001") != seen("uncleared", "00000002")
    assert seen("cleared", "random") == seen("cleared", "random")


@pytest.mark.parametrize("variant", ["scratch", "recycled"])
def test_poison_shows_what_plain_runs_hide(variant):
    if variant == "recycled" and "san" in BUILD.name:
        pytest.skip("the sanitizers have a heap of their own")
    plain = [digests(completed("selftest_memory", variant)) for _ in range(2)]
    assert plain[0] == plain[1]
    poisoned = [digests(completed("selftest_memory", variant, **{"memory-poison": "random"}))
                for _ in range(2)]
    assert poisoned[0] != poisoned[1]


def loaded(binary=WORKER, workload="conv_wgrad"):
    """A run past its first iteration, with two load processes."""
    started = Run(workload, "ordered", 1000, binary=binary, options=["--contention", "2"])
    started.until("iteration")
    pids = children_of(started.process.pid)
    assert len(pids) == 2
    return started, pids


def test_load_ends_with_a_killed_run():
    started, pids = loaded(WORKER, "bias_add_bwd")
    started.process.kill()
    started.close()
    wait_until_gone(pids)


def test_load_that_ends_early_spoils_the_run():
    started, pids = loaded()
    os.kill(pids[1], signal.SIGKILL)
    assert list(started)[-1]["outcome"] == "infra"
    assert started.close()[0] == 0
    wait_until_gone(pids)


def test_no_load_is_left_by_runs_that_end():
    # More events than its pipe holds: it does not end before they are read.
    started = Run("bias_add_bwd", "ordered", 24, options=["--contention", "2"], pipe_size=4096)
    while len(pids := children_of(started.process.pid)) < 2:
        assert started.process.poll() is None
        time.sleep(0.01)
    assert started.until("end")["outcome"] == "completed"
    assert len(pids) == 2
    wait_until_gone(pids)
    assert started.close()[0] == 0


def test_load_by_itself_ends_with_its_input():
    process = subprocess.Popen([WORKER, "--load", "--threads", "1"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"computing\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(LIMIT) == 0
    process.stdout.close()


def test_a_device_that_cannot_be_loaded_is_infra():
    ended = worker("--load", "--device", "cpu:elsewhere", binary=WORKER)
    assert ended.status == 2 and "unknown device" in ended.stderr


needs_simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason="the simulator is not in this build")


def on_a_gpu(variant="ordered", environment=None, **options):
    return run("bias_add_bwd", variant, binary=SIMULATOR, env=environment,
               **{"iterations": 3, "contention": 2, **options})


@needs_simulator
def test_load_on_a_gpu_is_in_the_process_of_the_run():
    plain = completed("bias_add_bwd", "ordered", iterations=3, binary=SIMULATOR)
    ended = on_a_gpu()
    assert ended.events[0]["circumstances"] == {"contention": 2}
    assert ended.events[-1]["outcome"] == "completed" and digests(ended) == digests(plain)
    started = Run("bias_add_bwd", "ordered", 1000, binary=SIMULATOR, options=["--contention", "2"])
    started.until("iteration")
    assert children_of(started.process.pid) == []
    assert len(os.listdir(f"/proc/{started.process.pid}/task")) == 2
    started.process.kill()
    started.close()


@needs_simulator
@pytest.mark.parametrize("count", ["1", "64"])
def test_any_number_of_loads_on_a_gpu(count):
    assert on_a_gpu(iterations=1, contention=count).events[-1]["outcome"] == "completed"


@needs_simulator
def test_load_on_a_gpu_that_does_not_start_is_infra():
    end = on_a_gpu(environment={"REPROD_CUDASIM_ERROR": "700"}).events[-1]
    assert (end["outcome"], end["iterations"]) == ("infra", 0)
    assert end["cause"].startswith("the load of 2 streams does not compute: the launch of a kernel: ")
    assert end["cause"].endswith("(cudaErrorIllegalAddress, 700)")


@needs_simulator
def test_load_on_a_gpu_that_fails_spoils_the_run():
    """Its tenth kernel is enqueued when three iterations have waited for two of each stream."""
    end = on_a_gpu(iterations=5, environment={"REPROD_CUDASIM_ERROR": "700@load_kernel"}).events[-1]
    assert end["outcome"] == "infra" and "(cudaErrorIllegalAddress, 700)" in end["cause"]


@needs_simulator
def test_a_gpu_of_one_process_has_its_load(tmp_path):
    """EXCLUSIVE_PROCESS: a load process would be refused, as another run is."""
    alone = {"REPROD_CUDASIM_COMPUTE_MODE": "3", "REPROD_CUDASIM_CONTEXTS": str(tmp_path / "contexts")}
    assert on_a_gpu(environment=alone).events[-1]["outcome"] == "completed"
    first = Run("bias_add_bwd", "ordered", 1000, binary=SIMULATOR, env=alone)
    first.until("iteration")
    end = on_a_gpu(environment=alone).events[-1]
    first.process.kill()
    first.close()
    assert end["outcome"] == "infra" and "(cudaErrorDevicesUnavailable, 46)" in end["cause"]
    assert "EXCLUSIVE_PROCESS" in end["cause"]


@needs_simulator
def test_a_gpu_has_no_load_processes():
    ended = worker("--load", binary=SIMULATOR)
    assert ended.status == 5 and "within the process of a run" in ended.stdout


def test_check_under_circumstances():
    arguments = [word for key, value in EVERYTHING.items() for word in (f"--{key}", value)]
    ended = worker("--check", "--workload", "bias_add_bwd", "--variant", "ordered",
                   *arguments, binary=WORKER)
    assert ended.status == 0 and json.loads(ended.stdout)["ok"], ended.stdout


@pytest.fixture
def service(tmp_path):
    with contextlib.ExitStack() as stack:
        started = Service(tmp_path, worker=SELFTEST, options=["--no-survey"]).start()
        stack.callback(started.stop)
        yield started


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return None


def children_named(pid, name):
    found = [pid]
    for parent in found:
        found += children_of(parent)
    return [pid for pid in found[1:] if name_of(pid) == name]


def test_a_job_under_circumstances(service):
    """Asked for over HTTP, said by each run, counted in the cell, left out of its times."""
    case = {"workloads": ["selftest_memory"], "runs": 2, "iterations": 2}
    service.finish_job(service.post_job(**case))
    job = service.post_job(**case, contention=1, memory_poison=True, allocation_jitter="7")
    assert {json.dumps(i["options"], sort_keys=True)
            for i in service.finish_job(job)["items"]} == {
        '{"allocation-jitter": "7", "contention": 1, "memory-poison": "random"}'}
    runs = [r for r in service.items(f"/v1/runs?job={job}") if r["variant"] == "scratch"]
    assert [r["outcome"] for r in runs] == ["completed"] * 2, runs
    said = [r["circumstances"] for r in runs]
    assert said[0].pop("memory_poison") != said[1].pop("memory_poison")
    assert said == [{"allocation_jitter": "7", "contention": 1}] * 2
    assert "contention" in service.get(f"/v1/runs/{runs[0]['id']}.txt")
    assert "contention" in service.get(f"/v1/jobs/{job}.txt")
    heading = "seed 1, allocation-jitter 7, contention 1, memory-poison random) on"
    assert heading in service.get(f"/v1/jobs/{job}/digests.txt")
    cell = service.get(f"/v1/cells/{runs[0]['cell']}")
    assert cell["verdict"] == "varies" and "2 of the runs under contention" in cell["reason"]
    assert cell["evidence"]["runs"] == 4
    assert cell["evidence"]["disturbed_runs"] == cell["evidence"]["contended_runs"] == 2
    assert service.stop() == 0
    assert service.fsck()[0] == 0


def test_a_control_vouches_for_runs_under_the_same_conditions(service):
    """Its reason says what is missing, the evidence what there is; a restart keeps both."""
    def measure(variant, **options):
        service.finish_job(service.post_job(workloads=["selftest_pass"], variants=[variant],
                                            runs=2, iterations=3, **options))
        run = service.items("/v1/runs?workload=selftest_pass&variant=ordered")
        return service.get(f"/v1/cells/{run[0]['cell']}") if run else None
    measure("unordered", allocation_jitter="7")
    plain = measure("ordered")
    assert plain["verdict"] == "inconclusive"
    missing = "varied with allocation-jitter 7, and this variant completed 0 runs so"
    assert missing in plain["reason"]
    assert missing in service.get("/v1/matrix.txt")
    alike = measure("ordered", allocation_jitter="7")
    assert alike["verdict"] == "reproducible"
    assert "allocation-jitter 7, as 2 of these runs" in alike["reason"]
    shown = service.get(alike["digests"])["alike"]
    assert shown == [{"options": None, "runs": 2, "varied": False},
                     {"options": {"allocation-jitter": "7"}, "runs": 2, "varied": False}]
    service.process.kill()
    service.process.wait()
    service.start()
    assert service.get(alike["href"])["reason"] == alike["reason"]
    assert service.stop() == 0
    assert service.fsck()[0] == 0


@pytest.mark.parametrize("killed", ["reprod", "agent", "reprod-worker"])
def test_no_load_outlives_what_is_killed(service, killed):
    service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, contention=2)
    service.wait(lambda: len(children_named(service.process.pid, "reprod-load")) == 2,
                 "two load processes")
    load = children_named(service.process.pid, "reprod-load")
    victims = {"reprod": [service.process.pid], "agent": children_of(service.process.pid),
               "reprod-worker": [int(stat_of(load[0])[1])]}[killed]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    wait_until_gone(load)
