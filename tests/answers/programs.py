"""Compares what the programs of two builds print, what they find in databases, and what they do
with each other's."""
import concurrent.futures
import json
import shutil
import socket
import sqlite3

import masks
import refused
import rows
from configured import FIXTURES, config
from daemons import ROOT, Daemon, run
from differences import DEFECT

WORKERS = ("reprod-worker", "reprod-worker-cuda", "tests/reprod-worker-cudasim",
           "tests/reprod-worker-selftest")
# Damage that fsck must tell.
DAMAGE = (
    "UPDATE cell SET completed = completed + 1 WHERE id = 1",
    "UPDATE cell SET reason = 'none', verdict = 'failing' WHERE id = 2",
    "UPDATE cell SET min_ns = min_ns + 1, last_ms = last_ms + 1, claimed = 7, warned = 7",
    "UPDATE cell SET digest_runs = 9, disturbed = 9, contended = 9, distinct_digests = 9",
    *(f"UPDATE job SET {column} = {column} + 1 WHERE number = 3"
      for column in ("runs_done", "runs_failed", "runs_total", "items_open")),
    "UPDATE job SET state = 'running', finished_ms = NULL WHERE number = 4",
    "DELETE FROM run_digest", "DELETE FROM cell_digest WHERE cell < 9", "DELETE FROM cell_time",
    "DELETE FROM cell_device WHERE cell > 20", "DELETE FROM cell_alike", "DELETE FROM environment",
    "UPDATE trace SET packed = x'00' WHERE number = 1",
    "UPDATE trace SET packed = substr(packed, 1, length(packed) - 3) WHERE number = 2",
    "UPDATE trace SET digest = (SELECT digest FROM trace WHERE number = 1)",
    "UPDATE run_trace SET records = records + 1", "UPDATE judged SET rules = 0",
    "DELETE FROM case_key WHERE number = 5", "PRAGMA user_version = 3",
    "PRAGMA user_version = 9999", "PRAGMA application_id = 7",
)
AGAIN = {**rows.PASS, "workloads": ["selftest_pass", "selftest_no_control", "selftest_claims"],
         "seeds": [5, 6]}


def compare_outputs(where, builds, results, differences):
    """(exit status, standard output, standard error) of each."""
    differences.compared["outputs"] += 1
    old, new = ([result[0], *(printed(build, text) for text in result[1:])]
                for build, result in zip(builds, results))
    if old[0] != new[0]:
        differences.add(DEFECT, where, "exit status", old, new)
    for one, other in zip(old[1:], new[1:]):
        if one == other:
            continue
        before, after = one.splitlines(), other.splitlines()
        if len(before) == len(after) and all(line[:1] == "{" for line in before + after):
            for line, changed in zip(before, after):
                if line != changed:
                    differences.json(f"{where}: {line[:60]}", line, changed)
        else:
            differences.text(where, one, other)


def printed(build, text):
    return masks.masked(text.replace(str(build), "<build>"), masks.OUTPUTS + masks.TEXTS)


def compare_lines(builds, folder, differences):
    """Command lines and configurations that are refused; what is printed without a service."""
    homes = [folder / "refused-old", folder / "refused-new"]  # where var/ would be

    def both(where, line, content=None):
        for home in homes:
            home.mkdir(exist_ok=True)
            (home / "config.json").write_text(content or "{}")
        results = [run(build / "reprod", *line, cwd=home) for build, home in zip(builds, homes)]
        compare_outputs(where, builds, results, differences)
    for line in refused.COMMAND_LINES:
        both(" ".join(("reprod", *line)), line)
    for content in refused.CONFIGURATIONS:
        content = content if isinstance(content, str) else json.dumps(content)
        both(f"configuration {{ … {content[-200:]}", (
            "serve", "--no-survey", "--listen", "127.0.0.1:0", "--config", "config.json"), content)


def golden_cases():
    """A variant of each workload that computes in a fixed order."""
    cases = {}
    for line in (ROOT / "tests" / "golden" / "digests.txt").read_text().splitlines():
        if not line.startswith("#"):
            workload, _, variant, size, dtype, _, _ = line.split()
            if size == "small":
                cases.setdefault(workload, (variant, dtype))
    return cases


