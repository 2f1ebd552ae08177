"""Webhooks: whoever is to be told is told, whatever is killed; signed, and nowhere it may not go."""
import datetime
import json
import sqlite3
import subprocess
import time

import pytest

from receiver import SECRET, Receiver
from service import BUILD, SELFTEST_WORKER

JOB = {"workloads": ["selftest_pass"], "runs": 2, "iterations": 1}


@pytest.fixture
def receiver(tmp_path):
    receivers = []

    def make(*arguments, **options):
        folder = tmp_path / f"receiver{len(receivers)}"
        folder.mkdir()
        receivers.append(Receiver(folder, *arguments, **options))
        return receivers[-1]

    yield make
    for one in receivers:
        one.kill()


def post(service, url, **members):
    return service.request("POST", "/v1/webhooks", {"name": "hook", "url": url, **members})


def add(service, url, **members):
    status, _, made = post(service, url, **{"secret": SECRET, **members})
    assert status == 201, made
    return made["id"]


def act(service, hook, what, body=None):
    status, _, answer = service.request("POST", f"/v1/webhooks/{hook}/{what}", body)
    assert status == 200, answer
    return answer


def hook_of(service, hook):
    return service.get(f"/v1/webhooks/{hook}")


def deliveries(service, hook, state=""):
    return service.items(f"/v1/webhooks/{hook}/deliveries{'?state=' if state else ''}{state}")


def wait_for(service, hook, condition, what):
    service.wait(lambda: condition(hook_of(service, hook)), what)


def test_an_event_as_it_arrives(start_service, receiver):
    service, target = start_service(), receiver()
    hook = add(service, target.url, types=["job.finished", "dev.reprod.cell.changed"])
    job = service.post_job(**JOB, note="by hand")
    service.finish_job(job)
    service.wait(lambda: f"job-{job}-finished" in {line["id"] for line in target.accepted()}, "the job's event")
    wait_for(service, hook, lambda w: w["waiting"] == 0, "all is delivered")
    lines = target.lines()
    assert all(line["signed"] and line["path"] == "/hook?token=t" for line in lines)
    assert all(line["type"] == "application/cloudevents+json; charset=utf-8" for line in lines)
    events = {line["id"]: json.loads(line["body"]) for line in lines}
    assert len(events) == len(lines)
    for message, event in events.items():
        assert set(event) == {"specversion", "id", "source", "type", "time", "subject", "datacontenttype", "data"}
        assert event["specversion"] == "1.0" and event["id"] == message and "." not in message
        assert event["source"].startswith("reprod://") and event["source"].endswith(f":{service.port}")
        assert event["datacontenttype"] == "application/json"
        datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
    finished = events[f"job-{job}-finished"]
    assert finished["type"] == "dev.reprod.job.finished" and finished["subject"] == f"jobs/{job}"
    assert finished["data"]["state"] == "finished" and finished["data"]["note"] == "by hand"
    assert finished["data"]["href"] == f"/v1/jobs/{job}" and finished["data"]["runs_done"] > 0
    changed = [event for event in events.values() if event["type"] == "dev.reprod.cell.changed"]
    assert changed and all(event["subject"] == f"cells/{event['data']['id']}" for event in changed)
    shown = hook_of(service, hook)
    assert shown["state"] == "active" and shown["delivered"] == len(lines) and shown["failures"] == 0
    assert shown["url"].endswith("/hook?…") and "secret" not in shown
    listed = deliveries(service, hook, "delivered")
    assert {item["message"] for item in listed} == set(events)
    assert all(item["attempts"] == 1 and item["status"] == 204 and item["event"] == events[item["message"]]
               for item in listed)
    for suffix in ("", ".txt", ".csv"):
        said = service.request("GET", f"/v1/webhooks{suffix}")[2]
        assert SECRET not in json.dumps(said) and SECRET[6:] not in json.dumps(said)
    assert SECRET[6:] not in service.log.read_text() and "token=t" not in service.log.read_text()


