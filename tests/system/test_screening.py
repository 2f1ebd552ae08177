"""A device that is new, has returned, was moved or upgraded is measured in full first, once."""
import http.client
import json
import pathlib
import signal
import sys

import pytest

from service import LIMIT, Service
from test_api import matches

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "faults"), str(TESTS / "fleets")]
from fleet_sim import Fleet, catalogue  # noqa: E402
from plan import Faults  # noqa: E402

QUIET = {"background": {"budget_percent": 0}}
DAY = 24 * 3600


class Fleets:
    """A service and its fleet, which may change while the service is away."""

    def __init__(self, folder, options=(), env=None, settings=None, **truth):
        self.settings = {**QUIET, **(settings or {})}
        self.fleet = Fleet(folder, **truth)
        self.service = Service(folder / "service", options=options, env=env,
                               config=self.fleet.config(**self.settings))
        self.service.start()

    def restart(self, kill=False):
        if self.service.process and kill:
            self.service.kill()
        elif self.service.process:
            assert self.service.stop() == 0
        self.service.config.write_text(json.dumps(self.fleet.config(grace_ms=300, **self.settings)))
        self.service.start()
        self.all_online()

    def all_online(self):
        count = sum(map(len, self.fleet.devices.values()))
        self.service.wait(lambda: sum(d["online"] for d in self.service.get("/v1/devices")["items"]) == count,
                          "all devices")

    def screenings(self):
        return {d["id"]: d["screening"] for d in self.service.get("/v1/devices")["items"]}

    def screened(self):
        """Waits until every device is; {device: its screening}"""
        over = ("passed", "dissents", "inconclusive")
        self.service.wait(lambda: all(s and s["state"] in over for s in self.screenings().values()), "screenings")
        return self.screenings()

    def jobs(self):
        return [self.service.get(f"/v1/jobs/{job['id']}") for job in self.service.items("/v1/jobs")]

    def devices_of(self, job):
        return {run["device"] for run in self.service.items(f"/v1/runs?job={job}")}


@pytest.fixture
def fleets(tmp_path):
    made = []

    def make(**arguments):
        made.append(Fleets(tmp_path, **arguments))
        made[-1].all_online()
        return made[-1]
    yield make
    for each in made:
        if each.service.process:
            assert each.service.stop() == 0, each.service.log.read_text()[-3000:]
        assert each.service.fsck()[0] == 0, each.service.fsck()


