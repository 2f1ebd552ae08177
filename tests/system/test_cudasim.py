"""The CUDA worker without a GPU: its kernels on the simulator, through the worker's protocol.

Generic over the registry: a new cuda/<name>.cu is covered without touching this file.
  - its inputs are the CPU worker's, and `--check` passes for every variant;
  - a control varies with the schedule, everything else does not;
  - a variant whose algorithm reads as that of the CPU's variant has the CPU's bits.
A variant that needs a library or a GPU ends `unsupported` here and is left out.
What this cannot show is what a GPU does: only tests on one can.
"""
import functools
import json
import os
import pathlib
import subprocess

import pytest

from test_detection import LIBRARIES, LIMIT, NOT_A_RACE

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
CPU = BUILD / "reprod-worker"
CUDA = BUILD / "reprod-worker-cuda"
SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"
FAULTS = BUILD / "tests" / "reprod-worker-cudasim-selftest"
SANITIZED = "address" in str(BUILD)
ALONE = {"cpu_reduction"}  # of the CPU's workloads, those whose subject it is
SEEDS = (1, 2)  # each another size of grids
CUDA_ONLY = {"cudnn_conv_fwd", "cudnn_conv_dgrad", "cudnn_conv_wgrad"}  # about a library for GPUs
AGAIN = {"train_cnn_large"}  # the code of another workload, at sizes that take longer
SCHEDULES = int(os.environ.get("REPROD_SCHEDULES", "0"))  # of each seed; 0: the fewest

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


