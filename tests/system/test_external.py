"""External workloads: commands of the configuration, through the whole service."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from service import BUILD, LIMIT, ROOT, SELFTEST_WORKER, Service
from test_external_refused import GOOD_WORKLOAD

FIXTURE = ROOT / "tests" / "fixtures" / "external" / "broken.py"
# variant: the outcome of its runs, and what the cause says
BROKEN = {
    "exit_zero": ("crashed", "without an end event"),
    "exit_zero_child": ("crashed", "without an end event"),
    "to_stdout": ("crashed", "events belong on descriptor 3, not on standard output"),
    "no_start": ("invalid", "iteration before start"),
    "no_end": ("crashed", "exit status 0 without an end event"),
    "no_end_child": ("crashed", "exit status 0 without an end event"),
    "cut_off": ("invalid", "cut off"),
    "wrong_json": ("invalid", "line 2: not JSON"),
    "two_on_a_line": ("invalid", "line 2: "),
    "huge_line": ("invalid", "longer lines"),
    "wrong_device": ("invalid", "device is 'cpu:elsewhere'"),
    "other_workload": ("invalid", "workload is 'pass', 'broken' was asked for"),
    "no_version": ("invalid", "protocol version 2 is not 1"),
    "no_environment": ("invalid", "environment must be an object"),
    "other_backend": ("invalid", "environment.backend is not backend"),
    "no_claim": ("invalid", "start: claim is missing"),
    "no_seed": ("invalid", "start: seed must be a text"),
    "no_nonce": ("invalid", "start: nonce is missing"),
    "replay": ("invalid", "these events are of another run"),
    "other_process": ("invalid", "is not a process of this run"),
    "no_process": ("invalid", "start: pid 0 is not a process of this run"),
    "second_start": ("invalid", "a second start event"),
    "killed": ("crashed", "SIGKILL"),
    "nan": ("invalid", "NaN"),
    "infinite": ("invalid", "iteration 0: weight_sum is infinite"),
    "too_few": ("invalid", "1 of 2 iterations"),
    "too_many": ("invalid", "more iterations than the 2"),
    "no_work": ("invalid", "no proof of work"),
    "inputs_change": ("invalid", "the inputs changed during the run"),
    "ends_elsewhere": ("invalid", "device at the end is 'cpu:b'"),
    "no_cause": ("invalid", "infra without a cause"),
    "green": ("invalid", "'reproducible' is no outcome"),
    "after_end": ("invalid", "an event after end"),
    "exit_one": ("invalid", "exit status 1 after the end event"),
    "other_inputs": ("invalid", "its inputs have digest bbbb"),
    "changes_itself": ("invalid", "the command changed while it ran: state"),
    "hangs": ("timeout", "deadline"),
    "ignores_term": ("timeout", "deadline"),
}
SLOW = ["hangs", "ignores_term"]
# child: complete, and leaves one that holds descriptor 3; wrapped: its child does it all
GOOD = ["varies", "steady", "child", "wrapped"]
SHOW = "import json, os, sys; print(json.dumps([dict(os.environ), sys.argv[1:], os.getcwd()]))"


def variants(names):
    return [{"name": name, "control": name == "varies"} for name in names]


def recipes():
    tables = [json.loads(path.read_text()) for path in
              sorted((ROOT / "workloads" / "profiles").glob("*.json"))]
    return sorted({recipe["name"] for table in tables for recipe in table["recipes"]})


def configuration(folder):
    show = {
        "name": "show", "command": ["python3", "-c", SHOW], "subject": "framework", "subject_name": "own", "no_control": "computes nothing",
        "environment": {"GREETING": "hello", "LANG": "C", "REPROD_DIGEST": "python"}, "version": 7,
        "sizes": {"small": ["--epochs", "1"], "large": ["--epochs", "90"]},
        "variants": [{"name": "plain"},
                     {"name": "set", "recipe": "TDO", "arguments": ["--more"],
                      "environment": {"PYTHONHASHSEED": None, "GREETING": "bye",
                                      "OMP_NUM_THREADS": "3"}},
                     *({"name": f"recipe{i}", "recipe": r} for i, r in enumerate(recipes()))]}
    return {"grace_ms": 200, "stacks": [{"name": "cpu", "worker": str(SELFTEST_WORKER)}],
            "workloads": [
                {"name": "broken", "command": ["python3", "broken.py"], "subject": "framework", "subject_name": "own", "directory": "broken",
                 "files": ["state"], "timeout_seconds": 300,
                 "variants": variants([*GOOD, *(name for name in BROKEN if name not in SLOW)])},
                {"name": "slow", "command": ["python3", "broken.py"], "subject": "framework", "subject_name": "own", "directory": "broken",
                 "timeout_seconds": 1, "variants": variants(["varies", "steady", *SLOW])},
                {"name": "quiet", "command": ["python3", "broken.py"], "subject": "framework", "subject_name": "own", "directory": "broken",
                 "circumstances": ["contention"], "sizes": {"small": [], "wordy": ["x" * 7000, "y" * 7000]},
                 "variants": variants(["varies", "steady"])},
                show,
                {**show, "name": "no_program", "command": ["no-such-program"]},
                {**show, "name": "no_directory", "directory": "/no/such/directory"},
                {**show, "name": "no_file", "files": ["no-such-file"]},
                {**show, "name": "no_permission", "command": ["./broken/broken.py"]},
                {**show, "name": "no_gpu", "backend": "cuda"},
            ]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("external")
    (folder / "broken").mkdir()
    shutil.copy(FIXTURE, folder / "broken" / "broken.py")
    (folder / "broken" / "broken.py").chmod(0o644)
    (folder / "broken" / "state").write_text("")
    shared = Service(folder, options=["--no-survey"], config=configuration(folder),
                     env={"LEAK": "1", "TF_DETERMINISTIC_OPS": "1", "OMP_SCHEDULE": "static"})
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]
    code, text = shared.fsck()
    assert code == 0, text


def runs_of(service, **request):
    job = service.post_job(**{"runs": 1, "iterations": 2, **request})
    shown = service.finish_job(job, 2 * LIMIT)
    assert shown["state"] == "finished"
    return service.items(f"/v1/runs?job={job}")


def shown(run, service):
    """What the command of workload show saw: environment, arguments, directory."""
    return json.loads(service.get(f"/v1/runs/{run['id']}/log.txt"))


def facts(service, environment):
    found = service.get(f"/v1/matrix?environment={environment}")["variants"]
    return {(fact["workload"], fact["variant"]): fact for fact in found}


# What a broken command shows

def broken_runs(service):
    """Two runs of everything, the good ones first."""
    names = [name for name in BROKEN if name not in SLOW]
    runs = runs_of(service, workloads=["broken"], variants=GOOD, runs=2)
    runs += runs_of(service, workloads=["broken"], variants=names, runs=2)
    return runs + runs_of(service, workloads=["slow"], variants=SLOW, runs=2)


@pytest.mark.long
def test_a_broken_command_earns_nothing_and_says_why(service):
    runs = broken_runs(service)
    for name, (outcome, words) in BROKEN.items():
        own = [run for run in runs if run["variant"] == name]
        assert len(own) >= 2
        for run in own:
            assert run["outcome"] == outcome and words in run["cause"], run
    completed = {run["variant"] for run in runs if run["outcome"] == "completed"}
    assert completed == set(GOOD)
    environments = {run["environment"] for run in runs if run["environment"]}
    verdicts = {(*key, fact["verdict"]) for e in environments
                for key, fact in facts(service, e).items()}
    assert {v for v in verdicts if v[2] not in ("failing", "unmeasured")} == {
        ("broken", "varies", "varies"), ("broken", "steady", "reproducible"),
        ("broken", "child", "reproducible"), ("broken", "wrapped", "reproducible")}
    service.wait(lambda: not processes_in(service.folder / "broken"), "the end of every child")


def processes_in(folder):
    """Also those that lead a session of their own."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == folder:
                found.append(entry.name)
        except OSError:
            pass
    return found


