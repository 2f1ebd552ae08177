"""What all stages of a check share: the workers, the device, the records and the clock."""
import concurrent.futures
import json
import time

import conclude
import runs

RUN_LIMIT = 60  # seconds; a run that takes longer is a timeout
# Sizes that would take most of the check's time: 4 TFLOP an iteration.
TOO_LONG = {("train_cnn_large", "large")}
CHECK_LIMIT = 120  # a --check computes its reference on the CPU


class Session:
    def __init__(self, worker, cpu_worker, seconds, jobs):
        self.worker, self.cpu_worker = worker, cpu_worker
        self.started, self.seconds = time.monotonic(), seconds
        self.jobs = jobs
        self.env = {}
        self.rehearsal = False
        self.device = None  # its id
        self.records = {}  # (workload, variant): record, in the catalogue's order
        self.catalogue, self.cpu_catalogue = {}, {}
        self.failures, self.not_run, self.stages = [], [], []
        self.timings = {}

    # The clock

    def until(self, share):
        """When SHARE of the time has passed."""
        return self.started + share * self.seconds

    def left(self):
        return self.until(1) - time.monotonic()

    def skip(self, what, why):
        self.not_run.append({"what": what, "why": why})

    # The workers

    def load(self):
        self.catalogue = read_catalogue(self.worker, self.env)
        self.cpu_catalogue = read_catalogue(self.cpu_worker)
        for entry in self.catalogue.values():
            for variant in entry["variants"]:
                self.records[entry["workload"], variant["name"]] = \
                    conclude.new_record(entry, variant)

    def ask(self, arguments, limit=CHECK_LIMIT, env=None):
        return runs.ask(arguments, max(0.1, min(limit, self.left())), {**self.env, **(env or {})})

    def run(self, record, size, iterations, seed=1, circumstances=None, dtype=None):
        asked = {"workload": record["workload"], "variant": record["variant"], "size": size,
                 "iterations": iterations, "device": self.device,
                 "circumstances": circumstances, "dtype": dtype}
        env = {**self.env, **({"REPROD_CUDASIM_SEED": seed} if self.rehearsal else {})}
        return self.cut(runs.run, self.worker, asked, env)

    def run_on_cpu(self, record, size, variant, threads=2):
        asked = {"workload": record["workload"], "variant": variant, "size": size,
                 "iterations": 1, "threads": threads}
        return self.cut(runs.run, self.cpu_worker, asked,
                        {"REPROD_CACHE_DIR": f"{self.env.get('REPROD_CACHE_DIR', '')}/cpu"})

    def cut(self, function, worker, asked, env):
        limit = max(0.1, min(RUN_LIMIT, self.left()))
        run = function(worker, asked, limit, env)
        run.cut = run.timed_out and limit < RUN_LIMIT
        return run

    def each(self, function, items, until, jobs=None):
        """FUNCTION of every item, some at a time; those whose turn comes after UNTIL are
        returned instead."""
        late = []

        def attempt(item):
            if time.monotonic() >= until:
                late.append(item)
            else:
                function(item)

        with concurrent.futures.ThreadPoolExecutor(jobs or self.jobs) as pool:
            for future in [pool.submit(attempt, item) for item in items]:
                future.result()
        return late


def read_catalogue(worker, env=None):
    answer = runs.ask([worker, "--catalogue"], 60, env)
    if answer.exit_code != 0:
        raise SystemExit(f"{worker} --catalogue: {answer.errors}")
    return {entry["workload"]: entry for entry in map(json.loads, answer.output.splitlines())}


def small_size(entry):
    return entry["sizes"][0]["name"]


def sizes_from_large(entry):
    """The sizes to try, the largest first."""
    names = [size["name"] for size in entry["sizes"]]
    wanted = [name for name in ("large", "medium", "small")
              if name in names and (entry["workload"], name) not in TOO_LONG]
    return wanted or names[:1]
