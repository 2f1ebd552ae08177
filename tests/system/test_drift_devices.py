"""Drift where a device is wrong, where load was other, and where a host changed again: what is
told is what was measured, and whoever did it is who is blamed."""
import contextlib
import pathlib
import sys

import pytest

from service import Service
from test_api import matches
from test_devices import cell_id

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fleets"))
from fleet_sim import Fleet, catalogue  # noqa: E402

WRONG = "GPU-03"
ALL = [f"GPU-0{n}" for n in range(8)]


class Changing:
    """A host whose devices are other ones after each start."""

    def __init__(self, folder, stack, options):
        self.folder, self.options, self.service = folder, options, None
        stack.callback(lambda: self.service and self.service.process and self.service.stop())

    def start(self, workloads=("imagined",), kill=False, online=8, driver="1.0", vbios=(), silent=(), **truth):
        """VBIOS: the devices that are flashed; SILENT: those that do not tell which they have."""
        if self.service:
            self.service.kill() if kill else self.service.stop()
        attributes = {**{device: {"vbios": "97.00"} for device in vbios},
                      **{device: {"vbios": None} for device in silent}}
        fleet = Fleet(self.folder, hosts=1, devices=8, attributes=attributes,
                      workloads=[catalogue(name) for name in workloads],
                      environment={"driver": driver}, **truth)
        self.service = Service(self.folder, options=self.options, config=fleet.config(
            background={"budget_percent": 0}))
        self.service.start()
        self.service.wait(lambda: sum(d["online"] for d in self.service.get("/v1/devices")["items"]) == online,
                          "all devices")
        return self.service

    def run(self, **request):
        job = self.service.post_job(iterations=1, **request)
        assert self.service.finish_job(job)["state"] == "finished"

    def reported(self, count):
        """All changes, the oldest first, when the last of COUNT is reported."""
        self.service.wait(lambda: sum(c["state"] == "reported" for c in self.service.items("/v1/changes"))
                          == count, "reports")
        return list(reversed(self.service.items("/v1/changes")))


