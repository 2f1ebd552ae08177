"""Several services: one takes the runs of another, once each, and judges them itself; a peer that is down,
lies or babbles is a named state and holds nothing up."""
import copy
import json
import subprocess

import pytest

from service import BUILD, LIMIT, SELFTEST_WORKER, Service

REPROD = str(BUILD / "reprod")
FIRST = "0" * 26
NEVER = 24 * 3600
# Shell: the last page of a service without runs.
EMPTY_PAGE = ("service={service}; page=$(printf '{{\"format\":1,\"reprod\":\"1\",\"service\":\"%s\",\"since\":\"%s\","
              "\"cursor\":\"%s\",\"more\":false,\"waits_for\":null,\"folded\":0,\"of_peers\":0,\"items\":[]}}'"
              " $service $1 $1);")


def from_service(port, **more):
    """A peer that is read as often as can be."""
    return {"name": "east", "every_seconds": 1, "launch": [
        REPROD, "export", "--server", f"http://127.0.0.1:{port}", "--since", "{cursor}"], **more}


def from_shell(name, script, **more):
    return {"name": name, "every_seconds": 1, "launch": ["sh", "-c", script, "sh", "{cursor}"], **more}


def peer(service, name="east"):
    return {p["name"]: p for p in service.get("/v1/peers")["items"]}[name]


def runs(service):
    return {run["id"]: run for run in service.items("/v1/runs")}


def measured(service, workloads=("selftest_pass",), **request):
    return service.finish_job(service.post_job(workloads=list(workloads), **{"runs": 3, "iterations": 2, **request}))


def is_whole(service):
    code, output = service.fsck()
    assert code == 0, output


def test_runs_of_a_peer_count_as_if_they_were_measured_here(start_service):
    there = start_service()
    measured(there, ["selftest_pass", "selftest_crash", "selftest_varies_once", "selftest_no_control",
                     "selftest_unsupported", "selftest_wrong"])
    here = start_service(config={"peers": [from_service(there.port)]})
    here.wait(lambda: peer(here)["taken"] == len(runs(there)), "all runs")
    assert peer(here)["state"] in ("waiting", "pulling") and peer(here)["refused"] == 0
    found = runs(here)
    verdicts = set()
    for run, theirs in runs(there).items():
        ours = found[run]
        assert {**theirs, **{k: ours[k] for k in ("device", "stack", "cell", "process", "trace")}} == ours
        if theirs["cell"]:
            cells = [service.get(f"/v1/cells/{each['cell']}") for service, each in ((there, theirs), (here, ours))]
            assert cells[0]["verdict"] == cells[1]["verdict"] and cells[0]["reason"] == cells[1]["reason"]
            verdicts.add(cells[0]["verdict"])
    assert verdicts >= {"reproducible", "varies", "failing", "inconclusive"}
    device = there.get("/v1/devices")["items"][0]["id"]
    one = here.get(f"/v1/runs/{run}")
    assert one["device"] == device.replace("cpu:", "cpu:east/") and one["stack"] == "east:cpu"
    assert one["peer"] == {"name": "east", "service": there.get("/v1/export")["service"], "reprod": "0.1.0"}
    assert there.get(f"/v1/runs/{run}")["peer"] is None
    # It counts beside what is measured here.
    measured(here)
    cell = next(r for r in here.items("/v1/runs?workload=selftest_pass&variant=ordered") if not r["device"].startswith(
        "cpu:east/"))["cell"]
    assert here.get(f"/v1/cells/{cell}")["evidence"]["devices"] == 2
    # Nothing of a job that ran elsewhere runs here.
    status, _, refused = here.request("POST", f"/v1/jobs/{one['job']}/rerun")
    assert status == 422 and "peer" in json.dumps(refused)
    for service in (there, here):
        assert service.stop() == 0
        is_whole(service)


