"""Packs of frameworks with the backend cuda, on a driver that only says that it has GPUs: which of them
computes, with which switches, and what is refused.  What a GPU computes, only one can show."""
import array
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace
from unittest import mock

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402

GPUS = ["GPU-00000000-0000-0000-0000-000000000000", "GPU-00000000-0000-0000-0000-000000000001"]
SAYS = 'print("VISIBLE", os.environ.get("CUDA_VISIBLE_DEVICES"))'
# name of the stack: (CUDA that its framework was built with, variables of the driver)
SLICES = ["MIG-00000000-0000-0000-0000-00000000000%d" % number for number in (3, 4, 5)]
MIG = """nvml 13.580.65.06
gpu
  uuid GPU-00000000-0000-0000-0000-0000000000ff
  mig_mode 1 1
  mig 0 {} 7 0 NVIDIA Pretend 9000 MIG 1g.10gb
  mig 1 {} 8 0 NVIDIA Pretend 9000 MIG 1g.10gb
  mig 3 {} 9 0 NVIDIA Pretend 9000 MIG 1g.10gb
gpu
  uuid {}
  mig_mode 0 0
gpu
  uuid GPU-of-nobody
"""
STACKS = {
    "gpus": ("12.0", {"FAKE_GPUS": "2"}),
    "granted": ("12.0", {"FAKE_GPUS": "2", "CUDA_VISIBLE_DEVICES": GPUS[1]}),
    "slice": ("12.0", {"FAKE_GPUS": "4", "CUDA_VISIBLE_DEVICES": "MIG-00000000-0000-0000-0000-000000000003"}),
    "deaf": ("12.0", {"FAKE_GPUS": "2", "FAKE_DEAF": "1"}),
    "none": ("12.0", {"FAKE_GPUS": "0"}),
    "no-driver": ("12.0", {}),
    "cpu-build": (None, {"FAKE_GPUS": "2"}),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return tiny.driver(tmp_path_factory.mktemp("driver") / "lib")


@pytest.fixture(scope="module")
def service(tmp_path_factory, driver):
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "broken").mkdir()
    (folder / "nvml").mkdir()
    (folder / "broken" / "libcuda.so.1").write_text("no library")
    stacks = [{"name": "cpu", "worker": str(BUILD / "reprod-worker")},
              {"name": "hidden", "library_path": str(driver), "env": {"FAKE_GPUS": "2"},
               "worker": str(tiny.stack(folder / "hidden", "1.0", more=SAYS, cuda="12.0"))}]
    (folder / "nvml.txt").write_text(MIG.format(*SLICES, GPUS[0]))
    shutil.copy(driver / "libcuda.so.1", folder / "nvml" / "libcuda.so.1")
    shutil.copy(BUILD / "tests" / "nvml" / "libnvidia-ml.so.1", folder / "nvml" / "libnvidia-ml.so.1")
    for name, granted in ("mig", None), ("mig-granted", ",".join(["GPU-of-nobody", SLICES[1], GPUS[0]])), \
            ("mig-number", "0"):
        stacks.append({"name": name, "library_path": str(folder / "nvml"),
                       "env": {"FAKE_GPUS": "6", "REPROD_FAKE_NVML": str(folder / "nvml.txt"),
                               **({"CUDA_VISIBLE_DEVICES": granted} if granted else {})},
                       "worker": str(tiny.stack(folder / name, "1.0", "cuda", more=SAYS, cuda="12.0"))})
    for name, (cuda, variables) in STACKS.items():
        stacks.append({"name": name, "env": variables,
                       "library_path": str(driver if variables else folder / "broken"),
                       "worker": str(tiny.stack(folder / name, "1.0", "cuda", more=SAYS, cuda=cuda))})
    shared = Service(folder, options=["--no-survey"], config={"stacks": stacks})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]
    code, text = shared.fsck()
    assert code == 0, text


@pytest.fixture(scope="module")
def stacks(service):
    return {stack["name"]: stack for stack in service.get("/v1/stacks")["items"]}


