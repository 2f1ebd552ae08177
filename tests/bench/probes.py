#!/usr/bin/env python3
"""What recording every step costs: the same runs with probes and without, in turns.

    tests/bench/probes.py [--worker build/reprod-worker] [--pairs 15] [WORKLOAD/VARIANT[/SIZE] …]

Prints, for each, the medians and the ratio: of the whole process (wall), of its processor time
with one thread, where nobody spins, and of the times that the runs report, which leave probes
out and should not change.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

DEFAULT = ["train_cnn/unordered", "train_cnn/ordered", "train_rnn_ctc/unordered",
           "train_rnn_ctc/ordered"]


def measure(worker, arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as events:
        start = time.monotonic()
        subprocess.run([worker, "--run", *arguments], check=True, stdout=events,
                       env={**os.environ, "REPROD_RESULT_FD": "1"})
        wall = time.monotonic() - start
        events.seek(0)
        lines = [json.loads(line) for line in events]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    reported = statistics.median(e["ms"] for e in lines if e["event"] == "iteration")
    records = sum(len(e["records"]) for e in lines if e["event"] == "probes")
    return wall * 1e3, cpu * 1e3, reported, records


def compare(worker, arguments, pairs):
    plain, probed = [], []
    for _ in range(pairs):
        plain.append(measure(worker, arguments))
        probed.append(measure(worker, [*arguments, "--probes", "1"]))
    return [([p[i] for p in plain], [p[i] for p in probed]) for i in range(4)]


def ratio(pair):
    return statistics.median(b / a for a, b in zip(*pair))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", default="build/reprod-worker")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("cases", nargs="*", default=DEFAULT)
    options = parser.parse_args()
    print(f"{'case':26} {'records':>7} {'wall ms':>9} {'ratio':>6} {'cpu ms':>9} {'ratio':>6} "
          f"{'reported':>9} {'ratio':>6}")
    for case in options.cases:
        workload, variant, size = (case.split("/") + ["small"])[:3]
        arguments = ["--workload", workload, "--variant", variant, "--size", size]
        wall, _, reported, records = compare(options.worker, arguments, options.pairs)
        _, cpu, _, _ = compare(options.worker, [*arguments, "--threads", "1"], options.pairs)
        print(f"{case:26} {records[1][0]:7} {statistics.median(wall[0]):9.1f} {ratio(wall):6.3f} "
              f"{statistics.median(cpu[0]):9.1f} {ratio(cpu):6.3f} "
              f"{statistics.median(reported[0]):9.3f} {ratio(reported):6.3f}", flush=True)


if __name__ == "__main__":
    main()
