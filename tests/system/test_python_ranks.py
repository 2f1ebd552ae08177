"""Ranks in one trace: with a stand-in for torch.distributed, and the example with the real one, which make
check-pytorch installs."""
import json
import subprocess
import sys
import textwrap

import pytest

from service import Service
from test_python_pytorch import ENVIRONMENT, PYTHON, compare, python, records_of  # noqa: F401

EXAMPLE = PYTHON / "examples" / "train_ddp.py"
# Two processes that gather through files: what torch.distributed is for reprod_ranks.
STAND_IN = """
    import json, os, pickle, sys, time
    import reprod_probe as probe
    import reprod_ranks
    folder, number, odd = sys.argv[1], int(sys.argv[2]), sys.argv[3:]

    class Distributed:
        calls = 0

        def get_rank(self, group):
            return number

        def get_world_size(self, group):
            return 2

        def all_gather_object(self, found, value, group):
            self.calls += 1
            path = os.path.join(folder, "%d-%%d" % self.calls)
            with open(path % number + ".part", "wb") as file:
                pickle.dump(value, file)
            os.rename(path % number + ".part", path % number)
            for other in range(2):
                waited = 0
                while not os.path.exists(path % other):
                    waited += 1
                    if waited > 30000:
                        sys.exit("the other rank does not come")
                    time.sleep(0.01)
                with open(path % other, "rb") as file:
                    found[other] = pickle.load(file)

    distributed = Distributed()
    ranks = reprod_ranks.Ranks(distributed, None)
    for _ in probe.iterations():
        weight = 0.0
        for step in range(5):
            x = probe.monitor(float(step + number), "x", inputs=(step,))
            if odd == [str(number), str(step)]:
                x += 1e-3
            local = probe.monitor(2 * x, "local/gradient")
            both = [None, None]
            distributed.all_gather_object(both, local, None)
            ranks.exchange()
            weight = probe.monitor(weight + sum(both), "variable/weight/after")
            ranks.step()
        ranks.finish({"weight": weight}, weight)
    print(distributed.calls)
"""


