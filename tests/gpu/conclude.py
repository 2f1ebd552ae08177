"""From what each stage found to one outcome for each variant, and what failed over all.

A record is what is known of one variant: see new_record.  Outcomes, first that applies:
failed, unsupported, not_run, inconclusive, passed.  `passed` needs every comparison.
"""
from judge import claim_against


def new_record(entry, variant):
    return {"workload": entry["workload"], "version": entry["version"],
            "variant": variant["name"], "control": variant["control"],
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
            "timing": None,
            "cases": []}        # further ones of algorithms.py; no part of `passed`


def varied(record):
    return bool(record["survey"]) and len(record["survey"]["digests"]) > 1


def survey_failures(record, control_varied):
    survey = record["survey"]
    failures = list(survey["failures"])
    if record["control"] and not control_varied and not survey["not_run"] and survey["completed"]:
        failures.append("the control did not vary")
    if not record["control"] and varied(record):
        failures.append(f"varied: {len(survey['digests'])} digests in {survey['completed']} runs "
                        f"of {survey['iterations']} iterations")
    return failures


def case_failures(record):
    """What is wrong in another dtype, or at another size."""
    for case in record["cases"]:
        found = list(case["failures"])
        if case["check"] and case["check"]["outcome"] == "failed":
            found.append(f"check: {case['check']['cause']}")
        if not record["control"] and len(case["digests"]) > 1:
            found.append(f"varied: {len(case['digests'])} digests in {case['completed']} runs "
                         f"of {case['iterations']} iterations")
        yield from (f"{case['dtype']} at {case['size']}: {what}" for what in found)


def findings_of(record):
    finding = claim_against(record["claim"], varied(record))
    if finding:
        yield finding
    for case in record["cases"]:
        finding = claim_against(case["claim"] or record["claim"], len(case["digests"]) > 1)
        if finding:
            yield f"{case['dtype']} at {case['size']}: {finding}"


def unfulfilled(record):
    """Why a variant that has to vary is not in order, or None."""
    if varied(record):
        return None
    if record["control"]:
        return "did not vary, another control did"
    if record["claim"] == "non-deterministic":
        return "claimed to be non-deterministic, and did not vary"
    return None


def failures_of(record, control_varied):
    failures = survey_failures(record, control_varied) if record["survey"] else []
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


def conclude_variant(record, control_varied, control_missing):
    record["findings"] = list(findings_of(record))
    failures = failures_of(record, control_varied)
    if failures:
        record["outcome"], record["causes"] = "failed", failures
    elif unsupported_cause(record):
        record["outcome"], record["causes"] = "unsupported", [unsupported_cause(record)]
    elif missing(record):
        record["outcome"], record["causes"] = "not_run", missing(record)
    elif not control_varied and control_missing:
        record["outcome"], record["causes"] = "not_run", ["the runs of its control are missing"]
    elif record["no_control"]:
        record["outcome"], record["causes"] = "inconclusive", [f"no control: {record['no_control']}"]
    elif not control_varied:
        record["outcome"], record["causes"] = "inconclusive", ["no control was seen to vary"]
    elif unfulfilled(record):
        record["outcome"], record["causes"] = "inconclusive", [unfulfilled(record)]
    else:
        record["outcome"], record["causes"] = "passed", []


def conclude(records):
    """Fills the outcomes of RECORDS."""
    for record in records:
        controls = [other for other in records
                    if other["workload"] == record["workload"] and other["control"]]
        conclude_variant(record, any(varied(control) for control in controls),
                         any(not control["survey"] or control["survey"]["not_run"]
                             for control in controls))


def failed(report):
    """What exit status 1 is for, one sentence each."""
    sentences = list(report["failures"])
    if not any(record["outcome"] == "passed" for record in report["variants"]):
        sentences.append("no variant passed")
    for record in report["variants"]:
        if record["outcome"] == "failed":
            sentences += [f"{record['workload']} {record['variant']}: {cause}"
                          for cause in record["causes"]]
    return sentences