def measure(service, **job):
    job = service.post_job(runs=3, iterations=2, **job)
    assert service.finish_job(job)["state"] == "finished"
    return service.items(f"/v1/runs?job={job}")


@pytest.fixture(scope="module")
def runs(service):
    return (measure(service, workloads=["tiny_total", "tiny_constant"], stacks=["hidden"])
            + measure(service, workloads=["tiny_total", "tiny_constant"], stacks=["gpus"], devices=GPUS))


def log_of(service, run):
    return service.request("GET", f"/v1/runs/{run['id']}/log")[2]


def cell_of(service, runs, **asked):
    run = next(run for run in runs if all(run[name] == value for name, value in asked.items()))
    cell = run["cell"]
    return service.get(cell if str(cell).startswith("/") else f"/v1/cells/{cell}")


@pytest.mark.long
def test_a_stack_has_the_gpus_that_the_driver_shows(stacks):
    for name in "gpus", "deaf":
        assert stacks[name]["cause"] is None, stacks[name]
        assert [device["id"] for device in stacks[name]["devices"]] == GPUS
    device = stacks["gpus"]["devices"][0]
    assert device["model"] == "NVIDIA Pretend 9000"
    assert device["attributes"] == {"compute_capability": "9.0", "memory_bytes": 1 << 30, "sm_count": 132}
    versions = stacks["gpus"]["versions"]
    assert (versions["cuda_driver"], versions["cuda_runtime"]) == ("12.4", "12.0")
    assert [device["id"] for device in stacks["granted"]["devices"]] == GPUS[1:]
    [slice_] = stacks["slice"]["devices"]
    assert slice_["id"].startswith("MIG-") and slice_["attributes"]["mig_profile"] == "1g.10gb"


@pytest.mark.long
def test_a_stack_has_the_slices_that_the_driver_does_not_show(stacks):
    """Each as the driver says it where it is shown alone.  (The stand-in reads no numbers: it shows none.)"""
    devices = stacks["mig"]["devices"]
    assert [device["id"] for device in devices] == [SLICES[0], SLICES[1], SLICES[2], GPUS[0]], stacks["mig"]
    assert [device["attributes"].get("mig_profile") for device in devices] == ["1g.10gb"] * 3 + [None]
    assert devices[1] == {**devices[0], "id": SLICES[1]}
    assert [device["id"] for device in stacks["mig-granted"]["devices"]] == [SLICES[1], GPUS[0]]
    assert stacks["mig-number"]["devices"] == []


@pytest.mark.parametrize("visible, allowed", [
    (None, ["MIG-1", "MIG-2"]), ("mig-2", ["MIG-2"]), ("-1,MIG-1", []), ("NoDevFiles,MIG-1", []),
    ("MIG-2,-1,MIG-1", ["MIG-2"]), ("", []), ("MIG-", [])])
def test_no_list_is_widened(monkeypatch, visible, allowed):
    monkeypatch.syspath_prepend(ROOT / "workloads" / "frameworks")
    import gpu_slices
    assert gpu_slices.allowed(["MIG-1", "MIG-2"], visible) == allowed


def test_nvml_that_hangs_hides_no_gpu_that_the_driver_shows(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "workloads" / "frameworks")
    import gpu_slices
    answers = threading.Event()
    monkeypatch.setattr(gpu_slices, "listed", lambda: answers.wait() and ["MIG-1"])
    monkeypatch.setattr(gpu_slices, "DEADLINE_S", 0.01)
    assert gpu_slices.hidden([{"id": "GPU-1"}], None) == []
    assert "NVML did not answer within 0.01 seconds" in capsys.readouterr().err
    answers.set()


@pytest.mark.long
@pytest.mark.parametrize("device", [SLICES[2], GPUS[0]])
def test_a_run_has_the_slice_that_was_requested(service, device):
    [run, *_] = measure(service, workloads=["tiny_total"], variants=["default"], stacks=["mig"], devices=[device])
    assert (run["outcome"], run["device"]) == ("completed", device), run
    assert f"VISIBLE {device}\n" in log_of(service, run)


