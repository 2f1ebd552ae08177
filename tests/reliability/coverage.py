#!/usr/bin/env python3
"""make coverage: which branches of the code that judges no unit test takes.

A branch is one outcome of a condition in the source, of each operand of && and || too, or one
case of a switch, its missing default included: clang counts them before it optimises.  Prints
each file's figure and each branch that was never taken.  Writes RESULT unless that is empty.

A branch that cannot be taken has a comment on its line, or alone on the line before:

    if (!made) { /* never true: REASON */        never false, never else (of a switch)

It is shown with its reason and does not count.  One that was taken all the same is an error."""
import argparse
import collections
import concurrent.futures
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

REASON = re.compile(r"/\*\s*never (true|false|else): (.*?)\s*(?:\*/|$)")


def run_tests(tests, profiles, workers):
    """Each writes a profile of its own.  Returns those that failed."""
    def one(test):
        env = dict(os.environ, LLVM_PROFILE_FILE=os.path.join(
            profiles, test.replace("/", "-") + "-%p.profraw"))
        ended = subprocess.run([test], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", check=False)
        if ended.returncode:
            print(f"  FAIL {test}\n{ended.stdout}")
        return ended.returncode

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return [test for test, code in zip(tests, pool.map(one, tests)) if code]


def place_of(branch, function, root):
    """Its file, line and column; those of the macro's use where a macro has it, and what the
    macro calls it."""
    used = {region[6]: (region[5], region[0], region[1])
            for region in function["regions"] if region[7] == 1}
    number, line, column = branch[6], branch[0], branch[1]
    inside = ()
    while number in used:
        inside += ((os.path.relpath(function["filenames"][number], root), line, column),)
        number, line, column = used[number]
    return os.path.relpath(function["filenames"][number], root), line, column, inside


class Sources:
    """Lines of files, by name."""

    def __init__(self):
        self.read = {}

    def line(self, path, number):
        if path not in self.read:
            with open(path, encoding="utf-8") as file:
                self.read[path] = file.read().split("\n")
        return self.read[path][number - 1] if number > 0 else ""

    def is_evaluated(self, inside):
        """What a _Generic looks at is compiled, but never computed."""
        return not any("_Generic((" in self.line(path, line)[:column] for path, line, column in inside)

    def reasons(self, path, line):
        """{direction: reason} of the comments that speak of that line."""
        before = self.line(path, line - 1).strip()
        texts = [self.line(path, line)] + ([before] if before.startswith("/* never ") else [])
        return dict(match.groups() for text in texts for match in REASON.finditer(text))


def branches_of(export, files, root, sources):
    """{file: {place: [times true, times false]}}, of those that were compiled to be counted."""
    found = {}
    for function in export["data"][0]["functions"]:
        path = os.path.relpath(function["filenames"][0], root)
        if path in files:
            found.setdefault(path, collections.defaultdict(lambda: [0, 0]))
    for function in export["data"][0]["functions"]:
        for branch in function["branches"]:
            path, line, column, inside = place_of(branch, function, root)
            if path in found and sources.is_evaluated(inside):
                times = found[path][line, column, inside]
                times[0] += branch[4]
                times[1] += branch[5]
    return found


def judge(path, branches, sources):
    """The row of a file, its branches that were never taken, and what is wrong with reasons."""
    row = {"file": path, "branches": 0, "taken": 0, "excluded": []}
    missing, wrong, spoken = [], [], collections.defaultdict(bool)
    for place, times in sorted(branches.items()):
        line, column = place[:2]
        text = sources.line(path, line)
        reasons = sources.reasons(path, line)
        is_switch = text[:column - 1].endswith("switch (")  # the case that it lacks
        for taken, direction in zip(times, ("else" if is_switch else "true", "false")):
            if is_switch and direction == "false" or \
                    re.match(r"(case|default)\b", text[column - 1:]) and direction == "false":
                continue  # another case was taken
            if direction in reasons and not taken:
                spoken[line, direction] = True
                row["excluded"].append({"line": line, "direction": direction,
                                        "reason": reasons[direction]})
                continue
            spoken[line, direction] |= False
            row["branches"] += 1
            row["taken"] += taken > 0
            if not taken:
                missing.append(f"{path}:{line}:{column}: never {direction}: {text.strip()}")
    for (line, direction), is_so in sorted(spoken.items()):
        if direction in sources.reasons(path, line) and not is_so:
            wrong.append(f"{path}:{line}: was {direction}, though it says never")
    return row, missing, wrong


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return {"processor": models[0] if models else "unknown", "cores": os.cpu_count(),
            "system": f"{os.uname().sysname} {os.uname().release}"}


def output_of(*command):
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout.strip()


def commit():
    try:
        changed = output_of("git", "status", "--porcelain", "--", "*.c", "*.h", "*.sql", "*.json",
                            ":!tests/reliability/results")
        return output_of("git", "rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def expand(patterns):
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


def show(rows, core):
    for kind, chosen in (("core", True), ("beside it", False)):
        of_kind = [row for row in rows if (row["file"] in core) == chosen]
        for row in of_kind:
            print(f"  {row['taken']:5} / {row['branches']:5}  {row['file']}")
        taken, count = (sum(row[key] for row in of_kind) for key in ("taken", "branches"))
        if count:
            print(f"  {taken:5} / {count:5}  {kind}: {100 * taken / count:.2f} %")
    excluded = [(row["file"], one) for row in rows for one in row["excluded"]]
    print(f"  {len(excluded)} that cannot be taken, each with its reason:")
    for path, one in excluded:
        print(f"    {path}:{one['line']}: never {one['direction']}: {one['reason']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True, help="clang, or clang-N")
    parser.add_argument("--core", nargs="+", required=True, help="files of which all must be taken")
    parser.add_argument("--beside", nargs="*", default=[], help="files whose figure is shown")
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--result", default="")
    args = parser.parse_args()
    root, sources = os.getcwd(), Sources()
    core, files = set(expand(args.core)), expand(args.core + args.beside)
    version = re.sub(r"^.*clang", "", os.path.basename(args.cc))
    with tempfile.TemporaryDirectory() as folder:
        failed = run_tests(args.tests, folder, os.cpu_count())
        merged = os.path.join(folder, "merged")
        subprocess.run([f"llvm-profdata{version}", "merge", "-o", merged]
                       + glob.glob(os.path.join(folder, "*.profraw")), check=True)
        # Every test program has all of what is measured.
        export = json.loads(output_of(f"llvm-cov{version}", "export", "-format=text",
                                      f"-instr-profile={merged}", args.tests[0]))
    found = branches_of(export, set(files), root, sources)
    rows, missing, wrong = [], [], []
    for path in files:
        if path not in found:
            wrong.append(f"{path}: nothing of it was counted")
            continue
        row, of_file, wrong_of_file = judge(path, found[path], sources)
        rows.append(row)
        missing += of_file
        wrong += wrong_of_file
    show(rows, core)
    print("\n".join([f"  {len(missing)} that no test took:"] + ["    " + one for one in missing]
                    + wrong))
    if args.result and not failed:
        result = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
                  "commit": commit(), "machine": machine(), "command": "make coverage",
                  "compiler": output_of(args.cc, "--version").split("\n")[0],
                  "core": sorted(core), "files": rows, "never_taken": missing}
        with open(args.result, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    short = [row["file"] for row in rows if row["file"] in core and row["taken"] < row["branches"]]
    print(f"coverage: {len(short)} of {len(core)} files lack a branch, {len(failed)} tests failed")
    return 1 if short or failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
