"""Iterations that show the same are told by the agent in one event, and nothing else follows from that."""
import contextlib
import json
import shutil
import signal
import sqlite3

import pytest

from agent import Agent
from service import BUILD, LIMIT, ROOT, SELFTEST_WORKER

FIXTURE = ROOT / "tests" / "fixtures" / "external" / "iterations.py"
SHOWN = {"digest": "d", "weight_sum": "s", "loss": None, "algorithm": "tree"}
GOOD = ["varies", "steady", "mixed", "losses", "algorithms", "unknown_member"]
# variant: the outcome of its run, and what the cause says
BAD = {"nan": ("invalid", "iteration 4: weight_sum is NaN"),
       "all_nan": ("invalid", "iteration 0: weight_sum is NaN"),
       "no_loss": ("invalid", "iteration 4: loss is missing"),
       "negative": ("invalid", "iteration 4: ms must be a number"),
       "skips": ("invalid", "iteration 5 came where 4 was due"),
       "one_sum": ("invalid", "have the same digest and another weight sum"),
       "garbage": ("invalid", "line 5: not a JSON object"),
       "too_many": ("invalid", "more iterations than the 10"),
       "after_end": ("invalid", "an event after end: 'iteration'"),
       "killed": ("crashed", "SIGKILL"),
       "says_several": ("invalid", "0 of 10 iterations")}
# What may differ between two runs of the same, and what else is counted anew in each service.
OWN = {"id", "job", "item", "case_key", "intent_ms", "started_ms", "finished_ms", "pid", "process_start", "boot_id",
       "environment", "cell", "libraries", "wall_ns", "max_rss_kb", "sum"}


def iteration(i, **changed):
    return {"event": "iteration", "i": i, **SHOWN, "ms": 1.5, **changed}


def says(*events):
    return "cat >&3 <<'END'\n" + "".join(json.dumps(event) + "\n" for event in events) + "END\n"


def start(agent, **members):
    agent.hello()
    agent.send({"command": "run", "run": "R1", "stack": "s", "device": "d0", "timeout_ms": LIMIT * 1000,
                "arguments": {"iterations": 3}, **members})
    assert agent.event()["event"] == "started"


def told(script, body, **members):
    """What an agent says of a run that does BODY, up to its exited event."""
    with Agent(("s", script(body))) as agent:
        start(agent, **members)
        events = []
        while not events or events[-1]["event"] != "exited":
            events.append(agent.event())
        return events


def several(first, *ms):
    return {"event": "iterations", "run": "R1", "i": first, **SHOWN, "ms": list(ms)}


def alone(event):
    return {"event": "worker", "run": "R1", "data": event}


@pytest.mark.flavour
def test_only_a_service_that_understands_it_is_told_so(script):
    body = says(*(iteration(i, ms=i / 3) for i in range(3)))
    for older in ({}, {"merge_iterations": False}):
        assert told(script, body, **older)[:-1] == [alone(iteration(i, ms=i / 3)) for i in range(3)]
    assert told(script, body, merge_iterations=True)[:-1] == [several(0, 0.0, 1 / 3, 2 / 3)]


@pytest.mark.flavour
def test_everything_stays_in_its_order(script):
    check, end = {"event": "check", "result": "known"}, {"event": "end", "outcome": "completed"}
    forged = {**several(3, 1.5), "event": "iterations"}
    body = says(iteration(0), iteration(1), check, iteration(2), forged, iteration(3), iteration(4)) + \
        "echo garbage >&3\n" + says(iteration(5), end)
    *events, exited = told(script, body, merge_iterations=True)
    assert [e["event"] for e in events] == ["iterations", "worker", "worker", "worker", "iterations", "garbage",
                                            "worker", "worker"]
    assert events[:5] == [several(0, 1.5, 1.5), alone(check), alone(iteration(2)), alone(forged), several(3, 1.5, 1.5)]
    assert events[6:] == [alone(iteration(5)), alone(end)]
    assert exited["exit_code"] == 0


