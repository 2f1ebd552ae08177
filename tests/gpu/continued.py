"""A check that goes on with the report of an earlier one: what that one found is not measured again."""
import json
import pathlib

FOUND = ("claim", "notes", "check", "inputs", "bits", "large_bits", "survey", "circumstances", "sanitizers",
         "timing", "library_timing", "cases")
SAME = ("rehearsal", "gpu", "driver", "worker_build", "versions")  # or its runs are of another environment


class Other(Exception):
    """The report is none that this check can go on with, and why."""


def read(path):
    try:
        report = json.loads(pathlib.Path(path).read_text())
        if report["v"] != 1 or not isinstance(report["variants"], list):
            raise ValueError("no report of this version")
        return report
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Other(f"{path}: {error}") from None


def kept(record):
    """What RECORD found, without what was cut."""
    found = {name: record.get(name) for name in FOUND}
    if found["survey"] and found["survey"]["not_run"]:
        found["survey"] = found["large_bits"] = found["circumstances"] = None
        found["timing"] = found["library_timing"] = None
    for name in "timing", "library_timing":
        if found[name] and not found[name]["ratio"]:
            found[name] = None
    found["cases"] = [case for case in record["cases"] if not case["not_run"]]
    return found


def go_on(path, session, about):
    """Fills the records of SESSION.  ABOUT is a report of this check, so far empty."""
    earlier = read(path)
    for name in SAME:
        if earlier.get(name) != about[name]:
            raise Other(f"{path}: {name} is {earlier.get(name)}, and here it is {about[name]}")
    for record in earlier["variants"]:
        own = session.records.get((record["workload"], record["variant"]))
        if own and (own["version"], own["algorithm"]) == (record["version"], record["algorithm"]):
            own.update(kept(record))
    session.failures += earlier["failures"]
    session.timings.update(earlier["timings"])
    session.continues = [*earlier.get("continues", []),
                         {name: earlier[name] for name in ("date", "device", "seconds")}]
