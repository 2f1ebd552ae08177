"""What a campaign leaves behind: at most eight files, each within a bound, rewritten after
every step, so that whatever ends it early takes only the step under way.
"""
import gzip
import io
import json
import os
import pathlib
import tarfile

import report as reports

FILE_MAX = 16 << 20  # bytes
LOG_MAX = 1 << 20


def write(path, data):
    """Whole or not at all."""
    if len(data) > FILE_MAX:
        raise ValueError(f"{path.name} would have {len(data)} bytes, {FILE_MAX} is the bound")
    draft = path.with_name(path.name + ".draft")
    draft.write_bytes(data)
    os.replace(draft, path)


def safe(text):
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in text)


# The service's own words

def matrix_paths(tables, environments):
    """{name of the file: path of the request}"""
    return {f"matrix-{table}-{safe(stack)}.{kind}":
            f"/v1/matrix{'' if kind == 'json' else '.' + kind}?table={table}&environment={environment}"
            for stack, environment in environments.items() for table in tables
            for kind in ("json", "txt")}


PLAIN = {"health.json": "/healthz", "ready.json": "/readyz", "stacks.json": "/v1/stacks",
         "devices.json": "/v1/devices", "environments.json": "/v1/environments",
         "jobs.json": "/v1/jobs", "findings.json": "/v1/findings",
         "findings.txt": "/v1/findings.txt", "workloads.txt": "/v1/workloads.txt",
         "metrics.txt": "/metrics"}


def views(product, environments, jobs):
    """{name: text}; where a text cannot be read, the reason is there instead."""
    try:
        tables = [table["id"] for table in product.get("/v1/profiles")["items"]]
    except Exception as error:
        tables = []
        print(f"  no tables: {error}", flush=True)
    paths = {**PLAIN, **matrix_paths(tables, environments)}
    paths.update({f"digests-{safe(job['step'])}-{job['job']}.txt": f"/v1/jobs/{job['job']}/digests.txt"
                  for job in jobs})
    found = {}
    for name, path in paths.items():
        try:
            body = product.get(path)
            found[name] = body if isinstance(body, str) else json.dumps(body, indent=1) + "\n"
        except Exception as error:
            found[name] = f"{error}\n"
    return found


def archive(texts):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as packed:
        for name, text in texts.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            packed.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def write_database(product, scratch, path):
    copy = scratch / "copy.db"
    copy.unlink(missing_ok=True)
    product.backup(copy)
    write(path, gzip.compress(copy.read_bytes(), 6))
    copy.unlink()


def read_database(path, data):
    """Unpacks what write_database wrote into the data folder of a service to be started."""
    raw = pathlib.Path(path).read_bytes()
    data.mkdir(parents=True, exist_ok=True)
    (data / "reprod.db").write_bytes(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


# For people

def step_row(step):
    cause = f": {step['cause']}" if step["cause"] else ""
    return (step["name"], step["outcome"] + cause, step["seconds"], step["limit"])


def job_row(job):
    progress = job["progress"]
    return (job["step"], job["stack"], job["state"], f"{progress['runs_done']} of {progress['runs_total']}",
            progress["runs_failed"], ", ".join(f"{k} {v}" for k, v in job["asked"].items()))


def figure_lines(figures):
    titles = {"probe_ms": "asking the worker what is there (process, driver, libraries)",
              "beside_computing_ms": "a run without its iterations (process, CUDA, inputs, digests)",
              "turnaround_ms": "from the start of a run to that of the next",
              "gap_ms": "from the end of a run to the start of the next"}
    return [f"{title}: {reports.range_of(figures[name], ' ms')}, {figures[name]['count']} times"
            for name, title in titles.items() if figures.get(name)]


def agreement_lines(found):
    """Of the stacks of one campaign; nothing where there is one."""
    lines = []
    for subject, one in found.items():
        whose = "our models" if subject == "model" else subject
        lines.append(f"of {whose}, {one['equal']} variants have the same bits with every stack in which "
                     f"they are reproducible, {len(one['different'])} have not")
        lines += [f"of {whose}: {each['workload']} {each['variant']} ({each['size']}) has not: " + ", ".join(
            f"{digest[:12]} with {stack}" for stack, digest in each["digests"].items())
            for each in one["different"]]
    return lines


def cost_rows(figures):
    return [(stack, cost["subject"], f"{cost['workload']} {cost['variant']} ÷ {cost['against']}", cost["size"],
             f"{cost['median']:.3g} ({cost['low']:.3g} to {cost['high']:.3g})")
            for stack, costs in figures.get("costs", {}).items() for cost in costs]


WORDS = {"inconclusive": "did not vary", "unsupported": "raises", "failing": "fails"}


def operation_cell(one):
    """“varies 3/5”: its digests, and the runs that had one."""
    if one is None:
        return ""
    word = WORDS.get(one["verdict"], one["verdict"])
    if one["verdict"] == "inconclusive" and "did not vary" not in one["reason"]:
        word = "inconclusive: " + one["reason"]
    return f"{word} {one['digests']}/{one['runs']}" if one["digests"] else word


def operation_rows(found):
    """(head, rows) of one stack: an operation a row, a variant a column."""
    variants = list(dict.fromkeys(one["variant"] for one in sorted(found, key=lambda one: not one["control"])))
    cells = {(one["workload"], one["variant"]): one for one in found}
    return ("operation", *variants), [
        (workload, *(operation_cell(cells.get((workload, variant))) for variant in variants))
        for workload in dict.fromkeys(one["workload"] for one in found)]


def summary_text(summary, matrices):
    figures = summary["figures"]
    parts = [
        f"# Campaign on {summary['gpu']}, {summary['date'][:10]}",
        f"Date {summary['date']}; took {summary['seconds']} s of {summary['limit_seconds']} s. "
        f"Device {summary['device']}. Service {summary['version']}.",
        reports.table("Steps", ("step", "outcome", "seconds", "limit"), map(step_row, summary["steps"])),
        reports.bullets("Notes", summary["notes"]),
        reports.bullets("Stacks", [f"{stack['name']}: " + ", ".join(
            f"{name} {version}" for name, version in sorted(stack["versions"].items()))
            for stack in summary["stacks"]]),
        reports.table("Jobs", ("step", "stack", "state", "runs", "failed", "asked for"),
                      map(job_row, summary["jobs"])),
        reports.table("What did not complete", ("workload", "variant", "outcome", "cause", "runs"),
                      summary["failures"]),
        reports.bullets("Findings", summary["findings"]),
        reports.bullets("Stacks compared", agreement_lines(figures["agreement"])),
        reports.bullets("Time", figure_lines(figures)),
        reports.table("Cost of determinism", ("stack", "subject", "variants", "size", "ratio"), cost_rows(figures)),
        *[reports.table(f"Operations of {stack}: verdict, digests/runs", *operation_rows(found))
          for stack, found in figures.get("operations", {}).items()],
        *[f"## Matrix of {stack}\n\n```\n{text.rstrip()}\n```" for stack, text in matrices.items()],
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    if not summary["rehearsal"]:
        return text
    return f"**{reports.REHEARSAL.strip()}**\n\n" + text.replace("\n## ", f"\n## {reports.REHEARSAL}").replace(
        "# Campaign", f"# {reports.REHEARSAL}Campaign", 1)