@pytest.mark.flavour
def test_a_slow_run_shows_its_progress(script):
    """It goes on while what it showed is told."""
    with Agent(("s", script(says(iteration(0), iteration(1)) + "exec sleep 1000"))) as agent:
        start(agent, merge_iterations=True)
        assert agent.event() == several(0, 1.5, 1.5)
        agent.send({"command": "cancel", "run": "R1"})
        assert agent.event()["reason"] == "cancelled"


@pytest.mark.flavour
@pytest.mark.parametrize("last", ["kill -KILL $$", "exit 7", "exec sleep 1000"])
def test_what_is_held_is_told_before_the_end(script, last):
    """However the run ends: by itself, or because the agent does."""
    with Agent(("s", script(says(iteration(0), iteration(1)) + last))) as agent:
        start(agent, merge_iterations=True)
        if "sleep" in last:
            agent.process.send_signal(signal.SIGINT)
        events = [agent.event()]
        while events[-1]["event"] != "exited":
            events.append(agent.event())
        assert events[:-1] in ([several(0, 1.5, 1.5)], [] if "sleep" in last else None)


def stored(service, jobs):
    """{variant: what is stored of its run, but for times of the clock and names}"""
    found = {}
    with contextlib.closing(sqlite3.connect(f"file:{service.data}/reprod.db?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        for variant, job in jobs.items():
            [run] = service.items(f"/v1/runs?job={job}")
            [row] = database.execute("SELECT * FROM run WHERE id = ?", [run["id"]]).fetchall()
            digests = database.execute("SELECT digest, iterations, first_iteration FROM run_digest WHERE run = ? "
                                       "ORDER BY digest", [run["id"]]).fetchall()
            found[variant] = ({key: row[key] for key in row.keys() if key not in OWN}, [tuple(d) for d in digests])
    return found


@pytest.fixture
def results(start_service, tmp_path):
    """A function that runs all variants once: what is stored, and what the agent said."""
    def run(name, change):
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(FIXTURE, folder / "iterations.py")
        (folder / "agent.json").write_text(json.dumps({
            "stacks": [{"name": "cpu", "worker": str(SELFTEST_WORKER)}],
            "workloads": [{"name": "planted", "command": ["python3", "iterations.py"], "subject": "framework",
                           "subject_name": "own", "directory": str(folder),
                           "variants": [{"name": v, "control": v == "varies"} for v in [*GOOD, *BAD]]}]}))
        launch = f"{change} | {BUILD / 'reprod'} agent --config {folder / 'agent.json'} | tee {folder / 'said'}"
        service = start_service(worker=None, config={"hosts": [{"name": "h", "launch": ["sh", "-c", launch]}]})
        jobs = {v: service.post_job(workloads=["planted"], variants=[v], runs=1, iterations=10, seeds=[5])
                for v in [*GOOD, *BAD]}
        for job in jobs.values():
            service.finish_job(job)
        said = [json.loads(line) for line in (folder / "said").read_text().splitlines()]
        return stored(service, jobs), said
    return run


@pytest.mark.long
def test_what_is_stored_is_the_same(results):
    """An older agent, or an older service, merges nothing: here the command loses what asks for it."""
    merged, said = results("merged", "cat")
    single, said_singly = results("single", "sed -u 's/\"merge_iterations\":true,*//; s/,}/}/'")
    assert any(event["event"] == "iterations" for event in said)
    assert not any(event["event"] == "iterations" for event in said_singly)
    assert merged == single
    for variant in GOOD:
        assert merged[variant][0]["outcome"] == "completed", merged[variant]
        assert merged[variant][0]["iterations"] == 10
    for variant, (outcome, cause) in BAD.items():
        assert merged[variant][0]["outcome"] == outcome and cause in merged[variant][0]["cause"], merged[variant]
    assert [each["distinct_digests"] for each, _ in map(merged.get, GOOD)] == [10, 1, 3, 2, 1, 1]
