"""/readyz, the metrics and the log say what is wrong, nothing is acknowledged that would be lost,
and the service recovers by itself."""
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from service import BUILD, SELFTEST_WORKER, Service

JOB = {"workloads": ["selftest_pass"], "variants": ["ordered"], "runs": 1, "iterations": 1}


def conditions(service):
    """By name, from the metrics."""
    lines = [line for line in service.get("/metrics").splitlines() if line.startswith("reprod_condition{")]
    return {line.split('"')[1]: int(line.split()[-1]) for line in lines}


def becomes(service, status, *words):
    def is_so():
        found, headers, body = service.request("GET", "/readyz")
        text = body.get("detail", "")
        return found == status and all(word in text for word in words) and \
            (status == 200 or headers["Retry-After"] == "1")
    service.wait(is_so, f"/readyz {status} {words}")


def wrong(service, name):
    """Said in the metrics and, once, in the log."""
    found = conditions(service)
    assert found[name] == 1 and "reprod_ready 0" in service.get("/metrics")
    lines = [line for line in service.log.read_text().splitlines() if f"health: not ready: {name}: " in line]
    assert len(lines) == len(set(line.split(" ", 1)[1] for line in lines)) > 0, lines


def well(service, name):
    becomes(service, 200)
    service.wait(lambda: f"health: {name}: well again" in service.log.read_text(), "the log")
    assert not any(conditions(service).values())


def refused(service, *words):
    status, headers, body = service.request("POST", "/v1/jobs", JOB)
    assert (status, body["type"], headers["Retry-After"]) == (503, "/problems/storage", "1")
    assert all(word in body["detail"] for word in words), body


def finished(service):
    job = service.post_job(**JOB)
    assert service.finish_job(job)["progress"]["runs_done"] == 1
    return job


def test_nothing_is_wrong(start_service):
    service = start_service()
    assert service.get("/readyz")["conditions"] == []
    assert conditions(service) == dict.fromkeys(["storage", "database", "loop", "devices", "stopping", "hosts"], 0)
    assert "reprod_ready 1" in service.get("/metrics")


@pytest.mark.parametrize("name, word", [("", "removed"), ("reprod.db", "removed"), ("reprod.db-wal", "removed"),
                                        ("reprod.db-shm", "removed"), ("reprod.db", "replaced")])
def test_files_that_go_away(start_service, name, word):
    service = start_service()
    before = finished(service)
    path = service.data / name if name else service.data
    away = service.folder / "away"
    os.rename(path, away)
    if word == "replaced":
        shutil.copy(away, path)
    refused(service, "not stored: ", f"{path.name}", f"was {word} ", "restart reprod")
    becomes(service, 503, "storage: ", f"was {word} ")
    wrong(service, "storage")
    if word == "replaced":
        path.unlink()
    os.rename(away, path)
    well(service, "storage")
    finished(service)
    assert service.get(f"/v1/jobs/{before}")["state"] == "finished"
    assert service.stop() == 0
    assert service.fsck()[0] == 0


def test_a_disk_that_takes_nothing(start_service):
    """As a full one does: files may not grow.  The run that ends meanwhile is kept."""
    service = start_service()
    job = service.post_job(workloads=["selftest_slow_reference"], variants=["ordered"], seeds=["99"], runs=1,
                           iterations=1)
    service.wait(lambda: service.get(f"/v1/jobs/{job}")["state"] == "running", "running")
    limits = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    refused(service, "not stored: ")
    becomes(service, 503, "storage: ")
    assert conditions(service)["storage"] == 1
    time.sleep(3)  # its check takes as long: the result comes now
    assert service.get(f"/v1/jobs/{job}")["state"] == "running"
    resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limits)
    well(service, "storage")
    assert service.finish_job(job)["progress"]["runs_done"] == 1
    [run] = service.items(f"/v1/runs?job={job}")
    assert (run["outcome"], run["check"]["state"]) == ("completed", "passed")


class OnSmallDisk(Service):
    """Its data folder is a file system of 64 MiB, which only it and who looks through it see."""

    def command(self):
        self.data.mkdir(mode=0o700, exist_ok=True)
        mount = 'mount -t tmpfs -o size=64m,mode=700 none "$0" && exec "$@"'
        return ["unshare", "-rm", "/bin/sh", "-c", mount, str(self.data), *super().command()]

    @property
    def seen(self):
        return f"/proc/{self.process.pid}/root{self.data}"


@pytest.mark.skipif(subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], check=False,
                                   capture_output=True).returncode != 0, reason="no file system can be mounted here")