@pytest.mark.long
def test_each_run_is_taken_once_however_often_the_service_is_killed(tmp_path, start_service):
    there = start_service()
    measured(there, runs=30)
    slow = (f"{REPROD} export --limit 4 --server http://127.0.0.1:{there.port} --since $1 |"
            " while read -r page; do printf '%s\\n' \"$page\"; sleep 0.02; done")
    here = Service(tmp_path / "here", worker=SELFTEST_WORKER, options=["--no-survey"],
                   config={"peers": [from_shell("east", slow)]})
    for taken in (1, 20, 40):
        here.start(ready=False)
        here.wait(lambda: any(p["taken"] >= taken for p in here.get("/v1/peers")["items"]), "some runs")
        here.kill()
    measured(there, runs=2)
    here.start()
    here.wait(lambda: peer(here)["taken"] >= len(runs(there)), "all runs")
    assert peer(here)["taken"] == len(runs(there)) and peer(here)["known"] == 0
    assert set(runs(here)) == set(runs(there))
    for service in (here, there):
        assert service.stop() == 0
        is_whole(service)


@pytest.mark.long
def test_two_services_that_read_each_other(tmp_path, start_service):
    ports = tmp_path / "ports"
    ports.mkdir()
    services = {name: start_service(config={"peers": [from_shell(
        other, f"exec {REPROD} export --server http://127.0.0.1:$(cat {ports}/{other}) --since $1")]})
        for name, other in (("east", "west"), ("west", "east"))}
    for name, service in services.items():
        measured(service)
        (ports / name).write_text(str(service.port))
    east, west = services["east"], services["west"]
    east.wait(lambda: peer(east, "west")["taken"] == 6 and peer(west, "east")["taken"] == 6, "both")
    measured(east)
    west.wait(lambda: peer(west, "east")["taken"] == 12, "the new ones")
    east.wait(lambda: peer(east, "west")["of_peers"] >= 6, "a look at what came back")
    assert peer(east, "west")["taken"] == 6 and set(runs(east)) == set(runs(west)) and len(runs(east)) == 18
    for service in services.values():
        assert service.stop() == 0
        is_whole(service)


def test_what_is_wrong_with_a_peer_has_a_name(start_service):
    there = start_service()
    measured(there)
    export = f"{REPROD} export --server http://127.0.0.1:{there.port} --since $1"
    ahead = json.dumps({"format": 1, "reprod": "1", "service": "0" * 16, "since": FIRST, "cursor": "7" + "Z" * 25,
                        "more": False, "waits_for": None, "folded": 0, "of_peers": 0, "items": []})
    drawn = "$(od -An -N8 -tx8 /dev/urandom)"
    wrong = {
        "down": ("echo no route to host >&2; exit 255", "unreachable", "exit status 255: no route to host"),
        "killed": ("kill -9 $$", "unreachable", "killed by SIGKILL"),
        "refused": (f"exec {REPROD} export --server http://127.0.0.1:1 --since $1", "unreachable", "exit status 3"),
        "silent": ("true", "garbage", "printed nothing"),
        "babbling": ("echo hello", "garbage", "not JSON"),
        "binary": ("head -c 3000 /dev/urandom; echo", "garbage", ""),
        "endless": ("head -c 3000000 /dev/zero | tr '\\0' x", "garbage", "more than 1048576 bytes"),
        "cut": (f"{export} | head -c 900", "garbage", "not JSON"),
        "newer": ("echo '{\"format\":99}'", "incompatible", "format 99"),
        "ahead": (f"echo '{ahead}'", "ahead", "still to come"),
        "newlines": ("exec yes ''", "garbage", "not JSON"),
        "unending": (f"{EMPTY_PAGE.format(service='0' * 16)} exec yes \"$page\"", "garbage", "behind its last page"),
        "several": (f"{EMPTY_PAGE.format(service=drawn)} echo \"$page\"", "garbage", "each time another service"),
    }
    peers = [from_shell(name, script) for name, (script, _, _) in wrong.items()]
    peers += [{"name": "absent", "launch": ["/nonexistent", "{cursor}"]}, from_shell("hangs", "sleep 10000")]
    here = start_service(config={"peers": peers})
    wrong.update(absent=("", "unreachable", "/nonexistent"))
    for name, (_, state, words) in wrong.items():
        here.wait(lambda: peer(here, name)["state"] == state, f"{name}: {state}")
        found = peer(here, name)
        assert words in (found["cause"] or "") and found["taken"] == 0, found
    assert peer(here, "hangs")["state"] == "pulling"
    assert measured(here)["progress"]["runs_failed"] == 0  # nothing waits for them
    assert "peer babbling: garbage" in here.log.read_text()
    assert "unreachable" in here.get("/v1/peers.txt")


