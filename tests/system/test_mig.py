"""Hosts with MIG slices, of which CUDA shows a process one: the probe lists all, each computes as itself, and
CUDA_VISIBLE_DEVICES is never widened.  CUDA and NVML are imitations: nothing of this was verified on a GPU."""
import json
import os
import subprocess

import pytest

from service import BUILD, LIMIT, ROOT, SIMULATOR

FIXTURES = ROOT / "tests" / "fixtures" / "nvml"
NVML = BUILD / "tests" / "nvml"
LAYOUT = "1g.1gb+1g.1gb+3g.4gb,-,none"
ALL = ["MIG-sim:0", "MIG-sim:1", "MIG-sim:2", "sim:3"]
CASE = ["--workload", "bias_add_bwd", "--variant", "ordered", "--size", "small"]

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


def worker(*arguments, layout=LAYOUT, inventory="sim_mig.txt", visible=None, nvml=NVML, result=3,
           **more):
    simulated = {name: more.pop(name) for name in [*more] if name.startswith("REPROD_")}
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("REPROD_", "CUDA_VISIBLE_DEVICES"))}
    environment.update({"REPROD_CUDASIM_MIG": layout, "REPROD_FAKE_NVML": str(FIXTURES / inventory),
                        "LD_LIBRARY_PATH": str(nvml), "REPROD_RESULT_FD": str(result), **simulated})
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    return subprocess.run([str(SIMULATOR), *arguments], capture_output=True, text=True, env=environment,
                          timeout=LIMIT, **more)


def probe(**options):
    ended = worker("--probe", **options)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def ids(said):
    return [device["id"] for device in said["devices"]]


