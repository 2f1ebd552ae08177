#!/usr/bin/env python3
"""Real frameworks as stacks: installs versions into a cache, once, runs their packs through the service,
and prints what was found and the drift between neighbouring versions (make check-frameworks).

Exit status: 0; 1: something is not as it has to be; 75: the registry cannot be reached, and a version
that is not in the cache yet is needed.  --report writes workloads/frameworks/RESULTS.md anew.  --json is
written after each framework: with --go-on a check that was cut goes on, and does not measure those again."""
import argparse
import fnmatch
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "system"),
                str(pathlib.Path(__file__).resolve().parent)]
import render  # noqa: E402
from service import BUILD, ROOT, Service  # noqa: E402

SCRIPT = ROOT / "deploy" / "framework"
UNREACHABLE = 75
RUNS = 5  # of each cell
HOURS = 6  # a job that takes longer hangs
# PyTorch's wheels of version 2 bring CUDA along: 2.7 and 2.8 GiB to download, 5 GiB each on disk.
VERSIONS = {"inductor": ["2.4.1", "2.15.0"], "jax": ["0.4.30", "0.10.2"], "numpy": ["1.26.4", "2.4.6"],
            "onnxruntime": ["1.16.3", "1.23.2"], "pytorch": ["1.12.1", "2.4.1", "2.15.0"], "tensorflow": ["2.12.1", "2.15.1", "2.21.0"]}
PACKAGE_OF = {"inductor": "pytorch"}  # whose installed folder it is measured in: it is a part of that package
SHORT = ("numpy_matmul,numpy_sum,numpy_exp,onnxruntime_conv,onnxruntime_matmul,onnxruntime_reduce_sum,"
         "onnxruntime_resize_linear,onnxruntime_lstm")
FORM = 2  # of what is found: a check goes on with its own only
SAMPLE = 4  # operations whose forked runs are compared with fresh ones, beside the whole pack:
FRESH_RUNS = 2  # as many as drift needs on a side, where it prefers them to those that share an import
SEARCHED = {"contention": 1, "memory_poison": True, "allocation_jitter": True}  # load has the threads of a run
WIDE_THREADS = 2 * len(os.sched_getaffinity(0))  # which is load by itself
WIDE = {"sizes": ["large"], "memory_poison": True, "allocation_jitter": True}
ITERATIONS = {"circumstances": 3, "wide": 2}
BAD = ("crashed", "timeout", "invalid", "lost", "infra", "out_of_memory")


def interpreters():
    """Candidates, the newest last: old versions have wheels for old ones only."""
    names = [sys.executable] + [shutil.which(f"python3.{minor}") for minor in range(13, 7, -1)]
    own = pathlib.Path.home() / ".pyenv" / "versions"
    names += [str(path) for path in sorted(own.glob("3.*/bin/python"), reverse=True)]
    found = {}
    for name in filter(None, names):
        said = subprocess.run([name, "-c", "import sys; print(sys.version_info[:2])"],
                              capture_output=True, text=True)
        if said.returncode == 0:
            found.setdefault(said.stdout, name)
    return list(found.values())


