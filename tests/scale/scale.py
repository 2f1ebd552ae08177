#!/usr/bin/env python3
"""500 hosts with 8 devices each, in one service: what it makes of them, how fast, and whether each result is stored once.

    scale.py [--hosts 500] [--devices 8] [--runs 3] [--short] [--result scale.json]

The agents play results of real runs (record.py, player.c), and cost little: two processors are enough for service and
agents.  A result is what a worker says of one iteration: its digest, its sum of weights and its time.  Runs have ten
each, so runs are counted too.  Figures are of this machine and of what else it did; what must hold however fast it is
is a failure: each run that an agent answered is stored once, each item has the runs that it was to have, and fsck finds
nothing.  --short: a few rounds of each, for the sake of the second part."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system"), str(HERE.parent / "reliability")]
from record import record  # noqa: E402
from results import FOLDER, machine, write_result  # noqa: E402
from service import BUILD, Service  # noqa: E402

WORKLOADS = ["bias_add_bwd", "conv_wgrad"]
ITERATIONS = 10
PATHS = ["/healthz", "/metrics", "/v1/hosts", "/v1/devices?limit=100", "/v1/jobs?limit=20", "/v1/runs?limit=50",
         "/v1/matrix", "/v1/matrix?view=devices", "/v1/findings?limit=20", "/v1/verdict/gpu-001"]
API_P99_MS, RESULTS_A_SECOND = 10, 20000
RUN_SHARE = 0.88  # of the time between two results of a device: the rest is the service's, two commits above all


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def processor_seconds(pid, thread=None):
    """Of all threads, or of one."""
    path = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    fields = pathlib.Path(path).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stolen_seconds():
    """That other machines of the same host took from this one's processors."""
    return int(pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid, what):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what + ":")).split()[1]) / 1024


