#!/usr/bin/env python3
"""SIGKILL at many points: nothing acknowledged is lost, nothing finished changes or runs again.

Each chapter is a data folder that is killed KILLS times and then checked undisturbed.  Most kills come
at a place: before, after or in the middle of the n-th call of a kind, of the service, its agent, a worker
or a backup, where n is drawn from how often an undisturbed life makes that call.  The others come from
outside at a random time.  A seed and a chapter's number say everything about it.

  kills.py --kills 10000 --seed 1 --processes 2 --out result.json
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

from places import Symbols, phase_of
from world import OLD, Failed, Gone, World, demand

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reliability"))
from results import machine, write_result  # noqa: E402

KILLS = 25  # of a chapter
CALLS = ("write", "fsync", "truncate", "rename", "unlink", "lock", "mmap", "spawn", "pipe", "event", "send",
         "receive", "open", "read")
WRITING = ("write", "fsync", "truncate", "rename", "unlink")  # struck more often than the others
KINDS = ("start", "job", "stop", "backup")


class Life:
    """What one life of the service does, and how it ends."""

    def __init__(self, world, rng, kind, plan=None):
        self.world, self.rng, self.kind = world, rng, kind
        self.plan = plan or {}
        self.doing = "start"
        self.counts = {}
        self.end = None  # when somebody outside kills it

    def live(self):
        """Returns what it was doing at its end."""
        world = self.world
        try:
            if not world.start(self.plan):
                demand(world.faults.struck, "it ended by itself", world.exit, world.log_tail())
                return self.doing
            self.note("start")
            if self.kind != "start":
                self.work()
            self.linger()
        except Gone:
            demand(world.service.process.poll() == -9, "it ended by itself", world.service.process.poll(),
                   world.log_tail())
        return self.doing

    def note(self, stage):
        self.counts[stage] = self.world.faults.counts()

    def due(self):
        """Whether somebody outside kills it now."""
        return self.end is not None and time.monotonic() > self.end

    def work(self):
        world = self.world
        self.doing = "job"
        waiting = [key for key, job in world.keys.items() if job is None]
        key = self.rng.choice(waiting) if waiting and self.rng.random() < 0.7 else f"key-{len(world.keys)}"
        job = world.post(key, patience=1)
        give_up = time.monotonic() + 1.5  # what was struck elsewhere may keep a job from its end
        while job and not world.look(job) and not self.due() and time.monotonic() < give_up:
            pass
        if world.finished and self.rng.random() < 0.3:
            world.look(world.finished[self.rng.choice(sorted(world.finished))]["job"])
        self.note("job")
        self.doing = "job" if self.due() else "idle"
        if self.kind == "backup" and not self.due():
            self.doing = "backup"
            done = world.backup(self.plan, f"copy-{len(world.keys)}.db")
            demand(done.returncode in (0, -9) or "struck" in str(self.plan) or world.service.process.poll() is not None,
                   "backup", done)
            self.note("backup")
        if self.kind == "stop" and not self.due():
            self.doing = "stop"
            world.service.process.terminate()
            code = world.ended()
            demand(code == 0 or code == -9 and world.faults.struck, "stop", code, world.log_tail())
            self.note("stop")

    def linger(self):
        """Until it is time, for who is killed from outside."""
        while self.world.service.process and self.end is not None and not self.due():
            time.sleep(0.002)


def calibrate(folder):
    """{(old, kind): {stage: {role: {call: how many an undisturbed life made by then}}}}, for a first
    life (OLD is None or a database's name) and for a later one ("later")."""
    found = {}
    for old in (None, *OLD, "later"):
        for kind in KINDS:
            world = World(f"{folder}/calibrate-{old}-{kind}", None if old == "later" else old)
            if old == "later":
                for _ in range(3):
                    Life(world, random.Random(0), "job", world.faults.plan()).live()
                    world.kill()
            life = Life(world, random.Random(0), kind, world.faults.plan("worker", "any", 0, 0))
            life.live()
            found[old, kind] = life.counts
            world.kill()
            shutil.rmtree(world.service.folder)
    return found


def stage_of(rng, kind, role):
    """During which part of a life it is struck."""
    if role == "maintenance":
        return "backup"
    if kind == "start":
        return "start"
    return rng.choices(("start", "job", kind), (5, 35, 60))[0]


def draw(rng, world, calibration, kind):
    """A life and a plan that strikes somewhere in it."""
    weights = (70, 5, 25, 0) if kind == "backup" else (82, 10, 0, 8) if kind == "job" else (100, 0, 0, 0)
    role = rng.choices(("serve", "agent", "maintenance", "worker"), weights)[0]
    stages = calibration["later" if world.lives else world.old, kind]
    stage = stage_of(rng, kind, role)
    before = {"start": {}, "job": stages["start"], "backup": stages.get("job"), "stop": stages.get("job")}[stage]
    first = before[role] if before and role in ("serve", "maintenance") else dict.fromkeys(CALLS + ("any", "malloc"), 0)
    last = stages[stage][role]
    call = rng.choices(("any", "malloc", "one"), (30, 25, 45))[0] if role != "worker" else "any"
    if call == "one":
        some = [c for c in CALLS if last[c] > first[c]]
        call = rng.choices(some, [4 if c in WRITING else 1 for c in some])[0] if some else "any"
    action = rng.choice(("before", "after", "torn" if call in ("write", "send", "any") else "after"))
    if role == "agent" and rng.random() < 0.3:
        call, action = "spawn", "child"
    return role, call, rng.randint(first[call] + 1, max(first[call] + 1, last[call])), 1, action


def chapter(arguments):
    """Kills one data folder until the chapter is over.  Returns what happened."""
    number, seed, folder, calibration, digests = arguments
    rng = random.Random(f"{seed}/{number}")
    old = rng.choice(OLD) if rng.random() < 0.3 else None
    world = World(f"{folder}/chapter-{number}", old)
    world.lives = 0
    strikes, outside, failure = [], collections.Counter(), None
    try:
        while len(strikes) + sum(outside.values()) < KILLS:
            kind = rng.choices(KINDS, (25, 50, 15, 10))[0]
            by_time = rng.random() < 0.2
            if by_time:
                life = Life(world, rng, kind, world.faults.plan())
                life.end = time.monotonic() + rng.uniform(0.0, 0.3)
            else:
                plan = draw(rng, world, calibration, kind)
                life = Life(world, rng, kind, world.faults.plan(*plan))
            doing = life.live()
            world.lives += 1
            struck = world.faults.strikes()
            strikes += [(role, call, path, frames, plan[4]) for role, call, _, path, frames in struck]
            world.struck_outside += sum(role != "serve" for role, *_ in struck)
            if world.service.process:
                outside[doing] += world.service.process.poll() is None
                world.kill()
        world.check(digests)
    except BaseException as failed:  # noqa: B902 -- said with the seed, and the others go on
        failure = f"seed {seed}, chapter {number}: {failed!r}"[:4000]
        if not isinstance(failed, Failed):
            failure += "\n" + traceback.format_exc()[-2000:]
        world.kill()
        return strikes, outside, {"jobs": 0, "runs": 0}, failure
    facts = {"jobs": len(world.keys), "runs": len(world.finished)}
    shutil.rmtree(world.service.folder)
    return strikes, outside, facts, failure


def undisturbed(folder):
    """The digests of variants that are reproducible."""
    world = World(f"{folder}/undisturbed")
    demand(world.start({}), "no start")
    job = world.post("key")
    while not world.look(job):
        time.sleep(0.01)
    digests = {variant: digest for variant, [(digest, verdict)] in world.cells().items() if verdict == "reproducible"}
    demand(digests and world.stop() == 0, "not as it should be", digests)
    return digests


def campaign(kills, seed, processes, folders, say=print):
    """Runs chapters until there are KILLS, in turns in each of FOLDERS.  Returns the result."""
    calibration = calibrate(folders[0])
    digests = undisturbed(folders[0])
    chapters = -(-kills // KILLS)
    work = [(number, seed, folders[number % len(folders)], calibration, digests) for number in range(chapters)]
    strikes, outside, failures = [], collections.Counter(), []
    jobs = runs = 0
    started = time.monotonic()
    with multiprocessing.Pool(processes) as pool:
        for done, (found, by_time, facts, failure) in enumerate(pool.imap_unordered(chapter, work), 1):
            strikes += found
            outside.update(by_time)
            jobs += facts["jobs"]
            runs += facts["runs"]
            if failure:
                failures.append(failure)
                say(failure)
            if done % 20 == 0:
                say(f"{len(strikes) + sum(outside.values())} kills, {done} of {chapters} chapters, "
                    f"{time.monotonic() - started:.0f} s, {len(failures)} failed")
    return {"seed": seed, "kills": len(strikes) + sum(outside.values()), "chapters": chapters,
            "seconds": round(time.monotonic() - started), "jobs_acknowledged": jobs, "runs_remembered": runs,
            "failures": failures, "calls": calls_of(strikes), **places_of(strikes, outside)}


def calls_of(strikes):
    """How many kills at each call of each process."""
    return dict(sorted(collections.Counter(f"{role} {call}" for role, call, *_ in strikes).items()))


def places_of(strikes, outside):
    symbols = Symbols()
    phases, functions, moments = collections.Counter(), collections.Counter(), collections.Counter()
    symbols.learn({int(frame.rsplit("+", 1)[1], 16) for _, _, _, frames, _ in strikes for frame in frames
                   if frame.startswith("reprod+")}, symbols.program)
    for role, call, path, frames, moment in strikes:
        stack = symbols.functions(frames)
        phases[phase_of(role, call, path, stack)] += 1
        functions[stack[0] if stack else f"{role}: outside of its sources"] += 1
        moments[moment] += 1
    return {"by_place": sum(phases.values()), "from_outside": dict(sorted(outside.items())),
            "phases": dict(phases.most_common()), "functions": len(functions),
            "moments": dict(sorted(moments.items()))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10000)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--processes", type=int, default=2 * os.cpu_count())
    parser.add_argument("--out")
    options = parser.parse_args()
    begun = machine("make soak")  # before the sources change
    print("seed", options.seed, flush=True)
    places = [place for place in ("/dev/shm", tempfile.gettempdir()) if os.access(place, os.W_OK)]
    folders = [tempfile.mkdtemp(prefix="reprod-kills-", dir=place) for place in places]
    result = campaign(options.kills, options.seed, options.processes, folders,
                      lambda text: print(text, flush=True))
    print(json.dumps(result, indent=1))
    if not result["failures"]:
        for folder in folders:
            shutil.rmtree(folder)
    else:
        print("kept:", *folders)
    if options.out:
        write_result(options.out, {**begun, **result})
    return bool(result["failures"])


if __name__ == "__main__":
    sys.exit(main())
