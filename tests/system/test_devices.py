"""One wrong device among equals is named wherever one looks; a healthy one nowhere."""
import contextlib
import http.client
import pathlib
import sys

import pytest

from service import Service
from test_api import matches

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fleets"))
from fleet_sim import Fleet, catalogue  # noqa: E402

WRONG = "GPU-03"


@pytest.fixture
def start_fleet(tmp_path):
    with contextlib.ExitStack() as stack:
        def start(options=("--no-survey",), **truth):
            fleet = Fleet(tmp_path, **truth)
            service = Service(tmp_path, options=options, config=fleet.config())
            stack.callback(lambda: service.process and service.stop())
            service.start()
            count = sum(map(len, fleet.devices.values()))
            service.wait(lambda: sum(d["online"] for d in service.get("/v1/devices")["items"]) == count,
                         "all devices")
            return service
        yield start


def cell_id(service, variant="ordered"):
    """Cells are few and numbered from 1."""
    for number in range(1, 20):
        status, _, cell = service.request("GET", f"/v1/cells/{number}")
        if status == 200 and cell["variant"] == variant:
            return number
    raise AssertionError("no such cell")


def check_view(service, wrong, verdict):
    """Devices next to each other: the letter of the wrong one is marked, the others have what they earned."""
    view = service.get("/v1/matrix?view=devices")
    [row] = [row for group in view["groups"] for row in group["rows"] if row["variant"] == "ordered"]
    for column, entry in zip(view["columns"], row["cells"]):
        if column["id"] == wrong:
            assert (entry["mark"], entry["verdict"]) == ("B\N{NOT EQUAL TO}", "devices_disagree"), entry
        else:
            assert (entry["class"], entry["verdict"]) == ("A", verdict), (column, entry)
    assert sum(column["devices"] for column in view["columns"]) == 8


def check_named(service, wrong=WRONG):
    """One device of eight is named: by its cell, itself, the findings, events and metrics."""
    number = cell_id(service)
    cell = service.get(f"/v1/cells/{number}")
    assert cell["verdict"] == "devices_disagree" and cell["agreement"] == "disagree", cell
    assert f"1 of 8 devices dissents: {wrong} (" in cell["reason"]
    assert [d["device"] for d in cell["dissent"]["dissenters"]] == [wrong]
    majority = cell["dissent"]["majority"]
    assert (majority["devices"], majority["of_devices"], majority["class"]) == (7, 8, "A")
    for device in cell["devices"]:
        is_wrong = device["device"] == wrong
        assert device["state"] == ("dissents" if is_wrong else "agrees")
        assert device["self_consistent"] and device["distinct_digests"] == 1
        assert device["digests"][0]["class"] == ("B" if is_wrong else "A")
        assert device["serial"] == f"SN{device['device'][4:]}"
        assert is_wrong == (device["named_at"] is not None)
    camps = {camp["class"]: camp for camp in cell["dissent"]["camps"]}
    assert camps["B"]["devices"] == [wrong] and camps["A"]["size"] == 7
    assert camps["A"]["shares"]["vbios"] == "96.00"
    check_view(service, wrong, majority["verdict"])
    hosts = {device["host"] for device in cell["devices"]}
    assert ("host" in camps["A"]["shares"]) == (len(hosts) == 1)
    assert camps["B"]["shares"]["host"] == "host-0"
    evidence = service.get(f"/v1/cells/{number}/evidence")
    assert evidence["dissent"]["dissenters"] == cell["dissent"]["dissenters"]
    assert wrong in service.get(f"/v1/cells/{number}.txt")
    for device in service.get("/v1/devices")["items"]:
        assert device["dissents"] == (device["id"] == wrong)
    [where] = service.get(f"/v1/devices/{wrong}")["dissents_in"]
    assert where["cell"] == number
    found = [f for f in service.get("/v1/findings")["items"]
             if f["finding"] == "device dissents from its equals"]
    assert [(f["device"], f["cell"]) for f in found] == [(wrong, number)]
    metrics = service.get("/metrics")
    assert "\nreprod_devices_dissenting 1\n" in metrics
    assert f'\nreprod_device_dissents{{device="{wrong}"}} 1\n' in metrics
    assert service.fsck()[0] == 0, service.fsck()
    return cell