@pytest.fixture
def changing(tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda *options: Changing(tmp_path, stack, list(options))


def cases_of(service, query):
    answer = service.get(f"/v1/drift?{query}")
    matches(answer, {"$ref": "#/components/schemas/DriftList"})
    [drift] = answer["items"]
    return drift, {case["workload"]: case for group in drift["groups"] for case in group["cases"]
                   if case["variant"] == "ordered"}


def environments(service):
    found = service.get("/v1/environments")["items"]
    return [e["id"] for e in sorted(found, key=lambda e: e["facts"]["driver"])]


def test_an_upgrade_beside_a_wrong_device(changing):
    """The bits of the seven that agree changed; load and a wrong device did the rest."""
    host = changing("--no-survey")
    workloads = ("kept", "other", "loaded", "elsewhere")
    host.start(workloads, wrong={WRONG: {}}, loaded={"loaded": 1})
    host.run(workloads=["kept", "other"], runs=8)
    host.run(workloads=["loaded"], runs=2, devices=ALL[:2])
    host.run(workloads=["elsewhere"], runs=3, devices=ALL[:3])
    service = host.start(workloads, wrong={WRONG: {}}, loaded={"loaded": 1}, driver="2.0",
                         shifts={"other": 1})
    host.run(workloads=["kept", "other"], runs=8)
    host.run(workloads=["loaded"], runs=2, devices=ALL[:2], contention=2)
    host.run(workloads=["elsewhere"], runs=3, devices=[WRONG])
    before, after = environments(service)
    drift, cases = cases_of(service, f"from={before}&to={after}")

    other = cases["other"]
    assert (other["kind"], other["bits"]) == ("bits_changed", "changed"), other
    assert "of the 7 devices that agree" in other["reason"]
    assert f"{WRONG} disagrees before and now" in other["reason"]
    assert other["after"]["dissenting"] == WRONG and other["after"]["agreeing_devices"] == 7
    assert (cases["kept"]["kind"], cases["kept"]["bits"]) == ("same_bits", "same")
    assert not cases["kept"]["proven"]

    loaded = cases["loaded"]
    assert (loaded["kind"], loaded["bits"]) == ("cannot_be_told_yet", None), loaded
    assert "before plain, now contention 2" in loaded["reason"]

    elsewhere = cases["elsewhere"]
    assert (elsewhere["kind"], elsewhere["bits"]) == ("cannot_be_told_yet", None), elsewhere
    assert "no device was measured in both" in elsewhere["reason"]
    assert elsewhere["to_run"]["devices"] != [WRONG]
    assert drift["counts"]["bits_changed"] == 1 and drift["counts"]["varies_now"] == 0

    view = service.get("/v1/matrix?view=environments")
    matches(view, {"$ref": "#/components/schemas/Classes"})
    [row] = [row for group in view["groups"] for row in group["rows"]
             if (row["workload"], row["variant"]) == ("loaded", "ordered")]
    assert [(cell["mark"], cell["class"], cell["other_conditions"]) for cell in row["cells"]] == \
        [("\N{MULTIPLICATION SIGN}", None, True), ("A", "A", False)]
    assert not row["differs"]
    assert "measured only under other conditions" in service.get("/v1/matrix.txt?view=environments")

    # The jobs that it names do tell.
    for job in drift["to_run"]:
        service.finish_job(service.post_job(**job))
    _, cases = cases_of(service, f"from={before}&to={after}")
    assert {name: case["bits"] for name, case in cases.items()} == \
        {"kept": "same", "other": "changed", "loaded": "same", "elsewhere": "same"}


def test_a_flash_of_one_device_and_of_all(changing):
    """Within one environment each device is compared with itself."""
    host = changing()
    service = host.start()
    service.wait(lambda: any(job["survey"] for job in service.items("/v1/jobs")), "a survey")
    service.wait(lambda: all(job["state"] == "finished" for job in service.items("/v1/jobs")), "its end")
    service = host.start(vbios=["GPU-02"], wrong={"GPU-02": {}})
    [change] = host.reported(1)
    [report] = change["reports"]
    assert report["from"] == report["to"] and report["counts"]["varies_now"] == 0
    host.run(runs=8)  # a change may be reported when the flashed device alone was measured
    _, cases = cases_of(service, report["href"].split("?")[1])
    # Whether the flash or the device did it cannot be told.
    assert cases["imagined"]["kind"] == "cannot_be_told_yet", cases
    assert "GPU-02" in cases["imagined"]["reason"] and cases["imagined"]["devices_changed"] == 1, cases["imagined"]
    assert not service.items("/v1/findings")

    service = host.start(vbios=ALL, shifts={"imagined": 1})
    first, second = host.reported(2)
    [report] = second["reports"]
    assert report["counts"]["bits_changed"] == 1 and report["counts"]["verdict_changed"] == 0
    _, cases = cases_of(service, report["href"].split("?")[1])
    assert cases["imagined"]["bits"] == "changed" and cases["imagined"]["devices_changed"] >= 7
    # What the first report says does not become another thing by what came later.
    [report] = first["reports"]
    assert f"&until={second['at']}" in report["href"]
    assert first["pages"] == [f"/?drift={first['host']}@{first['at']}..{second['at']}"]
    _, cases = cases_of(service, report["href"].split("?")[1])
    assert (cases["imagined"]["kind"], cases["imagined"]["devices_changed"]) == ("verdict_changed", 1)


def test_nobody_is_named_for_a_flash(changing):
    """All devices are flashed, which changes their bits, and are measured one by one."""
    host = changing("--no-survey")
    host.start()
    host.run(runs=5)
    service = host.start(vbios=ALL, shifts={"imagined": 1})

    def nobody():
        cell = service.get(f"/v1/cells/{cell_id(service)}")
        assert cell["verdict"] != "devices_disagree" and not service.items("/v1/findings"), cell
        return cell

    host.run(runs=8, devices=ALL[:1])
    cell = nobody()
    assert cell["verdict"] == "inconclusive"
    assert "GPU-00" in cell["reason"] and "no other device was measured" in cell["reason"]
    for device in ALL[1:]:
        host.run(runs=8, devices=[device])
        nobody()
    assert service.fsck()[0] == 0


def test_who_told_a_flash_late_is_cleared(changing):
    """What a device showed while it did not tell its VBIOS is held against it until it tells another one."""
    host = changing("--no-survey")
    host.start()
    host.run(runs=5)
    service = host.start(silent=["GPU-02"], wrong={"GPU-02": {}})
    host.run(runs=8)
    [finding] = service.items("/v1/findings")
    assert finding["device"] == "GPU-02", finding
    service = host.start(vbios=["GPU-02"], wrong={"GPU-02": {}})
    service.wait(lambda: not service.items("/v1/findings"), "that it is cleared")
    cell = service.get(f"/v1/cells/{cell_id(service)}")
    assert cell["verdict"] == "inconclusive" and "GPU-02" in cell["reason"], cell
    assert service.fsck()[0] == 0


def test_flapping_versions_are_not_each_others(changing):
    """A state that nobody measured has no bits, and another one's are not taken for it."""
    host = changing("--no-survey")
    truth = {"1.0": {}, "2.0": {"imagined": 1}}
    host.start(driver="1.0", build="sim-1")
    host.run(runs=3)
    host.start(driver="2.0", build="sim-2", shifts=truth["2.0"])  # not measured
    service = host.start(driver="1.0", build="sim-1")
    host.run(runs=3)
    up, down = reversed(service.items("/v1/changes"))
    name = up["host"]
    answer = service.get(f"/v1/drift?host={name}&since={up['at']}&until={down['at']}")
    matches(answer, {"$ref": "#/components/schemas/DriftList"})
    assert answer["items"] == [] and answer["unmeasured"] and answer["until"] == down["at"]
    assert "Nothing of this host was measured between these times." in \
        service.get(f"/v1/drift.txt?host={name}&since={up['at']}&until={down['at']}")
    _, cases = cases_of(service, f"host={name}&since={down['at']}")
    assert cases["imagined"]["kind"] == "cannot_be_told_yet", cases
    assert "not measured between the change before and this one" in cases["imagined"]["reason"]

    # Once it is measured, the ends are those of then, whatever the host has now.
    host.start(driver="2.0", build="sim-2", shifts=truth["2.0"])
    host.run(runs=3)
    service = host.start(driver="1.0", build="sim-1")
    host.run(runs=3)
    again, back = [c for c in reversed(service.items("/v1/changes"))][2:]
    for since, until, ends in ((again, back, ["1.0", "2.0"]), (back, None, ["2.0", "1.0"])):
        query = f"host={name}&since={since['at']}" + (f"&until={until['at']}" if until else "")
        drift, cases = cases_of(service, query)
        assert [drift[end]["facts"]["driver"] for end in ("from", "to")] == ends
        assert cases["imagined"]["bits"] == "changed"


def test_a_change_that_was_undone_before_it_was_measured(changing):
    host = changing()
    service = host.start(driver="1.0", build="sim-1")
    service.wait(lambda: any(job["survey"] for job in service.items("/v1/jobs")), "a survey")
    service.wait(lambda: all(job["state"] == "finished" for job in service.items("/v1/jobs")), "its end")
    service = host.start(driver="2.0", build="sim-2", mute=True)
    service.wait(lambda: service.items("/v1/changes"), "the change")
    service = host.start(driver="1.0", build="sim-1", kill=True)
    up, down = host.reported(2)
    [report] = up["reports"]
    assert report["to"] is None and report["headline"] == "not measured before the next change"
    assert service.get(report["href"])["items"] == []
    [report] = down["reports"]
    assert report["counts"]["same_bits"] == 0 and report["counts"]["cannot_be_told_yet"] > 0, report
    matches(service.get("/v1/changes"), {"$ref": "#/components/schemas/ChangeList"})
    assert service.fsck()[0] == 0


def test_what_does_not_exist_is_named_by_what_does(changing):
    host = changing("--no-survey")
    service = host.start()
    host.run(runs=2, devices=["GPU-00"])
    [environment] = service.get("/v1/environments")["items"]
    near = environment["id"][:-1] + ("0" if environment["id"][-1] != "0" else "1")
    for path, words in (
            (f"/v1/environments/{near}", environment["id"]), ("/v1/devices/GPU-0", "did you mean 'GPU-0"),
            (f"/v1/matrix?environment={near}", environment["id"]),
            (f"/v1/matrix?view=devices&environment={near}", environment["id"])):
        status, _, problem = service.request("GET", path)
        assert status in (404, 422) and words in problem["detail"], (path, problem)
    for parameter in "since", "until":
        status, _, problem = service.request("GET", f"/v1/drift?host=host-0&{parameter}=2026-02-30T00:00:00Z")
        assert status == 422 and "there is no day 2026-02-30" in str(problem), problem
    status, _, problem = service.request(
        "GET", "/v1/drift?host=host-0&since=2026-02-28T00:00:00Z&until=2026-02-27T00:00:00Z")
    assert status == 422 and "is not after 'since'" in str(problem)
