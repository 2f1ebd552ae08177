"""What agents of the scale campaign play: results of real runs of the worker, recorded once.

    record(worker, workloads, folder)    writes FOLDER/catalogue.json and FOLDER/results.tsv (player.c)
"""
import json
import os
import subprocess

RUNS, ITERATIONS = 3, 10


def run(worker, workload, variant, dtype, iterations=ITERATIONS):
    """The events of a process that computes; its device is the CPU of this machine."""
    arguments = ["--run", "--workload", workload, "--variant", variant, "--size", "small", "--dtype", dtype, "--seed", "1",
                 "--iterations", str(iterations), "--threads", "1", "--device", f"cpu:{os.uname().nodename}", "--checked", "60"]
    done = subprocess.run(["/bin/sh", "-c", 'exec "$@" 3>&1 >/dev/null', "sh", worker, *arguments], check=True,
                          stdout=subprocess.PIPE, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found[-1]["outcome"] == "completed", found[-1]
    return found


def recorded(worker, workload, variant, dtype):
    """A line of results.tsv, without its control."""
    runs = [run(worker, workload, variant, dtype) for _ in range(RUNS)]
    start, end = runs[0][0], runs[0][-1]
    [check] = [event for event in runs[0] if event["event"] == "check"]
    shown = {event["digest"]: event["weight_sum"] for events in runs for event in events if event["event"] == "iteration"}
    checked = {name: check[name] for name in ("share", "output", "index", "got", "expected", "bound")}
    environment = {**start["environment"], "backend": "cuda", "model": "recorded GPU", "worker_build": "recorded-1"}

    def compact(value):
        return json.dumps(value, separators=(",", ":"))
    return [start["input_digest"], str(end["elements"]), str(end["bytes_hashed"] // ITERATIONS), start["algorithm"],
            compact(environment), compact(start["libraries"]), compact(checked)[1:-1],
            " ".join(f"{weight_sum}:{digest}" for digest, weight_sum in shown.items())]


def record(worker, workloads, folder):
    lines = subprocess.run([worker, "--catalogue"], check=True, capture_output=True, text=True).stdout.splitlines()
    catalogue = [entry for entry in map(json.loads, lines) if entry["workload"] in workloads]
    results = []
    for entry in catalogue:
        entry.update(backend="cuda", sizes=[size for size in entry["sizes"] if size["name"] == "small"], references=[])
        for variant in entry["variants"]:
            what = [entry["workload"], variant["name"]]
            results.append([*what, "control" * variant["control"], *recorded(worker, *what, entry["dtypes"][0])])
    (folder / "catalogue.json").write_text(json.dumps(catalogue, separators=(",", ":")))
    (folder / "results.tsv").write_text("".join("\t".join(line) + "\n" for line in results))
    return [(workload, variant) for workload, variant, *_ in results]