def size_of(folder):
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def install(framework, version, options):
    """The stack's entry; installs it where the cache lacks it."""
    package = PACKAGE_OF.get(framework, framework)
    folder = options.cache / f"{package}-{version}"
    if not (folder / "framework.json").exists():
        refusals = []
        for python in interpreters():
            source = ["--wheels", str(options.wheels)] if options.wheels else []
            done = subprocess.run([sys.executable, str(SCRIPT), "--framework", package,
                                   "--version", version, "--into", str(options.cache), "--python", python, *source],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            print(done.stderr, end="", flush=True)
            if done.returncode == 0:
                break
            if done.returncode == UNREACHABLE:
                sys.exit(UNREACHABLE)
            refusals.append(done.stderr.strip().splitlines()[-1])
        else:
            sys.exit(f"{framework} {version}: no interpreter here can run it: {refusals}")
    print(f"{folder.name}: {size_of(folder) >> 20} MiB in {folder}", flush=True)
    program = own_worker(folder, framework, options.programs)
    return {"name": program.name, "worker": str(program), "probe_seconds": 300}


def own_worker(folder, framework, programs):
    """The program of the installed FOLDER with the packs of this tree: those of the tree that
    installed it may be others, or be gone."""
    [line] = [line for line in (folder / "worker").read_text().splitlines() if line.startswith("exec ")]
    packs = ROOT / "workloads" / "frameworks"
    words = [shlex.split(line)[1], "-s", "-B", packs / "worker.py", "--pack", packs / f"pack_{framework}.py",
             "--packages", folder / "lib"]
    program = programs / folder.name.replace(PACKAGE_OF.get(framework, framework), framework, 1)
    program.write_text("#!/bin/sh\nunset PYTHONPATH PYTHONHOME\nexec "
                       + " ".join(shlex.quote(str(word)) for word in words) + ' "$@"\n')
    program.chmod(0o755)
    return program


def catalogue(program):
    """{name of an operation: its line} of the version whose worker PROGRAM is."""
    said = subprocess.run([str(program), "--catalogue"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True)
    return {line["workload"]: line for line in map(json.loads, said.stdout.splitlines())}


def allowed(lines, only):
    """Those that a pattern allows."""
    return {name: line for name, line in sorted(lines.items())
            if any(fnmatch.fnmatch(name, pattern) for pattern in only.split(","))}


def build_of(framework):
    """What the runs of its pack in this tree say asks the framework, without importing that."""
    packs = ROOT / "workloads" / "frameworks"
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import worker; worker.find_probes();"
            " print(worker.load_pack(sys.argv[2]).build)")
    return subprocess.run([sys.executable, "-B", "-c", code, str(packs), str(packs / f"pack_{framework}.py")],
                          stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def shares_import(lines, options):
    """Whether one process may import the framework and fork the runs of all of these."""
    return not options.fresh and all("shared_import" in line["circumstances"] for line in lines)


def spread(names, count):
    """COUNT of the names, from all over the list."""
    names = list(names)
    return names[::max(1, -(-len(names) // count))] if names else []


def cells_of(service, runs):
    cells = {}
    for run in runs:
        if run["cell"]:
            cells.setdefault((run["stack"], run["workload"], run["variant"]), run["cell"])
    return {key: service.get(cell if str(cell).startswith("/") else f"/v1/cells/{cell}")
            for key, cell in cells.items()}


def environment_of(runs, stack):
    found = {run["environment"] for run in runs if run["stack"] == stack and run["environment"]}
    if len(found) != 1:
        raise SystemExit(f"{stack}: its runs are of {len(found)} environments")
    return found.pop()


def drift_between(service, before, after):
    [drift] = service.get(f"/v1/drift?from={before}&to={after}")["items"]
    kinds = {}
    for group in drift["groups"]:
        for case in group["cases"]:
            kinds[f"{case['workload']}/{case['variant']}"] = group["kind"]
    return {"title": drift["title"], "headline": drift["headline"], "kinds": kinds}


def complaints(service, framework, runs):
    """What must not be, whatever a framework does."""
    found = [f"run {run['id']}: {run['workload']} {run['variant']} on {run['stack']}: {run['outcome']}:"
             f" {run['cause']}" for run in runs if run["outcome"] in BAD]
    for item in service.items("/v1/inputs"):
        found.append(f"versions compute {item['workload']} from different inputs")
    if not any(run["outcome"] == "completed" for run in runs):
        found.append(f"no run of {framework} completed")
    return found


def measure_version(service, name, workloads, shared, count, options):
    """(runs, challenges, seconds) of one version, all of them after one another."""
    began = time.monotonic()
    job = service.post_job(workloads=workloads, stacks=[name], runs=count,
                           iterations=options.iterations, **({"shared_import": True} if shared else {}))
    service.finish_job(job, 3600 * HOURS)
    seconds = time.monotonic() - began
    return service.items(f"/v1/runs?job={job}"), service.items(f"/v1/runs?job={job}&challenges=only"), seconds


def measure_sample(service, name, forked, options):
    """Fresh processes for some operations that are the same in all forked runs, and whether their bits are
    the same, too.  They count in the same cells, which vary where they are not."""
    bits = {}
    for run in forked:
        if run["variant"] == "default" and run["outcome"] == "completed":
            bits.setdefault(run["workload"], set()).add(run["digest"] if run["distinct_digests"] == 1 else None)
    same = {workload: digests for workload, digests in bits.items() if len(digests) == 1 and None not in digests}
    sample = spread(sorted(same), SAMPLE)
    if not sample:
        return [], {"same": [], "other": []}
    job = service.post_job(workloads=sample, stacks=[name], runs=FRESH_RUNS, variants=["default"],
                           iterations=options.iterations)
    service.finish_job(job, 3600 * HOURS)
    runs = service.items(f"/v1/runs?job={job}")
    other = {run["workload"] for run in runs
             if run["outcome"] == "completed" and same[run["workload"]] != {run["digest"]}}
    compared = {run["workload"] for run in runs if run["outcome"] == "completed"}
    return runs, {"same": sorted(compared - other), "other": sorted(other)}


def measure_search(service, name, runs, asked):
    """Before it is said that an operation did not vary: runs of it under all circumstances at once, and
    then large ones, with more threads than processors.  Where it varies there, its switches are measured
    there: only that may show what they cure.  Large runs are of the stack wide_stack(NAME), whose environment
    is another one: (runs of NAME, runs of that, what was found)"""
    default = {run["workload"] for run in runs if run["variant"] == "default" and run["outcome"] == "completed"}
    still = sorted(default - varying(service, runs))
    switches = sorted({run["variant"] for run in runs} - {"default"})
    found, varied = search(service, name, still, switches, asked, SEARCHED, ITERATIONS["circumstances"])
    silent = sorted(set(still) - set(varied))
    wide, varied_wide = search(service, wide_stack(name), silent, switches, asked, WIDE, ITERATIONS["wide"])
    return found, wide, {"under": SEARCHED, "operations": len(still), "varied": varied,
                         "threads": WIDE_THREADS, "wide": len(silent), "varied_wide": varied_wide,
                         "cured_wide": cured(service, wide, varied_wide)}


def search(service, name, operations, switches, asked, how, iterations):
    """(runs of the OPERATIONS, asked for as HOW says; which of them varied): their SWITCHES only of these"""
    found = []
    if operations:
        found += job_of(service, name, asked, iterations, workloads=operations, variants=["default"], **how)
    varied = sorted(varying(service, found))
    if varied and switches:
        found += job_of(service, name, asked, iterations, workloads=varied, variants=switches, **how)
    return found, varied


def cured(service, runs, operations):
    """{variant: those of the OPERATIONS that it made reproducible}"""
    found = {}
    for (_, workload, variant), cell in sorted(cells_of(service, runs).items()):
        if workload in operations and cell["verdict"] == "reproducible":
            found.setdefault(variant, []).append(workload)
    return found


def varying(service, runs):
    """Operations whose default is in a cell that varies."""
    return {workload for (_, workload, variant), cell in cells_of(service, runs).items()
            if variant == "default" and cell["verdict"] == "varies"}


def job_of(service, name, asked, iterations, **what):
    job = service.post_job(stacks=[name], runs=asked["runs"], iterations=iterations, **what,
                           **({"shared_import": True} if asked["shared"] else {}))
    service.finish_job(job, 3600 * HOURS)
    return service.items(f"/v1/runs?job={job}")


def wide_stack(name):
    return name + "-wide"


def wide_entry(stack):
    return {**stack, "name": wide_stack(stack["name"]), "threads": WIDE_THREADS}


def imports_of(runs):
    """How many processes imported the framework: the leader of a forked run is who did."""
    return len({(run["process"]["boot_id"], run["process"]["pid"]) for run in runs if run["process"]})


def asked_for(framework, names, options):
    """What is measured of one framework, and how: a check that asks for the same has its results."""
    operations = {name: allowed(catalogue(options.programs / name), options.only) for name in names}
    lines = {workload: line for each in operations.values() for workload, line in each.items()}
    build = build_of(framework)
    return {"form": FORM, "framework": framework, "runs": runs_of(options.runs, framework), "iterations": options.iterations,
            "shared": shares_import(lines.values(), options), "builds": {name: build for name in names},
            "titles": {workload: line["title"] for workload, line in lines.items()}}, operations


def measure_one(service, name, asked, workloads, options):
    """(what was found of one version, its runs)"""
    runs, challenges, seconds = measure_version(service, name, workloads, asked["shared"], asked["runs"], options)
    found = {"stack": name, "seconds": round(seconds), "processes": len(runs) + len(challenges),
             "imports": imports_of(runs + challenges), "sample": None, "search": None, "load": round(os.getloadavg()[0], 1)}
    if asked["shared"]:
        fresh, found["sample"] = measure_sample(service, name, runs, options)
        runs += fresh
    more, wide, found["search"] = measure_search(service, name, runs, asked)
    runs += more
    return {**found, **said_of(service, name, runs)}, runs + wide


def found_earlier(asked, earlier, here):
    """What EARLIER checks on this machine found of the same, or None."""
    for found in (found for check in earlier if check["machine"] == here for found in check["frameworks"]):
        if all(found.get(name) == value for name, value in asked.items()) and "wrong" in found:
            return found
    return None


def runs_of(text, framework):
    """Of "2,pytorch=5": 5 of PyTorch, 2 of the others."""
    words = [word.partition("=") for word in text.split(",")]
    return {name: int(number) for name, equals, number in words if equals}.get(
        framework, next((int(word) for word, equals, _ in words if not equals), RUNS))


def said_of(service, name, runs):
    """The facts and the cells of one version."""
    environment = environment_of(runs, name)
    stack = next(s for s in service.get("/v1/stacks")["items"] if s["name"] == name)
    cells = {f"{workload}/{variant}": {"verdict": cell["verdict"], "reason": cell["reason"],
                                       "challenge": cell["challenge"]["state"],
                                       "witness": cell["witness"] and "%s/%s" % (
                                           cell["witness"]["workload"], cell["witness"]["variant"])}
             for (_, workload, variant), cell in cells_of(service, runs).items()}
    causes = {f"{run['workload']}/{run['variant']}": run["cause"] for run in runs
              if run["outcome"] == "unsupported"}
    return {"environment": environment, "facts": service.get(f"/v1/environments/{environment}")["facts"],
            "unmeasured": stack["unmeasured"], "cells": cells, "causes": causes}


def machine():
    import reprod_probe
    return {"model": reprod_probe._cpu_model(), "processors": len(os.sched_getaffinity(0)),
            "vector_isa": reprod_probe._vector_isa(), "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver())}


def check(plan, options):
    found, wrong, here = [], [], machine()
    earlier = [json.loads(path.read_text()) for path in options.go_on]
    with tempfile.TemporaryDirectory(prefix="reprod-frameworks-") as folder:
        options.programs = pathlib.Path(folder) / "programs"
        options.programs.mkdir()
        stacks = {framework: [install(framework, version, options) for version in versions]
                  for framework, versions in plan.items()}
        for framework in plan:
            asked, operations = asked_for(framework, [stack["name"] for stack in stacks[framework]], options)
            result = found_earlier(asked, earlier, here) or measure(
                pathlib.Path(folder) / framework, stacks[framework], asked, operations, options)
            wrong += result["wrong"]
            found.append(result)
            print(render.text(result), flush=True)
            keep(options, {"machine": here, "frameworks": found})
    return {"machine": here, "frameworks": found}, wrong


def measure(folder, stacks, asked, operations, options):
    """What was found of the framework that is ASKED for; OPERATIONS of each version.  One service after the
    other, of one database, has one version each: reading back all at once takes longer than an agent may."""
    found = {**asked, "date": time.strftime("%Y-%m-%d"), "versions": [], "drift": [], "wrong": []}
    runs = []
    for stack in stacks:
        service = Service(folder, options=["--no-survey"], config={"stacks": [{"name": "cpu"}, stack, wide_entry(stack)]})
        service.start()
        try:
            cause = next(s["cause"] for s in service.get("/v1/stacks")["items"] if s["name"] == stack["name"])
            if cause:
                raise SystemExit(f"{stack['name']}: {cause}")
            version, own = measure_one(service, stack["name"], asked, list(operations[stack["name"]]), options)
            runs += own
            for before in found["versions"][-1:]:
                found["drift"].append(drift_between(service, before["environment"], version["environment"]))
            found["versions"].append(version)
            if stack is stacks[-1]:
                found["wrong"] += complaints(service, asked["framework"], runs)
        finally:
            service.stop()
    code, text = service.fsck()
    found["wrong"] += [text] if code else []
    return found


def keep(options, results):
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    parser.add_argument("--cache", type=pathlib.Path, default=home / "reprod" / "frameworks")
    parser.add_argument("--wheels", type=pathlib.Path, help="a folder of wheels instead of the network")
    parser.add_argument("--short", action="store_true", help="some of numpy and ONNX Runtime, in one version, two runs each")
    parser.add_argument("--runs", default=str(RUNS), metavar="N,FRAMEWORK=N", help="of each cell")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--fresh", action="store_true",
                        help="each run imports its framework itself, where one import could serve many")
    parser.add_argument("--only", default="*", help="operations: patterns as fnmatch has them, with commas")
    parser.add_argument("--json", type=pathlib.Path, help="what was found")
    parser.add_argument("--go-on", type=pathlib.Path, action="append", default=[], metavar="JSON",
                        help="of a check that was cut; several")
    parser.add_argument("--report", type=pathlib.Path, help="the same as a document")
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK=VERSION,VERSION")
    options = parser.parse_args()
    if not re.fullmatch(r"((\w+=)?[1-9]\d*,)*(\w+=)?[1-9]\d*", options.runs):
        parser.error("--runs is a number, or for one framework FRAMEWORK=NUMBER, with commas")
    return options


def plan_of(options):
    if options.short:
        options.runs, options.iterations, options.only = "2", 2, SHORT
        return {"numpy": VERSIONS["numpy"][-1:], "onnxruntime": VERSIONS["onnxruntime"][-1:]}
    plan = {}
    for text in options.frameworks:
        name, _, versions = text.partition("=")
        if name not in VERSIONS or not re.fullmatch(r"[\w.,+]*", versions):
            sys.exit(f"'{text}' is not FRAMEWORK=VERSION,VERSION; there are {', '.join(VERSIONS)}")
        plan[name] = [v for v in versions.split(",") if v] or VERSIONS[name]
    return plan or VERSIONS


def main():
    options = parse()
    sys.path.insert(0, str(ROOT / "workloads" / "python"))
    options.cache.mkdir(parents=True, exist_ok=True)
    plan = plan_of(options)
    results, wrong = check(plan, options)
    results["command"] = "make check-frameworks RUNS=%s%s%s REPORT=workloads/frameworks/RESULTS.md%s" % (
        options.runs, " FRESH=1" if options.fresh else "", "" if options.only == "*" else " ONLY='%s'" % options.only,
        "" if plan == VERSIONS else " FRAMEWORKS='%s'" % " ".join(
            f"{name}={','.join(versions)}" for name, versions in plan.items()))
    results["joined"] = bool(options.go_on)
    keep(options, results)
    if options.report:
        options.report.write_text(render.document(results))
    for line in wrong:
        print(f"WRONG: {line}")
    count = sum(len(version["cells"]) for found in results["frameworks"] for version in found["versions"])
    print(f"{count} cells of {len(results['frameworks'])} frameworks, {len(wrong)} wrong; {BUILD}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