@pytest.mark.long
@pytest.mark.parametrize("name, cause", [
    ("none", "the NVIDIA driver shows no GPU; CUDA_VISIBLE_DEVICES=is not set"),
    ("no-driver", "no NVIDIA driver: libcuda.so.1 was not found"),
    ("cpu-build", "Tiny Frame 1.0 was built without CUDA"),
])
def test_without_a_gpu_a_stack_says_why(service, stacks, name, cause):
    assert cause in stacks[name]["cause"] and not stacks[name]["devices"]
    status, _, said = service.request("POST", "/v1/jobs", {"workloads": ["tiny_total"], "stacks": [name]})
    assert status == 503 and cause in said["detail"], said
    assert (said["type"] == "/problems/no-device") == (name != "cpu-build")
    status, _, said = service.request("POST", "/v1/jobs", {"workloads": ["tiny_total"], "stacks": [name + "-"]})
    assert status == 422 and said["type"] == "/problems/unknown-stack", said


@pytest.mark.long
def test_each_backend_has_its_switches(service):
    lines = {line["backend"]: line for line in service.get("/v1/workloads/tiny_total")["items"]}
    switches = {backend: [(v["name"], v["claim"], v["recipe"]) for v in line["variants"]]
                for backend, line in lines.items()}
    assert switches["cpu"] == [("default", None, None), ("deterministic", "deterministic", "UDA")]
    assert switches["cuda"] == switches["cpu"] + [("gpu_fast", "non-deterministic", "CD")]


@pytest.mark.long
def test_each_run_has_the_gpu_that_was_requested_and_no_other(service, runs):
    on_gpus = [run for run in runs if run["stack"] == "gpus" and run["workload"] == "tiny_total"]
    assert {run["device"] for run in on_gpus} == set(GPUS)
    for run in on_gpus:
        assert run["outcome"] == "completed", run
        assert f"VISIBLE {run['device']}\n" in log_of(service, run)


@pytest.mark.long
def test_what_computes_on_the_cpu_sees_no_gpu(service, runs):
    """A framework that finds one would compute there, under the name of the CPU."""
    run = next(run for run in runs if run["stack"] == "hidden")
    assert run["device"].startswith("cpu:") and "VISIBLE -1\n" in log_of(service, run)


@pytest.mark.long
def test_codes_are_earned_on_each_gpu(service, runs):
    for device in GPUS:
        asked = {"workload": "tiny_total", "device": device}
        assert cell_of(service, runs, variant="default", **asked)["verdict"] == "varies"
        assert cell_of(service, runs, variant="gpu_fast", **asked)["verdict"] == "varies"
        cell = cell_of(service, runs, variant="deterministic", **asked)
        assert cell["verdict"] == "reproducible", cell["reason"]
        assert cell["challenge"]["state"] == "passed"


@pytest.mark.long
def test_the_environment_is_the_gpus(service, runs):
    run = next(run for run in runs if run["stack"] == "gpus" and run["variant"] == "deterministic")
    facts = service.get(f"/v1/environments/{run['environment']}")["facts"]
    assert {"backend": "cuda", "model": "NVIDIA Pretend 9000", "compute_capability": "9.0", "sm_count": 132,
            "cuda_driver": "12.4", "cuda_runtime": "12.0", "tinyframe": "1.0"}.items() <= facts.items()
    assert "memory_bytes" not in facts


@pytest.mark.long
def test_inputs_are_those_of_the_cpu(service, runs):
    assert {run["device"].partition(":")[0] for run in runs} == {"cpu", *GPUS}
    assert service.items("/v1/inputs") == []


@pytest.mark.long
def test_what_is_computed_elsewhere_is_not_a_measurement_of_the_gpu(service, runs):
    """Asked to be deterministic, tinyframe.constant answers from the host."""
    elsewhere = [run for run in runs if (run["stack"], run["workload"], run["variant"])
                 == ("gpus", "tiny_constant", "deterministic")]
    assert {run["outcome"] for run in elsewhere} == {"unsupported"}
    assert {run["cause"] for run in elsewhere} == {
        "Tiny Frame does not compute it on the GPU: its output y lies elsewhere"}
    assert cell_of(service, runs, stack="hidden", workload="tiny_constant",
                   variant="deterministic")["verdict"] == "inconclusive"