def test_a_command_without_its_control_is_not_green(service):
    runs = runs_of(service, workloads=["quiet"], variants=["steady"], runs=2)
    assert [run["outcome"] for run in runs] == ["completed"] * 2
    assert facts(service, runs[0]["environment"])["quiet", "steady"]["verdict"] == "inconclusive"


# What a command gets, and what is shown

def test_what_a_command_gets(service):
    [run] = runs_of(service, workloads=["show"], variants=["plain"], seed=2**32 + 5,
                    sizes=["large"])
    environment, arguments, directory = shown(run, service)
    [device] = service.get("/v1/devices")["items"]
    assert run["outcome"] == "crashed" and run["device"] == device["id"]
    assert arguments == ["--epochs", "90"] and directory == str(service.folder)
    expected = {"RESULT_FD": "3", "WORKLOAD": "show", "VERSION": "7", "VARIANT": "plain",
                "SIZE": "large", "DTYPE": "float32", "SEED": str(2**32 + 5), "ITERATIONS": "2",
                "DEVICE": device["id"], "BACKEND": "cpu", "MODEL": device["model"],
                "RECIPE": "none", "DIGEST": "python"}
    given = {name.removeprefix("REPROD_"): value for name, value in environment.items()
             if name.startswith("REPROD_") and name not in os.environ}
    threads, build = given.pop("THREADS"), given.pop("WORKER_BUILD")
    assert re.fullmatch("[0-9a-f]{32}", given.pop("NONCE"))
    assert given == expected and re.fullmatch("[0-9a-f]{32}", build) and int(threads) >= 1
    assert environment["OMP_NUM_THREADS"] == threads and environment["PYTHONHASHSEED"] == "5"
    assert environment["GREETING"] == "hello" and environment["LANG"] == "C"
    assert not {"LEAK", "TF_DETERMINISTIC_OPS", "OMP_SCHEDULE"} & set(environment)