def run(device, *more, case=CASE):
    """The events of a run on a device."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as lines:
        ended = worker("--run", *case, *more, "--iterations", "2", "--device", device, result=write_end,
                       pass_fds=[write_end])
        os.close(write_end)
        assert ended.returncode == 0, ended.stderr
        return [json.loads(line) for line in lines]


# The probe

def test_the_probe_lists_all_slices_and_the_gpu_beside_them():
    said = probe()
    assert ids(said) == ALL and said["cause"] is None
    models = {device["id"]: device["model"] for device in said["devices"]}
    assert models["MIG-sim:0"] == models["MIG-sim:1"] == "simulator, no GPU MIG 1g.1gb"
    assert models["MIG-sim:2"] == "simulator, no GPU MIG 3g.4gb" and models["sim:3"] == "simulator, no GPU"
    attributes = {device["id"]: device["attributes"] for device in said["devices"]}
    assert [attributes[device]["sm_count"] for device in ALL] == [1, 1, 1, 2]
    assert [attributes[device].get("mig_profile") for device in ALL] == ["1g.1gb", "1g.1gb", "3g.4gb", None]
    for device in ALL[:3]:
        assert attributes[device]["mig_uuid"] == device
        assert attributes[device]["serial"] == "1654223000000"  # of the GPU that they are slices of
        assert "mig_others" not in attributes[device]


def test_cuda_alone_shows_one_slice():
    """What the imitation of CUDA is for: without NVML there is no more, and that is said."""
    said = probe(nvml="")
    assert ids(said) == ["MIG-sim:0"]
    assert said["devices"][0]["attributes"]["mig_others"].startswith("unknown: CUDA shows a process one slice")
    assert ids(probe(nvml="", visible="MIG-sim:2,MIG-sim:1")) == ["MIG-sim:2"]


def test_an_nvml_of_years_ago_lists_no_slices():
    assert ids(probe(nvml=BUILD / "tests" / "nvml-old")) == ["MIG-sim:0"]


@pytest.mark.parametrize("visible, shown", [
    ("MIG-sim:2", ["MIG-sim:2"]), ("MIG-sim:2,MIG-sim:1", ["MIG-sim:2", "MIG-sim:1"]),
    ("sim:3", ["sim:3"]), ("sim:3,mig-SIM:1", ["sim:3", "MIG-sim:1"]),
    ("0", ["MIG-sim:0"]), ("1", []), ("", []), ("-1", []),
    ("-1,MIG-sim:1", []), ("NoDevFiles,MIG-sim:1", []), ("MIG-sim:2,-1,MIG-sim:1", ["MIG-sim:2"]), ("MIG-sim:9", []), ("MIG-", [])])
def test_the_probe_lists_what_is_allowed(visible, shown):
    said = probe(visible=visible)
    assert ids(said) == shown
    assert (said["cause"] is None) == bool(shown)
    if not shown:
        assert f"CUDA_VISIBLE_DEVICES={visible}" in said["cause"]


def test_a_gpu_in_mig_mode_without_a_slice_is_no_device():
    said = probe(layout="none", inventory="sim_empty.txt")
    assert said["devices"] == []
    assert said["cause"].startswith("GPU-51a00002-0000-0000-0000-000000000000 is in MIG mode and has no slice")
    assert "nvidia-smi mig" in said["cause"]


def test_what_nvml_lists_and_cuda_does_not_show_is_no_device():
    ended = worker("--probe", layout="1g.1gb")
    assert ids(json.loads(ended.stdout)) == ["MIG-sim:0"]
    assert "NVML lists MIG-sim:2, and CUDA did not show it" in ended.stderr


def test_a_slice_in_which_the_driver_crashes_is_no_device():
    ended = worker("--probe", REPROD_CUDASIM_CRASHES="MIG-sim:1")
    assert ids(json.loads(ended.stdout)) == ["MIG-sim:0", "MIG-sim:2", "sim:3"]
    assert "NVML lists MIG-sim:1, and CUDA did not show it" in ended.stderr


@pytest.mark.long
def test_a_slice_in_which_the_driver_hangs_hides_no_other(tmp_path):
    """Those that are asked after the first eight, too."""
    text = "".join(f"gpu\n  uuid GPU-{gpu}\n  mig_mode 1 1\n" + "".join(
        f"  mig {place} MIG-sim:{6 * gpu + place} {place} 0 slice\n" for place in range(6)) for gpu in range(2))
    inventory = tmp_path / "inventory.txt"
    inventory.write_text(text)
    said = probe(layout=",".join(["+".join(["1g.1gb"] * 6)] * 2), inventory=inventory, REPROD_CUDASIM_HANGS="MIG-sim:1")
    assert ids(said) == [f"MIG-sim:{place}" for place in range(12) if place != 1]


def test_nothing_else_is_asked_on_a_host_without_mig():
    said = probe(layout="-,-", inventory="one.txt")
    assert ids(said) == ["sim:0", "sim:1"]


# Runs

@pytest.mark.parametrize("device", ALL)
def test_a_run_computes_where_it_was_asked_to(device):
    start, *_, end = run(device)
    assert start["device"] == end["device"] == device and end["outcome"] == "completed"
    environment = start["environment"]
    assert ("MIG" in environment["model"]) == device.startswith("MIG-")
    assert not any("VISIBLE" in name for name in environment)
    said = probe()["devices"][ALL.index(device)]
    assert environment["model"] == said["model"]
    assert environment.get("mig_profile") == said["attributes"].get("mig_profile")
    assert environment["sm_count"] == said["attributes"]["sm_count"]


def test_slices_of_one_profile_are_one_environment():
    environments = [run(device)[0]["environment"] for device in ALL]
    assert environments[0] == environments[1]
    assert environments[2] not in environments[:2] and environments[3] not in environments[:3]


def test_sensors_of_a_slice_are_those_of_its_gpu():
    start, *_, end = run("MIG-sim:2")
    assert start["telemetry"]["temperature_celsius"] == end["telemetry"]["temperature_celsius"] == 31


def test_load_is_on_the_slice():
    assert run("MIG-sim:2", "--contention", "2")[-1]["outcome"] == "completed"


@pytest.mark.parametrize("device", ["MIG-sim:1", "sim:3"])
def test_a_second_process_of_a_run_has_the_same_device(device):
    """It is started with the run's device, and sees only that."""
    case = ["--workload", "checkpoint_resume", "--variant", "resumed", "--size", "small"]
    end = run(device, case=case)[-1]
    assert (end["outcome"], end["device"]) == ("completed", device), end


