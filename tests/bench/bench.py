#!/usr/bin/env python3
"""make bench: how fast reprod is, compared with peers on the same machine.

    tests/bench/bench.py [--quick] [--json FILE] [BENCHMARK …]

Prints a table, and writes it as JSON (build/bench/DATE.json).  Figures depend on this machine and
on what else it did meanwhile: only ratios of things that ran in turns can be compared.  --quick
takes seconds, shows that everything runs, and says nothing about speed.  Nothing here fails
because something is slow.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
sys.dont_write_bytecode = True

import measure  # noqa: E402
import serving  # noqa: E402
import storage  # noqa: E402
import worker  # noqa: E402
from service import BUILD, ROOT  # noqa: E402

BENCHMARKS = {
    "ingest": storage.ingest, "matrix": storage.matrix, "turnaround": serving.turnaround,
    "post": serving.post, "compare": serving.compare, "events": serving.events,
    "reads": serving.heavy_reads, "stalled": serving.stalled,
    "instruments": worker.instruments, "probes": worker.probes,
    "determinism": worker.determinism, "fresh-process": worker.fresh_process,
}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return {"processor": models[0] if models else platform.processor(),
            "processors": os.cpu_count(), "kernel": platform.release(),
            "load_average": os.getloadavg()[0]}


def commit():
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, check=False,
                           capture_output=True, text=True)
    return found.stdout.strip() or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", default=list(BENCHMARKS))
    options = parser.parse_args()
    unknown = set(options.benchmarks) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    now = datetime.datetime.now(datetime.timezone.utc)
    report = {"date": now.isoformat(timespec="seconds"), "quick": options.quick,
              "commit": commit(), "machine": machine(), "rows": []}
    for name in options.benchmarks:
        print(f"{name} …", file=sys.stderr, flush=True)
        report["rows"] += BENCHMARKS[name](options.quick)
    if options.quick:
        for row in report["rows"]:
            row["met"] = None
    report["machine"]["load_average_at_end"] = os.getloadavg()[0]
    print(measure.table(report["rows"]))
    judged = [row for row in report["rows"] if row["met"] is not None]
    print("quick: this says nothing about speed" if options.quick else
          f"{sum(row['met'] for row in judged)} of {len(judged)} targets met on "
          f"{report['machine']['processor']}, load {report['machine']['load_average']:.1f} to "
          f"{report['machine']['load_average_at_end']:.1f}")
    path = options.json or BUILD / "bench" / f"{now:%Y-%m-%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
