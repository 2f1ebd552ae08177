"""Calls that fail, and kills at chosen calls (tests/faults/): the rare places by name, and a sample of
all of them, which `make faults` and `make soak` try."""
import errno
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import kills  # noqa: E402
import sweep  # noqa: E402
from plan import Faults  # noqa: E402
from service import BUILD, LIMIT, SELFTEST_WORKER, Service  # noqa: E402
from world import World  # noqa: E402


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path / "world")
    yield made
    made.kill()


def struck(world, role, call, first, times, error):
    end = sweep.live(world, world.faults.plan(role, call, first, times, getattr(errno, error)))
    assert world.faults.struck, world.faults.counts()
    world.struck_outside = 100
    said = world.service.log.read_text()
    world.check()
    return end, said


def test_nothing_is_struck(world):
    assert sweep.live(world, world.faults.plan()) == "went on"
    assert world.faults.struck == 0 and world.faults.counts()["serve"]["write"] > 100
    world.check()


@pytest.mark.parametrize("call, first, words", [
    ("pipe", 1, "aborted: a library cannot go on"), ("event", 1, ""), ("thread", 1, "cannot start a thread"),
    ("socket", 1, ""), ("malloc", 1000, "out of memory"),
])
def test_a_start_without_resources(world, call, first, words):
    end, said = struck(world, "serve", call, first, 1, "ENOMEM" if call == "malloc" else "EMFILE")
    assert end != "went on" and "reprod: " in said and words in said, (end, said)
    assert end != "exit 2"  # nothing is wrong with the command line


@pytest.mark.parametrize("first, times", [(1, 1), (2, 1), (1, 3)])
def test_a_worker_that_cannot_be_started_at_first(world, first, times):
    """It is asked again what it is, rather than not used until somebody restarts its agent."""
    assert struck(world, "agent", "spawn", first, times, "EAGAIN")[0] == "went on"


def test_memory_is_missing_for_a_line_of_a_worker(world):
    """Which is not a line that is wrong: the agent ends, and is started again."""
    end, said = struck(world, "agent", "malloc", 9000, 1, "ENOMEM")
    assert end == "went on" and "not usable" not in said and "out of memory" in said


def test_a_look_at_the_files_that_fails(tmp_path):
    """Before a commit or after it: what is stored is not stored again.  Six in a row are both."""
    for first in range(60, 66):
        world = World(tmp_path / str(first))
        assert struck(world, "serve", "stat", first, 1, "EIO")[0] == "went on"


def test_a_kill_in_the_middle_of_a_commit(world):
    """By its place: after a half of a page of the log was written."""
    world.lives = 0
    life = kills.Life(world, None, "start", world.faults.plan("serve", "write", 200, 1, "torn"))
    assert life.live() in ("start", "job")
    [(role, call, number, path, frames)] = world.faults.strikes()
    assert (role, call, number) == ("serve", "write", 200) and path.startswith("reprod.db") and frames
    world.check()


def content(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        return db.execute("SELECT group_concat(id) FROM (SELECT id FROM job ORDER BY id)").fetchone()[0]


def restore_killed(base, folder, call, first):
    """A restore whose FIRST CALL is the last thing before it is killed: whether one was; what the next start
    makes of what it left is the one database or the other, whole."""
    shutil.copytree(base, folder / "data")
    path = folder / "data" / "reprod.db"
    faults = Faults(folder)
    env = {**os.environ, **faults.plan("maintenance", call, first, 1, "before")}
    done = subprocess.run([BUILD / "reprod", "restore", "--data", path.parent, folder / "data" / "copy"], env=env,
                          capture_output=True, text=True, timeout=LIMIT)
    killed = done.returncode == -signal.SIGKILL
    assert killed == bool(faults.struck) and (killed or done.returncode == 0), done
    service = Service(folder, options=["--no-survey"], config={"hosts": [{"name": "n", "launch": ["/bin/false"]}]})
    service.start(ready=False)
    restored = bool(list(folder.glob("data/reprod.db.replaced-*Z")))
    assert service.stop() == 0
    assert "acknowledged are missing" not in service.log.read_text()
    old = (list(folder.glob("data/reprod.db.replaced-*Z")) or [path])[0]
    assert content(old) == content(base / "reprod.db")
    assert content(path) == content(base / "copy" if restored else base / "reprod.db")
    left = {item.name for item in path.parent.iterdir() if "restor" in item.name}
    assert left == set(), left
    return killed


def restores_killed(tmp_path, calls):
    service = Service(tmp_path / "base", worker=SELFTEST_WORKER, options=["--no-survey"],
                      config={"backup_every_hours": 0})
    service.start()
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=1))
    assert subprocess.run([BUILD / "reprod", "backup", "--data", service.data, service.data / "copy"],
                          timeout=LIMIT).returncode == 0
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=1))
    service.kill()  # its log is left, and what it has is no older than what is acknowledged
    for call in calls:
        first = 1
        while restore_killed(service.data, tmp_path / f"{call}{first}", call, first):
            first += 1
        assert first > 3, call


def test_a_restore_that_is_killed(tmp_path):
    restores_killed(tmp_path, ["rename"])


@pytest.mark.long
def test_a_restore_that_is_killed_anywhere(tmp_path):
    restores_killed(tmp_path, ["unlink", "fsync", "open"])


def test_what_the_checks_are_for(world):
    """They notice a job that was acknowledged and is not there, and a finished run that is another."""
    assert sweep.live(world, world.faults.plan()) == "went on"
    world.keys["another"] = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    with pytest.raises(sweep.Failed, match="jobs stored and acknowledged differ"):
        world.check()
    world.kill()
    del world.keys["another"]
    world.finished[sorted(world.finished)[0]]["digest"] = "0" * 32
    with pytest.raises(sweep.Failed, match="a finished run changed"):
        world.check()


@pytest.mark.long
def test_kills_at_places(tmp_path):
    result = kills.campaign(150, "1", 2, [tmp_path])
    assert result["kills"] >= 150 and result["by_place"] > 50 and not result["failures"], result


@pytest.mark.first
@pytest.mark.long
def test_a_sample_of_faults(tmp_path):
    result = sweep.sweep(1, "1", 2, tmp_path)
    assert result["faults"] > 50 and not result["failures"], result["failures"]