def test_a_disk_that_is_full(tmp_path):
    """To its last byte, while a run computes: its result is kept until there is room."""
    service = OnSmallDisk(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    try:
        before = finished(service)
        job = service.post_job(workloads=["selftest_slow_reference"], variants=["ordered"], seeds=["99"], runs=1,
                               iterations=1)
        service.wait(lambda: service.get(f"/v1/jobs/{job}")["state"] == "running", "running")
        with contextlib.suppress(OSError), open(f"{service.seen}/filler", "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        becomes(service, 503, "storage: ", "is full")
        wrong(service, "storage")
        refused(service, "full")
        assert service.get(f"/v1/jobs/{before}")["state"] == "finished"
        os.unlink(f"{service.seen}/filler")
        well(service, "storage")
        assert service.finish_job(job)["progress"]["runs_done"] == 1
        finished(service)
    finally:
        assert service.stop() == 0, service.log.read_text()


def in_database(service, sql):
    """Nobody serves it meanwhile."""
    with contextlib.closing(sqlite3.connect(service.data / "reprod.db")) as database, database:
        return database.execute(sql).fetchall()


def maintain(service, command, *arguments):
    done = subprocess.run([BUILD / "reprod", command, "--data", service.data, *arguments], capture_output=True,
                          text=True)
    return done.returncode, done.stdout + done.stderr


def fact(service):
    """What the matrix says of the job's case."""
    [found] = [each for each in service.get("/v1/matrix")["variants"]
               if (each["workload"], each["variant"]) == ("selftest_pass", "ordered")]
    return {key: found[key] for key in ("verdict", "reason", "runs", "iterations", "distinct_digests")}


def test_a_cell_that_somebody_edited(start_service):
    """It is built anew from its runs, before anybody asks for fsck."""
    service = start_service()
    finished(service)
    cell = fact(service)
    assert service.stop() == 0
    in_database(service, "UPDATE cell SET verdict = 'reproducible', completed = 7, iterations = 7, distinct_digests = 1,"
                         " devices = 1, reason = 'because I say so'")
    service.start()
    service.wait(lambda: fact(service) == cell, "what the runs give")
    service.wait(lambda: "was not what its runs give; it was built anew" in service.log.read_text(), "the log")
    assert service.stop() == 0
    assert service.fsck()[0] == 0


def test_a_damaged_database(start_service):
    """It is told, nothing is accepted, no backup of it is called one, and a backup can be restored."""
    service = start_service()
    job = finished(service)
    copy = service.folder / "copy.db"
    assert maintain(service, "backup", copy)[0] == 0
    code, text = maintain(service, "restore", copy)
    assert code == 8 and "another reprod serves" in text
    assert service.stop() == 0
    [[page]] = in_database(service, "SELECT rootpage FROM sqlite_schema WHERE name = 'run_telemetry'")
    with open(service.data / "reprod.db", "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    service.start(ready=False)
    becomes(service, 503, "database: the database is damaged", "reprod restore")
    assert conditions(service)["database"] == 1
    assert "the database is damaged" in service.log.read_text()
    status, _, problem = service.request("POST", "/v1/jobs", JOB)
    assert status == 503 and "nothing is accepted" in problem["detail"]
    assert service.get(f"/v1/jobs/{job}")["state"] == "finished"
    code, text = maintain(service, "backup", service.folder / "another.db")
    assert code == 6 and "nothing was written" in text and not (service.folder / "another.db").exists()
    assert service.stop() == 0
    code, text = maintain(service, "restore", copy)
    assert code == 0 and "what was there is" in text, text
    service.start()
    assert service.get(f"/v1/jobs/{job}")["state"] == "finished"
    finished(service)


def processes():
    """(process, its parent, its command line) of all."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            yield int(folder.name), parent, (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue


def the_agent(service, found):
    """The one that FOUND gives; what an agent or the service forked and has not executed yet looks like itself."""
    service.wait(lambda: len(found(service)) == 1, "a single agent")
    return found(service)[0]


def agent_of(service):
    return the_agent(service, lambda service: [process for process, parent, words in processes()
                                               if parent == service.process.pid and b"\0agent\0" in words])


def test_an_agent_that_is_stopped(start_service):
    service = start_service()
    agent = agent_of(service)
    os.kill(agent, signal.SIGSTOP)
    becomes(service, 503, "devices: no device is online", "has not answered since")
    assert conditions(service)["hosts"] == 1
    [host] = service.get("/v1/hosts")["items"]
    assert host["cause"].startswith("the agent has not answered since ")
    os.kill(agent, signal.SIGCONT)
    well(service, "devices")
    assert service.get("/v1/hosts")["items"][0]["cause"] is None
    finished(service)
    assert agent_of(service) == agent


def agents_of(service):
    """Also those that a launch command put into a session of their own."""
    found = {process: parent for process, parent, words in processes()
             if words.startswith(f"{BUILD}/reprod\0agent\0".encode()) and str(service.folder).encode() in words}
    return [process for process, parent in found.items() if parent not in found]


@pytest.mark.long
@pytest.mark.parametrize("launch", [None, "exec {}", "exec 3<&0; setsid {} <&3 3<&- & wait"])
@pytest.mark.parametrize("worker", [False, True])
def test_an_agent_that_stays_silent_is_replaced(start_service, tmp_path, launch, worker):
    """Its run is lost, and its device is free again: for a local one; for one behind a command; and for
    one behind a command that leaves it, and what it holds open, alone.  Its worker may be stopped, too."""
    settings = tmp_path / "service0" / "agent.json"
    agent = f"{BUILD / 'reprod'} agent --config {settings}"
    hosts = {"hosts": [{"name": "far", "launch": ["/bin/sh", "-c", launch.format(agent)]}]} if launch else None
    settings.parent.mkdir()
    settings.write_text(json.dumps({"stacks": [{"name": "cpu", "worker": str(SELFTEST_WORKER)}]}))
    service = start_service(config=hosts, worker=None if launch else SELFTEST_WORKER)
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1, iterations=1)

    def first():
        return service.items(f"/v1/runs?job={job}")[-1]
    service.wait(lambda: service.items(f"/v1/runs?job={job}") and first()["process"]["pid"], "the run")
    agent = the_agent(service, agents_of) if launch else agent_of(service)
    stopped = [agent] + ([first()["process"]["pid"]] if worker else [])
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        becomes(service, 503, "devices: no device is online", "has not answered since")
        service.wait(lambda: first()["outcome"] == "lost", "lost")
        assert "it does not answer" in first()["cause"]
        assert service.request("DELETE", f"/v1/jobs/{job}")[0] in (200, 202)
        well(service, "devices")
        finished(service)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_an_agent_that_floods_its_standard_error(start_service, tmp_path):
    """The log stays short and says what it leaves out, the host is said to be noisy, and runs go on."""
    flood = f"yes {60 * 'flood'} >&2 & exec {BUILD / 'reprod'} agent --stack cpu={SELFTEST_WORKER}"
    service = start_service(worker=None, config={"hosts": [{"name": "noisy", "launch": ["/bin/sh", "-c", flood]}]})
    said = "noisy: more on its standard error than is logged, since "
    service.wait(lambda: said in str(service.get("/readyz")["conditions"]), "the condition")
    assert said in service.log.read_text() and conditions(service)["hosts"] == 1
    for _ in range(3):
        finished(service)
    service.wait(lambda: "more lines of its standard error" in service.log.read_text(), "what was left out")
    lines = service.log.read_text().splitlines()
    left = [line for line in lines if "more lines of its standard error" in line]
    copied = [line for line in lines if "floodflood" in line]
    assert int(left[0].split("noisy: ")[1].split()[0]) > 10 * len(copied)
    assert len(copied) <= 200 * (len(left) + 2)


@pytest.mark.long
def test_a_loop_that_stood_still(start_service):
    service = start_service()
    service.process.send_signal(signal.SIGSTOP)
    time.sleep(4)
    service.process.send_signal(signal.SIGCONT)
    becomes(service, 503, "loop: nothing was served for ")
    wrong(service, "loop")
    well(service, "loop")


def test_one_host_of_two(start_service):
    """Jobs can be run: it is ready, and says who is missing."""
    local = ["/bin/sh", "-c", "exit 3"]
    service = start_service(worker=None, config={"hosts": [
        {"name": "here", "launch": [str(BUILD / "reprod"), "agent", "--stack", f"cpu={SELFTEST_WORKER}"]},
        {"name": "gone", "launch": local}]})
    [condition] = service.get("/readyz")["conditions"]
    assert condition["name"] == "hosts"
    assert condition["cause"].startswith("1 of 2 hosts: gone: the agent went away: exit status 3")
    assert conditions(service)["hosts"] == 1 and "reprod_ready 1" in service.get("/metrics")


def test_a_hello_that_cannot_be_stored(tmp_path):
    """It is stored when it can be: the devices are used then, without a new start."""
    agent = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exec {BUILD}/reprod agent --stack cpu={SELFTEST_WORKER}"
    service = Service(tmp_path, options=["--no-survey"],
                      config={"hosts": [{"name": "here", "launch": ["/bin/sh", "-c", agent]}]}).start(ready=False)
    try:
        limits = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        (tmp_path / "go").touch()
        becomes(service, 503, "storage: ", "devices: they are not on record yet")
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, limits)
        well(service, "devices")
        finished(service)
    finally:
        assert service.stop() == 0