def start(binary, *arguments, env=None, **options):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "REPROD_CUDASIM"))}
    environment.update({k: str(v) for k, v in (env or {}).items()})
    return subprocess.run([binary, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                          timeout=LIMIT, **options)


def run(binary, workload, variant, iterations=1, size=None, env=None, options=()):
    """The events of a run."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as lines:
        try:
            ended = start(binary, "--run", "--workload", workload, "--variant", variant,
                          "--iterations", iterations, *(["--size", size] if size else []), *options,
                          env={**(env or {}), "REPROD_RESULT_FD": write_end},
                          pass_fds=[write_end])
        finally:
            os.close(write_end)
        assert ended.returncode == 0, ended.stderr.decode()[-2000:]
        return [json.loads(line) for line in lines]


def digests(events):
    return [event["digest"] for event in events if event["event"] == "iteration"]


@functools.cache
def catalogue(binary):
    lines = start(binary, "--catalogue", check=True).stdout.splitlines()
    return {entry["workload"]: entry for entry in map(json.loads, lines)}


def variants():
    if not SIMULATOR.exists():
        return []
    return [(name, variant["name"]) for name, entry in catalogue(SIMULATOR).items()
            for variant in entry["variants"]]


def description(binary, workload, variant):
    entries = catalogue(binary).get(workload, {"variants": []})["variants"]
    return next((v for v in entries if v["name"] == variant), None)


def promises_the_bits_of_the_cpu(workload, own):
    twin = description(CPU, workload, own["name"])
    return twin and not own["control"] and twin["algorithm"] == own["algorithm"]


def check(workload, variant):
    return start(SIMULATOR, "--check", "--workload", workload, "--variant", variant,
                 env={"REPROD_CUDASIM_SEED": SEEDS[0]})


@functools.cache
def measure(workload, variant, seeds=SEEDS):
    own = description(SIMULATOR, workload, variant)
    iterations = SCHEDULES or (2 if own["control"] else 1)  # each a schedule of its own
    runs = [run(SIMULATOR, workload, variant, iterations, env={"REPROD_CUDASIM_SEED": seed})
            for seed in seeds]
    cpu = None
    if promises_the_bits_of_the_cpu(workload, own):
        cpu = digests(run(CPU, workload, variant))[0]
    return {"runs": runs, "cpu": cpu}


@functools.cache
def cpu_input_digest(workload):
    first = catalogue(CPU)[workload]["variants"][0]["name"]
    return run(CPU, workload, first)[-1]["input_digest"]


def skip_unsupported(said):
    if said["outcome"] == "unsupported":
        pytest.skip(said["cause"])


@pytest.mark.flavour
@pytest.mark.skipif(not SANITIZED and not SCHEDULES, reason="the sanitizers' stage does it")
@pytest.mark.parametrize("workload, variant", [each for each in variants()
                                               if SCHEDULES or each[0] not in AGAIN])
def test_is_right(workload, variant):
    ended = check(workload, variant)
    assert ended.stdout, (ended.returncode, ended.stderr.decode()[-2000:])
    said = json.loads(ended.stdout)
    skip_unsupported(said)
    assert ended.returncode == 0 and said["ok"], (said, ended.stderr.decode()[-2000:])


def scheduled():
    """(workload, variant, seeds): iterations of a run have schedules of their own.  `make test-deep` has other grids, and
    all variants; every day one of each workload that is to be steady."""
    steady = set(AGAIN)
    for workload, variant in variants():
        if workload not in steady and not description(SIMULATOR, workload, variant)["control"]:
            steady.add(workload)
            yield workload, variant, SEEDS[:1]
        yield pytest.param(workload, variant, SEEDS, marks=pytest.mark.long)


@pytest.mark.parametrize("workload, variant, seeds", scheduled())
def test_schedules(workload, variant, seeds):
    found = measure(workload, variant, seeds)
    skip_unsupported(found["runs"][0][-1])
    for events in found["runs"]:
        assert events[-1]["outcome"] == "completed", events[-1]
        assert workload in CUDA_ONLY or events[-1]["input_digest"] == cpu_input_digest(workload)
        assert events[0]["device"] == "sim:0"
    seen = {digest for events in found["runs"] for digest in digests(events)}
    if not description(SIMULATOR, workload, variant)["control"]:
        assert len(seen) == 1, "the bits depend on the schedule"
        assert found["cpu"] in (None, *seen), "not the CPU's bits, with the CPU's algorithm"
    elif workload not in NOT_A_RACE:
        assert len(seen) > 1, "the control does not depend on the schedule"


def test_some_have_the_bits_of_the_cpu():
    """The rule of equal algorithms is about something."""
    for workload in ("bias_add_bwd", "segment_sum"):
        assert measure(workload, "ordered")["cpu"], workload


@pytest.mark.parametrize("workload", ["train_cnn", "train_rnn_ctc", "checkpoint_resume"])
def test_traces_are_those_of_the_cpu(workload):
    """A training that has the CPU's bits has them at every place of every step."""
    cpu, simulated = ([event for event in run(binary, workload, "ordered", env=env,
                                              options=("--probes", "1"))
                       if event["event"] == "probes"]
                      for binary, env in ((CPU, {}), (SIMULATOR, {"REPROD_CUDASIM_SEED": 1})))
    assert len(cpu) >= 4 and cpu == simulated


def test_every_workload_of_the_cpu_has_a_twin():
    """But those whose subject is the CPU: its threads, or a library for it."""
    without = {name for name in catalogue(CPU).keys() - catalogue(SIMULATOR).keys()
               if not name.startswith(LIBRARIES)}
    assert without == ALONE, "write cuda/<name>.cu (cuda/README.md), or name it in ALONE"


def test_cuda_workloads_are_those_of_the_cpu():
    """One operation, one definition: everything but the variants."""
    assert catalogue(SIMULATOR).keys() - catalogue(CPU).keys() == CUDA_ONLY
    for name in catalogue(SIMULATOR).keys() - CUDA_ONLY:
        entry, twin = catalogue(SIMULATOR)[name], catalogue(CPU)[name]
        assert entry["backend"] == "cuda"
        assert entry["variants"][0]["control"] == twin["variants"][0]["control"]
        for key in ("title", "summary", "weight_sum", "loss", "references"):
            assert entry[key] == twin[key], (name, key)
        if any(promises_the_bits_of_the_cpu(name, variant) for variant in entry["variants"]):
            assert entry["version"] == twin["version"], name
        sizes = {size["name"]: size for size in twin["sizes"]}
        for size in entry["sizes"]:
            assert sizes.get(size["name"], size) == size, name


@pytest.mark.flavour
@pytest.mark.parametrize("fault, message", [
    ("divergent", "divergent barrier"),
    ("different_barriers", "different __syncthreads"),
    ("deadlock", "deadlock"),
    ("absent_lane", "which is not there"),
])
def test_planted_faults_end_the_process(fault, message):
    ended = start(FAULTS, "--check", "--workload", "faults", "--variant", fault)
    assert ended.returncode < 0
    assert message in ended.stderr.decode()


@pytest.mark.flavour
def test_a_missing_barrier_is_found():
    runs = {variant: [digests(run(FAULTS, "faults", variant, env={"REPROD_CUDASIM_SEED": seed}))[0]
                      for seed in range(4)] for variant in ("barrier", "no_barrier")}
    assert len(set(runs["barrier"])) == 1
    assert len(set(runs["no_barrier"])) > 1
    for variant, status in (("barrier", 0), ("no_barrier", 1)):
        ended = start(FAULTS, "--check", "--workload", "faults", "--variant", variant)
        assert ended.returncode == status


@pytest.mark.flavour
@pytest.mark.skipif(not SANITIZED, reason="needs AddressSanitizer")
def test_an_overrun_is_found():
    ended = start(FAULTS, "--check", "--workload", "faults", "--variant", "overrun")
    assert ended.returncode != 0 and b"heap-buffer-overflow" in ended.stderr


def test_the_same_seed_is_the_same_schedule():
    first, second = (digests(run(SIMULATOR, "reduce_sum", "unordered", 2,
                                 env={"REPROD_CUDASIM_SEED": 5})) for _ in range(2))
    assert first == second and first[0] != first[1]


def test_the_simulator_does_not_pass_for_a_gpu():
    probe = json.loads(start(SIMULATOR, "--probe", check=True).stdout)
    assert [device["id"] for device in probe["devices"]] == ["sim:0"]
    environment = run(SIMULATOR, "reduce_sum", "ordered")[0]["environment"]
    assert environment["model"] == "simulator, no GPU"
    assert "driver" not in environment and "cuda_driver" not in environment


def test_unknown_devices_are_refused():
    ended = start(SIMULATOR, "--check", "--workload", "reduce_sum", "--device", "GPU-0")
    assert ended.returncode == 2
    assert b"unknown device 'GPU-0'; nearest: 'sim:0'" in ended.stderr


def test_a_full_device_is_out_of_memory():
    end = run(SIMULATOR, "reduce_sum", "ordered", size="large")[-1]
    assert end["outcome"] == "out_of_memory"
    assert end["cause"].endswith("bytes of device memory for x") and end["elements"] == 0


@pytest.mark.parametrize("error, name", [(700, "cudaErrorIllegalAddress"),
                                         (214, "cudaErrorECCUncorrectable")])
def test_a_broken_device_is_infra(error, name):
    events = run(SIMULATOR, "reduce_sum", "ordered", env={"REPROD_CUDASIM_ERROR": error})
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[-1]["outcome"] == "infra" and f"({name}, {error})" in events[-1]["cause"]


# Compute modes (nvidia-smi -c)

def probe_of(**environment):
    return json.loads(start(SIMULATOR, "--probe", env=environment).stdout)


@pytest.mark.parametrize("number, mode", [("0", "default"), ("3", "exclusive_process")])
def test_the_probe_says_the_compute_mode(number, mode):
    probe = probe_of(REPROD_CUDASIM_COMPUTE_MODE=number)
    assert [device["attributes"]["compute_mode"] for device in probe["devices"]] == [mode]
    assert probe["cause"] is None and "compute_mode" not in probe["problems"]


def test_a_prohibited_gpu_is_no_device():
    probe = probe_of(REPROD_CUDASIM_COMPUTE_MODE="2", REPROD_CUDASIM_DEVICES="2")
    assert probe["devices"] == []
    assert "its compute mode is PROHIBITED" in probe["cause"] and probe["cause"].startswith("sim:")
    assert probe["problems"]["compute_mode"].startswith("sim:0: its compute mode is PROHIBITED")


def test_a_run_on_a_prohibited_gpu_says_what_to_do():
    end = run(SIMULATOR, "reduce_sum", "ordered", env={"REPROD_CUDASIM_COMPUTE_MODE": "2"})[-1]
    assert end["outcome"] == "infra" and end["elements"] == 0
    assert end["cause"] == ("sim:0: its compute mode is PROHIBITED, which lets no process use it; "
                            "nvidia-smi -i sim:0 -c DEFAULT ends that")


@pytest.mark.parametrize("variant, outcome", [("ordered", "completed"), ("resumed", "unsupported")])
def test_a_gpu_of_one_process_has_no_second_process_of_a_run(variant, outcome, tmp_path):
    end = run(SIMULATOR, "checkpoint_resume", variant,
              env={"REPROD_CUDASIM_COMPUTE_MODE": "3",
                   "REPROD_CUDASIM_CONTEXTS": str(tmp_path / "contexts")})[-1]
    assert end["outcome"] == outcome
    assert outcome == "completed" or "EXCLUSIVE_PROCESS" in end["cause"]


@pytest.mark.parametrize("files, error, told", [
    (["nvidiactl"], 999, True), (["nvidiactl"], 100, True), (["nvidiactl", "nvidia-uvm"], 999, False), ([], 999, False)])
def test_a_missing_device_file_is_told(files, error, told, tmp_path):
    """What a driver needs and a worker may not make."""
    for name in files:
        (tmp_path / name).touch()
    probe = probe_of(REPROD_CUDASIM_COUNT_ERROR=error, REPROD_CUDASIM_DEV=tmp_path)
    assert probe["devices"] == [] and str(error) in probe["cause"]
    assert ("/dev/nvidia-uvm is missing" in probe["cause"] and "nvidia-modprobe" in probe["cause"]) == told


# The real worker, on a machine without a GPU

needs_no_gpu = pytest.mark.skipif(
    not CUDA.exists() or any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))),
    reason="needs the CUDA worker, and a machine without a GPU")
