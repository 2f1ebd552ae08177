"""What all stages of a check share: the workers, the device, the records and the clock."""
import concurrent.futures
import json
import time
import traceback

import conclude
import runs

RUN_LIMIT = 60  # seconds; a run that takes longer is a timeout
# Sizes that would take most of the check's time: 4 TFLOP an iteration.
TOO_LONG = {("train_cnn_large", "large")}
CHECK_LIMIT = 120  # a --check computes its reference on the CPU
GRACE = 10  # for what has begun when the time of its stage ends
RUNS = 5  # fresh processes of each variant


class Session:
    def __init__(self, worker, cpu_worker, seconds, jobs):
        self.worker, self.cpu_worker = worker, cpu_worker
        self.started, self.seconds = time.monotonic(), seconds
        self.jobs, self.runs, self.chosen = jobs, RUNS, None
        self.deadline = self.until(1)  # of the stage
        self.stopped = False  # somebody wants the check to end
        self.env = {}
        self.rehearsal = False
        self.device = None  # its id
        self.records = {}  # (workload, variant): record, in the catalogue's order
        self.catalogue, self.cpu_catalogue = {}, {}
        self.failures, self.not_run, self.stages = [], [], []
        self.timings = {}
        self.continues = []  # date, device and seconds of the reports that this one goes on with

    # The clock

    def until(self, share):
        """When SHARE of the time has passed."""
        return self.started + share * self.seconds

    def left(self):
        return self.until(1) - time.monotonic()

    def allow(self, share):
        """What begins before SHARE of the time has passed is killed soon after."""
        self.deadline = min(self.until(share) + GRACE, self.until(1))

    def limit(self, wanted):
        return max(0.1, min(wanted, self.deadline - time.monotonic()))

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
        seconds = self.limit(limit)
        answer = runs.ask(arguments, seconds, {**self.env, **(env or {})})
        answer.cut = self.stopped or (answer.exit_code is None and seconds < limit)
        return answer

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
        limit = self.limit(RUN_LIMIT)
        run = function(worker, asked, limit, env)
        run.cut = self.stopped or (run.timed_out and limit < RUN_LIMIT)
        return run

    def each(self, function, items, until, jobs=None):
        """FUNCTION of every item, some at a time; those whose turn comes after UNTIL are
        returned instead.  A defect of the check costs its item alone."""
        late = []

        def attempt(item):
            if self.stopped or time.monotonic() >= until:
                late.append(item)
                return
            try:
                function(item)
            except Exception as error:  # pylint: disable=broad-except
                self.defect(error, name_of(item))

        with concurrent.futures.ThreadPoolExecutor(jobs or self.jobs) as pool:
            try:
                for future in [pool.submit(attempt, item) for item in items]:
                    future.result()
            except KeyboardInterrupt:
                self.stop()
                raise
        return late

    def stop(self):
        """Kills what runs, which then shows nothing; nothing else begins."""
        self.stopped = True
        runs.stop_all()

    def defect(self, error, where):
        traceback.print_exception(type(error), error, error.__traceback__)
        self.failures.append(f"{where}: the check itself failed: {error!r}")


def name_of(item):
    """Of a record, or of a tuple that begins with one."""
    record = item if isinstance(item, dict) else item[0]
    return f"{record['workload']} {record['variant']}"


def read_catalogue(worker, env=None):
    answer = runs.ask([worker, "--catalogue"], 60, env)
    if answer.exit_code != 0:
        raise RuntimeError(f"{worker} --catalogue: {answer.errors}")
    return {entry["workload"]: entry for entry in map(json.loads, answer.output.splitlines())}


def small_size(entry):
    return entry["sizes"][0]["name"]


def sizes_from_large(entry):
    """The sizes to try, the largest first."""
    names = [size["name"] for size in entry["sizes"]]
    wanted = [name for name in ("large", "medium", "small")
              if name in names and (entry["workload"], name) not in TOO_LONG]
    return wanted or names[:1]
