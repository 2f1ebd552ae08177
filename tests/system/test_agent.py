"""The agent by itself, over its standard input and output (workloads/PROTOCOL.md).

Its workers are small shell scripts that misbehave in one way each, and the self-test
worker.  No test depends on how long something takes: LIMIT is when a test gives up.
"""
import ctypes
import json
import os
import pathlib
import select
import signal
import subprocess
import time
import uuid

import pytest

pytestmark = pytest.mark.flavour

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
REPROD = BUILD / "reprod"
LAUNCH = BUILD / "reprod-launch"
SELFTEST = BUILD / "tests" / "reprod-worker-selftest"
LIMIT = 60
GRACE_MS = 1000
FOREVER_MS = 600_000
NOBODY = 65534
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
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if token.encode() in text and state not in "ZX":
            found.append(int(entry.name))
    return found


class Agent:
    """A running agent.  TOKEN is in the environment of all of its workers."""

    def __init__(self, *stacks, options=(), environment=None, pass_fds=()):
        self.token = f"token-{uuid.uuid4().hex}"
        arguments = [REPROD, "agent", "--grace-ms", str(GRACE_MS)]
        for name, worker in stacks:
            arguments += ["--stack-json", json.dumps(
                {"name": name, "worker": str(worker), "env": {"TOKEN": self.token}})]
        self.process = subprocess.Popen(
            [*arguments, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, **(environment or {})},
            pass_fds=pass_fds)
        self.rest = b""

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
            os.kill(pid, signal.SIGKILL)

    def event(self):
        """The next event; None at the end of its output."""
        end = time.monotonic() + LIMIT
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            assert left > 0, "gave up waiting for an event"
            if select.select([self.process.stdout], [], [], left)[0]:
                data = os.read(self.process.stdout.fileno(), 1 << 20)
                if not data:
                    assert self.rest == b""
                    return None
                self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line, object_pairs_hook=unique)

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

    def wait_gone(self):
        wait_until("its workers are gone", lambda: not processes(self.token))


@pytest.fixture
def script(tmp_path):
    def make(body, probe=GOOD_PROBE, catalogue=GOOD_CATALOGUE, name="worker"):
        path = tmp_path / name
        path.write_text(SCRIPT % (probe, catalogue, body))
        path.chmod(0o755)
        return path
    return make


@pytest.fixture
def run_one(script):
    """Runs one script as the only run of an agent; returns until_exit, all is gone."""
    def run(body, **command):
        with Agent(("s", script(body))) as agent:
            agent.hello()
            agent.run(**command)
            result = agent.until_exit()
            agent.wait_gone()
            assert agent.close() == 0
            return result
    return run


# hello


def test_hello(script):
    with Agent(("s", script("exit 0"))) as agent:
        hello = agent.hello()
        assert hello["v"] == 1
        assert hello["host"] == os.uname().nodename
        assert hello["pid"] == agent.process.pid
        assert hello["boot_id"] == pathlib.Path(
            "/proc/sys/kernel/random/boot_id").read_text().strip()
        [stack] = hello["stacks"]
        assert stack["name"] == "s"
        assert stack["probe"] == PROBE
        assert stack["catalogue"] == [CATALOGUE]
        assert stack["cause"] is None
        assert agent.close() == 0


@pytest.mark.parametrize("probe, catalogue, cause", [
    ("exit 0", GOOD_CATALOGUE, "--probe printed 0 objects"),
    ("echo '{}'; echo '{}'", GOOD_CATALOGUE, "--probe printed 2 objects"),
    ("echo hello", GOOD_CATALOGUE, "--probe: line 1: not JSON"),
    ("printf '{}'", GOOD_CATALOGUE, "--probe: line 1: cut off"),
    (GOOD_PROBE, "echo '[]'", "--catalogue: line 1: not a JSON object"),
    (GOOD_PROBE, "echo wrong >&2; exit 3", "--catalogue: exit status 3: wrong"),
    (GOOD_PROBE, "kill -SEGV $$", "--catalogue: killed by SIGSEGV"),
    (GOOD_PROBE, "exec sleep 1000", "--catalogue: no answer before the deadline"),
    (GOOD_PROBE, "exec yes '{}'", "--catalogue: flood"),
])
def test_a_stack_that_cannot_be_probed_says_why(script, probe, catalogue, cause):
    bad = script("exit 0", probe, catalogue, name="bad")
    with Agent(("good", script("exit 0")), ("bad", bad),
               options=["--probe-ms", "3000"]) as agent:
        good, bad = agent.hello()["stacks"]
        assert good["cause"] is None
        assert bad["probe"] is None
        assert cause in bad["cause"]
        agent.run(stack="bad")
        refused = agent.event()
        assert refused["event"] == "refused"
        assert "not usable" in refused["cause"]
        agent.wait_gone()


