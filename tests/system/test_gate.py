"""reprod check and the other commands that ask a service: what passes, what fails, and that nothing else passes."""
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402

EQUAL, DIFFERENT, UNVERIFIED, UNREACHABLE = 0, 1, 2, 3
# name of the stack: (version, how its tinyframe behaves)
STACKS = {"good": ("1.0", {"more": tiny.SCALED}), "other": ("2.0", {"more": tiny.SCALED, "start": "1e-9"}),
          "idle-switch": ("3.0", {"switch": "False"})}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    stacks = [{"name": name, "worker": str(tiny.stack(folder / name, version, **behaviour))}
              for name, (version, behaviour) in STACKS.items()]
    own = Service(folder, options=["--no-survey"], config={"stacks": stacks})
    own.start()
    yield own
    assert own.stop() == 0
    assert own.fsck()[0] == 0


def reprod(service, *words, given=None, **variables):
    """(exit status, standard output, standard error)"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("REPROD_SERVER", "GITHUB_"))}
    if service is not None:
        environment["REPROD_SERVER"] = service if isinstance(service, str) else f"http://127.0.0.1:{service.port}"
    done = subprocess.run([str(BUILD / "reprod"), *words], input=given, capture_output=True, text=True, timeout=300,
                          env={**environment, **variables})
    return done.returncode, done.stdout, done.stderr


def check(service, job, *words, **variables):
    return reprod(service, "check", "--job", "-", *words, given=json.dumps(job), **variables)


def job(stack, *operations, **more):
    return {"workloads": [f"tiny_{name}" for name in operations], "stacks": [stack], "runs": 3, "iterations": 2, **more}


def environment_of(service, version):
    [one] = [each["id"] for each in service.get("/v1/environments")["items"] if each["facts"]["tinyframe"] == version]
    return one


def test_what_is_equal_passes(service):
    code, said, errors = check(service, job("good", "total"))
    assert (code, errors) == (EQUAL, ""), said
    first, last = said.splitlines()
    assert first.startswith("equal       tiny_total deterministic (small, float32, seed 1) on cpu:")
    assert "1 digest in 3 runs" in first and last.startswith("1 equal, 0 different, 0 unverified (job 01")


def test_what_differs_fails(service, tmp_path):
    """The switch does nothing."""
    code, said, _ = check(service, job("idle-switch", "total"), "--junit", str(tmp_path / "j.xml"))
    assert code == DIFFERENT and said.startswith("different   tiny_total deterministic"), said
    [suite] = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert suite.attrib == {"name": "tiny_total", "tests": "1", "failures": "1", "errors": "0"}
    [case] = suite
    assert case[0].tag == "failure" and "digests differ" in case[0].get("message")


def test_a_control_that_did_not_vary_never_passes(service, tmp_path):
    code, said, _ = check(service, job("good", "scaled"), "--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "m.md"))
    assert code == UNVERIFIED and "unverified  tiny_scaled deterministic" in said and "the control did not vary" in said
    [[case]] = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert case[0].tag == "error" and case[0].get("type") == "unverified"
    table = (tmp_path / "m.md").read_text()
    assert table.startswith("### reprod: 0 equal, 0 different, 1 unverified") and "| unverified | tiny\\_scaled" in table


@pytest.mark.long
def test_what_differs_outweighs_what_is_unverified(service):
    more = job("good", "total", "scaled")
    code, said, _ = check(service, {**more, "stacks": ["good", "idle-switch"]})
    assert code == DIFFERENT
    assert [line.split()[0] for line in said.splitlines()] == ["different", "unverified", "equal", "1"]


@pytest.mark.long
def test_controls_alone_are_nothing(service, tmp_path):
    code, said, _ = check(service, job("good", "total", variants=["default"]), "--junit", str(tmp_path / "j.xml"))
    assert code == UNVERIFIED and "there was nothing to check" in said
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (root.get("tests"), root.get("errors")) == ("1", "1"), "a file without a test is read as a success"


@pytest.mark.long
def test_one_run_is_unverified(service):
    assert check(service, job("good", "total", runs=1))[0] == UNVERIFIED


def test_what_raises_is_unverified(service):
    code, said, _ = check(service, job("good", "refuses"))
    assert code == UNVERIFIED and "refuses has no deterministic implementation" in said


@pytest.mark.long
def test_against_another_version(service):
    for name in "good", "other":
        assert check(service, job(name, "total"))[0] == EQUAL
    old = environment_of(service, "1.0")
    code, said, _ = check(service, job("other", "total"), "--against", old)
    assert code == DIFFERENT and f"against {old}: bits_changed" in said
    code, said, _ = check(service, job("good", "total"), "--against", old)
    assert code == EQUAL, "of the same environment it is the same cell"
    code, said, errors = check(service, job("good", "total"), "--against", "0" * 32)
    assert code == UNVERIFIED and "environment" in errors
    code, said, _ = check(service, job("other", "total", seed="5"), "--against", old)
    assert code == UNVERIFIED and f"against {old}: " in said, "it was not measured there"


@pytest.mark.long
def test_cost(service):
    code, said, _ = check(service, job("good", "total"), "--cost-limit", "1e-6")
    assert code == DIFFERENT and "times as long as default, more than 1e-06" in said
    assert check(service, job("good", "total"), "--cost-limit", "1e5")[0] == EQUAL
    assert check(service, job("good", "total", seed="6", runs=2), "--cost-limit", "1e5")[0] == UNVERIFIED


TAGS = """import random, sys
import reprod_probe as probe
for _ in probe.iterations():
    source = random.Random(probe.seed())
    tags = probe.monitor([f"tag{source.random()}" for i in range(200)], "data/tags")
    worth = {tag: source.gauss(0, 1) * 10 ** source.uniform(-6, 6) for tag in tags}
    total = 0.0
    for tag in set(tags) if probe.request().variant != "sorted" else tags:
        total = total / 3 + worth[tag]  # no two orders give the same, as two of a plain sum may
    probe.monitor(total, "total", inputs=(tags, list(worth.values())))
    probe.finish(total)