def test_what_is_to_be_recorded(service):
    [run] = runs_of(service, workloads=["show"], variants=["plain"],
                    probes={"every": 2, "names": "conv*", "steps": [0, 10]})
    environment, _, _ = shown(run, service)
    given = {name: value for name, value in environment.items() if "PROBE" in name}
    assert given == {"REPROD_PROBES": "2", "REPROD_PROBE_NAMES": "conv*",
                     "REPROD_PROBE_STEPS": "0-10"}


def test_circumstances_are_those_that_its_configuration_lists(service):
    """The command that lists contention does not compute under it, and its run shows that."""
    code, _, problem = service.request("POST", "/v1/jobs", {"workloads": ["quiet"], "contention": 2,
                                                            "memory_poison": True})
    assert code == 422 and "'quiet' cannot compute under memory_poison" in json.dumps(problem)
    [run] = runs_of(service, workloads=["quiet"], variants=["steady"], contention=2)
    assert run["outcome"] == "invalid" and "contention" in run["cause"]


def test_what_a_variant_sets(service):
    [run] = runs_of(service, workloads=["show"], variants=["set"])
    environment, arguments, _ = shown(run, service)
    assert arguments == ["--epochs", "1", "--more"]
    assert environment["TF_DETERMINISTIC_OPS"] == "1" and environment["REPROD_RECIPE"] == "TDO"
    assert environment["GREETING"] == "bye" and environment["OMP_NUM_THREADS"] == "3"
    assert "PYTHONHASHSEED" not in environment
    [entry] = service.get("/v1/workloads/show")["items"]
    variant = next(v for v in entry["variants"] if v["name"] == "set")
    assert variant["recipe"] == "TDO" and variant["arguments"] == ["--more"]
    assert variant["environment"] == {"TF_DETERMINISTIC_OPS": "1", "PYTHONHASHSEED": None,
                                      "GREETING": "bye", "OMP_NUM_THREADS": "3"}
    assert "sets TF_DETERMINISTIC_OPS=1" in variant["models"]
    assert "unsets PYTHONHASHSEED" in variant["models"]
    assert entry["external"] and not entry["survey"] and entry["timeout_seconds"] == 600


def test_what_a_configuration_may_hold_a_hello_may_hold(service):
    [entry] = service.get("/v1/workloads/quiet")["items"]
    assert entry["sizes"][1] == {"name": "wordy", "description": "x" * 7000 + " " + "y" * 7000}


def test_each_line_of_a_job_has_the_time_that_its_workload_needs(service):
    """However long another workload of the job may take."""
    def times_of(**request):
        job = service.finish_job(service.post_job(**request, variants=["plain", "steady"],
                                                  runs=1))
        return {item["workload"]: item["timeout_seconds"] for item in job["items"]}
    assert times_of(workloads=["show", "slow"]) == {"show": 600, "slow": 60}
    assert times_of(workloads=["show", "slow"], timeout_seconds=5) == {"show": 5, "slow": 5}


# Where it is, and is not

