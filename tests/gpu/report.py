"""The report of a check: one object for programs, the same as Markdown for people."""
import datetime
import json
import pathlib
import re

import algorithms
from conclude import failed, unvaried_controls

OUTCOMES = ("passed", "failed", "inconclusive", "unsupported", "not_run")
REHEARSAL = "REHEARSAL on a simulator: proves nothing about a GPU. "


def build(session, probe):
    """Everything that is known at the end."""
    device = next((found for found in probe.get("devices", [])
                   if found["id"] == session.device), {})
    versions = probe.get("versions", {})
    report = {
        "v": 1, "rehearsal": session.rehearsal, "date": now(),
        "seconds": round(session.seconds - session.left(), 1), "deadline_seconds": session.seconds,
        "gpu": device.get("model", "unknown"), "device": session.device,
        "driver": versions.get("driver", "unknown"),
        "worker_build": probe.get("worker_build", "unknown"), "versions": versions,
        "attributes": shown(device.get("attributes", {})), "problems": probe.get("problems", {}),
        "stages": session.stages, "chosen_stages": session.chosen,
        "continues": session.continues, "timings": session.timings,
        "variants": list(session.records.values()),
        "failures": session.failures, "not_run": session.not_run}
    sum_up(report)
    return report


def sum_up(report):
    """What follows from its variants."""
    report["findings"] = [f"{record['workload']} {record['variant']}: {finding}"
                          for record in report["variants"] for finding in record["findings"]]
    report["failed"] = failed(report)
    report["unvaried_controls"] = unvaried_controls(report["variants"])
    report["counts"] = {outcome: sum(record["outcome"] == outcome for record in report["variants"])
                        for outcome in OUTCOMES}


def shown(attributes):
    """What identifies a machine's owner is not committed."""
    return {name: value for name, value in attributes.items() if "serial" not in name}


