"""Programs with probes as workloads of the service, and their traces compared, without any
package: the example words.py, whose sums follow the hashes of texts."""
import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest

from service import BUILD, ROOT, Service

PYTHON = ROOT / "workloads" / "python"
WORDS = PYTHON / "examples" / "words.py"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    words = {"command": ["python3", str(WORDS)], "subject": "framework", "subject_name": "own", "files": [str(PYTHON / "reprod_probe.py")],
             "variants": [{"name": "random", "control": True,
                           "environment": {"PYTHONHASHSEED": "random"}}, {"name": "seeded"}]}
    # A copy of the file, with no library to find.
    lone = tmp_path_factory.mktemp("lone")
    shutil.copy(PYTHON / "reprod_probe.py", lone)
    (lone / "words.py").write_text(WORDS.read_text())
    plain = {**words, "name": "plain", "command": ["python3", "words.py"], "subject": "framework", "subject_name": "own", "directory": str(lone)}
    folder = tmp_path_factory.mktemp("python")
    shared = Service(folder, options=["--no-survey"], config={
        "workloads": [{**words, "name": "words"}, plain]}).start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


def runs_of(service, **request):
    job = service.post_job(iterations=2, **request)
    service.finish_job(job)
    return service.items(f"/v1/runs?job={job}")


def first_parting(service, runs):
    """(iteration, step) of the first total that is not the same in all RUNS: two orders of a
    sum round to the same bits now and then, so which step it is, is chance."""
    traces = [service.items(f"/v1/runs/{run['id']}/trace") for run in runs]
    for records in zip(*traces):
        if len({record["out"] for record in records}) > 1:
            assert records[0]["place"] == "total", records
            return records[0]["iteration"], records[0]["step"]
    raise AssertionError("the traces are equal")


def test_verdicts_and_the_place(service):
    # One pair of runs in 13 ends with one result, whatever the orders; one triple in 130.
    random = runs_of(service, workloads=["words"], variants=["random"], runs=10, probes=True)
    seeded = runs_of(service, workloads=["words"], variants=["seeded"], runs=3, probes=True)
    for run in random + seeded:
        assert run["outcome"] == "completed", run
    assert len({run["digest"] for run in seeded}) == 1 < len({run["digest"] for run in random})
    verdicts = {fact["variant"]: fact["verdict"] for fact in service.get(
        f"/v1/matrix?environment={seeded[0]['environment']}")["variants"]
        if fact["workload"] == "words"}
    assert verdicts == {"random": "varies", "seeded": "reproducible"}

    compared = service.get(f"/v1/compare?a={random[0]['id']}&b={random[1]['id']}")
    assert compared["verdict"] == "different"
    root = compared["root_cause"]
    assert root["probe"] == "total"
    assert (root["iteration"], root["step"]) == first_parting(service, random[:2])
    assert root == compared["first_difference"] and compared["data"]["equal"]
    same = service.get(f"/v1/compare?a={seeded[0]['id']}&b={seeded[1]['id']}")
    assert same["verdict"] == "equal" and same["probes_compared"] == 80
    across = service.get(f"/v1/compare?a={seeded[0]['id']}&b={random[0]['id']}")
    assert across["root_cause"]["probe"] == "total"


def test_one_request_localises_it(service):
    """The place, and what differs in it: a sum of float64, known by its inputs."""
    job = service.post_job(workloads=["words"], variants=["random"], localise=True, runs=2,
                           runs_max=20, iterations=2)
    service.finish_job(job)
    found = service.get(f"/v1/jobs/{job}/localisation")
    assert found["state"] == "localised", found
    searched = sorted(service.items(f"/v1/runs?job={job}"), key=lambda run: run["id"])
    assert found["place"] == "total"
    assert (found["iteration"], found["step"]) == first_parting(
        service, searched[:found["runs_searched"]])
    [tensor] = found["difference"]["tensors"]
    assert tensor["signature"]["differ"] == tensor["signature"]["elements"] == 1
    assert int(tensor["signature"]["max_ulp"]) >= 1


def test_density_and_names_are_the_jobs(service):
    [run] = runs_of(service, workloads=["words"], variants=["seeded"], runs=1,
                    probes={"every": 4, "names": "t*", "steps": [1, 9]})
    trace = service.items(f"/v1/runs/{run['id']}/trace")
    assert [(r["iteration"], r["step"], r["place"]) for r in trace] == [
        (i, step, "total") for i in (0, 1) for step in (4, 8)]
    [run] = runs_of(service, workloads=["words"], variants=["seeded"], runs=1)
    assert service.request("GET", f"/v1/runs/{run['id']}/trace")[0] == 404 or \
        service.items(f"/v1/runs/{run['id']}/trace") == []


def test_the_engine_of_digests_changes_nothing(service):
    """plain has no library: numpy, or plain Python."""
    [seeded] = runs_of(service, workloads=["words"], variants=["seeded"], runs=1)
    [plain] = runs_of(service, workloads=["plain"], variants=["seeded"], runs=1)
    assert plain["outcome"] == "completed" and plain["digest"] == seeded["digest"]


# reprod_compare.py


def trace(path, script=WORDS, **env):
    subprocess.run([sys.executable, str(script)], check=True,
                   env={"PATH": "/usr/bin:/bin", "REPROD_TRACE": str(path),
                        "REPROD_DIGEST_LIBRARY": str(BUILD / "libreprod-digest.so"), **env})
    return path


