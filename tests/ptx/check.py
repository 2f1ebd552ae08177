#!/usr/bin/env python3
"""Every variant that needs no library, computed by nvcc's PTX on a CPU.  Usage:

  check.py [--size small]... [--only WORKLOAD]... [--schedules 3] [--jobs N] [--results FILE] BUILD

For each variant and size:
  - `--check`: every element within the bound of the float64 reference, digests and sums right;
  - the inputs are the CPU worker's, and so are the bits where the algorithm promises it: its own
    and those of tests/golden/digests.txt;
  - over permuted schedules, blocks interleaved, a variant keeps its digest and a control does not;
  - shadow memory has nothing to say (shadow.h), but of the control that reads what nobody wrote.
Ends in status 1, and a line for each, where something did not hold.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "system")]
import update_golden as golden  # noqa: E402

LIMIT = 1800  # seconds after which a process is given up
# Controls that vary for another reason than threads: the clock, the process, its memory.
NOT_A_RACE = {"conv_autotune", "inference_autotune", "algorithm_cache", "hash_seed_order",
              "dropout", "weight_init", "uninitialized_read"}
READS_UNWRITTEN = "that nobody wrote"
FORMAT = 1


class Workers:
    def __init__(self, build):
        self.ptx, self.cpu = build / "tests" / "reprod-worker-ptx", build / "reprod-worker"
        self.own = {entry["workload"]: entry for entry in golden.catalogue(self.ptx)}
        self.twins = {entry["workload"]: entry for entry in golden.catalogue(self.cpu)}

    def twin(self, workload, variant):
        """The CPU's variant with the same algorithm, whose bits are promised, or None."""
        for each in self.twins.get(workload, {"variants": []})["variants"]:
            if each["name"] == variant["name"] and each["algorithm"] == variant["algorithm"] \
                    and not variant["control"]:
                return each
        return None