def now():
    moment = datetime.datetime.now(datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


# Markdown

def head(report):
    versions = report["versions"]
    lines = [
        f"# {report['gpu']}, {report['date'][:10]}",
        f"{verdict(report)}",
        f"Date {report['date']}; took {report['seconds']} s of {report['deadline_seconds']} s.",
        *[f"Goes on with the check of {one['date']} ({one['device']}), which took {one['seconds']} s."
          for one in report["continues"]],
        *[f"Judged again {one['date']}, by the catalogue of worker build {one['worker_build']}: nothing was measured."
          for one in report.get("judged_again", [])],
        f"GPU {report['gpu']} ({report['device']}), driver {report['driver']}.",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + ".",
        f"Worker build {report['worker_build']}.",
    ]
    if report["rehearsal"]:
        lines = [f"# {REHEARSAL}{lines[0][2:]}"] + [REHEARSAL + line for line in lines[1:]]
    return "\n\n".join(lines)


def verdict(report):
    counts = ", ".join(f"{count} {outcome.replace('_', ' ')}"
                       for outcome, count in report["counts"].items() if count)
    if report["failed"]:
        return f"**{len(report['failed'])} failures.** Variants: {counts or 'none'}."
    return f"Nothing failed. Variants: {counts or 'none'}."


def bullets(title, sentences):
    if not sentences:
        return ""
    return f"## {title}\n\n" + "\n".join(f"- {sentence}" for sentence in sentences)


def table(title, header, rows):
    if not rows:
        return ""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return f"## {title}\n\n" + "\n".join(lines)


def dash(value):
    return "–" if value in (None, "", []) else value


def subject_of(record):
    """Whose computation it was: "model", or the library's name."""
    return record["subject_name"] or record["subject"]


def row_of(record):
    survey, check = record["survey"] or {}, record["check"] or {}
    seen = f"{len(survey['digests'])} in {survey['completed']} × {survey['iterations']}" if survey else None
    worst = check.get("max_error_to_bound")
    return (record["workload"], record["variant"] + (" (control)" if record["control"] else ""),
            subject_of(record), record["outcome"].replace("_", " "), dash(survey.get("size")), dash(seen),
            f"{worst:.3g}" if worst is not None else dash(check.get("outcome")),
            dash(short(record["inputs"])),
            dash(short(record["bits"])), dash(short(record["large_bits"])),
            dash(short(record["circumstances"])),
            dash(record["claim"]), dash(", ".join(f"{tool} {'passed' if found == 'passed' else 'FAILED'}"
                                                  for tool, found in sorted(record["sanitizers"].items()))))


def short(bits):
    return bits if bits in (None, "equal", "not promised", "no promise", "no twin") else "DIFFERENT"


VARIANTS = ("workload", "variant", "subject", "outcome", "size", "digests in runs × iterations",
            "error ÷ bound", "inputs", "bits of the CPU", "at that size", "under load and poison", "claim", "sanitizer")


def range_of(spread, unit="", digits=3):
    if not spread:
        return "–"
    return (f"{spread['median']:.{digits}g}{unit} "
            f"({spread['least']:.{digits}g} to {spread['most']:.{digits}g})")


def timing_rows(report):
    found = [(record, record.get(name)) for name in ("timing", "library_timing")
             for record in report["variants"]]
    return [(record["workload"], f"{record['variant']} ÷ {timing['baseline']}", timing["size"],
             range_of(timing["ratio"]), range_of(timing["ms"]), range_of(timing["baseline_ms"]))
            for record, timing in found if timing]


def overall(timings):
    lines = []
    band = timings.get("bandwidth_gb_per_s")
    if band:
        lines += [f"{name.replace('_', ' ')} {range_of(band[name], ' GB/s', 4)}"
                  for name in ("digest", "exact_sum", "copy")]
        lines.append(f"digest ÷ copy {band['digest_to_copy']:.3g}, exact sum ÷ copy "
                     f"{band['exact_sum_to_copy']:.3g}, over {band['bytes']:.0f} bytes "
                     "(a copy counts the bytes read and those written)")
    for name, title in (("process_start_to_first_iteration_ms", "process start to first iteration"),
                        ("gap_between_runs_ms", "last result of a run to first of the next")):
        if timings.get(name):
            lines.append(f"{title} {range_of(timings[name], ' ms')}, {timings[name]['count']} times")
    return lines


def markdown(report):
    notes = [f"{record['workload']} {record['variant']}: {text}" for record in report["variants"]
             for text in record["notes"] + (record["causes"] if record["outcome"] != "failed" else [])]
    parts = [
        head(report),
        bullets("Failures", report["failed"]),
        bullets("Findings", report["findings"]),
        bullets("Controls that did not vary", report["unvaried_controls"]),
        bullets("Not run", [f"{item['what']} ({item['why']})" for item in report["not_run"]]),
        table("Variants", VARIANTS, [row_of(record) for record in report["variants"]]),
        table("Algorithms of cuDNN's convolutions", algorithms.HEADER,
              algorithms.rows(report["variants"])),
        bullets("Notes", notes + [f"{name}: {why}" for name, why in sorted(report["problems"].items())]),
        table("Time", ("workload", "variants", "size", "ratio", "ms", "ms of the other"),
              timing_rows(report)),
        bullets("Speed of the instruments and of processes", overall(report["timings"])),
        table("Stages", ("stage", "seconds"),
              [(stage["name"], stage["seconds"]) for stage in report["stages"]]),
        "Medians, with least and most in parentheses. A variant has passed when all its fresh "
        "processes gave one digest while a control varied (a control, or what is claimed to be "
        "non-deterministic: when it varied), its elements are within the bound of the float64 "
        "reference, and inputs and promised bits are the CPU's. A control that did not vary shows "
        "nothing about its workload: it is no failure, and vouches for no variant."]
    return "\n\n".join(part for part in parts if part) + "\n"


# Files

def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unknown"


def write(report, folder):
    """Both files; an older report of the same day stays.  Returns their paths."""
    folder = made(folder)
    name = f"{report['date'][:10]}-{slug(report['gpu'])}"
    number = next(n for n in range(1, 1000) if not (folder / f"{numbered(name, n)}.json").exists())
    paths = []
    for suffix, text in texts(report):
        path = folder / f"{numbered(name, number)}.{suffix}"
        path.write_text(text)
        paths.append(path)
    return paths


def texts(report):
    """One after the other: a defect of the second does not cost the first."""
    yield "json", json.dumps(report, indent=1) + "\n"
    yield "md", markdown(report)


def unfinished(folder):
    """The files of a check that has not ended, under names that no program takes for a report's."""
    return [pathlib.Path(folder) / f"unfinished.{suffix}.part" for suffix in ("json", "md")]


def write_unfinished(report, folder):
    made(folder)
    for path, (_, text) in zip(unfinished(folder), texts(report)):
        path.write_text(text)


def remove_unfinished(folder):
    for path in unfinished(folder):
        if path.exists():
            path.unlink()


def made(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def numbered(name, number):
    return name if number == 1 else f"{name}-{number}"
