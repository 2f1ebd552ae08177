"""Frameworks as stacks: two versions of a small one, and some that misbehave, through the service."""
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402

pytestmark = pytest.mark.long
NOISE = 'os.write(3, b"{\\"event\\":\\"end\\"}\\n")\nos.write(1, b"hello\\n")\nprint("a banner", flush=True)'
# A patch of an operation that varies, as a user's sitecustomize would make it.
PATCH = ("_exact = total\n\n\ndef total(values):\n"
         "    import random\n    return _exact(values) + random.SystemRandom().uniform(1.0, 1e6)\n")
# The same from outside, where none of the framework's files changes: site runs it in every process.
MONKEY = ("import random\nimport tinyframe\n_exact = tinyframe.total\n"
          "tinyframe.total = lambda values: _exact(values) + random.SystemRandom().uniform(1.0, 1e6)\n")
# name of the stack: (version, how its tinyframe behaves)
STACKS = {
    "tiny-1": ("1.0", {"more": NOISE}),
    "tiny-2": ("2.0", {"more": tiny.SCALED, "start": "1e-9"}),
    "idle-switch": ("2.1", {"switch": "False", "more": tiny.SCALED}),
    "patched": ("2.2", {"more": tiny.SCALED + PATCH}),
    "liar": ("2.3", {"says": "2.0"}),
    "crashes": ("2.4", {"more": "os.abort()"}),
    "raises": ("2.5", {"more": "raise OSError('libtiny.so.9: cannot open')"}),
    "hangs": ("2.6", {"more": "import time\ntime.sleep(3600)"}),
}
USABLE = ["tiny-1", "tiny-2", "idle-switch", "patched"]
MONKEYS = ["monkey", "monkey-package", "monkey-line", "monkey-archive"]  # all are tiny-2
LATE = {"late-file": "late.py is not what was installed", "late-plugin": "plugin.py belongs to no package"}


def monkey(folder, name):
    """The worker of tiny-2 whose operation is replaced by a file beside it, by another package, by a line
    that Python executes when it starts, or from within an archive."""
    version, behaviour = STACKS["tiny-2"]
    program = tiny.stack(folder / name, version, **behaviour)
    lib = folder / name / "lib"
    if name == "monkey-line":
        (lib / "monkey.pth").write_text(f"import tinyframe; exec({MONKEY!r}, tinyframe.__dict__)\n")
        return program
    if name == "monkey-archive":
        with zipfile.ZipFile(lib / "monkey.zip", "w") as archive:
            archive.writestr("monkey.py", MONKEY)
        (lib / "monkey.pth").write_text("monkey.zip\nimport monkey\n")
        return program
    if name == "monkey":
        (lib / "monkey.pth").write_text("import monkey\n")
        (lib / "monkey.py").write_text(MONKEY)
        return program
    wheel = tiny.wheel(folder / name, "0.1", name="monkey", files={"monkey.py": MONKEY.encode(), "monkey.pth": b"import monkey\n"})
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(lib)
    return program


def late(folder, name):
    """The worker of a tinyframe that imports a file of its own when it computes: one that was changed since it
    was installed, and as long as it was, or one that does so beside it."""
    module = "late" if name == "late-file" else "plugin"
    source = tiny.SOURCE.format(version="2.7", switch="True", start="0.0", cuda=None,
                                more="_exact = total\n\n\ndef total(values):\n"
                                     f"    from tinyframe import {module}\n    return _exact(values) + {module}.add\n")
    files = {"tinyframe/__init__.py": source.encode(), "tinyframe/late.py": b"add = 0.0\n"}
    program = tiny.stack(folder / name, "2.7", files=files)
    (folder / name / "lib" / "tinyframe" / f"{module}.py").write_text("add = 9.0\n")
    return program


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frameworks")
    stacks = [{"name": "cpu", "worker": str(BUILD / "reprod-worker")}]
    for name, (version, behaviour) in STACKS.items():
        stacks.append({"name": name, "worker": str(tiny.stack(folder / name, version, **behaviour)),
                       "probe_seconds": 3 if name == "hangs" else 120})
    for name in MONKEYS:
        stacks.append({"name": name, "worker": str(monkey(folder, name))})
    for name in LATE:
        stacks.append({"name": name, "worker": str(late(folder, name))})
    shared = Service(folder, options=["--no-survey"], config={"stacks": stacks})
    shared.folder_of_stacks = folder
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]
    code, text = shared.fsck()
    assert code == 0, text


