"""What has to be true when everybody was killed and came back."""
import collections
import json
import sqlite3

from outage_processes import agents, marked, orphans
from outage_world import VARIANTS, demand

HEALED = 20  # runs that complete after one that failed, until its cell is not failing any more (daemon/evidence/verdict.h)
# What cells of a variant may be, whatever is killed.
EVER = {"unordered": ("unmeasured", "inconclusive", "varies", "failing"),
        "ordered": ("unmeasured", "inconclusive", "reproducible", "failing")}
OFTEN = 7  # times; the next try of what failed six times comes after 10 s, since this webhook's first comes after 10 ms
WANTED = (
    "SELECT e.id || '-' || at_ms || '-cell-changed' FROM event e JOIN cell c ON c.id = json_extract(data, '$.id')"
    " JOIN case_key k ON k.number = c.case_key WHERE e.kind = 'cell' AND NOT k.challenge",
    "SELECT id || '-' || at_ms || '-host-' || json_extract(data, '$.state') FROM event WHERE kind = 'host'",
    "SELECT 'job-' || id || '-finished' FROM job WHERE state = 'finished' AND priority <> 'background'")


def settle(world):
    """Waits.  One job of each workload heals what crashed, by measuring; somebody looks after nodes, and after deliveries that
    wait for minutes."""
    for schedule in world.schedules:
        status, _, _ = world.ask("POST", f"/v1/schedules/{schedule}/pause")
        demand(status == 200, "pause", status)
    for workload in ("selftest_pass", "paced"):
        world.post(workloads=[workload], devices=world.devices, runs=-(-HEALED // len(world.devices)), iterations=2, timeout_seconds=60)
    for service in world.posted:
        world.wait(lambda service=service: world.acknowledged(service), "all jobs are acknowledged")
    world.wait(lambda: idle(world), "all hosts are there, and all jobs finish")
    world.wait(lambda: not unfinished(world.east), "the peer's jobs finish")
    world.wait(lambda: ids(world.east) <= ids(world.service), "all runs of the peer")
    world.wait(lambda: world.ask("GET", "/readyz")[0] == 200, "ready")
    settle_webhooks(world)
    world.wait(lambda: {host: len(pids) for host, pids in agents(world.token).items()} ==
               {host["name"]: 1 for host in world.shown_hosts() if host["online"]}, "one agent a host")
    world.wait(lambda: not orphans(world.token), "nothing of a service that was killed")


def settle_webhooks(world):
    """What failed often waits for minutes: that is not waited for, but a person's word."""
    shaky = world.hooks["shaky"]
    world.wait(lambda: all(each["attempts"] >= OFTEN and each["next_at"] for each in waiting(world, shaky)), "deliveries that were tried")
    if waiting(world, shaky):
        world.receivers["shaky"].plan.write_text("")
        status, _, _ = world.ask("POST", f"/v1/webhooks/{shaky}/resume")
        demand(status == 200, "resume", status)
    for name, hook in world.hooks.items():
        world.wait(lambda name=name, hook=hook: expected(world) <= set(accepted(world, name)) and not waiting(world, hook),
                   f"all is delivered to {name}")


def waiting(world, hook):
    return world.service.items(f"/v1/webhooks/{hook}/deliveries?state=waiting")


def idle(world):
    world.look()
    if world.all_there() and not unfinished(world.service):
        return True
    world.tend_nodes()
    return False


def unfinished(service):
    return [job["id"] for job in service.items("/v1/jobs") if job["state"] not in ("finished", "cancelled")]


def ids(service):
    return {run["id"] for run in service.items("/v1/runs")}


# Webhooks

def accepted(world, name):
    return [line["id"] for line in world.receivers[name].accepted()]


def expected(world):
    """The ids of what webhooks want, by the events on record: not of challenges, nor of jobs that nobody requested here."""
    with sqlite3.connect(f"file:{world.service.data / 'reprod.db'}?mode=ro", uri=True) as db:
        return {row[0] for question in WANTED for row in db.execute(question)}


def number_of(message):
    """Of its event; a job's has none."""
    first = message.partition("-")[0]
    return int(first) if first.isdigit() else None


def check_webhooks(world, kills):
    for name, hook in world.hooks.items():
        lines = world.receivers[name].lines()
        bodies = {}
        for line in lines:
            demand(line["signed"], "a signature", name, line)
            demand(bodies.setdefault(line["id"], line["body"]) == line["body"], "one id, two bodies", name, line, bodies[line["id"]])
            event = json.loads(line["body"])
            kind = event["type"]
            demand(not kind.endswith("cell.changed") or event["data"]["verdict"] in EVER[event["data"]["variant"]], "a false verdict", line)
            demand(not kind.endswith(("dissents", "finding.new", "database.damaged", "host.changed")), "a false event", line)
            demand(not kind.endswith("cell.regressed") or kills["worker"], "a false event", line)
        shown = world.get(f"/v1/webhooks/{hook}")
        demand(shown["dead"] == shown["dropped"] == 0 and shown["state"] == "active", "dead letters", name, shown)
        told = {message for message in bodies if not message.endswith("cell-regressed")}
        demand(told == expected(world), "events", name, told ^ expected(world))
    first = list(dict.fromkeys(accepted(world, "steady")))
    numbers = [number for number in map(number_of, first) if number is not None]
    demand(numbers == sorted(numbers), "out of order", first)
    again = len(accepted(world, "steady")) - len(first)
    demand(again <= kills["service"], "delivered again by whom nobody killed", again, kills)
    lost = collections.Counter()
    for line in world.receivers["steady"].accepted():
        event = json.loads(line["body"])
        if event["type"].endswith(("host.lost", "host.back")) and line["id"] in first:
            first.remove(line["id"])
            lost[event["data"]["host"]] += 1 if event["type"].endswith("lost") else -1
            demand(lost[event["data"]["host"]] in (0, 1), "a host that was lost twice, or never", line)
    demand(not +lost, "hosts that are not told to be back", lost)


# Jobs and runs

def check_job(service, job):
    """Answered as often as was asked.  Returns its runs."""
    shown = service.get(f"/v1/jobs/{job}")
    runs = service.items(f"/v1/runs?job={job}")
    answered = collections.Counter()
    for run in runs:
        demand(run["finished_at"] is not None and run["outcome"], "a run without an outcome", run)
        demand(run["outcome"] in ("completed", "crashed", "lost", "cancelled", "infra"), "an outcome", run)
        if run["outcome"] in ("completed", "crashed") and not run["challenge"]:
            answered[run["variant"], run["device"]] += 1
    for item in shown["items"]:
        count = answered.pop((item["variant"], item["device"]), 0)
        demand(count == item["runs_answered"], "an item's answers", job, item, count)
        demand(count == item["runs_wanted"] or item["state"] == "given-up" and item["given_up_reason"], "answers", job, item)
    demand(not answered, "runs of no item", job, answered)
    return runs


def check_runs(world, kills):
    for service, posted in world.posted.items():
        own = {job["id"] for job in service.items("/v1/jobs") if not {"peer", "note"} & set(job["request"])}
        demand(len(set(posted.values())) == len(posted), "jobs", posted)
        demand(own == set(posted.values()), "jobs that are there and were acknowledged differ", own ^ set(posted.values()))
        crashed = 0
        for job in posted.values():
            demand(len(service.get(f"/v1/jobs/{job}")["items"]) % VARIANTS == 0, "items", job)
            runs = check_job(service, job)
            crashed += sum(run["outcome"] == "crashed" for run in runs)
            if service is world.service:
                for run in runs:
                    world.note(run)
        demand(crashed <= (kills["worker"] if service is world.service else 0), "runs crashed that nobody killed", crashed, kills)
    for schedule in world.schedules:
        shown = world.get(f"/v1/schedules/{schedule}")
        made = [job for job in world.service.items("/v1/jobs") if job["request"].get("note") == f"schedule {shown['name']}"]
        demand(shown["jobs"] == len(made), "jobs of a schedule", shown, made)
        times = [result["due_at"] for result in shown["results"]]
        demand(len(times) == len(set(times)), "one time, two jobs", shown)
        for job in made:
            check_job(world.service, job["id"])


def check_peer(world):
    theirs = {run["id"]: run for run in world.east.items("/v1/runs")}
    ours = [run for run in world.service.items("/v1/runs") if "east/" in run["device"]]
    demand(len(ours) == len(theirs) and {run["id"] for run in ours} == set(theirs), "runs of the peer", len(ours), len(theirs))
    for run in ours:
        their = theirs[run["id"]]
        demand((run["outcome"], run["digest"], run["iterations"]) == (their["outcome"], their["digest"], their["iterations"]),
               "a run of the peer", run, their)
    [peer] = world.get("/v1/peers")["items"]
    demand(peer["taken"] == len(theirs) and peer["refused"] == 0, "the peer", peer, len(theirs))


def check_verdicts(world):
    """Controls vary, the others are reproducible; nobody dissents; what cells count is what is on record."""
    runs = collections.Counter()
    digests = collections.defaultdict(set)
    for run in world.service.items("/v1/runs"):
        if run["cell"]:
            runs[run["cell"], run["outcome"]] += 1
        if run["outcome"] == "completed" and run["variant"] == "ordered" and not run["challenge"]:
            digests[run["workload"]].add(run["digest"])
    demand(all(len(found) == 1 and None not in found for found in digests.values()), "digests", digests)
    seen = set()
    for cell in sorted({cell for cell, _ in runs}):
        shown = world.get(f"/v1/cells/{cell}")
        if shown["seed"] != "1":  # of challenges
            continue
        wanted = "varies" if shown["is_control"] else "reproducible"
        demand(shown["verdict"] == wanted, "a verdict", shown)
        counted = {outcome: count for outcome, count in shown["evidence"]["outcomes"].items() if count}
        demand(counted == {outcome: count for (of, outcome), count in runs.items() if of == cell}, "counts", shown, runs)
        seen.add((shown["workload"], shown["variant"]))
    demand(len(seen) == 2 * VARIANTS, "cells", seen)
    demand(not world.get("/v1/findings")["items"], "findings")
    for device in world.service.items("/v1/devices"):
        demand(not device["dissents"], "a device that dissents", device)


def check(world, kills):
    check_runs(world, kills)
    check_peer(world)
    check_verdicts(world)
    check_webhooks(world, kills)
    for service in (world.service, world.east):
        demand(service.stop() == 0, "it did not stop", world.log_tail(service))
        code, said = service.fsck()
        demand(code == 0 and " 0 differ" in said, "fsck", code, said)
    world.wait(lambda: not marked(world.token), "processes are gone")
    if world.cluster:
        world.wait(lambda: not world.cluster.jobs(), "squeue is empty")
