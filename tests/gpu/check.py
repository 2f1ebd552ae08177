#!/usr/bin/env python3
"""make gpu-check: everything that only a GPU can show, in one command and one report.

Exit status 0: nothing failed (what did not fit is listed as not run); 1: something did;
77: there is no GPU or no nvcc, so nothing was checked.  tests/gpu/README.md explains it.
"""
import argparse
import os
import pathlib
import sys
import tempfile
import time
import traceback

import algorithms
import circumstances
import machine
import report as reports
import sanitize
import stages
import timing
from conclude import conclude
from session import Session, small_size

RESULTS = machine.ROOT / "tests" / "gpu" / "results"
NOTHING_CHECKED = 77
REHEARSED = ("bias_add_bwd", "reduce_sum")


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="", help="folder of the report; tests/gpu/results")
    parser.add_argument("--seconds", type=float, default=470, help="deadline of everything")
    parser.add_argument("--jobs", type=int, default=min(6, os.cpu_count() or 1),
                        help="processes on the device at a time")
    parser.add_argument("--device", help="its id; the first by default")
    parser.add_argument("--workload", action="append", help="only these")
    parser.add_argument("--build", metavar="MAKE", help="build first, with this make")
    parser.add_argument("--nvcc", default="", help="the compiler that --build uses")
    parser.add_argument("--rehearse", action="store_true",
                        help="on the simulator, which proves nothing about a GPU")
    return parser.parse_args(argv)


def build_folder():
    return pathlib.Path(os.environ.get("REPROD_BUILD") or machine.ROOT / "build")


def out_folder(options):
    folder = pathlib.Path(options.out or (build_folder() / "gpu-rehearsal" if options.rehearse
                                          else RESULTS)).resolve()
    if options.rehearse and RESULTS in (folder, *folder.parents):
        raise SystemExit(f"check.py: a rehearsal proves nothing and is not written into {RESULTS}")
    return folder


def new_session(options):
    folder = build_folder()
    worker = folder / ("tests/reprod-worker-cudasim" if options.rehearse else "reprod-worker-cuda")
    session = Session(worker, folder / "reprod-worker", options.seconds, options.jobs)
    session.rehearsal = options.rehearse
    return session


class Stage:
    """Says what is going on, and keeps how long it took."""

    def __init__(self, session, name):
        self.session, self.name = session, name

    def __enter__(self):
        self.started = time.monotonic()
        print(f"  {self.name} …", flush=True)

    def __exit__(self, *_):
        seconds = round(time.monotonic() - self.started, 1)
        self.session.stages.append({"name": self.name, "seconds": seconds})


def run_stages(session, records, options):
    """In the order of what matters; each may use the time until its share has passed."""
    threads = min(16, os.cpu_count() or 1)
    sizes = {"sizes": lambda entry: [small_size(entry)]} if session.rehearsal else {}
    records, many = algorithms.divide(records)
    with Stage(session, "float64 reference, digests and sums of copies"):
        stages.check_reference(session, algorithms.with_controls(records, many),
                               session.until(0.30))
    with Stage(session, "inputs and bits of the CPU"):
        stages.compare_small(session, records, session.until(0.40))
    with Stage(session, "fresh processes"):
        stages.survey(session, records, session.until(0.74), **sizes)
    with Stage(session, "timings"):
        run_timings(session, records)
    with Stage(session, "bits of the CPU at the size of the survey"):
        stages.compare_large(session, records, session.until(0.85), threads)
    with Stage(session, "load, poison and jitter"):
        circumstances.perturb(session, records, session.until(0.89))
    with Stage(session, "compute-sanitizer"):
        run_sanitizer(session, algorithms.with_controls(records, many), options)
    with Stage(session, "algorithms of cuDNN's convolutions"):
        algorithms.measure(session, many, session.until(0.99), **sizes)


def run_timings(session, records):
    name = "cudasim-bandwidth" if session.rehearsal else "gpu-bandwidth"
    folders = (build_folder(), machine.ROOT / "build")  # a bundle does not have it
    program = next((folder / "tests" / name for folder in folders
                    if (folder / "tests" / name).exists()), pathlib.Path(name))
    if program.exists():
        timing.bandwidth(session, program, *(["1"] if session.rehearsal else []))
    else:
        session.skip("bandwidth of the digest", f"{program.name} was not built")
    timing.measure(session, records, session.until(0.81))


def run_sanitizer(session, records, options):
    tool = None if session.rehearsal else sanitize.find_tool(options.nvcc)
    if tool:
        sanitize.sanitize(session, records, tool, machine.ROOT, session.until(0.92))
    else:
        session.skip("compute-sanitizer", "a rehearsal has no GPU" if session.rehearsal
                     else "the tool is not on this machine")


def chosen(session, options):
    """The records to fill: those of all workloads, or of those that are wanted."""
    wanted = options.workload or (REHEARSED if session.rehearsal else session.catalogue)
    left_out = [key for key in session.records if key[0] not in wanted]
    for key in left_out:
        del session.records[key]
    if left_out:
        session.skip(f"{len(left_out)} variants of other workloads",
                     "a rehearsal has few" if session.rehearsal else "--workload left them out")
    return list(session.records.values())


def check(session, probe, options):
    """All stages; choices of algorithms are stored for this check alone."""
    try:
        session.device = options.device or probe["devices"][0]["id"]
        session.load()
        if len(probe["devices"]) > 1:
            session.skip("the other devices", f"only {session.device} is checked")
        run_stages(session, chosen(session, options), options)
    except (Exception, KeyboardInterrupt) as error:  # what was found is reported anyway
        traceback.print_exc()
        session.failures.append(f"the check itself ended early: {error!r}")


def finish(session, probe, folder):
    conclude(list(session.records.values()))
    found = reports.build(session, probe)
    paths = reports.write(found, folder)
    print(reports.head(found))
    for sentence in found["failed"]:
        print(f"FAILED  {sentence}")
    for sentence in found["findings"]:
        print(f"FINDING {sentence}")
    for item in found["not_run"]:
        print(f"NOT RUN {item['what']} ({item['why']})")
    print("report: " + ", ".join(map(str, paths)))
    return 1 if found["failed"] else 0


def main(argv=None):
    options = arguments(argv)
    folder = out_folder(options)
    session = new_session(options)
    if options.build:
        if not options.nvcc:
            print("gpu-check: nvcc was not found, so nothing was checked")
            return NOTHING_CHECKED
        with Stage(session, "build"):
            problem = machine.build(options.build, session.left())
        if problem:
            print(f"gpu-check: the build failed\n{problem}")
            return 1
    probe = machine.probe_with_wheels(session.worker, session.env)
    if not probe.get("devices"):
        print(f"gpu-check: no GPU, so nothing was checked: {probe.get('cause')}")
        return NOTHING_CHECKED
    with tempfile.TemporaryDirectory() as cache:
        session.env["REPROD_CACHE_DIR"] = cache
        check(session, probe, options)
    return finish(session, probe, folder)


if __name__ == "__main__":
    sys.exit(main())
