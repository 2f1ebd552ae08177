"""The steps of a campaign, in the order of what matters.  Each is a function of the campaign
and of the moment its time ends; it returns None, or what of it was cut.
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
import typing

import algorithms
import machine
import saved
from campaign_jobs import (EXAMPLES, Skipped, catalogue, documented, environments_of, frameworks,
                           measure, serve, submit, surroundings, undocumented)
from campaign_packs import packs
from check import build_folder
from product import Refused
from session import sizes_from_large

CHECK = machine.ROOT / "tests" / "gpu" / "check.py"
NO_FRAMEWORK = 77  # exit status of the table
TABLE = EXAMPLES / "train_pytorch.py"  # of fresh processes of a framework's training
STIRRED = {"contention": 1, "memory_poison": True, "allocation_jitter": True}


@dataclasses.dataclass
class Step:
    name: str
    weight: float  # its share of the time, relative to those of the steps that are still to come
    function: typing.Callable


# Before the service

def programs(given, unpacked):
    """Their folder: GIVEN, or UNPACKED if that is an archive, or the build, or the newest bundle
    in it."""
    made = sorted(build_folder().glob("reprod-*-linux-*/reprod"), key=os.path.getmtime)
    if not given:
        return made[-1].parent if made and not (build_folder() / "reprod").exists() else build_folder()
    path = pathlib.Path(given).resolve()
    if path.is_dir():
        return path
    with tarfile.open(path) as packed:
        packed.extractall(unpacked)
    [folder] = unpacked.iterdir()
    return folder


def build(campaign, until):
    problem = machine.build(campaign.options.build, until - time.monotonic())
    if problem:
        raise Refused(problem)


def check(campaign, until):
    """tests/gpu/check.py, in a process of its own: its report is committed as it is."""
    options, seconds = campaign.options, max(1.0, until - time.monotonic() - 10)
    command = [sys.executable, CHECK, "--seconds", seconds, "--out", campaign.out, "--nvcc", options.nvcc]
    command += ["--rehearse"] if options.rehearse else ["--device", campaign.device]
    command += ["--continue", options.earlier] if options.earlier else []
    command += ["--runs", options.check_runs] if options.check_runs else []
    for workload in options.workload or []:
        command += ["--workload", workload]
    path = ":".join(part for part in (campaign.stacks[0][1], os.environ.get("LD_LIBRARY_PATH")) if part)
    with open(campaign.scratch / "check.log", "wb") as log:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True, env={**os.environ, "LD_LIBRARY_PATH": path,
                                                                "REPROD_BUILD": str(campaign.workers)})
        try:
            status = process.wait(max(1.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            machine.runs.stop(process)
            process.wait()
    said = (campaign.scratch / "check.log").read_text(errors="replace")
    print(said, flush=True)
    saved.write(campaign.file("check.log"), said[-saved.LOG_MAX:].encode())
    if status is None:
        return "it did not end in time"
    if status != 0:
        raise Refused(f"exit status {status}: its report says what failed")
    return None


def documents(campaign, until):
    serve(campaign, until)
    return measure(campaign, "documents", campaign.stacks[0][0], documented(campaign), until)


def others(campaign, until):
    serve(campaign, until)
    return measure(campaign, "others", campaign.stacks[0][0], undocumented(campaign), until)


def every_algorithm(campaign, until):
    """Those of cuDNN's convolutions, in each type and at each shape."""
    if campaign.options.rehearse:
        raise Skipped("a rehearsal has one size, and no cuDNN")
    serve(campaign, until)
    entries = [entry for name, entry in catalogue(campaign).items() if name.startswith(algorithms.PREFIX)]
    if not entries:
        raise Skipped("no workload of that kind is wanted here")
    cuts = []
    for entry in entries:
        asked = {"workloads": [entry["workload"]], "sizes": algorithms.shapes(entry), "dtypes": entry["dtypes"]}
        cuts.append(f"{entry['workload']}: deadline" if time.monotonic() >= until else
                    submit(campaign, "algorithms", campaign.stacks[0][0], asked, until))
    return "; ".join(cut for cut in cuts if cut) or None


def undecided(matrix):
    """Workloads of which something could not be judged, for the most part since no control
    varied."""
    return list(dict.fromkeys(variant["workload"] for variant in matrix.get("variants", [])
                              if variant["verdict"] == "inconclusive"))