@pytest.mark.parametrize("truth", [{}, {"from": 6}], ids=["from the start", "half-way"])
def test_one_wrong_device_is_named_by_the_job_that_measures_it(start_fleet, truth):
    service = start_fleet(wrong={WRONG: truth})
    job = service.finish_job(service.post_job(workloads=["imagined"], iterations=3,
                                              runs=12 if truth else 5))
    assert job["state"] == "finished" and job["progress"]["runs_failed"] == 0
    if truth:
        cell = service.get(f"/v1/cells/{cell_id(service)}")
        [named] = cell["dissent"]["dissenters"]
        assert named["device"] == WRONG and not cell["devices"][0]["self_consistent"]
        return
    cell = check_named(service)
    assert cell["dissent"]["majority"]["verdict"] == "reproducible"
    assert "7 agree, reproducible" in cell["reason"]
    assert service.get(f"/v1/cells/{cell_id(service, 'unordered')}")["verdict"] == "varies"


def test_the_first_survey_names_it(start_fleet):
    service = start_fleet(options=(), hosts=1, devices=8, wrong={WRONG: {}})
    service.wait(lambda: service.get("/v1/jobs")["items"] and
                 service.get("/v1/jobs")["items"][-1]["state"] == "finished", "the survey")
    check_named(service)


def test_a_device_of_a_command_is_named(start_fleet):
    """What the configuration declares has no reference and, here, no control."""
    service = start_fleet(wrong={WRONG: {}}, stack="external", workloads=[catalogue(controlled=False)])
    service.finish_job(service.post_job(workloads=["imagined"], iterations=2, runs=5))
    cell = check_named(service)
    assert cell["dissent"]["majority"]["verdict"] == "inconclusive"


def test_its_event_says_so(start_fleet):
    service = start_fleet(wrong={WRONG: {}})
    service.finish_job(service.post_job(workloads=["imagined"], iterations=1, runs=5))
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request("GET", "/v1/events", headers={"Last-Event-ID": "0"})
    answer = connection.getresponse()
    while True:
        line = answer.readline().decode()
        assert line, "the stream ended"
        if line.startswith("event: dissent"):
            data = answer.readline().decode()
            break
    assert f'"device":"{WRONG}"' in data and '"state":"named"' in data, data
    connection.close()


def test_a_workload_that_varies_names_nobody(start_fleet):
    service = start_fleet(varies=0.9)
    service.finish_job(service.post_job(workloads=["imagined"], iterations=2, runs=5))
    cell = service.get(f"/v1/cells/{cell_id(service)}")
    assert cell["verdict"] == "varies" and cell["dissent"] is None
    assert service.get("/v1/findings")["items"] == []
    assert "\nreprod_devices_dissenting 0\n" in service.get("/metrics")


def test_hosts_that_differ_condemn_nobody(start_fleet):
    service = start_fleet(wrong={f"GPU-0{d}": {} for d in range(4)})
    service.finish_job(service.post_job(workloads=["imagined"], iterations=2, runs=5))
    cell = service.get(f"/v1/cells/{cell_id(service)}")
    assert cell["verdict"] == "devices_disagree" and cell["dissent"]["hosts_differ"]
    assert cell["dissent"]["dissenters"] == [] and cell["dissent"]["majority"] is None
    assert "hosts differ" in cell["reason"]


def test_what_most_devices_show_is_one_column(start_fleet):
    """20 devices are two columns that differ and one for all others, until each host is asked for."""
    wrong = ["GPU-03", "GPU-13"]
    service = start_fleet(devices=10, wrong={device: {} for device in wrong})
    service.finish_job(service.post_job(workloads=["imagined"], iterations=2, runs=5))
    view = service.get("/v1/matrix?view=devices")
    matches(view, {"$ref": "#/components/schemas/Classes"})
    assert [column["id"] for column in view["columns"]] == ["majority", *wrong]
    assert (view["columns"][0]["devices"], view["columns"][0]["hosts"]) == (18, 2)
    [row] = [row for group in view["groups"] for row in group["rows"] if row["variant"] == "ordered"]
    assert [cell["mark"] for cell in row["cells"]] == ["A", "B\N{NOT EQUAL TO}", "B\N{NOT EQUAL TO}"]
    assert row["cells"][0]["devices"] == 18
    text = service.get("/v1/matrix.txt?view=devices&rows=differing")
    assert "   1 18 devices on 2 hosts that show what most show, imagined GPU" in text
    assert len(text.splitlines()) < 30
    each = service.get("/v1/matrix?view=devices&columns=hosts")
    assert len(each["columns"]) == 20 and {c["devices"] for c in each["columns"]} == {1}
    status, _, problem = service.request("GET", "/v1/matrix?view=environments&columns=hosts")
    assert status == 422 and "view devices" in str(problem)