NO_DRIVER = {"no NVIDIA driver: libcuda.so.1 was not found (cudaErrorInsufficientDriver, 35)"}


@needs_no_gpu
def test_probe_without_a_driver_says_so():
    ended = start(CUDA, "--probe")
    probe = json.loads(ended.stdout)
    assert ended.returncode == 0 and ended.stderr == b""
    assert probe["backend"] == "cuda" and probe["devices"] == []
    assert probe["cause"] in NO_DRIVER
    assert probe["versions"]["cuda_runtime"]
    assert "driver" not in probe["versions"]


@needs_no_gpu
def test_run_without_a_driver_is_infra():
    events = run(CUDA, "reduce_sum", "ordered", 3)
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[0]["device"] == "unknown" and "model" not in events[0]["environment"]
    assert events[-1]["outcome"] == "infra" and events[-1]["cause"] in NO_DRIVER
    assert events[-1]["iterations"] == events[-1]["elements"] == 0


@needs_no_gpu
def test_check_without_a_driver_checks_nothing():
    ended = start(CUDA, "--check", "--workload", "reduce_sum")
    assert ended.returncode == 5
    assert json.loads(ended.stdout)["cause"] in NO_DRIVER


@pytest.mark.skipif(not CUDA.exists(), reason="needs the CUDA worker")
def test_the_cuda_worker_has_the_workloads_that_were_simulated():
    assert catalogue(CUDA) == catalogue(SIMULATOR)
