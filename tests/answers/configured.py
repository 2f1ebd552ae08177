"""What is configured where answers are compared: workers, commands, tables and reports."""
import json
import shutil
import sys

from daemons import ROOT

FIXTURES = ROOT / "tests" / "fixtures"
PROBE = ROOT / "workloads" / "python"
GPU = "GPU-00000000-0000-0000-0000-000000000001"  # of tests/fixtures/gpu_worker.py
PAIR = [{"name": "varies", "control": True}, {"name": "steady"}]
# Variants of tests/fixtures/external/broken.py that end by themselves.
BROKEN = ("exit_zero", "to_stdout", "no_start", "no_end", "cut_off", "wrong_json", "two_on_a_line",
          "huge_line", "wrong_device", "other_workload", "no_version", "no_environment",
          "other_backend", "no_claim", "no_seed", "second_start", "killed", "nan", "too_few",
          "too_many", "no_work", "inputs_change", "ends_elsewhere", "no_cause", "green",
          "after_end", "exit_one", "other_inputs")
TABLE = {
    "table": "ours", "title": "Our frameworks", "source": "a wiki page",
    "recipes": [{"name": "TCD", "title": "set TF_CUDNN_DETERMINISTIC to 1"}],
    "columns": [{"id": "v1", "title": "version 1", "recipes": ["TCD"]},
                {"id": "v2", "title": "version 2", "recipes": ["TCD"]}],
    "rows": [*({"workload": workload, "title": workload, "subject": "model", "cells": {"v1": {
        "model": {"none": "unordered", "TCD": variant}, "documented": documented}}}
               for workload, variant, documented in (
                   ("pair", "ordered", "TCD"), ("still", "copied", "NS"),
                   ("sometimes", "ordered", "TCD"), ("heals", "ordered", "TCD"),
                   ("selftest_crash", "compute", "TCD"), ("selftest_unsupported", "setup", "NS"),
                   ("selftest_memory", "scratch", "TCD"))),
             {"workload": "selftest_no_control", "title": "has none", "subject": "model",
              "cells": {"v1": {"model": {"none": "ordered", "TCD": "ordered"}}}},
             {"workload": "selftest_pass", "title": "can be made deterministic", "subject": "model",
              "cells": {"v1": {"model": {"none": "unordered", "TCD": "ordered"},
                               "documented": "TCD", "note": "as they say"},
                        "v2": {"model": {"none": "ordered", "TCD": "ordered"}}}},
             {"workload": "selftest_stale_output", "title": "cannot", "subject": "model",
              "cells": {"v1": {"model": {"none": "unordered", "TCD": "partial"},
                               "documented": "TCD"}}}]}
REPORT = {
    "v": 1, "rehearsal": False, "date": "2026-01-22T10:00:00.000Z", "gpu": "NVIDIA Pretend 9000",
    "driver": "580.1", "worker_build": "abc", "variants": [
        {"workload": workload, "version": version, "variant": variant, "outcome": outcome}
        for workload, version, variant, outcome in (
            ("good", 3, "ordered", "passed"), ("good", 2, "unordered", "passed"),
            ("loose", 3, "ordered", "failed"), ("tame", 3, "ordered", "inconclusive"))]}


def install(folder):
    """Copies what the daemons start and read to FOLDER."""
    (folder / "commands").mkdir(parents=True)
    (folder / "state").mkdir()
    answers = ROOT / "tests" / "answers"
    for path in (FIXTURES / "external" / "broken.py", FIXTURES / "gpu_worker.py",
                 FIXTURES / "trace_worker.py", answers / "training.py", answers / "worker.py",
                 PROBE / "examples" / "words.py", PROBE / "reprod_probe.py"):
        shutil.copy(path, folder / "commands")
    for name, arguments in (("gpu", "gpu_worker.py cuda"), ("traces", "trace_worker.py"),
                            ("planned", "worker.py")):
        path = folder / "commands" / name
        path.write_text(f"#!/bin/sh\nexec {sys.executable} -S "
                        f'{folder}/commands/{arguments} "$@"\n')
        path.chmod(0o755)
    (folder / "table.json").write_text(json.dumps(TABLE))
    (folder / "report.json").write_text(json.dumps(REPORT))


def workloads(folder):
    """External ones: that work, that break the protocol, that this host lacks."""
    here = {"directory": str(folder / "commands")}
    broken = {**here, "name": "broken", "command": ["python3", "-S", "broken.py"], "subject": "framework", "subject_name": "own",
              "timeout_seconds": 300,
              "variants": PAIR + [{"name": name} for name in BROKEN]}
    training = {**here, "name": "training", "title": "A training", "files": ["reprod_probe.py"],
                "command": ["python3", "training.py", "."], "subject": "framework", "subject_name": "own",
                "sizes": {"small": [], "large": ["--epochs", "90"]}, "version": 2,
                "variants": [{"name": "counted", "control": True},
                             {"name": "steady", "recipe": "TDO", "arguments": ["--ordered"],
                              "environment": {"GREETING": "hello", "LANG": None}}]}
    words = {**here, "name": "words", "command": ["python3", "words.py"], "subject": "framework", "subject_name": "own", "survey": True,
             "variants": [{"name": "random", "control": True,
                           "environment": {"PYTHONHASHSEED": "random"}}, {"name": "seeded"}]}
    return [broken, training, words,
            {**broken, "name": "endless", "variants": PAIR + [{"name": "hangs"}]},
            {**words, "name": "no_program", "command": ["no-such-program"], "subject": "framework", "subject_name": "own"},
            {**words, "name": "no_folder", "directory": "/no/such/folder"},
            {**words, "name": "no_gpu", "backend": "cuda"}]


def config(folder, build, selftest, gpu=True):
    """The configuration with the workers of BUILD, and what is installed in FOLDER; without GPU,
    its device is offline."""
    silent = {} if gpu else {"FAKE_NO_GPU": "1"}
    return {
        "grace_ms": 200, "stale_after_hours": 480, "profiles": [str(folder / "table.json")],
        "gpu_reports": [str(folder / "report.json")], "workloads": workloads(folder),
        "stacks": [
            {"name": "cpu", "worker": str(selftest), "threads": 2},
            {"name": "three", "worker": str(selftest), "threads": 3, "library_path": "/opt/three"},
            {"name": "plain", "worker": str(build / "reprod-worker"), "threads": 2,
             "env": {"REPROD_ONEDNN": "/no/such/library.so"}},
            {"name": "traces", "worker": str(folder / "commands" / "traces"),
             "env": {"TRACE_FOLDER": str(folder / "state")}},
            {"name": "planned", "worker": str(folder / "commands" / "planned"),
             "env": {"STATE": str(folder / "state")}},
            {"name": "gpu", "worker": str(folder / "commands" / "gpu"), "env": silent},
            {"name": "missing", "worker": "/no/such/worker"}]}
