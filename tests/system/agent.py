"""Starts the agent by itself and talks to it over its standard input and output
(workloads/PROTOCOL.md), for the tests of what it does.

Its workers are small shell scripts that misbehave in one way each, and the self-test
worker.  No test depends on how long something takes: LIMIT is when a test gives up.
"""
import collections
import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import time
import uuid

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
REPROD = BUILD / "reprod"
LIMIT = 300
GRACE_MS = 60_000
SHORT_GRACE_MS = 500  # where it passes
FOREVER_MS = 600_000
# What is the same few lines again and again, many megabytes long.
volume = pytest.mark.skipif("san-" in str(BUILD), reason="the build without sanitizers does")
LIBC_SIGNALS = 0b11 << 31  # 32 and 33: posix_spawn ignores them, nothing can set them

PROBE = {"v": 1, "backend": "cpu", "worker_build": "0123456789", "versions": {},
         "devices": [{"id": "d0"}, {"id": "d1"}], "cause": None}
CATALOGUE = {"workload": "w", "version": 1, "backend": "cpu"}
GOOD_PROBE = f"echo '{json.dumps(PROBE)}'"
GOOD_CATALOGUE = f"echo '{json.dumps(CATALOGUE)}'"
SCRIPT = """#!/bin/sh
case "$1" in
--probe) %s;;
--catalogue) %s;;
--run) %s
;;
esac
"""


def unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"duplicate keys in {keys}"
    return dict(pairs)


def wait_until(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"gave up waiting until {what}"
        time.sleep(0.01)


def processes(token):
    """Pids of live processes that have TOKEN in their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if token.encode() in text and state not in "ZX":
            found.append(int(entry.name))
    return found


class Agent:
    """A running agent.  TOKEN is in the environment of all of its workers."""

    def __init__(self, *stacks, options=(), environment=None, pass_fds=(), grace_ms=GRACE_MS):
        self.token = f"token-{uuid.uuid4().hex}"
        arguments = [REPROD, "agent", "--grace-ms", str(grace_ms)]
        for name, worker in stacks:
            arguments += ["--stack-json", json.dumps(
                {"name": name, "worker": str(worker), "env": {"TOKEN": self.token}})]
        self.process = subprocess.Popen(
            [*arguments, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, **(environment or {})},
            pass_fds=pass_fds)
        self.lines, self.rest = collections.deque(), b""  # whole ones; the begun one

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        for pid in processes(self.token):
            with contextlib.suppress(ProcessLookupError):  # it dies with its agent
                os.kill(pid, signal.SIGKILL)

    def event(self):
        """The next event; None at the end of its output."""
        end = time.monotonic() + LIMIT
        while not self.lines:
            left = end - time.monotonic()
            assert left > 0, "gave up waiting for an event"
            if select.select([self.process.stdout], [], [], left)[0]:
                data = os.read(self.process.stdout.fileno(), 1 << 20)
                if not data:
                    assert self.rest == b""
                    return None
                *lines, self.rest = (self.rest + data).split(b"\n")
                self.lines.extend(lines)
        return json.loads(self.lines.popleft(), object_pairs_hook=unique)

    def hello(self):
        hello = self.event()
        assert hello["event"] == "hello"
        return hello

    def send(self, command):
        self.write(json.dumps(command).encode() + b"\n")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def run(self, run="R1", stack="s", device="d0", timeout_ms=FOREVER_MS, **arguments):
        self.send({"command": "run", "run": run, "stack": stack, "device": device,
                   "timeout_ms": timeout_ms, "arguments": {"iterations": 1, **arguments}})

    def until_exit(self, run="R1"):
        """Events of RUN up to its exited event: (started, [worker and garbage], exited)."""
        started, events = None, []
        while True:
            event = self.event()
            assert event is not None, self.process.stderr.read()
            assert event["run"] == run
            if event["event"] == "started":
                assert started is None
                started = event
            elif event["event"] == "exited":
                return started, events, event
            else:
                assert event["event"] in ("worker", "garbage")
                events.append(event)

    def close(self):
        """Ends its standard input; returns its exit status."""
        self.process.stdin.close()
        return self.process.wait(LIMIT)

    def sleepers(self):
        """How many of its workers' processes have become sleep."""
        names = []
        for pid in processes(self.token):
            with contextlib.suppress(OSError):
                names.append(pathlib.Path(f"/proc/{pid}/comm").read_text())
        return names.count("sleep\n")

    def wait_gone(self):
        wait_until("its workers are gone", lambda: not processes(self.token))


def ended_by_deadline(run_one, body, log_bytes):
    """The end of a run that its deadline ended, by then with LOG_BYTES in its log: one that had
    not come so far is given more time."""
    for timeout_ms in (500, 4_000, 32_000, 256_000):
        _, _, exited = run_one(body, timeout_ms=timeout_ms)
        assert (exited["reason"], exited["signal"]) == ("timeout", signal.SIGTERM)
        if exited["log_bytes"] >= log_bytes:
            return exited
    raise AssertionError(f"only {exited['log_bytes']} bytes in {timeout_ms} ms")


def write_script(path, body, probe=GOOD_PROBE, catalogue=GOOD_CATALOGUE):
    """A worker whose runs do BODY."""
    path.write_text(SCRIPT % (probe, catalogue, body))
    path.chmod(0o755)
    return path
