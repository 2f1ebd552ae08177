"""A disk that takes nothing: reading goes on, nothing is acknowledged, what has ended waits, and all of
it is stored once the disk takes it again."""
import errno
import os
import pathlib
import re
import subprocess

import pytest

from service import ROOT, SELFTEST_WORKER, Service
from test_health import JOB, becomes, conditions, finished, refused, well

ERRORS = {"full": errno.ENOSPC, "broken": errno.EIO, "read-only": errno.EROFS}


def constant(path, name):
    [value] = re.findall(rf"\b{name} = (\d+)", (ROOT / path).read_text())
    return int(value)


class Disk:
    """That of a data folder: what is written there fails while it is told to."""

    def __init__(self, data, shim):
        self.control = pathlib.Path(f"{data}.error")
        self.looks = pathlib.Path(f"{data}.looks")
        self.env = {"LD_PRELOAD": str(shim), "FAILING_DISK": str(self.control),
                    "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def fail(self, error):
        self.control.write_text(str(error))

    def work(self):
        self.control.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    path = tmp_path_factory.mktemp("shim") / "failing_disk.so"
    source = pathlib.Path(__file__).with_name("failing_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, source], check=True)
    return path


@pytest.fixture
def served(start_service, shim, tmp_path):
    disk = Disk(tmp_path / "service0" / "data", shim)
    yield start_service(env=disk.env), disk
    disk.work()


def info(service, name):
    """The words of a condition, in the metrics."""
    [line] = [line for line in service.get("/metrics").splitlines()
              if line.startswith(f'reprod_condition_info{{name="{name}",')]
    return line.split('cause="')[1].rpartition('"')[0].replace('\\"', '"').replace("\\\\", "\\")


@pytest.mark.parametrize("kind", ERRORS)
def test_a_disk_that_fails(served, kind):
    service, disk = served
    before = finished(service)
    disk.fail(ERRORS[kind])
    becomes(service, 503, "storage: ")  # nobody wrote but the service, which looked
    words = service.request("GET", "/readyz")[2]["detail"].removeprefix("storage: ")
    assert info(service, "storage") == words and conditions(service)["storage"] == 1
    assert f"health: not ready: storage: {words}" in service.log.read_text()
    refused(service, "not stored: ")
    for path in ("/v1/matrix", "/v1/runs", "/v1/jobs", f"/v1/jobs/{before}", "/v1/devices", "/metrics", "/"):
        assert service.request("GET", path)[0] == 200
    disk.work()
    well(service, "storage")
    finished(service)
    assert service.stop() == 0 and service.fsck()[0] == 0


def all_places(service):
    """What /readyz, the metrics and the text for a terminal say, with their statuses."""
    for path in ("/readyz", "/metrics", "/"):
        status, _, body = service.request("GET", path, headers={"Accept": "text/plain"})
        yield path, status, body if isinstance(body, str) else body.get("detail", "")


@pytest.mark.long
def test_a_disk_that_cannot_be_read(served):
    """Whoever asks is told, whether anybody reads or not; then it is well by itself."""
    service, disk = served
    finished(service)
    assert service.stop() == 0
    service.start()  # what writes has read little
    unread = disk.control.with_suffix(".unread")
    unread.write_text("")
    becomes(service, 503, "storage: ")
    status, headers, body = service.request("POST", "/v1/jobs", JOB)
    assert status == 503 and headers["Retry-After"] and body["type"] == "/problems/storage", body
    status, _, body = service.request("GET", "/v1/runs")
    assert status == 503 and body["type"] == "/problems/storage", body
    for path, status, words in all_places(service):
        assert status == (200 if path == "/metrics" else 503), (path, status, words)
        assert "cannot be read" in words or "could not be read" in words, (path, words)
    assert conditions(service)["storage"] == 1
    unread.unlink()
    becomes(service, 200)
    finished(service)
    assert service.stop() == 0 and service.fsck()[0] == 0


@pytest.mark.long
def test_a_look_that_fails(served):
    """What was not looked at is not known to be right; it is looked at again."""
    service, disk = served
    finished(service)
    assert service.stop() == 0
    unlooked = disk.control.with_suffix(".unlooked")
    unlooked.write_text("")
    service.start(ready=False)
    becomes(service, 503, "database: ")
    for path, status, words in all_places(service):
        assert status == (503 if path == "/readyz" else 200), (path, status, words)
    assert conditions(service)["database"] == 1 and "is not known" in info(service, "database")
    assert service.request("POST", "/v1/jobs", JOB)[0] == 503
    assert "fsck: " in service.log.read_text()
    unlooked.unlink()
    becomes(service, 200)
    finished(service)
    assert service.stop() == 0 and service.fsck()[0] == 0


def test_a_database_of_zeros(served):
    """No page is left: the places that tell it need none."""
    service, _ = served
    finished(service)
    assert service.stop() == 0
    service.start()
    file = service.data / "reprod.db"
    was = file.read_bytes()
    with open(file, "r+b") as damaged:
        damaged.write(bytes(len(was)))
    becomes(service, 503, "")
    service.wait(lambda: all("the database" in words for _, _, words in all_places(service)), "words everywhere")
    assert service.request("GET", "/metrics")[0] == 200
    assert service.request("GET", "/v1/runs")[0] == 503 and service.request("POST", "/v1/jobs", JOB)[0] == 503
    with open(file, "r+b") as damaged:
        damaged.write(was)
    assert service.stop() == 0
    assert service.start().fsck()[0] in (0, 8)


def test_a_disk_that_fails_while_nobody_asks(served):
    """The service tells its log within two seconds: in its looks, since a machine may be slow, but never
    looks more often.  It begins right after a commit, when the next one is farthest."""
    service, disk = served
    finished(service)
    service.wait(lambda: "info fsck: " in service.log.read_text(), "its look at the database, which writes")
    disk.looks.touch()
    log = service.data / "reprod.db-wal"
    service.wait(lambda at=log.stat().st_mtime_ns: log.stat().st_mtime_ns != at, "a commit")
    disk.fail(ERRORS["broken"])
    service.wait(lambda: "health: not ready: storage: " in service.log.read_text(), "words in the log")
    looks = disk.looks.read_text().index("f")
    assert looks * constant("daemon/service.h", "SERVICE_WATCH_MS") <= 2000, looks
    disk.work()
    service.wait(lambda: "health: storage: well again" in service.log.read_text(), "words in the log")


@pytest.mark.long
def test_a_disk_that_fails_again_and_again(served):
    """Each run is stored once, and none is lost."""
    service, disk = served
    job = service.post_job(workloads=["selftest_pass"], variants=["ordered", "unordered"], runs=20, iterations=1)

    def done():
        return service.get(f"/v1/jobs/{job}")["progress"]["runs_done"]
    for i in range(6):
        service.wait(lambda at=done(): done() > at or done() == 40, "another run")
        disk.fail(list(ERRORS.values())[i % 3])
        becomes(service, 503, "storage: ")
        disk.work()
        becomes(service, 200)
    assert service.finish_job(job)["progress"]["runs_failed"] == 0
    runs = service.items(f"/v1/runs?job={job}")
    assert [run["outcome"] for run in runs] == 40 * ["completed"] and len({run["id"] for run in runs}) == 40
    assert service.stop() == 0 and service.fsck()[0] == 0


@pytest.mark.parametrize("kind", ERRORS)
def test_a_start_on_a_disk_that_fails(shim, tmp_path, kind):
    """It names the database and ends; or it waits, says so, and goes on."""
    disk = Disk(tmp_path / "data", shim)
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"], env=disk.env)
    disk.fail(ERRORS[kind])
    with pytest.raises(AssertionError, match="data/reprod.db"):
        service.start(ready=False)
    assert service.refused == 4
    disk.work()
    service.start()
    finished(service)
    assert service.stop() == 0
    disk.fail(ERRORS[kind])
    try:
        service.start(ready=False)
    except AssertionError:
        assert service.refused == 4 and "data/reprod.db" in service.log.read_text().splitlines()[-1]
        disk.work()
        service.start(ready=False)
    else:
        becomes(service, 503, "storage: ")
        disk.work()
    becomes(service, 200)
    finished(service)
    assert service.stop() == 0 and service.fsck()[0] == 0


def mounted(folder, size):
    folder.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder], check=False,
                          capture_output=True)
    return done.returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
