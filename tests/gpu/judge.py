"""What runs showed: pure functions from what workers said to outcomes.

The rules are those of workloads/PROTOCOL.md.  Nothing here becomes `passed` by being absent:
a run that cannot be read is `invalid`, a comparison that was not made leaves its variant
`not_run`.
"""
import re
import signal

DIGEST, BITS = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
ENDS = ("completed", "unsupported", "out_of_memory", "infra")
START = {"v": int, "workload": str, "version": int, "variant": str, "size": str, "dtype": str,
         "seed": str, "iterations": int, "device": str, "algorithm": str, "input_digest": str,
         "environment": dict, "libraries": list}
ITERATION = {"i": int, "digest": str, "weight_sum": str, "ms": (int, float), "algorithm": str}
END = {"outcome": str, "iterations": int, "elements": int, "bytes_hashed": int, "device": str,
       "input_digest": str}


class Deviation(Exception):
    """The events are not those of a run that did its work."""


def need(condition, sentence):
    if not condition:
        raise Deviation(sentence)


def fields(event, wanted):
    for name, kind in wanted.items():
        value = event.get(name)
        need(isinstance(value, kind) and not isinstance(value, bool),
             f"{event['event']}: {name} is missing or of the wrong type")


def beyond_numbers(bits):
    """"NaN" or "infinite"; "" for a finite number."""
    magnitude = int(bits, 16) & 0x7fffffffffffffff
    if magnitude < 0x7ff0000000000000:
        return ""
    return "infinite" if magnitude == 0x7ff0000000000000 else "NaN"


def check_number(event, name):
    bits = event[name]
    need(isinstance(bits, str) and BITS.fullmatch(bits), f"{name} is not 16 hex digits")
    need(not beyond_numbers(bits), f"{name} is {beyond_numbers(bits)}")


def check_iteration(event, index):
    fields(event, ITERATION)
    need(event["i"] == index, f"iteration {event['i']} came where {index} was due")
    need(DIGEST.fullmatch(event["digest"]), "digest is not 32 hex digits")
    check_number(event, "weight_sum")
    need("loss" in event, "iteration: loss is missing")
    if event["loss"] is not None:
        check_number(event, "loss")


def check_events(run):
    """(start, iterations, end), by the rules that hold for any outcome."""
    need(run.garbage is None, run.garbage)
    known = [event for event in run.events if event["event"] in ("start", "iteration", "end")]
    need(known and known[0]["event"] == "start", "the first event is not start")
    need(len(known) > 1 and known[-1]["event"] == "end", "the last event is not end")
    start, *iterations, end = known
    fields(start, START)
    need(start["v"] == 1, f"version {start['v']} of the protocol")
    for name in ("workload", "variant", "size", "iterations", "dtype"):
        need(run.asked.get(name) in (None, start[name]),
             f"{name} is {start[name]!r}, {run.asked.get(name)!r} was asked for")
    for index, event in enumerate(iterations):
        need(event["event"] == "iteration", f"a second {event['event']} event")
        check_iteration(event, index)
    fields(end, END)
    need(end["outcome"] in ENDS, f"{end['outcome']!r} is no outcome that a worker can claim")
    need(DIGEST.fullmatch(start["input_digest"]), "input_digest is not 32 hex digits")
    return start, iterations, end


def check_work(run, start, iterations, end):
    """Proof of work, and of the device."""
    need(len(iterations) == run.asked["iterations"] > 0,
         f"{len(iterations)} of {run.asked['iterations']} iterations")
    need(end["iterations"] == len(iterations),
         f"end counts {end['iterations']} iterations, {len(iterations)} were seen")
    need(end["elements"] > 0 and end["bytes_hashed"] > 0,
         f"no proof of work: {end['elements']} elements, {end['bytes_hashed']} bytes hashed")
    wanted = run.asked.get("device") or start["device"]
    for event in (start, end):
        need(event["device"] == wanted, f"device is {event['device']!r}, {wanted!r} was asked for")
    need(start["input_digest"] == end["input_digest"], "the inputs changed during the run")


