"""Runs the same jobs with two builds, each from an empty folder, with workers that always say the
same; compares what is stored, and what is answered to the jobs."""
import concurrent.futures
import json
import re
import sqlite3

import masks
import worker
from configured import GPU, config, install
from daemons import JSON, Daemon, Question
from differences import DEFECT, SCHEMA, shortened

PASS = {"workloads": ["selftest_pass"], "variants": ["ordered"], "runs": 2, "iterations": 3}
TRAINING = {"workloads": ["training"], "iterations": 2}
PAIR = {"workloads": ["pair"], "runs": 2, "iterations": 2}
# Of tests/answers/worker.py.
PLANNED = (
    {**PAIR, "variants": ["unordered"], "allocation_jitter": "7"},
    {**PAIR, "variants": ["ordered"]},
    {**PAIR, "variants": ["ordered"], "allocation_jitter": "7"},
    {**PAIR, "variants": ["unordered"]},
    {**PAIR, "variants": ["copied"], "contention": 2, "memory_poison": "0badcafe"},
    {**PAIR, "workloads": ["still", "sometimes", "heals", "late"], "runs": 3, "iterations": 3},
    {**PAIR, "workloads": ["heals"], "variants": ["ordered"], "runs": 20, "iterations": 1},
    {**PAIR, "workloads": ["malformed"], "runs": 1, "iterations": 1},
    *({"workloads": ["places"], "variants": [place], "localise": True, "runs": 2, "runs_max": 4}
      for place in worker.PLACES),
)
# One after another: whose rows come first is no chance then.
JOBS = (
    {**PASS, "note": "µ\n\"", "seeds": [5, "18446744073709551615"], "stacks": ["cpu", "three"]},
    {**PASS, "contention": 1, "memory_poison": "0badcafe", "allocation_jitter": "7"},
    {**PASS, "memory_poison": "0badcafe"}, {**PASS, "contention": 2, "seed": 8},
    {**PASS, "allocation_jitter": "7", "seed": 8},
    {**PASS, "workloads": ["selftest_no_control"], "survey": True},
    {**PASS, "workloads": ["selftest_claims"], "variants": ["kept", "warned"],
     "priority": "scheduled"},
    {**PASS, "workloads": ["selftest_unsupported"], "variants": ["ordered", "setup"]},
    {**PASS, "workloads": ["selftest_infra"], "variants": ["ordered", "setup"]},
    {**PASS, "workloads": ["selftest_out_of_memory"]},
    {**PASS, "workloads": ["selftest_crash"], "variants": ["compute", "teardown", "exit_status"]},
    {**PASS, "workloads": ["selftest_wrong_count", "selftest_zero_elements",
                           "selftest_wrong_device"],
     "variants": ["ordered", "extra", "claimed"]},
    {**PASS, "workloads": ["selftest_truncated_line", "selftest_garbage", "selftest_huge_line",
                           "selftest_exit_zero_silent", "selftest_nan_everywhere"]},
    {**PASS, "workloads": ["selftest_telemetry"],
     "variants": ["ordered", "end_only", "no_object", "nested", "too_large"]},
    {**PASS, "workloads": ["selftest_hang"], "timeout_seconds": 3, "runs": 1},
    {"workloads": ["conv_wgrad", "checkpoint_resume"], "runs": 2, "iterations": 1,
     "variants": ["ordered", "resumed", "no_rng", "no_optimizer"], "stacks": ["plain"]},
    {"workloads": ["train_cnn"], "variants": ["ordered"], "runs": 2, "iterations": 1,
     "probes": {"every": 2, "names": "gradient/*"}},
    {**PASS, "localise": True, "runs": 2, "runs_max": 4},
    {**TRAINING, "runs": 3}, {**TRAINING, "variants": ["steady"], "sizes": ["large"], "runs": 1},
    {**TRAINING, "variants": ["counted"], "localise": True, "runs": 3, "runs_max": 9},
    {**TRAINING, "variants": ["counted"], "sizes": ["large"], "runs": 2, "iterations": 3},
    {**TRAINING, "variants": ["counted"], "stop_when_varies": True, "runs": 20, "seed": 3},
    {"workloads": ["broken"], "runs": 2, "iterations": 2, "variants": [
        "steady", "exit_zero", "no_start", "no_end", "wrong_json", "other_workload",
        "no_environment", "killed", "nan", "too_few", "green", "exit_one", "other_inputs"]},
    {"workloads": ["no_program"], "runs": 1},
    {"workloads": ["trace_" + name for name in (
        "equal", "root", "parts", "seed", "data", "none", "bad", "crash", "dropped",
        "environment")], "runs": 3, "iterations": 2},
    {"workloads": ["good", "liar", "lacking", "crash", "alone", "other_bits"],
     "variants": ["ordered"], "runs": 2, "iterations": 2, "devices": [GPU]},
    {"workloads": ["big", "fragile"], "variants": ["ordered"], "sizes": ["small", "large"],
     "runs": 2, "iterations": 2, "memory_poison": "0badcafe", "contention": 2, "devices": [GPU]},
    {"workloads": ["fragile", "deaf"], "variants": ["ordered"], "runs": 2, "iterations": 2},
    {"workloads": ["deaf"], "variants": ["ordered"], "runs": 1, "contention": 1},
    *PLANNED,
    {"workloads": ["cudnn_conv_pretend"], "variants": ["algo_1"], "runs": 2, "seeds": [1, 2],
     "dtypes": ["float32", "float16"], "iterations": 3, "devices": [GPU], "probes": True},
)
# Workers of these say how long an iteration took, always the same: no mask is needed.
TIMED = ("SELECT number FROM case_key WHERE workload GLOB 'trace_*' OR workload IN "
         "('broken', 'good', 'liar', 'alone', 'fragile', 'cudnn_conv_pretend', 'pair', 'still', "
         "'sometimes', 'heals', 'late', 'places')")