def stored_messages(service):
    """The ids that events of the database have, by its own text."""
    with sqlite3.connect(f"file:{service.data / 'reprod.db'}?mode=ro", uri=True) as db:
        cells = db.execute("SELECT id || '-' || at_ms || '-cell-changed' FROM event WHERE kind = 'cell'")
        jobs = db.execute("SELECT 'job-' || id || '-finished' FROM job WHERE state = 'finished'")
        return {row[0] for row in [*cells, *jobs]}


def check_nothing_lost(service, target, hook):
    service.wait(lambda: {line["id"] for line in target.accepted()} >= stored_messages(service),
                 "everything arrives")
    wait_for(service, hook, lambda w: w["waiting"] == 0, "nothing waits")
    assert {line["id"] for line in target.lines()} == stored_messages(service)
    bodies = {}
    for line in target.lines():
        assert line["signed"]
        assert bodies.setdefault(line["id"], line["body"]) == line["body"]
    shown = hook_of(service, hook)
    assert shown["dead"] == shown["dropped"] == 0 and shown["state"] == "active"
    assert shown["delivered"] <= len(target.accepted())


def kill_and_check(start_service, receiver, jobs, kills):
    """What is killed comes back; jobs are posted all the while."""
    service, target = start_service(), receiver("half")
    hook = add(service, target.url, types=["job.finished", "cell.changed"], retry_ms=10, timeout_ms=300)
    for number in range(jobs):
        job = service.post_job(**{**JOB, "runs": 1}, note=str(number))
        if number % 2 == 0:
            service.finish_job(job)
        if number in kills:
            target.kill()
            service.kill()
            service.start()
            target.start()
    check_nothing_lost(service, target, hook)
    failures = {line["failure"] for line in target.lines()}
    assert {"500", "hang up"} <= failures
    assert service.stop() == 0
    assert service.fsck()[0] == 0


def test_kills_lose_nothing(start_service, receiver):
    kill_and_check(start_service, receiver, 8, {3, 6})


@pytest.mark.long
def test_many_kills_lose_nothing(start_service, receiver):
    kill_and_check(start_service, receiver, 60, set(range(2, 60, 6)))


def test_what_a_receiver_answers(start_service, receiver):
    service, target = start_service(), receiver("302 Location: /elsewhere")
    hook = add(service, target.url, retry_ms=10)
    delivery = act(service, hook, "test")["delivery"]
    wait_for(service, hook, lambda w: w["failures"] >= 2, "two tries")
    target.plan.write_text("")
    wait_for(service, hook, lambda w: w["delivered"] == 1, "a later try")
    assert {line["path"] for line in target.lines()} == {"/hook?token=t"}, "a redirect was followed"
    assert len({line["id"] for line in target.lines()}) == 1
    [listed] = deliveries(service, hook)
    assert listed["delivery"] == delivery and listed["attempts"] == len(target.lines())
    assert "it answered 302" in service.log.read_text() and "arrive again" in service.log.read_text()
    # Retry-After is honoured: nothing is tried before.
    target.plan.write_text("429 Retry-After: 7200")
    act(service, hook, "test")
    wait_for(service, hook, lambda w: w["last_failure"] == "it answered 429", "the refusal")
    [waiting] = deliveries(service, hook, "waiting")
    assert waiting["attempts"] == 1
    wait_s = (datetime.datetime.fromisoformat(waiting["next_at"][:-1]) -
              datetime.datetime.fromisoformat(waiting["tried_at"][:-1])).total_seconds()
    assert wait_s == 7200
    # A person who resumes it does not wait.  410: nothing more is sent.
    target.plan.write_text("410")
    act(service, hook, "resume")
    wait_for(service, hook, lambda w: w["state"] == "disabled", "the end")
    assert hook_of(service, hook)["disabled"] == "it answered 410"
    tries = len(target.lines())
    act(service, hook, "test")
    target.plan.write_text("")
    assert len(target.lines()) == tries
    act(service, hook, "resume")
    wait_for(service, hook, lambda w: w["waiting"] == 0 and w["state"] == "active", "what waited")
    assert len({line["id"] for line in target.accepted()}) == 3


