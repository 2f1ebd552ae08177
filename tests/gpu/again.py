#!/usr/bin/env python3
"""Judges a report again, in place, as check.py would judge the same runs today.  Needs no GPU.

  tests/gpu/again.py tests/gpu/results/X.json

Nothing is measured.  Which variants are controls, and of which kind, comes from the catalogue of the
worker that was built here; the report says that it was judged again, when, and by which build's."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import report as reports
from check import build_folder
from conclude import conclude, new_record
from continued import Other, read

DECLARED = ("control", "kind", "no_control")  # not by the runs: a claim is the run's, where it has one


def answer(worker, *options):
    said = subprocess.run([worker, *options], capture_output=True, text=True, timeout=60)
    if said.returncode:
        raise Other(f"{worker}: {said.stderr.strip()}")
    return [json.loads(line) for line in said.stdout.splitlines()]


def declared(worker):
    """{(workload, variant): what its record begins with}"""
    return {(entry["workload"], variant["name"]): new_record(entry, variant)
            for entry in answer(worker, "--catalogue") for variant in entry["variants"]}


def judge_again(report, own, build):
    """REPORT's variants by what OWN says of them.  Those that are gone, or compute something else by now,
    are judged as they were."""
    for record in report["variants"]:
        today = own.get((record["workload"], record["variant"]))
        if today and all(today[name] == record[name] for name in ("version", "algorithm")):
            record.update({name: today[name] for name in DECLARED})
    conclude(report["variants"])
    reports.sum_up(report)
    report["judged_again"] = [*report.get("judged_again", []),
                              {"date": reports.now(), "worker_build": build}]


def write(path, report):
    """Both files or none, each whole or as it was: they are committed."""
    parts = {}
    for suffix, text in list(reports.texts(report)):
        target = path.with_suffix(f".{suffix}")
        parts[target] = target.with_name(f"{target.name}.part")
        parts[target].write_text(text)
    for target, part in parts.items():
        os.replace(part, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=pathlib.Path)
    path = parser.parse_args().report
    if path.suffix != ".json":
        sys.exit(f"again.py: {path} is not named as a report: *.json")
    names = ("reprod-worker-cuda", "tests/reprod-worker-cudasim")  # the same catalogue
    worker = next((build_folder() / name for name in names if (build_folder() / name).exists()), None)
    if worker is None:
        sys.exit(f"again.py: neither {' nor '.join(names)} was built in {build_folder()}")
    try:
        report = read(path)
        before = {(record["workload"], record["variant"]): record["outcome"] for record in report["variants"]}
        judge_again(report, declared(worker), answer(worker, "--probe")[0]["worker_build"])
        write(path, report)
    except (Other, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"again.py: {error}")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        sys.exit(f"again.py: {path}: not as reports are: {type(error).__name__}: {error}")
    for record in report["variants"]:
        was = before[record["workload"], record["variant"]]
        if record["outcome"] != was:
            print(f"{record['workload']} {record['variant']}: {was}, now {record['outcome']}:"
                  f" {', '.join(record['causes'])}")


if __name__ == "__main__":
    main()
