"""A service with all that it depends on, on this machine: hosts that it starts and nodes of a real Slurm, receivers of webhooks, a
peer whose runs it takes; what is asked of it, and what it showed."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid

import slurm
from outage_processes import HOST, MARK, marked
from receiver import SECRET, Receiver
from service import BUILD, LIMIT, SELFTEST_WORKER, Service

PACED = pathlib.Path(__file__).resolve().parent / "outage_paced.py"
REPROD = str(BUILD / "reprod")
PATIENCE = int(os.environ.get("REPROD_OUTAGES_LIMIT", LIMIT))
VARIANTS = 2  # of each workload that jobs name
OPEN_MOST = 4  # jobs
IDENTITY = ("job", "outcome", "digest", "weight_sum_bits", "iterations", "environment", "device", "finished_at")
# As root the first does, otherwise the second, where the machine lets anybody.
UNSHARED = next((words for words in (["unshare", "--uts"], ["unshare", "--map-root-user", "--uts"])
                 if shutil.which("unshare") and not subprocess.run([*words, "hostname", "x"], capture_output=True).returncode), None)
# Page by page, so that it can be killed between two.
EXPORT = (f"{REPROD} export --limit 10 --server http://127.0.0.1:$(cat $1) --since $2 |"
          " while read -r page; do printf '%s\\n' \"$page\"; sleep 0.05; done")


class Failed(AssertionError):
    """Something that never may be."""


def demand(condition, *what):
    if not condition:
        raise Failed(*what)


def local_hosts():
    """Each has its own name, so that its device is one, too: without that there can be one only."""
    return [f"local-{number}" for number in ((1, 2) if not slurm.missing() else (1, 2, 3, 4))] if UNSHARED else [os.uname().nodename]


class World:
    def __init__(self, folder, rng):
        self.folder, self.rng = pathlib.Path(folder), rng
        self.token = uuid.uuid4().hex
        self.nodes = [] if slurm.missing() else list(slurm.NODES)
        self.hosts = local_hosts()
        self.devices = [f"cpu:{name}" for name in self.hosts + self.nodes]
        self.site = self.folder / "site"
        self.site.mkdir(parents=True)
        self.port = self.site / "east.port"
        self.cluster = None
        self.posted = {}    # service's name: {Idempotency-Key: job, once it was acknowledged}
        self.open = []      # jobs that were not seen finished
        self.finished = {}  # runs as they were shown when they had ended
        self.hooks = {}
        self.receivers = {}

    # What there is

    def start(self):
        env = {MARK: self.token}
        if self.nodes:
            (self.folder / "slurm").mkdir()
            self.cluster = slurm.Cluster(self.folder / "slurm")
            self.cluster.start()
            env.update(self.cluster.env)
        for name, plan in (("steady", ""), ("shaky", "half")):
            folder = self.folder / name
            folder.mkdir()
            self.receivers[name] = Receiver(folder, plan)
        self.east = Service(self.site / "east", worker=SELFTEST_WORKER, options=["--no-survey"], env=env, config={
            "background": {"budget_percent": 0}})
        self.service = Service(self.site / "main", options=["--no-survey"], env=env, config=self.configuration())
        self.posted = {self.east: {}, self.service: {}}
        self.start_east()
        self.service.start(ready=False)
        self.wait(self.all_there, "all hosts")
        for name, more in (("steady", {"timeout_ms": 60000}), ("shaky", {"retry_ms": 10, "timeout_ms": 300})):
            self.hooks[name] = self.made("/v1/webhooks", name=name, url=self.receivers[name].url, secret=SECRET, types=[
                "job.finished", "cell.changed", "cell.regressed", "finding.new", "device.dissents", "host.lost", "host.back",
                "host.changed", "database.damaged"], **more)
        # Two iterations: a control whose device showed one digest so far would not vouch, and that is a cell that regressed.
        self.schedules = [self.made("/v1/schedules", name=f"minutely-{number}", calendar="* * * * *", spread_seconds=0, job={
            "workloads": ["selftest_pass"], "runs": 1, "iterations": 2}) for number in range(2)]

    def configuration(self):
        paced = {"name": "paced", "command": [sys.executable, str(PACED), str(self.site)], "subject": "framework",
                 "subject_name": "own", "variants": [{"name": "unordered", "control": True}, {"name": "ordered"}],
                 "environment": {MARK: self.token}}
        agent = self.site / "agent.json"
        agent.write_text(json.dumps({"grace_ms": 300, "workloads": [paced], "stacks": [
            {"name": "cpu", "worker": str(SELFTEST_WORKER), "env": {MARK: self.token}}]}))
        words = [REPROD, "agent", "--config", str(agent)]
        named = [*UNSHARED, "sh", "-c", "hostname $0 && exec \"$@\"", "{host}"] if UNSHARED else []
        hosts = [{"name": name, "launch": ["env", f"{HOST}={name}", *named, *words]} for name in self.hosts]
        if self.nodes:
            node = {"engine": "slurm", "slurm": {"partition": "work"}}
            hosts += [{**node, "name": name, "agent": ["env", f"{HOST}={name}", *words],
                       **({"keep": "needed", "idle_release_s": 1} if name == self.nodes[-1] else {})} for name in self.nodes]
        return {"hosts": hosts, "slurm": {"every_seconds": 1}, "workloads": [paced], "background": {"budget_percent": 0},
                "peers": [{"name": "east", "every_seconds": 1,
                           "launch": ["sh", "-c", EXPORT, "sh", str(self.port), "{cursor}"]}]}

    def start_east(self):
        self.east.start(ready=False)
        self.port.write_text(str(self.east.port))

    def end(self):
        """Whatever is left of it, in a failure."""
        for service in (self.service, self.east):
            if service.process:
                service.kill()
        for receiver in self.receivers.values():
            if receiver.process.poll() is None:
                receiver.kill()
        if self.cluster:
            self.cluster.loopback("stop")

    # What is asked

    def ask(self, method, path, body=None, headers=None, service=None):
        """Nobody but the campaign kills it, and never while it is asked."""
        service = service or self.service
        try:
            return service.request(method, path, body, headers)
        except OSError as broken:
            raise Failed(f"{method} {path}: {broken!r}", service.process.poll(), self.log_tail(service)) from broken

    def get(self, path, service=None):
        status, _, body = self.ask("GET", path, service=service)
        demand(status == 200, "GET", path, status, body)
        return body

    def made(self, path, **body):
        status, _, made = self.ask("POST", path, body)
        demand(status == 201, "POST", path, status, made)
        return made["id"]

    def wait(self, condition, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not condition():
            demand(time.monotonic() < end, f"{what}: not within {seconds} s", self.situation())
            time.sleep(0.05)

    def wait_up_to(self, condition, seconds):
        """Whether it came true."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def post(self, service=None, **request):
        """A job, once; it is sent again until it is acknowledged."""
        posted = self.posted[service or self.service]
        posted[f"key-{len(posted)}"] = request

    def acknowledged(self, service):
        """Whether all jobs were; one for a device that was not heard of since the service began waits."""
        for key, job in self.posted[service].items():
            if isinstance(job, dict):
                status, _, body = self.ask("POST", "/v1/jobs", job, {"Idempotency-Key": key}, service=service)
                demand(status in (200, 201, 503), "POST /v1/jobs", status, body)
                if status == 503:
                    continue
                self.posted[service][key] = body["id"]
                if service is self.service:
                    self.open.append(body["id"])
        return not any(isinstance(job, dict) for job in self.posted[service].values())

    def keep_busy(self):
        """Jobs for the devices that are there, or for all; and some for the peer."""
        waiting = sum(isinstance(job, dict) for job in self.posted[self.service].values())
        for _ in range(OPEN_MOST - len(self.open) - waiting):
            workload = self.rng.choice(("selftest_pass", "paced", "paced"))
            devices = {"devices": self.devices} if self.rng.random() < 0.5 else {}
            self.post(workloads=[workload], runs=2, iterations=2, timeout_seconds=60, **devices)
        self.acknowledged(self.service)
        if self.east.process:
            if self.rng.random() < 0.5:
                self.post(self.east, workloads=["selftest_pass"], runs=2, iterations=2)
            self.acknowledged(self.east)

    # What it shows

    def look(self):
        """How many runs were seen to have ended."""
        for job in list(self.open):
            shown = self.get(f"/v1/jobs/{job}")  # before its runs: where it has finished, all of them have
            for run in self.service.items(f"/v1/runs?job={job}"):
                if run["finished_at"] is not None:
                    self.note(run)
            if shown["state"] == "finished":
                self.open.remove(job)
        return len(self.finished)

    def note(self, run):
        identity = {key: run[key] for key in IDENTITY}
        before = self.finished.setdefault(run["id"], identity)
        demand(before == identity, "a finished run changed", run["id"], before, identity)

    def computing(self):
        """{device: process of its run}"""
        found = {}
        for job in self.open:
            for run in self.service.items(f"/v1/runs?job={job}"):
                if run["finished_at"] is None and run["process"]["pid"]:
                    found[run["device"]] = run["process"]["pid"]
        return found

    def shown_hosts(self):
        """Without those of the peer."""
        return [host for host in self.get("/v1/hosts")["items"] if host["name"] in self.hosts + self.nodes]

    def all_there(self):
        hosts = self.shown_hosts()
        return len(hosts) == len(self.devices) and all(host["online"] or host["state"] == "released" for host in hosts)

    def tend_nodes(self):
        """As their administrator would: Slurm drains a node whose steps did not end as it wanted, such as those of a job that it
        forgot when it was killed."""
        if self.cluster:
            for line in self.cluster.run("sinfo", "-h", "-N", "-p", "work", "-o", "%N %T", check=False).splitlines():
                node, _, state = line.partition(" ")
                if state.startswith("drain"):
                    self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def situation(self):
        """What a person would look at."""
        said = {"log": self.log_tail(self.service), "processes": list(marked(self.token).values())}
        if self.service.process and self.service.process.poll() is None:
            hosts = self.get("/v1/hosts")["items"]
            said.update(hosts=[(host["name"], host["state"], host["cause"]) for host in hosts],
                        jobs=[(job["id"], job["state"], job["progress"]) for job in self.get("/v1/jobs")["items"]
                              if job["state"] in ("queued", "running")],
                        ready=self.ask("GET", "/readyz")[2],
                        hooks=[(hook["name"], hook["waiting"], hook["dead"], hook["last_failure"])
                               for hook in self.get("/v1/webhooks")["items"]],
                        peers=self.get("/v1/peers")["items"])
        if self.cluster:
            said["slurm"] = [self.cluster.run("sinfo", "-N", "-l", check=False), self.cluster.run("squeue", check=False)]
        return said

    @staticmethod
    def log_tail(service):
        lines = service.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if "deliver" not in line][-60:])