def test_every_device_of_a_cell_is_listed_page_by_page(start_fleet):
    service = start_fleet(devices=10, wrong={"GPU-13": {}, "GPU-03": {"another": True}})
    service.finish_job(service.post_job(workloads=["imagined"], iterations=2, runs=5))
    path = f"/v1/cells/{cell_id(service)}/devices"
    answer = service.get(f"{path}?limit=3")
    matches(answer, {"$ref": "#/components/schemas/CellDevices"})
    assert answer["device_count"] == 20 and answer["agreement"] == "disagree"
    assert "2 of 20 devices dissent" in answer["agreement_words"]
    items = service.items(path)
    assert [item["device"] for item in items][:2] == ["GPU-03", "GPU-13"]
    assert sorted(item["device"] for item in items) == [f"GPU-{d:02}" for d in range(20)]
    by_threes, page = list(answer["items"]), answer
    while page["next"]:
        page = service.get(f"{path}?limit=3&cursor={page['next']}")
        by_threes += page["items"]
    assert by_threes == items
    assert [(item["class"] is None, item["self_consistent"]) for item in items[:2]] == [(True, False), (False, True)]
    assert {item["class"] for item in items[2:]} == {"A"}
    # The largest camp first, and last those that differ with themselves.
    assert [(camp["class"] or "-", camp["size"]) for camp in answer["camps"]][0] == ("A", 18)
    assert answer["camps"][0]["runs"] == sum(item["runs"] for item in items[2:])
    assert answer["camps"][-1]["devices"] == ["GPU-03"] and answer["camps"][-1]["digest"] is None
    assert [d["device"] for d in service.items(f"{path}?state=dissents")] == ["GPU-03", "GPU-13"]
    assert len(service.items(f"{path}?state=agrees")) == 18 and service.items(f"{path}?state=departs") == []
    text = service.get(f"/v1/cells/{cell_id(service)}/devices.txt?state=dissents")
    assert "SELF CONSISTENT" in text and "\nGPU-13  host-1" in text
    status, _, problem = service.request("GET", f"{path}?state=agree")
    assert status == 422 and "agrees" in str(problem)
    assert service.request("GET", "/v1/cells/99999/devices")[0] == 404
    assert service.request("GET", f"{path}?cursor=x")[0] == 422


def pages_of(service, path, limit):
    """Every item of a list, in pages of LIMIT."""
    joint = "&" if "?" in path else "?"
    page = service.get(f"{path}{joint}limit={limit}")
    pages = [page["items"]]
    while page["next"]:
        page = service.get(f"{path}{joint}limit={limit}&cursor={page['next']}")
        pages.append(page["items"])
    assert all(len(items) == limit for items in pages[:-1]) and len(pages[-1]) <= limit
    return [item for items in pages for item in items]


def test_findings_and_devices_come_in_pages(start_fleet):
    """Two devices that dissent in five cells, beside what breaks no claim: each once, whatever a page holds."""
    wrong = {"GPU-13": {}, "GPU-03": {}}
    names = [f"imagined{n}" for n in range(5)]
    service = start_fleet(devices=10, wrong=wrong, workloads=[catalogue(name) for name in names])
    service.finish_job(service.post_job(workloads=names, iterations=2, runs=5))
    every = service.get("/v1/findings")["items"]
    assert len(every) == 10 and {found["device"] for found in every} == set(wrong)
    cells = [found["cell"] for found in every]
    assert cells == sorted(cells, reverse=True)
    for limit in 1, 2, 3, 10:
        assert pages_of(service, "/v1/findings", limit) == every, limit
    devices = service.items("/v1/devices")
    assert [device["id"] for device in devices] == [f"GPU-{d:02}" for d in range(20)]
    assert pages_of(service, "/v1/devices", 7) == devices
    assert [(d["id"], d["dissents"]) for d in service.items("/v1/devices?dissents=only")] == [("GPU-03", 5), ("GPU-13", 5)]
    assert len(service.get("/v1/devices/GPU-03")["dissents_in"]) == 5
    assert service.request("GET", "/v1/devices?dissents=no")[0] == 422
