"""A real cluster of Slurm on this machine, and hosts of it whose work waits while a file is there."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from service import BUILD, LIMIT, ROOT, SELFTEST_WORKER, Service

LOOPBACK = ROOT / "tests" / "slurm" / "loopback"
CACHE = pathlib.Path(os.environ.get("SLURM_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "reprod" / "slurm")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin:{CACHE / 'bin'}"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo", "squeue", "scancel", "scontrol")
NODES = ("n1", "n2", "n3")
# Ends its run when the file `go` of its folder is there, or `go-HOST`.
WAITS = """
import os, pathlib, sys, time
sys.path.insert(0, {python!r})
import reprod_probe as probe
for _ in probe.iterations(inputs={{"x": [1.0]}}):
    while not any(pathlib.Path({folder!r}, name).exists() for name in ("go", "go-" + os.uname().nodename)):
        time.sleep(0.05)
    probe.finish([2.0], 1.0)
"""


def missing():
    """Why there can be no cluster here; None: there can."""
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
    if lacking:
        return f"no {', '.join(lacking)}: make get-slurm, or the packages slurmctld slurmd slurm-client munge"
    if subprocess.run(["unshare", "--mount", "--uts", "true"], capture_output=True).returncode:
        return "a process cannot have another host name here"
    return None


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.env = {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}

    def loopback(self, *words, **env):
        done = subprocess.run([LOOPBACK, words[0], self.folder, *words[1:]], capture_output=True, text=True, timeout=LIMIT,
                              env={**os.environ, **self.env, **env})
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self):
        """On ports that nobody has; who asks at the same time gets others."""
        for attempt in range(5):
            port = 20000 + (os.getpid() * 37 + attempt * 4111) % 9000 // 4 * 4
            try:
                self.loopback("start", PORT=str(port))
                return self
            except AssertionError:
                self.loopback("stop")
                if attempt == 4:
                    raise
        return None

    def run(self, *words, check=True):
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, **self.env})
        assert not check or done.returncode == 0, (words, done.stdout + done.stderr)
        return done.stdout

    def background(self, *words):
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, **self.env})

    def jobs(self, prefix="reprod-"):
        """[(id, node asked for, state)] of jobs that have not ended."""
        listed = json.loads(self.run("squeue", "--json"))["jobs"]
        return [(job["job_id"], job["required_nodes"], job["job_state"]) for job in listed
                if job["name"].startswith(prefix) and job["job_state"] in ("PENDING", "RUNNING", "COMPLETING")]

    def saved(self):
        """Its jobs are on slurmctld's disk, which else loses those of the last seconds where it is killed."""
        state, now = self.folder / "state" / "job_state", time.time()
        for job, _, _ in self.jobs():
            self.run("scontrol", "update", f"jobid={job}", "timelimit=40")
        self.wait(lambda: state.exists() and state.stat().st_mtime > now, "the jobs on disk")

    def pid(self, daemon):
        return int((self.folder / "run" / f"{daemon}.pid").read_text())

    def kill_node(self, node):
        """As when its power fails: slurmd, and what it started, but for the task, which has nobody to speak to."""
        first = self.pid(f"slurmd-{node}")
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != first:
                try:
                    command = pathlib.Path("/proc", name, "cmdline").read_text()
                    mine = str(self.folder) in pathlib.Path("/proc", name, "environ").read_text()
                    if "slurmstepd" in command and mine and self.node_of(int(name)) == node:
                        os.kill(int(name), signal.SIGKILL)
                except OSError:
                    continue
        os.kill(first, signal.SIGKILL)

    @staticmethod
    def node_of(pid):
        """The host name that a process sees."""
        return subprocess.run(["nsenter", f"--uts=/proc/{pid}/ns/uts", "uname", "-n"], capture_output=True,
                              text=True).stdout.strip()

    def wait(self, condition, what, seconds=LIMIT):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
            time.sleep(0.1)


class Site:
    """A service whose hosts are the nodes of CLUSTER, with a workload `waits` beside those of the self-test."""

    def __init__(self, cluster, folder, **entry):
        folder.mkdir(parents=True, exist_ok=True)
        self.cluster, self.folder = cluster, folder
        script = folder / "waits.py"
        script.write_text(WAITS.format(python=str(ROOT / "workloads" / "python"), folder=str(folder)))
        workload = {"name": "waits", "command": ["python3", str(script)], "subject": "framework", "subject_name": "own",
                    "directory": str(folder), "no_control": "it only waits", "variants": [{"name": "only"}]}
        agent = folder / "agent.json"
        agent.write_text(json.dumps({"stacks": [{"name": "cpu", "worker": str(SELFTEST_WORKER)}], "workloads": [workload]}))
        host = {"name": "n[1-3]", "engine": "slurm", "slurm": {"partition": "work"},
                "agent": [str(BUILD / "reprod"), "agent", "--config", str(agent)], **entry}
        self.service = Service(folder, options=["--no-survey"], env=cluster.env, config={
            "hosts": [host], "slurm": {"every_seconds": 1}, "workloads": [workload]})

    def hosts(self):
        return {host["name"]: host for host in self.service.get("/v1/hosts")["items"]}

    def start(self):
        self.service.start(ready=False)
        return self

    def online(self, *names):
        self.service.wait(lambda: all(self.hosts()[name]["online"] for name in names or NODES),
                          f"hosts online: {names or NODES}")
        return self

    def cause(self, name):
        return self.hosts()[name]["cause"] or ""

    def let_go(self, host=None):
        (self.folder / (f"go-{host}" if host else "go")).touch()

    def runs(self, job):
        """{host: [run]} in the order in which they began"""
        runs = {}
        for run in sorted(self.service.items(f"/v1/runs?job={job}"), key=lambda run: run["id"]):
            runs.setdefault(run["device"].removeprefix("cpu:"), []).append(run)
        return runs

    def running(self, job):
        """The hosts on which a run of JOB computes now."""
        return {name for name, runs in self.runs(job).items()
                if runs[-1]["outcome"] in (None, "running") and runs[-1]["process"]["pid"]}
