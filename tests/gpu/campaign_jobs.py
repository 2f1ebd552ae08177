"""What the steps of a campaign ask of the service: its configuration and start, what it has to
measure, and jobs from the request to their end.
"""
import json
import subprocess
import sys
import time

import algorithms
import machine
import saved
from check import REHEARSED
from product import Product, Refused
from session import small_size

EXAMPLES = machine.ROOT / "workloads" / "python" / "examples"
ONLINE_LIMIT = 120  # seconds


class Skipped(Exception):
    """A step that has nothing to do here, and why."""


def surroundings(campaign):
    """The variables of a training on this machine: where the driver is, and the digests of the
    programs, which a tree where nothing was built lacks."""
    found = {"LD_LIBRARY_PATH": campaign.driver} if campaign.driver else {}
    for folder in (campaign.programs / "python", campaign.programs):
        if (folder / "libreprod-digest.so").exists():
            return {**found, "REPROD_DIGEST_LIBRARY": str((folder / "libreprod-digest.so").resolve())}
    return found


def complete(entry, folder, interpreter, variables):
    """An example's entry for the configuration, as it is on this machine."""
    command = [interpreter if word == "python3" else word for word in entry["command"]]
    return {**entry, "command": command, "environment": {**variables, **entry.get("environment", {})},
            "directory": str((folder / entry.get("directory", ".")).resolve())}


def frameworks(campaign):
    """[(how it is to be run, its entry)] of the examples that have a configuration."""
    if campaign.options.workload or campaign.options.rehearse:
        return []
    found = []
    for path in sorted(EXAMPLES.glob("*.json")):
        entry = json.loads(path.read_text())
        found.append((entry.get("backend", "cpu"), complete(entry, path.parent, sys.executable,
                                                            surroundings(campaign))))
    return found


def configuration(campaign):
    worker = str(campaign.worker)
    stacks = [{"name": name, "worker": worker, **({"library_path": path} if path else {}),
               **({"env": {"REPROD_CUDASIM_SEED": "3"}} if campaign.options.rehearse else {})}
              for name, path, _ in campaign.stacks]
    return {"stacks": stacks + campaign.packs, "workloads": [entry for _, entry in frameworks(campaign)]}


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
            and not is_of_framework(item)
            and not item["workload"] in {entry["name"] for _, entry in frameworks(campaign)}}


def is_of_framework(item):
    """Of a pack: the step of that name measures those, with a stack of their own."""
    return any(variant["subject"] == "framework" for variant in item["variants"])


def documented(campaign):
    """Names of the workloads that are rows of a table, the first table's first."""
    tables = campaign.product.get("/v1/profiles")["items"]
    rows = [row["workload"] for table in tables
            for row in campaign.product.get(f"/v1/matrix?table={table['id']}")["rows"]]
    return list(dict.fromkeys(row for row in rows if row))  # sources that none stands for have null


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