def test_its_stack(service):
    stacks = {stack["name"]: stack for stack in service.get("/v1/stacks")["items"]}
    own, gpu = stacks["external"], stacks["external-cuda"]
    assert own["backend"] == "cpu" and own["cause"] is None and own["worker"] is None
    assert own["devices"] == stacks["cpu"]["devices"]
    assert set(own["versions"]) == {"broken", "slow", "quiet", "show"}
    problems = own["problems"]
    assert "no program 'no-such-program' in /usr/local/bin:" in problems["no_program"]
    assert "/no/such/directory: No such file" in problems["no_directory"]
    assert "no-such-file" in problems["no_file"]
    assert "broken.py is no program" in problems["no_permission"]
    assert "no stack of this host has a device of backend cuda" in gpu["cause"]
    [device] = service.get("/v1/devices")["items"]
    assert device["stack"] == "cpu" and device["stacks"] == ["cpu", "external"]


@pytest.mark.parametrize("workload", ["no_program", "no_directory", "no_file", "no_permission"])
def test_a_host_that_lacks_something_says_so(service, workload):
    runs = runs_of(service, workloads=[workload], variants=["plain"])
    assert runs
    for run in runs:
        assert run["outcome"] == "infra"
        assert f"workload '{workload}' cannot run on this host: " in run["cause"]


def test_a_device_that_is_not_there(service):
    status, _, problem = service.request("POST", "/v1/jobs", {"workloads": ["no_gpu"]})
    assert status == 422 and problem["errors"][0]["pointer"] == "/workloads/0"
    assert "no implementation for any chosen device and stack" in problem["detail"]


@pytest.mark.parametrize("request_", [{"survey": True}, {"sizes": ["small"]}])
def test_only_named(service, request_):
    """Neither a survey nor a job that names no workloads has what does not ask for it."""
    job = service.post_job(**request_, runs=1, timeout_seconds=1)
    items = service.get(f"/v1/jobs/{job}")["items"]
    service.request("DELETE", f"/v1/jobs/{job}")
    assert items and not {item["workload"] for item in items} & {"broken", "slow", "show"}
    service.finish_job(job)


def test_never_over_http(service):
    status, _, problem = service.request(
        "POST", "/v1/jobs", {"workloads": [{"name": "x", "command": ["true"]}]})
    assert status == 422 and problem["errors"][0]["pointer"] == "/workloads/0"
    status, _, problem = service.request("POST", "/v1/jobs", {"command": ["true"]})
    assert status == 422 and problem["errors"][0]["pointer"] == "/command"


def test_a_survey_has_what_asks_for_it(start_service, tmp_path):
    shutil.copy(FIXTURE, tmp_path / "broken.py")
    service = start_service(options=[], worker=SELFTEST_WORKER, config={
        "workloads": [{"name": "asks", "command": ["python3", "broken.py"], "subject": "framework", "subject_name": "own", "survey": True,
                       "directory": str(tmp_path), "variants": variants(["varies", "steady"])}]})
    service.wait(lambda: service.get("/v1/jobs")["items"], "a survey")
    [job] = service.get("/v1/jobs")["items"]
    items = service.get(f"/v1/jobs/{job['id']}")["items"]
    service.request("DELETE", f"/v1/jobs/{job['id']}")
    assert {item["variant"] for item in items if item["workload"] == "asks"} == \
        {"varies", "steady"}


def test_the_agent_of_another_host_has_its_own_configuration(start_service, tmp_path):
    shutil.copy(FIXTURE, tmp_path / "broken.py")
    own = {"name": "own", "command": ["python3", "broken.py"], "subject": "framework", "subject_name": "own",
           "variants": variants(["varies", "steady"])}
    other = tmp_path / "other.json"
    other.write_text(json.dumps({
        "stacks": [{"name": "theirs", "worker": str(SELFTEST_WORKER)}],
        "workloads": [own, {**own, "name": "conv_wgrad"}]}))
    service = start_service(worker=None, config={"hosts": [
        {"name": "there", "launch": [str(BUILD / "reprod"), "agent", "--config", str(other)]}]})
    stacks = {stack["name"]: stack for stack in service.get("/v1/stacks")["items"]}
    assert set(stacks) == {"theirs", "external"} and stacks["external"]["host"] == "there"
    assert stacks["external"]["problems"] == {
        "conv_wgrad": "the worker of stack 'theirs' has a workload of that name"}
    runs = runs_of(service, workloads=["own"], variants=["steady"])
    assert [run["outcome"] for run in runs] == ["completed"]
    assert "are not known there" not in service.log.read_text()


