"""Benchmarks of the worker: its instruments, its variants, its probes, a fresh process."""
import json
import os
import resource
import statistics
import subprocess
import tempfile

from measure import alternate, milliseconds, not_measured, row
from service import BUILD

WORKER = BUILD / "reprod-worker"
THREADS = min(2, os.cpu_count() or 1)


def instrument(kind, mebibytes):
    """Gigabytes a second."""
    out = subprocess.run([BUILD / "tests/bench-instruments", kind, str(mebibytes), str(THREADS)],
                         check=True, capture_output=True, text=True).stdout
    measured = json.loads(out)
    return measured["bytes"] / measured["seconds"] / 1e9


def instruments(quick):
    size, pairs = (16, 2) if quick else (512, 7)
    for name, what, peer, target in (
            ("digest", f"digest, {THREADS} threads", "read", (">=", 0.8)),
            ("digest", f"digest, {THREADS} threads", "copy", None),
            ("exact", "exact sum of float32, 1 thread", "plain", None)):
        ours, theirs = alternate(pairs, lambda n=name: instrument(n, size),
                                 lambda p=peer: instrument(p, size))
        titles = {"read": f"reading, {THREADS} threads", "copy": "memcpy",
                  "plain": "sum in binary64"}
        yield row("instruments", what, "GB/s", ours, theirs, titles[peer], target)


def run(arguments):
    """(wall ms, processor ms, reported ms of an iteration, records)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as events:
        wall = milliseconds(lambda: subprocess.run(
            [WORKER, "--run", *arguments], check=True, stdout=events,
            env={**os.environ, "REPROD_RESULT_FD": "1"}))
        events.seek(0)
        lines = [json.loads(line) for line in events]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3
    reported = [event["ms"] for event in lines if event["event"] == "iteration"]
    records = sum(len(event["records"]) for event in lines if event["event"] == "probes")
    return wall, cpu, statistics.median(reported) if reported else None, records


PROBED = ["train_cnn/unordered", "train_cnn/ordered", "train_rnn_ctc/unordered",
          "train_rnn_ctc/ordered"]


def probes(quick):
    """Recording every step, compared with the same run without: one thread, so none spins."""
    for case in PROBED[1:2] if quick else PROBED:
        workload, variant = case.split("/")
        arguments = ["--workload", workload, "--variant", variant, "--threads", "1",
                     *(["--iterations", "1"] if quick else [])]
        probed, plain = alternate(2 if quick else 9, lambda a=arguments: run([*a, "--probes", "1"]),
                                  lambda a=arguments: run(a))
        yield row("probes", f"{case}, {probed[0][3]:,} records, processor time", "ms",
                  [p[1] for p in probed], [p[1] for p in plain], "without")
        yield row("probes", f"{case}, reported time", "ms",
                  [p[2] for p in probed], [p[2] for p in plain], "without")


def determinism(quick):
    """Every workload that has both variants: on a CPU, ordered is not to be slower."""
    catalogue = [json.loads(line) for line in subprocess.run(
        [WORKER, "--catalogue"], check=True, capture_output=True, text=True).stdout.splitlines()]
    for workload in catalogue:
        names = [variant["name"] for variant in workload["variants"]]
        if {"ordered", "unordered"} <= set(names) and (
                not quick or workload["workload"] == "bias_add_bwd"):
            def reported(variant, name=workload["workload"]):
                return run(["--workload", name, "--variant", variant, "--iterations",
                            "2" if quick else "10"])[2]
            ours, theirs = alternate(2 if quick else 5, lambda: reported("ordered"),
                                     lambda: reported("unordered"))
            if None not in ours + theirs:
                yield row("determinism", f"{workload['workload']}, ordered", "ms", ours, theirs,
                          "unordered", ("<=", 1.0))


TORCH = """
import torch
torch.manual_seed(1)
x = torch.randn(32, 16, 14, 14); w = torch.randn(32, 16, 3, 3, requires_grad=True)
torch.nn.functional.conv2d(x, w, padding=1).sum().backward()
"""


def fresh_process(quick):
    """One process of the check, 20 of which make it; in PyTorch the same without a digest."""
    what = "conv_wgrad in a fresh process"
    ours = ["--workload", "conv_wgrad", "--variant", "ordered", "--iterations", "1"]
    if quick or subprocess.run(["python3", "-c", "import torch"], capture_output=True,
                               check=False).returncode != 0:
        pairs = 3 if quick else 20
        yield row("fresh-process", what, "ms", [run(ours)[0] for _ in range(pairs)])
        yield not_measured("fresh-process", f"{what}, PyTorch / ours",
                           "quick" if quick else "there is no torch", "≥ 40")
        return
    theirs, mine = alternate(5, lambda: milliseconds(
        lambda: subprocess.run(["python3", "-c", TORCH], check=True)), lambda: run(ours)[0])
    yield row("fresh-process", f"{what}, in PyTorch", "ms", theirs, mine, "ours", (">=", 40))
