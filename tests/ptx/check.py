#!/usr/bin/env python3
"""Every variant that needs no library, computed by nvcc's PTX on a CPU.  Usage:

  check.py [--size small]... [--only WORKLOAD]... [--schedules 3] [--jobs N] [--results FILE] BUILD

For each variant and size:
  - over permuted schedules, blocks interleaved: `--check`, every element within the bound of the
    float64 reference, digests and sums right; a variant keeps its digest and a control does not;
  - in the last of them shadow memory has nothing to say (shadow.h);
  - the inputs are the CPU worker's, and so are the bits where the algorithm promises it: those of
    tests/golden/digests.txt, or else of a run.
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
FORMAT = 1


class Workers:
    def __init__(self, build):
        self.ptx, self.cpu = build / "tests" / "reprod-worker-ptx", build / "reprod-worker"
        self.own = {entry["workload"]: entry for entry in golden.catalogue(self.ptx)}
        self.twins = {entry["workload"]: entry for entry in golden.catalogue(self.cpu)}
        self.golden = golden.read()
        self.known_inputs = {}

    def twin(self, workload, variant):
        """The CPU's variant with the same algorithm, whose bits are promised, or None."""
        for each in self.twins.get(workload, {"variants": []})["variants"]:
            if each["name"] == variant["name"] and each["algorithm"] == variant["algorithm"] \
                    and not variant["control"]:
                return each
        return None


    def inputs(self, case, twin):
        """The digests of the CPU's inputs, and of the bits of TWIN where tests/golden has none."""
        key = (case.workload, case.size)
        if twin or key not in self.known_inputs:
            name = twin["name"] if twin else self.twins[case.workload]["variants"][0]["name"]
            events = case.run(self.cpu, name)
            if not events:
                return {"input_digest": None, "digest": None}
            self.known_inputs[key] = {"input_digest": events[-1]["input_digest"], "digest": digests(events)[0]}
        return self.known_inputs[key]


def call(program, *arguments, seed=None, watched=""):
    """(status, standard output, events, the last of standard error)."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("OMP_", "REPROD_PTX_SEED", "REPROD_PTX_CHECK"))}
    environment["OMP_WAIT_POLICY"] = "passive"
    if seed:
        environment["REPROD_PTX_SEED"] = str(seed)
    if watched:
        environment["REPROD_PTX_CHECK"] = watched
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

    def check(self, seed, watched):
        """The digests of one schedule's outputs, or None."""
        status, out, _, error = call(self.workers.ptx, *self.arguments("--check"), seed=seed, watched="all" if watched else "")
        said = json.loads(out) if out.startswith("{") else {}
        if said.get("outcome") == "unsupported":
            self.seen["outcome"] = "unsupported"
            return None
        if not self.need(said.get("outcome") == "completed" and status == 0 and said["ok"],
                         f"schedule {seed}: status {status}: {said.get('cause') or error or out[-400:]}"):
            return None
        outputs = said["outputs"]
        self.need(outputs and all(each["instruments_ok"] for each in outputs),
                  f"schedule {seed}: digests or sums are wrong")
        self.seen["error"] = max([self.seen.get("error", 0), *(each["max_error_to_bound"] or 0 for each in outputs)])
        return tuple(each["digest"] for each in outputs)

    def compare_schedules(self, schedules, watch):
        """Elements, and whether the bits depend on the schedule; the last one is watched."""
        found = set()
        for seed in range(1, schedules + 1):
            watched = watch and seed == schedules
            digests_there = self.check(seed, watched)
            if digests_there is None:
                return
            found.add(digests_there)
        self.seen.update(schedules=schedules, digests=len(found), watched=watch)
        if not self.variant["control"]:
            self.need(len(found) == 1, f"{len(found)} digests in {schedules} schedules")
        elif self.workload not in NOT_A_RACE:
            self.need(len(found) > 1, f"the control had one digest in {schedules} schedules")

    def run(self, program, variant=None):
        status, _, events, error = call(program, *self.arguments("--run", variant), "--iterations", 1)
        holds = status == 0 and events and events[-1].get("outcome") == "completed"
        return events if self.need(holds, f"--run: {events[-1].get('cause') if events else error}") else None

    def compare_bits(self):
        """Of an algorithm that promises the CPU's bits."""
        twin = self.workers.twin(self.workload, self.variant)
        events = self.run(self.workers.ptx)
        if not events or self.workload not in self.workers.twins:
            return
        inputs = self.workers.inputs(self, twin)
        self.need(events[-1]["input_digest"] == inputs["input_digest"], "the inputs are not the CPU's")
        if not twin:
            return
        key = (self.workload, str(self.version), twin["name"], self.size, "float32", str(golden.SEED))
        known = self.workers.golden.get(key)
        self.seen["golden"] = known is not None
        holds = self.need(digests(events) == [known or inputs["digest"]],
                          f"not the {'golden digest' if known else 'bits of the CPU'}, with the CPU's algorithm")
        self.seen["bits"] = "equal" if holds else "other"

    def examine(self, schedules, watch):
        started = time.monotonic()
        self.compare_schedules(schedules, watch)
        if "outcome" not in self.seen:
            first = self.workers.own[self.workload]["variants"][0]["name"] == self.variant["name"]
            if first or self.workers.twin(self.workload, self.variant):
                self.compare_bits()
            self.seen["outcome"] = "failed" if self.problems else "passed"
        self.seen["seconds"] = time.monotonic() - started
        return self

    def record(self):
        kept = {name: value for name, value in self.seen.items() if name != "seconds"}
        return {"workload": self.workload, "version": self.version, "variant": self.variant["name"],
                "control": self.variant["control"], "size": self.size, **kept}


def by_variant(records):
    """One record for each variant that was executed, over its sizes."""
    found = {}
    for record in records:
        if record["outcome"] == "unsupported":
            continue
        own = found.setdefault((record["workload"], record["variant"]), {
            **{name: record[name] for name in ("workload", "version", "variant", "control")}, "outcome": "passed",
            "sizes": [], "schedules": record.get("schedules"), "digests": {}, "bits": None, "error": 0})
        own["outcome"] = "failed" if record["outcome"] == "failed" else own["outcome"]
        own["sizes"].append(record["size"])
        own["digests"][record["size"]] = record.get("digests")
        own["bits"] = record.get("bits", own["bits"])
        own["error"] = max(own["error"], record.get("error", 0))
    return list(found.values())


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
    parser.add_argument("--launches", type=pathlib.Path, help="where the kernels and the threads of their blocks go")
    parser.add_argument("--results", type=pathlib.Path, help="where what was seen is written")
    options = parser.parse_args()
    if options.launches:
        options.launches.unlink(missing_ok=True)
        os.environ["REPROD_PTX_LAUNCHES"] = str(options.launches.resolve())
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
            "toolkit": release, "target": target, "variants": by_variant([case.record() for case in done])}, indent=1) + "\n")
    return 1 if count["failed"] or not count["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
