"""reprod preflight: a machine's devices compared within a deadline, in one line; reprod baseline."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from service import BUILD, ROOT, SIMULATOR, Service

sys.path.insert(0, str(ROOT / "tests" / "fleets"))
from fleet_sim import Fleet  # noqa: E402

PASSED, DISSENTS, UNVERIFIED, FAILED = 0, 1, 2, 3
CPU = {"stacks": [{"name": "cpu", "worker": str(BUILD / "reprod-worker")}]}
NAMES = ["passed", "dissents", "unverified", "failed"]


def start(folder, config, *words, stdout=subprocess.PIPE, **variables):
    (folder / "reprod.json").write_text(json.dumps(config))
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen([str(BUILD / "reprod"), "preflight", "--config", str(folder / "reprod.json"), *words],
                            stdout=stdout, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "TMPDIR": str(folder / "tmp"), **variables})


def end(folder, process):
    """(exit status, what its one line says)"""
    said, errors = process.communicate(timeout=300)
    assert said.count("\n") == 1 and said.endswith("\n"), (said, errors)
    assert not list((folder / "tmp").iterdir()), "it left something behind"
    line = json.loads(said)
    assert line["schema"] == "reprod.preflight/1" and line["verdict"] == NAMES[process.returncode], line
    assert {"node", "cause", "gpus", "devices", "seconds", "version", "at"} <= set(line)
    return process.returncode, line


def preflight(folder, config, *words):
    return end(folder, start(folder, config, "--workload", "imagined", *words))


def fleet(folder, **truth):
    return Fleet(folder, **{"hosts": 1, "devices": 3, **truth}).config()


def verdicts(line):
    return {device["uuid"]: device["verdict"] for device in line["devices"]}


def test_equal_devices_pass(tmp_path):
    code, line = preflight(tmp_path, fleet(tmp_path), "--gpus", "3", "--node", "n1", "--node-condition", str(tmp_path / "condition"))
    assert code == PASSED and line["node"] == "n1" and line["gpus"] == 3, line
    assert [device["equals"] for device in line["devices"]] == [{"here": 2, "baseline": 0}] * 3
    [condition] = json.loads((tmp_path / "condition").read_text())["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("True", "BitsOfItsEquals")


def test_a_device_that_dissents_is_named(tmp_path):
    code, line = preflight(tmp_path, fleet(tmp_path, devices=4, wrong={"GPU-03": {}}), "--health-events", str(tmp_path / "events"))
    assert code == DISSENTS
    assert verdicts(line) == {"GPU-00": "passed", "GPU-01": "passed", "GPU-02": "passed", "GPU-03": "dissents"}
    events = json.loads((tmp_path / "events").read_text())["events"]
    assert [event["isHealthy"] for event in events] == [True, True, True, False]


@pytest.mark.parametrize("truth, words, code, cause", [
    ({"devices": 1}, (), UNVERIFIED, "no equal of it is here, and there is no baseline"),
    ({"workloads": []}, (), FAILED, "its own service refused the job"),
    ({}, ("--gpus", "8"), FAILED, "8 GPUs are expected, 3 can be measured"),
    ({}, ("--server", "127.0.0.1:1"), UNVERIFIED, "the baseline is not known: no service answers"),
])
def test_what_was_not_shown_does_not_pass(tmp_path, truth, words, code, cause):
    if "workloads" in truth:
        truth = {"workloads": [{**Fleet(tmp_path).truth["catalogue"][0], "workload": "another"}]}
    found, line = preflight(tmp_path, fleet(tmp_path, **truth), *words)
    assert found == code and cause in line["cause"] + "".join(device["cause"] for device in line["devices"]), line


def test_a_cpu_does_not_stand_for_gpus(tmp_path):
    """That cannot be measured, although their driver is here."""
    code, line = end(tmp_path, start(tmp_path, CPU, DRIVER_VERSION_FILE=str(ROOT / "VERSION")))
    assert code == FAILED and line["cause"] == "NVIDIA's driver is here, and no GPU can be measured" and line["devices"] == []


@pytest.mark.long
def test_what_others_use_is_left_alone(tmp_path):
    config = Fleet(tmp_path, hosts=1, devices=2)
    config.hosts = {"host-0": {"foreign": {"GPU-01": ["python3"]}}}
    (tmp_path / "condition").write_text("old")
    code, line = preflight(tmp_path, config.config(), "--seconds", "10", "--node-condition", str(tmp_path / "condition"))
    assert code == UNVERIFIED and line["devices"][1]["used"] and "others use it" in line["devices"][1]["cause"], line
    [condition] = json.loads((tmp_path / "condition").read_text())["status"]["conditions"]
    assert condition["status"] == "Unknown", "GPU-00 has no equal that was measured"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service that measured three devices of host-0, and what it says: host-1 is another machine."""
    folder = tmp_path_factory.mktemp("site")
    own = Service(folder, options=["--no-survey"], config=fleet(folder))
    own.start()
    own.finish_job(own.post_job(workloads=["imagined"], runs=2))
    done = subprocess.run([str(BUILD / "reprod"), "baseline", "--server", f"127.0.0.1:{own.port}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "baseline.json").write_text(done.stdout)
    yield own
    assert own.stop() == 0


def other_machine(folder, **truth):
    two = Fleet(folder, hosts=2, devices=3, **truth)
    two.devices["host-1"] = two.devices["host-1"][:1]
    return {"hosts": [two.host("host-1")]}


def test_a_baseline(site):
    baseline = json.loads((site.folder / "baseline.json").read_text())
    [case] = baseline["cases"]
    assert baseline["schema"] == "reprod.baseline/1" and case["devices"] == 3 and case["variant"] == "ordered"
    assert case["names"] == ["GPU-00", "GPU-01", "GPU-02"]


@pytest.mark.parametrize("wrong, code", [({}, PASSED), ({"GPU-03": {}}, DISSENTS)])
@pytest.mark.parametrize("from_file", [True, pytest.param(False, marks=pytest.mark.long)])
def test_one_device_is_compared_with_the_fleet(site, tmp_path, wrong, code, from_file):
    words = ("--against", str(site.folder / "baseline.json")) if from_file else ("--server", f"127.0.0.1:{site.port}")
    found, line = preflight(tmp_path, other_machine(tmp_path, wrong=wrong), *words)
    assert found == code, line
    if code == PASSED:
        assert line["devices"][0]["equals"] == {"here": 0, "baseline": 3}
    else:
        assert "the baseline has" in line["devices"][0]["cause"] and "of 3 devices" in line["devices"][0]["cause"]


def test_a_device_is_no_equal_of_itself(site, tmp_path):
    one = Fleet(tmp_path, hosts=1, devices=1)
    baseline = json.loads((site.folder / "baseline.json").read_text())
    baseline["cases"][0].update(devices=1, names=["GPU-00"])
    (tmp_path / "baseline.json").write_text(json.dumps(baseline))
    code, line = preflight(tmp_path, one.config(), "--against", str(tmp_path / "baseline.json"))
    assert code == UNVERIFIED and "the baseline has none" in line["devices"][0]["cause"]


@pytest.mark.parametrize("words, message", [
    (("--seconds", "5"), "--seconds 5: it is a number from 10 to 3600"),
    (("--gpus", "many"), "--gpus many: it is a number"),
    (("--server", "127.0.0.1:1", "--against", "b.json"), "either --server URL or --against FILE"),
    (("--against", "/nowhere/b.json"), "/nowhere/b.json"),
    (("--node-object", "n.json"), "--node-object is for --node-condition FILE"),
    (("--secnods", "45"), "did you mean '--seconds'?"),
])
def test_the_command_line(words, message):
    done = subprocess.run([str(BUILD / "reprod"), "preflight", *words], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "" and message in done.stderr


def test_what_is_no_baseline(tmp_path):
    (tmp_path / "b.json").write_text('{"schema": "another"}')
    done = subprocess.run([str(BUILD / "reprod"), "preflight", "--against", str(tmp_path / "b.json")], capture_output=True, text=True)
    assert done.returncode == 2 and "is no baseline: `reprod baseline` writes one" in done.stderr


def status_in(path):
    [condition] = json.loads(path.read_text())["status"]["conditions"]
    return condition["status"]


def test_what_could_not_be_said_is_not_true_either(tmp_path):
    """A condition says no more than the line and the exit status."""
    condition = tmp_path / "condition"
    code, line = preflight(tmp_path, fleet(tmp_path), "--node-condition", str(condition), "--health-events", "/dev/full")
    assert code == UNVERIFIED and line["cause"] == "a file could not be written" and status_in(condition) == "Unknown"
    code, line = preflight(tmp_path, fleet(tmp_path), "--node-condition", str(condition), "--node-object", "/nowhere")
    assert code == UNVERIFIED and "the object of the node" in line["cause"] and status_in(condition) == "Unknown"
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = start(tmp_path, fleet(tmp_path), "--workload", "imagined", "--node-condition", str(condition), stdout=full)
    assert process.wait(300) == UNVERIFIED and status_in(condition) == "Unknown"
    condition.write_text("old")
    code, line = preflight(tmp_path, fleet(tmp_path), "--node-condition", str(tmp_path / "nowhere" / "condition"))
    assert code == UNVERIFIED and [path.name for path in tmp_path.glob("condition*")] == ["condition"]


def test_a_node_whose_name_is_no_text(tmp_path):
    code, line = preflight(tmp_path, fleet(tmp_path), "--node", b"a\xff", "--health-events", str(tmp_path / "events"))
    assert code == PASSED and line["node"] == "a\\xff"
    assert {event["nodeName"] for event in json.loads((tmp_path / "events").read_text())["events"]} == {"a\\xff"}


def test_a_folder_that_is_not_there(tmp_path):
    (tmp_path / "tmp").mkdir()
    nowhere = str(tmp_path / ("é" * 300))
    code, line = end(tmp_path, start(tmp_path, CPU, TMPDIR=nowhere))
    assert code == FAILED and nowhere[:100] in line["cause"] and "the time was over" not in line["cause"]


def test_other_hosts_say_nothing_of_a_machine(tmp_path):
    code, line = preflight(tmp_path, fleet(tmp_path, hosts=2, devices=1), "--gpus", "2")
    assert code == FAILED and "of several hosts" in line["cause"], line


def no_process_of(folder):
    deadline = time.monotonic() + 120
    while str(folder) in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
        assert time.monotonic() < deadline, "something of it goes on"
        time.sleep(0.05)


def silent(folder):
    """A host whose agent never says anything, as where a driver does not answer."""
    return {"hosts": [{"name": "a", "launch": ["sh", "-c", f"trap '' TERM; while :; do sleep 1; done # {folder}"]}]}


def test_it_can_be_ended(tmp_path):
    process = start(tmp_path, silent(tmp_path))
    deadline = time.monotonic() + 120
    while not list((tmp_path / "tmp").glob("*/data/reprod.db")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert end(tmp_path, process)[0] == FAILED
    no_process_of(tmp_path)


@pytest.mark.parametrize("words", [["preflight"], ["check", "--local", "--runs", "2"]])
def test_what_it_did_not_start_is_left_alone(tmp_path, words):
    """A shell that has a child becomes it."""
    (tmp_path / "reprod.json").write_text(json.dumps(fleet(tmp_path)))
    shell = subprocess.Popen(["sh", "-c", 'sleep 100000 & echo $! >"$0"; exec "$@"', str(tmp_path / "pid"), str(BUILD / "reprod"),
                              *words, "--config", str(tmp_path / "reprod.json"), "--workload", "imagined"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        shell.wait(300)
        assert shell.returncode == PASSED
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # which fails where there is none


@pytest.mark.long
def test_the_deadline_holds(tmp_path):
    """Of a driver that does not answer, and of runs that do not end."""
    code, line = preflight(tmp_path, silent(tmp_path), "--seconds", "10")
    assert code == FAILED and "before the time was over" in line["cause"] and line["devices"] == []
    no_process_of(tmp_path)
    code, line = preflight(tmp_path, fleet(tmp_path, mute=True), "--seconds", "10")
    assert code == FAILED and all("0 of 2 runs completed" in device["cause"] for device in line["devices"])


@pytest.mark.long
@pytest.mark.parametrize("option, verdict", [("--against", "failed"), ("--node-condition", "dissents")])
def test_the_deadline_holds_where_a_file_does_not_answer(tmp_path, option, verdict):
    os.mkfifo(tmp_path / "pipe")
    code, line = preflight(tmp_path, fleet(tmp_path, devices=4, wrong={"GPU-03": {}}), "--seconds", "10", option, str(tmp_path / "pipe"))
    assert line["verdict"] == verdict, line


@pytest.mark.long
@pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
def test_slices_of_one_gpu_are_no_equals(tmp_path):
    """As the worker of GPUs shows them: all that is needed, but for another GPU."""
    worker = tmp_path / "worker"
    worker.write_text(f'#!/bin/sh\nREPROD_CUDASIM_SEED=$$ exec {SIMULATOR} "$@"\n')
    worker.chmod(0o755)
    config = {"stacks": [{"name": "sim", "worker": str(worker), "library_path": str(BUILD / "tests" / "nvml"), "env": {
        "REPROD_CUDASIM_MIG": "1g.1gb+1g.1gb", "REPROD_FAKE_NVML": str(ROOT / "tests" / "fixtures" / "nvml" / "sim_mig.txt")}}]}
    code, line = end(tmp_path, start(tmp_path, config, "--workload", "segment_sum", "--seconds", "300"))
    assert code == UNVERIFIED and [device["cases"]["alone"] for device in line["devices"]] == [1, 1], line


@pytest.mark.long
def test_real_workers(tmp_path):
    """As a machine like this one gave them."""
    names = ["conv_wgrad", "conv_dgrad", "matmul_batched", "softmax_xent", "segment_sum", "train_cnn"]
    own = Service(tmp_path / "service", options=["--no-survey"], config=CPU)
    own.start()
    own.finish_job(own.post_job(workloads=names, variants=["ordered", "unordered"], runs=2))
    done = subprocess.run([str(BUILD / "reprod"), "baseline", "--server", f"127.0.0.1:{own.port}"], capture_output=True, text=True)
    assert own.stop() == 0
    baseline = json.loads(done.stdout)
    assert sorted(case["workload"] for case in baseline["cases"]) == sorted(names)
    for name, code, equal in (None, UNVERIFIED, 0), ("cpu:another", PASSED, 6):
        for case in baseline["cases"]:
            case["names"] = [name] if name else case["names"]
        (tmp_path / "baseline.json").write_text(json.dumps(baseline))
        found, line = end(tmp_path, start(tmp_path, CPU, "--seconds", "300", "--against", str(tmp_path / "baseline.json"),
                                          DRIVER_VERSION_FILE="/nowhere"))
        assert found == code and line["devices"][0]["cases"]["equal"] == equal and line["gpus"] == 0, line