def test_pages_behind_what_is_still_to_come_are_no_garbage(tmp_path, start_service):
    there = start_service()
    measured(there)
    page = there.get("/v1/export?limit=3")
    page["items"][-1]["finished_ms"] += 5000  # by its clock
    rest = there.get(f"/v1/export?since={page['cursor']}")
    (tmp_path / "pages").write_text(f"{json.dumps(page)}\n{json.dumps(rest)}\n")
    here = start_service(config={"peers": [from_shell("east", f"cat {tmp_path}/pages; sleep 0.1", every_seconds=NEVER)]})
    here.wait(lambda: peer(here)["state"] not in ("new", "pulling"), "the pages")
    assert peer(here)["state"] == "waiting" and peer(here)["taken"] in (2, 6)


def test_a_service_is_no_peer_of_itself(tmp_path, start_service):
    here = start_service(config={"peers": [from_shell(
        "mirror", f"exec {REPROD} export --server http://127.0.0.1:$(cat {tmp_path}/port) --since $1")]})
    measured(here)
    (tmp_path / "port").write_text(str(here.port))
    here.wait(lambda: peer(here, "mirror")["state"] == "same_service", "to be found out")
    assert len(runs(here)) == 6


def test_what_a_peer_concluded_counts_for_nothing(tmp_path, start_service):
    there = start_service()
    measured(there)
    page = there.get("/v1/export")
    lies = copy.deepcopy(page)
    # Without the control, one digest shows nothing, whatever else it says.
    lies["items"] = [{**run, "verdict": "reproducible"} for run in lies["items"] if run["variant"] == "ordered"]
    lies["items"][-1]["elements"] = 0
    (tmp_path / FIRST).write_text(json.dumps(lies))
    (tmp_path / page["cursor"]).write_text(json.dumps({**page, "since": page["cursor"], "items": []}))
    here = start_service(config={"peers": [from_shell("east", f"cat {tmp_path}/$1", every_seconds=NEVER)]})
    here.wait(lambda: peer(here)["pulled_at"], "the page")
    found = peer(here)
    assert (found["taken"], found["refused"]) == (2, 1)
    assert found["refusals"][0]["reason"] == "no_proof" and "0 elements" in found["refusals"][0]["cause"]
    assert found["refusals"][0]["last_run"] == lies["items"][-1]["id"]
    cell = next(iter(runs(here).values()))["cell"]
    assert here.get(f"/v1/cells/{cell}")["verdict"] == "inconclusive"


def test_export_is_a_command(start_service):
    there = start_service()
    measured(there)
    command = [REPROD, "export", "--server", f"http://127.0.0.1:{there.port}"]
    done = subprocess.run([*command, "--limit", "4"], capture_output=True, text=True, timeout=LIMIT)
    pages = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and [len(page["items"]) for page in pages] == [4, 2]
    assert [page["more"] for page in pages] == [True, False] and pages[1]["since"] == pages[0]["cursor"]
    assert {run["id"] for page in pages for run in page["items"]} == set(runs(there))
    wrong = subprocess.run([*command, "--since", "yesterday"], capture_output=True, text=True, timeout=LIMIT)
    assert wrong.returncode == 2 and "since" in wrong.stderr


@pytest.mark.parametrize("peers, words", [
    ([{"name": "east", "launch": ["reprod", "export"]}], "/peers/0/launch: no word has {cursor}"),
    ([{"name": "a/b", "launch": ["{cursor}"]}], "/peers/0/name"),
    ([{"name": "east", "launch": ["{cursor}"], "every": 3}], "every_seconds"),
    ([{"name": "east", "launch": ["{cursor}"]}] * 2, "/peers/1/name: 'east' is listed twice"),
])
def test_peers_that_are_wrong_are_refused(tmp_path, peers, words):
    service = Service(tmp_path, config={"peers": peers})
    done = subprocess.run(service.command(), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and words in done.stderr, done.stderr