def larger(campaign, until):
    """What the first pass could not decide: at the largest size, with load too."""
    if campaign.options.rehearse:
        raise Skipped("a rehearsal has one size")
    serve(campaign, until)
    stack = campaign.stacks[0][0]
    environments = environments_of(campaign.runs())
    if stack not in environments:
        raise Skipped("nothing was measured before")
    names = undecided(campaign.product.get(f"/v1/matrix?environment={environments[stack]}"))
    known, cuts = catalogue(campaign), []
    for name in names:
        if name in known and time.monotonic() < until:
            size = sizes_from_large(known[name])[0]
            cuts.append(measure(campaign, "larger", stack, [name], until, size, contention=1))
    if not cuts:
        raise Skipped("the first pass left nothing undecided")
    return "; ".join(cut for cut in cuts if cut) or None


def stirred(campaign, until):
    """Load, poison and jitter: the same cells, so a difference shows in the matrix."""
    serve(campaign, until)
    names = documented(campaign) + undocumented(campaign)
    return measure(campaign, "stirred", campaign.stacks[0][0], names, until, runs=2, iterations=2, **STIRRED)


def stacks(campaign, until):
    """The other sets of libraries: the rows of the documents, then the rest."""
    if len(campaign.stacks) < 2:
        raise Skipped("this machine has one set of libraries")
    serve(campaign, until)
    cuts = []
    for name, _, _ in campaign.stacks[1:]:
        for names in (documented(campaign), undocumented(campaign)):
            try:
                cuts.append(measure(campaign, "stacks", name, names, until))
            except Skipped:
                continue
    return "; ".join(cut for cut in cuts if cut) or None


def framework(campaign, until):
    """Trainings of a framework in fresh processes: their own table, then as workloads."""
    entries = [entry for backend, entry in frameworks(campaign) if backend == "cuda"]
    cuts = []
    if TABLE.exists() and not campaign.options.workload and not campaign.options.rehearse:
        cuts.append(table(campaign, time.monotonic() + (until - time.monotonic()) * 0.6))
    elif not entries:
        raise Skipped("there is no training to be run here")
    serve(campaign, until)
    for entry in entries:
        cuts.append(submit(campaign, "framework", None, {"workloads": [entry["name"]], "runs": 2,
                                                         "sizes": list(entry["sizes"]), "iterations": 1}, until))
    return "; ".join(cut for cut in cuts if cut) or None


def table(campaign, until):
    """None, or why there is none; what it printed and wrote joins what is saved."""
    written, said = campaign.scratch / "table.json", {}
    seconds = max(1.0, until - time.monotonic())
    # What is cut has no table: a process more may be under way when no other is begun.
    command = [sys.executable, str(TABLE), "--table", "--device", "cuda", "--runs", "5", "--json", str(written),
               "--seconds", f"{seconds * 0.75:.0f}"]
    path = ":".join(part for part in (campaign.driver, os.environ.get("LD_LIBRARY_PATH")) if part)
    answer = machine.runs.ask(command, seconds, {**surroundings(campaign), "LD_LIBRARY_PATH": path})
    if answer.exit_code == NO_FRAMEWORK:
        raise Skipped(answer.errors.strip()[-200:] or "there is no PyTorch here")
    campaign.extras["framework.txt"] = answer.output + answer.errors
    if written.exists():
        campaign.extras["framework.json"] = written.read_text()
        said = json.loads(written.read_text())
    if answer.exit_code is None:
        return "the framework's table did not end in time"
    if answer.exit_code:
        return f"the framework's table: exit status {answer.exit_code}, {answer.errors.strip()[-200:]}"
    if said.get("processes_done") != said.get("processes_wanted"):
        return f"{said['processes_done']} of {said['processes_wanted']} processes of the framework's table"
    return None


ALL = (Step("check", 40, check), Step("serve", 3, serve), Step("documents", 14, documents),
       Step("others", 16, others), Step("larger", 6, larger), Step("stirred", 7, stirred),
       Step("algorithms", 8, every_algorithm), Step("stacks", 7, stacks), Step("framework", 20, framework),
       Step("packs", 40, packs))
NAMES = tuple(step.name for step in ALL)
