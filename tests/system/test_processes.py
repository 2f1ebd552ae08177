"""Workloads that are more than one process: what becomes of a run when one of them fails, and
of the others when the worker itself ends.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import pytest

pytestmark = pytest.mark.flavour

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
WORKER = BUILD / "reprod-worker"
LIMIT = 120  # seconds after which a test gives up


def stat_of(pid):
    """The state and the parent of a process, as texts."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[:2]


def candidates(pid):
    """Names of processes among which the children of PID are: those that the kernel lists, which
    is quick enough to find one that ends soon, or all."""
    lists = list(pathlib.Path(f"/proc/{pid}/task").glob("*/children"))
    if not lists:
        return [folder.name for folder in pathlib.Path("/proc").glob("[0-9]*")]
    names = []
    for each in lists:
        with contextlib.suppress(OSError):  # the thread has ended
            names += each.read_text().split()
    return names


def children_of(pid):
    found = []
    for name in candidates(pid):
        with contextlib.suppress(OSError):  # it has ended
            state, parent = stat_of(name)
            if int(parent) == pid and state != "Z":
                found.append(int(name))
    return sorted(found)


def wait_until_gone(pids):
    deadline = time.monotonic() + LIMIT
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, f"{pids} outlive their worker"
        time.sleep(0.01)


class Run:
    """A run in progress; iterating reads its events as they come."""

    def __init__(self, workload, variant, iterations, size="small", env=None, binary=WORKER,
                 options=(), pipe_size=None):
        read_end, write_end = os.pipe()
        if pipe_size:
            fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, pipe_size)
        self.process = subprocess.Popen(
            [binary, "--run", "--workload", workload, "--variant", variant, "--size", size,
             "--iterations", str(iterations), *options],
            pass_fds=[write_end], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "REPROD_RESULT_FD": str(write_end), **(env or {})})
        os.close(write_end)
        self.lines = os.fdopen(read_end)

    def __iter__(self):
        return map(json.loads, self.lines)

    def until(self, event):
        return next(e for e in self if e["event"] == event)

    def close(self):
        """The exit status and the log."""
        _, log = self.process.communicate(timeout=LIMIT)
        self.lines.close()
        return self.process.returncode, log.decode()


@pytest.fixture
def ranks():
    """A long run of four ranks, past its first iteration, and the processes of the ranks."""
    run = Run("ring_allreduce", "ordered", 1000)
    run.until("iteration")
    pids = children_of(run.process.pid)
    assert len(pids) == 4
    yield run, pids
    run.process.kill()
    run.close()


@pytest.mark.parametrize("number", range(4))
def test_rank_that_dies_ends_the_run(ranks, number):
    run, pids = ranks
    os.kill(pids[number], signal.SIGKILL)
    end = run.until("end")
    assert end["outcome"] == "infra"
    assert re.fullmatch(r"rank [0-3] of 4 was ended by signal 9 \(Killed\)", end["cause"])
    assert run.close() == (0, "")
    wait_until_gone(pids)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_ranks_do_not_outlive_their_worker(ranks, how):
    run, pids = ranks
    os.kill(run.process.pid, how)
    assert run.close()[0] == -how
    wait_until_gone(pids)


def test_ranks_end_with_the_run():
    run = Run("ring_allreduce", "two_ranks", 2)
    run.until("start")
    pids = children_of(run.process.pid)
    assert run.until("end")["outcome"] == "completed"
    assert run.close() == (0, "")
    assert not [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], "not waited for"


def resume(content, path):
    """The exit status, standard output and log of the second process of a run whose
    checkpoint file holds CONTENT."""
    path.write_bytes(content)
    with open(path, "r+b") as file:
        done = subprocess.run(
            [WORKER, "--resume", "--workload", "checkpoint_resume", "--variant", "resumed"],
            stdin=file, capture_output=True, text=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("content,cause", [
    (b"", "infra: the checkpoint is cut off after 0 bytes\n"),
    (b"reprodCP", "infra: the checkpoint is cut off after 8 bytes\n"),
    (bytes(100), "infra: the file is no checkpoint\n"),
], ids=["empty", "begun", "zeros"])
def test_second_process_refuses_what_is_no_checkpoint(content, cause, tmp_path):
    assert resume(content, tmp_path / "checkpoint") == (5, cause, "")
    assert (tmp_path / "checkpoint").read_bytes() == content


def test_checkpoint_that_cannot_be_saved(tmp_path):
    run = Run("checkpoint_resume", "resumed", 2, env={"TMPDIR": str(tmp_path / "nowhere")})
    end = run.until("end")
    assert end["outcome"] == "infra" and end["iterations"] == 0
    assert end["cause"] == (f"cannot create a checkpoint in {tmp_path}/nowhere: "
                            "No such file or directory")
    assert run.close() == (0, "")


def stop(pid):
    """Stops a process; False where it has ended meanwhile."""
    try:
        os.kill(pid, signal.SIGSTOP)
        while (state := stat_of(pid)[0]) != "T":
            if state == "Z":
                return False
        return True
    except OSError:
        return False


@pytest.fixture
def resuming(tmp_path):
    """A run whose second process is stopped, and that process."""
    run = Run("checkpoint_resume", "resumed", 1000, env={"TMPDIR": str(tmp_path)})
    run.until("iteration")
    deadline = time.monotonic() + LIMIT
    while not (stopped := [pid for pid in children_of(run.process.pid) if stop(pid)]):
        assert time.monotonic() < deadline, "no second process"
    yield run, stopped[0]
    run.process.kill()
    resume_if_there(stopped[0])
    run.close()


def resume_if_there(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def test_checkpoint_is_a_file_without_a_name(resuming, tmp_path):
    """So whatever ends the run leaves none behind."""
    _, pid = resuming
    files = [os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    assert any(file.startswith(str(tmp_path)) for file in files)
    assert list(tmp_path.iterdir()) == []


def test_second_process_does_not_outlive_its_worker(resuming):
    run, pid = resuming
    run.process.kill()
    run.process.wait(timeout=LIMIT)
    resume_if_there(pid)
    wait_until_gone([pid])


def test_second_process_that_dies_ends_the_run(resuming):
    run, pid = resuming
    os.kill(pid, signal.SIGKILL)
    end = run.until("end")
    assert end["outcome"] == "infra"
    assert end["cause"] == "the process that resumes was ended by signal 9 (Killed)"
    assert run.close() == (0, "")


def cut_off_checkpoints(pid):
    """Cuts off a checkpoint that process PID has open, if there is one."""
    with contextlib.suppress(OSError):
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if "reprod-checkpoint-" in os.readlink(link) and os.stat(link).st_size > 1000:
                os.truncate(link, 1000)


def test_checkpoint_that_is_cut_off_ends_the_run():
    run = Run("checkpoint_resume", "resumed", 1000)
    cutting = threading.Event()

    def cut():
        while not cutting.is_set():
            cut_off_checkpoints(run.process.pid)

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        end = run.until("end")
    finally:
        cutting.set()
        thread.join()
        log = run.close()[1]
    assert end["outcome"] == "infra" and "it is cut off" in end["cause"], end
    assert log == ""