"""
RANDOM = {"environment": {"PYTHONHASHSEED": "random"}}


def tags(folder, *variants):
    """A configuration with the program above."""
    folder.mkdir()
    (folder / "tags.py").write_text(TAGS)
    shutil.copy(ROOT / "workloads" / "python" / "reprod_probe.py", folder)
    (folder / "reprod.json").write_text(json.dumps({"workloads": [{
        "name": "tags", "command": [sys.executable, "tags.py"], "directory": str(folder), "subject": "framework",
        "subject_name": "Python", "files": ["tags.py"], "variants": list(variants)}]}))
    return ["check", "--local", "--config", str(folder / "reprod.json"), "--workload", "tags", "--runs", "3"]


def test_a_service_of_its_own_names_the_place(tmp_path):
    """--local and --localise: what varies, and what does not; nothing is left behind."""
    words = tags(tmp_path / "a", {"name": "random", "control": True, **RANDOM}, {"name": "set", **RANDOM}, {"name": "sorted"})
    code, said, errors = reprod(None, *words, "--localise", "20", "--junit", str(tmp_path / "j.xml"), TMPDIR=str(tmp_path))
    assert (code, errors) == (DIFFERENT, ""), said
    different, equal, _ = said.splitlines()
    assert different.startswith("different   tags set ") and "wrote something else is 'total' at step 0 of iteration 0" in different
    assert equal.startswith("equal       tags sorted ") and "wrote something else" not in equal
    [[case, _]] = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert "'total' at step 0" in case[0].get("message") and case[0].text.startswith("/v1/cells/"), "its address is gone"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "j.xml"]


@pytest.mark.long
def test_a_service_of_its_own_passes_and_does_not(tmp_path):
    words = tags(tmp_path / "a", {"name": "random", "control": True, **RANDOM}, {"name": "set", **RANDOM}, {"name": "sorted"})
    code, said, _ = reprod(None, *words, "--variant", "random,sorted", TMPDIR=str(tmp_path))
    assert code == EQUAL, said
    words = tags(tmp_path / "b", {"name": "seeded", "control": True}, {"name": "sorted"})
    code, said, _ = reprod(None, *words, "--localise", "20", TMPDIR=str(tmp_path))
    assert code == UNVERIFIED and "the control did not vary in 3 runs" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, *(pytest.param(number, marks=pytest.mark.long)
                                                     for number in (signal.SIGTERM, signal.SIGKILL))])
def test_a_check_that_is_ended_leaves_nothing_behind(tmp_path, number):
    """Whether its group is told, as by a terminal, or it alone."""
    words = tags(tmp_path / "a", {"name": "random", "control": True, **RANDOM}, {"name": "sorted"})
    waiting = subprocess.Popen([str(BUILD / "reprod"), *words[:-1], "100000"], start_new_session=True, stdout=subprocess.DEVNULL,
                               env={**os.environ, "TMPDIR": str(tmp_path)})
    wait_for(lambda: list(tmp_path.glob("reprod-check-*/reprod.db")))
    (os.killpg if number == signal.SIGINT else os.kill)(waiting.pid, number)
    assert waiting.wait(300) in (128 + signal.SIGTERM, 128 + signal.SIGINT, -signal.SIGKILL)
    wait_for(lambda: str(tmp_path) not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout)
    if number != signal.SIGKILL:
        assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.long
def test_what_a_killed_agent_left_is_ended(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "reprod.json").write_text(json.dumps({"workloads": [{
        "name": "sleeps", "command": ["sh", "-c", "sleep 54321; true"], "directory": str(tmp_path), "subject": "framework", "subject_name": "own",
        "no_control": "it only sleeps", "variants": [{"name": "only"}]}]}))
    waiting = subprocess.Popen([str(BUILD / "reprod"), "check", "--local", "--config", str(tmp_path / "a" / "reprod.json"),
                                "--workload", "sleeps"], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL)

    def pids(word):
        lines = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout.splitlines()
        return [int(line.split()[0]) for line in lines if word in line]
    wait_for(lambda: pids("sleep 54321"))
    agents = [pid for pid in pids(f"{BUILD}/reprod agent") if str(tmp_path).encode() in open(f"/proc/{pid}/cmdline", "rb").read()]
    assert agents
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    waiting.terminate()
    assert waiting.wait(300) == 128 + signal.SIGTERM
    wait_for(lambda: not pids("sleep 54321"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


@pytest.mark.long
def test_a_database_of_its_own_is_kept(tmp_path):
    words = tags(tmp_path / "a", {"name": "random", "control": True, **RANDOM}, {"name": "sorted"}) + ["--data", str(tmp_path / "data")]
    for runs in 3, 6:
        code, said, _ = reprod(None, *words)
        assert code == EQUAL and f"1 digest in {runs} runs" in said, said
    own = Service(tmp_path / "own", options=["--no-survey"])
    own.start()
    code, said, errors = reprod(None, "check", "--local", "--data", str(own.data), "--workload", "bias_add_bwd")
    assert (code, said) == (UNREACHABLE, "") and "ended before it was ready" in errors and len(errors.splitlines()) > 1
    assert own.stop() == 0


@pytest.mark.long
def test_a_service_of_its_own_that_cannot_measure_says_so(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"stacks": [{"name": "cpu", "worker": "/nowhere/worker"}]}))
    code, said, errors = reprod(None, "check", "--local", "--config", str(tmp_path / "c.json"), "--workload", "reduce_sum")
    assert (code, said) == (UNREACHABLE, "") and "the service of this check is not ready: devices: " in errors


@pytest.mark.long
def test_annotations(service, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    code, said, _ = check(service, job("good", "scaled"), GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert code == UNVERIFIED
    [line] = [line for line in said.splitlines() if line.startswith("::")]
    assert line.startswith("::error title=reprod%3A unverified::tiny_scaled deterministic")
    assert summary.read_text().startswith("before\n### reprod: ")
    code, said, errors = check(service, job("good", "total"), "--junit", str(tmp_path / "none" / "j.xml"))
    assert code == UNVERIFIED and "No such file" in errors, "a report that nobody gets is no pass"


@pytest.mark.long
def test_workloads_are_named(service):
    code, said, _ = reprod(service, "check", "--workload", "tiny_total", "--runs", "2", "--iterations", "2", "--size", "small")
    assert code == EQUAL and "tiny_total deterministic" in said
    code, _, errors = reprod(service, "check", "--workload", "tiny_totl")
    assert code == UNVERIFIED and "there is no workload 'tiny_totl'; did you mean 'tiny_total'?" in errors
    code, _, errors = reprod(service, "check", "--workload", "tiny_total", "--runs", "many")
    assert code == UNVERIFIED and "/runs: " in errors


@pytest.mark.parametrize("words, message", [
    ([], "give either --workload NAME,NAME or --job FILE"),
    (["--workload", "a", "--job", "b"], "give either --workload NAME,NAME or --job FILE"),
    (["--job", "-", "--runs", "3"], "with --job the file says what is measured"),
    (["--workload"], "--workload needs a value"),
    (["--wrkload", "a"], "there is no option '--wrkload'; did you mean '--workload'?"),
    (["--workload", "a", "--cost-limit", "0"], "--cost-limit 0: it is a factor"),
    (["--workload", "a", "--cost-limit", "1.2x"], "--cost-limit 1.2x: it is a factor"),
    (["--workload", "a", "--localise", "1"], "--localise 1: it is a number of runs, from 2 to 10000"),
    (["--workload", "a", "--local=1"], "--local takes no value"),
    (["--workload", "a", "--local"], "--local starts a service: it asks none at --server"),
    (["--workload", "a", "--data", "b"], "--data is of the service that --local starts"),
    (["--workload", "a", "--config", "b"], "--config is of the service that --local starts"),
    (["a"], "'a' is one argument too many"),
    (["--job", "/nowhere"], "/nowhere: No such file or directory"),
    (["--workload", "a", "--server", "https://a:1"], "asks for TLS"),
])
def test_what_is_wrong_is_said(words, message):
    more = ["--server", "http://127.0.0.1:1"] if "--local" in words else []
    code, said, errors = reprod("http://127.0.0.1:1", "check", *words, *more)
    assert (code, said) == (UNVERIFIED, "") and message in errors


def test_no_service_is_no_pass():
    code, _, errors = reprod("http://127.0.0.1:1", "check", "--workload", "a")
    assert code == UNREACHABLE and "no service answers at http://127.0.0.1:1: Connection refused" in errors


class Strange(http.server.BaseHTTPRequestHandler):
    """What answers instead of a service."""

    def do_GET(self):
        self.wfile.write(self.server.answer)
        self.close_connection = True

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("answer, message", [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\":", "went away before its answer was whole"),
    (b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"), (b"", "went away before its answer was whole"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "is no reprod"),
    (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "the service refused (status 503)"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b"[" * 2000, "is no reprod"),
])
def test_strange_answers_are_no_pass(answer, message):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Strange)
    server.answer = answer
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code, said, errors = reprod(f"http://127.0.0.1:{server.server_port}", "check", "--workload", "a")
    server.shutdown()
    server.server_close()
    assert (code, said) == (UNREACHABLE, "") and message in errors


class Leaves(http.server.BaseHTTPRequestHandler):
    """A service that goes away twice while a job runs, once in the middle of an answer."""
    job = json.dumps({"id": "J", "state": "finished", "progress": {}, "items": []}).encode()

    def do_GET(self):
        self.server.asked.append(self.path)
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(self.job) + self.job
        self.wfile.write({1: b"", 2: whole[:-9]}.get(len(self.server.asked), whole))
        self.close_connection = True

    def do_POST(self):
        self.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n" % len(self.job) + self.job)
        self.close_connection = True

    def log_message(self, *_):
        pass


def test_a_service_that_goes_away_between_two_answers_is_asked_again():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Leaves)
    server.asked = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code, said, errors = reprod(f"http://127.0.0.1:{server.server_port}", "check", "--workload", "a")
    server.shutdown()
    server.server_close()
    assert (code, errors) == (UNVERIFIED, "") and "there was nothing to check" in said
    assert server.asked[:3] == ["/v1/jobs/J"] * 3 and server.asked[3].startswith("/v1/runs?job=J")


def test_the_other_commands(service):
    code, said, _ = reprod(service, "status")
    assert code == 0 and said.startswith(f"http://127.0.0.1:{service.port} is ready, reprod ") and "cpu" not in said.splitlines()[0]
    code, said, errors = reprod(service, "submit", "-", given=json.dumps(job("good", "total")))
    assert (code, errors) == (0, "")
    own = said.strip()
    code, said, _ = reprod(service, "wait", own)
    assert code == 0 and said == f"{own} finished: 6 of 6 runs, 0 failed\n"
    assert reprod(service, "wait", "nothing")[::2] == (1, "reprod: there is no job 'nothing' (status 404)\n")
    code, said, _ = reprod(service, "matrix", "--view", "environments", "--workload", "tiny_total")
    assert code == 0 and "tiny_total" in said
    assert reprod(service, "matrix", "--view", "nothing")[0] == 2
    assert check(service, job("other", "total"))[0] == EQUAL
    old, new = environment_of(service, "1.0"), environment_of(service, "2.0")
    code, said, _ = reprod(service, "drift", old, new)
    assert code == 0 and "tiny_total" in said
    assert reprod(service, "drift", old)[0] == 2


@pytest.mark.long
def test_a_service_that_starts_anew_is_waited_for(tmp_path):
    own = Service(tmp_path, options=["--no-survey"], config={
        "stacks": [{"name": "good", "worker": str(tiny.stack(tmp_path / "good", "1.0"))}]})
    own.start()
    port = own.port
    waiting = subprocess.Popen([str(BUILD / "reprod"), "check", "--job", "-", "--server", f"127.0.0.1:{port}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    waiting.stdin.write(json.dumps(job("good", "total", runs=20)))
    waiting.stdin.close()
    own.wait(lambda: own.get("/v1/runs?limit=1")["items"], "a run")
    own.kill()
    own.options += ["--listen", f"127.0.0.1:{port}"]
    own.start()
    said = waiting.stdout.read()
    assert waiting.wait(300) == EQUAL, said
    assert own.stop() == 0
