#!/usr/bin/env python3
"""Adds the digests of new cases to tests/golden/digests.txt and drops those of cases that
are gone.  Usage: update_golden.py [--all] [build/reprod-worker]

Sizes that take long are computed where they are new, or with --all.  A digest that is there
already never changes under its version: numerics that change bump the version of their
workload, which makes a new case.  tests/system/test_golden.py checks the same file.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "golden" / "digests.txt"
SEED = 1
LONG = {"medium", "large"}  # sizes that only campaigns compute again; large takes gigabytes
TIMED_CHOICE = {"cached"}  # variants whose bits follow from a measured time, then stored
LIBRARIES = ("onednn_",)  # prefixes of workloads whose bits are those of a library
LIMIT = 3600  # seconds after which a run is given up
HEADER = """\
# Digests of the variants that compute in a fixed order: workload, version, variant, size,
# dtype, seed, digest.  Written by tests/update_golden.py, checked by
# tests/system/test_golden.py.
"""


def catalogue(worker):
    out = subprocess.run([worker, "--catalogue"], check=True, capture_output=True, timeout=LIMIT)
    return [json.loads(line) for line in out.stdout.splitlines()]


def cases(worker):
    """Every case that has a golden digest: (workload, version, variant, size, dtype, seed)."""
    return [(w["workload"], str(w["version"]), v["name"], size["name"], dtype, str(SEED))
            for w in catalogue(worker) for v in w["variants"] for dtype in w["dtypes"]
            for size in w["sizes"] if not v["control"] and v["name"] not in TIMED_CHOICE
            and not w["workload"].startswith(LIBRARIES)]


def digest(worker, case, threads=2):
    """The digest of one iteration of a fresh process, or "unsupported"."""
    workload, _, variant, size, dtype, seed = case
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
    environment["OMP_WAIT_POLICY"] = "passive"  # as the agent sets it
    with tempfile.TemporaryFile() as events:
        environment["REPROD_RESULT_FD"] = str(events.fileno())
        done = subprocess.run(
            [worker, "--run", "--workload", workload, "--variant", variant, "--size", size,
             "--dtype", dtype, "--seed", seed, "--iterations", "1", "--threads", str(threads)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT,
            pass_fds=[events.fileno()], env=environment)
        events.seek(0)
        lines = [json.loads(line) for line in events]
    if done.returncode != 0 or not lines or lines[-1]["event"] != "end":
        raise RuntimeError(f"{' '.join(case)}: exit status {done.returncode}: {done.stderr[-500:]}")
    if lines[-1]["outcome"] == "unsupported":
        return "unsupported"
    found = [event["digest"] for event in lines if event["event"] == "iteration"]
    if lines[-1]["outcome"] != "completed" or len(found) != 1:
        raise RuntimeError(f"{' '.join(case)}: {lines[-1]}")
    return found[0]


def read(path=FILE):
    """{case: digest} of the file; the file must be sorted and name no case twice."""
    if not path.exists():
        return {}
    lines = [tuple(line.split()) for line in path.read_text().splitlines()
             if line and not line.startswith("#")]
    for line in lines:
        if len(line) != 7:
            raise ValueError(f"{path}: not a case and its digest: {' '.join(line)}")
    golden = {line[:6]: line[6] for line in lines}
    if lines != sorted(lines) or len(golden) != len(lines):
        raise ValueError(f"{path}: not sorted, or a case stands there twice")
    return golden


def is_long(case):
    return case[3] in LONG


def main():
    arguments = [each for each in sys.argv[1:] if each != "--all"]
    worker = arguments[0] if arguments else str(ROOT / "build" / "reprod-worker")
    known, fresh, failed = read(), {}, []
    for case in cases(worker):
        if case in known and is_long(case) and "--all" not in sys.argv:
            fresh[case] = known[case]
            continue
        fresh[case] = digest(worker, case)
        name = " ".join(case)
        if digest(worker, case, threads=3) != fresh[case]:
            failed.append(f"{name}: two runs differ: is it a control?")
        elif known.get(case, fresh[case]) != fresh[case]:
            failed.append(f"{name}: numerics changed: bump the version of the workload")
        elif case not in known:
            print(f"new: {name} {fresh[case]}")
    if failed:
        print("\n".join(failed), file=sys.stderr)
        return 1
    for case in sorted(set(known) - set(fresh)):
        print(f"gone: {' '.join(case)}")
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(HEADER + "".join(" ".join((*case, found)) + "\n"
                                     for case, found in sorted(fresh.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
