"""A damaged database is noticed, and damage never becomes truth."""
import concurrent.futures
import hashlib
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess

import pytest

from service import BUILD, LIMIT, SELFTEST_WORKER, Service

# What changes at each start, or what nobody relies on (db/integrity/checksums.h).
# The last two say what fsck need not do again.
NO_FACTS = {"event", "commits", "sqlite_sequence", "judged", "accepted_loss", "cell_changes", "cell_verified"}
NO_FACT = {("environment", "first_seen_ms"), ("environment", "last_seen_ms")}
NOBODY = {"hosts": [{"name": "nobody", "launch": ["/bin/false"]}]}  # starts fast, runs nothing
PAGE = 4096


def facts(path):
    """Every value of every table, by table; indexes are not asked."""
    still = "" if path.with_name(path.name + "-wal").exists() else "&immutable=1"
    db = sqlite3.connect(f"file:{path}?mode=ro{still}", uri=True)
    found = {}
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in sorted(set(tables) - NO_FACTS):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        kept = ", ".join(name for name in columns if (table, name) not in NO_FACT)
        found[table] = sorted(map(repr, db.execute(f"SELECT {kept} FROM {table} NOT INDEXED")))
    db.close()
    return found


def copied(base, folder):
    shutil.copytree(base, folder / "data")
    return folder / "data" / "reprod.db"


def condition(service):
    """What /readyz says of the database; "" if nothing."""
    body = service.request("GET", "/readyz")[2]
    listed = {item["name"]: item["cause"] for item in body.get("conditions", [])}
    detail = body.get("detail", "")
    return listed.get("database", detail if "database: " in detail else "")


def looked(service):
    log = service.log.read_text()
    return "fsck: " in log and " recomputed, " in log


running = []


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    while running:
        service = running.pop()
        if service.process:
            service.kill()


def started(folder, options=(), config=None):
    """The service of FOLDER after its first look, or None with why it did not start."""
    service = Service(folder, options=["--no-survey", *options], config=config or NOBODY)
    try:
        service.start(ready=False)
    except AssertionError:
        return None, service.log.read_text()
    running.append(service)
    service.wait(lambda: condition(service) or looked(service), "the look")
    return service, condition(service)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """(a data folder that was closed, one whose service was killed)"""
    folder = tmp_path_factory.mktemp("base")
    service = Service(folder, worker=SELFTEST_WORKER, options=["--no-survey"],
                      config={"backup_every_hours": 0}).start()
    for workloads in (["selftest_pass", "selftest_wrong"], ["selftest_pass"], ["selftest_crash"]):
        service.finish_job(service.post_job(workloads=workloads, runs=3, iterations=3))
    shutil.copytree(service.data, folder / "copy")
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=4, iterations=2))
    service.kill()
    shutil.copytree(service.data, folder / "killed")
    service.start()
    assert service.stop() == 0
    assert service.fsck()[0] == 0
    return service.data, folder / "killed"


def edited(base, folder, sql):
    path = copied(base[0], folder)
    db = sqlite3.connect(path)
    assert db.execute(sql).rowcount > 0
    db.commit()
    db.close()
    return path


def test_a_run_edited_by_hand_is_no_evidence(base, tmp_path):
    edited(base, tmp_path, "UPDATE run SET digest = '0123456789abcdef0123456789abcdef' WHERE id = (SELECT min(id) FROM"
           " run WHERE outcome = 'completed' AND distinct_digests = 1)")
    service, cause = started(tmp_path)
    assert "its row is not what was stored" in cause and "--accept-loss" in cause
    run = cause.split("run ")[1].split(":")[0]
    assert service.get(f"/v1/runs/{run}")["damaged"] is True
    service.wait(lambda: "is in quarantine" in service.log.read_text(), "the quarantine")
    cell = cell_of(service, run)
    assert cell["verdict"] == "inconclusive" and run in cell["reason"]
    assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
    assert service.stop() == 0
    # It is said before the next look, too, until a person acknowledges it; the cell stays what it is.
    service.start(ready=False)
    assert run in condition(service)
    assert service.stop() == 0
    done = accept(service)
    assert done.returncode == 0 and "in quarantine stay there" in done.stdout
    service.log.unlink()
    service, cause = started(tmp_path)
    assert cause == "" and "which was acknowledged" in service.log.read_text()
    assert cell_of(service, run)["verdict"] == "inconclusive"
    assert service.stop() == 0


