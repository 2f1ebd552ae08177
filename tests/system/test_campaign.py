"""The half hour on a machine with a GPU, rehearsed: on the simulator, and with a worker that
plays a GPU.  What it finds on a GPU only a GPU can show."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import time
import types
import venv
import zipfile

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import campaign as campaign_  # noqa: E402
import campaign_jobs as jobs  # noqa: E402
import campaign_packs as packs  # noqa: E402
import campaign_steps as steps  # noqa: E402
import figures  # noqa: E402
import library_stacks  # noqa: E402
import product  # noqa: E402
import saved  # noqa: E402
import tiny  # noqa: E402

CAMPAIGN = ROOT / "tests" / "gpu" / "campaign.py"
SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"
MEASURED = ["--runs", "2", "--iterations", "2"]
LIMIT = 1800  # seconds after which a test gives up
PLENTY_S = "1500"  # no step is cut, however slow the machine
needs_simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


def started(out, *options, build=BUILD, **env):
    environment = {name: text for name, text in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return subprocess.Popen([sys.executable, CAMPAIGN, "--out", out, *MEASURED, *options], text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**environment, "REPROD_BUILD": str(build), **env})


def campaign(out, *options, **how):
    """(exit status, what it printed)"""
    process = started(out, *options, **how)
    try:
        said, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode, said


def small_enough(out):
    files = list(out.iterdir())
    assert len(files) <= 8
    for path in files:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", path.name) and path.stat().st_size <= 16 << 20
    return {path.name for path in files}


def outcomes(summary):
    return {step["name"]: step["outcome"] for step in summary["steps"]}


# On the simulator

@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory):
    if not SIMULATOR.exists():
        pytest.skip("this flavour has no simulator")
    out = tmp_path_factory.mktemp("rehearsal")
    status, said = campaign(out, "--rehearse", "--seconds", PLENTY_S, "--workload", "resize_bilinear_bwd",
                            "--steps", "serve,documents,others,larger,stirred,algorithms,stacks,framework")
    assert status == 0, said
    return out


@pytest.mark.long
def test_a_rehearsal_saves_everything_and_says_what_it_is(rehearsal):
    assert small_enough(rehearsal) == {"rehearsal-summary.json", "rehearsal-summary.md", "rehearsal-service.log",
                                       "rehearsal-database.db.gz", "rehearsal-views.tar.gz"}
    summary = json.loads((rehearsal / "rehearsal-summary.json").read_text())
    assert summary["rehearsal"] and summary["device"] == "sim:0" and summary["gpu"] == "simulator, no GPU"
    assert outcomes(summary) == {"serve": "done", "documents": "done", "others": "skipped", "larger": "skipped",
                                 "stirred": "done", "algorithms": "skipped", "stacks": "done", "framework": "skipped"}
    assert [job["progress"]["runs_done"] for job in summary["jobs"]] == [4, 4, 4]
    assert summary["failures"] == [] and summary["figures"]["completed"] == 12
    assert summary["figures"]["turnaround_ms"]["count"] == 6  # without the runs under load
    text = (rehearsal / "rehearsal-summary.md").read_text()
    assert text.startswith("**REHEARSAL on a simulator: proves nothing about a GPU.**")
    assert all("REHEARSAL" in line for line in text.splitlines() if line.startswith("#"))
    with tarfile.open(rehearsal / "rehearsal-views.tar.gz") as views:
        names = set(views.getnames())
        matrix = json.load(views.extractfile("matrix-documents-2020-simulator.json"))
    assert {"matrix-documents-2020-simulator.txt", "matrix-documents-2023-simulator.json", "environments.json",
            "health.json", "findings.json", "stacks.json"} <= names
    assert "simulator, no GPU" in matrix["environment"]["title"]


GPU_BLOCK = """Text.

```console
$ echo not asked again
```

