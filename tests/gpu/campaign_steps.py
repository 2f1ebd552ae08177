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
from check import REHEARSED, build_folder
from product import Product, Refused
from session import sizes_from_large, small_size

CHECK = machine.ROOT / "tests" / "gpu" / "check.py"
EXAMPLES = machine.ROOT / "workloads" / "python" / "examples"
ONLINE_LIMIT = 120  # seconds
NO_FRAMEWORK = 77  # exit status of the table
TABLE = EXAMPLES / "train_pytorch.py"  # of fresh processes of a framework's training
STIRRED = {"contention": 1, "memory_poison": True, "allocation_jitter": True}


class Skipped(Exception):
    """A step that has nothing to do here, and why."""


@dataclasses.dataclass
class Step:
    name: str
    weight: float  # its share of the time, beside those of the steps that are still to come
    function: typing.Callable


# Before the service

def programs(given, scratch):
    """Their folder: GIVEN, which may be an archive, or the build, or the newest bundle in it."""
    made = sorted(build_folder().glob("reprod-*-linux-*/reprod"), key=os.path.getmtime)
    if not given:
        return made[-1].parent if made and not (build_folder() / "reprod").exists() else build_folder()
    path = pathlib.Path(given).resolve()
    if path.is_dir():
        return path
    with tarfile.open(path) as packed:
        packed.extractall(scratch / "bundle")
    [folder] = (scratch / "bundle").iterdir()
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


# The service

def configuration(campaign):
    worker = str(campaign.worker)
    stacks = [{"name": name, "worker": worker, **({"library_path": path} if path else {}),
               **({"env": {"REPROD_CUDASIM_SEED": "3"}} if campaign.options.rehearse else {})}
              for name, path, _ in campaign.stacks]
    return {"stacks": stacks, "workloads": [entry for _, entry in frameworks(campaign)]}


def serve(campaign, _):
    """Starts it, or starts it again after it ended."""
    if campaign.product is None:
        lacking = campaign.programs / "check-host"
        if lacking.exists():
            done = subprocess.run([str(lacking)], capture_output=True, text=True, timeout=30)
            if done.returncode:
                raise Refused(done.stderr.strip())
        campaign.product = Product(campaign.programs / "reprod", campaign.scratch / "service",
                                   configuration(campaign))
        if campaign.options.database:
            saved.read_database(campaign.options.database, campaign.product.data)
    if not campaign.product.alive():
        campaign.product.start()
        campaign.version = campaign.product.get("/healthz")["version"]
        refuse_strangers(campaign)
        campaign.product.wait(lambda: is_online(campaign), ONLINE_LIMIT,
                              f"the service does not see {campaign.device}")


def is_online(campaign):
    """Workers answer when driver and libraries are loaded, from a cold disk after a while."""
    return any(device["id"] == campaign.device and device["online"]
               for device in campaign.product.get("/v1/devices")["items"])


def refuse_strangers(campaign):
    """A database of rehearsals is not gone on with on a GPU."""
    simulated = [environment["title"] for environment in campaign.product.items("/v1/environments")
                 if "simulator" in environment["facts"].get("model", "")]
    if simulated and not campaign.options.rehearse:
        campaign.product.stop()
        raise Refused(f"the database has runs of a simulator: {simulated[0]}")


def catalogue(campaign):
    """{workload: what the service says of it}, of the device; only those that are wanted."""
    serve(campaign, None)
    wanted = campaign.options.workload or (REHEARSED if campaign.options.rehearse else None)
    return {item["workload"]: item for item in campaign.product.get("/v1/workloads")["items"]
            if item["backend"] == "cuda" and (not wanted or item["workload"] in wanted)
            and not item["workload"] in {entry["name"] for _, entry in frameworks(campaign)}}


def documented(campaign):
    """Names of the workloads that are rows of a table, the first table's first."""
    tables = campaign.product.get("/v1/profiles")["items"]
    rows = [row["workload"] for table in tables
            for row in campaign.product.get(f"/v1/matrix?table={table['id']}")["rows"]]
    return list(dict.fromkeys(rows))


def undocumented(campaign):
    """The others, but for the many algorithms of cuDNN, which have a step of their own."""
    rows = documented(campaign)
    return [name for name in catalogue(campaign)
            if name not in rows and not name.startswith(algorithms.PREFIX)]


def by_size(entries, size):
    """{size: [workloads]}: SIZE, or else the largest below the largest."""
    groups = {}
    for entry in entries:
        names = [one["name"] for one in entry["sizes"]]
        own = size if size in names else small_size(entry)
        groups.setdefault(own, []).append(entry["workload"])
    return groups