def run_ranks(tmp_path, name, *odd, **more):
    """(events of the trace, what the ranks printed)"""
    program, folder = tmp_path / "program.py", tmp_path / f"{name}-meeting"
    program.write_text(textwrap.dedent(STAND_IN))
    folder.mkdir()
    processes = [subprocess.Popen([sys.executable, str(program), str(folder), str(number), *map(str, odd)], text=True,
                                  env={**ENVIRONMENT, "REPROD_TRACE": str(tmp_path / name) if number == 0 else "",
                                       **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for number in (0, 1)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    trace = tmp_path / name
    return [json.loads(line) for line in trace.read_text().splitlines()] if trace.exists() else [], \
        [out.strip() for out, _ in said]


def test_both_ranks_are_in_the_trace_in_their_order(tmp_path):
    events, _ = run_ranks(tmp_path, "one", REPROD_ITERATIONS="2", REPROD_PROBES="1")
    records = records_of(events)
    assert [record[1] for record in records if record[0] == 1] == 2 * [
        "rank0/x", "rank0/local/gradient", "rank1/x", "rank1/local/gradient",
        "rank0/variable/weight/after", "rank1/variable/weight/after"]
    assert [record[1] for record in records if record[0] == 5] == 2 * ["rank0/weights", "rank1/weights"]
    assert [event["event"] for event in events if event["event"] in ("start", "iteration", "end")] == [
        "start", "iteration", "iteration", "end"]
    assert events[-1]["outcome"] == "completed"
    # After the exchange both have read the same: what both recorded before.
    assert records[4][2] == records[5][2] != records[0][2]


@pytest.mark.parametrize("rank, step", [(1, 3), (0, 2)])
def test_the_rank_and_the_step_are_named(tmp_path, rank, step):
    run_ranks(tmp_path, "one", REPROD_PROBES="1")
    run_ranks(tmp_path, "two", rank, step, REPROD_PROBES="1")
    report = compare(tmp_path / "one", tmp_path / "two")
    assert report["root_cause"]["place"] == f"rank{rank}/local/gradient" and report["root_cause"]["step"] == step
    assert report["other_roots"] == [] and report["root_cause"] == report["first_difference"]


def test_what_is_requested_of_which_rank(tmp_path):
    events, _ = run_ranks(tmp_path, "one", REPROD_PROBES="1", REPROD_PROBE_NAMES="rank1/*",
                          REPROD_PROBE_STEPS="1-2", REPROD_CAPTURE="0:2:rank1/x")
    assert {record[:2] for record in records_of(events)} == {
        (step, "rank1/" + place) for step in (1, 2) for place in ("x", "local/gradient", "variable/weight/after")}
    assert [(event["role"], event["place"]) for event in events if event["event"] == "tensor"] == [
        ("in", "rank1/x"), ("out", "rank1/x")]


def test_a_capture_in_rank_1_waits_for_what_comes_before_it(tmp_path):
    """Only the place itself is recorded, and both ranks hash what it may have read."""
    events, _ = run_ranks(tmp_path, "one", REPROD_PROBES="0", REPROD_CAPTURE="0:3:rank1/local/gradient")
    whole, _ = run_ranks(tmp_path, "two", REPROD_PROBES="1")
    [record] = records_of(events)
    assert record in records_of(whole) and record[:2] == (3, "rank1/local/gradient")


def test_without_probes_the_ranks_exchange_nothing(tmp_path):
    events, calls = run_ranks(tmp_path, "one", REPROD_PROBES="0")
    assert [event["event"] for event in events] == ["start", "iteration", "end"]
    assert calls == ["6", "6"]  # join() and the program's own
    _, calls = run_ranks(tmp_path, "two", REPROD_TRACE="")
    assert calls == ["6", "6"]
    _, calls = run_ranks(tmp_path, "three", REPROD_PROBES="1", REPROD_PROBE_STEPS="1-2")
    assert calls == ["10", "10"]


def example(python, tmp_path, name, variant, **more):
    done = subprocess.run([python, str(EXAMPLE)], capture_output=True, text=True, env={
        **ENVIRONMENT, "REPROD_VARIANT": variant, "REPROD_TRACE": str(tmp_path / name), **more})
    return tmp_path / name, done


def test_the_example_names_rank_layer_and_step(python, tmp_path):
    paths = [example(python, tmp_path, name, variant)[0] for name, variant in (
        ("one", "seeded"), ("two", "seeded"), ("three", "forgotten_seed"))]
    assert compare(*paths[:2])["verdict"] == "equal"
    report = compare(*paths)
    assert report["root_cause"]["place"] == "rank1/dropout/forward" and report["root_cause"]["step"] == 3
    assert report["root_cause"] == report["first_difference"]
    events = [json.loads(line) for line in paths[0].read_text().splitlines()]
    assert events[0]["environment"]["ranks"] == 2 and events[-1]["outcome"] == "completed"
    # Replicas stay the same, in both.
    for path in paths:
        events = [json.loads(line) for line in path.read_text().splitlines()]
        weights = [record[3] for record in records_of(events) if record[1].endswith("/weights")]
        assert len(weights) == 2 and len(set(weights)) == 1
        averaged = {record[1][len("rank0/"):]: set() for record in records_of(events) if "/allreduced/" in record[1]}
        for step, place, _, out in records_of(events):
            if "/allreduced/" in place:
                averaged[place[len("rank0/"):]].add((step, out))
        assert {len(found) for found in averaged.values()} == {6}


def test_the_example_without_probes_computes_the_same(python, tmp_path):
    results = []
    for probes in "01":
        path, done = example(python, tmp_path, "trace" + probes, "seeded", REPROD_PROBES=probes, REPROD_ITERATIONS="2")
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in path.read_text().splitlines()]
        results.append([event["digest"] for event in events if event["event"] == "iteration"])
    assert results[0] == results[1] and len(set(results[0])) == 1


def test_the_service_localises_rank_layer_and_step(python, tmp_path):
    workload = {"name": "ddp", "command": [python, str(EXAMPLE)], "subject": "framework", "subject_name": "PyTorch",
                "files": [str(PYTHON / "reprod_probe.py"), str(PYTHON / "reprod_ranks.py")],
                "variants": [{"name": "forgotten_seed", "control": True, "kind": "entropy"}, {"name": "seeded"}]}
    service = Service(tmp_path, options=["--no-survey"], config={"workloads": [workload]}).start()
    try:
        job = service.post_job(workloads=["ddp"], variants=["forgotten_seed"], localise=True, runs=2, runs_max=8,
                               iterations=1)
        service.finish_job(job, 600)
        found = service.get(f"/v1/jobs/{job}/localisation")
        assert (found["state"], found["place"], found["step"]) == ("localised", "rank1/dropout/forward", 3), found
        assert found["difference"]["tensors"][0]["signature"]["differ"]
        seeded = service.post_job(workloads=["ddp"], variants=["seeded"], runs=2, iterations=1)
        service.finish_job(seeded, 600)
        assert len({run["digest"] for run in service.items(f"/v1/runs?job={seeded}")}) == 1
    finally:
        assert service.stop() == 0


def test_a_variant_that_the_example_lacks_ends_both_ranks(python, tmp_path):
    path, done = example(python, tmp_path, "trace", "loud")
    assert done.returncode == 0, done.stderr
    end = json.loads(path.read_text().splitlines()[-1])
    assert end["outcome"] == "unsupported" and "there is no variant 'loud'" in end["cause"]