@pytest.mark.parametrize("table", ["case_input", "environment", "job_item"])
def test_rows_that_contradict_others(base, tmp_path, table):
    """Also behind the acknowledgement that they are gone: what still refers to them is told, until it is acknowledged,
    too.  Then the service is whole, and measures on."""
    edited(base, tmp_path, f"DELETE FROM {table}")
    service, cause = started(tmp_path)
    assert "--accept-loss" in cause, cause
    assert ("contradicts itself" in cause) == (table == "case_input"), cause
    assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
    assert 'reprod_condition{name="database"} 1' in service.get("/metrics")
    assert service.stop() == 0
    assert fsck_of(service.data / "reprod.db").returncode == 6
    done = accept(service)
    assert done.returncode == 0 and "acknowledged; the database keeps a list" in done.stdout, done
    for _ in range(2):
        found = fsck_of(service.data / "reprod.db")
        assert found.returncode == 0 and "which was acknowledged" in found.stdout, found
        service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
        running.append(service)
        service.finish_job(service.post_job(workloads=["selftest_pass"], runs=2))
        service.wait(lambda: looked(service), "the look")
        assert condition(service) == ""
        assert service.stop() == 0


def cell_of(service, run):
    return service.get(f"/v1/cells/{service.get(f'/v1/runs/{run}')['cell']}")


def accept(service):
    return subprocess.run([BUILD / "reprod", "fsck", "--accept-loss", "--data", service.data], capture_output=True,
                          text=True, timeout=LIMIT)


def damage_log(path):
    """Of the log of the database PATH: the last frame's commit, and with it everything behind."""
    log = path.with_name("reprod.db-wal")
    with open(log, "r+b") as file:
        file.seek(40 + 24)
        byte = file.read(1)
        file.seek(40 + 24)
        file.write(bytes([byte[0] ^ 1]))
    return digest_of(log.read_bytes())


def digest_of(data):
    return hashlib.sha256(data).hexdigest()


def kept_logs(path):
    """Which logs that lost commits are kept: their bytes' digests, by what follows the log's name."""
    return {kept.name.removeprefix("reprod.db-wal."): digest_of(kept.read_bytes())
            for kept in path.parent.glob("*.damaged*")}


def test_the_logs_of_two_losses_are_kept(base, tmp_path):
    """Also where nobody started the service between the loss and its acknowledgement."""
    path = copied(base[1], tmp_path)
    first = damage_log(path)
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"])
    assert accept(service).returncode == 0
    assert kept_logs(path) == {"damaged": first}
    service.start()
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3))
    service.kill()
    second = damage_log(path)
    assert second != first
    for _ in range(2):  # the second time, it is known
        service, cause = started(tmp_path)
        assert "commits that were acknowledged are missing" in cause
        assert service.stop() == 0
    assert kept_logs(path) == {"damaged": first, "damaged-2": second}
    assert service.log.read_text().count("it is kept as ") == 1
    assert "reprod.db-wal.damaged-2" in service.log.read_text()
    assert accept(service).returncode == 0
    assert fsck_of(path).returncode == 0


def test_the_latest_logs_of_losses_are_kept(base, tmp_path):
    path = copied(base[1], tmp_path)
    for number in (1, 2, 3, 5, 6, 7, 8, 9):
        path.with_name("reprod.db-wal.damaged" + (f"-{number}" if number > 1 else "")).write_text(str(number))
    path.with_name("reprod.db-wal.damaged-01").write_text("another's")
    whole = damage_log(path)
    service, _ = started(tmp_path)
    assert service.stop() == 0
    assert kept_logs(path) == {**{f"damaged-{number}": digest_of(b"%d" % number) for number in (2, 3, 5, 6, 7, 8, 9)},
                               "damaged-10": whole, "damaged-01": digest_of(b"another's")}
    assert f"{path}-wal.damaged was removed: " in service.log.read_text()