def environments_of(runs):
    """{stack: the environment that its newest completed run was in}, each environment once: two
    sets of libraries may turn out to be one."""
    done = [run for run in runs if run["outcome"] == "completed" and run["environment"]]
    newest = {run["stack"]: run["environment"] for run in sorted(done, key=lambda run: run["started_at"])}
    first = {}
    for stack, environment in newest.items():
        first.setdefault(environment, stack)
    return {stack: environment for environment, stack in first.items()}


def sentence(finding):
    return (f"{finding['workload']} {finding['variant']} ({finding['size']}): {finding['finding']}, "
            f"{finding['distinct_digests']} digests in {finding['runs']} runs")


def submit(campaign, name, stack, asked, until):
    """One job, from the request to its end; None, or what was cut."""
    request = {"devices": [campaign.device], "runs": campaign.options.runs,
               "iterations": campaign.options.iterations, "note": f"campaign: {name}", **asked}
    if stack:
        request["stacks"] = [stack]
    job = campaign.product.post_job(request)
    print(f"    job {job} on {stack}: {', '.join(asked['workloads'])}", flush=True)
    ended = campaign.product.finish_job(job, until)
    shown = {key: value for key, value in asked.items() if key != "workloads"}
    campaign.jobs.append({"step": name, "job": job, "stack": stack, "state": ended["state"],
                          "progress": ended["progress"], "workloads": asked["workloads"], "asked": shown})
    if ended["state"] != "finished":
        progress = ended["progress"]
        return f"{progress['runs_done']} of {progress['runs_total']} runs of the job were done"
    return None


def measure(campaign, name, stack, names, until, size=None, **asked):
    """One job for each size that is needed."""
    entries = [entry for workload, entry in catalogue(campaign).items() if workload in names]
    entries.sort(key=lambda entry: names.index(entry["workload"]))
    if not entries:
        raise Skipped("no workload of that kind is wanted here")
    wanted = size or ("small" if campaign.options.rehearse else campaign.options.size)
    cuts = []
    for own, workloads in by_size(entries, wanted).items():
        if time.monotonic() >= until:
            cuts.append(f"{', '.join(workloads)}: deadline")
        else:
            cuts.append(submit(campaign, name, stack, {"workloads": workloads, "sizes": [own], **asked}, until))
    return "; ".join(cut for cut in cuts if cut) or None


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
    """What the first pass could not decide: at the largest size, with a load process beside."""
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


# A framework

def complete(entry, folder, interpreter, driver):
    """An example's entry for the configuration, as it is on this machine."""
    command = [interpreter if word == "python3" else word for word in entry["command"]]
    environment = {**({"LD_LIBRARY_PATH": driver} if driver else {}), **entry.get("environment", {})}
    return {**entry, "command": command, "environment": environment,
            "directory": str((folder / entry.get("directory", ".")).resolve())}


def frameworks(campaign):
    """[(how it is to be run, its entry)] of the examples that have a configuration."""
    if campaign.options.workload or campaign.options.rehearse:
        return []
    found = []
    for path in sorted(EXAMPLES.glob("*.json")):
        entry = json.loads(path.read_text())
        found.append((entry.get("backend", "cpu"), complete(entry, path.parent, sys.executable,
                                                                 campaign.driver)))
    return found


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
    written = campaign.scratch / "table.json"
    command = [sys.executable, str(TABLE), "--table", "--device", "cuda", "--runs", "5", "--json", str(written)]
    path = ":".join(part for part in (campaign.driver, os.environ.get("LD_LIBRARY_PATH")) if part)
    answer = machine.runs.ask(command, max(1.0, until - time.monotonic()), {"LD_LIBRARY_PATH": path})
    if answer.exit_code == NO_FRAMEWORK:
        raise Skipped(answer.errors.strip()[-200:] or "there is no PyTorch here")
    campaign.extras["framework.txt"] = answer.output + answer.errors
    if written.exists():
        campaign.extras["framework.json"] = written.read_text()
    if answer.exit_code is None:
        return "the framework's table did not end in time"
    if answer.exit_code:
        return f"the framework's table: exit status {answer.exit_code}, {answer.errors.strip()[-200:]}"
    return None


ALL = (Step("check", 40, check), Step("serve", 3, serve), Step("documents", 14, documents),
       Step("others", 16, others), Step("larger", 6, larger), Step("stirred", 7, stirred),
       Step("algorithms", 8, every_algorithm), Step("stacks", 7, stacks), Step("framework", 20, framework))
NAMES = tuple(step.name for step in ALL)
