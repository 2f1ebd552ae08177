"""Runs that a process forks which imported the framework once: "shared_import" of a job."""
import json
import os
import subprocess
import sys

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402

# Says in the log which import this is, and misbehaves in the operation "scaled".
COUNTS = "print('an import', os.getpid(), flush=True)\n"
MISBEHAVES = """def scaled(values, factors):
    what = open(os.environ["TINY_DO"]).read() if "TINY_DO" in os.environ else ""
    exec(what)
    return sum(value * factor for value, factor in zip(values, factors))
"""


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared_import")
    program = tiny.stack(folder / "tiny", "2.0", more=COUNTS + MISBEHAVES)
    (folder / "do").write_text("")
    config = {"stacks": [{"name": "cpu", "worker": str(BUILD / "reprod-worker")},
                         {"name": "tiny", "worker": str(program), "env": {"TINY_DO": str(folder / "do")}}]}
    shared = Service(folder, options=["--no-survey"], config=config)
    shared.do = folder / "do"
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]
    code, text = shared.fsck()
    assert code == 0, text


def measure(service, *workloads, **more):
    job = service.post_job(workloads=["tiny_" + name for name in workloads],
                           **{"stacks": ["tiny"], "runs": 3, "iterations": 2, "shared_import": True, **more})
    assert service.finish_job(job)["state"] == "finished"
    return service.items(f"/v1/runs?job={job}") + service.items(f"/v1/runs?job={job}&challenges=only")


def whole(service, run):
    return service.get(f"/v1/runs/{run['id']}")


@pytest.fixture(scope="module")
def runs(service):
    return [whole(service, run) for run in measure(service, "total", "constant", "refuses")]


def test_it_is_offered_by_what_can(service):
    assert [line["circumstances"] for line in service.get("/v1/workloads/tiny_total")["items"]] \
        == [["contention", "memory_poison_bytes", "allocation_jitter", "shared_import"]]
    status, _, body = service.request("POST", "/v1/jobs", {"workloads": ["reduce_sum"], "shared_import": True})
    assert status == 422 and "cannot compute under shared_import" in str(body)


def test_each_run_is_a_process_of_its_own(runs):
    assert {run["outcome"] for run in runs} == {"completed", "unsupported"}
    assert all(run["circumstances"] == {"shared_import": 1} for run in runs if run["outcome"] == "completed")


def test_runs_of_a_case_share_no_import(runs):
    leaders = {}
    for run in runs:
        leaders.setdefault((run["workload"], run["variant"], run["seed"]), []).append(run["process"]["pid"])
    assert all(len(set(pids)) == len(pids) for pids in leaders.values()), leaders


def test_other_iterations_are_the_same_case(service):
    """So a second job over it needs another import."""
    leaders = []
    for iterations in 1, 2, 3:
        for run in measure(service, "constant", variants=["default"], runs=1, iterations=iterations):
            if not run["challenge"]:
                leaders.append(whole(service, run)["process"]["pid"])
    assert len(leaders) == 3 and len(set(leaders)) == 3


def test_an_import_serves_all_cases(runs):
    plain = [run for run in runs if not run["challenge"]]
    per_variant = {}
    for run in plain:
        per_variant.setdefault(run["variant"], set()).add(run["process"]["pid"])
    assert {name: len(pids) for name, pids in per_variant.items()} == {"default": 3, "deterministic": 3}


def test_a_log_is_that_of_one_run(service, runs):
    logs = {run["id"]: str(service.get(f"/v1/runs/{run['id']}/log")) for run in runs}
    imports = [id_ for id_, log in logs.items() if "an import" in log]
    assert len(imports) == len({run["process"]["pid"] for run in runs})


def test_the_cells_are_those_of_fresh_processes(service, runs):
    fresh = measure(service, "total", "constant", shared_import=False)
    cells = {(run["workload"], run["variant"]): run["cell"] for run in runs if run["cell"] and not run["challenge"]}
    for run in fresh:
        if not run["challenge"]:
            assert cells[run["workload"], run["variant"]] == run["cell"]
    cell = service.get(f"/v1/cells/{cells['tiny_total', 'deterministic']}")
    assert cell["verdict"] == "reproducible", cell["reason"]