def compare_workers(builds, differences):
    for worker in WORKERS:
        if not all((build / worker).exists() for build in builds):
            continue
        lines = [("--catalogue",), ("--probe",), *refused.WORKER_LINES]
        if worker == "reprod-worker":
            for workload, (variant, dtype) in golden_cases().items():
                case = ("--workload", workload, "--variant", variant, "--dtype", dtype)
                lines.append(("--run", *case, "--iterations", "2", "--probes", "1"))
            lines += [("--check", *case), ("--run", *case, "--memory-poison", "0badcafe")]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for line in lines:
                results = pool.map(lambda build, line=line: run(
                    build / worker, *line, env={"REPROD_RESULT_FD": "1", "PATH": "/usr/bin:/bin"}),
                    builds)
                compare_outputs(f"{worker} {' '.join(line)}", builds, list(results), differences)


def compare_checks(builds, folder, daemons, differences):
    """fsck of whole and of damaged databases, and backup, by both builds.  Where the schemas
    or the rules of verdicts differ, the new build has made its copy its own before."""
    old, new = (daemon.data for daemon in daemons)
    mine = old
    if rows.program_of(old) != rows.program_of(new):
        brought = daemons[0].copy_to(builds[1], folder / "brought")
        brought.start().stop()
        mine = brought.data

    def both(where, *data):
        results = [run(build / "reprod", "fsck", "--data", of.name, cwd=of.parent)
                   for build, of in zip(builds, data)]
        compare_outputs(f"fsck {where}", builds, results, differences)
    both("of the old build's rows", old, mine)
    both("of each build's rows", old, new)
    if mine == old:
        both("of the new build's rows", new, new)
    for sql in DAMAGE:
        copies = folder / "damaged-old" / "data", folder / "damaged-new" / "data"
        for data, copy in zip((old, mine), copies):
            shutil.copytree(data, copy)
            with sqlite3.connect(copy / "reprod.db") as db:
                db.execute("PRAGMA foreign_keys = OFF")
                db.execute("PRAGMA ignore_check_constraints = ON")
                db.execute(sql)
            db.close()
        both(f"after {sql}", *copies)
        for copy in copies:
            shutil.rmtree(copy)
    for build, name in zip(builds, ("old", "new")):
        (folder / f"backup-{name}").mkdir()
        run(build / "reprod", "backup", "--data", old, folder / f"backup-{name}" / "reprod.db")
    compare_databases("backup", folder / "backup-old", folder / "backup-new", differences)


def compare_databases(where, old, new, differences):
    old, new = (rows.Database(data / "reprod.db") for data in (old, new))
    rows.compare_schemas(where, old, new, differences)
    rows.compare_tables(where, old, new, differences)


def compare_continued(builds, folder, daemon, workers, differences):
    """What the old build stored, carried on by each build, with its own agents and with the
    other's; and databases of the first versions, brought to the present by each."""
    def carry_on(name, build, agent):
        carried = daemon.copy_to(build, folder / f"carried-{name}")
        settings = config(folder / "rows-old", *workers)
        (carried.folder / "agent.json").write_text(json.dumps(settings))
        carried.configure({**settings, "stacks": [], "workloads": [], "hosts": [
            {"name": socket.gethostname(), "launch": [
                str(agent / "reprod"), "agent", "--grace-ms", "200", "--config",
                str(carried.folder / "agent.json")]}]})
        carried.start()
        carried.finish(carried.post(AGAIN))
        carried.stop()
        code, text, _ = run(build / "reprod", "fsck", "--data", carried.data)
        if code != 0:
            differences.add(DEFECT, f"fsck of the {name} rows", "is not clean", "", text)
        return carried.data

    old, new = builds
    reference = carry_on("old", old, old)
    for name, build, agent in (("new", new, new), ("new with old agents", new, old),
                               ("old with new agents", old, new)):
        compare_databases(f"carried on, {name}", reference, carry_on(name, build, agent),
                          differences)
    for version in sorted(FIXTURES.glob("v*.db")):
        data = []
        for build, name in zip(builds, ("old", "new")):
            migrated = Daemon(build, folder / f"{version.stem}-{name}", {
                "stacks": [{"name": "cpu", "worker": str(workers[1])}]})
            migrated.data.mkdir()
            shutil.copy(version, migrated.data / "reprod.db")
            migrated.start().stop()
            data.append(migrated.data)
        compare_databases(f"{version.name}, brought to the present", *data, differences)
