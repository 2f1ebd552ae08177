"""Load next to a run, poisoned memory and moved allocations, all at once: what is fixed stays as
it is.  One run of each variant at the size of its survey.
"""
import re

import judge
from conclude import promises

ITERATIONS = 2
ASKED = {"contention": 1, "memory-poison": "random", "allocation-jitter": "random"}
# These say that the machine is too small or too slow for two at a time, or that a library does not
# take memory that lies elsewhere, and nothing worse.
NO_ANSWER = ("out_of_memory", "timeout", "infra", "unsupported")
# What a kernel does that reads what it must not: whoever finds no such thing without poison finds it so.
OWN_FAULTS = re.compile(r"\(cudaError(IllegalAddress|MisalignedAddress|InvalidAddressSpace|InvalidPc|IllegalInstruction"
                        r"|HardwareStackError|LaunchFailure|Assert),")


def said_as_asked(run):
    """None, or how what the run said of its circumstances differs from what was asked for."""
    said = run.of_kind("start")[0].get("circumstances") or {}
    wanted = {name.replace("-", "_") for name in ASKED}
    if set(said) != wanted or said["contention"] != ASKED["contention"]:
        return f"the run says {said or 'no circumstances'}, {ASKED} was asked for"
    return None


def judge_run(record, run):
    """"equal", "no promise" of a control and of what nobody claims to be deterministic, None where
    there is no answer, or what is wrong."""
    name, cause = judge.outcome(run)
    own = name == "infra" and OWN_FAULTS.search(cause or "")
    if run.cut or name in NO_ANSWER and not own:
        return None
    if name != "completed":
        return f"under load, poison and jitter, {name}: {cause}"
    if said_as_asked(run):
        return said_as_asked(run)
    if not promises(record):
        return "no promise"
    seen, wanted = judge.digests([run]), record["survey"]["digests"]
    if len(wanted) == 1 and seen != wanted:
        return (f"under load, poison and jitter, digests {', '.join(seen)}, {wanted[0]} without "
                f"(pattern {said(run, 'memory_poison')}, seed {said(run, 'allocation_jitter')})")
    return "equal" if seen == wanted else "no promise"


def said(run, name):
    return run.of_kind("start")[0]["circumstances"][name]


def perturb(session, records, until):
    def measure(record):
        run = session.run(record, record["survey"]["size"], ITERATIONS, circumstances=ASKED)
        record["circumstances"] = judge_run(record, run)
        if record["circumstances"] is None:
            without.append((record, judge.outcome(run)))

    without = []
    due = [record for record in records if record["survey"] and record["survey"]["completed"]
           and not record["circumstances"]]
    late = session.each(measure, sorted(due, key=lambda record: record["control"]), until)
    late += [record for record, _ in without]
    if late:
        names = ", ".join(f"{record['workload']} {record['variant']}" for record in late)
        causes = sorted({f"{name}: {cause}" for _, (name, cause) in without})
        session.skip(f"load, poison and jitter: {names}", "; ".join(["deadline"] * (
            len(late) > len(without)) + causes))
