"""How runs end, and how the agent does: with all that they started."""
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time

import pytest

from agent import (BUILD, LIMIT, SHORT_GRACE_MS, Agent, ended_by_deadline, processes, volume,
                   wait_until)

pytestmark = pytest.mark.flavour


# How a run is ended


def test_timeout(run_one):
    assert ended_by_deadline(run_one, "echo here; exec sleep 1000", 5)["log"] == "here\n"


def cancelled(script, body, **how):
    """Cancels the run of BODY, a script that says {} when it is ready for it."""
    with Agent(("s", script(body)), **how) as agent:
        agent.hello()
        agent.run()
        assert [agent.event()["event"] for _ in range(2)] == ["started", "worker"]
        agent.send({"command": "cancel", "run": "R1"})
        _, events, exited = agent.until_exit()
        assert exited["reason"] == "cancelled"
        agent.wait_gone()
        return events, exited


def test_term_is_a_chance_to_say_goodbye(script):
    events, exited = cancelled(script, """
        trap 'echo "{\\"event\\":\\"bye\\"}" >&3; exit 5' TERM
        sleep 1000 & echo '{}' >&3; wait""")
    assert exited["exit_code"] == 5
    assert [e["data"] for e in events] == [{"event": "bye"}]


def test_a_worker_that_ignores_term(script):
    _, exited = cancelled(script, "trap '' TERM; echo '{}' >&3; while :; do sleep 9; done",
                          grace_ms=SHORT_GRACE_MS)
    assert exited["signal"] == signal.SIGKILL


def test_cancel(script):
    with Agent(("s", script("echo '{}' >&3; exec sleep 1000"))) as agent:
        agent.hello()
        agent.run()
        assert agent.event()["event"] == "started"
        assert agent.event()["event"] == "worker"
        agent.send({"command": "cancel", "run": "R1"})
        agent.send({"command": "cancel", "run": "R1"})
        agent.send({"command": "cancel", "run": "nobody"})
        exited = agent.until_exit()[2]
        assert (exited["reason"], exited["signal"]) == ("cancelled", signal.SIGTERM)
        agent.run("R2", iterations=1)
        assert agent.event()["run"] == "R2"