def test_dead_letters_are_kept_and_replayed(start_service, receiver):
    service, target = start_service(), receiver("500")
    hook = add(service, target.url, retry_ms=10)
    act(service, hook, "test")
    wait_for(service, hook, lambda w: w["failures"] >= 1, "a try")
    # As if it had been tried eleven times.
    service.stop()
    with sqlite3.connect(service.data / "reprod.db") as db:
        db.execute("UPDATE webhook_delivery SET attempts = 11, next_ms = 0")
    service.start()
    wait_for(service, hook, lambda w: w["dead"] == 1, "a dead letter")
    [dead] = deliveries(service, hook, "dead")
    assert dead["cause"] == "it answered 500" and dead["ended_at"] and not dead["next_at"]
    assert "dead letter" in service.log.read_text()
    target.plan.write_text("")
    assert act(service, hook, "replay", {"dead": True})["replayed"] == 1
    wait_for(service, hook, lambda w: w["delivered"] == 1 and w["dead"] == 0, "the dead letter")
    assert len({line["id"] for line in target.lines()}) == 1
    assert act(service, hook, "replay", {"delivery": dead["delivery"]})["replayed"] == 1
    wait_for(service, hook, lambda w: w["delivered"] == 2, "once more")
    # What happened before the webhook was made can be had, too, and arrives once.
    service.finish_job(service.post_job(**JOB))
    later = add(service, target.url, name="later", types=["job.finished"])
    since = "1970-01-01T00:00:00Z"
    assert act(service, later, "replay", {"since": since})["replayed"] == 1
    wait_for(service, later, lambda w: w["delivered"] == 1, "the old event")
    assert act(service, later, "replay", {"since": since, "until": "2020-01-02T00:00:00Z"})["replayed"] == 0


def test_paused_means_later(start_service, receiver):
    service, target = start_service(), receiver()
    hook = add(service, target.url, types=["job.finished"])
    assert act(service, hook, "pause")["state"] == "paused"
    service.finish_job(service.post_job(**JOB))
    wait_for(service, hook, lambda w: w["waiting"] == 1, "it waits")
    assert target.lines() == []
    act(service, hook, "resume")
    wait_for(service, hook, lambda w: w["delivered"] == 1, "it arrives")
    status, _, gone = service.request("DELETE", f"/v1/webhooks/{hook}")
    assert status == 200 and gone["id"] == hook
    assert service.request("GET", f"/v1/webhooks/{hook}")[0] == 404
    assert service.request("GET", f"/v1/webhooks/{hook}/deliveries")[0] == 404


@pytest.mark.parametrize("url, says", [
    ("http://169.254.169.254/latest/", "the metadata address 169.254.169.254"),
    ("http://[::ffff:169.254.10.1]/", "the link-local address 169.254.10.1"),
    ("http://[fd00:ec2::254]/", "the metadata address"),
    ("http://[64:ff9b::a9fe:a9fe]/", "the metadata address 169.254.169.254"),
    ("http://0.0.0.0/", "the unspecified address"), ("http://[fe80::1]/", "the link-local address"),
    ("ftp://a/", "must begin with http"), ("http://u:p@a/", "no user"), ("http:///x", "name a host"),
    ("http://a:0/", "a port"), ("http://a/#b", "no fragment")])
def test_where_it_may_not_go(service, url, says):
    status, _, refused = post(service, url)
    assert status == 422 and says in refused["detail"] and refused["errors"][0]["pointer"] == "/url"


