#!/usr/bin/env python3
"""Writes GPU.md: row by row what a GPU was seen to do, from committed reports of check.py.

  tests/gpu/make_gpu_md.py > GPU.md                     from all of tests/gpu/results/
  tests/gpu/make_gpu_md.py results/X.json > GPU.md      from these
  tests/gpu/make_gpu_md.py --campaign summary.json …    with what a campaign measured too

The explanations are in tests/gpu/explanations.md, a section for each workload.  They are copied as
they are: a new report changes figures, never sentences.
"""
import argparse
import difflib
import json
import math
import pathlib
import sys

import algorithms
import machine
import report as reports
import saved
from documented import WORDS, codes_text, expectation, read_tables, rows

HERE = machine.ROOT / "tests" / "gpu"
NOBODY, UNSEEN = "Nobody has written one yet.", "None before something was seen."
CONFIDENCE = 0.95


class Refused(Exception):
    pass


# What was seen

def newest(found):
    """{(workload, variant): (record, report)}: of each variant the newest that judged it."""
    records = {}
    for report in sorted(found, key=lambda one: one["date"]):
        for record in report["variants"]:
            key = (record["workload"], record["variant"])
            if record["outcome"] != "not_run" or key not in records:
                records[key] = (record, report)
    return records


def bound(runs):
    """Above what probability that a run differs from the first, RUNS equal ones would have been too lucky.

    They are RUNS - 1 comparisons with the first (daemon/evidence/verdict.h): one run bounds nothing.
    """
    return 1 - (1 - CONFIDENCE) ** (1 / (runs - 1)) if runs > 1 else 1


def observed(record):
    survey = record["survey"]
    if not survey or not survey["completed"]:
        return "–"
    runs, digests = survey["completed"], len(survey["digests"])
    seen = f"{digests} digest{'s' * (digests != 1)} in {runs} runs of {survey['iterations']}"
    if digests > 1 or runs < 2:
        return seen
    return f"{seen}: a run differs with less than {math.ceil(bound(runs) * 100 - 1e-9)} %"


def as_expected(goods, record):
    """Whether it did what the documents say; "–" where that cannot be told."""
    survey = record["survey"]
    if not goods or len(goods) > 1 or not survey or not survey["completed"] \
            or record["outcome"] not in ("passed", "failed", "inconclusive"):
        return "–"
    varied = len(survey["digests"]) > 1
    if not varied and not record["control"] and record["outcome"] != "passed":
        return "–"
    return "yes" if varied == (goods == {False}) else "NO"


def variant_row(expected, record):
    goods = expected.get(record["subject"], {}).get(record["variant"])
    survey, check, timing = record["survey"] or {}, record["check"] or {}, record["timing"] or {}
    worst = check.get("max_error_to_bound")
    return (record["variant"] + (" (control)" if record["control"] else ""),
            reports.subject_of(record), expectation(goods), record["outcome"].replace("_", " "),
            observed(record), as_expected(goods, record),
            reports.dash(survey.get("size")),
            f"{worst:.3g}" if worst is not None else "–",
            reports.dash(reports.short(record["bits"])), reports.dash(reports.short(record["circumstances"])),
            reports.ratio_of(timing), ", ".join(survey.get("algorithms") or [record["algorithm"]]))


HEADER = ("variant", "subject", "documents", "outcome", "observed", "as documented", "size", "error ÷ bound",
          "bits of the CPU", "under load, poison, jitter", "time ÷ control", "algorithm")
def notes_of(records):
    return [f"{record['variant']}: {text}" for record in records
            for text in dict.fromkeys(record["causes"] + record["findings"] + record["notes"])] + [
        f"{record['variant']}: {reports.range_of(timing['ratio'])} times as long as the library's {timing['baseline']}"
        for record in records if (timing := record.get("library_timing")) and timing["ratio"]]


