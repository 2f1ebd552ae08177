"""What a worker says about sensors at the start and the end of a run reaches the API, with the
run and nowhere else."""
import pytest

from service import BUILD, ROOT

SIMULATED_GPU = BUILD / "tests" / "reprod-worker-cudasim"
START = {"sm_clock_mhz": 1980, "power_watts": 118.34, "throttle_reasons": ["idle"]}
END = {"sm_clock_mhz": 1755, "throttle_reasons": [], "row_remap_pending": False}


def run_of(service, variant, workload="selftest_telemetry"):
    job = service.post_job(workloads=[workload], variants=[variant], runs=1, iterations=2)
    service.finish_job(job)
    (run,) = service.items(f"/v1/runs?job={job}&variant={variant}")
    return service.get(f"/v1/runs/{run['id']}")


def test_both_samples_are_shown(service):
    run = run_of(service, "ordered")
    assert run["outcome"] == "completed"
    assert run["telemetry"] == {"start": START, "end": END}
    text = service.get(f"/v1/runs/{run['id']}.txt")
    rows = dict(line.split(None, 1) for line in text.splitlines() if line.startswith("telemetry."))
    assert rows["telemetry.start.sm_clock_mhz"] == "1980"
    assert rows["telemetry.start.throttle_reasons"] == "idle"
    assert rows["telemetry.end.throttle_reasons"] == "-"
    assert rows["telemetry.end.row_remap_pending"] == "false"


def test_telemetry_is_no_environment(service):
    both = run_of(service, "ordered")
    end = run_of(service, "end_only")
    assert end["telemetry"] == {"start": None, "end": {"cause": "the GPU is lost (15)"}}
    assert end["outcome"] == "completed"
    assert both["environment"] == end["environment"]
    facts = service.get(f"/v1/environments/{both['environment']}")["facts"]
    assert not set(facts) & set(START)


def test_a_cpu_has_none(service):
    run = run_of(service, "ordered", workload="selftest_pass")
    assert run["telemetry"] == {"start": None, "end": None}


def test_what_is_malformed_is_not_shown(service):
    for variant in ("no_object", "nested", "too_large"):
        run = run_of(service, variant)
        assert run["outcome"] == "invalid" and "telemetry" in run["cause"]
        assert run["telemetry"] == {"start": None, "end": None}


def test_a_device_shows_its_attributes(service):
    service.wait(lambda: service.get("/v1/devices")["items"], "what its hello commits")
    (device,) = service.get("/v1/devices")["items"]
    assert service.get(f"/v1/devices/{device['id']}") == {**device, "dissents_in": []}
    text = service.get(f"/v1/devices/{device['id']}.txt")
    rows = dict(line.split(None, 1) for line in text.splitlines())
    for name, value in device["attributes"].items():
        assert rows[f"attributes.{name}"] == str(value)
    status, _, problem = service.request("GET", "/v1/devices/GPU-none")
    assert status == 404 and "GPU-none" in problem["detail"]


def test_it_outlives_a_restart(start_service):
    service = start_service()
    run = run_of(service, "ordered")
    service.kill()
    service.start()
    assert service.get(f"/v1/runs/{run['id']}")["telemetry"] == {"start": START, "end": END}
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text


def gpu_service(start_service, inventory):
    """One whose only device is the simulated GPU, with the fake NVML of an inventory."""
    if not SIMULATED_GPU.exists():
        pytest.skip("the simulated GPU is not part of this build")
    environment = {"REPROD_FAKE_NVML": str(ROOT / "tests" / "fixtures" / "nvml" / inventory)}
    return start_service(worker=None, config={"stacks": [
        {"name": "sim", "worker": str(SIMULATED_GPU), "env": environment,
         "library_path": str(BUILD / "tests" / "nvml")}]})


def test_nvml_of_a_run(start_service):
    service = gpu_service(start_service, "sim.txt")
    run = run_of(service, "ordered", workload="reduce_sum")
    sample = {"sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "temperature_celsius": 41,
              "power_watts": 118.34, "throttle_reasons": ["idle"]}
    assert run["outcome"] == "completed", run
    assert run["telemetry"] == {"start": sample, "end": sample}
    (stack,) = service.get("/v1/stacks")["items"]
    assert stack["versions"]["nvml"] == "13.580.65.06"
    assert service.get("/v1/devices/sim:0")["attributes"]["health"] == {
        "cause": "NVML lists no device with this UUID"}


def test_a_driver_that_hangs_loses_no_run(start_service):
    service = gpu_service(start_service, "sim_hang.txt")
    run = run_of(service, "ordered", workload="reduce_sum")
    silent = {"cause": "NVML did not answer within 4000 ms"}
    assert run["outcome"] == "completed", run
    assert run["iterations"] == 2 and run["digest"]
    assert run["telemetry"] == {"start": silent, "end": silent}
