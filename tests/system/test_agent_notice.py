"""Agents that a site takes back with SIGTERM, and agents whose daemon is gone although nothing tells them."""
import contextlib
import os
import signal

import pytest

from agent import LIMIT, Agent, processes, wait_until

NOTICE = ("--notice", "3600")


def told(agent):
    """Sends SIGTERM; the agent says so."""
    agent.process.send_signal(signal.SIGTERM)
    event = agent.event()
    assert (event["event"], event["cause"]) == ("ending", "SIGTERM")
    return event["notice_ms"]


def terminate(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it went with the one before it
            os.kill(pid, signal.SIGTERM)


def started(agent, run, device):
    agent.run(run, device=device)
    assert [agent.event()["event"] for _ in range(2)] == ["started", "worker"]


def test_a_run_ends_within_the_notice_and_no_other_begins(script, tmp_path):
    go = tmp_path / "go"
    end = '{"event":"end","outcome":"completed"}'
    body = f"echo '{{}}' >&3; while [ ! -e {go} ]; do sleep 0.05; done; echo '{end}' >&3"
    with Agent(("s", script(body)), options=NOTICE) as agent:
        agent.hello()
        started(agent, "R1", "d0")
        assert told(agent) == 3_600_000
        agent.run("R2", device="d1")
        refused = agent.event()
        assert (refused["event"], refused["run"], refused["cause"]) == ("refused", "R2", "the agent was told to end")
        agent.send({"command": "ping"})
        assert agent.event() == {"event": "pong"}
        go.touch()
        assert agent.event()["event"] == "worker"
        exited = agent.event()
        assert (exited["reason"], exited["exit_code"]) == ("exited", 0)
        assert agent.event() is None and agent.process.wait(LIMIT) == 0


@pytest.mark.parametrize("how", ["notice", "again", "end of input"])
def test_what_does_not_end_is_cancelled(script, how):
    notice = ("--notice", "1") if how == "notice" else NOTICE
    with Agent(("s", script("trap '' TERM; echo '{}' >&3; exec sleep 1000")), options=notice) as agent:
        agent.hello()
        started(agent, "R1", "d0")
        told(agent)
        if how == "end of input":
            agent.process.stdin.close()
        while how == "again" and agent.process.poll() is None and processes(agent.token):
            agent.process.send_signal(signal.SIGTERM)  # in the first second it is the same one
        exited = agent.event()
        assert (exited["event"], exited["run"], exited["reason"]) == ("exited", "R1", "cancelled")
        assert agent.event() is None and agent.process.wait(LIMIT) == 0
        agent.wait_gone()


@pytest.mark.parametrize("first", ["agent", "worker"])
@pytest.mark.parametrize("end", ["exit 7", "exit 0", "kill -9 $$"])
def test_a_worker_that_gets_the_same_signal_is_not_blamed(script, first, end):
    """Some schedulers send SIGTERM to each process of a job, in any order; some workers take it well, and some of them
    were ended for good by then."""
    with Agent(("s", script(f"trap 'x=1' TERM; echo '{{}}' >&3; sleep 1000; {end}")), options=NOTICE) as agent:
        agent.hello()
        started(agent, "R1", "d0")
        wait_until("it sleeps", lambda: agent.sleepers() == 1)
        workers = processes(agent.token)
        if first == "worker":
            agent.process.send_signal(signal.SIGSTOP)  # so that it hears of both at a time
            terminate(workers)
            wait_until("it is gone", lambda: not processes(agent.token))
            agent.process.send_signal(signal.SIGTERM)
            agent.process.send_signal(signal.SIGCONT)
            assert agent.event()["event"] == "ending"
        else:
            told(agent)
            terminate(workers)
        exited = agent.event()
        assert (exited["event"], exited["reason"]) == ("exited", "cancelled")
        assert agent.event() is None and agent.process.wait(LIMIT) == 0


def test_a_worker_that_alone_gets_the_signal_has_ended_by_it(script):
    with Agent(("s", script("echo '{}' >&3; exec sleep 1000"))) as agent:
        agent.hello()
        started(agent, "R1", "d0")
        wait_until("it sleeps", lambda: agent.sleepers() == 1)
        terminate(processes(agent.token))
        exited = agent.event()
        assert (exited["reason"], exited["signal"]) == ("exited", signal.SIGTERM)
        agent.run("R2")  # the device is free again
        assert agent.event()["event"] == "started"


def test_an_idle_agent_ends_at_once(script):
    with Agent(("s", script("exit 0")), options=NOTICE) as agent:
        agent.hello()
        told(agent)
        assert agent.event() is None and agent.process.wait(LIMIT) == 0


def test_a_daemon_that_is_silent_is_gone(script):
    """Its standard input stays open: this test holds it."""
    with Agent(("s", script("echo '{}' >&3; exec sleep 1000")), options=("--silence", "1")) as agent:
        agent.hello()
        started(agent, "R1", "d0")
        exited = agent.event()
        assert (exited["event"], exited["reason"]) == ("exited", "cancelled")
        assert agent.event() is None and agent.process.wait(LIMIT) == 1
        assert b"nothing was heard of the daemon for 1 s" in agent.process.stderr.read()
        agent.wait_gone()


@pytest.mark.parametrize("option", ["--notice", "--silence"])
def test_the_options_are_checked(option):
    for value in ("-1", "x", "86401"):
        with Agent(options=(option, value)) as agent:
            assert agent.process.wait(LIMIT) == 2
            assert f"{option} wants a whole number in 0..86400, not '{value}'".encode() in agent.process.stderr.read()
