"""Compares how services begin: without workers, with hosts that say wrong things, with a survey."""
import json
import sqlite3

import programs
import questions
import refused
from answers import Pair
from configured import install
from daemons import Daemon

WAITS = """#!/bin/sh
[ "$1" = --run ] && exec sleep 600
exec %s "$@"
"""


def pair_of(builds, folder, name, config, survey=False):
    """Not necessarily ready."""
    return [Daemon(build, folder / f"{name}-{which}", config).start(ready=False, survey=survey)
            for which, build in zip(("old", "new"), builds)]


def compare_unready(builds, folder, start, differences):
    """Before any worker has said what it can do, and where none is usable."""
    slow = folder / "slow-worker"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    for name, worker in ("slow", str(slow)), ("none", "/no/such/worker"):
        config = {"grace_ms": 200, "stacks": [{"name": "cpu", "worker": worker}]}
        daemons = pair_of(builds, folder, name, config)
        for daemon in daemons:
            daemon.wait("its agent", lambda daemon=daemon, name=name: name == "slow" or any(
                host["first_seen_at"] for host in daemon.get("/v1/hosts")["items"]))
        for question in questions.UNREADY:
            Pair(*daemons, start, differences).ask(question)
        for daemon in daemons:
            daemon.stop()


def compare_hosts(builds, folder, differences):
    """Why a host is not taken in: each says one wrong hello.  It is started again and again, so
    only the first cause counts."""
    launch = ["sh", "-c", "printf '%s\\n' \"$0\"; cat >/dev/null"]
    hosts = [{"name": f"host-{number}",
              "launch": [*launch, hello if isinstance(hello, str) else json.dumps(hello)]}
             for number, hello in enumerate(refused.HELLOS)]
    daemons = pair_of(builds, folder, "hosts", {"grace_ms": 200, "hosts": hosts})
    causes = []
    for daemon in daemons:
        found = {}

        def all_told(daemon=daemon, found=found):
            for host in daemon.get("/v1/hosts")["items"]:
                if host["cause"]:
                    found.setdefault(host["name"], host["cause"])
            return len(found) == len(hosts)
        daemon.wait("all causes", all_told)
        daemon.stop()
        causes.append(found)
    for host, hello in zip(hosts, refused.HELLOS):
        differences.compared["outputs"] += 1
        old, new = (found[host["name"]] for found in causes)
        if old != new:
            differences.sentence(f"hello {str(hello)[:100]}", "cause of a host", old, new)


def compare_surveys(builds, folder, differences):
    """The job that a service gives itself; its first run waits when the service is killed."""
    install(folder / "survey")
    worker = folder / "survey" / "commands" / "waits"
    worker.write_text(WAITS % (worker.parent / "planned"))
    worker.chmod(0o755)
    config = {"grace_ms": 200, "stacks": [{"name": "cpu", "worker": str(worker)}]}
    daemons = pair_of(builds, folder, "survey", config, survey=True)
    for daemon in daemons:
        daemon.wait("a run", lambda daemon=daemon: any(
            run["started_at"] for run in daemon.get("/v1/runs")["items"]))
        daemon.kill()
        with sqlite3.connect(daemon.data / "reprod.db") as db:
            db.execute("PRAGMA wal_checkpoint")
        db.close()
    programs.compare_databases("survey", *(daemon.data for daemon in daemons), differences)
