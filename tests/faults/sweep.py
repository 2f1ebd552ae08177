#!/usr/bin/env python3
"""Every call fails once: the n-th of each kind, for each n, in the service, its agent, a worker and a backup.

A life of the service is: it starts on an empty folder, takes a job, runs it, shows it, is backed up, stops.
Whatever fails in it, the service goes on and says so, or ends with a documented exit code and words.
Then an undisturbed life must find everything that was acknowledged, finish it, and show the same bits.

  sweep.py --each 0 --processes 2 --out result.json      (0: all n)
"""
import argparse
import collections
import errno
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time
import traceback

from places import Symbols
from plan import CALLS
from world import BROKEN, LIMIT, Failed, Gone, World, demand

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "reliability"))
from results import machine, write_result  # noqa: E402

ERRORS = {
    "malloc": ("ENOMEM",), "open": ("EMFILE", "EIO"), "read": ("EIO",), "write": ("ENOSPC", "EIO"), "fsync": ("EIO",),
    "truncate": ("EIO",), "mmap": ("ENOMEM",), "lock": ("ENOLCK",), "rename": ("ENOSPC",), "unlink": ("EIO",),
    "stat": ("EIO",), "spawn": ("EAGAIN", "ENOMEM"), "thread": ("EAGAIN",), "pipe": ("EMFILE",),
    "pidfd": ("EMFILE",), "socket": ("EMFILE",), "accept": ("EMFILE", "ECONNABORTED"), "send": ("EPIPE",),
    "receive": ("EIO",), "event": ("ENOMEM",),
}
PATIENCE = 25  # seconds until a job has to be taken; an agent is started again after one
ALLOCATIONS = 300  # of so many, and not of all n
LASTS = {"open": 6, "write": 6, "fsync": 6, "spawn": 3, "accept": 6}  # how many fail in turn, for what lasts a while
EXIT_CODES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10)  # daemon/process/exit_code.h
PAGES = ("/v1/matrix", "/v1/matrix.txt", "/v1/jobs", "/v1/cells", "/v1/hosts", "/metrics", "/")


def visit(world):
    """Whatever is answered is an answer."""
    for page in PAGES:
        status, _, body = world.ask("GET", page)
        demand(status in (200, 404, 500, 503), page, status, body)


def dropped(world):
    """Whether the service goes on although it dropped a connection, as it may where calls on it fail."""
    return world.service.process.poll() is None