def test_a_file_system_that_is_full(start_service, tmp_path):
    """A real one, with less room than it needs."""
    data = tmp_path / "service0" / "data"
    if not mounted(data, "8m"):
        pytest.skip("no file system may be mounted here")
    try:
        service = start_service()
        job = service.post_job(workloads=["selftest_slow_reference"], variants=["ordered"], seeds=["99"], runs=1,
                               iterations=1)
        service.wait(lambda: service.get(f"/v1/jobs/{job}")["state"] == "running", "running")
        filler = os.open(data / "filler", os.O_CREAT | os.O_WRONLY)
        with pytest.raises(OSError, match="No space"):
            while os.write(filler, bytes(4096)):
                pass
        os.close(filler)
        becomes(service, 503, f"storage: the file system of {data}/reprod.db is full")
        assert service.request("POST", "/v1/jobs", JOB)[0] == 503 and service.get("/v1/matrix")
        service.wait(lambda: "kept, trying again" in service.log.read_text(), "the end of the run")
        (data / "filler").unlink()
        well(service, "storage")
        assert service.finish_job(job)["progress"]["runs_done"] == 1
        assert service.stop() == 0 and service.fsck()[0] == 0
        with open(data / "filler", "wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(bytes(4096))
        with pytest.raises(AssertionError):
            service.start(ready=False)
        assert service.refused == 4
        assert f"the file system of {data}/reprod.db is full" in service.log.read_text().splitlines()[-1]
        (data / "filler").unlink()
        service.start()
    finally:
        subprocess.run(["umount", "-l", data], check=True)