```console gpu
$ gpu=$(curl -s 127.0.0.1:7357/v1/environments | jq -r '[.items[] | select(.facts.backend == "cuda")][0].id')
$ curl -s "127.0.0.1:7357/?environment=$gpu" | sed -n '4p;/^tf.image.resize_bilinear/{n;n;p}'
```
"""


@pytest.mark.long
def test_the_database_is_served_and_gives_the_readme_a_column(rehearsal, tmp_path):
    """The way of a GPU's column into the README; this one says in each line that it is none."""
    data = tmp_path / "service" / "data"
    saved.read_database(rehearsal / "rehearsal-database.db.gz", data)
    service = Service(tmp_path / "service", options=["--no-survey"], config={"stacks": [{"name": "cpu"}]})
    service.start()
    try:
        done = subprocess.run([sys.executable, ROOT / "tests" / "make_readme.py", "127.0.0.1:1", "--gpu",
                               f"http://127.0.0.1:{service.port}"], input=GPU_BLOCK, text=True,
                              capture_output=True, timeout=LIMIT)
    finally:
        assert service.stop() == 0
    assert done.returncode == 0, done.stderr
    asked, own = done.stdout.split("```console gpu")
    assert asked.startswith("Text.\n\n```console\n$ echo not asked again\nnot asked again\n```")
    environment, row = own.splitlines()[3:5]
    assert environment.startswith("Environment  cuda · simulator, no GPU")
    assert re.fullmatch(r"  our models\s+NS\S*\s+TDO\S*\s+TDO\S*", row)
    assert service.fsck()[0] == 0


def test_a_rehearsal_is_not_written_among_results():
    status, said = campaign(ROOT / "tests" / "gpu" / "results" / "x", "--rehearse")
    assert status == 1 and "a rehearsal proves nothing" in said
    assert not (ROOT / "tests" / "gpu" / "results" / "x").exists()