def told(service, count):
    """The first COUNT events device_screened, from the beginning."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT)
    connection.request("GET", "/v1/events", headers={"Last-Event-ID": "0"})
    stream, found, kind = connection.getresponse(), [], None
    while len(found) < count:
        line = stream.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: ") and kind == "device_screened":
            found.append(json.loads(line[6:]))
    connection.close()
    return found


def test_a_new_fleet_has_one_survey_which_screens_all(fleets):
    f = fleets(hosts=2, devices=3)
    for device, screening in f.screened().items():
        assert (screening["state"], screening["reason"], screening["text"]) == ("passed", "new", ""), device
        assert screening["counts"]["agree"] == screening["counts"]["cases"] == 1
        assert screening["cause"] == "1 of 1 cases agree"
    [job] = f.jobs()
    assert job["survey"] and job["priority"] == "background"
    assert {s["jobs"][0] for s in f.screenings().values()} == {job["id"]}
    events = told(f.service, 6)
    assert sorted(e["device"] for e in events) == sorted(f.screenings())
    assert all(e["outcome"] == "passed" and e["jobs"] == [job["id"]] for e in events)
    answer = f.service.get("/v1/devices")
    matches(answer, {"$ref": "#/components/schemas/DeviceList"})
    assert 'reprod_devices_screened{state="passed"} 6\n' in f.service.get("/metrics")
    assert f.service.get("/v1/devices.txt").count("passed") == 6
    f.restart()
    assert [j["id"] for j in f.jobs()] == [job["id"]] and len(f.screened()) == 6


@pytest.mark.parametrize("wrong", [False, True])
def test_a_new_device_is_screened_alone(fleets, wrong):
    f = fleets(hosts=1, devices=4, wrong={"GPU-99": {}} if wrong else {})
    f.screened()
    # A person measured another seed: the new device is to give the same bits there, too.
    f.service.finish_job(f.service.post_job(workloads=["imagined"], seeds=[7], runs=3, iterations=2))
    before = {job["id"] for job in f.jobs()}
    f.fleet.devices["host-0"].append("GPU-99")
    f.restart()
    screening = f.screened()["GPU-99"]
    [job] = [job for job in f.jobs() if job["id"] not in before]
    assert screening["reason"] == "new" and screening["jobs"] == [job["id"]]
    assert job["priority"] == "confirmation" and job["survey"]
    assert f.devices_of(job["id"]) == {"GPU-99"}
    seeds = {run["seed"] for run in f.service.items(f"/v1/runs?job={job['id']}")}
    assert {str(seed) for seed in seeds} == {"1", "7"}
    counts = screening["counts"]
    assert counts["cases"] == 2
    if wrong:
        assert screening["state"] == "dissents" and counts["dissent"] == 2, screening
        assert screening["cause"] == "0 of 2 cases agree, 2 dissent from its equals"
    else:
        assert screening["state"] == "passed" and counts["agree"] == 2, screening


def test_a_device_that_was_moved_is_screened_again(fleets):
    f = fleets(hosts=2, devices=2)
    f.screened()
    f.fleet.devices["host-0"].remove("GPU-01")
    f.fleet.devices["host-1"].append("GPU-01")
    f.fleet.attributes["GPU-02"] = {"pci_bus_id": "00:7f.0"}
    before = {job["id"] for job in f.jobs()}
    f.restart()
    f.service.wait(lambda: all(f.screenings()[d]["reason"] == "moved" for d in ("GPU-01", "GPU-02")), "moves")
    screenings = f.screened()
    assert screenings["GPU-01"]["text"] == "host host-0 → host-1"
    assert screenings["GPU-02"]["text"] == "pci_bus_id 00:02.0 → 00:7f.0 (device GPU-02)"
    jobs = [job["id"] for job in f.jobs() if job["id"] not in before]
    assert sorted(f.devices_of(job) == {"GPU-01"} for job in jobs) == [False, True]
    assert screenings["GPU-00"]["reason"] == screenings["GPU-03"]["reason"] == "new"
    assert screenings["GPU-01"]["state"] == "passed"


def test_upgraded_devices_are_screened_once_each(fleets):
    f = fleets(hosts=2, devices=2)
    f.screened()
    before = {job["id"] for job in f.jobs()}
    f.fleet.hosts["host-1"] = {"build": "sim-2"}
    f.restart()
    f.service.wait(lambda: f.screenings()["GPU-03"]["reason"] == "upgraded", "the upgrade")
    screenings = f.screened()
    assert screenings["GPU-02"]["text"] == "worker_build sim-1 → sim-2 (stack sim)"
    jobs = [job["id"] for job in f.jobs() if job["id"] not in before]
    assert len(jobs) == 2 and {d for job in jobs for d in f.devices_of(job)} == {"GPU-02", "GPU-03"}
    assert screenings["GPU-02"]["state"] == screenings["GPU-03"]["state"] == "passed"
    f.service.wait(lambda: [c for c in f.service.items("/v1/changes") if c["state"] == "reported"], "the drift")
    f.restart()
    f.screened()
    assert len(f.jobs()) == len(before) + 2, "not twice"
    f.fleet.hosts.clear()
    f.restart()
    f.service.wait(lambda: f.screenings()["GPU-02"]["text"] == "worker_build sim-2 → sim-1 (stack sim)",
                   "the way back")
    f.screened()
    assert len(f.jobs()) == len(before) + 4, "what changed back is screened again"


def test_many_devices_that_are_upgraded_have_one_job_each(fleets):
    """More than get their jobs in one step: what a change adds is asked for when all have theirs."""
    f = fleets(hosts=1, devices=24)
    f.screened()
    before = {job["id"] for job in f.jobs()}
    f.fleet.hosts["host-0"] = {"build": "sim-2"}
    f.restart()
    f.service.wait(lambda: [c for c in f.service.items("/v1/changes") if c["state"] == "reported"], "the drift")
    assert {s["reason"] for s in f.screened().values()} == {"upgraded"}
    jobs = [job for job in f.jobs() if job["id"] not in before]
    assert len(jobs) == 24, [job["request"].get("note") for job in jobs]


def test_a_device_that_returns_after_a_year_is_screened(fleets, tmp_path):
    faults = Faults(tmp_path)
    f = fleets(hosts=1, devices=3, env=faults.plan())
    f.screened()
    f.fleet.devices["host-0"].remove("GPU-02")
    faults.set_wall_ahead(20 * DAY)
    f.restart()  # the others are there
    faults.set_wall_ahead(365 * DAY)
    f.fleet.devices["host-0"] = ["GPU-00", "GPU-02"]
    f.settings["screening"] = {"returned_days": 350}
    f.restart()
    f.service.wait(lambda: f.screenings()["GPU-02"]["reason"] == "returned", "the return")
    screenings = f.screened()
    assert screenings["GPU-00"]["reason"] == "new", "it was there 345 days ago"
    assert screenings["GPU-02"]["state"] == "passed" and screenings["GPU-02"]["text"] == ""
    [_, job] = sorted(f.jobs(), key=lambda job: job["created_at"])
    assert f.devices_of(job["id"]) == {"GPU-02"}
    f.settings["screening"] = {"returned_days": 0}
    faults.set_wall_ahead(3650 * DAY)
    f.restart()
    assert all(s["state"] == "passed" for s in f.screenings().values()) and len(f.jobs()) == 2


def test_a_kill_makes_no_second_job(fleets):
    """Killed once the new device is on record, and again once its job is."""
    f = fleets(hosts=1, devices=4)
    f.screened()
    before = len(f.jobs())
    f.fleet.devices["host-0"].append("GPU-99")
    f.restart()
    f.restart(kill=True)
    f.service.wait(lambda: f.screenings()["GPU-99"]["jobs"], "its job")
    f.restart(kill=True)
    assert f.screened()["GPU-99"]["state"] == "passed"
    assert len(f.jobs()) == before + 1


def test_without_surveys_what_is_due_waits(fleets):
    f = fleets(hosts=1, devices=2, settings={"survey": False})
    f.service.finish_job(f.service.post_job(workloads=["imagined"], runs=2, iterations=2))
    assert {(s["state"], s["reason"]) for s in f.screenings().values()} == {("due", "new")}
    f.settings["survey"] = True
    f.service.config.write_text(json.dumps(f.fleet.config(grace_ms=300, **f.settings)))
    f.service.process.send_signal(signal.SIGHUP)
    assert all(s["state"] == "passed" for s in f.screened().values())
    assert sum(job["survey"] for job in f.jobs()) == 1


def test_a_device_alone_passes_nothing(fleets):
    """Nothing to compare it with: unknown is not passed."""
    f = fleets(hosts=1, devices=1, workloads=[catalogue()])
    [screening] = f.screened().values()
    assert screening["state"] == "inconclusive" and screening["counts"]["alone"] == 1
    assert screening["cause"] == "0 of 1 cases agree, 1 were measured on no equal of it"


def test_a_cancelled_screening_is_inconclusive(fleets):
    f = fleets(hosts=1, devices=2, settings={"survey": False})
    f.settings["survey"] = True
    f.restart()
    f.service.wait(lambda: f.jobs(), "the survey")
    f.service.request("DELETE", f"/v1/jobs/{f.jobs()[0]['id']}")
    for screening in f.screened().values():
        assert screening["state"] in ("passed", "inconclusive")
    assert len(f.jobs()) == 1


@pytest.mark.long
def test_a_host_that_is_not_heard_keeps_nobody_waiting_for_long(fleets, tmp_path):
    f = fleets(hosts=1, devices=2, settings={"survey": False})
    f.settings["survey"] = True
    config = f.fleet.config(grace_ms=300, **f.settings)
    config["hosts"].append({"name": "dead", "launch": ["/bin/false"]})
    assert f.service.stop() == 0
    f.service.config.write_text(json.dumps(config))
    f.service.start()
    assert all(s["state"] == "passed" for s in f.screened().values())
    assert len(f.jobs()) == 1
