#!/usr/bin/env python3
"""make gpu-check: everything that only a GPU can show, in one command and one report.

Exit status 0: nothing failed (what did not fit is listed as not run); 1: something did;
77: there is no GPU or no nvcc, so nothing was checked.  tests/gpu/README.md explains it.
"""
import argparse
import os
import pathlib
import signal
import sys
import tempfile
import time
import traceback

import algorithms
import circumstances
import continued
import machine
import report as reports
import sanitize
import stages
import timing
from conclude import conclude
from session import RUNS, Session, small_size

RESULTS = machine.ROOT / "tests" / "gpu" / "results"
NOTHING_CHECKED = 77
REHEARSED = ("bias_add_bwd", "reduce_sum")


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="", help="folder of the report; tests/gpu/results")
    parser.add_argument("--seconds", type=float, default=470, help="deadline of everything")
    parser.add_argument("--jobs", type=int,
                        help="processes on the device at a time; what cores and memory allow")
    parser.add_argument("--runs", type=at_least_two, default=RUNS,
                        help="fresh processes of each variant, two at least")
    parser.add_argument("--stages", type=stages_of, metavar="A,B",
                        help=f"only these of {','.join(STAGES)}")
    parser.add_argument("--continue", dest="earlier", metavar="REPORT",
                        help="measure what that report of the same programs, libraries and GPU model lacks")
    parser.add_argument("--device", help="its id; the first by default")
    parser.add_argument("--workload", action="append", help="only these")
    parser.add_argument("--build", metavar="MAKE", help="build first, with this make")
    parser.add_argument("--nvcc", default="", help="the compiler that --build uses")
    parser.add_argument("--rehearse", action="store_true",
                        help="on the simulator, which proves nothing about a GPU")
    return parser.parse_args(argv)


def at_least_two(text):
    count = int(text)
    if count < 2:
        raise argparse.ArgumentTypeError("one process shows no difference")
    return count


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
    session = Session(worker, folder / "reprod-worker", options.seconds, options.jobs or 1)
    session.rehearsal, session.runs, session.chosen = options.rehearse, options.runs, options.stages
    return session


STAGES = {  # the title, and the share of the time that has passed when it ends
    "check": ("float64 reference, digests and sums of copies", 0.25),
    "cpu": ("inputs and bits of the CPU", 0.34),
    "survey": ("fresh processes", 0.68),
    "large": ("bits of the CPU at the size of the survey", 0.76),
    "load": ("load, poison and jitter", 0.82),
    "sanitizer": ("compute-sanitizer", 0.88),
    "timings": ("timings", 0.92),
    "algorithms": ("algorithms of cuDNN's convolutions", 0.99),
}
NEEDS = {"large": "survey", "load": "survey", "timings": "survey", "sanitizer": "check"}


def stages_of(text):
    """Those that --stages names, in the order of STAGES."""
    named = text.split(",")
    for name in named:
        if name not in STAGES:
            raise argparse.ArgumentTypeError(f"no stage {name!r}; there are {', '.join(STAGES)}")
        if NEEDS.get(name, name) not in named:
            raise argparse.ArgumentTypeError(f"{name} needs {NEEDS[name]}")
    return [name for name in STAGES if name in named]


class Stage:
    """Says what is going on, and keeps how long it took.  A defect ends the stage, not the check."""

    def __init__(self, session, title, share=1):
        self.session, self.title, self.share = session, title, share

    def __enter__(self):
        self.started = time.monotonic()
        self.session.allow(self.share)
        print(f"  {self.title} …", flush=True)

    def __exit__(self, _, error, __):
        seconds = round(time.monotonic() - self.started, 1)
        self.session.stages.append({"name": self.title, "seconds": seconds})
        if isinstance(error, Exception):
            self.session.defect(error, self.title)
            return True
        return False