@pytest.mark.long
def test_a_driver_that_shows_others_too_is_no_measurement(service):
    found = measure(service, workloads=["tiny_total"], variants=["default"], stacks=["deaf"], devices=GPUS[:1])
    assert {run["outcome"] for run in found} == {"infra"}, found
    assert f"the driver shows {GPUS[0]}, {GPUS[1]} where {GPUS[0]} was requested" in found[0]["cause"]


# The worker by itself

def ask(program, *arguments, driver=None, gpus="2"):
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(driver or ""), "FAKE_GPUS": gpus,
                               "REPROD_RESULT_FD": "1"})
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


CASE = ["--run", "--workload", "tiny_total", "--size", "small", "--dtype", "float32", "--seed", "1",
        "--iterations", "1", "--threads", "2", "--variant", "default"]


@pytest.mark.parametrize("device", ["GPU-of-another-host", "cpu:here", "0"])
def test_a_gpu_that_is_not_there_computes_nothing(tmp_path, driver, device):
    program = tiny.stack(tmp_path / "w", "1.0", "cuda", cuda="12.0")
    status, events, log = ask(program, *CASE, "--device", device, driver=driver)
    assert status == 0, log
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[0]["device"] == events[1]["device"] == "unknown"
    assert events[1]["outcome"] == "infra"
    assert events[1]["cause"] == f"the NVIDIA driver shows no GPU; CUDA_VISIBLE_DEVICES={device}"


def test_a_switch_of_gpus_is_none_on_a_cpu(tmp_path, driver):
    program = tiny.stack(tmp_path / "w", "1.0", cuda="12.0")
    status, events, log = ask(program, *CASE[:-1], "gpu_fast", "--device", "cpu:here", driver=driver)
    assert status == 1 and events == [] and "has no variant 'gpu_fast'" in log


