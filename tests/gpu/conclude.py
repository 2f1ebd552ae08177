"""From what each stage found to one outcome for each variant, and what failed over all.

A record is what is known of one variant: see new_record.  Outcomes, first that applies:
failed, unsupported, not_run, inconclusive, passed.  `passed` needs every comparison.
"""
from judge import claim_against


def new_record(entry, variant):
    return {"workload": entry["workload"], "version": entry["version"],
            "variant": variant["name"], "control": variant["control"],
            "kind": variant.get("kind") or ("race" if variant["control"] else None),
            "no_control": entry["no_control"], "algorithm": variant["algorithm"],
            "claim": variant["claim"], "subject": variant["subject"],
            "subject_name": variant["subject_name"], "outcome": "not_run", "causes": [], "findings": [],
            "notes": [],
            "check": None,      # judge.judge_check, at the small size
            "inputs": None,     # "equal", or the difference from the CPU's
            "bits": None,       # "equal", "not promised", or the difference from the CPU's
            "large_bits": None, # the same at the size of the survey; no part of `passed`
            "survey": None,     # judge.judge_runs, with "size" and "iterations"
            "circumstances": None,  # circumstances.judge_run; no part of `passed`
            "sanitizers": {},   # tool: "passed", or what it found; no part of `passed`
            "timing": None,     # against its control: timing.measure_pair
            "library_timing": None,  # the same of `ordered` against what its library claims to be fixed
            "cases": []}        # further ones of algorithms.py; no part of `passed`


def varied(record):
    return bool(record["survey"]) and len(record["survey"]["digests"]) > 1


# What was promised of a variant, and by whom

def is_fixed(control, subject, claim):
    """Whether a variant is built or claimed to give one digest.  Our own code that is no control
    is built so; of a library's, only its claim counts."""
    return not control and (claim == "deterministic" or (subject == "model" and claim is None))


def promises(record, claim=None):
    """As is_fixed; CLAIM is that of one case, the record's by default."""
    return is_fixed(record["control"], record["subject"], claim or record["claim"])


def counted(case):
    return (f"varied: {len(case['digests'])} digests in {case['completed']} runs "
            f"of {case['iterations']} iterations")


def survey_failures(record):
    failures = list(record["survey"]["failures"])
    if varied(record) and promises(record):
        failures.append(counted(record["survey"]))
    return failures


def case_failures(record):
    """What is wrong in another dtype, or at another size."""
    for case in record["cases"]:
        found = list(case["failures"])
        if case["check"] and case["check"]["outcome"] == "failed":
            found.append(f"check: {case['check']['cause']}")
        if len(case["digests"]) > 1 and promises(record, case["claim"]):
            found.append(counted(case))
        yield from (f"{case['dtype']} at {case['size']}: {what}" for what in found)


def findings_of(record):
    finding = claim_against(record["claim"], varied(record))
    if finding:
        yield finding
    for case in record["cases"]:
        finding = claim_against(case["claim"] or record["claim"], len(case["digests"]) > 1)
        if finding:
            yield f"{case['dtype']} at {case['size']}: {finding}"


# Controls

def exposure(record, controls):
    """The kind of variation that a variant must have been exposed to: what it names, or what all
    controls are, or a race."""
    kinds = {control["kind"] for control in controls}
    return record["kind"] or (kinds.pop() if len(kinds) == 1 else "race")


def unvaried(record):
    """What a control that did not vary shows: nothing, and about no variant."""
    return "the choice did not vary" if record["kind"] == "choice" else "the control did not vary"


def of_control(record, controls):
    if varied(record):
        return "passed", []
    others = any(varied(control) for control in controls)
    return "inconclusive", [unvaried(record) + (", another control did" if others else "")]


def is_right(control):
    """Whether a control that varies shows what it is to show: one that is wrong may vary for another reason."""
    return not failures_of(control) and bool(control["check"]) and control["check"]["outcome"] == "passed"