def run_stages(session, records, probe, options):
    """In the order of what matters; each may use the time until its share has passed."""
    sizes = {"sizes": lambda entry: [small_size(entry)]} if session.rehearsal else {}
    few, many = algorithms.divide(records)
    ours = algorithms.with_controls(few, many)
    run = {
        "check": lambda until: stages.check_reference(session, ours, until),
        "cpu": lambda until: stages.compare_small(session, few, until),
        "survey": lambda until: stages.survey(session, few, until, **sizes),
        "large": lambda until: stages.compare_large(session, few, until, os.cpu_count() or 1),
        "load": lambda until: circumstances.perturb(session, few, until),
        "sanitizer": lambda until: run_sanitizer(session, ours, options, until),
        "timings": lambda until: run_timings(session, few, until),
        "algorithms": lambda until: algorithms.measure(session, many, until, **sizes),
    }
    for name, (title, share) in STAGES.items():
        if name not in (session.chosen or STAGES):
            session.skip(title, "--stages left it out")
            continue
        with Stage(session, title, share):
            run[name](session.until(share))
        save(session, probe, options)


def save(session, probe, options):
    """What is known so far: whoever kills the check has it."""
    try:
        conclude(list(session.records.values()))
        reports.write_unfinished(reports.build(session, probe), out_folder(options))
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()


def run_timings(session, records, until):
    name = "cudasim-bandwidth" if session.rehearsal else "gpu-bandwidth"
    folders = (build_folder(), machine.ROOT / "build")  # a bundle does not have it
    program = next((folder / "tests" / name for folder in folders
                    if (folder / "tests" / name).exists()), pathlib.Path(name))
    if program.exists():
        timing.bandwidth(session, program, *(["1"] if session.rehearsal else []))
    else:
        session.skip("bandwidth of the digest", f"{program.name} was not built")
    timing.measure(session, records, until)


def run_sanitizer(session, records, options, until):
    tool = None if session.rehearsal else sanitize.find_tool(options.nvcc)
    if tool:
        sanitize.sanitize(session, records, tool, machine.ROOT, until)
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


def jobs_of(session, probe, wanted):
    """How many processes at a time; WANTED (None: as fit) where the device takes them."""
    device = next((device for device in probe["devices"] if device["id"] == session.device), {})
    if machine.serves_one(device):
        session.skip("processes beside each other", "the compute mode is EXCLUSIVE_PROCESS")
        return 1
    if session.rehearsal:
        return wanted or min(6, os.cpu_count() or 1)
    return wanted or machine.processes_at_a_time(device)


def check(session, probe, options):
    """All stages; choices of algorithms are stored for this check alone."""
    try:
        session.device = options.device or probe["devices"][0]["id"]
        session.jobs = jobs_of(session, probe, options.jobs)
        session.load()
        if len(probe["devices"]) > 1:
            session.skip("the other devices", f"only {session.device} is checked")
        if options.earlier:
            try:
                continued.go_on(options.earlier, session, reports.build(session, probe))
            except continued.Other as other:
                raise SystemExit(f"gpu-check: nothing to go on with: {other}") from None
        run_stages(session, chosen(session, options), probe, options)
    except (Exception, KeyboardInterrupt) as error:  # what was found is reported anyway
        session.stop()
        traceback.print_exc()
        session.failures.append(f"the check itself ended early: {error!r}")


def finish(session, probe, folder):
    conclude(list(session.records.values()))
    found = reports.build(session, probe)
    paths = reports.write(found, folder)
    reports.remove_unfinished(folder)
    print(reports.head(found))
    for sentence in found["failed"]:
        print(f"FAILED  {sentence}")
    for sentence in found["findings"]:
        print(f"FINDING {sentence}")
    for sentence in found["unvaried_controls"]:
        print(f"DID NOT VARY {sentence}")
    for item in found["not_run"]:
        print(f"NOT RUN {item['what']} ({item['why']})")
    print("report: " + ", ".join(map(str, paths)))
    return 1 if found["failed"] else 0


def interrupt(*_):
    raise KeyboardInterrupt("SIGTERM")


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
    signal.signal(signal.SIGTERM, interrupt)
    sys.exit(main())