@pytest.mark.parametrize("device, nearest", [("MIG-sim:7", "MIG-sim:0"), ("sim:4", "sim:3"), ("sim:2", "sim:3")])
def test_an_unknown_device_is_refused(device, nearest):
    ended = worker("--check", *CASE, "--device", device)
    assert ended.returncode == 2
    assert f"unknown device '{device}'; nearest: '{nearest}'" in ended.stderr


@pytest.mark.parametrize("visible, device, nearest", [
    ("MIG-sim:1", "MIG-sim:2", "MIG-sim:1"), ("0", "MIG-sim:2", "MIG-sim:0"), ("MIG-sim:0", "sim:3", "MIG-sim:0")])
def test_no_run_widens_what_is_allowed(visible, device, nearest):
    ended = worker("--check", *CASE, "--device", device, visible=visible)
    assert ended.returncode == 2
    assert f"unknown device '{device}'; nearest: '{nearest}'" in ended.stderr


def test_a_list_allows_each_of_its_devices():
    for device in "MIG-sim:1", "MIG-sim:2", "sim:3":
        ended = worker("--check", *CASE, "--device", device, visible="MIG-sim:1,sim:3,MIG-sim:2")
        assert ended.returncode == 0, ended.stderr


def test_a_slice_that_is_gone_ends_the_run():
    """NVML still lists it: the run says what CUDA says, and there is no loop."""
    ended = worker("--check", *CASE, "--device", "MIG-sim:2", layout="1g.1gb")
    assert ended.returncode == 5 and "CUDA_VISIBLE_DEVICES=MIG-sim:2" in ended.stdout, ended
    ended = worker("--check", *CASE, "--device", "sim:3", layout="1g.1gb")
    assert ended.returncode == 5 and "CUDA_VISIBLE_DEVICES=sim:3" in ended.stdout, ended


def test_nothing_computes_on_another_device(tmp_path):
    """NVML lists a GPU that CUDA does not: one that fell off its bus, say."""
    inventory = tmp_path / "inventory.txt"
    inventory.write_text("".join(f"gpu\n  uuid sim:{number}\n  mig_mode 0 0\n" for number in range(2)))
    ended = worker("--check", *CASE, "--device", "sim:1", layout="-", inventory=inventory)
    assert ended.returncode == 5 and "CUDA shows sim:0, and not sim:1" in ended.stdout, ended


def test_without_nvml_a_named_slice_computes():
    assert worker("--check", *CASE, "--device", "MIG-sim:2", nvml="").returncode == 0
    ended = worker("--check", *CASE, "--device", "sim:3", nvml="")
    assert ended.returncode == 2 and "nearest: 'MIG-sim:0'" in ended.stderr


# The service

@pytest.fixture
def service(start_service):
    return start_service(worker=None, options=["--no-survey"], config={"stacks": [
        {"name": "sim", "worker": str(SIMULATOR), "library_path": str(NVML),
         "env": {"REPROD_CUDASIM_MIG": LAYOUT, "REPROD_FAKE_NVML": str(FIXTURES / "sim_mig.txt")}}]})


@pytest.mark.long
def test_each_slice_is_measured(service):
    service.wait(lambda: len(service.get("/v1/devices")["items"]) == 4, "the devices")
    assert sorted(device["id"] for device in service.get("/v1/devices")["items"]) == ALL
    job = service.post_job(workloads=["bias_add_bwd"], runs=2, iterations=2)
    assert service.finish_job(job)["state"] == "finished"
    runs = service.items(f"/v1/runs?job={job}")
    assert {run["outcome"] for run in runs} == {"completed"}
    assert {run["device"] for run in runs} == set(ALL)
    by_device = {device: {run["environment"] for run in runs if run["device"] == device} for device in ALL}
    assert by_device["MIG-sim:0"] == by_device["MIG-sim:1"]
    assert len(set().union(*by_device.values())) == 3
    cell = next(run["cell"] for run in runs if run["device"] == "MIG-sim:0" and run["variant"] == "ordered")
    said = service.get(f"/v1/cells/{cell}/devices")["items"]
    assert [device["device"] for device in said] == ["MIG-sim:0", "MIG-sim:1"]