def test_what_a_name_leads_to_counts(start_service, receiver):
    """The resolver takes this number for 169.254.169.254, as it would a name of somebody's DNS."""
    target = receiver()
    service = start_service()
    hook = add(service, "http://2852039166/", retry_ms=10, timeout_ms=300)
    act(service, hook, "test")
    wait_for(service, hook, lambda w: w["failures"] >= 1, "it is refused")
    assert hook_of(service, hook)["last_failure"].startswith("refused: the metadata address 169.254.169.254")
    named = add(service, target.url.replace("127.0.0.1", "localhost"), name="by name")
    act(service, named, "test")
    wait_for(service, named, lambda w: w["delivered"] == 1, "localhost is allowed")


@pytest.mark.parametrize("members, says", [
    ({"types": ["cell.regresed"]}, "there is no type 'cell.regresed'; did you mean 'cell.regressed'?"),
    ({"secret": "whsec_short"}, "must be 'whsec_'"), ({"urls": 1}, "'url'"), ({"retry_ms": 1}, "from 10"),
    ({"name": ""}, "/name"), ({"secret_file": "/etc/passwd"}, "secret_file")])
def test_what_is_refused(service, members, says):
    status, _, refused = post(service, "http://localhost/", **members)
    assert status == 422 and says in refused["detail"], refused


def test_names_are_of_one_and_replays_ask_for_one_thing(start_service):
    service = start_service()
    status, _, made = post(service, "http://localhost:9/")
    assert status == 201 and made["secret"].startswith("whsec_") and len(made["secret"]) == 50
    status, _, refused = post(service, "http://localhost:9/")
    assert status == 409 and made["id"] in refused["detail"]
    for body in ({}, {"dead": False}, {"dead": True, "delivery": 1}, {"until": "2026-01-01T00:00:00Z"}):
        assert service.request("POST", f"/v1/webhooks/{made['id']}/replay", body)[0] == 422
    assert service.request("POST", f"/v1/webhooks/{made['id']}/replay", {"delivery": 7})[0] == 404


def test_those_of_the_configuration(start_service, receiver, tmp_path):
    target, secret = receiver(), tmp_path / "secret"
    secret.write_text(SECRET + "\n")
    listed = [{"name": "on-call", "url": target.url, "secret_file": str(secret)}]
    service = start_service(config={"webhooks": listed})
    [hook] = service.get("/v1/webhooks")["items"]
    assert hook["origin"] == "configuration" and "cell.changed" not in hook["types"]
    act(service, hook["id"], "test")
    wait_for(service, hook["id"], lambda w: w["delivered"] == 1, "the test")
    assert all(line["signed"] for line in target.lines())
    assert SECRET[6:].encode() not in (service.data / "reprod.db").read_bytes()
    status, _, refused = service.request("DELETE", f"/v1/webhooks/{hook['id']}")
    assert status == 409 and "configuration" in refused["detail"]
    # Another list: one goes, one comes, and one keeps its id.
    settings = json.loads(service.config.read_text())
    settings["webhooks"] = [{**listed[0], "types": ["cell.changed"]}, {**listed[0], "name": "new"}]
    service.config.write_text(json.dumps(settings))
    service.process.send_signal(1)
    service.wait(lambda: len(service.get("/v1/webhooks")["items"]) == 2, "the new list")
    shown = {item["name"]: item for item in service.get("/v1/webhooks")["items"]}
    assert shown["on-call"]["id"] == hook["id"] and shown["on-call"]["types"] == ["cell.changed"]
    settings["webhooks"] = []
    service.config.write_text(json.dumps(settings))
    service.process.send_signal(1)
    service.wait(lambda: service.get("/v1/webhooks")["items"] == [], "none")


@pytest.mark.parametrize("settings, says", [
    ({"webhooks": [{"name": "a", "url": "http://a/"}]}, "/webhooks/0: must have either 'secret' or"),
    ({"webhooks": [{"name": "a", "url": "http://169.254.1.1/", "secret": SECRET}]}, "/webhooks/0/url: leads to"),
    ({"webhooks": [{"name": "a", "url": "http://a/", "secret": SECRET}] * 2}, "/webhooks/1/name: 'a' is listed"),
    ({"webhooks": [{"name": "a", "url": "http://a/", "secret_file": "/nowhere"}]}, "/webhooks/0/secret_file"),
    ({"webhook_networks": ["10.0.0.0/33"]}, "/webhook_networks/0: must be an address or a network")])