VIEWS = {
    "run, timed": "SELECT id, min_ns, median_ns, max_ns FROM run "
                  f"WHERE case_key IN ({TIMED}) ORDER BY id",
    "cell, timed": "SELECT id, min_ns, max_ns, median_ns_sum FROM cell "
                   f"WHERE case_key IN ({TIMED}) ORDER BY id",
    "cell_time, timed": "SELECT cell_time.* FROM cell_time JOIN cell ON cell.id = cell "
                        f"WHERE case_key IN ({TIMED}) ORDER BY cell, bucket",
}


def measure(build, folder, workers):
    """(the daemon, stopped; its answers to JOBS)"""
    install(folder)
    daemon = Daemon(build, folder, config(folder, *workers)).start()
    answers = []
    for job in JOBS:
        answer = daemon.ask(Question("POST", "/v1/jobs", JSON, json.dumps(job)))
        if answer.status != 201:
            raise RuntimeError(f"{build}: {job}: {answer}")
        daemon.finish(json.loads(answer.body)["id"])
        answers.append(answer)
    daemon.stop()
    return daemon, answers


class Database:
    """What a database holds, without what must differ."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.row_factory = sqlite3.Row
        self.names = {}  # id → what stands for it
        for kind, sql in ("job", "SELECT id FROM job ORDER BY number"), (
                "run", "SELECT id FROM run ORDER BY id"):
            for number, row in enumerate(self.db.execute(sql), 1):
                self.names[row["id"]] = f"<{kind} {number}>"

    def schema(self):
        """Of each object, its statement without comments and spaces that say nothing."""
        found = {f"{row['type']} {row['name']}": re.sub(
            r"\s*([(),])\s*|\s+", lambda m: m[1] or " ", re.sub(r"--[^\n]*", "", row["sql"] or ""))
            for row in self.db.execute("SELECT * FROM sqlite_master ORDER BY type, name")}
        for name in "user_version", "application_id", "journal_mode":
            found[name] = str(self.db.execute(f"PRAGMA {name}").fetchone()[0])
        found["rules of verdicts"] = str(self.db.execute("SELECT rules FROM judged").fetchone()[0])
        return found

    def tables(self):
        names = [row["name"] for row in self.db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        queries = {**{name: masks.TABLES.get(name, self.whole(name)) for name in names}, **VIEWS}
        return {name: [self.row(name, row) for row in self.db.execute(sql)]
                for name, sql in queries.items()}

    def whole(self, table):
        """All rows by their key: which index is read is no chance, but may be another."""
        keys = [column["name"] for column in sorted(
            self.db.execute(f'PRAGMA table_info("{table}")'), key=lambda column: column["pk"])
            if column["pk"]]
        return f'SELECT * FROM "{table}" ORDER BY {", ".join(keys) or "rowid"}'

    def row(self, table, row):
        return {name: self.value(table, name, row[name]) for name in row.keys()}

    def value(self, table, name, value):
        if value is None:
            return None
        for kind, columns in masks.COLUMNS.items():
            if name in columns and value and table not in VIEWS:
                return f"<{kind}>"
        if isinstance(value, bytes):
            return value.hex() if b"\0" in value else self.text(value.decode(errors="replace"))
        return self.text(value) if isinstance(value, str) else value

    def text(self, text):
        return masks.ULID.sub(lambda found: self.names.get(found[0], found[0]),
                              masks.masked(text, masks.TEXTS))


def program_of(data):
    """What decides whether another program can check DATA as it is."""
    schema = Database(data / "reprod.db").schema()
    return schema["user_version"], schema["rules of verdicts"]


def compare_schemas(where, old, new, differences):
    before, after = old.schema(), new.schema()
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            differences.add(SCHEMA, where, name, before.get(name, ""), after.get(name, ""))


def compare_tables(where, old, new, differences):
    before, after = old.tables(), new.tables()
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            differences.add(SCHEMA, where, f"table {name}", name in before, name in after)
            continue
        differences.compared["rows"] += len(before[name])
        if len(before[name]) != len(after[name]):
            lost = [row for row in before[name] if row not in after[name]]
            more = [row for row in after[name] if row not in before[name]]
            differences.add(DEFECT, where, f"table {name}: another number of rows",
                            f"{len(before[name])}, of these only here: {lost[:3]}",
                            f"{len(after[name])}, of these only here: {more[:3]}")
            continue
        for one, other in zip(before[name], after[name]):
            compare_row(f"{where}: {name}", one, other, differences)


def compare_row(where, old, new, differences):
    where = f"{where}: {shortened(old, 120)}"
    for column in old:
        if column not in new or old[column] == new[column]:
            continue  # a column that is not there is the schema's difference
        if isinstance(old[column], str) and isinstance(new[column], str):
            if old[column][:1] in "{[" and new[column][:1] in "{[":
                differences.json(where, old[column], new[column])
                continue
            if column in ("reason", "cause", "log", "title", "no_control"):
                differences.sentence(where, column, old[column], new[column])
                continue
        differences.add(DEFECT, where, f"column {column}", old[column], new[column])


def compare_posts(databases, answers, differences):
    """What a POST says of a job that it made."""
    for job, *both in zip(JOBS, *answers):
        differences.compared["requests"] += 1
        heads = [database.text(f"{answer.status} {dict(answer.headers)['Location']}")
                 for database, answer in zip(databases, both)]
        bodies = [database.text(answer.body.decode()) for database, answer in zip(databases, both)]
        if heads[0] != heads[1]:
            differences.add(DEFECT, f"POST {job}", "status or Location", *heads)
        if bodies[0] != bodies[1]:
            differences.json(f"POST {job}", *bodies)


def compare(builds, folder, workers, differences):
    """The stopped daemons of both builds."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        daemons, answers = zip(*pool.map(
            lambda name, build: measure(build, folder / name, workers),
            ("rows-old", "rows-new"), builds))
    databases = [Database(daemon.data / "reprod.db") for daemon in daemons]
    compare_posts(databases, answers, differences)
    compare_schemas("schema", *databases, differences)
    compare_tables("rows", *databases, differences)
    return daemons
