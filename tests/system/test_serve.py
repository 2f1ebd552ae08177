"""The service's life: how it starts, what it refuses, how it stops, what it needs."""
import csv
import io
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from service import BUILD, ROOT, SELFTEST_WORKER, Service


def refused(folder, *options, config=None):
    """(exit code, stderr) of a service that must not start."""
    command = [str(BUILD / "reprod"), "serve", "--listen", "127.0.0.1:0", *options]
    if config is not None:
        path = folder / "config.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config))
        command += ["--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if line.startswith("reprod: ")]
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


@pytest.mark.parametrize("config, says", [
    ({"listn": "127.0.0.1:1"},
     "config.json: /listn: there is no setting 'listn'; did you mean 'listen'?"),
    ({"listen": "localhost:1"}, "/listen"),
    ({"listen": "127.0.0.1:70000"}, "/listen"),
    ({"listen": 7357}, "/listen"),
    ({"data": ""}, "/data"),
    ({"survey": "yes"}, "/survey: must be true or false"),
    ({"screening": {"returned_days": -1}}, "/screening/returned_days: must be a whole number from 0"),
    ({"screening": {"returned_day": 1}},
     "/screening/returned_day: the screening has no member 'returned_day'; did you mean 'returned_days'?"),
    ({"screening": 30}, "/screening: must be an object"),
    ({"foreign": "waits"}, "/foreign: must be 'wait' or 'measure'"),
    ({"foreign": True}, "/foreign: must be a text"),
    ({"stale_after_hours": -1}, "/stale_after_hours: must be a whole number from 0"),
    ({"stale_after_hours": 1.5}, "/stale_after_hours"),
    ({"stacks": {}}, "/stacks: must be an array"),
    ({"stacks": [{"worker": "/x"}]}, "/stacks/0/name: is missing"),
    ({"stacks": [{"name": "a", "wrker": "/x"}]},
     "/stacks/0/wrker: a stack has no member 'wrker'; did you mean 'worker'?"),
    ({"stacks": [{"name": "a", "threads": 0}]}, "/stacks/0/threads"),
    ({"stacks": [{"name": "a", "env": {"X": 1}}]}, "/stacks/0/env/X: must be a text"),
    ({"stacks": [{"name": "a", "env": {"A=B": "1"}}]}, "/stacks/0/env/A=B: is not the name"),
    ({"stacks": [{"name": "a"}, {"name": "b", "env": {"TF_DETERMINISTIC_OPS": "yes"}}]},
     "config.json: /stacks/1/env/TF_DETERMINISTIC_OPS: 'yes' is neither 1 nor true"),
    ({"stacks": [{"name": "a", "env": {"TF_CUDNN_DETERMINISTIC": "1",
                                       "TF_USE_CUDNN_AUTOTUNE": "0"}}]},
     "/stacks/0/env/TF_USE_CUDNN_AUTOTUNE: must not be set"),
    ({"hosts": [{"name": "n[1-2]", "launch": ["a"]}]}, "/hosts/0/launch: no word has {host}"),
    ({"hosts": [{"name": "n[2-1]", "launch": ["{host}"]}]}, "/hosts/0/name: '[2-1]' is no list of numbers"),
    ({"hosts": [{"name": "a", "launch": ["a"]}, {"name": "a", "launch": ["b"]}]}, "/hosts/1/name: 'a' is listed twice"),
    ({"hosts": [{"name": "a"}]}, "/hosts/0/launch: is missing"),
    ({"hosts": [{"name": "a", "launch": [1]}]}, "/hosts/0/launch/0: must be a text"),
    ({"hosts": [{"name": 256 * "a", "launch": ["a"]}]},
     "/hosts/0/name: must be a text of 1 to 255 bytes"),
    ({"stacks": [{"name": 64 * "a"}]}, "/stacks/0/name: must be a text of 1 to 63 bytes"),
    ({"stacks": [{"name": "a/b"}]}, "/stacks/0/name: must have no '/'"),
    ('{"data": "a", "data": "b"}', "line 1"),
    ('{"data": ', "line 1"),
    ("[]", "must be a JSON object"),
])
def test_wrong_configuration_is_named(tmp_path, config, says):
    code, line = refused(tmp_path, config=config)
    assert code == 2
    assert says in line


def test_missing_configuration_file(tmp_path):
    code, line = refused(tmp_path, "--config", "nowhere.json")
    assert code == 2 and "nowhere.json" in line


@pytest.mark.parametrize("options, says", [
    (["--listen"], "--listen needs a value"),
    (["--listen", "x"], "'x' is not ADDRESS:PORT"),
    (["--listen", "0.0.0.0:0"], "not a loopback address"),
    (["--datta", "x"], "unknown option '--datta'"),
    (["serve"], "unexpected argument 'serve'"),
])
def test_wrong_options_are_named(tmp_path, options, says):
    code, line = refused(tmp_path, *options)
    assert code == 2
    assert says in line


def test_port_in_use(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, line = refused(tmp_path, "--listen", f"127.0.0.1:{port}")
    assert code == 3
    assert str(port) in line and "in use" in line


def test_data_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("precious")
    code, line = refused(tmp_path, "--data", "file")
    assert code == 4
    assert (tmp_path / "file").read_text() == "precious"
    code, line = refused(tmp_path, "--data", "missing/deeper")
    assert code == 4 and "missing/deeper" in line


def database(folder, text=None, **pragmas):
    path = folder / "var" / "reprod.db"
    path.parent.mkdir()
    if text is not None:
        path.write_bytes(text)
    else:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE precious (x)")
            for name, value in pragmas.items():
                db.execute(f"PRAGMA {name} = {value}")
        db.close()
    return path


@pytest.mark.parametrize("content, code", [
    (b"not a database at all, but precious" * 100, 6),
    (b"SQLite format 3\0" + b"\xff" * 5000, 6),
])
def test_foreign_file_is_left_alone(tmp_path, content, code):
    path = database(tmp_path, content)
    assert refused(tmp_path)[0] == code
    assert path.read_bytes() == content


def test_database_of_another_program(tmp_path):
    path = database(tmp_path)
    before = path.read_bytes()
    assert refused(tmp_path)[0] == 6
    assert path.read_bytes() == before


def test_newer_database(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    assert service.stop() == 0
    with sqlite3.connect(service.data / "reprod.db") as db:
        db.execute("PRAGMA user_version = 9999")
    db.close()
    before = (service.data / "reprod.db").read_bytes()
    code, line = refused(tmp_path, "--data", str(service.data))
    assert code == 5 and "newer" in line
    assert (service.data / "reprod.db").read_bytes() == before


def test_second_service_on_one_database(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    code, line = refused(tmp_path, "--data", str(service.data))
    assert code == 8
    assert service.request("GET", "/healthz")[0] == 200
    assert service.stop() == 0


def test_other_programs_may_read_the_database(tmp_path):
    """SQLite removes the log with the last connection: another program must see that it has not
    the last, or what the service writes afterwards is lost."""
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    log = service.data / "reprod.db-wal"
    before = log.stat().st_ino
    db = sqlite3.connect(service.data / "reprod.db")
    assert db.execute("SELECT count(*) FROM job").fetchone() == (0,)
    db.close()
    assert log.stat().st_ino == before
    job = service.post_job(workloads=["selftest_pass"], runs=1)
    service.kill()
    service.start()
    service.finish_job(job)
    assert service.stop() == 0


def test_no_usable_worker_is_said(tmp_path):
    service = Service(tmp_path, worker="/nonexistent/worker").start(ready=False)
    service.wait(lambda: "/nonexistent/worker" in json.dumps(service.get("/v1/stacks")),
                 "what its agent says")
    status, _, body = service.request("GET", "/readyz")
    assert status == 503 and "no device" in json.dumps(body)
    status, headers, _ = service.request("POST", "/v1/jobs", {"workloads": ["x"]})
    assert status in (422, 503)
    cells = [c for row in service.get("/v1/matrix")["rows"] for c in row["cells"]]
    assert {c["state"] for c in cells} <= {"unmeasured", "absent"}
    assert service.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_lets_a_run_finish(tmp_path, number):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    job = service.post_job(workloads=["selftest_pass"], runs=1000, iterations=5)
    service.wait(lambda: service.get(f"/v1/jobs/{job}")["progress"]["runs_done"] > 3, "progress")
    assert service.stop(number) == 0
    with sqlite3.connect(service.data / "reprod.db") as db:
        outcomes = dict(db.execute("SELECT coalesce(outcome, 'unfinished'), count(*) FROM run GROUP BY 1"))
    db.close()
    assert set(outcomes) == {"completed"}


def test_second_signal_cancels(tmp_path):
    # What is told to stop has three times the grace for it.
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"],
                      config={"grace_ms": 10000}).start()
    job = service.post_job(workloads=["selftest_hang"], variants=["ordered"], runs=1,
                           timeout_seconds=600)
    service.wait(lambda: any(run["started_at"] for run in service.items(f"/v1/runs?job={job}")),
                 "a run")
    service.process.send_signal(signal.SIGINT)
    service.wait(lambda: "a second signal cancels" in service.log.read_text(), "the first signal")
    assert service.stop(signal.SIGINT) == 0
    service.start()
    run = service.items(f"/v1/runs?job={job}")[-1]
    assert run["outcome"] == "cancelled" and "stopped" in run["cause"]
    assert service.get(f"/v1/jobs/{job}")["state"] in ("queued", "running")
    assert service.request("DELETE", f"/v1/jobs/{job}")[0] in (200, 202, 204)
    service.wait(lambda: service.get(f"/v1/jobs/{job}")["state"] == "cancelled", "cancelled")
    assert service.stop() == 0


def test_the_printed_matrix_is_that_of_the_api(tmp_path):
    """At the end of a survey serve prints what the API answers, relations included."""
    service = Service(tmp_path, worker=BUILD / "reprod-worker", options=["--no-survey"]).start()
    job = service.post_job(workloads=["checkpoint_resume"], survey=True, runs=2)
    printed = []
    while not printed or "Ctrl-C" not in printed[-1]:
        printed.append(service.process.stdout.readline())
        assert printed[-1], "serve ended"
    assert service.get(f"/v1/jobs/{job}")["state"] == "finished"
    _, _, text = service.request("GET", "/v1/matrix", headers={"Accept": "text/plain"})
    facts = text[text.index("WORKLOAD"):]
    assert "equals" in facts and "differs from" in facts
    assert facts in "".join(printed)
    assert service.stop() == 0


def resident_kb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def check_verdicts(service):
    """Every control was seen to vary, and nothing else was."""
    controls = {(w["workload"], v["name"]): v["control"]
                for w in service.get("/v1/workloads")["items"] if w["backend"] == "cpu"
                for v in w["variants"]}
    facts = service.get("/v1/matrix")["variants"]
    assert {(f["workload"], f["variant"]) for f in facts} == set(controls)
    for fact in facts:
        if fact["verdict"] != "unsupported":
            control = controls[fact["workload"], fact["variant"]]
            assert fact["verdict"] == ("varies" if control else "reproducible"), fact
    assert sum(f["verdict"] == "unsupported" for f in facts
               if not f["workload"].startswith("onednn_")) <= 1


def check_nothing_is_a_librarys(matrix):
    """On a CPU without libraries no code, count or agreement is a library's or a framework's."""
    for row in matrix["rows"]:
        if row["subject"] == "model":
            assert row["subject_name"] is None and not row["is_source"]
            continue
        bare = row["workload"] is None
        assert row["subject_name"] and row["subject_title"] == ("no model" if bare else row["subject_name"])
        for cell in row["cells"]:
            assert cell["code"] is None and cell["agrees"] is None and cell["evidence"]["runs"] == 0
            assert cell["state"] == "absent" or (cell["state"], cell["reason"]) == (
                ("no_model", "no workload stands for it" if not row["operations"] else
                 f"no model stands for it; /v1/operations?table={matrix['table']} has what "
                 "installed versions compute themselves") if bare
                else ("unmeasured", f"no {row['subject_name']} in this stack"))
    for count in matrix["counts"]:
        of = [cell for row in matrix["rows"] for cell in row["cells"] if cell["state"] not in ("absent", "no_model")
              and (row["subject"], row["subject_name"]) == (count["subject"], count["subject_name"])]
        assert count["cells"] == len(of)
        assert count["measured"] == sum(cell["state"] == "measured" for cell in of)
        assert count["as_documented"] == sum(cell["agrees"] is True for cell in of)
        assert count["subject"] == "model" or count["measured"] == count["as_documented"] == 0
    assert "reprod's own models" in matrix["headline"]
    assert matrix["headline"].endswith("took part") or matrix["headline"].endswith("took no part")


def check_no_line_is_a_librarys(service, matrix, table):
    """The same in the table as CSV, and line by line as text."""
    lines = list(csv.DictReader(io.StringIO(service.get(f"/v1/matrix.csv?table={table}"))))
    assert len(lines) == sum(len(row["cells"]) for row in matrix["rows"])
    for line in lines:
        if line["subject"] != "model":
            assert line["state"] in ("unmeasured", "no_model", "absent"), line
            assert line["code"] == line["agrees"] == "" and line["runs"] in ("", "0"), line
    text = service.get(f"/v1/matrix.txt?table={table}").split("WORKLOAD")[0]
    for name in {row["subject_name"] for row in matrix["rows"] if row["subject"] != "model"}:
        mine = [row for row in matrix["rows"] if row["subject_name"] == name and row["workload"]]
        # A table that is wider than a terminal goes on below with its other columns.
        shown = re.findall(rf"^  {re.escape(name)} +(.*)$", text, re.M)
        assert len(shown) >= len(mine)
        assert set(shown) <= {f"·  no {name} in this stack"}, (table, name, set(shown))


@pytest.mark.first
@pytest.mark.long
def test_survey_of_the_documents_rows(tmp_path):
    """A new database surveys by itself; then every cell is measured, and as documented."""
    service = Service(tmp_path).start()
    service.wait(lambda: service.get("/v1/jobs")["items"], "the survey's job")
    survey = service.get("/v1/jobs")["items"][0]
    assert survey["survey"]
    done = service.finish_job(survey["id"], 3600)
    assert done["progress"]["runs_failed"] == 0
    check_verdicts(service)
    for table, cells in (("documents-2020", 35), ("documents-2023", 272), ("pytorch", 141)):
        matrix = service.get(f"/v1/matrix?table={table}")
        models = [(row["workload"], cell) for row in matrix["rows"] for cell in row["cells"]
                  if row["subject"] == "model" and cell["state"] != "absent"]
        assert len(models) == cells
        for workload, cell in models:
            raises = cell["code"] == "NS!"
            assert cell["state"] == ("declared" if raises else "measured"), (table, workload, cell)
            assert cell["code"] == cell["documented"] or (
                cell["documented"] is None and "no code in the documents" in cell["note"]), (table, workload, cell)
            assert cell["agrees"] is (None if raises or cell["documented"] is None else True)
        check_nothing_is_a_librarys(matrix)
        check_no_line_is_a_librarys(service, matrix, table)
        assert service.get(f"/v1/matrix?table={table}&subject=model")["rows"] == [
            row for row in matrix["rows"] if row["subject"] == "model"]
    matrix = service.get("/v1/matrix?table=documents-2020&subject=model")
    codes = {row["workload"]: [c["code"] for c in row["cells"]][:4] for row in matrix["rows"]}
    assert codes["conv_wgrad"] == ["TCD or TDP", "TDO", "TDO", "TDO"]
    assert codes["ctc_loss"] == ["NS", "NS", "NS", "TDO"]
    assert codes["bias_add_bwd"] == ["TDP", "TDO", "TDO", "TDO"]
    if "san" not in str(BUILD):
        assert resident_kb(service.process.pid) < 24 * 1024
    assert service.stop() == 0

    service.start()  # the same environment: no second survey
    time.sleep(0.5)
    assert [j["id"] for j in service.get("/v1/jobs")["items"]] == [survey["id"]]
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0 and " 0 differ" in text, text


def test_help_and_version():
    def run(*words):
        return subprocess.run([str(BUILD / "reprod"), *words], capture_output=True, text=True)

    version = (ROOT / "VERSION").read_text().strip()
    assert run("version").stdout.strip() == f"reprod {version}"
    assert "serve" in run("--help").stdout
    assert run("serve", "--help").returncode == 0
    assert run("sreve").returncode == 2 and "sreve" in run("sreve").stderr
    assert run().returncode == 2


def test_backup_while_serving(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=2))
    copy = tmp_path / "copy" / "reprod.db"
    copy.parent.mkdir()
    command = [str(BUILD / "reprod"), "backup", "--data", str(service.data), str(copy)]
    assert subprocess.run(command).returncode == 0
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0  # no overwriting
    assert service.stop() == 0
    checked = subprocess.run([str(BUILD / "reprod"), "fsck", "--data", str(copy.parent)],
                             capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    assert os.path.getsize(copy) > 0