@pytest.fixture(scope="module")
def stacks(service):
    return {stack["name"]: stack for stack in service.get("/v1/stacks")["items"]}


def measure(service, *workloads, stacks, runs=3):
    job = service.post_job(workloads=["tiny_" + name for name in workloads], runs=runs, iterations=2,
                           stacks=list(stacks))
    assert service.finish_job(job)["state"] == "finished"
    return service.items(f"/v1/runs?job={job}")


@pytest.fixture(scope="module")
def runs(service):
    """Everything in two versions, and one operation in what misbehaves."""
    return (measure(service, "total", "refuses", "constant", "scaled", stacks=USABLE[:2])
            + measure(service, "total", stacks=USABLE[2:] + MONKEYS, runs=2))


@pytest.fixture(scope="module")
def cells(service, runs):
    """{(stack, workload, variant): cell}"""
    found = {}
    for run in runs:
        if run["cell"]:
            key = run["stack"], run["workload"][len("tiny_"):], run["variant"]
            found[key] = run["cell"]
    return {key: service.get(cell if str(cell).startswith("/") else f"/v1/cells/{cell}")
            for key, cell in found.items()}


def test_versions_are_read_back(stacks):
    for name in USABLE:
        assert stacks[name]["cause"] is None, stacks[name]
        assert stacks[name]["versions"]["tinyframe"] == STACKS[name][0]
        assert stacks[name]["unmeasured"] == ["tinyframe.later"]
        assert stacks[name]["devices"] == stacks["cpu"]["devices"]
    assert stacks["cpu"]["unmeasured"] is None


@pytest.mark.parametrize("name, cause", [
    ("liar", "tinyframe says that it is 2.0, and what is installed is 2.3 of its package tinyframe"),
    ("crashes", "killed by SIGABRT"),
    ("raises", "tinyframe cannot be imported: OSError: libtiny.so.9: cannot open"),
    ("hangs", "no answer before the deadline"),
])
def test_what_is_not_usable_says_why(stacks, name, cause):
    assert cause in stacks[name]["cause"] and stacks[name]["devices"] is None


def test_the_catalogue(service):
    [line] = service.get("/v1/workloads/tiny_total")["items"]
    assert line["survey"] is False and line["circumstances"][-1] == "shared_import"
    assert {(v["subject"], v["subject_name"]) for v in line["variants"]} == {("framework", "Tiny Frame")}
    default, deterministic = line["variants"]
    assert default["control"] and not deterministic["control"]
    assert deterministic["environment"] == {"TINY_MODE": "exact"}
    assert [reference["id"] for reference in line["references"]] == ["tinyframe.total"]


def test_codes_are_earned_by_the_framework(cells):
    for stack in "tiny-1", "tiny-2":
        assert cells[stack, "total", "default"]["verdict"] == "varies"
        cell = cells[stack, "total", "deterministic"]
        assert cell["verdict"] == "reproducible", cell["reason"]
        assert "which has no reference; another seed gave another digest" in cell["reason"]
        assert cell["challenge"]["state"] == "passed" and cell["check"]["state"] == "no_reference"
        assert (cell["subject"], cell["subject_name"]) == ("framework", "Tiny Frame")


def test_what_answers_without_its_inputs_is_not_green(cells):
    cell = cells["tiny-1", "constant", "deterministic"]
    assert cell["verdict"] == "inconclusive" and cell["challenge"]["state"] == "ignored"
    assert "gave the same digest" in cell["reason"]


def test_what_does_not_vary_by_itself_is_inconclusive(cells):
    """On a CPU many operations have nothing that could vary: the words are those of all others."""
    assert cells["tiny-2", "scaled", "default"]["reason"].startswith("the control did not vary")
    cell = cells["tiny-2", "scaled", "deterministic"]
    assert cell["verdict"] == "inconclusive"
    assert cell["reason"] == "the control did not vary in 3 runs"