@needs_simulator
def test_what_is_interrupted_is_saved(tmp_path):
    process = started(tmp_path, "--rehearse", "--seconds", PLENTY_S, "--workload", "resize_bilinear_bwd",
                      "--steps", "documents,stirred", "--runs", "5000")
    job = next(line.split()[1] for line in process.stdout if line.startswith("    job "))
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 1, said
    assert "rehearsal-database.db.gz" in small_enough(tmp_path)
    summary = json.loads((tmp_path / "rehearsal-summary.json").read_text())
    assert summary["notes"] == ["the campaign was interrupted"]
    saved.read_database(tmp_path / "rehearsal-database.db.gz", tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "reprod.db")) as database:
        assert job in "".join(database.iterdump())


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory):
    """One that has tinyframe, and nothing else."""
    folder = tmp_path_factory.mktemp("interpreter")
    venv.create(folder / "own", with_pip=False)
    [packages] = (folder / "own" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(tiny.wheel(folder, "2.0", more=tiny.SCALED)) as packed:
        packed.extractall(packages)
    return folder / "own" / "bin" / "python"


TINY = ROOT / "tests" / "fixtures" / "frameworks" / "pack_tiny.py"


@needs_simulator
@pytest.mark.long
def test_packs_of_an_interpreter(interpreter, tmp_path):
    """One of them lacks its framework, which costs the other nothing.  What a control needs to vary is up to
    the order of a set."""
    status, said = campaign(tmp_path, "--rehearse", "--seconds", PLENTY_S, "--steps", "serve,packs", "--interpreter",
                            interpreter, "--pack", ROOT / "workloads" / "frameworks" / "pack_numpy.py", "--pack", TINY,
                            "--operations", "total", "--operations", "ref*", "--runs", "3")
    summary = json.loads((tmp_path / "rehearsal-summary.json").read_text())
    assert status == 1, said
    assert outcomes(summary) == {"serve": "done", "packs": "cut"}
    cause = summary["steps"][1]["cause"]
    assert cause.startswith("pack_numpy.py: ") and "No module named 'numpy'" in cause and "tiny" not in cause
    assert [(job["stack"], job["state"], job["workloads"], job["asked"].get("shared_import"))
            for job in summary["jobs"]] == [("tiny-2.0", "finished", [name], True)
                                            for name in ("tiny_refuses", "tiny_total")]
    stack = next(stack for stack in summary["stacks"] if stack["name"] == "tiny-2.0")
    assert stack["versions"]["tinyframe"] == "2.0" and stack["environment"]
    found = {(one["workload"], one["variant"]): one for one in summary["figures"]["operations"]["tiny-2.0"]}
    assert found["tiny_refuses", "deterministic"]["verdict"] == "unsupported"
    assert found["tiny_total", "deterministic"]["runs"] == 3
    text = (tmp_path / "rehearsal-summary.md").read_text()
    assert "Operations of tiny-2.0: verdict, digests/runs" in text
    assert "| tiny_refuses | " in text and "Matrix of tiny-2.0" in text
    with tarfile.open(tmp_path / "rehearsal-views.tar.gz") as views:
        assert "tiny_refuses" in json.load(views.extractfile("operations.json"))["tiny-2.0"][0]["workload"]
    # What has its runs is not asked for again.
    status, said = campaign(tmp_path / "again", "--rehearse", "--seconds", PLENTY_S, "--steps", "packs",
                            "--interpreter", interpreter, "--pack", TINY, "--operations", "total", "--operations", "constant",
                            "--runs", "3", "--database", tmp_path / "rehearsal-database.db.gz")
    summary = json.loads((tmp_path / "again" / "rehearsal-summary.json").read_text())
    assert status == 0, said
    assert [job["workloads"] for job in summary["jobs"]] == [["tiny_constant"]]
    assert "tiny_total" in {one["workload"] for one in summary["figures"]["operations"]["tiny-2.0"]}


def item(name, *variants, circumstances=()):
    return {"workload": "pytorch_" + name, "backend": "cuda", "sizes": [{"name": "small"}, {"name": "large"}],
            "variants": [{"name": variant} for variant in variants], "circumstances": list(circumstances)}


def test_what_tells_most_of_a_framework_comes_first():
    names = ["zeta", "conv2d_bwd", "scatter_add", "index_add", *(f"other{at:02d}" for at in range(20))]
    items = [item(name, "default", "cudnn_deterministic", "deterministic") for name in names]
    shared = types.SimpleNamespace(options=types.SimpleNamespace(operations=None, rehearse=False),
                                   product=types.SimpleNamespace(get=lambda _: {"items": items}))
    found = packs.operations(shared, "pytorch")
    *plain, last = packs.requests(found, "pytorch")
    first = [name for request in plain for name in request["workloads"]]
    assert first[:4] == ["pytorch_index_add", "pytorch_scatter_add", "pytorch_conv2d_bwd", "pytorch_zeta"]
    assert [len(request["workloads"]) for request in plain] == [1, 6, 6, 6, 5]
    assert all(request["variants"] == ["default", "deterministic"] and request["sizes"] == ["small"]
               for request in plain)
    assert (last["workloads"], last["variants"]) == (["pytorch_conv2d_bwd"], ["cudnn_deterministic"])
    assert not any("shared_import" in request for request in (plain[0], last))
    offers = [item("index_add", "default", circumstances=["shared_import"])]
    assert packs.requests(offers, "pytorch")[0]["shared_import"] is True
    done = {(f"pytorch_{name}", "default") for name in names} | {("pytorch_conv2d_bwd", "cudnn_deterministic")}
    assert len(packs.requests(found, "pytorch", done)) == len(plain)  # where deterministic has no runs yet
    done |= {(f"pytorch_{name}", "deterministic") for name in names[1:]}
    assert [request["workloads"] for request in packs.requests(found, "pytorch", done)] == [["pytorch_zeta"]]
    assert packs.requests([], "pytorch") == []
    shared.options.operations = ["*_add", "conv?d*"]
    assert [one["workload"] for one in packs.operations(shared, "pytorch")] == [
        "pytorch_index_add", "pytorch_scatter_add", "pytorch_conv2d_bwd"]


@pytest.mark.parametrize("framework", sorted(packs.ORDER))
def test_the_order_names_operations_that_there_are(framework):
    question = (f"import sys; sys.path[:0] = {[str(ROOT / 'workloads' / name) for name in ('frameworks', 'python')]!r}; "
                f"import pack_{framework} as it; print(*it.PACK.operations)")
    there = subprocess.run([sys.executable, "-B", "-c", question], check=True, capture_output=True, text=True).stdout
    names = packs.ORDER[framework]
    assert len(set(names)) == len(names) and not set(names) - set(there.split())


def test_where_no_run_can_share_an_import_each_has_its_own(monkeypatch):
    asked, outcome = [], {"one": "crashed", "two": "completed", "three": "completed"}

    def submit(campaign, step, stack, request, until):
        job = sorted(outcome, key=list(outcome).index)[len(asked)]
        asked.append((request["workloads"], request.get("shared_import")))
        campaign.jobs.append({"job": job})

    monkeypatch.setattr(packs, "submit", submit)
    monkeypatch.setattr(packs, "stack_said", lambda *_: {"name": "s", "library_path": None, "devices": [{"id": "d"}]})
    monkeypatch.setattr(packs, "measured", lambda *_: set())
    items = [item(name, "default", circumstances=["shared_import"]) for name in ("index_add", "other")]
    shared = types.SimpleNamespace(
        options=types.SimpleNamespace(operations=None, rehearse=False), device="d", jobs=[], notes=[], packs_said=[],
        try_to=lambda _: None, product=types.SimpleNamespace(
            get=lambda _: {"items": items}, items=lambda path: [{"outcome": outcome[path.rpartition("=")[2]]}]))
    assert packs.measure_stack(shared, "s", "pytorch", time.monotonic() + PLENTY) is None
    assert asked == [(["pytorch_index_add"], True), (["pytorch_index_add"], None), (["pytorch_other"], None)]
    assert shared.notes == ["s: no run that shares an import completed; each imports for itself"]


def test_the_driver_is_where_the_campaign_found_it(tmp_path):
    (tmp_path / "packs" / "tiny-2.0-cuda").mkdir(parents=True)
    (tmp_path / "packs" / "tiny-2.0-cuda" / "framework.json").write_text('{"framework": "tiny"}')
    shared = types.SimpleNamespace(driver="/driver", unpacked=tmp_path)
    process = types.SimpleNamespace(returncode=0, communicate=lambda timeout: (
        '{"name": "tiny-2.0-cuda", "worker": "/w"}', ""))
    assert packs.entry_of(shared, process, time.monotonic() + 60) == (
        {"name": "tiny-2.0-cuda", "worker": "/w", "library_path": "/driver"}, "tiny")


def test_a_cell_of_an_operation():
    def one(verdict, reason, digests, runs, variant="default", control=True):
        return {"workload": "w", "variant": variant, "control": control, "verdict": verdict, "reason": reason,
                "digests": digests, "runs": runs, "digest": None}
    assert saved.operation_rows([one("unsupported", "no", 0, 0, "deterministic", False), one("varies", "", 3, 5)]) == (
        ("operation", "default", "deterministic"), [("w", "varies 3/5", "raises")])
    assert saved.operation_cell(one("inconclusive", "the control did not vary: 1 digest", 1, 3)) == "did not vary 1/3"
    assert saved.operation_cell(one("inconclusive", "too few", 1, 1)) == "inconclusive: too few 1/1"


# With a worker that plays a GPU

@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake")
    for name, backend in (("reprod-worker-cuda", "cuda"), ("reprod-worker", "cpu")):
        path = folder / name
        path.write_text(f"#!/bin/sh\nexec {sys.executable} -S {ROOT}/tests/fixtures/gpu_worker.py {backend} \"$@\"\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    (folder / "reprod").symlink_to(BUILD / "reprod")
    return folder


@pytest.fixture(scope="module")
def played(fake, tmp_path_factory):
    out = tmp_path_factory.mktemp("played")
    status, said = campaign(out, "--seconds", PLENTY_S, "--workload", "good", "--workload", "tame",
                            "--workload", "crash", "--libraries", "/x/cudnn-9.1.0", "--libraries",
                            "/x/cudnn-9.2.0", "--steps", "others,larger,stacks", build=fake)
    assert status == 0, said
    return out


def test_every_stack_and_what_was_undecided(played):
    assert small_enough(played) == {"summary.json", "summary.md", "service.log", "database.db.gz",
                                    "views.tar.gz"}
    summary = json.loads((played / "summary.json").read_text())
    assert not summary["rehearsal"] and summary["gpu"] == "NVIDIA Pretend 9000"
    assert [stack["name"] for stack in summary["stacks"]] == ["cudnn-9.1.0", "cudnn-9.2.0"]
    assert len({stack["environment"] for stack in summary["stacks"]}) == 2
    found = [(job["step"], job["stack"], job["workloads"], job["asked"]) for job in summary["jobs"]]
    assert found == [("others", "cudnn-9.1.0", ["crash", "good", "tame"], {"sizes": ["medium"]}),
                    ("larger", "cudnn-9.1.0", ["tame"], {"sizes": ["large"], "contention": 1}),
                    ("stacks", "cudnn-9.2.0", ["crash", "good", "tame"], {"sizes": ["medium"]})]
    assert [failure[:3] for failure in summary["failures"]] == [["crash", "ordered", "crashed"]]
    assert summary["figures"]["agreement"] == {"model": {"equal": 1, "different": []}}
    assert "REHEARSAL" not in (played / "summary.md").read_text()


def test_an_earlier_database_is_gone_on_with(played, fake, tmp_path):
    status, said = campaign(tmp_path, "--seconds", PLENTY_S, "--workload", "good", "--libraries", "/x/cudnn-9.3.0",
                            "--steps", "others", "--database", played / "database.db.gz", build=fake)
    assert status == 0, said
    summary = json.loads((tmp_path / "summary.json").read_text())
    before = json.loads((played / "summary.json").read_text())
    assert summary["figures"]["runs"] == before["figures"]["runs"] + 4


@pytest.mark.long
@needs_simulator
def test_a_database_of_rehearsals_is_not(rehearsal, fake, tmp_path):
    status, said = campaign(tmp_path, "--seconds", PLENTY_S, "--workload", "good", "--steps", "others",
                            "--database", rehearsal / "rehearsal-database.db.gz", build=fake)
    assert status == 1 and "the database has runs of a simulator" in said


@pytest.mark.long
def test_a_step_that_fails_or_is_cut_costs_no_other(fake, tmp_path):
    """The check fails as soon as it comes to what is wrong, and the job is long."""
    status, said = campaign(tmp_path, "--seconds", "12", "--workload", "wrong", "--runs", "5000",
                            "--steps", "others,framework,check,stacks", "--libraries", "/x/cudnn-9.1.0",
                            build=fake)
    summary = json.loads((tmp_path / "summary.json").read_text())
    found = outcomes(summary)
    assert status == 1 and found["stacks"] == "skipped" and found["framework"] == "skipped", said
    assert found["others"] == "cut", said
    assert found["check"] in ("cut", "failed") or "NOT RUN check: wrong ordered (deadline)" in said, said
    assert {"database.db.gz", "check.log", "summary.md"} <= small_enough(tmp_path)


def test_without_a_gpu_nothing_is_written(fake, tmp_path):
    status, said = campaign(tmp_path / "out", build=fake, FAKE_NO_GPU="1")
    assert status == 77 and "no GPU, so nothing was measured: no NVIDIA driver" in said
    assert not (tmp_path / "out").exists()


# Parts

PLENTY = 1 << 30


@pytest.mark.parametrize("mounts, memory, found", [
    ("none / overlay rw 0 0\n", PLENTY, "/tmp"), ("none / 9p rw 0 0\n", PLENTY, "/dev/shm"),
    ("none / 9p rw 0 0\nnone /tmp tmpfs rw 0 0\n", PLENTY, "/tmp"),
    ("a / ext4 rw 0 0\nb /tmp nfs4 rw 0 0\n", PLENTY, "/dev/shm"),
    ("a / ext4 rw 0 0\nb /tmp2 nfs4 rw 0 0\n", PLENTY, "/tmp"), ("", PLENTY, "/tmp"),
    ("none / 9p rw 0 0\n", 64 << 20, "/tmp"),
])
def test_the_database_lies_on_no_network(mounts, memory, found):
    assert campaign_.scratch_parent(mounts, "/tmp", memory) == found


def test_programs_are_unpacked_where_they_may_be_executed(tmp_path, monkeypatch):
    """Memory may be mounted noexec, and the database lies there."""
    folder, seen = tmp_path / "reprod-9.9", []
    folder.mkdir()
    (folder / "reprod").write_text("")
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as packed:
        packed.add(folder, folder.name)
    (tmp_path / "memory").mkdir()
    monkeypatch.setattr(campaign_, "scratch_parent", lambda *_: tmp_path / "memory")
    monkeypatch.setattr(campaign_, "run", lambda campaign: seen.append(
        (campaign.programs, campaign.scratch)) or campaign_.NOTHING_CHECKED)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        campaign_.main(["--out", str(tmp_path / "out"), "--bundle", str(tmp_path / "b.tar.gz")])
    finally:
        signal.signal(signal.SIGTERM, handler)
    [(programs, scratch)] = seen
    assert programs.name == "reprod-9.9" and scratch.parent == tmp_path / "memory"
    assert tmp_path / "memory" not in programs.parents


def test_stacks_are_sets_of_versions():
    def probe(path):
        devices = ["gpu"] if "driver" in path else []
        versions = {"cudnn": "9.2" if "new" in path else "9.1" if "old" in path else None,
                    "cublas": "13.1" if "toolkit" in path else None}
        return {"devices": devices, "versions": versions, "cause": None if devices else "no driver"}

    machine = library_stacks.machine
    machine.DRIVER_FOLDERS, kept = ("/driver",), machine.DRIVER_FOLDERS
    try:
        driver, found, _ = library_stacks.find(probe, ["/old", "/new:/toolkit", "/again/new", "/toolkit/old"])
        assert [(name, path) for name, path, _ in found] == [
            ("cudnn-9.2", "/new:/toolkit:/driver"), ("cudnn-9.1", "/toolkit/old:/driver")]
        assert driver == "/driver"
        assert [name for name, _, _ in library_stacks.find(probe, [])[1]] == ["cuda"]
        assert library_stacks.find(lambda _: {"devices": [], "cause": "c"}, ["/old"]) == (
            "", [], {"devices": [], "cause": "c"})
    finally:
        machine.DRIVER_FOLDERS = kept


def run(start, end, **changes):
    return {"outcome": "completed", "circumstances": None, "job": "j", "device": "d", "stack": "s",
            "environment": "e", "iterations": 3, "milliseconds": {"median": 10.0},
            "process": {"wall_milliseconds": 130}, "started_at": f"2026-11-21T10:00:{start}Z",
            "finished_at": f"2026-11-21T10:00:{end}Z", "workload": "w", "variant": "v", "cause": None, **changes}


def test_figures():
    runs = [run("02.000", "02.500"), run("00.000", "00.750"), run("01.000", "01.900"),
            run("05.000", "06.000", job="other"), run("03.000", "04.000", circumstances={"contention": 1}),
            run("07.000", "08.000", outcome="crashed", cause="killed")]
    assert figures.turnaround(runs) == {"median": 1000, "least": 1000, "most": 1000, "count": 2}
    assert figures.gap(runs)["least"] == 100 and figures.gap(runs)["most"] == 250
    assert figures.beside_computing(runs)["median"] == 100
    assert figures.failures(runs) == [("w", "v", "crashed", "killed", 1)]


def test_agreement_compares_equal_cases_that_are_reproducible():
    def matrix(*variants):
        return {"variants": [{"workload": "w", "variant": name, "version": 1, "size": size, "dtype": "f",
                              "seed": "1", "verdict": verdict, "digest": digest, "subject": subject,
                              "subject_name": "cuDNN" if subject == "library" else None}
                             for name, size, verdict, digest, subject in variants]}

    one = matrix(("a", "small", "reproducible", "1", "model"), ("b", "small", "reproducible", "2", "model"),
                 ("c", "small", "reproducible", "3", "model"), ("d", "small", "varies", "4", "model"),
                 ("e", "small", "reproducible", "5", "library"))
    two = matrix(("a", "small", "reproducible", "1", "model"), ("b", "small", "reproducible", "9", "model"),
                 ("c", "large", "reproducible", "9", "model"), ("d", "small", "reproducible", "4", "model"),
                 ("e", "small", "reproducible", "6", "library"))
    found = figures.agreement({"x": one, "y": two})
    assert found == {
        "cuDNN": {"equal": 0, "different": [
            {"workload": "w", "variant": "e", "size": "small", "digests": {"x": "5", "y": "6"}}]},
        "model": {"equal": 1, "different": [
            {"workload": "w", "variant": "b", "size": "small", "digests": {"x": "2", "y": "9"}}]}}
    assert saved.agreement_lines(found) == [
        "of cuDNN, 0 variants have the same bits with every stack in which they are reproducible, 1 have not",
        "of cuDNN: w e (small) has not: 5 with x, 6 with y",
        "of our models, 1 variants have the same bits with every stack in which they are reproducible, 1 have not",
        "of our models: w b (small) has not: 2 with x, 9 with y"]
    assert saved.agreement_lines(figures.agreement({"x": one})) == []


def test_a_cost_says_whose():
    cost = {"against": "unordered", "median": 2.0, "low": 1.0, "high": 3.0}
    variants = [{"workload": "w", "variant": name, "size": "small", "subject": subject, "subject_name": whose,
                 "cost": cost} for name, subject, whose in (("ordered", "model", None), ("algo_1", "library", "cuDNN"))]
    rows = saved.cost_rows({"costs": {"s": figures.costs({"variants": variants})}})
    assert [row[:3] for row in rows] == [("s", "model", "w ordered ÷ unordered"),
                                         ("s", "cuDNN", "w algo_1 ÷ unordered")]


def test_a_file_over_the_bound_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "FILE_MAX", 10)
    saved.write(tmp_path / "a", b"x" * 10)
    with pytest.raises(ValueError, match="11 bytes, 10 is the bound"):
        saved.write(tmp_path / "a", b"y" * 11)
    assert (tmp_path / "a").read_bytes() == b"x" * 10
    (tmp_path / "plain").write_bytes(b"SQLite")
    saved.read_database(tmp_path / "plain", tmp_path / "data")
    assert (tmp_path / "data" / "reprod.db").read_bytes() == b"SQLite"


def test_a_training_runs_where_the_campaign_does(tmp_path):
    entry = {"name": "net", "command": ["python3", "train.py"], "subject": "framework", "subject_name": "own", "backend": "cuda",
             "environment": {"A": "1"}, "variants": []}
    campaign = types.SimpleNamespace(driver="/driver", programs=tmp_path)
    assert jobs.complete(entry, tmp_path, "/opt/python", jobs.surroundings(campaign)) == {
        **entry, "command": ["/opt/python", "train.py"], "directory": str(tmp_path),
        "environment": {"LD_LIBRARY_PATH": "/driver", "A": "1"}}


@pytest.mark.parametrize("folder", ["", "python"])
def test_a_training_has_the_digests_of_the_programs(folder, tmp_path):
    """Of a build, and of a bundle."""
    (tmp_path / folder).mkdir(exist_ok=True)
    library = tmp_path / folder / "libreprod-digest.so"
    library.touch()
    campaign = types.SimpleNamespace(driver="", programs=tmp_path)
    assert jobs.surroundings(campaign) == {"REPROD_DIGEST_LIBRARY": str(library)}


TABLE = """import os, sys
assert os.environ["REPROD_DIGEST_LIBRARY"].endswith("/libreprod-digest.so")
assert sys.argv[1:6] == ["--table", "--device", "cuda", "--runs", "5"]
assert 0 < float(sys.argv[sys.argv.index("--seconds") + 1]) < 300
done = 15
{then}
open(sys.argv[sys.argv.index("--json") + 1], "w").write('{{"processes_done":%d,"processes_wanted":15}}' % done)
print("scatter, default: varies")
"""


@pytest.mark.parametrize("then, seconds, found", [
    ("pass", 300, None), ("done = 7", 300, "7 of 15 processes"),
    ("sys.exit('planted')", 300, "exit status 1, planted"),
    ("import time; time.sleep(600)", 1, "did not end in time"), ("sys.exit(77)", 300, jobs.Skipped),
])
def test_a_table_of_a_framework(then, seconds, found, tmp_path, monkeypatch):
    (tmp_path / "table.py").write_text(TABLE.format(then=then))
    monkeypatch.setattr(steps, "TABLE", tmp_path / "table.py")
    shared = types.SimpleNamespace(scratch=tmp_path, driver="", extras={}, programs=tmp_path)
    (tmp_path / "libreprod-digest.so").touch()
    if found is jobs.Skipped:
        with pytest.raises(jobs.Skipped, match="there is no PyTorch here"):
            steps.table(shared, time.monotonic() + seconds)
        return
    cause = steps.table(shared, time.monotonic() + seconds)
    assert cause is None if found is None else found in cause
    if found is None:
        assert shared.extras == {"framework.txt": "scatter, default: varies\n",
                                 "framework.json": '{"processes_done":15,"processes_wanted":15}'}


class Waiting:
    def kill(self):
        self.killed = True

    def communicate(self):
        return "", ""


def test_a_table_whose_time_ends_is_of_what_there_is(monkeypatch, capsys):
    sys.path.insert(0, str(jobs.EXAMPLES))
    import train_pytorch
    clock, begun = iter(range(100)), []
    monkeypatch.setattr(train_pytorch.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(train_pytorch, "start_process", lambda _, variant: begun.append((variant, Waiting())) or
                        begun[-1][1])
    monkeypatch.setattr(train_pytorch, "finish_process", lambda *_: (
        {"ctc": {"outcome": "completed", "digest": "a", "losses_bits": [], "milliseconds": 1}}, 0, None))
    monkeypatch.setattr(sys, "argv", ["train_pytorch.py", "--table", "--trainings", "ctc", "--seconds", "5"])
    asked = train_pytorch.parse()
    runs, counted = train_pytorch.collect(asked)
    assert counted == (5, 15) and [len(runs["ctc", name]) for name in train_pytorch.VARIANTS] == [2, 2, 1]
    assert len(begun) == 6 and begun[-1][1].killed
    found = train_pytorch.summarize(asked, runs)["ctc"]
    assert {one["verdict"] for one in found.values()} == {"inconclusive"}
    assert "the deadline came after 5 of 15 processes" in capsys.readouterr().err


def test_the_examples_are_configurations(start_service):
    entries = [jobs.complete(json.loads(path.read_text()), path.parent, sys.executable, {})
               for path in sorted(jobs.EXAMPLES.glob("*.json"))]
    service = start_service(worker=None, config={"stacks": [{"name": "cpu"}], "workloads": entries})
    for entry in entries:
        [item] = service.get(f"/v1/workloads/{entry['name']}")["items"]
        assert [size["name"] for size in item["sizes"]] == list(entry["sizes"])
        assert [variant["name"] for variant in item["variants"] if variant["control"]] == ["default"]
    assert entries


def test_a_service_that_does_not_start_says_why(tmp_path):
    (tmp_path / "reprod").write_text("#!/bin/sh\necho planted >&2\nexit 3\n")
    (tmp_path / "reprod").chmod(0o755)
    with pytest.raises(product.Refused, match="planted"):
        product.Product(tmp_path / "reprod", tmp_path / "service", {}).start()