def test_commits_that_are_lost_are_missed(base, tmp_path):
    path = copied(base[1], tmp_path)
    before = len(facts(path)["run"])
    whole = damage_log(path)
    for _ in range(3):  # also the next start says so, and one without the witness
        service, cause = started(tmp_path)
        assert "commits that were acknowledged are missing" in cause
        path.with_name("reprod.db-seq").unlink(missing_ok=True)
        assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
        assert service.get("/v1/matrix")["rows"] is not None
        assert 'reprod_condition{name="database"} 1' in service.get("/metrics") or "database" in service.get("/metrics")
        assert service.stop() == 0
    assert kept_logs(path) == {"damaged": whole}
    code, text = service.fsck()
    assert code == 6 and "lost" in text, text
    done = accept(service)
    assert done.returncode == 0 and "are lost" in done.stdout
    assert "table lost_commits" not in text + done.stdout  # its total follows what notes a loss
    assert fsck_of(path).returncode == 0
    service.log.unlink()
    service, cause = started(tmp_path)
    assert cause == ""
    assert service.stop() == 0
    assert len(facts(path)["run"]) < before
    rows = sqlite3.connect(path).execute("SELECT what FROM accepted_loss").fetchall()
    assert any("are lost" in row[0] for row in rows)


def fsck_of(path):
    return subprocess.run([BUILD / "reprod", "fsck", "--data", path.parent], capture_output=True, text=True,
                          timeout=LIMIT)


def test_fsck_asks_the_witness(base, tmp_path):
    """Of a service that was killed: its log is taken away before anybody looked."""
    path = copied(base[1], tmp_path)
    path.with_name("reprod.db-wal").unlink()
    found = fsck_of(path)
    assert found.returncode == 6, found
    assert "commits that were acknowledged are missing" in found.stdout
    backup = subprocess.run([BUILD / "reprod", "backup", tmp_path / "backup.db", "--data", path.parent],
                            capture_output=True, text=True, timeout=LIMIT)
    assert backup.returncode == 6 and "are missing" in backup.stderr, backup
    assert not (tmp_path / "backup.db").exists()


@pytest.mark.parametrize("witnessed", [True, False])
def test_a_count_of_commits_that_is_taken_away_is_missed(base, tmp_path, witnessed):
    """It would look like a database that never had any, and a loss behind it like none."""
    path = edited(base, tmp_path, "DELETE FROM commits")
    if not witnessed:
        path.with_name("reprod.db-seq").unlink()
    found = fsck_of(path)
    assert found.returncode == 6 and "table commits is empty" in found.stdout, found
    backup = subprocess.run([BUILD / "reprod", "backup", tmp_path / "backup.db", "--data", path.parent],
                            capture_output=True, text=True, timeout=LIMIT)
    assert (backup.returncode == 6) == witnessed, backup
    for _ in range(2):
        service, cause = started(tmp_path)
        assert "the count of commits was taken out of the database" in cause, cause
        assert ("were durable" in cause) == witnessed
        assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
        assert service.get("/v1/matrix")["rows"] is not None
        assert service.stop() == 0
    done = accept(service)
    assert done.returncode == 0 and "the count of commits was taken away" in done.stdout
    assert fsck_of(path).returncode == 0
    service.log.unlink()
    service, cause = started(tmp_path)
    assert cause == ""
    assert service.stop() == 0
    assert sqlite3.connect(path).execute("SELECT lineage <> 0, number > 0 FROM commits").fetchall() == [(1, 1)]


