"""The worker by itself: its events, exit statuses and refusals (workloads/PROTOCOL.md).

Runs the binaries directly, with a pipe as the descriptor of the events.
"""
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

from agent import wait_until

pytestmark = pytest.mark.flavour

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
SELFTEST = BUILD / "tests" / "reprod-worker-selftest"
WORKER = BUILD / "reprod-worker"
HEX32 = re.compile(r"[0-9a-f]{32}\Z")
HEX16 = re.compile(r"[0-9a-f]{16}\Z")
HANG = 0.5  # seconds given to what does not end by itself; nothing depends on its length
LIMIT = 120  # seconds after which a test gives up


def unique(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"duplicate keys in {keys}"
    return dict(pairs)


class Ended:
    """What a worker left: exit status (negative: signal), event bytes, output."""

    def __init__(self, status, raw, stdout, stderr):
        self.status, self.raw, self.stdout, self.stderr = status, raw, stdout, stderr

    @property
    def events(self):
        assert self.raw.endswith(b"\n"), self.raw[-200:]
        lines = self.raw.decode("utf-8").splitlines()
        assert all(len(line) < 65536 for line in lines)
        return [json.loads(line, object_pairs_hook=unique) for line in lines]


def worker(*arguments, binary=SELFTEST, env=None, fd=None, hangs=False):
    """Runs the worker to its end, its events into a file (which takes any amount).  One that
    HANGS is killed some time after its first event."""
    with tempfile.TemporaryFile() as results, open(os.devnull, "rb") as nothing:
        number = fd if fd is not None else results.fileno()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
        environment["OMP_WAIT_POLICY"] = "passive"  # as the agent sets it
        environment.update(env or {})
        environment.setdefault("REPROD_RESULT_FD", str(number))
        process = subprocess.Popen(
            [str(binary), *map(str, arguments)],
            stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=[results.fileno()], env=environment)
        if hangs:
            wait_until("an event", lambda: os.fstat(results.fileno()).st_size > 0)
        try:
            stdout, stderr = process.communicate(timeout=HANG if hangs else LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
        results.seek(0)
        return Ended(process.returncode, results.read(), stdout.decode(errors="replace"),
                     stderr.decode(errors="replace"))


def run(workload, variant="ordered", iterations=3, **options):
    keywords = {k: options.pop(k) for k in ("binary", "env", "fd", "hangs") if k in options}
    arguments = ["--run", "--workload", workload, "--variant", variant,
                 "--iterations", iterations]
    for name, value in options.items():
        arguments += [f"--{name}", value]
    return worker(*arguments, **keywords)


def digests(ended):
    return [e["digest"] for e in ended.events if e["event"] == "iteration"]


def catalogue(binary):
    ended = worker("--catalogue", binary=binary)
    assert ended.status == 0 and ended.stderr == ""
    return [json.loads(line, object_pairs_hook=unique) for line in ended.stdout.splitlines()]


REAL = [w for w in catalogue(SELFTEST) if not w["workload"].startswith("selftest_")]


def check_protocol(ended, iterations, outcome="completed"):
    """Everything the protocol says about the events of an honest run."""
    events = ended.events
    assert ended.status == 0
    start, *between, end = events
    assert start["event"] == "start" and start["v"] == 1
    assert end["event"] == "end" and end["outcome"] == outcome
    assert start["iterations"] == iterations and start["seed"] == "1"
    assert start["pid"] > 0 and isinstance(start["version"], int)
    assert start["device"] == end["device"] == f"cpu:{os.uname().nodename}"
    assert HEX32.match(start["input_digest"])
    assert start["input_digest"] == end["input_digest"]
    for key, value in start["environment"].items():
        assert isinstance(value, (str, int)) and not isinstance(value, bool), key
    assert start["environment"]["backend"] == start["backend"] == "cpu"
    assert start["environment"]["threads"] == start["threads"]
    assert start["environment"]["worker_build"]
    assert start["libraries"], "libc at least"
    for library in start["libraries"]:
        assert library["path"].startswith("/")
        assert library["build_id"] is None or re.fullmatch("[0-9a-f]+", library["build_id"])
    for i, event in enumerate(between):
        assert event["event"] == "iteration" and event["i"] == i
        assert HEX32.match(event["digest"]) and HEX16.match(event["weight_sum"])
        assert event["loss"] is None or HEX16.match(event["loss"])
        assert event["ms"] >= 0 and event["algorithm"]
    if outcome == "completed":
        assert len(between) == end["iterations"] == iterations and end["cause"] is None
        assert end["elements"] > 0
        assert end["bytes_hashed"] > 0 and end["bytes_hashed"] % iterations == 0
    else:
        assert end["cause"]
    return start, between, end


def test_an_honest_run():
    ended = run("selftest_pass")
    start, iterations, end = check_protocol(ended, 3)
    assert (start["workload"], start["variant"], start["size"], start["dtype"]) == (
        "selftest_pass", "ordered", "small", "float32")
    assert end["elements"] == 64 and end["bytes_hashed"] == 3 * 64 * 4
    assert len(set(digests(ended))) == 1
    assert ended.stdout == ended.stderr == "", "a passing run logs nothing"


def test_fresh_processes_and_any_threads_agree():
    seen = {digests(run("selftest_pass", threads=n))[0] for n in (1, 2, 2, 4, 8)}
    assert len(seen) == 1


def test_the_control_varies():
    assert len(set(digests(run("selftest_pass", "unordered")))) == 3


def test_input_digest_is_that_of_the_case():
    def inputs(**options):
        return run("selftest_pass", **options).events[0]["input_digest"]

    assert inputs(variant="ordered") == inputs(variant="unordered") == inputs(threads=7)
    assert inputs() != run("selftest_hang", "unordered").events[0]["input_digest"]
    seeds = {inputs(seed=seed) for seed in (0, 1, 2, 2**64 - 1)}
    assert len(seeds) == 4


def test_seed_is_not_rounded():
    assert run("selftest_pass", seed=2**64 - 1).events[0]["seed"] == str(2**64 - 1)


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_iterations(count):
    check_protocol(run("selftest_pass", iterations=count), count)


@pytest.mark.parametrize("variant", ["ordered", "setup"])
def test_unsupported(variant):
    _, between, end = check_protocol(run("selftest_unsupported", variant), 3, "unsupported")
    assert between == [] and end["iterations"] == end["elements"] == end["bytes_hashed"] == 0
    assert {"ordered": "this variant supports nothing",
            "setup": 'setup found no algorithm "3"'}[variant] == end["cause"]


def test_out_of_memory():
    _, between, end = check_protocol(run("selftest_out_of_memory"), 3, "out_of_memory")
    assert between == [] and "4611686018427387904 bytes" in end["cause"]


@pytest.mark.parametrize("variant,iterations", [("setup", 0), ("ordered", 2)])
def test_infra(variant, iterations):
    _, between, end = check_protocol(run("selftest_infra", variant), 3, "infra")
    assert len(between) == end["iterations"] == iterations


@pytest.mark.parametrize("variant,iterations", [
    ("setup", None), ("compute", 2), ("teardown", 3)])
def test_crash_leaves_no_end(variant, iterations):
    ended = run("selftest_crash", variant)
    assert ended.status == -signal.SIGABRT
    if iterations is None:
        assert ended.raw == b""
    else:
        assert [e["event"] for e in ended.events] == ["start"] + ["iteration"] * iterations


@pytest.mark.parametrize("variant,status", [
    ("at_exit", -signal.SIGABRT), ("exit_status", 7)])
def test_crash_after_end_shows_in_the_status(variant, status):
    ended = run("selftest_crash", variant)
    assert ended.status == status and ended.events[-1]["outcome"] == "completed"


@pytest.mark.parametrize("workload", ["selftest_hang", "selftest_ignores_term"])
def test_hang_leaves_no_end(workload):
    ended = run(workload, hangs=True)
    assert ended.status == -signal.SIGKILL
    assert [e["event"] for e in ended.events] == ["start"]


@pytest.mark.parametrize("variant", ["ordered", "partial"])
def test_unwritten_output_never_repeats(variant):
    seen = digests(run("selftest_stale_output", variant))
    seen += digests(run("selftest_stale_output", variant, iterations=1))
    seen += digests(run("selftest_stale_output", variant, iterations=1))
    assert len(set(seen)) == 5


def test_changed_input_shows_at_the_end():
    events = run("selftest_input_scribbler").events
    assert events[0]["input_digest"] != events[-1]["input_digest"]


def test_nan_shows_in_the_weight_sum():
    ended = run("selftest_nan_everywhere")
    assert {e["weight_sum"] for e in ended.events[1:-1]} == {"7ff8000000000000"}


def test_varies_once_in_every_run():
    ended = run("selftest_varies_once", iterations=9)
    seen = digests(ended)
    assert len(set(seen)) == 2 and seen.count(seen[4]) == 1
    single = {digests(run("selftest_varies_once", iterations=1))[0] for _ in range(2)}
    assert len(single) == 2


def test_varies_rarely_in_many_iterations():
    seen = digests(run("selftest_varies_rarely", iterations=1000))
    assert len(set(seen)) == 2, "1,000 tries of 1/64: missed once in 7 million"


def test_closed_descriptor_of_a_running_worker():
    ended = run("selftest_closes_fd3")
    assert ended.status == 4 and "Bad file descriptor" in ended.stderr
    assert [e["event"] for e in ended.events] == ["start"]


def test_what_the_liars_write():
    """The raw material of the agent's tests is as bad as it claims to be."""
    assert run("selftest_exit_zero_silent").raw == b""
    assert run("selftest_exit_zero_silent").status == 0
    zero = run("selftest_zero_elements")
    assert zero.status == 0 and zero.events[-1]["elements"] == 0
    assert run("selftest_wrong_device").events[-1]["device"] == "cpu:somewhere-else"
    assert run("selftest_wrong_device", "start").events[0]["device"] == "cpu:somewhere-else"
    truncated = run("selftest_truncated_line")
    assert truncated.status == 0 and not truncated.raw.endswith(b"\n")
    assert len(digests(run("selftest_wrong_count"))) == 2
    assert len(digests(run("selftest_wrong_count", "extra"))) == 4
    assert run("selftest_wrong_count", "claimed").events[-1]["iterations"] == 4
    assert b"not \xff JSON" in run("selftest_garbage").raw
    with pytest.raises(AssertionError, match="duplicate keys"):
        run("selftest_duplicate_keys").events
    lines = run("selftest_huge_line").raw.split(b"\n")
    assert max(map(len, lines)) > 65536
    assert len(catalogue_entry("selftest_no_control")["no_control"]) > 0


def test_environment_variables_that_matter():
    env = {"OMP_SCHEDULE": "dynamic,1", "OMP_NUM_THREADS": "7", "TF_CPP_MIN_LOG_LEVEL": "1",
           "CUBLAS_WORKSPACE_CONFIG": 'a"b\\', "GLIBC_TUNABLES": "x" * 300}
    facts = run("selftest_pass", env=env).events[0]["environment"]
    assert facts["env.OMP_SCHEDULE"] == "dynamic,1"
    assert facts["env.CUBLAS_WORKSPACE_CONFIG"] == 'a"b\\'
    assert re.fullmatch("digest:[0-9a-f]{32}", facts["env.GLIBC_TUNABLES"])
    assert "env.OMP_NUM_THREADS" not in facts and "env.TF_CPP_MIN_LOG_LEVEL" not in facts
    assert facts["threads"] == 2


def test_team_that_the_system_refuses_is_infra():
    ended = run("selftest_pass", threads=4, env={"OMP_THREAD_LIMIT": "3"})
    assert ended.status == 0
    assert ended.events[-1]["outcome"] == "infra"
    assert "4 OpenMP threads" in ended.events[-1]["cause"]


@pytest.mark.parametrize("arguments,message", [
    ([], "no command"),
    (["--rnu"], "nearest: '--run'"),
    (["--run"], "'--workload' is missing"),
    (["--run", "--workload", "selftest_pas"], "nearest: 'selftest_pass'"),
    (["--run", "--workload", "selftest_pass", "--variant", "orderd"], "nearest: 'ordered'"),
    (["--run", "--workload", "selftest_pass", "--size", "tiny"], "unknown size 'tiny'"),
    (["--run", "--workload", "selftest_pass", "--dtype", "float3"], "nearest: 'float32'"),
    (["--run", "--workload", "selftest_pass", "--iterations", "0"], "1 .. 1000"),
    (["--run", "--workload", "selftest_pass", "--threads", "257"], "1 .. 256"),
    (["--run", "--workload", "selftest_pass", "--device", "cpu:x"], "unknown device 'cpu:x'"),
    (["--probe", "--seed", "1"], "for --run, --check and --resume only"),
])
def test_refused_arguments(arguments, message):
    ended = worker(*arguments)
    assert ended.status == 2 and message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.raw == b"" and ended.stdout == ""


@pytest.mark.parametrize("value,message", [
    ("99", "descriptor 99 is not open for writing"),
    ("0", "descriptor 0 is not open for writing"),
    ("x", "REPROD_RESULT_FD is 'x'"),
    ("", "REPROD_RESULT_FD is ''"),
    ("-1", "REPROD_RESULT_FD is '-1'"),
])
def test_no_descriptor_to_write_to(value, message):
    ended = run("selftest_pass", env={"REPROD_RESULT_FD": value})
    assert ended.status == 4 and message in ended.stderr


def test_descriptor_3_is_the_default():
    command = f"exec {SELFTEST} --run --workload selftest_pass"
    closed = subprocess.run(["sh", "-c", command + " 3>&-"], capture_output=True, text=True,
                            timeout=LIMIT)
    assert closed.returncode == 4 and "3>&1" in closed.stderr
    opened = subprocess.run(["sh", "-c", command + " 3>&1"], capture_output=True, text=True,
                            timeout=LIMIT)
    assert opened.returncode == 0 and len(opened.stdout.splitlines()) == 12


def test_reader_that_goes_away():
    """A closed pipe ends the run with a status, not with a signal."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        [str(SELFTEST), "--run", "--workload", "selftest_pass", "--iterations", "1000"],
        pass_fds=[write_end], env={**os.environ, "REPROD_RESULT_FD": str(write_end)},
        stderr=subprocess.PIPE)
    os.close(write_end)
    os.read(read_end, 10)
    os.close(read_end)
    _, stderr = process.communicate(timeout=LIMIT)
    assert process.returncode == 4 and b"Broken pipe" in stderr


def test_full_device():
    with open("/dev/full", "wb") as full:
        process = subprocess.run([str(SELFTEST), "--catalogue"], stdout=full,
                                 stderr=subprocess.PIPE, timeout=LIMIT)
    assert process.returncode == 4 and b"No space left" in process.stderr


def catalogue_entry(name):
    return next(w for w in catalogue(SELFTEST) if w["workload"] == name)


def test_what_is_no_race_says_what_it_is():
    kinds = {(entry["workload"], v["name"]): v["kind"] for entry in catalogue(WORKER)
             for v in entry["variants"] if v["control"]}
    assert {key: kind for key, kind in kinds.items() if kind != "race"} == {
        ("dropout", "unseeded"): "entropy", ("hash_seed_order", "process_seed"): "entropy",
        ("weight_init", "unseeded"): "entropy",
        ("uninitialized_read", "uncleared"): "poison", ("conv_autotune", "autotune"): "choice",
        ("inference_autotune", "autotune"): "choice", ("algorithm_cache", "autotune"): "choice"}


def test_catalogue():
    entries = catalogue(SELFTEST)
    names = [entry["workload"] for entry in entries]
    assert names == sorted(names) and "selftest_pass" in names
    for entry in entries:
        assert set(entry) == {
            "workload", "version", "backend", "title", "summary", "variants", "sizes",
            "dtypes", "weight_sum", "loss", "no_control", "references"}
        assert entry["version"] >= 1 and entry["backend"] == "cpu"
        controls = [v for v in entry["variants"] if v["control"] is True]
        assert bool(controls) == (entry["no_control"] is None)
        others = {v["name"] for v in entry["variants"]}
        for variant in entry["variants"]:
            relation = set(variant) - {"name", "summary", "models", "algorithm", "claim",
                                       "subject", "subject_name", "control", "kind"}
            assert len(variant) - len(relation) == 8 + ("kind" in variant)
            assert "kind" in variant or not variant["control"]
            library = "oneDNN" if entry["workload"].startswith("onednn_") else None
            if entry["workload"] != "selftest_library":
                assert variant["subject_name"] == library
            assert variant["subject"] == ("library" if variant["subject_name"] else "model")
            assert relation in (set(), {"equals"}, {"differs"})
            assert all(variant[name] in others - {variant["name"]} for name in relation)
        assert "small" in [size["name"] for size in entry["sizes"]]
        for reference in entry["references"]:
            assert set(reference) == {"kind", "id", "title", "url", "state", "solved"}


def test_self_tests_are_not_in_the_product():
    assert not [w for w in catalogue(WORKER) if w["workload"].startswith("selftest")]


def test_probe_agrees_with_a_run():
    ended = worker("--probe")
    assert ended.status == 0
    probe = json.loads(ended.stdout, object_pairs_hook=unique)
    start = run("selftest_pass").events[0]
    assert set(probe) == {"v", "backend", "worker_build", "checks", "passed", "nonce", "processes", "versions", "problems",
                          "devices", "cause"}
    assert probe["v"] == 1 and probe["cause"] is None and probe["checks"] is True and probe["passed"] is True
    assert probe["nonce"] is True and start["nonce"] is None  # started by hand: none was given
    assert probe["worker_build"] == start["environment"]["worker_build"]
    assert probe["devices"][0]["id"] == start["device"]
    assert probe["devices"][0]["model"] == start["environment"]["model"]
    assert probe["versions"]["libc"] == start["environment"]["libc"]


def test_help_and_version():
    assert "3>&1" in worker("--help").stdout
    version = (REPO / "VERSION").read_text().strip()
    assert worker("--version").stdout.startswith(f"reprod-worker {version} ")


@pytest.mark.parametrize("workload,variant,status", [
    ("selftest_pass", "ordered", 0),
    ("selftest_nan_everywhere", "ordered", 1),
    ("selftest_stale_output", "ordered", 1),
    ("selftest_stale_output", "partial", 1),
    ("selftest_unsupported", "ordered", 5),
    ("selftest_out_of_memory", "ordered", 5),
])
def test_check(workload, variant, status):
    ended = worker("--check", "--workload", workload, "--variant", variant)
    assert ended.status == status
    result = json.loads(ended.stdout, object_pairs_hook=unique)
    assert result["ok"] is (status == 0)
    assert (result["outcome"] == "completed") == (status < 2)


# The other variants: tests/unit/worker/test_workloads.c, and the survey of test_serve.py.
CASES = [(w["workload"], w["variants"][0]["name"]) for w in REAL]


@pytest.mark.parametrize("workload,variant", CASES)
def test_real_workloads_match_their_reference(workload, variant):
    ended = worker("--check", "--workload", workload, "--variant", variant, binary=WORKER)
    assert ended.status in (0, 5), ended.stdout
    result = json.loads(ended.stdout)
    assert result["outcome"] in ("completed", "unsupported")


@pytest.mark.parametrize("workload,variant", CASES)
def test_real_workloads_keep_the_protocol(workload, variant):
    ended = run(workload, variant, iterations=2, binary=WORKER)
    check_protocol(ended, 2, ended.events[-1]["outcome"])
    assert ended.events[-1]["outcome"] in ("completed", "unsupported")
