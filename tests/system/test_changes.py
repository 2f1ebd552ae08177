"""What changes on a host is an event, starts a survey with the cases that only the environment
before had, and ends in a drift report."""
import http.client
import json

import pytest

from service import LIMIT, SELFTEST_WORKER, Service
from test_api import matches

# A worker with one workload.  The versions of its library and of its firmware, which is no part of
# the environment, are in files beside it.
WORKER = """#!/bin/sh
version=$(cat {folder}/version)
firmware=$(cat {folder}/firmware)
[ "$version" = 1 ] || export OPENBLAS_CORETYPE=$version
[ "$firmware" = 1 ] || export SELFTEST_FIRMWARE=$firmware
case "$1" in
--catalogue) {worker} --catalogue | grep '"workload":"selftest_planted"' ;;
--probe) {worker} --probe | sed 's/"versions":{{/"versions":{{"openblas":"'$version'","firmware":"'$firmware'",/' ;;
*) exec {worker} "$@" ;;
esac
"""


@pytest.fixture
def upgradable(tmp_path):
    script = tmp_path / "worker"
    script.write_text(WORKER.format(folder=tmp_path, worker=SELFTEST_WORKER))
    script.chmod(0o755)
    service = Service(tmp_path / "service", worker=script)
    service.install = (tmp_path / "version").write_text
    service.flash = (tmp_path / "firmware").write_text
    service.install("1")
    service.flash("1")
    service.start()
    yield service
    if service.process:
        assert service.stop() == 0, service.log.read_text()[-3000:]


def surveyed(service):
    service.wait(lambda: any(job["survey"] for job in service.items("/v1/jobs")), "a survey")
    service.wait(lambda: all(job["state"] == "finished" for job in service.items("/v1/jobs")), "its end")


def drift_series(service):
    """Those of /metrics that are not zero: {series with labels: value}."""
    lines = [line.rsplit(" ", 1) for line in service.get("/metrics").splitlines()]
    return {series: float(value) for series, value in lines
            if series.startswith(("reprod_drift_", "reprod_host_drift_cases", "reprod_changes_open")) and float(value)}


def restart(service, version):
    assert service.stop() == 0
    service.install(version)
    service.start()