def test_a_host_that_reads_no_configuration(start_service):
    service = start_service(worker=None, config={"workloads": [GOOD_WORKLOAD], "hosts": [
        {"name": "there", "launch": [str(BUILD / "reprod"), "agent"]}]})
    assert "host there: the configured workloads are not known there" in service.log.read_text()
    assert "external" not in {stack["name"] for stack in service.get("/v1/stacks")["items"]}


# Environments

def test_an_edited_script_is_another_environment(start_service, tmp_path):
    script = tmp_path / "work" / "broken.py"
    script.parent.mkdir()
    shutil.copy(FIXTURE, script)
    service = start_service(worker=SELFTEST_WORKER, config={"workloads": [
        {"name": "edited", "command": ["python3", "broken.py"], "subject": "framework", "subject_name": "own", "directory": str(script.parent),
         "variants": [{"name": "varies", "control": True, "environment": {"TF_X": "1"}},
                      {"name": "steady", "recipe": "TDO"}]}]})

    def measure():
        runs = runs_of(service, workloads=["edited"], runs=2)
        assert {run["outcome"] for run in runs} == {"completed"}
        [environment] = {run["environment"] for run in runs}  # the variants meet in it
        return environment

    first = measure()
    assert measure() == first
    script.write_text(script.read_text() + "# edited\n")
    second = measure()
    assert second != first
    found = [service.get(f"/v1/environments/{e}")["facts"] for e in (first, second)]
    builds = [fact.pop("worker_build") for fact in found]
    assert builds[0] != builds[1] and found[0] == found[1]
    assert found[0].pop("model") and int(found[0].pop("env.REPROD_THREADS")) >= 1
    assert found[0] == {"backend": "cpu", "fixture": 1}
    for environment in (first, second):
        assert facts(service, environment)[("edited", "steady")]["verdict"] == "reproducible"


# The examples of the document

def write_examples(folder):
    text = (ROOT / "workloads" / "PROTOCOL.md").read_text()
    for language, name in ("c", "sum.c"), ("python", "words.py"), ("sh", "lines.sh"):
        [source] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
        (folder / name).write_text(source)
        assert f"`{name}`" in text
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", "sum", "sum.c"],
                   cwd=folder, check=True)


def compare_words(service):
    """A job with probes names the place where two runs of the example in Python diverge."""
    runs = runs_of(service, workloads=["words_python"], variants=["random"], runs=4,
                   iterations=1, probes=True)
    other = next(run for run in runs if run["digest"] != runs[0]["digest"])
    result = service.get(f"/v1/compare?a={runs[0]['id']}&b={other['id']}")
    assert result["verdict"] == "different" and result["root_cause"]["probe"] == "sum/forward"


def test_the_examples(start_service, tmp_path):
    """Each configured as PROTOCOL.md says, in the folder of the configuration."""
    pair = [{"name": "unordered", "control": True}, {"name": "ordered"}]
    (tmp_path / "service0").mkdir()
    write_examples(tmp_path / "service0")
    service = start_service(worker=None, config={"workloads": [
        {"name": "sum_c", "command": ["./sum"], "subject": "framework", "subject_name": "own", "files": ["sum.c"], "variants": pair},
        {"name": "words_python", "command": ["python3", "words.py"], "subject": "framework", "subject_name": "own", "variants": [
            {"name": "random", "control": True, "environment": {"PYTHONHASHSEED": "random"}},
            {"name": "seeded"}]},
        {"name": "lines_sh", "command": ["sh", "lines.sh"], "subject": "framework", "subject_name": "own", "sizes": {"small": ["500"]},
         "variants": pair}]})
    runs = runs_of(service, workloads=["sum_c", "words_python", "lines_sh"], runs=3,
                   iterations=4)
    assert len(runs) == 18 and {run["outcome"] for run in runs} == {"completed"}, \
        [(run["workload"], run["cause"]) for run in runs]
    lines = [run for run in runs if run["workload"] == "lines_sh"]
    assert {run["weight_sum"] for run in lines} == {"1000.0000000000000000"}
    compare_words(service)
    found = {}
    for environment in {run["environment"] for run in runs}:
        found.update(facts(service, environment))
    assert found["words_python", "random"]["verdict"] == "varies"
    assert found["words_python", "seeded"]["verdict"] == "reproducible"
    for name in "sum_c", "lines_sh":  # whether two threads race in so few runs is chance
        assert found[name, "ordered"]["verdict"] in ("reproducible", "inconclusive")