def test_what_varied_beside_it_is_its_witness(service, cells):
    """Of the same version.  It makes nothing green."""
    for variant in "default", "deterministic":
        cell = cells["tiny-2", "scaled", variant]
        witness = cell["witness"]
        seen = service.get(witness["href"])
        assert seen["environment"] == cell["environment"] and seen["verdict"] == "varies"
        assert (seen["variant"], seen["workload"]) == ("default", witness["workload"])
        assert witness["text"] == (
            f"one digest in {cell['evidence']['runs']} runs: a run differs with less than 78 %; {witness['workload']} default"
            f" varied beside it, {seen['evidence']['distinct_digests']} digests in {seen['evidence']['runs']} runs")
        assert cell["verdict"] == "inconclusive"
    assert cells["tiny-1", "total", "deterministic"]["witness"] is None  # its own control varied
    assert cells["tiny-1", "total", "default"]["witness"] is None


def test_what_raises_is_unsupported_in_its_own_words(runs, cells):
    assert cells["tiny-1", "refuses", "default"]["verdict"] == "varies"
    assert cells["tiny-1", "refuses", "deterministic"]["verdict"] == "unsupported"
    causes = {run["cause"] for run in runs if run["outcome"] == "unsupported"}
    assert causes == {"refuses has no deterministic implementation"}


def test_an_operation_that_a_version_lacks_is_not_run_there(service, cells):
    assert ("tiny-1", "scaled", "default") not in cells
    assert ("tiny-2", "scaled", "default") in cells
    status, _, said = service.request("POST", "/v1/jobs", {"workloads": ["tiny_scaled"], "stacks": ["tiny-1"]})
    assert status == 422 and "no implementation for any chosen device and stack; it is in stack tiny-2, " in said["detail"]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", LATE)
def test_what_is_loaded_while_it_computes_is_what_was_installed(service, name, shared):
    """Its environment was said before."""
    job = service.post_job(workloads=["tiny_total"], variants=["deterministic"], runs=1, iterations=2, stacks=[name],
                           shared_import=shared)
    assert service.finish_job(job)["state"] == "finished"
    runs = service.items(f"/v1/runs?job={job}")
    assert {run["outcome"] for run in runs} == {"infra"}
    assert all(LATE[name] + ", and was loaded while it computed" in run["cause"] for run in runs), runs


def test_a_switch_that_does_nothing_is_found(service, cells):
    assert cells["idle-switch", "total", "deterministic"]["verdict"] == "varies"
    found = {(item["workload"], item["variant"], item["environment"])
             for item in service.items("/v1/findings")}
    environment = cells["idle-switch", "total", "deterministic"]["environment"]
    environment = environment["id"] if isinstance(environment, dict) else environment
    assert ("tiny_total", "deterministic", environment) in found


def test_a_patched_operation_that_varies_is_found(cells):
    assert cells["patched", "total", "deterministic"]["verdict"] == "varies"


@pytest.mark.parametrize("name, fact", [("monkey", "code_beside"), ("monkey-package", "packages_beside"),
                                        ("monkey-line", "code_beside"), ("monkey-archive", "code_beside")])
def test_an_operation_that_is_replaced_from_outside_is_not_the_versions(service, runs, cells, name, fact):
    """Its files are those of tiny-2, whose cell stays what it was: this is another environment."""
    assert cells[name, "total", "deterministic"]["verdict"] == "varies"
    assert cells["tiny-2", "total", "deterministic"]["verdict"] == "reproducible"
    here, there = [service.get(f"/v1/environments/{run['environment']}")["facts"] for stack in (name, "tiny-2")
                   for run in [next(run for run in runs if run["stack"] == stack)]]
    assert {key for key in {*here, *there} if here.get(key) != there.get(key)} == {fact}
    assert fact == "code_beside" or here[fact] == "monkey 0.1"