def section(title, name, row, records, explanation):
    expected = row["expected"] if row else {}
    parts = [f"### {title} (`{name}`)" if title != name else f"### `{name}`"]
    parts += [codes_text(row["codes"])] if row else []
    if records:
        parts.append(plain_table(HEADER, [variant_row(expected, record) for record in records]))
        parts += ["\n".join(f"- {note}" for note in notes_of(records))]
    else:
        parts.append("Observed: nothing yet. Expected: " + "; ".join(
            f"of the {subject}: " + ", ".join(f"`{variant}` {WORDS[expectation(goods)]}"
                                             for variant, goods in variants.items())
            for subject, variants in expected.items()) + ".")
    parts.append("**Explanation.** " + (explanation or (NOBODY if records else UNSEEN)))
    return "\n\n".join(part for part in parts if part)


def plain_table(header, lines):
    return reports.table("x", header, lines).partition("\n\n")[2]


# Explanations

def read_explanations(text, known):
    """{workload: text}; a heading that names no workload is a mistake."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("## "):
            name = line[3:].strip().strip("`")
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise Refused(f"explanations: there is no workload '{name}'"
                              + (f"; did you mean '{near[0]}'?" if near else ""))
            if name in found:
                raise Refused(f"explanations: '{name}' is explained twice")
            found[name] = []
        elif name:
            found[name].append(line)
    return {name: "\n".join(lines).strip() for name, lines in found.items()}


# The page

def head(found):
    if not found:
        return ("# GPU\n\n**No GPU has been seen yet.** Nothing on this page was verified on one:\n"
                "it says what the documents lead us to expect, row by row, and how it will be tested. The\n"
                "kernels are tested on a simulator, which has no memory model, no speed and none of NVIDIA's\n"
                "libraries.")
    lines = [f"- {report['gpu']}, driver {report['driver']}, " + ", ".join(
        f"{name} {version}" for name, version in sorted(report["versions"].items()) if name != "driver")
        + f": {report['date'][:10]}, worker {report['worker_build'][:8]}; {reports.verdict(report)}"
        for report in sorted(found, key=lambda one: one["date"], reverse=True)]
    return "# GPU\n\nWhat was seen, from the reports in `tests/gpu/results/`:\n\n" + "\n".join(lines)


HOW = """## How it is tested

`make gpu-check` runs each variant in five fresh processes of five iterations, at the largest size that
fits; `tests/gpu/README.md` explains it. That a variant

- **varies** is shown by several digests. If there is one, nothing is shown: larger sizes, other shapes
  and load on the GPU are tried, and what was tried is written here;
- **is reproducible** is shown by one digest in all of them, while the control of its workload varies;
  further by its elements, all within the bound of a float64 reference, by the digests and sums of copies,
  by the inputs (and, where the algorithm promises it, the bits) of the CPU, and by the same digest under
  load, with poisoned memory and moved allocations.

The load is in the run's own process: kernels in streams of their own, on some of the multiprocessors. The report of
worker e64d7944 was made with another process instead, which a GPU serves in turns, so that it hardly disturbs:
its "equal" says little of load.

One digest in five runs still allows that a run differs with a probability of up to 53 % (95 % sure).
More runs lower that bound, and every cell of the service says its own.

Each variant has a subject: `model` is our own kernel, which stands for the source or its cure; a
library's name says that the library itself computed. A row of cuDNN is earned by cuDNN's variants only.

Whether GPUs of one model and stack give the same bits, and whether an upgrade changes them, is what the service
compares (`/v1/matrix?view=devices`, `/v1/findings`, `/v1/drift`; README.md shows both). It was tested with
thousands of devices that do not exist and with real stacks of a CPU; a GPU that dissents, or a driver that
changes bits, is not verified here. Nor is MIG: that each slice is a device, and computes, was tested with imitations only.

