#!/usr/bin/env python3
"""Half an hour on a machine with a GPU, one command of it: the check, then the service on a
database of its own, which measures as a user would have it measured.  Everything that is
found is saved after every step.  tests/gpu/README.md has the plan.

Exit status 0: every step was done or had nothing to do; 1: one failed or was cut; 77: there is
no GPU.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback

import campaign_jobs as jobs
import campaign_steps as steps
import figures
import library_stacks
import machine
import report as reports
import saved
from check import NOTHING_CHECKED, RESULTS, build_folder

RESERVED = 20  # seconds at the end, to save and to stop
ROOM = 512 << 20  # bytes of memory that a database may need, with its copy


def find_nvcc():
    usual = "/usr/local/cuda/bin/nvcc"
    return shutil.which("nvcc") or (usual if os.path.exists(usual) else "")


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=os.environ.get("OUT"), help="folder of what is saved (or $OUT)")
    parser.add_argument("--seconds", type=float, default=560, help="deadline of everything")
    parser.add_argument("--steps", default=",".join(steps.NAMES), help="some of them, in any order")
    parser.add_argument("--bundle", help="folder of the programs (make bundle), or its archive")
    parser.add_argument("--build", metavar="MAKE", help="build the workers here first, with this make")
    parser.add_argument("--nvcc", default=find_nvcc(), help="of the toolkit whose libraries and tools are "
                        "used (%(default)s)")
    parser.add_argument("--database", help="go on with the database that an earlier campaign saved")
    parser.add_argument("--continue", dest="earlier", metavar="REPORT",
                        help="the check goes on with the report of an earlier one")
    parser.add_argument("--check-runs", help="processes of each variant in the check")
    parser.add_argument("--libraries", action="append", default=[], metavar="FOLDERS",
                        help="one more set of libraries, as LD_LIBRARY_PATH would have it")
    parser.add_argument("--device", help="its id; the first GPU by default")
    parser.add_argument("--workload", action="append", help="only these")
    parser.add_argument("--size", default="medium", help="of the first pass")
    parser.add_argument("--operations", action="append", metavar="GLOB",
                        help="only these of the step packs, without the framework's name (repeatable)")
    parser.add_argument("--interpreter", default=sys.executable,
                        help="whose frameworks the step packs measures (%(default)s)")
    parser.add_argument("--pack", action="append", metavar="FILE",
                        help="of the step packs, instead of those that the interpreter has (repeatable)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--rehearse", action="store_true",
                        help="on the simulator, which proves nothing about a GPU")
    options = parser.parse_args(argv)
    options.steps = [name for name in options.steps.split(",") if name]
    unknown = [name for name in options.steps if name not in steps.NAMES]
    if unknown:
        parser.error(f"there is no step {unknown[0]}; there are {', '.join(steps.NAMES)}")
    if not options.out:
        parser.error("--out: where is what is found to be saved?")
    return options


class Campaign:
    """What all steps share."""

    def __init__(self, options, scratch, unpacked):
        self.options, self.scratch = options, pathlib.Path(scratch)
        self.started = time.monotonic()
        self.date = reports.now()
        self.out = pathlib.Path(options.out).resolve()
        if options.rehearse and RESULTS in (self.out, *self.out.parents):
            raise SystemExit(f"campaign.py: a rehearsal proves nothing, and is not written into {RESULTS}")
        self.unpacked = pathlib.Path(unpacked)  # may hold programs, which scratch may not
        self.programs = steps.programs(options.bundle, self.unpacked)
        self.workers = build_folder() if options.build or options.rehearse else self.programs
        self.worker = self.workers / ("tests/reprod-worker-cudasim" if options.rehearse
                                      else "reprod-worker-cuda")
        self.product, self.device, self.version = None, None, "unknown"
        self.stacks = []  # (name, library path, what the worker says)
        self.driver = ""  # the part of every path that leads to the driver
        self.packs, self.packs_said = [], []  # entries of the configuration; as stacks, of frameworks
        self.probes_ms, self.jobs, self.steps = [], [], []
        self.notes, self.extras = [], {}  # texts that join the views

    # ---- the clock

    def left(self):
        return self.options.seconds - (time.monotonic() - self.started)

    def limit_of(self, name):
        """Seconds: its share of what is left, among the steps that are still to come."""
        due = [other for other in steps.ALL if other.name in self.options.steps]
        to_come = due[[step.name for step in due].index(name):]
        share = to_come[0].weight / sum(step.weight for step in to_come)
        return max(0.0, self.left() - min(RESERVED, self.options.seconds / 10)) * share

    # ---- steps

    def take(self, name, function, limit):
        """Runs one step; whatever happens in it, the next one has its turn."""
        began = time.monotonic()
        print(f"  {name} (up to {limit:.0f} s) …", flush=True)
        outcome, cause = "done", None
        try:
            cause = function(self, began + limit)
            outcome = "cut" if cause else "done"
        except jobs.Skipped as why:
            outcome, cause = "skipped", str(why)
        except Exception as error:  # what the other steps find is not lost for it
            if not isinstance(error, jobs.Refused):
                traceback.print_exc()
            outcome, cause = "failed", f"{type(error).__name__}: {error}"
        self.steps.append({"name": name, "outcome": outcome, "cause": cause,
                           "seconds": round(time.monotonic() - began, 1), "limit": round(limit, 1)})
        print(f"    {outcome}{': ' + cause if cause else ''}", flush=True)
        return outcome

    def gpu(self):
        found = next((device for _, _, said in self.stacks for device in said["devices"]
                      if device["id"] == self.device), {})
        return found.get("model", "unknown")

    # ---- what is left behind

    def runs(self):
        """All of the database, also of campaigns before."""
        return self.product.items("/v1/runs") if self.alive() else []

    def alive(self):
        return self.product is not None and self.product.alive()

    def matrices(self, runs, kind):
        """A framework's has the rows of its own table, where there is one."""
        suffix = "" if kind == "json" else ".txt"
        return {stack: self.product.get(f"/v1/matrix{suffix}?environment={environment}{self.table_of(stack)}")
                for stack, environment in jobs.environments_of(runs).items()}

    def table_of(self, stack):
        tables = [table["id"] for table in self.product.get("/v1/profiles")["items"]]
        return next((f"&table={name}" for name in tables if stack.startswith(f"{name}-")), "")

    def summary(self, runs):
        environments = jobs.environments_of(runs)
        return {
            "v": 1, "rehearsal": self.options.rehearse, "date": self.date, "gpu": self.gpu(),
            "device": self.device, "version": self.version,
            "seconds": round(time.monotonic() - self.started, 1), "limit_seconds": self.options.seconds,
            "steps": self.steps, "jobs": self.jobs, "notes": self.notes,
            "stacks": [{"name": name, "library_path": path, "versions": said.get("versions", {}),
                        "problems": said.get("problems", {}), "environment": environments.get(name)}
                       for name, path, said in [*self.stacks, *self.packs_said]],
            "failures": figures.failures(runs),
            "findings": [jobs.sentence(item) for item in self.product.items("/v1/findings")]
            if runs else [],
            "figures": figures.build(runs, self.matrices(runs, "json"), self.probes_ms)}

    def operations(self):
        """Of each framework's stack, as data."""
        found = {stack: figures.operations(matrix) for stack, matrix in self.matrices(self.runs(), "json").items()}
        found = {stack: rows for stack, rows in found.items() if rows}
        return {"operations.json": json.dumps(found, indent=1) + "\n"} if found else {}

    def file(self, name):
        return self.out / (f"rehearsal-{name}" if self.options.rehearse else name)

    def save(self):
        """Each file for itself: where one cannot be read, the others are still saved."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.try_to(self.save_summary)
        if self.alive():
            self.try_to(lambda: saved.write_database(self.product, self.scratch,
                                                     self.file("database.db.gz")))
            self.try_to(lambda: saved.write(self.file("views.tar.gz"), saved.archive({
                **saved.views(self.product, jobs.environments_of(self.runs()), self.jobs), **self.extras,
                **self.operations()})))
        if self.product is not None:
            self.try_to(lambda: saved.write(self.file("service.log"), self.product.log_tail(
                saved.LOG_MAX).encode()))

    def save_summary(self):
        runs = self.runs()
        summary = self.summary(runs)
        saved.write(self.file("summary.json"), json.dumps(summary, indent=1).encode() + b"\n")
        text = saved.summary_text(summary, self.matrices(runs, "txt"))
        saved.write(self.file("summary.md"), text.encode())

    def try_to(self, function):
        try:
            function()
        except Exception as error:
            traceback.print_exc()
            self.notes.append(f"not saved: {type(error).__name__}: {error}")


def find_device(campaign):
    """The stacks of this machine, and the device to measure; None where there is no GPU."""
    options = campaign.options
    if options.rehearse:
        said = machine.probe(campaign.worker, {})
        campaign.stacks = [("simulator", "", said), ("simulator-2", "", said)] if said.get("devices") else []
    else:
        campaign.driver, campaign.stacks, said = library_stacks.on_this_machine(
            campaign.worker, options.nvcc, options.libraries)
    for _ in range(3):
        began = time.monotonic()
        machine.probe(campaign.worker, {"LD_LIBRARY_PATH": campaign.stacks[0][1]} if campaign.stacks else {})
        campaign.probes_ms.append((time.monotonic() - began) * 1000)
    devices = [device["id"] for _, _, found in campaign.stacks for device in found["devices"]]
    campaign.device = options.device if options.device in devices or not devices else None
    campaign.device = campaign.device or (devices[0] if devices and not options.device else None)
    return said.get("cause") or "the device that was asked for is not here"


def free_memory():
    """Bytes that files in memory may take; containers often have 64 MiB for them."""
    try:
        return shutil.disk_usage("/dev/shm").free if os.access("/dev/shm", os.W_OK) else 0
    except OSError:
        return 0


def scratch_parent(mounts, usual, memory):
    """Where the database may lie meanwhile, by the text of /proc/mounts: USUAL, or in MEMORY, if
    that many bytes suffice, where that is a network file system, as in some sandboxes."""
    best = ("", "")
    for line in mounts.splitlines():
        _, folder, kind, *_ = line.split()
        if (usual + "/").startswith(folder.rstrip("/") + "/") and len(folder) >= len(best[0]):
            best = (folder, kind)
    remote = best[1].startswith(("9p", "nfs", "cifs", "fuse", "virtiofs"))
    return "/dev/shm" if remote and memory >= ROOM else usual


def interrupted(*_):
    raise KeyboardInterrupt


def run(campaign):
    options = campaign.options
    if options.build:
        campaign.take("build", steps.build, max(10.0, campaign.left() / 3))
    cause = find_device(campaign)
    if not campaign.device:
        print(f"campaign: no GPU, so nothing was measured: {cause}")
        return NOTHING_CHECKED
    for step in steps.ALL:
        if step.name in options.steps:
            campaign.take(step.name, step.function, campaign.limit_of(step.name))
            campaign.save()
    return 1 if any(step["outcome"] in ("cut", "failed") for step in campaign.steps) else 0


def main(argv=None):
    options = arguments(argv)
    signal.signal(signal.SIGTERM, interrupted)
    usual = os.path.realpath(tempfile.gettempdir())
    parent = scratch_parent(pathlib.Path("/proc/mounts").read_text(), usual, free_memory())
    with tempfile.TemporaryDirectory(prefix="campaign.", dir=parent) as scratch, \
            tempfile.TemporaryDirectory(prefix="bundle.", dir=usual) as unpacked:  # memory may be noexec
        campaign = Campaign(options, scratch, unpacked)
        try:
            status = run(campaign)
        except KeyboardInterrupt:
            campaign.notes.append("the campaign was interrupted")
            campaign.save()
            status = 1
        finally:
            if campaign.product is not None:
                campaign.product.stop()
        if status != NOTHING_CHECKED:
            campaign.try_to(lambda: print(campaign.file("summary.md").read_text()))
            print("saved: " + " ".join(sorted(path.name for path in campaign.out.iterdir())))
    return status


if __name__ == "__main__":
    sys.exit(main())
