"""reprod check where what answers, where it prints to, or one of its hosts is strange: it ends, and does not pass."""
import http.server
import json
import os
import sqlite3
import subprocess
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest

from service import BUILD

EQUAL, UNVERIFIED, UNREACHABLE = 0, 2, 3
ITEM = {"seq": 1, "workload": "w", "version": 1, "variant": "v", "size": "small", "dtype": "float32", "seed": "1", "device": "cpu:a",
        "stack": "cpu", "runs_wanted": 2, "is_control": False, "given_up_reason": None}
RUN = {"item": 1, "cell": 7, "environment": "e" * 32, "outcome": "completed", "cause": None, "digest": "d" * 32, "distinct_digests": 1}
CELL = {"id": 7, "verdict": "reproducible", "reason": "as it says"}
JOB = {"id": "J", "state": "finished", "request": {}, "progress": {}, "items": [ITEM]}


class Answers(http.server.BaseHTTPRequestHandler):
    """A service with one job, whose two runs are equal, but for what the test says."""

    def do_GET(self):
        self.server.asked += 1
        path = urllib.parse.urlparse(self.path)
        kind = path.path.split("/")[2]
        said = {"jobs": JOB, "runs": {"items": [RUN, RUN], "next": None}, "cells": CELL}[kind]
        changed = self.server.changed.get(kind, {})
        said = {**said, **(changed(urllib.parse.parse_qs(path.query)) if callable(changed) else changed)}
        self.say(200, json.dumps(said).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.say(201, json.dumps(JOB).encode())

    def say(self, status, body):
        whole = b"HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body
        for i in range(len(whole)) if self.server.slow and self.command == self.server.slow else ():
            time.sleep(1)
            self.wfile.write(whole[i:i + 1])
        self.wfile.write(whole)
        self.close_connection = True

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # who asked has left

    def log_message(self, *_):
        pass


@pytest.fixture
def answers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads, server.block_on_close = True, False
    server.changed, server.slow, server.asked = {}, None, 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def check(answers, *words, **more):
    """(exit status, standard output, standard error)"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("REPROD", "GITHUB_"))}
    done = subprocess.run([*more.pop("before", ()), str(BUILD / "reprod"), "check", *words,
                           *(["--workload", "w", "--server", f"http://127.0.0.1:{answers.server_port}"] if answers else [])],
                          text=True, timeout=300, env=environment, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **more})
    return done.returncode, done.stdout, done.stderr


def test_what_is_changed_below_passes_as_it_is(answers):
    code, said, errors = check(answers)
    assert (code, errors) == (EQUAL, "") and said.startswith("equal       w v (small, float32, seed 1) on cpu:a, cpu: as it says")


def test_a_report_that_reaches_nobody_is_no_pass(answers):
    with open("/dev/full", "w") as full:
        code, _, errors = check(answers, stdout=full)
    assert code == UNVERIFIED and "standard output: No space left on device" in errors
    code, _, errors = check(answers, before=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert code == UNVERIFIED and "standard output: Bad file descriptor" in errors


def test_runs_without_a_digest_are_not_equal(answers):
    answers.changed = {"runs": {"items": [{**RUN, "digest": None}] * 2}}
    code, said, _ = check(answers)
    assert code == UNVERIFIED and "its runs have no digest" in said


def test_pages_without_an_end(answers):
    answers.changed = {"runs": lambda query: {"next": "again"}}
    code, said, errors = check(answers)
    assert (code, said) == (UNREACHABLE, "") and "do not end" in errors and answers.asked < 9


@pytest.mark.parametrize("state", ["of tomorrow", None, 5])
def test_a_state_that_is_not_known_is_not_waited_in(answers, state):
    answers.changed = {"jobs": {"state": state}}
    code, said, errors = check(answers)
    assert (code, said) == (UNREACHABLE, "") and "is in a state that is not known" in errors


def test_what_xml_cannot_hold(answers, tmp_path):
    strange = "".join(map(chr, (0, 7, 0x1b, 0x7f, 0x85, 0x2028, 0xfffd, 0xfffe, 0xffff, 0x1f600))) + "]]><&\"' ::error::"
    answers.changed = {"cells": {"verdict": "inconclusive", "reason": strange.replace("\0", "")}, "jobs": {
        "items": [{**ITEM, "workload": strange.replace("\0", "")}]}}
    code, _, _ = check(answers, "--junit", str(tmp_path / "j.xml"))
    [[case]] = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert code == UNVERIFIED and "\\x7f\\u0085\\u2028\ufffd\\ufffe\\uffff\U0001f600]]><&\"'" in case[0].get("message")
    assert case.get("classname").endswith("\\ufffe\\uffff\U0001f600]]><&\"' ::error::")


@pytest.mark.first
@pytest.mark.long
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_an_answer_that_drips_in_is_none(answers, method):
    answers.slow = method
    code, said, errors = check(answers)
    assert (code, said) == (UNREACHABLE, "") and "did not answer within 60 s" in errors


def configured(folder, *hosts):
    (folder / "c.json").write_text(json.dumps({"hosts": [{"name": "a", "launch": [
        str(BUILD / "reprod"), "agent", "--stack", f"cpu={BUILD / 'reprod-worker'}"]}, *hosts]}))
    return ["--local", "--config", str(folder / "c.json"), "--workload", "reduce_sum", "--runs", "2", "--iterations", "1"]


def test_a_host_that_comes_late_is_waited_for(tmp_path):
    late = f"sleep 3; touch '{tmp_path}/late'; exec '{BUILD}/reprod' agent --stack none=/nowhere/worker"
    code, said, errors = check(None, *configured(tmp_path, {"name": "b", "launch": ["sh", "-c", late]}))
    assert code in (EQUAL, UNVERIFIED) and "(job 01" in said and (tmp_path / "late").exists(), errors


@pytest.mark.first
@pytest.mark.long
def test_a_host_that_does_not_come_is_missed(tmp_path):
    code, said, errors = check(None, *configured(tmp_path, {"name": "b", "launch": ["false"]}))
    assert (code, said) == (UNREACHABLE, "") and "host b is not online: " in errors


@pytest.mark.first
@pytest.mark.long
def test_a_database_that_is_damaged_is_not_waited_for(tmp_path):
    """The service takes the job, sees the damage, and measures nothing."""
    words = [*configured(tmp_path), "--data", str(tmp_path / "data")]
    code, said, _ = check(None, *words)
    assert code in (EQUAL, UNVERIFIED) and "(job 01" in said
    database = tmp_path / "data" / "reprod.db"
    with sqlite3.connect(database) as db:  # what is looked at, and no job is taken by
        pages = [row[0] for row in db.execute("SELECT rootpage FROM sqlite_schema WHERE name IN ('cell_time', 'cell_history')")]
    db.close()
    with open(database, "r+b") as file:
        for page in pages:
            file.seek((page - 1) * 4096)
            file.write(b"\xa5" * 4096)
    code, said, errors = check(None, *words, "--runs", "10000")
    assert (code, said) == (UNREACHABLE, "") and "is damaged" in errors


@pytest.mark.parametrize("closed", ["<&-", "<&- 2>&-"])
def test_a_service_of_its_own_where_descriptors_are_closed(tmp_path, closed):
    code, said, _ = check(None, *configured(tmp_path), before=["sh", "-c", f'exec "$@" {closed}', "sh"])
    assert code in (EQUAL, UNVERIFIED) and "(job 01" in said