This page is written by `tests/gpu/make_gpu_md.py` from committed reports. Its explanations are those of
`tests/gpu/explanations.md`, which a new report leaves as they are."""


def algorithms_part(records, texts):
    """Nothing where none was measured."""
    lines = algorithms.rows(records)
    explained = [f"**Explanation of `{name}`.** {text}" for name, text in texts.items()
                 if name.startswith(algorithms.PREFIX)]
    if not lines:
        return "\n\n".join(explained)
    return "\n\n".join([reports.table("Algorithms of cuDNN's convolutions", algorithms.HEADER, lines), *explained])


PTX = """## nvcc's PTX, executed on a CPU

A level of its own, **no GPU**: above what the simulator shows, below what a GPU verifies. `make check-ptx` translated
the PTX that nvcc wrote of our kernels to C and computed every variant that needs no library with it
(`tests/ptx/README.md`): {toolkit}, PTX for {target}, {date}. What ptxas makes of the PTX, the order of memory,
concurrency and speed are not there. Each was checked in {schedules} permuted schedules, blocks interleaved: every element against
the bound of the float64 reference and, in the last of them, each access in shadow memory, for what is out of bounds,
uninitialised or racing in shared memory. What did not hold is `failed`.

{passed} of {count} variants passed at {sizes}: of the {others} that are no controls {steady} kept one digest, and
{bits} of {bits} that promise the CPU's bits had them."""
PTX_HEADER = ("workload", "variant", "version", "outcome", "sizes", "digests in the schedules", "error ÷ bound", "bits of the CPU")


def read_reshaped():
    return json.loads((machine.ROOT / "tests" / "gpu" / "reshaped.json").read_text())


def judged_on(found, each):
    """When reports judged the kernels that EACH of tests/gpu/reshaped.json names."""
    return [report["date"] for report in found for record in report["variants"]
            if record["workload"] == each["workload"] and each["variant"] in (None, record["variant"])
            and record["outcome"] in ("passed", "failed", "inconclusive")]


def reshaped_part(found):
    """The kernels that only reports of before have."""
    names = [f"`{each['workload']}`" + (f" {each['variant']}" if each["variant"] else "") for each in read_reshaped()
             if max(judged_on(found, each), default=each["since"]) < each["since"]]
    return ("No GPU has run the kernels of " + ", ".join(names) + " as they are now: they were given another shape, with the "
            "same version and, on a CPU, the same bits. What is said of them here is of the code before; "
            "`GET /v1/workloads` calls it outdated.") if names else ""


def ptx_row(record):
    return (record["workload"], record["variant"] + (" (control)" if record["control"] else ""), record["version"],
            record["outcome"], ", ".join(record["sizes"]),
            ", ".join(str(reports.dash(record["digests"][size])) for size in record["sizes"]), f"{record['error']:.3g}",
            {"equal": "equal", "other": "OTHER"}.get(record["bits"], "not promised"))


def ptx_part(results):
    """What make check-ptx left; nothing without it."""
    if not results:
        return ""
    records = results["variants"]
    equal = sum(record["bits"] == "equal" for record in records)
    promised = sum(record["bits"] is not None for record in records)
    text = PTX.replace("{bits} of {bits}", f"{equal} of {promised}").format(
        toolkit=f"CUDA {results['toolkit']}", target=results["target"], date=results["date"][:10],
        schedules=max(record["schedules"] or 0 for record in records),
        passed=sum(record["outcome"] == "passed" for record in records), count=len(records),
        sizes=" and ".join(dict.fromkeys(size for record in records for size in record["sizes"])),
        steady=sum(not record["control"] and set(record["digests"].values()) == {1} for record in records),
        others=sum(not record["control"] for record in records))
    return "\n\n".join([text, plain_table(PTX_HEADER, [ptx_row(record) for record in records])])


def read_ptx():
    path = machine.ROOT / "tests" / "ptx" / "results.json"
    return json.loads(path.read_text()) if path.exists() else None