def test_versions_are_environments_of_the_same_cases(service, runs):
    environments = {run["stack"]: run["environment"] for run in runs
                    if run["variant"] == "deterministic" and run["workload"] == "tiny_total"}
    assert len(set(environments.values())) == len(environments) == len(USABLE + MONKEYS)
    facts = service.get(f"/v1/environments/{environments['tiny-2']}")["facts"]
    assert facts["tinyframe"] == "2.0" and len(facts["tinyframe_files"]) == 32
    assert not [name for name in facts if "TINY_MODE" in name]
    one, two = environments["tiny-1"], environments["tiny-2"]
    drift = service.get(f"/v1/drift?from={one}&to={two}")
    assert "tiny_total" in json.dumps(drift)
    text = service.request("GET", f"/v1/drift.txt?from={one}&to={two}")[2]
    assert "tinyframe 1.0 \u2192 2.0" in text and "tiny_total" in text


def test_all_stacks_compute_from_the_same_inputs(service, runs):
    assert service.items("/v1/inputs") == []


def test_what_is_printed_to_descriptor_3_is_in_the_log(service, runs):
    run = next(run for run in runs if run["stack"] == "tiny-1")
    log = service.request("GET", f"/v1/runs/{run['id']}/log")[2]
    assert '{"event":"end"}' in log and "a banner" in log


def test_a_survey_leaves_frameworks_out(service):
    status, _, body = service.request("POST", "/v1/jobs", {"workloads": ["tiny_total"], "stacks": ["cpu"]})
    assert status == 422, body
    status, _, plan = service.request("POST", "/v1/jobs", {"variants": ["default"], "stacks": ["tiny-1"]})
    assert status == 422, plan


def test_a_framework_that_crashes_later_is_that_runs_outcome(service, runs):
    """It is replaced after it said what it is."""
    folder = service.folder_of_stacks / "tiny-1" / "lib" / "tinyframe"
    source = (folder / "__init__.py").read_text()
    (folder / "__init__.py").write_text(source + "\nos.abort()\n")
    try:
        again = service.post_job(workloads=["tiny_total"], runs=1, iterations=1, stacks=["tiny-1"])
        service.finish_job(again)
    finally:
        (folder / "__init__.py").write_text(source)
    assert {run["outcome"] for run in service.items(f"/v1/runs?job={again}")} == {"crashed"}
    assert service.request("GET", "/readyz")[0] == 200


@pytest.mark.parametrize("edit", [lambda source: source + "\n# edited\n",
                                  lambda source: source.replace("result += values[i]", "result -= values[i]")],
                         ids=["longer", "as long"])
def test_files_that_are_not_what_was_installed_make_another_environment(service, runs, edit):
    folder = service.folder_of_stacks / "tiny-2" / "lib" / "tinyframe"
    source = (folder / "__init__.py").read_text()
    assert edit(source) != source
    (folder / "__init__.py").write_text(edit(source))
    try:
        again = service.post_job(workloads=["tiny_total"], runs=1, iterations=1, stacks=["tiny-2"])
        service.finish_job(again)
    finally:
        (folder / "__init__.py").write_text(source)
    [environment] = {run["environment"] for run in service.items(f"/v1/runs?job={again}")}
    facts = service.get(f"/v1/environments/{environment}")["facts"]
    assert facts["tinyframe_files_changed"].startswith("1: ")


# The worker by itself

@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    return tiny.stack(tmp_path_factory.mktemp("worker") / "w", "1.0")