ESCAPES = {
    "child": "sleep 1000 &",
    "background group": "set -m; sleep 1000 &",
    "session": "setsid sleep 1000 &",
    "daemon": "(setsid sh -c 'sleep 1000 & sleep 1000' &)",
    "deep": "(setsid sh -c \"setsid sh -c 'setsid sleep 1000 & exec sleep 1000' & "
            "exec sleep 1000\" &)",
    "without descriptors": "(setsid sleep 1000 >/dev/null 2>&1 3>&- &)",
    "ignoring": "(setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1000; done\" &)",
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
@pytest.mark.parametrize("how", ["exit 0", "exec sleep 1000", "kill -9 $$"])
def test_nobody_escapes(script, escape, how):
    with Agent(("s", script(f"{escape}\necho '{{}}' >&3; {how}"))) as agent:
        agent.hello()
        agent.run()
        assert agent.event()["event"] == "started"
        assert agent.event()["event"] == "worker"
        if "sleep" in how:
            agent.send({"command": "cancel", "run": "R1"})
        assert agent.until_exit()[2]["reason"] == ("cancelled" if "sleep" in how else "exited")
        agent.wait_gone()
        assert agent.close() == 0


def test_the_session_of_a_running_run_is_spared(script):
    """An orphan within the session of a run that goes on is its own business."""
    body = '(sleep 1000 &) ; echo "{}" >&3; [ "$3" = 1 ] || exec sleep 1000'
    with Agent(("s", script(body))) as agent:
        agent.hello()
        agent.run("long", iterations=2)
        assert [agent.event()["event"] for _ in range(2)] == ["started", "worker"]
        wait_until("both are there", lambda: agent.sleepers() == 2)
        agent.run("short", device="d1")
        agent.until_exit("short")
        assert len(processes(agent.token)) == agent.sleepers() == 2
        agent.send({"command": "cancel", "run": "long"})
        agent.until_exit("long")
        agent.wait_gone()


PTRACE_SEIZE, PTRACE_O_TRACEEXIT, PTRACE_DETACH = 0x4206, 0x40, 17


def test_a_process_that_survives_sigkill_is_left_behind(script):
    """A tracer can stop a process on its way out, as a driver's uninterruptible sleep
    does: SIGKILL was sent, and it is still there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with Agent(("s", script("echo '{}' >&3; while :; do :; done")),
               grace_ms=SHORT_GRACE_MS) as agent:
        agent.hello()
        agent.run()
        pid = agent.event()["pid"]
        assert agent.event()["event"] == "worker"
        if libc.ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACEEXIT) != 0:
            pytest.skip("ptrace is not allowed here")
        agent.send({"command": "cancel", "run": "R1"})
        # The tracer has to let signals pass, or SIGTERM would wait for it.
        exited = agent.until_exit()[2]
        assert exited["reason"] == "stuck"
        assert (exited["exit_code"], exited["signal"]) == (None, None)
        # The device can be used again, and the stuck one is reaped when it dies.
        agent.run("R2", timeout_ms=100)
        assert agent.until_exit("R2")[2]["reason"] == "timeout"
        libc.ptrace(PTRACE_DETACH, pid, None, None)
        with contextlib.suppress(ProcessLookupError):  # it may be on its way out since the first
            os.kill(pid, signal.SIGKILL)
        wait_until("it is reaped", lambda: not pathlib.Path(f"/proc/{pid}").exists())
        assert agent.close() == 0


# The end of the agent


@pytest.mark.parametrize("body", ["exec sleep 1000", "trap '' TERM; while :; do sleep 9; done",
                                  *(f"{e}\nexec sleep 1000" for e in ESCAPES.values())],
                         ids=["simple", "ignores TERM", *ESCAPES])
@pytest.mark.parametrize("how", ["input", "SIGTERM", "SIGINT"])
def test_the_end_of_the_agent_is_the_end_of_its_workers(script, body, how):
    with Agent(("s", script(f"echo '{{}}' >&3; {body}"))) as agent:
        agent.hello()
        agent.run("R1")
        agent.run("R2", device="d1")
        while sum(1 for _ in range(4) if agent.event()) < 4:
            pass
        if how == "input":
            assert agent.close() == 0
        else:
            agent.process.send_signal(getattr(signal, how))
            assert agent.process.wait(LIMIT) == 0
        agent.wait_gone()


def test_kill_9_of_the_agent_leaves_no_worker(script):
    with Agent(("s", script("echo '{}' >&3; exec sleep 1000"))) as agent:
        agent.hello()
        agent.run("R1")
        agent.run("R2", device="d1")
        for _ in range(4):
            agent.event()
        wait_until("both are there", lambda: agent.sleepers() == 2)
        agent.process.kill()
        agent.wait_gone()


def test_the_death_of_the_parent_is_the_end_of_the_agent(script):
    """Although its standard input stays open."""
    worker = script("echo '{}' >&3; exec sleep 1000")
    with Agent(("s", worker)) as agent:  # for its token; its process is replaced
        assert agent.close() == 0
        command = [str(word) for word in agent.process.args]
        parent = subprocess.Popen(
            ["sh", "-c", 'exec 4<&0; REPROD_PARENT=$$ "$@" <&4 & wait', "sh", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        agent.process = parent
        pid = agent.hello()["pid"]
        agent.run()
        assert [agent.event()["event"] for _ in range(2)] == ["started", "worker"]
        parent.kill()
        parent.wait()
        wait_until("the agent is gone", lambda: not pathlib.Path(f"/proc/{pid}").exists())
        agent.wait_gone()


@volume
def test_nobody_reads(script):
    """Backpressure: a daemon that does not read holds up the worker, not memory."""
    lines = 9000
    body = f"""yes "{{\\"a\\":\\"$(head -c 5000 /dev/zero | tr '\\000' x)\\"}}" |
               head -n {lines} >&3"""
    with Agent(("s", script(body))) as agent:
        agent.hello()
        agent.run()
        status = pathlib.Path(f"/proc/{agent.process.pid}/stat")

        def cpu():
            return sum(map(int, status.read_text().rsplit(")", 1)[1].split()[11:13]))
        wait_until("it has something to do", lambda: cpu() > 0)
        before = -1
        while before != cpu():  # until it rests
            before = cpu()
            time.sleep(0.3)
        peak = next(int(line.split()[1]) for line in
                    pathlib.Path(f"/proc/{agent.process.pid}/status").read_text().split("\n")
                    if line.startswith("VmRSS"))
        _, events, exited = agent.until_exit()
        assert exited["reason"] == "exited"
        assert len(events) == lines
        if "san" not in BUILD.name:
            assert peak < 32 * 1024


# More than is queued for a daemon that does not read, and less than that and the pipe take.
LEAVES_A_FULL_PIPE = """exec python3 -c '
import fcntl
fcntl.fcntl(3, fcntl.F_SETPIPE_SZ, 1 << 20)
with open(3, "w") as out:
    out.write((chr(123) + chr(34) + "a" * 5000 + chr(34) + ":1" + chr(125) + chr(10)) * 930)
'"""


@volume
def test_what_a_worker_left_waits_for_the_daemon(script):
    """However long after the worker's end the daemon reads on."""
    with Agent(("s", script(LEAVES_A_FULL_PIPE))) as agent:
        agent.hello()
        agent.run()
        assert agent.event()["event"] == "started"
        agent.wait_gone()
        time.sleep(1)  # twice what the agent waits for the ends of pipes that nobody holds up
        _, events, exited = agent.until_exit()
        assert (exited["reason"], exited["exit_code"]) == ("exited", 0), exited["log"]
        assert [len(str(event["data"])) for event in events] == [5007] * 930