def test_a_configuration_that_is_refused(start_service, settings, says):
    with pytest.raises(AssertionError) as refused:
        start_service(config=settings)
    assert says in str(refused.value)


def test_a_service_that_sends_nothing(start_service, receiver):
    target = receiver()
    listed = [{"name": "on-call", "url": target.url, "secret": SECRET}]
    service = start_service(config={"webhooks": listed})
    [hook] = service.get("/v1/webhooks")["items"]
    service.stop()
    service.options.append("--no-webhooks")
    service.start()
    job = service.post_job(**JOB)
    service.finish_job(job)
    service.stop()
    assert target.lines() == []
    service.options.remove("--no-webhooks")
    service.start()
    wait_for(service, hook["id"], lambda w: w["delivered"] >= 1, "what happened meanwhile")
    assert f"job-{job}-finished" in {line["id"] for line in target.lines()}


def test_tls_by_an_authority_of_the_site(start_service, receiver, tmp_path):
    certificate = tmp_path / "site.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                           "-nodes", "-keyout", "-", "-days", "2", "-subj", "/CN=site",
                           "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    certificate.write_text(made.stdout)
    target = receiver(certificate=certificate)
    service = start_service(config={"webhook_ca": str(certificate)})
    hook = add(service, target.url)
    act(service, hook, "test")
    wait_for(service, hook, lambda w: w["delivered"] == 1, "an event over TLS")
    other = add(service, target.url.replace("127.0.0.1", "localhost"), name="another name")
    act(service, other, "test")
    wait_for(service, other, lambda w: w["failures"] >= 1, "a refusal")
    assert hook_of(service, other)["last_failure"].startswith("TLS: ")
    assert len(target.lines()) == 1


@pytest.mark.long
def test_damage_is_told(start_service, receiver):
    target = receiver()
    service = start_service()
    service.finish_job(service.post_job(**JOB))
    hook = add(service, target.url, types=["database.damaged"], retry_ms=10)
    service.stop()
    with sqlite3.connect(service.data / "reprod.db") as db:
        db.execute("DELETE FROM host_facts")
    service.start(ready=False)
    wait_for(service, hook, lambda w: w["delivered"] == 1, "the damage")
    event = json.loads(target.lines()[0]["body"])
    assert event["type"] == "dev.reprod.database.damaged" and "host_facts" in event["data"]["cause"]


@pytest.mark.long
def test_a_host_that_is_lost_and_comes_back(start_service, receiver, tmp_path):
    target, gate = receiver(), tmp_path / "gate"
    gate.touch()
    hosts = [{"name": "far", "launch": ["sh", "-c", f'[ -e {gate} ] || exit 1; exec "$0" agent --stack cpu="$1"',
                                        str(BUILD / "reprod"), str(SELFTEST_WORKER)]}]
    service = start_service(worker=None, config={"hosts": hosts})
    hook = add(service, target.url, types=["host.lost", "host.back"])
    time.sleep(3.5)  # the service looks once a second: what it never heard has a minute
    gate.unlink()
    children = subprocess.run(["pgrep", "-P", str(service.process.pid)], capture_output=True, text=True)
    for child in children.stdout.split():
        subprocess.run(["kill", "-9", child])
    wait_for(service, hook, lambda w: w["delivered"] == 1, "the loss")
    service.stop()
    gate.touch()
    service.start()
    wait_for(service, hook, lambda w: w["delivered"] == 2, "its return, after a restart")
    lost, back = [json.loads(line["body"]) for line in target.lines()]
    assert lost["type"] == "dev.reprod.host.lost" and lost["data"]["cause"]
    assert back["type"] == "dev.reprod.host.back" and back["subject"] == "hosts/far"