def of_others(record, controls):
    """(outcome, causes) of a variant that is no control, which did not fail and lacks nothing."""
    if varied(record):
        if record["claim"] == "non-deterministic":
            return "passed", ["varied, as claimed"]
        return "inconclusive", [f"varied, and {record['subject_name'] or 'nobody'} claims nothing of it"]
    if record["no_control"]:
        return "inconclusive", [f"no control: {record['no_control']}"]
    kind = exposure(record, controls)
    vouching = [control for control in controls if control["kind"] == kind]
    if not any(varied(control) for control in vouching):
        if any(not control["survey"] or control["survey"]["not_run"] for control in vouching):
            return "not_run", ["the runs of its control are missing"]
        what = "no control" if len(vouching) == len(controls) else f"no control of kind {kind}"
        return "inconclusive", [f"{what} was seen to vary"]
    if not any(varied(control) and is_right(control) for control in vouching):
        if any(varied(control) and not control["check"] and not failures_of(control) for control in vouching):
            return "not_run", ["the check of its control is missing"]
        return "inconclusive", ["its control varied, and failed itself"]
    if record["claim"] == "non-deterministic":
        return "inconclusive", ["claimed to be non-deterministic, and did not vary"]
    return "passed", []


def unvaried_controls(records):
    """For the report: controls whose runs are complete and equal, one sentence each."""
    return [f"{record['workload']} {record['variant']} ({record['kind']}, "
            f"{record['subject_name'] or record['subject']}): {len(record['survey']['digests'])} "
            f"digest in {record['survey']['completed']} × {record['survey']['iterations']} "
            f"at {record['survey']['size']}"
            for record in records if record["control"] and record["survey"]
            and record["survey"]["completed"] and not varied(record)]


# One outcome

def failures_of(record):
    failures = survey_failures(record) if record["survey"] else []
    if record["check"] and record["check"]["outcome"] == "failed":
        failures.append(f"check: {record['check']['cause']}")
    for name in ("inputs", "bits", "large_bits"):
        if record[name] not in (None, "equal", "not promised", "no twin"):
            failures.append(record[name])
    if record["circumstances"] not in (None, "equal", "no promise"):
        failures.append(record["circumstances"])
    failures += [f"{tool}: {found}" for tool, found in sorted(record["sanitizers"].items())
                 if found != "passed"]
    return failures + list(case_failures(record))


def unsupported_cause(record):
    if record["check"] and record["check"]["outcome"] == "unsupported":
        return record["check"]["cause"]
    return record["survey"] and record["survey"]["unsupported"]


def missing(record):
    left_out = [name for name in ("check", "inputs", "bits", "survey") if record[name] is None]
    partly = record["survey"]["not_run"] if record["survey"] else []
    return [f"{name}: not run" for name in left_out] + [f"survey: {what}" for what in partly]


def conclude_variant(record, controls):
    """CONTROLS are those of its workload."""
    record["findings"] = list(findings_of(record))
    failures = failures_of(record)
    if failures:
        outcome = "failed", failures
    elif unsupported_cause(record):
        outcome = "unsupported", [unsupported_cause(record)]
    elif missing(record):
        outcome = "not_run", missing(record)
    elif record["control"]:
        outcome = of_control(record, controls)
    else:
        outcome = of_others(record, controls)
    record["outcome"], record["causes"] = outcome


def conclude(records):
    """Fills the outcomes of RECORDS."""
    for record in records:
        conclude_variant(record, [other for other in records if other["control"]
                                  and other["workload"] == record["workload"]])


def judged(record, chosen):
    """Whether anything was found of it.  The stages that were CHOSEN may not suffice for an outcome."""
    return record["outcome"] in ("passed", "inconclusive") or bool(chosen and (
        record["check"] and record["check"]["outcome"] == "passed"
        or record["inputs"] == "equal" or record["survey"] and record["survey"]["completed"]))


def failed(report):
    """What exit status 1 is for, one sentence each."""
    sentences = list(report["failures"])
    if not any(judged(record, report["chosen_stages"]) for record in report["variants"]):
        sentences.append("no variant was judged")
    for record in report["variants"]:
        if record["outcome"] == "failed":
            sentences += [f"{record['workload']} {record['variant']}: {cause}"
                          for cause in record["causes"]]
    return sentences
