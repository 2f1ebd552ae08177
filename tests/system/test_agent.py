"""The agent by itself: what it says of its stacks, what a worker gets, what comes back."""
import json
import os
import pathlib
import signal
import subprocess

import pytest

from agent import (BUILD, CATALOGUE, FOREVER_MS, GOOD_CATALOGUE, GOOD_PROBE, LIBC_SIGNALS,
                   LIMIT, PROBE, REPROD, SHORT_GRACE_MS, Agent, ended_by_deadline, volume)

pytestmark = pytest.mark.flavour

SELFTEST = BUILD / "tests" / "reprod-worker-selftest"
NOBODY = 65534


# Hello


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
    (GOOD_PROBE, "exec yes '{}'", "--catalogue: flood"),
    (GOOD_PROBE, f"echo '{json.dumps({**CATALOGUE, 'workload': 64 * 'w'})}'",
     "catalogue: [0]: workload has more than 63 bytes"),
    (f"echo '{json.dumps({**PROBE, 'devices': [{}]})}'", GOOD_CATALOGUE,
     "probe: devices[0]: id is not a text, or an empty one"),
])
def test_a_stack_that_cannot_be_probed_says_why(script, probe, catalogue, cause):
    bad = script("exit 0", probe, catalogue, name="bad")
    with Agent(("good", script("exit 0")), ("bad", bad),
               options=["--probe-ms", str(1000 * LIMIT)]) as agent:
        good, bad = agent.hello()["stacks"]
        assert good["cause"] is None
        assert bad["probe"] is None
        assert cause in bad["cause"]
        agent.run(stack="bad")
        refused = agent.event()
        assert refused["event"] == "refused"
        assert "not usable" in refused["cause"]
        agent.wait_gone()


def test_a_stack_that_hangs_is_waited_for_until_the_deadline(script):
    """The other is usable as soon as the deadline leaves it the time to answer."""
    bad = script("exit 0", GOOD_PROBE, "exec sleep 1000", name="bad")
    for probe_ms in (1_000, 8_000, 64_000):
        with Agent(("good", script("exit 0")), ("bad", bad),
                   options=["--probe-ms", str(probe_ms)]) as agent:
            good, hung = agent.hello()["stacks"]
            assert hung["probe"] is None
            assert "no answer before the deadline" in hung["cause"]
            agent.wait_gone()
            if good["cause"] is None:
                return
    raise AssertionError(good["cause"])


def test_a_worker_that_is_not_there(tmp_path):
    with Agent(("s", tmp_path / "nothing")) as agent:
        assert "exit status 127" in agent.hello()["stacks"][0]["cause"]