def test_a_worker_that_is_not_there(tmp_path):
    with Agent(("s", tmp_path / "nothing")) as agent:
        assert "exit status 127" in agent.hello()["stacks"][0]["cause"]


@pytest.mark.parametrize("options", [
    ["--stack", "no-worker"], ["--stack"], ["--threads", "0"], ["--threads", "many"],
    ["--stack-json", "{"], ["--stack-json", '{"name":"a","name":"b"}'],
    ["--stack-json", '{"name":"a","colour":"red"}'], ["--nonsense", "1"],
    ["--stack-json", '{"name":"a","env":{"A=B":"c"}}'], ["--library-path", "/tmp"],
    ["--stack", "a=/bin/true", "--stack", "a=/bin/true"],
])
def test_wrong_options(options):
    done = subprocess.run([REPROD, "agent", *options], stdin=subprocess.PIPE,
                          capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"reprod agent: ")
    assert done.stderr.count(b"\n") == 1


def test_standard_input_that_is_no_pipe():
    done = subprocess.run([REPROD, "agent"], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 2
    assert b"not pipes" in done.stderr


# What a worker gets


def test_arguments_and_surroundings(script, tmp_path):
    seen = tmp_path / "seen"
    body = f"""
        printf '%s\\n' "$@" >{seen}.args
        tr '\\0' '\\n' </proc/self/environ >{seen}.env
        ls /proc/$$/fd >{seen}.fds
        cat /proc/self/status >{seen}.status
        cut -d' ' -f1,5,6 /proc/$$/stat >{seen}.ids
        ulimit -c >{seen}.core"""
    with open("/dev/null", encoding="ascii") as null:
        leak = os.dup2(null.fileno(), 77)
    with Agent(("s", script(body)), options=["--threads", "3"],
               environment={"OMP_NUM_THREADS": "77", "LD_PRELOAD": ""},
               pass_fds=[leak]) as agent:
        agent.hello()
        agent.run(workload="w", variant="ordered", seed="5", iterations=4)
        started, events, exited = agent.until_exit()
        assert exited["exit_code"] == 0, exited
        assert events == []

    def read(what):
        return pathlib.Path(f"{seen}.{what}").read_text().split("\n")[:-1]
    os.close(leak)
    assert read("args") == ["--run", "--iterations", "4", "--workload", "w", "--variant",
                            "ordered", "--seed", "5", "--threads", "3", "--device", "d0"]
    names = {line.split("=")[0] for line in read("env")}
    assert names <= {"PATH", "HOME", "LANG", "REPROD_RESULT_FD", "TOKEN", "TMPDIR", "PWD",
                     "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "XDG_CACHE_HOME",
                         "REPROD_CACHE_DIR", "OMP_WAIT_POLICY", "_", "OLDPWD", "SHLVL"}
    assert "REPROD_RESULT_FD=3" in read("env")
    assert "LANG=C.UTF-8" in read("env")
    assert "OMP_WAIT_POLICY=passive" in read("env")
    # The shell has its script, and what it redirects, as 10 and 11.
    assert set(read("fds")) <= {"0", "1", "2", "3", "10", "11"}
    status = dict(line.split(":\t", 1) for line in read("status"))
    assert int(status["SigBlk"], 16) == 0
    assert int(status["SigIgn"], 16) & ~LIBC_SIGNALS == 0
    assert status["NoNewPrivs"] == "1"
    assert read("ids") == [f"{started['pid']} {started['pid']} {started['pid']}"]
    assert read("core") == ["0"]


def test_started_names_the_process(script):
    with Agent(("s", script("exec sleep 1000"))) as agent:
        agent.hello()
        agent.run()
        started = agent.event()
        stat = pathlib.Path(f"/proc/{started['pid']}/stat").read_text()
        assert started["process_start"] == int(stat.rsplit(")", 1)[1].split()[19])


def test_library_path_and_json_stack(script, tmp_path):
    stack = {"name": "s", "worker": str(script("echo $LD_LIBRARY_PATH $COLOUR $HOME")),
             "library_path": str(tmp_path), "env": {"COLOUR": "red", "HOME": "/nowhere"}}
    with Agent(options=["--stack-json", json.dumps(stack)]) as agent:
        agent.hello()
        agent.run()
        assert agent.until_exit()[2]["log"] == f"{tmp_path} red /nowhere\n"


# What comes back


def test_events_are_passed_on_as_written(run_one):
    event = {"event": "start", "text": "\u00e4\u20ac\U0001f600 \" \\ \n", "n": [1, 2.5, None]}
    _, events, exited = run_one(f"cat >&3 <<'END'\n{json.dumps(event)}\nEND\nexit 7")
    assert [e["data"] for e in events] == [event]
    assert exited["exit_code"] == 7
    assert exited["signal"] is None
    assert exited["reason"] == "exited"
    assert exited["wall_ms"] > 0
    assert exited["max_rss_kb"] > 0


def test_exit_without_a_word(run_one):
    _, events, exited = run_one("exit 0")
    assert events == []
    assert (exited["exit_code"], exited["log"], exited["log_bytes"]) == (0, "", 0)


def test_a_signal(run_one):
    _, _, exited = run_one("kill -SEGV $$")
    assert (exited["exit_code"], exited["signal"]) == (None, signal.SIGSEGV)
    assert exited["reason"] == "exited"


@pytest.mark.parametrize("line, cause", [
    (r"hello\n", "line 2: not JSON"),
    (r"\n", "line 2: not JSON"),
    (r"[1]\n", "line 2: not a JSON object"),
    (r'{"a":1,"a":1}\n', "line 2: a key appears twice in an object"),
    (r'{"a":"\377"}\n', "line 2: not UTF-8"),
    (r'{"a":1}', "line 2: cut off"),
    (r'{"a":"\000"}\n', "line 2: not JSON"),
    ("[" * 40 + "]" * 40 + r"\n", "line 2: nested more than 32 deep"),
])
def test_garbage(run_one, line, cause):
    _, events, exited = run_one(
        f"""printf '{{"event":"x"}}\\n' >&3; printf '{line}' >&3; exit 0""")
    assert [e["event"] for e in events] == ["worker", "garbage"]
    assert events[1]["cause"] == cause
    assert exited["exit_code"] == 0


def test_the_log_is_a_tail_of_both_streams(run_one):
    _, _, exited = run_one("""i=0; while [ $i -lt 2000 ]; do
        echo "line $i"; echo "LINE $i" >&2; i=$((i+1)); done""")
    text = "".join(f"line {i}\nLINE {i}\n" for i in range(2000))
    assert exited["log_bytes"] == len(text)
    assert exited["log"] == text[-8192:]


def test_a_log_of_any_bytes(run_one):
    _, _, exited = run_one(r"printf 'a\000\377\303\244\n'")
    assert exited["log"] == "a\ufffd\ufffd\u00e4\n"
    assert exited["log_bytes"] == 6


def test_a_log_without_end_is_not_kept(run_one):
    _, _, exited = run_one("exec yes", timeout_ms=1000)
    assert exited["reason"] == "timeout"
    assert len(exited["log"]) == 8192
    assert exited["log_bytes"] > 1 << 20


@pytest.mark.parametrize("body", [
    "exec head -c 70000 /dev/zero >&3",                 # a line, too long
    "head -c 70000 /dev/zero >&3; exec sleep 1000",
    """exec yes "{\\"a\\":\\"$(head -c 60000 /dev/zero | tr '\\000' x)\\"}" >&3""",
])
def test_flood(run_one, body):
    _, events, exited = run_one(body)
    assert exited["reason"] == "flood"
    assert len(events) <= 1118  # of 60 KB in 64 MiB


def test_as_many_events_as_are_allowed_and_one_more(run_one):
    _, events, exited = run_one("yes '{}' | head -n 300002 >&3; exec sleep 1000")
    assert exited["reason"] == "flood"
    assert len(events) == 300_001


# How a run is ended


def test_timeout(run_one):
    _, _, exited = run_one("echo here; exec sleep 1000", timeout_ms=1000)
    assert (exited["reason"], exited["signal"]) == ("timeout", signal.SIGTERM)
    assert exited["log"] == "here\n"


def cancelled(script, body):
    """Cancels the run of BODY, a script that says {} when it is ready for it."""
    with Agent(("s", script(body))) as agent:
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
    _, exited = cancelled(script, "trap '' TERM; echo '{}' >&3; while :; do sleep 9; done")
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
        wait_until("both are there", lambda: len(processes(agent.token)) == 2)
        agent.run("short", device="d1")
        agent.until_exit("short")
        assert len(processes(agent.token)) == 2
        agent.send({"command": "cancel", "run": "long"})
        agent.until_exit("long")
        agent.wait_gone()


PTRACE_SEIZE, PTRACE_O_TRACEEXIT, PTRACE_DETACH = 0x4206, 0x40, 17


def test_a_process_that_survives_sigkill_is_left_behind(script):
    """A tracer can stop a process on its way out, as a driver's uninterruptible sleep
    does: SIGKILL was sent, and it is still there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with Agent(("s", script("echo '{}' >&3; while :; do :; done"))) as agent:
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
        os.kill(pid, signal.SIGKILL)
        wait_until("it is reaped", lambda: not pathlib.Path(f"/proc/{pid}").exists())
        assert agent.close() == 0


# Commands


@pytest.mark.parametrize("change, cause", [
    ({"stack": "x"}, "unknown stack 'x'"),
    ({"device": "d9"}, "no device 'd9'"),
    ({"timeout_ms": 0}, "out of its bounds"),
    ({"timeout_ms": 1 << 60}, "out of its bounds"),
    ({"timeout_ms": "1"}, "malformed"),
    ({"arguments": []}, "out of its bounds"),
    ({"arguments": {"iterations": -1}}, "out of its bounds"),
    ({"arguments": {"device": "d1"}}, "cannot be passed on"),
    ({"arguments": {"size": "--help"}}, "cannot be passed on"),
    ({"arguments": {"size": ""}}, "cannot be passed on"),
    ({"arguments": {"Size": "small"}}, "cannot be passed on"),
    ({"arguments": {"size": ["small"]}}, "cannot be passed on"),
    ({"arguments": {"a" * (i + 1): 1 for i in range(33)}}, "more than 32"),
])
def test_refused(script, change, cause):
    command = {"command": "run", "run": "R1", "stack": "s", "device": "d0",
               "timeout_ms": 1000, "arguments": {}}
    with Agent(("s", script("exit 0"))) as agent:
        agent.hello()
        agent.send({**command, **change})
        refused = agent.event()
        assert (refused["event"], refused["run"]) == ("refused", "R1")
        assert cause in refused["cause"]
        agent.send(command)
        assert agent.until_exit()[2]["exit_code"] == 0


def test_one_run_a_device(script):
    with Agent(("s", script("echo '{}' >&3; exec sleep 1000"))) as agent:
        agent.hello()
        agent.run("R1")
        assert [agent.event()["event"] for _ in range(2)] == ["started", "worker"]
        agent.run("R2")
        assert "busy with run R1" in agent.event()["cause"]
        agent.run("R1", device="d1")
        assert "there already" in agent.event()["cause"]
        agent.run("R3", device="d1")
        assert agent.event()["event"] == "started"
        assert agent.close() == 0
        agent.wait_gone()


def test_drain(script):
    with Agent(("s", script("echo '{}' >&3; read line </proc/$$/cwd/go; exit 0"))) as agent:
        fifo = pathlib.Path(f"/proc/{agent.process.pid}/cwd/go").resolve()
        os.mkfifo(fifo)
        try:
            agent.hello()
            agent.run()
            assert [agent.event()["event"] for _ in range(2)] == ["started", "worker"]
            agent.send({"command": "drain"})
            agent.run("R2", device="d1")
            assert "draining" in agent.event()["cause"]
            fifo.write_text("go\n")
            assert agent.until_exit()[2]["exit_code"] == 0
            assert agent.event() is None
            assert agent.process.wait(LIMIT) == 0
        finally:
            fifo.unlink()


def test_a_run_before_hello_is_refused(script):
    with Agent(("s", script("exit 0", probe=f"sleep 1; {GOOD_PROBE}"))) as agent:
        agent.run()
        refused = agent.event()
        assert refused["event"] == "refused"
        assert "hello" in refused["cause"]
        agent.hello()


def test_unknown_commands_are_ignored(script):
    with Agent(("s", script("exit 0"))) as agent:
        agent.hello()
        agent.send({"command": "dance"})
        agent.run()
        assert agent.until_exit()[2]["exit_code"] == 0


@pytest.mark.parametrize("line", [
    b"hello\n", b"{}\n", b'{"command":"run"}\n', b'{"command":1}\n', b"x" * 70_000,
    b'{"command":"cancel","run":""}\n', b'{"command":"drain","command":"drain"}\n',
])
def test_a_daemon_that_breaks_the_protocol(script, line):
    with Agent(("s", script("exec sleep 1000"))) as agent:
        agent.hello()
        agent.run()
        assert agent.event()["event"] == "started"
        agent.write(line)
        assert agent.process.wait(LIMIT) == 1
        assert b"standard input" in agent.process.stderr.read()
        agent.wait_gone()


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
        assert len(processes(agent.token)) == 2
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


# The self-test worker


WAITS = {"selftest_hang", "selftest_ignores_term"}


def selftests():
    if not SELFTEST.exists():
        return [pytest.param("", "", marks=pytest.mark.skip("the self-test worker is not built"))]
    out = subprocess.run([SELFTEST, "--catalogue"], capture_output=True, check=True).stdout
    return [(w["workload"], v["name"]) for w in map(json.loads, out.splitlines())
            if w["workload"].startswith("selftest_") for v in w["variants"]]


@pytest.mark.parametrize("workload, variant", selftests())
def test_the_agent_survives(workload, variant):
    with Agent(("s", SELFTEST)) as agent:
        [device] = agent.hello()["stacks"][0]["probe"]["devices"]
        short = workload in WAITS or (workload, variant) == ("selftest_flood", "log")
        agent.run(device=device["id"], workload=workload, variant=variant, iterations=3,
                  timeout_ms=1000 if short else FOREVER_MS)
        started, events, exited = agent.until_exit()
        assert exited["reason"] in ("exited", "timeout", "flood")
        if workload == "selftest_pass":
            kinds = [e["data"]["event"] for e in events]
            assert kinds == ["start", "iteration", "iteration", "iteration", "end"]
            assert events[0]["data"]["pid"] == started["pid"]
            assert events[0]["data"]["device"] == device["id"]
            assert (exited["exit_code"], exited["reason"]) == (0, "exited")
        agent.wait_gone()
        assert agent.close() == 0


# Where it is


def be_nowhere(folder):
    """In a child: in FOLDER, which this user may not enter any more."""
    os.chdir(folder)
    os.chmod(folder, 0)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def test_a_folder_that_cannot_be_entered_again(tmp_path):
    """Where a service is started on behalf of another user: its workers need no folder."""
    folder = tmp_path / "closed"
    folder.mkdir()
    arguments = [REPROD, "agent", "--stack", f"cpu={BUILD / 'reprod-worker'}"]
    try:
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL,
                              preexec_fn=lambda: be_nowhere(folder)) as process:
            hello = json.loads(process.stdout.readline())
            process.stdin.close()
    except PermissionError:
        pytest.skip("another user cannot execute this build")
    finally:
        folder.chmod(0o700)
    assert hello["stacks"][0]["cause"] is None


# reprod-launch


def launch(*arguments, **options):
    return subprocess.run([LAUNCH, *arguments], capture_output=True, timeout=LIMIT,
                          check=False, text=True, **options)


@pytest.mark.parametrize("arguments, status", [
    ([], 125), (["--"], 125), (["--core", "x", "--", "/bin/true"], 125),
    (["--core"], 125), (["--core", "-1", "--", "/bin/true"], 125),
    (["--colour", "1", "--", "/bin/true"], 125), (["--parent", "1", "--", "/bin/true"], 125),
    (["--", "/etc/passwd"], 126), (["--", "/nowhere/true"], 127), (["--", "/bin/true"], 0),
    (["--core", "0", "--", "/bin/sh", "-c", "exit 9"], 9),
])
def test_launch_statuses(arguments, status):
    done = launch(*arguments)
    assert done.returncode == status
    assert done.stderr.count("\n") == (1 if status in (125, 126, 127) else 0)


def test_launch_limits():
    done = launch("--core", "0", "--files", "64", "--file-size", "1024", "--nproc", "1000",
                  "--address-space", str(1 << 30), "--", "/bin/cat", "/proc/self/limits")
    limits = {line[:26].strip(): line[26:].split()[:2] for line in done.stdout.split("\n")}
    assert limits["Max core file size"] == ["0", "0"]
    assert limits["Max open files"] == ["64", "64"]
    assert limits["Max file size"] == ["1024", "1024"]
    assert limits["Max processes"] == ["1000", "1000"]
    assert limits["Max address space"] == [str(1 << 30)] * 2


def test_launch_resets_signals_and_descriptors():
    with open("/dev/null", encoding="ascii") as extra:
        number = os.dup2(extra.fileno(), 99)
        done = launch("--", "/bin/cat", "/proc/self/status", pass_fds=[number],
                      preexec_fn=lambda: (
                          signal.signal(signal.SIGHUP, signal.SIG_IGN),
                          signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])))
        listed = launch("--", "/bin/ls", "/proc/self/fd", pass_fds=[number])
        os.close(number)
    status = dict(line.split(":\t", 1) for line in done.stdout.split("\n") if ":\t" in line)
    assert int(status["SigIgn"], 16) & ~LIBC_SIGNALS == 0
    assert int(status["SigBlk"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert set(listed.stdout.split()) <= {"0", "1", "2", "3"}