def campaign_part(summary):
    figures = summary["figures"]
    parts = [f"## Measured by the service, {summary['date'][:10]}, {summary['gpu']}",
             reports.bullets("x", [f"stack {stack['name']}: " + ", ".join(
                 f"{name} {version}" for name, version in sorted(stack["versions"].items()))
                 for stack in summary["stacks"]]).partition("\n\n")[2],
             "\n".join(f"- {line}" for line in saved.agreement_lines(figures["agreement"])
                       + saved.figure_lines(figures) + summary["findings"])]
    return "\n\n".join(part for part in parts if part)


def operations_part(campaigns):
    """What frameworks' own operations showed there: of each stack what the largest campaign has."""
    largest = {}
    for summary in campaigns:
        for stack, found in summary["figures"].get("operations", {}).items():
            if len(found) >= len(largest.get(stack, ((), None))[0]):
                largest[stack] = (found, summary)
    return "\n\n".join(
        reports.table(f"Operations of {stack}, {summary['gpu']}: verdict, digests/runs", *saved.operation_rows(found))
        for stack, (found, summary) in largest.items())


def page(found, tables, explanations, campaigns=(), ptx=None):
    """The whole text."""
    records, row_of = newest(found), rows(tables)
    texts = read_explanations(explanations, set(row_of) | {name for name, _ in records} | own_workloads())
    parts = [head(found), HOW, reshaped_part(found), "## The documents' rows"]
    for name, row in row_of.items():
        own = [record for (workload, _), (record, _) in records.items() if workload == name]
        parts.append(section(row["title"], name, row, own, texts.get(name)))
    others = [name for name in dict.fromkeys(name for name, _ in records)
              if name not in row_of and not name.startswith(algorithms.PREFIX)]
    parts += ["## Other workloads"] if others else []
    for name in others:
        own = [record for (workload, _), (record, _) in records.items() if workload == name]
        parts.append(section(name, name, None, own, texts.get(name)))
    parts.append(algorithms_part([record for record, _ in records.values()], texts))
    for report in sorted(found, key=lambda one: one["date"])[-1:]:
        parts.append(reports.bullets("Speed of the instruments and of processes", reports.overall(report["timings"])))
        parts.append(reports.bullets("Findings", report["findings"]))
        parts.append(reports.bullets("Not run", [f"{item['what']} ({item['why']})" for item in report["not_run"]]))
    parts += [campaign_part(campaign) for campaign in campaigns] + [operations_part(campaigns), ptx_part(ptx)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    if any(report["rehearsal"] for report in [*found, *campaigns]):
        return "".join(f"{line[:line.index(' ')]} {reports.REHEARSAL}{line[line.index(' ') + 1:]}"
                       if line.startswith("#") else line for line in text.splitlines(keepends=True))
    return text


def own_workloads():
    return {path.stem for path in (machine.ROOT / "cuda").glob("*.cu")}


def read_report(path, rehearsal):
    try:
        said = json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    if not isinstance(said, dict) or said.get("v") != 1 or "rehearsal" not in said:
        raise Refused(f"{path}: not a report of this repository")
    if said["rehearsal"] and not rehearsal:
        raise Refused(f"{path}: is a rehearsal, which shows nothing about a GPU")
    return said


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="*", help="tests/gpu/results/*.json by default")
    parser.add_argument("--campaign", action="append", help="the summary.json of a campaign")
    parser.add_argument("--explanations", default=str(HERE / "explanations.md"))
    parser.add_argument("--rehearsal", action="store_true", help="take rehearsals, and say so everywhere")
    options = parser.parse_args(argv)
    paths = options.reports or sorted((HERE / "results").glob("*.json"))
    campaigns = sorted((HERE / "campaigns").glob("*.json")) if not options.reports else []
    campaigns = options.campaign or campaigns
    try:
        sys.stdout.write(page([read_report(path, options.rehearsal) for path in paths], read_tables(),
                              pathlib.Path(options.explanations).read_text(),
                              [read_report(campaign, options.rehearsal) for campaign in campaigns],
                              None if options.reports else read_ptx()))
    except (Refused, OSError) as error:
        sys.exit(f"make_gpu_md.py: {error}")


if __name__ == "__main__":
    main()