def patiently(world, action):
    """ACTION again while only connections break: what is struck may be a connection."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return action()
        except (Failed, *BROKEN):
            demand(world.faults.struck and dropped(world) and time.monotonic() < end, "no answer", world.log_tail())


def recovers(world, job):
    """What was struck once is over: the job ends, and the service says that it is well."""
    end = time.monotonic() + LIMIT
    while not patiently(world, lambda: world.look(job)):
        demand(time.monotonic() < end, "the job does not end", world.log_tail())
        time.sleep(0.005)
    while patiently(world, lambda: world.ask("GET", "/readyz"))[0] != 200:
        demand(time.monotonic() < end, "it does not recover", world.log_tail())
        time.sleep(0.01)


def live(world, plan):
    """Returns how the life ended: "went on", or "exit CODE"."""
    if not world.start(plan):
        return ending(world)
    try:
        job = patiently(world, lambda: world.post("key", patience=PATIENCE))
        if not job:
            return without_stack(world)
        recovers(world, job)
        patiently(world, lambda: visit(world))
        done = world.backup(plan, "copy.db")
        demand(done.returncode in EXIT_CODES or done.returncode == -6 and "out of memory" in done.stderr, "backup", done)
        demand(done.returncode == 0 or "reprod: " in done.stderr, "backup", done)
    except Gone:
        return ending(world)
    world.service.process.terminate()
    return ending(world)


def without_stack(world):
    """A worker that did not say what it is cannot be used until it does; that is said."""
    status, _, body = world.ask("GET", "/readyz")
    demand(status == 503 and "is not usable, and is asked again" in body["detail"] and
           "is not usable: " in world.service.log.read_text(), "no job was taken", body, world.log_tail())
    world.service.process.terminate()
    end = ending(world)
    demand(end == "went on", end)
    return "went on without the stack, and said so"


def ending(world):
    if world.service.process:
        world.ended()
    code, said = world.exit, world.log_tail()
    if code == -6:
        demand("out of memory" in said, "it aborted without a word", said)
        return "out of memory"
    demand(code in EXIT_CODES, "it crashed", code, said)
    demand(code == 0 or re.search(r"^reprod: \S", said, re.M), "an exit without a word", code, said)
    return "went on" if code == 0 else f"exit {code}"


def strike(arguments):
    """One fault.  (what, how it ended, frames, failure)"""
    (role, call, first, times, error), folder, digests = arguments
    name = f"{role} {call} {first}+{times} {error}"
    world = World(f"{folder}/{name.replace(' ', '-')}")
    frames, end, failure = [], "", None
    try:
        end = live(world, world.faults.plan(role, call, first, times, getattr(errno, error)))
        strikes = world.faults.strikes()
        frames = strikes[0][4] if strikes else []
        end = end if strikes else "not struck"
        world.struck_outside = 100 * (role != "serve")
        world.check(digests)
    except BaseException as failed:  # noqa: B902 -- the others go on
        strikes = world.faults.strikes()
        frames = strikes[0][4] if strikes else []
        failure = repr(failed)[:3000] if isinstance(failed, Failed) else traceback.format_exc()[-3000:]
        world.kill()
    else:
        shutil.rmtree(world.service.folder)
    return name, end, frames, failure


def calibrate(folder):
    """{role: {call: how many}} of an undisturbed life, and the digests of what is reproducible."""
    world = World(f"{folder}/undisturbed")
    plan = world.faults.plan("worker", "any", 0, 0)
    demand(world.start(plan), "no start")
    job = world.post("key")
    while not world.look(job):
        time.sleep(0.01)
    visit(world)
    digests = {variant: digest for variant, [(digest, verdict)] in world.cells().items() if verdict == "reproducible"}
    demand(world.backup(plan, "copy.db").returncode == 0 and digests, "not as it should be", digests)
    demand(world.stop() == 0, "stop")
    return world.faults.counts(), digests


def plans(counts, rng, each, only=()):
    """Every fault, or EACH of each kind."""
    found = []
    for role, calls in counts.items():
        for call in CALLS[:-1]:
            if only and call not in only and role not in only:
                continue
            last = calls[call]
            wanted = each or (ALLOCATIONS if call == "malloc" else last)
            for error in ERRORS[call] if last else ():
                for times in (1, LASTS[call]) if call in LASTS else (1,):
                    some = range(1, last + 1) if wanted >= last else sorted(rng.sample(range(1, last + 1), wanted))
                    found += [(role, call, n, times, error) for n in some]
    return found


def sweep(each, seed, processes, folder, only=(), say=print):
    counts, digests = calibrate(folder)
    todo = plans(counts, random.Random(seed), each, only)
    ends, failures, places = collections.defaultdict(collections.Counter), [], collections.Counter()
    symbols, started = Symbols(), time.monotonic()
    with multiprocessing.Pool(processes) as pool:
        work = ((plan, folder, digests) for plan in todo)
        for done, (name, end, frames, failure) in enumerate(pool.imap_unordered(strike, work), 1):
            role, call, *_ = name.split(" ")
            functions = symbols.functions(frames)
            places.update([functions[0] if functions else f"{role}: outside of its sources"])
            ends[f"{role} {call}"].update(["failed" if failure else end])
            if failure:
                failures.append({"fault": name, "at": functions[:6], "failure": failure})
                say(f"{name} at {' < '.join(functions[:6])}: {failure}")
            if done % 200 == 0:
                say(f"{done} of {len(todo)}, {time.monotonic() - started:.0f} s, {len(failures)} failed")
    return {"seed": seed, "each": each or "all", "faults": len(todo), "seconds": round(time.monotonic() - started),
            "calls": {key: dict(sorted(value.items())) for key, value in sorted(ends.items())},
            "functions": len(places), "failures": failures}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--processes", type=int, default=2 * os.cpu_count())
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--out")
    options = parser.parse_args()
    begun = machine("make faults")  # before the sources change
    print("seed", options.seed, flush=True)
    folder = tempfile.mkdtemp(prefix="reprod-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    result = sweep(options.each, options.seed, options.processes, folder, options.only,
                   lambda text: print(text, flush=True))
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
