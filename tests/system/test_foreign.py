"""Devices that others use: left alone, or measured and marked.  The agents are imitations, and so is
NVML: nothing of this was verified on a GPU yet."""
import json
import os
import pathlib
import signal
import sys

import pytest

from service import BUILD, SIMULATOR, Service
from test_api import matches

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "fleets"))
from fleet_sim import Fleet  # noqa: E402

USED, FREE = "GPU-00", "GPU-01"
OTHERS = ["4711 python3"]
NVML = """nvml 13.580.65.06
gpu
  uuid sim:0
  clocks 1980 2619
  computes {}
"""


class Used:
    """A service whose only host has two devices, and says who uses them."""

    def __init__(self, folder, said, **settings):
        self.fleet = Fleet(folder, hosts=1, devices=2)
        self.say(said)
        self.service = Service(folder / "service", options=["--no-survey"], config=self.fleet.config(**settings))
        self.service.start()
        self.service.wait(lambda: len(self.foreign()) == 2, "what the agent says")

    def say(self, foreign):
        """Whole, or not at all: the agent reads it now and then."""
        self.fleet.hosts["host-0"] = {"foreign": foreign}
        path = self.fleet.folder / "host-0.truth.json"
        entry = self.fleet.host("host-0")
        assert entry["launch"][-1] == str(path)

    def foreign(self):
        return {d["id"]: d["foreign"] for d in self.service.get("/v1/devices")["items"] if d["foreign"]}

    def submit(self):
        return self.service.post_job(workloads=["imagined"], runs=2, iterations=2)

    def runs_on(self, job, device):
        return [r for r in self.service.items(f"/v1/runs?job={job}") if r["device"] == device]


@pytest.fixture
def used(tmp_path):
    made = []

    def make(said, **settings):
        made.append(Used(tmp_path, said, **settings))
        return made[-1]
    yield make
    for each in made:
        each.service.stop()


def test_a_device_that_others_use_is_left_alone(used):
    u = used({USED: OTHERS, FREE: []})
    foreign = u.foreign()
    assert foreign[USED]["processes"] == OTHERS and foreign[USED]["waits"]
    assert foreign[FREE]["processes"] == [] and not foreign[FREE]["waits"]
    matches(u.service.get("/v1/devices"), {"$ref": "#/components/schemas/DeviceList"})
    assert "\nreprod_devices_foreign 1\n" in u.service.get("/metrics")
    assert "4711 python3" in u.service.get("/v1/devices.txt")
    job = u.submit()
    u.service.wait(lambda: u.service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] == 4, "the free device")
    answer = u.service.get(f"/v1/jobs/{job}")
    matches(answer, {"$ref": "#/components/schemas/JobWithItems"})
    assert answer["waits_for"] == [f'device {USED} is used by others: ["4711 python3"]']
    assert answer["state"] == "running" and u.runs_on(job, USED) == []
    u.say({USED: [], FREE: []})
    assert u.service.finish_job(job)["progress"]["runs_done"] == 8
    assert u.service.get(f"/v1/jobs/{job}")["waits_for"] == []
    assert f"device {USED} is used by others" in u.service.log.read_text()


def test_what_is_shown_of_them_follows(used):
    """Each of what agents and the configuration say is in the answers from then on."""
    u = used({USED: OTHERS, FREE: []})
    for said in ([], ["12 other"], OTHERS):
        u.say({USED: said, FREE: []})
        u.service.wait(lambda: u.foreign()[USED]["processes"] == said, f"{said} on the device")
        assert u.foreign()[USED]["waits"] == bool(said)
        assert u.service.get(f"/v1/devices/{USED}")["foreign"] == u.foreign()[USED]
    settings = json.loads(u.service.config.read_text())
    u.service.config.write_text(json.dumps({**settings, "foreign": "measure"}))
    u.service.process.send_signal(signal.SIGHUP)
    u.service.wait(lambda: not u.foreign()[USED]["waits"], "the configuration")