@pytest.mark.parametrize("options", [
    ["--stack", "no-worker"], ["--stack"], ["--threads", "0"], ["--threads", "many"],
    ["--stack-json", "{"], ["--stack-json", '{"name":"a","name":"b"}'],
    ["--stack-json", '{"name":"a","colour":"red"}'], ["--nonsense", "1"],
    ["--stack-json", '{"name":"a","env":{"A=B":"c"}}'], ["--library-path", "/tmp"],
    ["--stack-json", '{"name":"a","env":{"TF_DETERMINISTIC_OPS":"yes"}}'],
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
    assert names <= {"PATH", "HOME", "LANG", "REPROD_RESULT_FD", "REPROD_NONCE", "TOKEN", "TMPDIR", "PWD",
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


PASSED = "0123456789abcdef" * 2


def asked_to_check(script, probe, body, timeout_ms=FOREVER_MS, **passed):
    """The end of a run that the daemon wants checked."""
    with Agent(("s", script(body, f"echo '{json.dumps({**PROBE, **probe})}'"))) as agent:
        agent.hello()
        agent.send({"command": "run", "run": "R1", "stack": "s", "device": "d0", "timeout_ms": timeout_ms,
                    "check_seconds": 7, **passed, "arguments": {"iterations": 1}})
        return agent.until_exit()[2]


def test_only_a_worker_that_can_is_asked_to_check(script):
    assert " --checked 7 " in asked_to_check(script, {"checks": True}, 'echo "$@"')["log"]
    for older in ({}, {"checks": False}, {"checks": "yes"}):
        assert "--checked" not in asked_to_check(script, older, 'echo "$@"')["log"]


def test_only_a_worker_that_can_is_told_what_passed(script):
    body, told = 'echo "$@"', {"check_passed": PASSED}
    log = asked_to_check(script, {"checks": True, "passed": True}, body, **told)["log"]
    assert f" --checked 7 --passed {PASSED} " in log
    assert "--passed" not in asked_to_check(script, {"checks": True, "passed": True}, body)["log"]
    for older in ({"checks": True}, {"checks": True, "passed": False}, {"passed": True}):
        log = asked_to_check(script, older, body, **told)["log"]
        assert "--checked" not in log and "--passed" not in log


def test_a_check_moves_the_deadline(script):
    for timeout_ms, seconds in ((1_000, 2), (8_000, 9)):
        body = f"""echo '{{"event":"checking","seconds":7}}' >&3; sleep {seconds}"""
        if asked_to_check(script, {"checks": True}, body, timeout_ms)["reason"] == "exited":
            break
    else:
        raise AssertionError("ended by its deadline")
    assert asked_to_check(script, {}, body, timeout_ms)["reason"] == "timeout"


def test_started_names_the_process(script):
    with Agent(("s", script("exec sleep 1000"))) as agent:
        agent.hello()
        agent.run()
        started = agent.event()
        stat = pathlib.Path(f"/proc/{started['pid']}/stat").read_text(errors="replace")
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
    assert len(ended_by_deadline(run_one, "exec yes", 1 << 20)["log"]) == 8192


@pytest.mark.parametrize("body", [
    "exec head -c 70000 /dev/zero >&3",                 # a line, too long
    "head -c 70000 /dev/zero >&3; exec sleep 1000",
    pytest.param("""exec yes "{\\"a\\":\\"$(head -c 60000 /dev/zero | tr '\\000' x)\\"}" >&3""",
                 marks=volume),
])
def test_flood(run_one, body):
    _, events, exited = run_one(body)
    assert exited["reason"] == "flood"
    assert len(events) <= 1118  # of 60 KB in 64 MiB


@volume
@pytest.mark.long
def test_as_many_events_as_are_allowed_and_one_more(run_one):
    _, events, exited = run_one("yes '{}' | head -n 300002 >&3; exec sleep 1000")
    assert exited["reason"] == "flood"
    assert len(events) == 300_001


# Commands


@pytest.mark.parametrize("change, cause", [
    ({"stack": "x"}, "unknown stack 'x'"),
    ({"device": "d9"}, "no device 'd9'"),
    ({"timeout_ms": 0}, "timeout_ms must be a whole number from 1"),
    ({"timeout_ms": 1 << 60}, "timeout_ms must be a whole number from 1"),
    ({"timeout_ms": "1"}, "malformed: timeout_ms must be"),
    ({"arguments": []}, "arguments must be an object"),
    ({"arguments": {"iterations": -1}}, "arguments/iterations must be"),
    ({"arguments": {"device": "d1"}}, "cannot be passed on"),
    ({"arguments": {"size": "--help"}}, "cannot be passed on"),
    ({"arguments": {"size": ""}}, "cannot be passed on"),
    ({"arguments": {"Size": "small"}}, "cannot be passed on"),
    ({"arguments": {"size": ["small"]}}, "cannot be passed on"),
    ({"arguments": {"a" * (i + 1): 1 for i in range(33)}}, "an object of at most 32"),
])
def test_refused(script, change, cause):
    command = {"command": "run", "run": "R1", "stack": "s", "device": "d0",
               "timeout_ms": FOREVER_MS, "arguments": {}}
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


def test_drain(script, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    with Agent(("s", script(f"echo '{{}}' >&3; read line <{fifo}; exit 0"))) as agent:
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


# The self-test worker


WAITS = {"selftest_hang", "selftest_ignores_term"}


def selftests():
    if not SELFTEST.exists():
        return [pytest.param("", "", marks=pytest.mark.skip("the self-test worker is not built"))]
    out = subprocess.run([SELFTEST, "--catalogue"], capture_output=True, check=True).stdout
    found = [(w["workload"], v["name"]) for w in map(json.loads, out.splitlines())
             if w["workload"].startswith("selftest_") for v in w["variants"]]
    # Events without end are those of test_as_many_events_as_are_allowed_and_one_more.
    return [pytest.param(*each) for each in found if each != ("selftest_flood", "ordered")]


@pytest.mark.parametrize("workload, variant", selftests())
def test_the_agent_survives(workload, variant):
    with Agent(("s", SELFTEST), grace_ms=SHORT_GRACE_MS) as agent:
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