@pytest.mark.parametrize("what, outcome, cause", [
    ("os.abort()", "crashed", "SIGABRT"),
    ("os.write(int(os.environ['REPROD_RESULT_FD']), b'{\"event\":\"forked_exited\",\"exit_code\":0}\\n')\nos._exit(3)",
     "crashed", "exit status 3"),
    ("os._exit(3)", "crashed", "exit status 3"),
    ("os.kill(os.getppid(), 9)\nimport time\ntime.sleep(60)", "crashed", "SIGKILL"),
    ("raise SystemExit('enough')", "crashed", "enough"),
    ("os.write(int(os.environ['REPROD_RESULT_FD']), b'{\"event\":\"iter')\nos.kill(os.getpid(), 9)",
     "crashed", "SIGKILL"),
    ("os.write(int(os.environ['REPROD_RESULT_FD']), b'{\"event\":\"iter')\nos._exit(0)", "invalid", "cut off"),
    ("import time\ntime.sleep(3600)", "timeout", ""),
])
def test_what_ends_a_run_is_its_own_trouble(service, what, outcome, cause):
    service.do.write_text(what)
    try:
        ended = measure(service, "scaled", variants=["default"], runs=1, timeout_seconds=5)
    finally:
        service.do.write_text("")
    assert ended and {run["outcome"] for run in ended} == {outcome}
    assert cause in str(whole(service, ended[0])) + str(service.get(f"/v1/runs/{ended[0]['id']}/log"))
    after = measure(service, "scaled", "total", variants=["default"], runs=1)
    assert {run["outcome"] for run in after} == {"completed"}


class Forker:
    """A worker with --fork that no agent asks."""

    def __init__(self, program, **variables):
        told, tells = os.pipe()
        self.process = subprocess.Popen(
            [program, "--fork", "--variant", "default", "--threads", "1", "--device", "cpu:here"], text=True, bufsize=1,
            stdin=subprocess.PIPE, pass_fds=[tells], env={**os.environ, "REPROD_RESULT_FD": str(tells), **variables})
        os.close(tells)
        self.lines = os.fdopen(told)

    def run(self, **more):
        arguments = {"workload": "tiny_scaled", "variant": "default", "size": "small", "dtype": "float32", "seed": "1",
                     "iterations": 1, "shared-import": 1, **more}
        self.process.stdin.write(json.dumps({"arguments": arguments, "nonce": "0f"}) + "\n")
        events = []
        while not events or events[-1]["event"] != "forked_exited":
            events.append(json.loads(self.lines.readline()))
        return events

    def end(self):
        self.process.stdin.close()
        self.lines.close()
        return self.process.wait()


@pytest.mark.parametrize("hides", ["os.setsid()", "os.setpgid(0, 0)"])
def test_what_a_run_leaves_behind_ends_with_it(tmp_path, hides):
    """Whatever group or session it hides in: it could write into the next run, and would compute beside it."""
    left = tmp_path / "left"
    (tmp_path / "do").write_text(f"""import time
if os.fork():
    while not os.path.exists({str(left)!r}):
        time.sleep(0.01)
elif {hides} or os.fork():
    os._exit(0)
else:
    while os.getppid() == os.getpgid(0):
        time.sleep(0.01)
    with open({str(left)!r} + ".part", "w") as out:
        out.write(str(os.getpid()))
    os.rename({str(left)!r} + ".part", {str(left)!r})
    time.sleep(600)
""")
    forker = Forker(tiny.stack(tmp_path / "tiny", "2.0", more=MISBEHAVES), TINY_DO=str(tmp_path / "do"))
    assert [event["event"] for event in forker.run()] == ["start", "iteration", "end", "forked_exited"]
    assert not os.path.exists(f"/proc/{left.read_text()}")
    (tmp_path / "do").write_text("")
    assert forker.run(seed="2")[-1]["exit_code"] == 0
    assert forker.end() == 0