class Player:
    """The process that plays the agents of all hosts."""

    def __init__(self, folder, devices):
        self.socket, self.answered = folder / "player", folder / "answered"
        self.items = record(BUILD / "reprod-worker", WORKLOADS, folder)
        self.process = subprocess.Popen(
            [BUILD / "tests/scale-player", "play", self.socket, folder / "catalogue.json", folder / "results.tsv",
             str(devices), self.answered], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def runs_take(self, ms):
        self.process.stdin.write(f"{ms}\n")
        self.process.stdin.flush()

    def hosts(self, count):
        return [{"name": f"gpu-[001-{count:03}]",
                 "launch": [str(BUILD / "tests/scale-player"), "agent", str(self.socket), "{host}"]}]

    def stop(self):
        """How often it answered each run."""
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        return collections.Counter(line.split()[0] for line in self.answered.read_text().splitlines())


class Campaign:
    def __init__(self, options, folder):
        self.options, self.folder, self.failures, self.found = options, folder, [], {}
        self.player = Player(folder, options.devices)
        self.service = Service(folder / "service", config={
            "hosts": self.player.hosts(options.hosts), "background": {"budget_percent": 0}})

    def tell(self, name, **figures):
        self.found[name] = figures
        print(name, figures, flush=True)

    def expect(self, what, got, wanted):
        if got != wanted:
            self.failures.append(f"{what}: {got}, not {wanted}")
            print("FAILED", self.failures[-1], flush=True)

    def asked(self, question, *values):
        """A number that the database gives: to ask the service would be work that is measured."""
        with sqlite3.connect(f"file:{self.service.data / 'reprod.db'}?mode=ro", uri=True) as db:
            [[number]] = db.execute(question, values)
        db.close()
        return number

    def waits(self, what, question, *values):
        """Until the answer is no longer 0."""
        deadline = time.monotonic() + 600
        while not self.asked(question, *values):
            assert time.monotonic() < deadline, what
            time.sleep(0.2)

    def all_online(self):
        return sum(host["online"] for host in self.service.get("/v1/hosts")["items"]) == self.options.hosts

    def connect(self, name):
        """From the start of the service until all hosts are there and on record."""
        begun = time.monotonic()
        self.service.start(ready=False)
        listening = time.monotonic() - begun
        self.service.wait(self.all_online, "all hosts", 300)
        online = time.monotonic() - begun
        self.service.wait(lambda: self.service.request("GET", "/readyz")[0] == 200, "ready", 300)
        self.tell(name, hosts=self.options.hosts, listening_s=round(listening, 2), online_s=round(online, 2),
                  ready_s=round(time.monotonic() - begun, 2),
                  processor_s=round(processor_seconds(self.service.process.pid), 2),
                  rss_mb=round(memory_mb(self.service.process.pid, "VmRSS")))

    def probe(self, rounds, pause_ms):
        """{path: {p50_ms, p99_ms}}, and a process that measures it: begun, and read by its second part."""
        return subprocess.Popen([BUILD / "tests/scale-probe", str(self.service.port), str(rounds), str(pause_ms), *PATHS],
                                stdout=subprocess.PIPE, text=True)

    def latencies(self, process):
        times, answers = collections.defaultdict(list), 0
        for line in process.communicate()[0].splitlines():
            ms, status, _, path = line.split(" ", 3)
            answers += status == "200"
            times[path].append(float(ms))
        self.expect("answers that are no 200", sum(map(len, times.values())) - answers, 0)
        every = [ms for each in times.values() for ms in each]
        return {"rounds": len(times[PATHS[0]]), "p50_ms": round(percentile(every, 50), 2), "p99_ms": round(percentile(every, 99), 2),
                "paths": {path: {"p50_ms": round(percentile(each, 50), 2), "p99_ms": round(percentile(each, 99), 2),
                                 "most_ms": round(max(each), 2)} for path, each in times.items()}}

    def measure(self, name, begin, done, rounds=0):
        """What is ingested from BEGIN() until DONE(), with latencies of so many rounds meanwhile."""
        pid = self.service.process.pid
        before, begun = self.stored(), time.monotonic()
        used, loop, played = processor_seconds(pid), processor_seconds(pid, pid), processor_seconds(self.player.process.pid)
        begin()
        probe = self.probe(rounds, 50) if rounds else None
        latencies = self.latencies(probe) if probe else None
        done()
        seconds, runs = time.monotonic() - begun, self.stored() - before
        self.tell(name, runs=runs, seconds=round(seconds, 1), runs_a_second=round(runs / seconds),
                  results_a_second=round(runs * ITERATIONS / seconds),
                  processor_us_a_run=round(1e6 * (processor_seconds(pid) - used) / max(runs, 1)),
                  loop_us_a_run=round(1e6 * (processor_seconds(pid, pid) - loop) / max(runs, 1)),
                  agents_us_a_run=round(1e6 * (processor_seconds(self.player.process.pid) - played) / max(runs, 1)),
                  rss_mb=round(memory_mb(pid, "VmRSS")), **({"latencies": latencies} if latencies else {}))

    def stored(self):
        return self.asked("SELECT ifnull(sum(completed), 0) FROM cell")

    def survey(self):
        self.measure("the first survey", lambda: None, lambda: self.waits(
            "all devices screened", "SELECT count(*) >= ? FROM screening WHERE outcome IS NOT NULL",
            self.options.hosts * self.options.devices))

    def post(self, workload, variants, runs):
        return self.service.post_job(workloads=[workload], variants=variants, runs=runs, iterations=ITERATIONS)

    def wait_for(self, job):
        self.waits("a job", "SELECT state = 'finished' FROM job WHERE id = ?", job)

    def job(self, name, workload, variants, rounds):
        posted = []

        def begin():
            began = time.monotonic()
            posted.append(self.post(workload, variants, self.options.runs))
            self.found["posting a job of all devices"] = {"ms": round((time.monotonic() - began) * 1e3)}
        self.measure(name, begin, lambda: self.wait_for(posted[0]), rounds)
        job = self.service.get(f"/v1/jobs/{posted[0]}")
        wanted = self.options.hosts * self.options.devices * len(variants) * self.options.runs
        self.expect(f"{name}: runs done", (job["progress"]["runs_done"], job["progress"]["runs_failed"]), (wanted, 0))

    def steady(self, rounds):
        """Latencies while results come in at the rate that is wanted, from runs that take as long as that needs."""
        devices = self.options.hosts * self.options.devices
        self.player.runs_take(round(1000 * devices * ITERATIONS / RESULTS_A_SECOND * RUN_SHARE))
        before = self.stored()
        job = self.post("conv_wgrad", ["ordered"], 3 * self.options.runs)
        self.waits("two runs of each device", "SELECT sum(completed) >= ? FROM cell", before + 2 * devices)
        stored, begun, stolen = self.stored(), time.monotonic(), stolen_seconds()
        latencies = self.latencies(self.probe(rounds, 50))
        seconds, runs, stolen = time.monotonic() - begun, self.stored() - stored, stolen_seconds() - stolen
        self.player.runs_take(0)
        self.wait_for(job)
        self.tell("a steady rate", runs=runs, seconds=round(seconds, 1), results_a_second=round(runs * ITERATIONS / seconds),
                  stolen_percent=round(100 * stolen / seconds / os.cpu_count(), 1), latencies=latencies)

    def shown(self):
        """A page of a large fleet may be a little old, and is made anew; who asks for now gets now."""
        path = "/v1/matrix?view=devices"
        self.service.get(path)
        begun = datetime.datetime.now(datetime.timezone.utc).isoformat()[:23]
        self.wait_for(self.post("conv_wgrad", ["ordered"], 1))
        now = self.service.request("GET", path, headers={"Cache-Control": "no-cache"})[2]["as_of"]
        self.expect("a page that is asked for as of now is older", now < begun, False)
        self.service.wait(lambda: self.service.get(path)["as_of"] > begun, "a page that is made anew")

    def killed(self):
        """A kill in the middle of a job: it goes on with what is stored, and ends."""
        before = self.stored()
        job = self.post("conv_wgrad", ["ordered"], self.options.runs)
        half = self.options.hosts * self.options.devices * self.options.runs // 2
        self.waits("half of the job", "SELECT sum(completed) >= ? FROM cell", before + half)
        self.service.kill()
        self.connect("start after SIGKILL")
        self.wait_for(job)

    def accounts(self, answered):
        """Each answered run is there once; each item has what it was to have, or was given up with a reason."""
        db = sqlite3.connect(self.service.data / "reprod.db")
        completed = [row[0] for row in db.execute("SELECT id FROM run WHERE outcome = 'completed'")]
        others = dict(db.execute("SELECT id, outcome FROM run WHERE outcome IS NOT 'completed'"))
        short = db.execute("SELECT count(*) FROM job_item WHERE runs_answered < runs_wanted AND given_up_reason IS NULL").fetchone()[0]
        counted = {(job, item): runs for job, item, runs in db.execute(
            "SELECT job, item, count(*) FROM run WHERE NOT challenge AND outcome = 'completed' GROUP BY job, item")}
        wrong = sum(counted.get((job, item), 0) != runs
                    for job, item, runs in db.execute("SELECT job, seq, runs_answered FROM job_item"))
        iterations = db.execute("SELECT ifnull(sum(iterations), 0), ifnull(sum(completed), 0) FROM cell").fetchone()
        dissenters = db.execute("SELECT count(*) FROM cell_dissenter").fetchone()[0]
        verdicts = dict(db.execute("SELECT k.variant || iif(k.is_control, ' (control)', '') || ' of ' || k.workload, c.verdict"
                                   " FROM cell c JOIN case_key k ON k.number = c.case_key"))
        db.close()
        self.expect("runs that are stored and that no agent answered", len(set(completed) - set(answered)), 0)
        self.expect("runs that were answered twice", sum(count > 1 for count in answered.values()), 0)
        self.expect("runs that were answered and are not on record", len(set(answered) - set(completed) - set(others)), 0)
        self.expect("runs that ended otherwise", sorted(set(others.values()) - {"lost"}), [])
        self.expect("items without all of their runs", short, 0)
        self.expect("items that count other runs than are stored", wrong, 0)
        self.expect("results of cells", iterations, (len(completed) * ITERATIONS, len(completed)))
        self.expect("devices that are named as dissenting", dissenters, 0)
        self.expect("verdicts", {name: verdict for name, verdict in verdicts.items()
                                 if verdict != ("varies" if "(control)" in name else "reproducible")}, {})
        code, said = self.service.fsck()
        self.expect("fsck", (code, said if code else ""), (0, ""))
        self.tell("accounts", runs_stored=len(completed), runs_answered=sum(answered.values()), runs_lost=len(others),
                  results=len(completed) * ITERATIONS)

    def ingest_alone(self):
        """The store's own functions, without agents and loop."""
        devices, runs = self.options.hosts * self.options.devices, 2000 if self.options.short else 32000
        for name, kind, arguments in (("results alone, one device", "store", ["32", "1"]),
                                      ("results alone, all devices", "store", ["4", str(devices)]),
                                      ("whole runs (intent, start, result), all devices", "whole", ["4", str(devices)]),
                                      ("SQLite alone, one INSERT a run", "raw", [])):
            with tempfile.TemporaryDirectory() as folder:
                out = subprocess.run([BUILD / "tests/bench-ingest", kind, folder, str(runs), *arguments], check=True,
                                     capture_output=True, text=True).stdout
            told = json.loads(out)
            self.found.setdefault("the store", {})[name] = {
                "runs": runs, "runs_a_second": round(runs / told["seconds"]),
                "results_a_second": round(runs * ITERATIONS / told["seconds"]),
                "processor_us_a_run": round(1e6 * told["cpu_seconds"] / runs)}
            print(name, self.found["the store"][name], flush=True)

    def run(self):
        rounds = 3 if self.options.short else 120
        self.connect("first start")
        self.survey()
        self.job("a job of a variant that is reproducible", "conv_wgrad", ["ordered"], 0)
        self.job("the same, while the API is asked", "conv_wgrad", ["ordered"], rounds)
        self.steady(rounds)
        self.job("a job of a control that varies", "conv_wgrad", ["unordered"], rounds)
        time.sleep(0 if self.options.short else 3)
        self.tell("idle", rss_mb=round(memory_mb(self.service.process.pid, "VmRSS")),
                  most_mb=round(memory_mb(self.service.process.pid, "VmHWM")), latencies=self.latencies(self.probe(rounds, 20)))
        self.shown()
        self.killed()
        self.expect("exit code", self.service.stop(), 0)
        self.connect("start after a stop")
        self.expect("exit code", self.service.stop(), 0)
        self.tell("database", megabytes=round((self.service.data / "reprod.db").stat().st_size / 1e6))
        self.accounts(self.player.stop())
        self.ingest_alone()

    def goals(self):
        found = self.found
        measured = {"API p99 while idle, ms": (found["idle"]["latencies"]["p99_ms"], API_P99_MS),
                    "API p99 at a steady rate, ms": (found["a steady rate"]["latencies"]["p99_ms"], API_P99_MS),
                    "results a second at that rate": (found["a steady rate"]["results_a_second"], RESULTS_A_SECOND),
                    "results a second, end to end": (found["a job of a variant that is reproducible"]["results_a_second"], RESULTS_A_SECOND),
                    "results a second, the store alone": (found["the store"]["results alone, all devices"]["results_a_second"], RESULTS_A_SECOND)}
        return {name: {"measured": value, "goal": goal, "met": value <= goal if "ms" in name else value >= goal}
                for name, (value, goal) in measured.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--runs", type=int, default=5, help="of each item of a job")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--result", type=pathlib.Path, default=FOLDER / "scale.json")
    options = parser.parse_args()
    begun, load = machine("make scale"), os.getloadavg()[0]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        campaign = Campaign(options, pathlib.Path(folder))
        try:
            campaign.run()
        finally:
            if campaign.service.process:
                campaign.service.kill()
            if campaign.player.process.poll() is None:
                campaign.player.process.kill()
    write_result(options.result, {**begun, "hosts": options.hosts, "devices": options.hosts * options.devices,
                                  "load": [round(load, 1), round(os.getloadavg()[0], 1)],
                                  "seconds": round(time.monotonic() - started), "goals": campaign.goals(),
                                  "found": campaign.found, "failures": campaign.failures})
    print(json.dumps(campaign.goals(), indent=1), f"{len(campaign.failures)} failures", options.result, sep="\n")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