def test_it_is_measured_where_that_is_configured(used):
    u = used({USED: OTHERS, FREE: []}, foreign="measure")
    assert u.foreign()[USED]["processes"] == OTHERS and not u.foreign()[USED]["waits"]
    assert u.service.finish_job(u.submit())["progress"]["runs_done"] == 8


def test_what_is_not_known_is_not_waited_for(used):
    u = used({USED: "no permission (4)", FREE: []})
    assert u.foreign()[USED]["processes"] is None and u.foreign()[USED]["cause"] == "no permission (4)"
    assert u.service.finish_job(u.submit())["progress"]["runs_done"] == 8


def test_an_agent_that_says_nonsense_is_ended(used):
    u = used({USED: [], FREE: []})
    u.say({USED: [17], FREE: []})
    u.service.wait(lambda: "broke the protocol" in u.service.log.read_text(), "the end of the agent")
    assert "processes" in u.service.log.read_text()
    u.say({USED: [], FREE: []})
    u.service.wait(lambda: len(u.foreign()) == 2, "the agent")


@pytest.fixture
def simulated(tmp_path):
    """A service with a simulated GPU and an imitated NVML, whose processes a file says."""
    path = tmp_path / "nvml.txt"
    made = []

    def make(computes, **settings):
        path.write_text(NVML.format(computes))
        env = {"REPROD_FAKE_NVML": str(path)}
        made.append(Service(tmp_path / "service", options=["--no-survey"], config={
            "stacks": [{"name": "cuda", "worker": str(SIMULATOR), "library_path": str(BUILD / "tests" / "nvml"),
                        "env": env}], **settings}).start())
        made[-1].say = lambda computes: path.write_text(NVML.format(computes))
        return made[-1]
    yield make
    for service in made:
        service.stop()


def device(service):
    items = service.get("/v1/devices")["items"]
    return items[0] if items else {"foreign": None}


@pytest.mark.long
def test_an_agent_asks_nvml(simulated):
    """From the library to the API: a process that is nobody's child, and its end."""
    stranger = os.getpid()  # of another than the agent
    service = simulated(f"{stranger} self")
    service.wait(lambda: device(service)["foreign"], "what the agent says")
    [name] = device(service)["foreign"]["processes"]
    assert name.startswith(f"{stranger} ") and device(service)["foreign"]["waits"]
    job = service.post_job(workloads=["reduce_sum"], variants=["ordered"], runs=1, iterations=1, sizes=["small"])
    service.wait(lambda: service.get(f"/v1/jobs/{job}")["waits_for"], "that it waits")
    service.say("self")
    done = service.finish_job(job)
    assert done["progress"]["runs_done"] == 1
    [run] = service.items(f"/v1/runs?job={job}")
    telemetry = service.get(f"/v1/runs/{run['id']}")["telemetry"]
    assert telemetry["start"]["foreign_processes"] == telemetry["end"]["foreign_processes"] == []


def test_a_run_beside_others_is_marked(simulated):
    stranger = os.getpid()
    service = simulated(f"{stranger} self", foreign="measure")
    job = service.post_job(workloads=["reduce_sum"], variants=["ordered"], runs=1, iterations=1, sizes=["small"])
    service.finish_job(job)
    [run] = service.items(f"/v1/runs?job={job}")
    telemetry = service.get(f"/v1/runs/{run['id']}")["telemetry"]
    for sample in telemetry.values():
        assert [p.split()[0] for p in sample["foreign_processes"]] == [str(stranger)]
    assert f"{stranger} " in service.get(f"/v1/runs/{run['id']}.txt")


def test_other_pid_namespaces_are_not_judged_by_a_run(simulated):
    """A run that is not among the processes cannot tell which of them are its own."""
    service = simulated("5000001", foreign="measure")
    job = service.post_job(workloads=["reduce_sum"], variants=["ordered"], runs=1, iterations=1, sizes=["small"])
    service.finish_job(job)
    [run] = service.items(f"/v1/runs?job={job}")
    telemetry = service.get(f"/v1/runs/{run['id']}")["telemetry"]
    assert "foreign_processes" not in telemetry["start"]