def call(program, *arguments, seed=None, watched=False):
    """(status, standard output, events, the last of standard error)."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMP_", "REPROD_PTX_"))}
    environment["OMP_WAIT_POLICY"] = "passive"
    if seed:
        environment["REPROD_PTX_SEED"] = str(seed)
    if watched:
        environment["REPROD_PTX_CHECK"] = "all"
    with tempfile.TemporaryFile() as events:
        environment["REPROD_RESULT_FD"] = str(events.fileno())
        try:
            done = subprocess.run([program, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=LIMIT, pass_fds=[events.fileno()], env=environment)
        except subprocess.TimeoutExpired:
            return None, "", [], f"took longer than {LIMIT} s"
        events.seek(0)
        return (done.returncode, done.stdout, [json.loads(line) for line in events],
                " ".join(done.stderr.split())[-400:])


def digests(events):
    return [event["digest"] for event in events if event["event"] == "iteration"]


class Case:
    """One variant at one size: what was seen, and what did not hold."""

    def __init__(self, workers, workload, variant, size):
        self.workers, self.workload, self.variant, self.size = workers, workload, variant, size
        self.problems, self.seen = [], {}
        self.version = workers.own[workload]["version"]

    def title(self):
        return f"{self.workload} {self.variant['name']} {self.size}"

    def arguments(self, command, variant=None):
        return (command, "--workload", self.workload, "--variant", variant or self.variant["name"],
                "--size", self.size)

    def need(self, holds, problem):
        if not holds:
            self.problems.append(problem)
        return holds

    def run(self, seed=None, watched=False, iterations=1):
        status, _, events, error = call(self.workers.ptx, *self.arguments("--run"), "--iterations", iterations,
                                        seed=seed, watched=watched)
        if status != 0 or not events or events[-1]["event"] != "end":
            return None, error
        return events, events[-1].get("cause") or ""

    def check(self):
        """False where the variant needs a library."""
        status, out, _, error = call(self.workers.ptx, *self.arguments("--check"))
        said = json.loads(out) if out.startswith("{") else {}
        if said.get("outcome") == "unsupported":
            self.seen["outcome"] = "unsupported"
            return False
        if self.need(said.get("outcome") == "completed" and status == 0 and said["ok"],
                     f"--check: status {status}, {said.get('cause') or error or out[-400:]}"):
            outputs = said["outputs"]
            self.need(outputs and all(each["instruments_ok"] for each in outputs), "--check: digests or sums are wrong")
            self.seen["error"] = max(each["max_error_to_bound"] or 0 for each in outputs)
        return True

    def compare_bits(self, events):
        if self.workload not in self.workers.twins:
            return
        twin = self.workers.twin(self.workload, self.variant)
        name = twin["name"] if twin else self.workers.twins[self.workload]["variants"][0]["name"]
        _, _, said, error = call(self.workers.cpu, *self.arguments("--run", name), "--iterations", 1)
        if not self.need(said, f"the CPU's worker: {error}"):
            return
        self.need(events[-1]["input_digest"] == said[-1]["input_digest"], "the inputs are not the CPU's")
        if not twin:
            return
        key = (self.workload, str(self.version), name, self.size, "float32", str(golden.SEED))
        known = golden.read().get(key)
        self.seen["bits"] = "equal"
        if not self.need(digests(events) == digests(said), "not the CPU's bits, with the CPU's algorithm") or \
                not self.need(known in (None, *digests(events)), f"not the golden digest {known}"):
            self.seen["bits"] = "other"
        self.seen["golden"] = known is not None

    def compare_schedules(self, first, schedules):
        control = self.variant["control"]
        found = set(digests(first))
        for seed in range(1, schedules + 1):
            events, error = self.run(seed, iterations=2 if control else 1)
            if not self.need(events and events[-1]["outcome"] == "completed", f"schedule {seed}: {error}"):
                return
            found |= set(digests(events))
        self.seen.update(schedules=schedules, digests=len(found))
        if not control:
            self.need(len(found) == 1, f"{len(found)} digests in {schedules} schedules")
        elif self.workload not in NOT_A_RACE:
            self.need(len(found) > 1, f"the control had one digest in {schedules} schedules")

    def watch(self):
        """Shadow memory, with the blocks interleaved."""
        events, error = self.run(seed=1, watched=True)
        if self.workload == "uninitialized_read" and self.variant["control"]:
            self.need(READS_UNWRITTEN in error, "shadow memory did not see the read of what nobody wrote")
            self.seen["watched"] = "reads what nobody wrote, as it must"
        elif self.need(events and events[-1]["outcome"] == "completed", f"shadow memory: {error}"):
            self.seen["watched"] = "clean"

    def examine(self, schedules, watched):
        started = time.monotonic()
        if self.check():
            events, error = self.run()
            if self.need(events and events[-1]["outcome"] == "completed", f"--run: {error}"):
                self.compare_bits(events)
                self.compare_schedules(events, schedules)
                if watched:
                    self.watch()
            self.seen["outcome"] = "failed" if self.problems else "passed"
        self.seen["seconds"] = time.monotonic() - started
        return self

    def record(self):
        kept = {name: value for name, value in self.seen.items() if name != "seconds"}
        return {"workload": self.workload, "version": self.version, "variant": self.variant["name"],
                "control": self.variant["control"], "size": self.size, **kept}


def compiler(build):
    """The toolkit, and the architecture, of the PTX that was translated."""
    text = (build / "ptx" / "cuda" / "atomics.ptx").read_text(encoding="latin-1")
    return (re.search(r"Cuda compilation tools, (.*)", text).group(1),
            re.search(r"^\.target (\w+)", text, re.M).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--size", action="append", help="small by default")
    parser.add_argument("--only", action="append", help="a workload")
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--no-watch", action="store_true", help="without shadow memory")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=pathlib.Path, help="where what was seen is written")
    options = parser.parse_args()
    workers = Workers(options.build.resolve())
    cases = [Case(workers, workload, variant, size) for size in options.size or ["small"]
             for workload, entry in workers.own.items() for variant in entry["variants"]
             if not options.only or workload in options.only
             if size in [each["name"] for each in entry["sizes"]]]
    done = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case in pool.map(lambda each: each.examine(options.schedules, not options.no_watch), cases):
            done.append(case)
            print(f"{case.seen['outcome']:12} {case.title():52} {case.seen['seconds']:7.1f} s", flush=True)
            for problem in case.problems:
                print(f"    {problem}", flush=True)
    count = {outcome: sum(case.seen["outcome"] == outcome for case in done)
             for outcome in ("passed", "failed", "unsupported")}
    promised = [case for case in done if "bits" in case.seen]
    print(f"{count['passed']} passed, {count['failed']} failed, {count['unsupported']} need a library; the CPU's bits: "
          f"{sum(case.seen['bits'] == 'equal' for case in promised)} of {len(promised)}")
    for case in done:
        for problem in case.problems:
            print(f"FAILED: {case.title()}: {problem}")
    if options.results:
        release, target = compiler(options.build)
        options.results.write_text(json.dumps({
            "v": FORMAT, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "toolkit": release, "target": target, "variants": [case.record() for case in done]}, indent=1) + "\n")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
