#!/usr/bin/env python3
"""SIGKILL for everybody, in any order, while jobs run: the service, agents, runs, launch commands, slurmctld, slurmds, nodes, a
receiver that also fails half of the time, and a peer.  Whoever looks after them starts them again, some only after others were
killed, too; then all has to become consistent by itself.

  outage_campaign.py --kills 200 --seed 1 --out result.json [--chapter 3]

Each chapter is a world of its own, and killed KILLS times.  A seed and its number say who is killed when, by what was done until
then; a failure prints both.  Without Slurm all hosts have launch commands.
"""
import argparse
import collections
import dataclasses
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "system"), str(HERE.parent / "reliability")]
import outage_judge as judge  # noqa: E402
from outage_victims import OF_SLURM, WEIGHTS, Victims  # noqa: E402
from outage_world import Failed, World  # noqa: E402
from results import machine, write_result  # noqa: E402

KILLS = 25  # of a chapter
STALLED = 5  # seconds, after which nobody waits for progress any more: who makes it may be down
TRIES = 20  # at finding a victim that is there


@dataclasses.dataclass
class Kill:
    """When it comes, who is asked for, and how long they stay away."""
    moment: str  # "runs": after some more have ended; "computing": while some run; "at once": after the one before
    runs: int
    kinds: list  # the first that is there
    draw: int
    away: int  # kills until it is started again


def plan(rng, kills, with_slurm):
    weights = {kind: weight for kind, weight in WEIGHTS.items() if with_slurm or kind not in OF_SLURM}
    return [Kill(rng.choices(("runs", "computing", "at once"), (5, 4, 2))[0], rng.randint(1, 12),
                 rng.choices(list(weights), list(weights.values()), k=TRIES), rng.randrange(1000),
                 rng.choice((0, 0, 0, 1, 2, 3))) for _ in range(kills)]


class Chapter:
    def __init__(self, folder, seed, number, kills):
        self.name = f"seed {seed}, chapter {number}"
        self.rng = random.Random(f"{seed}/{number}")
        self.world = World(folder, random.Random(f"{seed}/{number}/jobs"))
        self.victims = Victims(self.world)
        self.plan = plan(self.rng, kills, bool(self.world.nodes))
        self.sequence = []
        self.kills = collections.Counter()
        self.together = 0  # kills while somebody else was away
        self.returns = []  # [kills left, who]

    def run(self):
        """What was seen.  Failed with all that makes it again."""
        self.started = time.monotonic()
        try:
            self.world.start()
            for kill in self.plan:
                self.strike(kill)
            self.come_back()
            self.note("no more kills")
            judge.settle(self.world)
            self.note("settled")
            judge.check(self.world, self.kills)
        except Exception as failed:
            words = repr(failed) if isinstance(failed, Failed) else traceback.format_exc()
            raise Failed("\n".join([self.name, *self.sequence, words])) from failed
        finally:
            self.world.end()
        return {"kills": dict(self.kills), "while_others_were_away": self.together, "jobs": sum(map(len, self.world.posted.values())),
                "runs": len(self.world.finished)}

    def note(self, text):
        self.sequence.append(f"{time.monotonic() - self.started:7.2f} s  {text}")

    def revive(self, name):
        self.note(f"{name} comes back")
        self.victims.revive(name)

    def strike(self, kill):
        for _, name in [each for each in self.returns if each[0] == 0]:
            self.revive(name)
        self.returns = [[left - 1, name] for left, name in self.returns if left > 0]
        when = self.wait(kill)
        kind, name = self.somebody(kill)
        if not name:  # all are away
            self.come_back()
            kind, name = self.somebody(kill)
        self.kills[kind] += 1
        away = [each for each in self.victims.down if each != name]
        self.together += bool(away)
        self.note(f"{name}, {when}" + (f"; away: {', '.join(away)}" if away else ""))
        if name in self.victims.down:
            self.returns.append([kill.away, name])

    def somebody(self, kill):
        """(kind, name) of who is killed, if anybody is there."""
        for kind in kill.kinds:
            name = self.victims.strike(kind, kill.draw)
            if name:
                return kind, name
        return None, None

    def come_back(self):
        self.returns = []
        for name in list(self.victims.down):
            self.revive(name)

    def wait(self, kill):
        """Until it is time.  Why it is."""
        world = self.world
        if not world.service.process or kill.moment == "at once":
            return "at once"
        world.keep_busy()
        if kill.moment == "computing":
            return "while runs compute" if world.wait_up_to(lambda: len(world.computing()) > 1, STALLED) else "nothing computes"
        wanted = world.look() + kill.runs
        return f"after {kill.runs} runs" if world.wait_up_to(lambda: world.look() >= wanted, STALLED) else "no progress"


def campaign(kills, seed, folder, say=print, only=None):
    """As many chapters as make so many kills.  Returns the result."""
    total, failures = collections.Counter(), []
    by_kind = collections.Counter()
    started = time.monotonic()
    numbers = range(-(-kills // KILLS)) if only is None else [only]
    for number in numbers:
        place = pathlib.Path(folder) / f"chapter-{number}"
        chapter = Chapter(place, seed, number, min(KILLS, kills - number * KILLS) if only is None else KILLS)
        try:
            found = chapter.run()
        except Failed as failed:
            failures.append(failed.args[0])
            say(failed.args[0])
        else:
            by_kind.update(found.pop("kills"))
            total.update(found)
            shutil.rmtree(place)
        say(f"chapter {number}: {sum(chapter.kills.values())} kills, {time.monotonic() - started:.0f} s, {len(failures)} failed; "
            f"{', '.join(chapter.sequence[-2:])}")
    return {"seed": seed, "chapters": len(numbers), "kills": sum(by_kind.values()), "seconds": round(time.monotonic() - started),
            "slurm": bool(chapter.world.nodes), **total, "by_victim": dict(by_kind.most_common()), "failures": failures}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--chapter", type=int)
    parser.add_argument("--out")
    options = parser.parse_args()
    begun = machine("make outages")  # before the sources change
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # not before its world has ended
    print("seed", options.seed, flush=True)
    folder = tempfile.mkdtemp(prefix="reprod-outages-")
    result = campaign(options.kills, options.seed, folder, lambda text: print(text, flush=True), options.chapter)
    print(json.dumps({**result, "failures": len(result["failures"])}, indent=1))
    if result["failures"]:
        print("kept:", folder)
    else:
        shutil.rmtree(folder)
    if options.out:
        write_result(options.out, {**begun, **result})
    return bool(result["failures"])


if __name__ == "__main__":
    sys.exit(main())