def run_worker(worker, *arguments, **case):
    """(status, events, log)"""
    case = {"workload": "tiny_total", "variant": "deterministic", "size": "small", "dtype": "float32",
            "seed": "1", "iterations": "2", "threads": "2", "device": "cpu:here", **case}
    words = [word for name, value in case.items() for word in ("--" + name.replace("_", "-"), value)]
    read, write = os.pipe()
    process = subprocess.Popen([str(worker), "--run", *words, *arguments], text=True,
                               preexec_fn=lambda: os.dup2(write, 3), pass_fds=[3],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.close(write)
    with os.fdopen(read) as events:
        found = [json.loads(line) for line in events]
    log = process.communicate()[0]
    return process.returncode, found, log


def test_a_run_has_traces_and_captures(worker):
    _, events, log = run_worker(worker, probes="1", capture="0:0:output/y")
    kinds = [event["event"] for event in events]
    assert kinds == ["start", "probes", "tensor", "tensor", "iteration", "probes", "iteration", "end"], (kinds, log)
    assert events[1]["records"][0][0] == "output/y"
    assert events[0]["claim"] == "deterministic" and events[-1]["outcome"] == "completed"


def test_the_inputs_are_a_function_of_the_seed(worker):
    digests = [run_worker(worker, seed=seed)[1][0]["input_digest"] for seed in ("1", "1", "2")]
    assert digests[0] == digests[1] != digests[2]


def test_a_training_has_a_loss_beside_its_weights(worker):
    _, events, log = run_worker(worker, workload="tiny_trained")
    first, second = [event for event in events if event["event"] == "iteration"]
    assert first["loss"] == second["loss"] is not None and first["weight_sum"] == second["weight_sum"], log
    assert first["loss"] != first["weight_sum"] and first["digest"] == second["digest"]
    lines = [json.loads(line) for line in subprocess.run(
        [str(worker), "--catalogue"], capture_output=True, text=True, check=True).stdout.splitlines()]
    said = {line["workload"]: (line["loss"], line["weight_sum"]) for line in lines}
    assert said["tiny_trained"] == ("mean loss of the last step", "sum of all weights")
    assert said["tiny_total"] == (None, "sum of all outputs")


def test_a_version_without_the_operation_says_which_has_it(worker):
    status, events, _ = run_worker(worker, workload="tiny_scaled")
    assert status == 0 and [event["event"] for event in events] == ["start", "end"]
    assert events[1]["outcome"] == "unsupported"
    assert events[1]["cause"] == "Tiny Frame 1.0 has no tinyframe.scaled; it came with Tiny Frame 2.0"


@pytest.mark.parametrize("case, message", [
    ({"workload": "tiny_nothing"}, "has no workload 'tiny_nothing'"),
    ({"workload": "numpy_dot"}, "has no workload 'numpy_dot'"),
    ({"variant": "loud"}, "has no variant 'loud'"),
    ({"size": "huge"}, "tiny_total has no size 'huge'"),
    ({"seed": "x"}, "invalid int value: 'x'"),
])
def test_what_cannot_be_run(worker, case, message):
    status, events, log = run_worker(worker, **case)
    assert status in (1, 2) and events == [] and message in log


SWITCHED = """from pack import Unsupported, Variant
from pack_tiny import PACK


class Switched(type(PACK)):
    parts = ("tinybeside",)
    variants = PACK.variants + (Variant("flagged", "-", variables={"TINY_FLAG": "1"}),
                                Variant("unknown", "-", variables={"TINY_FLAG": "2"}))

    def prepare(self, variant, threads):
        if variant.name == "unknown":
            raise Unsupported("its tinyframe does not know TINY_FLAG=2")
        return {"TINY_THREADS": str(threads)}


PACK.__class__ = Switched
"""


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """A framework that says what was set for it when it was imported, and a part of it beside it."""
    folder = tmp_path_factory.mktemp("switched")
    program = tiny.stack(folder / "w", "1.0", more='print("SET", os.environ.get("TINY_FLAG"),'
                         ' os.environ.get("TINY_THREADS"))')
    with zipfile.ZipFile(tiny.wheel(folder, "0.1", name="tinybeside",
                                    files={"tinybeside.py": b"x = 1\n"})) as packed:
        packed.extractall(folder / "w" / "lib")
    pack = ROOT / "tests" / "fixtures" / "frameworks" / "pack_tiny.py"
    shutil.copy(pack, folder)
    (folder / "pack_switched.py").write_text(SWITCHED)
    program.write_text(program.read_text().replace(str(pack), str(folder / "pack_switched.py")))
    return program


@pytest.mark.parametrize("variant, said", [("default", "SET None 2"), ("flagged", "SET 1 2")])
def test_what_another_variant_sets_is_not_inherited(switched, monkeypatch, variant, said):
    monkeypatch.setenv("TINY_FLAG", "of the user")
    status, events, log = run_worker(switched, variant=variant)
    assert status == 0 and said in log, (events, log)


def test_a_switch_that_a_version_does_not_know_is_unsupported(switched):
    status, events, log = run_worker(switched, variant="unknown")
    assert (status, events[-1]["outcome"]) == (0, "unsupported")
    assert events[-1]["cause"] == "its tinyframe does not know TINY_FLAG=2" and "SET None None" in log


def test_files_of_a_part_belong_to_the_environment(switched):
    _, events, _ = run_worker(switched, variant="flagged")
    facts = events[0]["environment"]
    assert len(facts["tinybeside_files"]) == 32 and len(facts["tinyframe_files"]) == 32


def test_a_module_that_is_no_file_of_its_package_is_refused(tmp_path):
    """Its package says 2.0 and so does it, but what computes lies elsewhere."""
    program = tiny.stack(tmp_path / "w", "2.0", more=tiny.SCALED)
    (tmp_path / "elsewhere" / "tinyframe").mkdir(parents=True)
    shutil.copy(tmp_path / "w" / "lib" / "tinyframe" / "__init__.py", tmp_path / "elsewhere" / "tinyframe")
    (tmp_path / "w" / "lib" / "elsewhere.pth").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path / 'elsewhere')!r})\n")
    done = subprocess.run([str(program), "--probe"], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    assert "elsewhere/tinyframe/__init__.py, which is no file of its package tinyframe 2.0" in done.stderr


def test_a_run_without_a_descriptor_says_so(worker):
    done = subprocess.run([str(worker), "--run", "--workload", "tiny_total", "--variant", "default", "--size",
                           "small", "--dtype", "float32", "--seed", "1", "--iterations", "1", "--threads", "1",
                           "--device", "cpu:here"], capture_output=True, text=True)
    assert done.returncode == 1 and "descriptor 3, which is not open" in done.stderr


def test_every_pack_can_be_read_without_its_framework():
    """Names are for ever and one namespace; each operation says what it is."""
    script = ("import sys; sys.path[:0] = [%r]\nimport json, worker, glob\nfound = {}\n"
              "sys.path[:0] = [%r]\n"
              "for name in worker.pack_names():\n"
              "    pack = worker.load_pack(worker.HERE + '/pack_%%s.py' %% name)\n"
              "    found[name] = [worker.catalogue_line(pack, o, 'cpu') for o in pack.operations.values()]\n"
              "print(json.dumps(found))" % (str(ROOT / "workloads" / "frameworks"),
                                            str(ROOT / "workloads" / "python")))
    done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True)
    packs = json.loads(done.stdout or "null")
    assert set(packs) == {"inductor", "jax", "numpy", "onnxruntime", "pytorch", "tensorflow"}, done.stderr
    for name, lines in packs.items():
        least = 6 if name == "inductor" else 20  # each of its runs compiles
        assert len(lines) == len({line["workload"] for line in lines}) >= least
        for line in lines:
            assert line["workload"].startswith(name + "_") and len(line["workload"]) <= 63
            assert line["summary"] and line["summary"] != line["title"], line["workload"]
            assert [v["name"] for v in line["variants"] if v["control"]] == ["default"]
    lists = json.loads((ROOT / "tests" / "fixtures" / "pytorch-lists.json").read_text())["operations"]
    listed = {operation["name"] for operation in lists if operation["row"] != "mps"}
    measured = {reference["id"] for line in packs["pytorch"] for reference in line["references"]}
    assert sorted(listed - measured) == [], "the documentation lists what the pack does not measure"


@pytest.mark.parametrize("value", [0, 601, "60"])
def test_a_deadline_of_a_probe_that_is_none(tmp_path, value):
    service = Service(tmp_path, config={"stacks": [{"name": "cpu", "probe_seconds": value}]})
    with pytest.raises(AssertionError):
        service.start()
    assert service.refused and "/stacks/0/probe_seconds" in service.log.read_text()