def outcome(run):
    """(outcome, cause) of one run; the cause is None for `completed`."""
    if run.timed_out:
        seen = len(run.of_kind("iteration"))
        return "timeout", f"killed at its deadline after {seen} of {run.asked['iterations']} iterations"
    if run.signal:
        return "crashed", f"killed by {signal.Signals(run.signal).name}; {last_line(run.log)}"
    if run.garbage is None and not run.of_kind("end"):
        return "crashed", f"exit status {run.exit_code} without an end event; {last_line(run.log)}"
    try:
        start, iterations, end = check_events(run)
        if end["outcome"] == "completed":
            check_work(run, start, iterations, end)
    except Deviation as deviation:
        return "invalid", str(deviation)
    if run.exit_code != 0:
        return "invalid", f"exit status {run.exit_code} after the end event"
    return end["outcome"], end.get("cause") if end["outcome"] != "completed" else None


def last_line(log):
    lines = log.strip().splitlines()
    return lines[-1][:300] if lines else "it printed nothing"


def digests(runs):
    return sorted({event["digest"] for run in runs for event in run.of_kind("iteration")})


def claim_of(runs):
    """What all of them claim; "non-deterministic" if one does, since a choice may be another one in
    each process."""
    claims = {run.of_kind("start")[0].get("claim") for run in runs}
    if "non-deterministic" in claims:
        return "non-deterministic"
    return claims.pop() if len(claims) == 1 else None


def judge_runs(runs, wanted):
    """What the runs of one variant at one size show by themselves; WANTED of them are due."""
    runs = [run for run in runs if not run.cut]
    outcomes = [outcome(run) for run in runs]
    completed = [run for run, (name, _) in zip(runs, outcomes) if name == "completed"]
    found = {"runs": len(runs), "completed": len(completed), "failures": [], "not_run": [],
             "unsupported": None, "digests": digests(completed),
             "claim": claim_of(completed), "algorithms": sorted(
                 {event["algorithm"] for run in completed for event in run.of_kind("iteration")}),
             "input_digests": sorted({start["input_digest"] for run in completed
                                      for start in run.of_kind("start")}),
             "environments": sorted({environment_key(run) for run in completed})}
    causes = sorted({(name, cause) for name, cause in outcomes if name != "completed"}, key=str)
    if causes and {name for name, _ in causes} == {"unsupported"} and not completed:
        found["unsupported"] = causes[0][1]
        return found
    found["failures"] += [f"{name}: {cause}" for name, cause in causes]
    if len(found["input_digests"]) > 1:
        found["failures"].append("the runs had different inputs")
    if len(found["environments"]) > 1:
        found["failures"].append("the runs had different environments")
    if len(runs) < wanted and not causes:
        found["not_run"].append(f"{len(runs)} of {wanted} runs")
    return found


def environment_key(run):
    facts = run.of_kind("start")[0]["environment"]
    return ", ".join(f"{name}={facts[name]}" for name in sorted(facts))


def claim_against(claim, varied):
    """A finding, or None."""
    if claim == "deterministic" and varied:
        return "claims deterministic, seen to vary"
    return None


def judge_check(answer):
    """What --check showed: {"outcome": passed, failed, unsupported, "cause", …}."""
    said = answer.json()
    if answer.exit_code == 5 and said.get("outcome") == "unsupported":
        return {"outcome": "unsupported", "cause": said.get("cause")}
    if answer.exit_code is None:
        return {"outcome": "failed", "cause": "timeout"}
    outputs = said.get("outputs") or []
    good = (answer.exit_code == 0 and said.get("ok") is True and outputs
            and all(part.get("ok") is True and part.get("instruments_ok") is True
                    and part.get("elements", 0) > 0 for part in outputs))
    if good:
        return {"outcome": "passed", "cause": None,
                "max_error_to_bound": max(part["max_error_to_bound"] for part in outputs)}
    return {"outcome": "failed", "cause": check_cause(answer, said, outputs)}


def check_cause(answer, said, outputs):
    for part in outputs:
        if part.get("ok") is not True:
            return (f"{part.get('name')}: {part.get('failed')} of {part.get('elements')} elements "
                    f"out of bound, the worst {part.get('max_error_to_bound')} times it")
        if part.get("instruments_ok") is not True:
            return (f"{part.get('name')}: digest {part.get('digest')} and sum {part.get('weight_sum')} "
                    f"on the device, {part.get('digest_of_copy')} and {part.get('weight_sum_of_copy')} "
                    "of the copy")
    return said.get("cause") or f"exit status {answer.exit_code}; {last_line(answer.errors)}"