@pytest.mark.parametrize("take", [lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_database_that_is_gone_is_not_begun_anew(base, tmp_path, take):
    path = copied(base[0], tmp_path)
    witness = path.with_name("reprod.db-seq")
    before = witness.read_bytes()
    take(path)
    done = subprocess.run([BUILD / "reprod", "serve", "--listen", "127.0.0.1:0", "--no-survey", "--data", path.parent],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 6, done
    assert "is gone or empty" in done.stderr and "reprod restore" in done.stderr, done.stderr
    assert witness.read_bytes() == before
    witness.unlink()  # as it is told
    service, cause = started(tmp_path)
    assert cause == "" and service.get("/v1/runs")["items"] == []
    assert service.stop() == 0


@pytest.mark.parametrize("table, sql", [
    ("case_key", "DELETE FROM case_key WHERE number = (SELECT case_key FROM cell LIMIT 1)"),
    ("cell", "DELETE FROM cell WHERE id = (SELECT min(id) FROM cell)"),
    ("event", "DELETE FROM event WHERE id = (SELECT max(id) FROM event)"),
    ("screening", "DELETE FROM screening WHERE number = (SELECT max(number) FROM screening)")])
def test_missing_rows_are_told_though_nothing_can_be_recomputed(base, tmp_path, table, sql):
    edited(base, tmp_path, sql)
    service, cause = started(tmp_path)
    assert f"table {table}: its rows are not those that were stored" in cause, cause
    assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
    assert service.stop() == 0


@pytest.mark.parametrize("make", [lambda path: path.unlink(), lambda path: path.write_bytes(b"nonsense" * 9)])
def test_a_witness_that_says_nothing_is_not_fatal(base, tmp_path, make):
    path = copied(base[0], tmp_path)
    witness = path.with_name("reprod.db-seq")
    assert os.stat(witness).st_mode & 0o777 == 0o600
    make(witness)
    service, cause = started(tmp_path)
    assert cause == "" and "whether commits were lost" in service.log.read_text()
    assert service.stop() == 0
    assert witness.read_text().startswith("reprod commit ")


def test_a_witness_that_is_taken_away_while_served_comes_back(base, tmp_path):
    path = copied(base[0], tmp_path)
    witness = path.with_name("reprod.db-seq")
    service, cause = started(tmp_path)
    assert cause == ""
    said = witness.read_text()
    witness.unlink()
    service.wait(witness.exists, "the witness")
    assert witness.read_text() >= said and os.stat(witness).st_mode & 0o777 == 0o600
    service.wait(lambda: "it was made anew" in service.log.read_text(), "the warning")
    witness.unlink()
    witness.mkdir()
    wrong = "witness of the last commit"
    service.wait(lambda: wrong in service.request("GET", "/readyz")[2]["detail"], "what is wrong")
    assert 'reprod_condition{name="storage"} 1' in service.get("/metrics")
    witness.rmdir()
    service.wait(lambda: wrong not in service.request("GET", "/readyz")[2]["detail"], "that it is well again")
    assert witness.read_text() >= said
    assert service.stop() == 0


def test_the_last_good_backup_is_offered_and_shown(base, tmp_path):
    path = copied(base[0], tmp_path)
    service, cause = started(tmp_path)
    assert cause == ""
    assert service.stop() == 0
    (backup,) = tmp_path.glob("data/reprod.db.backup-*Z")
    assert facts(backup) == facts(path)
    assert os.stat(backup).st_mode & 0o777 == 0o600
    with open(path, "r+b") as file:
        file.write(b"\xff" * PAGE)
    service, why = started(tmp_path)
    assert service is None and str(backup) in why and "--read-only" in why
    shown, cause = started(tmp_path, options=["--read-only", str(backup)])
    assert cause and "this service only reads" in cause and str(backup) in cause
    assert shown.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
    matrix = shown.get("/v1/matrix")
    assert any(shown.get(fact["href"])["evidence"]["runs"] > 0 for fact in matrix["variants"])
    assert "only reads" in shown.get("/v1/matrix.txt")
    assert shown.items("/v1/runs")
    assert shown.stop() == 0
    assert sorted(item.name for item in backup.parent.glob(backup.name + "*")) == [backup.name]
    done = subprocess.run([BUILD / "reprod", "restore", "--data", path.parent, backup], capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert sorted(item.name for item in backup.parent.glob(backup.name + "*")) == [backup.name]
    assert not [item.name for item in backup.parent.iterdir() if "restor" in item.name]
    service, cause = started(tmp_path)
    assert cause == "" and facts(path) == facts(backup)
    assert service.stop() == 0


def test_a_backup_is_one_file(base, tmp_path):
    copied(base[1], tmp_path)  # which is not closed
    done = subprocess.run([BUILD / "reprod", "backup", "--data", tmp_path / "data", tmp_path / "copy"],
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert [item.name for item in tmp_path.iterdir() if item.name != "data"] == ["copy"]


@pytest.mark.parametrize("command", [["restore"], ["serve", "--listen", "127.0.0.1:0", "--read-only"], ["backup"],
                                     ["fsck"]])
def test_an_empty_file_is_no_database(tmp_path, command):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "reprod.db").touch()
    (tmp_path / "empty").touch()
    argument = {"backup": [tmp_path / "copy"], "fsck": []}.get(command[0], [tmp_path / "empty"])
    done = subprocess.run([BUILD / "reprod", *command, *argument, "--data", folder], capture_output=True, text=True,
                          timeout=LIMIT)
    assert done.returncode == 6 and "is empty: there is no database in it" in done.stderr, done
    assert {item.name for item in tmp_path.iterdir()} == {"data", "empty"}
    assert {item.name for item in folder.iterdir()} == {"reprod.db"}


def test_backups_are_bounded_and_can_be_off(base, tmp_path):
    path = copied(base[0], tmp_path)
    for name in ("2001-01-01T00:00:00.000Z", "2002-01-01T00:00:00.000Z"):
        old = path.with_name(f"reprod.db.backup-{name}")
        old.write_bytes(b"old")
        os.utime(old, (1, 1))
    service, _ = started(tmp_path)
    assert service.stop() == 0
    kept = sorted(item.name for item in path.parent.glob("reprod.db.backup*"))
    assert len(kept) == 2 and kept[0].startswith("reprod.db.backup-2002")
    (path.parent / kept[1]).unlink()
    service, _ = started(tmp_path, config={**NOBODY, "backup_every_hours": 0})
    assert service.stop() == 0
    assert len(list(path.parent.glob("reprod.db.backup*"))) == 1


def damage(path, rng):
    """One bit or one page; what was done."""
    size = path.stat().st_size
    page = rng.random() < 0.3
    at = rng.randrange(size // PAGE) * PAGE if page else rng.randrange(size)
    with open(path, "r+b") as file:
        file.seek(at)
        was = file.read(PAGE if page else 1)
        file.seek(at)
        file.write(rng.randbytes(len(was)) if page else bytes([was[0] ^ 1 << rng.randrange(8)]))
    return f"{path.name}: {'page' if page else 'bit'} at {at}"


def one_case(base, folder, seed, expected):
    """("noticed", "harmless" or "repaired") and what was done; "UNNOTICED" if facts are others."""
    rng = random.Random(seed)
    killed = rng.random() < 0.3
    path = copied(base[killed], folder)
    done = damage(path.with_name("reprod.db-wal") if killed else path, rng)
    service, why = started(folder, config={**NOBODY, "backup_every_hours": 0 if seed % 2 else 24})
    if service is None or why:
        if service:
            service.kill()
        assert why, done
        return "noticed", done
    repaired = "built anew" in service.log.read_text()
    assert service.stop() == 0, done
    same = facts(path) == expected[killed]
    shutil.rmtree(folder)
    return ("repaired" if repaired else "harmless") if same else "UNNOTICED", done


def campaign(base, tmp_path, seeds):
    # A start changes nothing that is a fact; only what it says about hosts.
    expected = [facts(copied(folder, tmp_path / f"base{i}")) for i, folder in enumerate(base)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        cases = list(pool.map(lambda seed: (seed, *one_case(base, tmp_path / str(seed), seed, expected)), seeds))
    counts = {kind: len(list(group)) for kind, group in
              itertools.groupby(sorted(case[1] for case in cases))}
    print(json.dumps(counts))
    assert [case for case in cases if case[1] == "UNNOTICED"] == []
    return counts


def test_damage_anywhere_is_noticed_or_harmless(base, tmp_path):
    campaign(base, tmp_path, range(6, 18))


@pytest.mark.long
def test_damage_at_many_places(base, tmp_path):
    counts = campaign(base, tmp_path, range(int(os.environ.get("REPROD_DAMAGES", "240"))))
    assert counts["noticed"] > 0 and counts["harmless"] > 0