def test_a_pack_without_the_backend_is_refused():
    worker = ROOT / "workloads" / "frameworks" / "worker.py"
    done = subprocess.run([sys.executable, "-B", str(worker), "--framework", "numpy", "--backend", "cuda",
                           "--probe"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "NumPy has no backend cuda\n")


# The packs of the real frameworks, with what stands for them

@pytest.fixture
def packs(monkeypatch):
    """{name: PACK} of those that compute on GPUs, asked to; and the module of what they raise."""
    folder = ROOT / "workloads" / "frameworks"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "pack", raising=False)  # others keep theirs, and what it raises
    found = {}
    for name in "jax", "onnxruntime", "pytorch", "tensorflow":
        spec = importlib.util.spec_from_file_location("pack_" + name, folder / f"pack_{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[name] = module.PACK
        found[name].backend, found[name].framework = "cuda", mock.MagicMock(__version__="9.9.9")
    found["pytorch"].framework.version.cuda = "12.1"
    found["pytorch"].framework.__config__ = mock.Mock(show=mock.Mock(return_value="MKL-DNN v3.1.1 (Git Hash 0)"))
    yield SimpleNamespace(raised=importlib.import_module("pack"), **found)
    sys.modules.pop("pack")


def variants(pack):
    return {variant.name: variant for variant in pack.asked()}


def test_the_switches_of_each_framework_on_a_gpu(packs):
    """Those of threads are a CPU's; what XLA's flags promise, they promise on a GPU."""
    assert {name: {v.name: (v.recipe, v.variables, pack.promised(v)) for v in pack.asked()}
            for name, pack in vars(packs).items() if name != "raised"} == {
        "jax": {"default": (None, {}, None),
                "deterministic_ops": (None, {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}, "deterministic"),
                "exclude_nondeterministic": (
                    None, {"XLA_FLAGS": "--xla_gpu_exclude_nondeterministic_ops=true"}, "deterministic")},
        "onnxruntime": {"default": (None, {}, None), "deterministic": (None, {}, "deterministic")},
        "pytorch": {"default": (None, {}, None), "cudnn_deterministic": ("CD", {}, None),
                    "deterministic": ("UDA+CWC", {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}, "deterministic")},
        "tensorflow": {"default": (None, {}, None),
                       "deterministic_ops": ("TDO", {"TF_DETERMINISTIC_OPS": "1"}, "deterministic"),
                       "op_determinism": ("EOD", {}, "deterministic")}}


def test_what_is_installed_for_a_gpu(packs):
    wanted = {name: pack.requirement() for name, pack in vars(packs).items() if name != "raised"}
    assert wanted == {"jax": "jax[cuda12]", "onnxruntime": "onnxruntime-gpu[cuda,cudnn]", "pytorch": "torch",
                      "tensorflow": "tensorflow[and-cuda]"}
    packs.jax.backend = packs.tensorflow.backend = packs.onnxruntime.backend = "cpu"
    assert [packs.jax.requirement(), packs.tensorflow.requirement(), packs.onnxruntime.requirement()] \
        == ["jax", "tensorflow-cpu", "onnxruntime"]


def refusal(packs, call):
    with pytest.raises(packs.raised.Refused) as refused:
        call()
    return str(refused.value)


def test_pytorch_on_a_gpu(packs):
    pack, torch = packs.pytorch, packs.pytorch.framework
    torch.cuda.is_available.return_value, torch.cuda.device_count.return_value = True, 1
    torch.backends.cudnn.version.return_value = 8902
    torch.version.git_version = "abc"
    # What asks CUDA's runtime waits until the process is the one that computes: it may be forked before.
    assert pack.versions() == {"torch_git": "abc"}
    torch.__config__.show.assert_not_called()
    torch.backends.cudnn.version.assert_not_called()
    torch.cuda.is_available.assert_not_called()
    found = pack.open_gpu()
    assert (found["cuda_runtime"], found["cudnn"], found["onednn"]) == ("12.1", 8902, "3.1.1")
    assert found["torch_config"] == "MKL-DNN v3.1.1 (Git Hash 0)"
    torch.backends.cudnn.deterministic = False
    pack.switch(variants(pack)["default"], 2)
    assert torch.backends.cudnn.deterministic is False
    pack.switch(variants(pack)["cudnn_deterministic"], 2)
    assert torch.backends.cudnn.deterministic is True
    torch.use_deterministic_algorithms.assert_not_called()
    pack.switch(variants(pack)["deterministic"], 2)
    torch.use_deterministic_algorithms.assert_called_once_with(True)
    placed = torch.frombuffer.return_value.reshape.return_value.to
    assert pack.tensor(array.array("f", [1.0]), (1,)) is placed.return_value
    placed.assert_called_once_with("cuda")
    assert [pack.is_on_gpu(SimpleNamespace(device=SimpleNamespace(type=kind))) for kind in ("cuda", "cpu")] \
        == [True, False] and not pack.is_on_gpu(1.0)
    torch.cuda.is_available.return_value = False
    assert "which was built for CUDA 12.1, sees no GPU" in refusal(packs, pack.open_gpu)
    torch.version.cuda = None
    for call in pack.open_gpu, pack.check_build:
        assert refusal(packs, call) == "PyTorch 9.9.9 was built without CUDA"


def test_tensorflow_on_a_gpu(packs):
    """Where it has no code for the GPU it raises: soft placement would go on elsewhere."""
    pack, tf = packs.tensorflow, packs.tensorflow.framework
    tf.config.list_physical_devices.return_value = ["gpu"]
    tf.sysconfig.get_build_info.return_value = {"cuda_version": "12.3", "cudnn_version": "8"}
    assert pack.open_gpu() == {"cuda_runtime": "12.3", "cudnn": "8"}
    tf.config.set_soft_device_placement.assert_called_once_with(False)
    tf.config.experimental.set_memory_growth.assert_called_once_with("gpu", True)
    assert pack.scope() is tf.device.return_value
    tf.device.assert_called_once_with("/GPU:0")
    assert pack.is_on_gpu(SimpleNamespace(device="/job:localhost/replica:0/task:0/device:GPU:0"))
    assert not pack.is_on_gpu(SimpleNamespace(device="/job:localhost/replica:0/task:0/device:CPU:0"))
    assert pack.explains(ValueError("Could not satisfy device specification '/device:GPU:0'"))
    tf.config.list_physical_devices.return_value = []
    assert "sees no GPU" in refusal(packs, pack.open_gpu)
    tf.test.is_built_with_cuda.return_value = False
    assert refusal(packs, pack.check_build) == "TensorFlow 9.9.9 was built without CUDA"


def test_jax_on_a_gpu(packs, monkeypatch):
    pack, jax = packs.jax, packs.jax.framework
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jaxlib", SimpleNamespace(__version__="0.4.16+cuda12.cudnn89"))
    for backend in "cpu", "cuda":
        monkeypatch.setenv("JAX_PLATFORMS", "of the user")
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
        pack.backend = backend
        pack.load()
        assert os.environ["JAX_PLATFORMS"] == backend
    gpu = SimpleNamespace(platform="gpu", client=SimpleNamespace(platform_version="PJRT C API\ncuda 12030"))
    jax.devices.return_value, jax.default_backend.return_value = [gpu], "gpu"
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(__version__="2.0.0"))
    for pack.backend in "cpu", "cuda":
        assert "xla_backend" not in pack.versions()
    jax.devices.assert_not_called()
    jax.default_backend.assert_not_called()
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert pack.open_gpu() == {"xla_backend": "gpu", "cuda_runtime": "12.3"}
    gpu.client.platform_version = "rocm 6.1"
    assert pack.open_gpu()["cuda_runtime"] == "rocm 6.1"
    host = SimpleNamespace(platform="cpu")
    assert pack.is_on_gpu(SimpleNamespace(devices=lambda: [gpu]))
    assert not pack.is_on_gpu(SimpleNamespace(devices=lambda: [host]))
    assert pack.is_on_gpu(SimpleNamespace(device=lambda: gpu))
    assert not pack.is_on_gpu(SimpleNamespace(device="cpu")) and not pack.is_on_gpu(1.0)
    jax.devices.return_value = [host]
    assert refusal(packs, pack.open_gpu) == "JAX 9.9.9 computes on cpu"
    jax.devices.side_effect = RuntimeError("Unable to initialize backend 'cuda'")
    assert refusal(packs, pack.open_gpu) == "JAX 9.9.9 sees no GPU: Unable to initialize backend 'cuda'"
    monkeypatch.setitem(sys.modules, "jaxlib", SimpleNamespace(__version__="0.4.30"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert refusal(packs, pack.check_build) == "JAX 9.9.9 was installed without CUDA"


def test_onnxruntime_on_a_gpu(packs):
    """A session without the GPU, or with the CPU for a part of it, is none."""
    pack, onnxruntime = packs.onnxruntime, packs.onnxruntime.framework
    onnxruntime.get_available_providers.return_value = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    pack.check_build()
    pack.switch(variants(pack)["default"], 2)
    onnxruntime.SessionOptions.return_value.add_session_config_entry.assert_called_once_with(
        "session.disable_cpu_ep_fallback", "1")
    session = onnxruntime.InferenceSession
    session.return_value.get_providers.return_value = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    pack.session("Relu", {"x": SimpleNamespace(dtype="f4", shape=(4,))})
    assert session.call_args.kwargs["providers"] == ["CUDAExecutionProvider"]
    session.return_value.get_providers.return_value = ["CPUExecutionProvider"]
    with pytest.raises(packs.raised.Unsupported, match="ONNX Runtime chose CPUExecutionProvider"):
        pack.session("Relu", {"x": SimpleNamespace(dtype="f4", shape=(4,))})
    onnxruntime.__version__ = "1.15.1"
    assert "does not say what it leaves to the CPU; 1.16 does" in refusal(packs, pack.check_build)
    onnxruntime.get_available_providers.return_value = ["CPUExecutionProvider"]
    assert refusal(packs, pack.check_build) == "ONNX Runtime 1.15.1 was built without CUDA"
