"""A service that is struck again and again, what it acknowledged, and the checks of it."""
import http.client
import json
import os
import shutil
import subprocess
import time

from plan import BUILD, Faults
from service import ROOT, SELFTEST_WORKER, Service

RUNS, VARIANTS = 2, 2
JOB = {"workloads": ["selftest_pass"], "runs": RUNS, "iterations": 2}
IDENTITY = ("job", "outcome", "digest", "weight_sum_bits", "iterations", "environment", "device", "finished_at")
OLD = ("v1", "v2", "v11", "v18")
BROKEN = (OSError, http.client.HTTPException)
LIMIT = int(os.environ.get("REPROD_FAULTS_LIMIT", "120"))  # seconds for what takes one


class Gone(Exception):
    """The service ended while it was talked to."""


class Failed(AssertionError):
    """Something that never may be."""


def demand(condition, *what):
    if not condition:
        raise Failed(*what)


class World:
    """One data folder over its lives; OLD names the database that it begins with, or is None."""

    def __init__(self, folder, old=None):
        self.service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"])
        self.faults = Faults(folder)
        self.keys = {}      # every Idempotency-Key that was sent: the job's id once it was acknowledged
        self.finished = {}  # what the service showed of runs that had ended
        self.old = old
        self.struck_outside = 0  # runs that processes lost which were not the service
        self.exit = None
        if old:
            self.service.data.mkdir(mode=0o700)
            shutil.copy(ROOT / "tests/fixtures" / f"{old}.db", self.service.data / "reprod.db")

    # One life

    def start(self, env):
        """Whether it came as far as to listen.  Workers inherit nothing: their stack says what they get."""
        s = self.service
        s.env = {**os.environ, **env}
        stack = {"name": "cpu", "worker": str(SELFTEST_WORKER)}
        if env.get("REPROD_FAULT", "").startswith("worker:"):
            stack["env"] = env
        s.config.write_text(json.dumps({"stacks": [stack], "grace_ms": 300}))
        self.exit = None
        with open(s.log, "ab") as log:
            s.process = subprocess.Popen(s.command(), stdout=subprocess.PIPE, stderr=log, text=True, env=s.env,
                                         bufsize=1, stdin=subprocess.DEVNULL)
        line = s.process.stdout.readline()
        if not line.startswith("listening on http://"):
            self.ended()
            return False
        s.port = int(line.rsplit(":", 1)[1])
        return True

    def ended(self):
        """Its exit code, once it has one."""
        self.exit = self.service.process.wait(LIMIT)
        self.service.process.stdout.close()
        self.service.process = None
        return self.exit

    def ask(self, method, path, body=None, headers=None):
        try:
            return self.service.request(method, path, body, headers, timeout=LIMIT)
        except BROKEN as broken:
            try:  # one that was struck ends; one that still runs dropped a connection
                self.service.process.wait(2)
            except subprocess.TimeoutExpired:
                raise Failed(f"{method} {path}: {broken!r}, and the service goes on") from broken
            raise Gone from broken

    def get(self, path):
        status, _, body = self.ask("GET", path)
        demand(status in (200, 503), "GET", path, status, body)
        return body if status == 200 else None

    def post(self, key, patience=LIMIT):
        """Sends a job until it is acknowledged.  None where a strike keeps the service from that for
        longer than PATIENCE seconds."""
        end = time.monotonic() + LIMIT
        impatient = time.monotonic() + patience
        self.keys.setdefault(key, None)
        while True:
            status, _, body = self.ask("POST", "/v1/jobs", JOB, {"Idempotency-Key": key})
            if status in (200, 201):
                demand(self.keys[key] in (None, body["id"]), "one key, two jobs", key, self.keys[key], body)
                self.keys[key] = body["id"]
                return body["id"]
            # A worker that was struck when it was asked for its workloads has none.
            demand(status == 503 or status == 422 and self.faults.struck, "POST", status, body)
            if time.monotonic() > impatient and self.faults.struck:
                return None
            demand(time.monotonic() < end, "POST", status, body)
            time.sleep(0.005)

    def look(self, job):
        """Notes what has finished of JOB.  Whether all of it has."""
        shown = self.get(f"/v1/jobs/{job}")  # before its runs: where it has finished, all of them have
        page = self.get(f"/v1/runs?job={job}&limit=100")
        if page is None:
            return False
        for run in page["items"]:
            if run["finished_at"] is not None:
                self.note(run)
        return bool(shown) and shown["state"] == "finished"

    def note(self, run):
        identity = {key: run[key] for key in IDENTITY}
        before = self.finished.setdefault(run["id"], identity)
        demand(before == identity, "a finished run changed", run["id"], before, identity)

    # At the end

    def check(self, digests=None):
        """Undisturbed: everything that was acknowledged ends as if nothing had been.  DIGESTS: what
        variants show where nothing was disturbed."""
        demand(self.start({}), "no start", self.exit, self.log_tail())
        service = self.service
        service.wait(lambda: service.request("GET", "/readyz")[0] == 200, "ready", LIMIT)
        for key, job in list(self.keys.items()):
            if job is None:
                self.post(key)
        jobs = [job for job in self.keys.values() if job]
        demand(len(set(jobs)) == len(jobs), "one job for two keys")
        stored = [job["id"] for job in service.items("/v1/jobs") if job["request"].get("iterations") == 2 and
                  job["request"].get("workloads") == ["selftest_pass"]]
        demand(set(stored) == set(jobs) and len(stored) == len(jobs), "jobs stored and acknowledged differ",
               sorted(set(stored) ^ set(jobs)))
        crashed = sum(self.check_job(job) for job in jobs)
        demand(crashed <= self.struck_outside, "runs crashed that nobody struck", crashed, self.struck_outside)
        for run, identity in self.finished.items():
            shown = service.get(f"/v1/runs/{run}")
            demand({key: shown[key] for key in IDENTITY} == identity, "a finished run changed", identity, shown)
        cells = self.cells()
        for variant, digest in (digests or {}).items():
            for cell in cells.get(variant, []):
                demand(cell[0] == digest or cell[1] != "reproducible", "green with other bits", variant, cell, digest)
        demand(self.stop() == 0, "it did not stop", self.exit, self.log_tail())
        code, text = service.fsck()
        demand(code == 0 and " 0 differ" in text, "fsck", code, text)

    def check_job(self, job):
        """Answered exactly as often as asked.  Returns how many runs crashed."""
        shown = self.service.finish_job(job, LIMIT)
        answered, crashed = {}, 0
        for run in self.service.items(f"/v1/runs?job={job}"):
            demand(run["finished_at"] is not None, "a run that never ended", run)
            self.note(run)
            if run["outcome"] in ("lost", "infra"):
                continue
            demand(run["outcome"] in ("completed", "crashed", "invalid"), "outcome", run)
            crashed += run["outcome"] != "completed"
            key = (run["variant"], run["device"])
            answered[key] = answered.get(key, 0) + 1
        demand(len(shown["items"]) == VARIANTS, "items", shown)
        for item in shown["items"]:
            count = answered.get((item["variant"], item["device"]), 0)
            demand(count == RUNS or item["state"] == "given-up", "answers", item, answered)
            demand(count <= RUNS, "answered too often", item, answered)
        return crashed

    def cells(self):
        """{variant: [(digest or None, verdict)]} of the job's workload."""
        found = {}
        for row in self.service.get("/v1/matrix")["variants"]:
            if row["workload"] == "selftest_pass" and row.get("href"):
                found.setdefault(row["variant"], []).append((row.get("digest"), row["verdict"]))
        return found

    def stop(self):
        self.service.process.terminate()
        return self.ended()

    def kill(self):
        if self.service.process:
            self.service.process.kill()
            self.ended()

    def backup(self, env, name):
        return subprocess.run([str(BUILD / "reprod"), "backup", "--data", str(self.service.data),
                               str(self.service.folder / name)], env={**os.environ, **env}, capture_output=True,
                              text=True, timeout=LIMIT)

    def log_tail(self):
        return self.service.log.read_text(errors="replace")[-3000:]