def compare(*paths, code=None):
    done = subprocess.run([sys.executable, str(PYTHON / "reprod_compare.py"), *map(str, paths)],
                          capture_output=True, text=True)
    if code is not None:
        assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def edited(path, edit):
    """A copy of the trace with its events as EDIT leaves them."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    other = path.with_name("edited")
    other.write_text("".join(json.dumps(event) + "\n" for event in edit(events)))
    return other


def test_traces_by_hand(tmp_path):
    a, b = (trace(tmp_path / name, PYTHONHASHSEED="7") for name in "ab")
    others = [trace(tmp_path / str(seed), PYTHONHASHSEED=str(seed)) for seed in (1, 2)]
    assert compare(a, b, code=0) == "EQUAL          2 traces, 40 records each\n"
    text = compare(a, b, *others, code=1)
    assert text.startswith("DIFFERENT      5 of 6 pairs of 4 traces\n")
    assert "Root cause     total, step 0 of iteration 0 (record 2)\n" in text
    assert "Environment    env.PYTHONHASHSEED: A 7, B 1\n" in text


def records_without(events, number):
    for event in events:
        if event["event"] == "probes" and event["step"] == 3:
            del event["records"][number]
    return events


def test_what_cannot_be_compared_says_why(tmp_path):
    a = trace(tmp_path / "a", PYTHONHASHSEED="7")
    seed = trace(tmp_path / "seed", PYTHONHASHSEED="7", REPROD_SEED="2")
    assert "NOT COMPARABLE seed is 1 in" in compare(a, seed, code=2)
    assert "has no end" in compare(a, edited(a, lambda e: e[:-1]), code=2)
    assert "it has no records" in compare(a, edited(a, lambda e: e[:1] + e[-2:]), code=2)
    assert "it has no start event" in compare(a, edited(a, lambda e: e[1:]), code=2)
    assert "lacks 3 records" in compare(
        a, edited(a, lambda e: e[:-1] + [{**e[-1], "probes_dropped": 3}]), code=2)
    short = edited(a, lambda e: e[:-2] + e[-1:])
    assert "has 0 of 1 iterations" in compare(short, short, code=2)
    for edit in (lambda e: e[:1] + e, lambda e: [{**e[0], "environment": []}] + e[1:],
                 lambda e: e[:-1] + [{"event": "end"}],
                 lambda e: e[:1] + [{**e[1], "records": [[1, "0" * 32, "0" * 32]]}] + e[2:]):
        assert "is not an event of the run protocol" in compare(a, edited(a, edit), code=2)
    bad = tmp_path / "bad"
    bad.write_text('{"event":"start"}\n{"event":"probes","i":0,"step":0,"records":[["x","1","2"]]}')
    assert "bad: line 2 is not an event of the run protocol" in compare(a, bad, code=2)
    bad.write_bytes(b"\xff\n")
    assert "NOT COMPARABLE" in compare(a, bad, code=2)
    assert "No such file" in compare(a, tmp_path / "missing", code=2)
    text = compare(a, edited(a, lambda e: records_without(e, 1)), code=1)
    assert "Structure      diverges at record 14: A has total, step 3 of iteration 0, B has" in text
    assert "Root cause" not in text
    text = compare(a, edited(a, lambda e: e[:-2] + [{**e[-2], "digest": "0" * 32}, e[-1]]), code=1)
    assert "All records agree, the results do not" in text


def test_a_copied_file_is_all_it_takes(tmp_path):
    """reprod_probe.py next to the program, no library, nothing else of reprod."""
    shutil.copy(PYTHON / "reprod_probe.py", tmp_path)
    (tmp_path / "program.py").write_text(WORDS.read_text())
    alone = trace(tmp_path / "alone", tmp_path / "program.py", PYTHONHASHSEED="7",
                  REPROD_WORKLOAD="words", REPROD_DIGEST="python")
    assert compare(trace(tmp_path / "a", PYTHONHASHSEED="7"), alone, code=0).startswith("EQUAL")


def test_the_tutorial(tmp_path):
    """The program of README.md: random hashes part, at the place it names; a seed cures it."""
    text = (PYTHON / "README.md").read_text()
    (tmp_path / "tags.py").write_text(re.search("```python\n(.*?)```", text, re.DOTALL).group(1))
    shutil.copy(PYTHON / "reprod_probe.py", tmp_path)
    told = re.search(r"Root cause     \w+, step ", text).group(0)  # at which one is chance
    runs = [trace(tmp_path / name, tmp_path / "tags.py") for name in "ab"]
    assert told in compare(*runs, code=1)
    runs = [trace(tmp_path / name, tmp_path / "tags.py", PYTHONHASHSEED="0") for name in "ab"]
    assert "EQUAL          2 traces, 61 records each" in compare(*runs, code=0)


def test_the_configuration_of_the_trainings_for_a_gpu(tmp_path):
    """That of README.md is accepted, and the recipe sets what the table's processes get."""
    blocks = re.findall("```json\n(.*?)```", (PYTHON / "README.md").read_text(), re.DOTALL)
    config = json.loads(next(block for block in blocks if "train_pytorch" in block))
    for folder in ("", "examples"):
        (tmp_path / folder).mkdir(exist_ok=True)
    shutil.copy(PYTHON / "reprod_probe.py", tmp_path)
    shutil.copy(PYTHON / "examples" / "train_pytorch.py", tmp_path / "examples")
    workload = config["workloads"][0]
    workload.update(backend="cpu", directory=str(tmp_path / "examples"))
    service = Service(tmp_path, options=["--no-survey"], config=config).start()
    shown = service.get("/v1/workloads/train_pytorch")["items"][0]
    sets = {variant["name"]: variant["environment"] for variant in shown["variants"]}
    spec = importlib.util.spec_from_file_location("train", PYTHON / "examples/train_pytorch.py")
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    assert sets == train.VARIANTS
    assert {size["name"] for size in shown["sizes"]} == set(train.TRAININGS)
    assert [v["name"] for v in shown["variants"] if v["control"]] == [train.CONTROL]
    assert service.stop() == 0