@pytest.mark.parametrize("said, outcome", [
    ('"exit_code":999,"signal":null', "completed"), ('"exit_code":null,"signal":-3', "completed"),
    ('"exit_code":null', "completed"), ('"exit_code":1,"signal":9', "completed"),
    ('"exit_code":0,"signal":null,"max_rss_kb":-1', "crashed"),
])
def test_an_operation_that_speaks_as_the_forker_does(service, said, outcome):
    """It ends its run, or none, and never the agent."""
    forged = "b'{\"event\":\"forked_exited\",\"nonce\":\"' + os.environ['REPROD_NONCE'].encode() + b'\",%s}\\n'" % said
    service.do.write_text(f"import time\nos.write(int(os.environ['REPROD_RESULT_FD']), {forged})\ntime.sleep(1)")
    try:
        ended = measure(service, "scaled", variants=["default"], runs=1)
    finally:
        service.do.write_text("")
    assert {run["outcome"] for run in ended} == {outcome}, ended
    after = measure(service, "scaled", variants=["default"], runs=1)  # while the forker still waits for the other
    assert {run["outcome"] for run in after} == {"completed"}, after
    assert "the agent went away" not in service.log.read_text()


def test_a_framework_that_is_changed_in_place_is_imported_again(start_service, tmp_path):
    """What was imported, and what is loaded from changed files later, would be one measurement."""
    program = tiny.stack(tmp_path / "tiny", "2.0")
    own = start_service(worker=None, config={"stacks": [{"name": "tiny", "worker": str(program)}]})
    before = {run["environment"] for run in measure(own, "total", variants=["default"], runs=1)}
    with open(tmp_path / "tiny" / "lib" / "tinyframe" / "__init__.py", "a") as source:
        source.write("# patched\n")
    runs = measure(own, "constant", variants=["default"], runs=1)
    outcomes = {run["outcome"]: whole(own, run) for run in runs}
    assert set(outcomes) == {"infra", "completed"}, runs
    assert "changed after they were imported" in outcomes["infra"]["cause"]
    after = {run["environment"] for run in runs if run["outcome"] == "completed"}
    assert len(after) == 1 and not after & before
    assert "tinyframe_files_changed" in str(own.get("/v1/environments/" + after.pop()))


def test_a_drift_asks_for_the_import_that_it_lacks(start_service, tmp_path):
    """The other side shared one: only runs that share one, too, are comparable with it."""
    config = {"stacks": [{"name": name, "worker": str(tiny.stack(tmp_path / name, version))}
                         for name, version in (("old", "1.0"), ("new", "2.0"))]}
    own = start_service(worker=None, config=config)
    before, = {run["environment"] for run in measure(own, "total", variants=["deterministic"], stacks=["old"])}
    after, = {run["environment"] for run in measure(own, "total", variants=["deterministic"], stacks=["new"],
                                                    shared_import=False)}

    def case():
        [drift] = own.get(f"/v1/drift?from={before}&to={after}")["items"]
        [found] = [case for group in drift["groups"] for case in group["cases"]]
        return found

    lacks = case()
    assert lacks["kind"] == "cannot_be_told_yet" and "before a shared import, now plain" in lacks["reason"]
    job = own.post_job(**lacks["to_run"])
    assert own.finish_job(job)["state"] == "finished"
    assert case()["kind"] == "same_bits", case()


def test_nothing_is_left_when_the_service_stops(tmp_path):
    program = tiny.stack(tmp_path / "tiny", "2.0", more=COUNTS)
    config = {"stacks": [{"name": "tiny", "worker": str(program)}]}
    own = Service(tmp_path, options=["--no-survey"], config=config)
    own.start()
    measured = measure(own, "total", runs=1)
    leader = whole(own, measured[0])["process"]["pid"]
    assert os.path.exists(f"/proc/{leader}")  # it waits for more
    assert own.stop() == 0
    assert not os.path.exists(f"/proc/{leader}")
