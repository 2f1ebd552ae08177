"""compute-sanitizer over every variant, as far as time goes."""
import dataclasses
import os
import pathlib
import re
import shutil
import tempfile

import judge
from session import small_size

USUAL = pathlib.Path("/usr/local/cuda")
KERNEL = re.compile(r"__global__\s+(?:static\s+)?void\s+(\w+)")
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)")
REFUSED = re.compile(r"device not supported|device is not supported", re.IGNORECASE)
REPORT = re.compile(r"^========= (?=Error|Warning|Invalid|Race|Program hit)", re.MULTILINE)


def find_tool(nvcc=None):
    name = "compute-sanitizer"
    toolkits = ([pathlib.Path(nvcc).resolve().parents[1]] if nvcc else []) + [USUAL]
    found = [path for toolkit in toolkits for path in (toolkit / "bin" / name, toolkit / name / name)]
    return next((str(path) for path in found if path.is_file()), None) or shutil.which(name)


def own_kernels(root):
    """Names of the kernels that are written here, not in a library."""
    files = [path for pattern in ("*.cu", "*.h") for path in (root / "cuda").rglob(pattern)]
    return {name for path in files for name in KERNEL.findall(path.read_text())}


def judge_memcheck(text):
    """"passed", what was found, or None: it did not finish."""
    summary = SUMMARY.findall(text)
    if not summary:
        return None
    return "passed" if summary[-1] == "0" else f"{summary[-1]} errors; {first_report(text)}"


def judge_racecheck(text, kernels):
    """Hazards of our kernels count; those of libraries are theirs."""
    summary = SUMMARY.findall(text)
    if not summary:
        return None
    reports = REPORT.split(text)[1:]
    ours = [part for part in reports
            if any(re.search(rf"\b{re.escape(name)}\b", part) for name in kernels)]
    if summary[-1] == "0" or (reports and not ours):
        return "passed"
    if not reports:
        return f"{summary[-1]} hazards, in a form that is not known here"
    return f"{len(ours)} reports about our kernels; {line(ours[0])}"


def looked(answer, text):
    """Whether the tool saw the check compute: some that did not say "0 errors" all the same, and
    those that refuse the device count that as one."""
    own = [line for line in answer.output.splitlines() if not line.startswith("=====")]
    ran = judge.judge_check(dataclasses.replace(answer, output="\n".join(own)))["outcome"] == "passed"
    found = SUMMARY.findall(text)
    return not REFUSED.search(text + answer.output + answer.errors) and (ran or bool(found) and found[-1] != "0")


def first_report(text):
    parts = REPORT.split(text)
    return line(parts[1]) if len(parts) > 1 else "no report"


def line(text):
    return " ".join(text.replace("=========", "").split())[:300]


def sanitize(session, records, tool, root, until):
    kernels = own_kernels(root)
    due = sorted((record for record in records if record["check"]
                  and record["check"]["outcome"] == "passed"),
                 key=lambda record: record["subject"] != "model")  # our own kernels first
    for name, judgement in (("memcheck", judge_memcheck),
                            ("racecheck", lambda text: judge_racecheck(text, kernels))):
        def check(record, name=name, judgement=judgement):
            answer, text = answer_and_log(session, tool, name, record)
            found = judgement(text) if not answer.cut and looked(answer, text) else None
            if found is None:
                late.append(record)
            else:
                record["sanitizers"][name] = found

        late = []
        late += session.each(check, [record for record in due if name not in record["sanitizers"]], until)
        if late:
            session.skip(f"compute-sanitizer {name}: " + ", ".join(
                f"{record['workload']} {record['variant']}" for record in late),
                "deadline, or the tool did not finish here, or does not support the device")


def answer_and_log(session, tool, name, record):
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        answer = session.ask([tool, "--tool", name, "--log-file", log, session.worker, "--check",
                              "--workload", record["workload"], "--variant", record["variant"],
                              "--size", small_size(session.catalogue[record["workload"]]),
                              "--device", session.device], limit=90)
        try:
            return answer, pathlib.Path(log).read_text(errors="replace")
        except OSError:
            return answer, ""