def events_of(service, count):
    """The first COUNT events of kinds change and drift, from the beginning."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT)
    connection.request("GET", "/v1/events", headers={"Last-Event-ID": "0"})
    stream, found, kind = connection.getresponse(), [], None
    while len(found) < count:
        line = stream.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: ") and kind in ("change", "drift"):
            found.append((kind, json.loads(line[6:])))
    connection.close()
    return found


def test_an_upgrade_is_told_measured_and_reported_once(upgradable):
    service = upgradable
    surveyed(service)
    # A person measured another seed.
    service.finish_job(service.post_job(workloads=["selftest_planted"], seeds=[7], runs=3, iterations=2))
    assert service.get("/v1/changes")["items"] == []
    restart(service, "1")
    assert service.get("/v1/changes")["items"] == [], "nothing changed"

    restart(service, "2")
    service.wait(lambda: [c for c in service.items("/v1/changes") if c["state"] == "reported"], "a report")
    answer = service.get("/v1/changes")
    matches(answer, {"$ref": "#/components/schemas/ChangeList"})
    [change] = answer["items"]
    assert change["text"] == "openblas 1 → 2 (stack cpu)"
    assert change["facts"] == [{"stack": "cpu", "device": None, "name": "openblas", "before": "1", "after": "2"}]
    [report] = change["reports"]
    assert report["title"].startswith("no env.OPENBLAS_CORETYPE → env.OPENBLAS_CORETYPE 2 on ")
    # Of both seeds: the survey's own, and the one that only the environment before had.
    assert report["counts"]["bits_changed"] == 2 and report["counts"]["varies_now"] == 2
    assert report["counts"]["fails_now"] == 2 and report["counts"]["cannot_be_told_yet"] == 0
    assert {case["kind"] for case in report["cases"]} == {"varies_now", "fails_now", "bits_changed"}
    series = drift_series(service)
    for kind in "varies_now", "fails_now", "bits_changed":
        assert series[f'reprod_drift_cases{{kind="{kind}"}}'] == 2
        assert series[f'reprod_host_drift_cases{{host="{change["host"]}",kind="{kind}"}}'] == 2
    assert series[f'reprod_drift_case_info{{host="{change["host"]}",from="{report["from"]}",to="{report["to"]}",'
                  'kind="bits_changed",workload="selftest_planted",variant="planted",size="small",dtype="float32",'
                  'seed="7"}'] == 1
    assert len(series) == 12 and "reprod_host_drift_timestamp_seconds{" in service.get("/metrics")
    assert change["pages"] == [f"/?drift={report['from']}..{report['to']}"]
    [drift] = service.get(report["href"])["items"]
    assert drift["page"] == change["pages"][0]
    assert {case["seed"] for group in drift["groups"] for case in group["cases"]} == {"1", "7"}
    by_host = service.get(f"/v1/drift?host={change['host']}&since={change['at']}")
    assert [item["href"] for item in by_host["items"]] == [report["href"]]
    assert drift["hosts"] == [change["host"]]
    told, reported = events_of(service, 2)
    assert told == ("change", {"change": 1, "host": change["host"], "text": change["text"],
                               "facts": change["facts"]})
    assert reported == ("drift", {"change": 1, "host": change["host"], "reports": change["reports"]})

    restart(service, "2")
    assert service.get("/v1/changes") == answer, "told once"
    surveys = sum(job["survey"] for job in service.items("/v1/jobs"))
    restart(service, "1")
    service.wait(lambda: len([c for c in service.items("/v1/changes") if c["state"] == "reported"]) == 2,
                 "the way back")
    assert sum(job["survey"] for job in service.items("/v1/jobs")) > surveys, "measured again"
    newest = service.get("/v1/changes")["items"][0]
    assert newest["text"] == "openblas 2 → 1 (stack cpu)"
    assert newest["reports"][0]["from"] == report["to"] and newest["reports"][0]["to"] == report["from"]
    assert newest["reports"][0]["counts"]["bits_changed"] == 2
    assert drift_series(service) == {}, "it went back"
    assert "openblas 2 → 1" in service.get("/v1/changes.txt")
    assert service.fsck()[0] == 0


def test_a_report_survives_a_kill(upgradable):
    """Killed as soon as the change is known: the rest follows from what is stored."""
    service = upgradable
    surveyed(service)
    service.finish_job(service.post_job(workloads=["selftest_planted"], variants=["planted"], seeds=[7],
                                        runs=3, iterations=2))
    assert service.stop() == 0
    service.install("2")
    service.start(ready=False)
    service.wait(lambda: service.items("/v1/changes"), "the change")
    service.kill()
    service.start()
    service.wait(lambda: [c for c in service.items("/v1/changes") if c["state"] == "reported"], "a report")
    [change] = service.get("/v1/changes")["items"]
    assert change["reports"][0]["counts"]["bits_changed"] == 2


def test_a_firmware_changes_bits_within_its_environment(upgradable):
    """There are no two environments: runs before are compared with those since."""
    service = upgradable
    surveyed(service)
    service.flash("2")
    restart(service, "1")
    service.wait(lambda: [c for c in service.items("/v1/changes") if c["state"] == "reported"], "a report")
    [change] = service.get("/v1/changes")["items"]
    assert change["text"] == "firmware 1 → 2 (stack cpu)"
    [report] = change["reports"]
    assert change["pages"] == [f"/?drift={change['host']}@{change['at']}"]
    assert report["from"] == report["to"] and report["title"] == f"{change['text']} on {change['host']}"
    counts = report["counts"]
    assert counts["bits_changed"] == 1 and counts["varies_now"] == 1 and counts["fails_now"] == 1
    assert counts["same_bits"] == 1
    answer = service.get(report["href"])
    matches(answer, {"$ref": "#/components/schemas/DriftList"})
    [drift] = answer["items"]
    kinds = {case["variant"]: case["kind"] for group in drift["groups"] for case in group["cases"]}
    assert kinds["planted"] == "bits_changed" and kinds["turning"] == "varies_now"
    assert kinds["breaking"] == "fails_now" and kinds["ordered"] in ("same_bits", "cost_changed")
    assert drift["title"].startswith(f"{change['host']} since ")
    assert drift["title"] in service.get(report["href"].replace("?", ".txt?"))


def test_without_surveys_the_next_job_on_the_host_reports_it(upgradable):
    service = upgradable
    service.options = ["--no-survey"]
    surveyed(service)
    restart(service, "2")
    service.wait(lambda: service.items("/v1/changes"), "the change")
    [change] = service.get("/v1/changes")["items"]
    assert change["state"] == "seen" and "the next jobs on its host" in change["waits_for"]
    service.finish_job(service.post_job(workloads=["selftest_planted"], runs=3, iterations=2))
    service.wait(lambda: service.get("/v1/changes")["items"][0]["state"] == "reported", "a report")
    [change] = service.get("/v1/changes")["items"]
    assert change["waits_for"] is None
    [report] = change["reports"]
    assert report["counts"]["bits_changed"] == 1 and report["counts"]["cannot_be_told_yet"] == 0
