"""make gpu-check without a GPU: with workers that misbehave, its report, and a rehearsal on the
simulator.  What it finds on a GPU only a GPU can show."""
import functools
import json
import os
import stat
import subprocess
import sys
import time

import pytest

from service import BUILD, ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
import check  # noqa: E402
import judge  # noqa: E402
import machine  # noqa: E402
import report as reports  # noqa: E402
import runs  # noqa: E402
import session as sessions  # noqa: E402
import stages  # noqa: E402

SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"


def install(folder, fake):
    for name, backend in (("reprod-worker-cuda", "cuda"), ("reprod-worker", "cpu")):
        path = folder / name
        path.write_text(f"#!/bin/sh\nexec {sys.executable} -S {fake} {backend} \"$@\"\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def main(folder, *options):
    """(exit status, report or None) of a check of the fake workers in FOLDER."""
    before = os.environ.get("REPROD_BUILD")
    os.environ["REPROD_BUILD"] = str(folder)
    try:
        status = check.main(["--out", str(folder / "out"), "--jobs", "2", *options])
    finally:
        del os.environ["REPROD_BUILD"]
        if before is not None:
            os.environ["REPROD_BUILD"] = before
    found = sorted((folder / "out").glob("*.json"), key=os.path.getmtime)
    return status, json.loads(found[-1].read_text()) if found else None


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    install(folder, ROOT / "tests" / "fixtures" / "gpu_worker.py")
    return folder


OUTCOMES = {
    "good": ["passed", "passed"],
    "tame": ["inconclusive", "inconclusive"],
    "loose": ["passed", "failed"],
    "liar": ["passed", "passed"],
    "crash": ["passed", "failed"],
    "hang": ["passed", "failed"],
    "big": ["passed", "passed"],
    "alone": ["inconclusive"],
    "lacking": ["passed", "unsupported"],
    "other_bits": ["passed", "failed"],
    "other_inputs": ["failed", "failed"],
    "wrong": ["passed", "failed"],
    "bad_digest": ["passed", "failed"],
    "fragile": ["passed", "failed"],
    "deaf": ["failed", "failed"],
    "cudnn_conv_pretend": ["passed", "inconclusive", "passed", "failed", "passed"],
}


def impatient(run, worker, asked, timeout, env):
    """As RUN, without patience for the one that never ends."""
    hangs = (asked["workload"], asked["variant"]) == ("hang", "ordered")
    return run(worker, asked, min(timeout, 3) if hangs else timeout, env)


@pytest.mark.long
def test_planted_workloads(build, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "run", functools.partial(impatient, runs.run))
    status, report = main(build, "--seconds", "4700")
    found = {name: [record["outcome"] for record in report["variants"] if record["workload"] == name]
             for name in OUTCOMES}
    assert found == OUTCOMES
    assert status == 1 and not report["rehearsal"]
    report_is_complete(report)
    report_is_readable(reports.markdown(report))
    product_shows(report, build, tmp_path)


def record_of(report, workload, name="ordered"):
    [found] = [record for record in report["variants"]
               if (record["workload"], record["variant"]) == (workload, name)]
    return found


def report_is_complete(report):
    assert (report["gpu"], report["driver"]) == ("NVIDIA Pretend 9000", "580.1")
    assert report["findings"] == [
        "liar unordered: claims deterministic, seen to vary",
        "cudnn_conv_pretend algo_2_fft: float16 at large: claims deterministic, seen to vary",
        "cudnn_conv_pretend algo_2_fft: float16 at medium: claims deterministic, seen to vary"]
    good, big = record_of(report, "good"), record_of(report, "big")
    assert (good["version"], good["survey"]["size"], good["survey"]["completed"]) == (3, "large", 5)
    assert (good["bits"], good["large_bits"], good["inputs"]) == ("equal", "equal", "equal")
    assert good["circumstances"] == "equal"
    assert record_of(report, "good", "unordered")["circumstances"] == "no promise"
    assert "(pattern 0badcafe, seed 7)" in record_of(report, "fragile")["causes"][0]
    assert "the run says no circumstances" in record_of(report, "deaf")["causes"][0]
    assert good["timing"]["ratio"]["count"] == 3 and good["timing"]["baseline"] == "unordered"
    assert big["survey"]["size"] == "medium" and "no 99 bytes" in big["notes"][0]
    assert record_of(report, "crash")["causes"] == ["crashed: killed by SIGABRT; planted crash"]
    assert "timeout: killed at its deadline after 1 of 5 iterations" in record_of(report, "hang")["causes"]
    assert record_of(report, "wrong")["causes"] == [
        "check: y: 3 of 8 elements out of bound, the worst 7.5 times it"]
    algorithms_are_complete(report)
    assert report["timings"]["gap_between_runs_ms"]["count"] > 0
    assert "bandwidth of the digest" in [item["what"] for item in report["not_run"]]


def algorithms_are_complete(report):
    races, lying, tf32 = (record_of(report, "cudnn_conv_pretend", name)
                          for name in ("algo_0", "algo_2_fft", "algo_1_tf32"))
    assert races["causes"] == ["the control did not vary, another control did"]
    assert lying["causes"] == [f"float16 at {size}: varied: 15 digests in 3 runs of 5 iterations"
                               for size in ("large", "medium")]
    assert [(case["dtype"], case["size"], case["ms"]) for case in lying["cases"]] == [
        ("float32", "medium", 2.0), ("float16", "large", 2.0), ("float16", "medium", 2.0)]
    assert [(case["dtype"], case["size"]) for case in tf32["cases"]] == [("float32", "medium")]
    assert (tf32["inputs"], tf32["bits"], tf32["timing"]) == ("no twin", "not promised", None)


def report_is_readable(text):
    assert text.startswith("# NVIDIA Pretend 9000, 20") and "REHEARSAL" not in text
    assert "failures.** Variants:" in text
    for words in ("## Failures", "## Findings", "## Not run", "## Controls that did not vary",
                  "- tame unordered (race, model): 1 digest in 5 × 5 at large", "## Variants", "## Time", "## Stages",
                  "crash ordered: crashed: killed by SIGABRT; planted crash",
                  "| cudnn_conv_pretend | algo_0 (control) | float32 | large | non-deterministic | "
                  "1 in 5 × 5 | A | yes | 0.25 | 2 | tree |",
                  "| cudnn_conv_pretend | algo_2_fft | float16 | medium | deterministic | "
                  "15 in 3 × 5 | – | yes | 0.25 | 2 | tree |",
                  "| good | ordered | model | passed | large | 1 in 5 × 5 | 0.25 | equal | equal | equal | equal |"):
        assert words in text, words


def product_shows(report, build, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    service = Service(tmp_path / "service", options=["--no-survey"], config={
        "gpu_reports": [str(path)],
        "stacks": [{"name": "cuda", "worker": str(build / "reprod-worker-cuda")}]})
    service.start()
    try:
        said = {name: {variant["name"]: (variant["verified"] or {}).get("outcome")
                       for variant in service.get(f"/v1/workloads/{name}")["items"][0]["variants"]}
                for name in ("good", "tame", "loose", "lacking")}
    finally:
        assert service.stop() == 0
    assert said == {"good": {"unordered": "passed", "ordered": "passed"},
                    "tame": {"unordered": "inconclusive", "ordered": "inconclusive"},
                    "loose": {"unordered": "passed", "ordered": "failed"},
                    "lacking": {"unordered": "passed", "ordered": None}}


def test_exit_status_0_when_nothing_failed(build):
    status, report = main(build, "--workload", "good", "--workload", "alone")
    assert status == 0 and report["failed"] == []
    assert report["counts"]["passed"] == 2 and report["counts"]["inconclusive"] == 1
    assert len(report["variants"]) == 3
    assert "31 variants of other workloads" in [item["what"] for item in report["not_run"]]


def test_an_older_report_of_the_day_stays(build):
    count = len(list((build / "out").glob("*.json")))
    main(build, "--workload", "alone")
    assert len(list((build / "out").glob("*.json"))) == count + 1


def test_the_deadline_passes_nothing(build):
    status, report = main(build, "--seconds", "0", "--workload", "good")
    assert status == 1 and report["failed"] == ["no variant was judged"]
    assert [record["outcome"] for record in report["variants"]] == ["not_run", "not_run"]
    what = " ".join(item["what"] for item in report["not_run"])
    for stage in ("check: good unordered, good ordered", "comparison with the CPU: good", "survey: good"):
        assert stage in what


def test_a_run_that_the_deadline_kills_is_not_a_timeout(build):
    session = sessions.Session(build / "reprod-worker-cuda", build / "reprod-worker", 1.0, 1)
    session.load()
    session.device = "GPU-00000000-0000-0000-0000-000000000001"
    run = session.run(session.records["hang", "ordered"], "small", 2)
    assert run.timed_out and run.cut
    assert judge.judge_runs([run], 5)["failures"] == []
    patient = sessions.Session(build / "reprod-worker-cuda", build / "reprod-worker", 4700, 1)
    patient.load()
    patient.deadline = time.monotonic()  # that of the stage has passed
    assert patient.run(patient.records["hang", "ordered"], "small", 2).cut
    assert patient.ask(["sleep", "1000"]).cut and patient.left() > 0


def test_chosen_stages(build):
    status, report = main(build, "--workload", "good", "--stages", "survey,check", "--runs", "2")
    assert status == 0 and report["failed"] == []
    assert [stage["name"] for stage in report["stages"]] == [
        check.STAGES[name][0] for name in ("check", "survey")]
    assert [record["outcome"] for record in report["variants"]] == ["not_run", "not_run"]
    assert record_of(report, "good")["survey"]["completed"] == 2
    left_out = [item["what"] for item in report["not_run"] if item["why"] == "--stages left it out"]
    assert left_out == [title for name, (title, _) in check.STAGES.items()
                        if name not in ("check", "survey")]
    nothing = main(build, "--workload", "good", "--stages", "algorithms")
    assert nothing[0] == 1 and nothing[1]["failed"] == ["no variant was judged"]


@pytest.mark.long
def test_a_check_goes_on_with_a_report(build, tmp_path):
    _, first = main(build, "--workload", "good", "--workload", "loose", "--stages", "check,survey", "--runs", "2")
    path = tmp_path / "first.json"
    path.write_text(json.dumps(first))
    _, second = main(build, "--workload", "good", "--continue", str(path), "--runs", "3")
    for name in "check", "survey":  # as it was found then, with two runs
        assert record_of(second, "good")[name] == record_of(first, "good")[name]
    assert [record["outcome"] for record in second["variants"]] == ["passed", "passed"]
    assert second["continues"] == [{name: first[name] for name in ("date", "device", "seconds")}]
    first["variants"] = [{**record, "survey": {**record["survey"], "not_run": ["1 of 2 runs"]}}
                         for record in first["variants"]]
    path.write_text(json.dumps(first))
    _, again = main(build, "--workload", "good", "--continue", str(path), "--runs", "3")
    assert record_of(again, "good")["survey"]["completed"] == 3  # what was cut is measured anew


@pytest.mark.parametrize("changed, sentence", [
    ({"worker_build": "f" * 40}, f"worker_build is {'f' * 40}, and here it is "),
    ({"driver": "1.2"}, "driver is 1.2, and here it is "),
    ({"rehearsal": True}, "rehearsal is True, and here it is False"),
    ({"v": 2}, "no report of this version"),
    (None, "No such file"),
])
def test_what_a_check_does_not_go_on_with(build, tmp_path, changed, sentence):
    path = tmp_path / "other.json"
    if changed:
        _, report = main(build, "--workload", "good", "--stages", "check")
        path.write_text(json.dumps({**report, **changed}))
    with pytest.raises(SystemExit) as ended:
        main(build, "--workload", "good", "--continue", str(path))
    assert "gpu-check: nothing to go on with: " in str(ended.value.code) and sentence in str(ended.value.code)


@pytest.mark.parametrize("options, sentence", [
    (["--stages", "check,survy"], "no stage 'survy'; there are check, cpu, survey,"),
    (["--stages", "check,load"], "load needs survey"),
    (["--stages", ""], "no stage ''"),
    (["--runs", "1"], "one process shows no difference"),
])
def test_wrong_options(options, sentence, capsys):
    with pytest.raises(SystemExit) as ended:
        check.main(options)
    assert ended.value.code == 2 and sentence in capsys.readouterr().err


def test_shares_of_the_time_rise():
    shares = [share for _, share in check.STAGES.values()]
    assert shares == sorted(set(shares)) and 0 < shares[0] and shares[-1] < 1


def test_what_fits_on_a_device(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert [machine.processes_at_a_time({"attributes": {"memory_bytes": size << 30}})
            for size in (80, 24, 4)] == [12, 4, 1]
    assert machine.processes_at_a_time({}) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert machine.processes_at_a_time({"attributes": {"memory_bytes": 80 << 30}}) == 1


@pytest.mark.parametrize("mode, wanted, jobs", [("default", None, 12), ("default", 3, 3),
                                                ("exclusive_process", None, 1), ("exclusive_process", 3, 1)])
def test_a_device_of_one_process_has_one(mode, wanted, jobs, monkeypatch):
    """And the report says so."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    session = check.Session("worker", "cpu-worker", 1, 1)
    session.rehearsal, session.device = False, "GPU-0"
    probe = {"devices": [{"id": "GPU-0", "attributes": {"memory_bytes": 80 << 30, "compute_mode": mode}}]}
    assert check.jobs_of(session, probe, wanted) == jobs
    assert ("EXCLUSIVE_PROCESS" in str(session.not_run)) == (mode != "default")


def test_whoever_ends_the_check_has_a_report(build, tmp_path):
    with subprocess.Popen(
            [sys.executable, ROOT / "tests" / "gpu" / "check.py", "--out", tmp_path, "--seconds", "4700",
             "--workload", "hang", "--workload", "good"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "REPROD_BUILD": str(build)}) as process:
        for line in process.stdout:
            if "fresh processes" in line:  # it hangs in one of them
                break
        so_far = json.loads((tmp_path / "unfinished.json.part").read_text())
        assert record_of(so_far, "good")["bits"] == "equal"
        assert "# NVIDIA Pretend 9000" in (tmp_path / "unfinished.md.part").read_text()
        process.terminate()
        process.stdout.read()
        assert process.wait() == 1
    [path] = tmp_path.glob("*.json")
    assert path.with_suffix(".md").exists() and not list(tmp_path.glob("*.part"))
    report = json.loads(path.read_text())
    assert "the check itself ended early: KeyboardInterrupt('SIGTERM')" in report["failed"]
    assert record_of(report, "hang")["outcome"] == "not_run"
    assert not any("SIGKILL" in sentence for sentence in report["failed"])


def test_without_a_gpu_77(build, monkeypatch, capsys):
    monkeypatch.setenv("FAKE_NO_GPU", "1")
    (build / "none").mkdir()
    assert main(build, "--out", str(build / "none"))[0] == 77
    assert "no GPU, so nothing was checked: no NVIDIA driver" in capsys.readouterr().out
    assert list((build / "none").iterdir()) == []


def test_without_nvcc_77(capsys):
    assert check.main(["--build", "make", "--nvcc", ""]) == 77
    assert "nvcc was not found" in capsys.readouterr().out


def test_a_build_that_fails_is_a_failure(tmp_path, capsys):
    broken = tmp_path / "make"
    broken.write_text("#!/bin/sh\necho planted error\nexit 2\n")
    broken.chmod(0o755)
    assert check.main(["--build", str(broken), "--nvcc", "/usr/bin/nvcc"]) == 1
    assert "planted error" in capsys.readouterr().out


def test_a_defect_of_the_check_fails_it(build, monkeypatch, capsys):
    def defect(*_):
        raise KeyError("planted")

    monkeypatch.setattr(check, "run_timings", defect)
    status, report = main(build, "--workload", "good")
    assert status == 1 and report["failed"] == ["timings: the check itself failed: KeyError('planted')"]
    assert not list((build / "out").glob("*.part"))
    assert "## Failures" in reports.markdown(report) and report["stages"][-1]["name"].startswith("algorithms")
    assert record_of(report, "good")["outcome"] == "passed"


def test_a_defect_costs_its_variant_alone(build, monkeypatch):
    whole = stages.against_cpu

    def defect(session, record, size):
        if record["variant"] == "unordered":
            raise KeyError("planted")
        return whole(session, record, size)

    monkeypatch.setattr(stages, "against_cpu", defect)
    status, report = main(build, "--workload", "good")
    assert status == 1
    assert report["failed"] == ["good unordered: the check itself failed: KeyError('planted')"]
    assert [record["outcome"] for record in report["variants"]] == ["not_run", "passed"]


# The rehearsal

def test_a_rehearsal_is_not_written_among_results():
    for folder in (check.RESULTS, check.RESULTS / "deeper"):
        with pytest.raises(SystemExit, match="a rehearsal proves nothing"):
            check.main(["--rehearse", "--out", str(folder)])


@pytest.mark.long
@pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")
def test_rehearsal_on_the_simulator(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "gpu" / "check.py", "--rehearse", "--workload",
         "resize_bilinear_bwd", "--seconds", "1700", "--out", tmp_path / "out"],
        env={**os.environ, "REPROD_BUILD": str(BUILD)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    assert done.returncode == 0, done.stdout.decode()
    [path] = (tmp_path / "out").glob("*.json")
    report = json.loads(path.read_text())
    assert report["rehearsal"] and report["device"] == "sim:0"
    assert {record["variant"]: record["outcome"] for record in report["variants"]} == \
        {"unordered": "passed", "ordered": "passed"}
    assert record_of(report, "resize_bilinear_bwd")["bits"] == "equal"
    assert record_of(report, "resize_bilinear_bwd")["circumstances"] == "equal"
    assert report["timings"]["bandwidth_gb_per_s"]["digest_to_copy"] > 0
    lines = path.with_suffix(".md").read_text().split("## ")[0].splitlines()
    assert len(lines) > 5
    assert all("REHEARSAL on a simulator: proves nothing" in line for line in lines if line)


def test_standard_library_only():
    names = {path.stem for path in (ROOT / "tests" / "gpu").glob("*.py")}
    code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
            f"import {', '.join(sorted(names))}\n"
            "own = set(sys.argv[2:])\n"
            "print([m for m in sys.modules if '.' not in m and m not in sys.stdlib_module_names"
            " and m not in own and not m.startswith('_')])")
    done = subprocess.run([sys.executable, "-S", "-c", code, str(ROOT / "tests" / "gpu"), *names],
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", (done.stdout, done.stderr)
