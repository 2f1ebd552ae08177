"""Drift: two real stacks, and a report that names exactly the cases whose digests differ."""
import collections
import contextlib
import csv
import io
import os
import pathlib
import shutil
import sqlite3
import subprocess

import pytest

from service import BUILD, ROOT, SELFTEST_WORKER, Service
from test_api import matches

WORKLOADS = ["selftest_planted", "selftest_pass", "selftest_no_control", "reduce_sum"]
BUILDS = ["reduce_sum", "maxpool_bwd", "softmax_xent", "batchnorm_bwd", "conv_wgrad", "cumsum", "bincount"]
CPU = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
STACKS = [{"name": "old", "worker": str(SELFTEST_WORKER)},
          {"name": "new", "worker": str(SELFTEST_WORKER), "env": {"OPENBLAS_CORETYPE": "Planted"}},
          {"name": "one", "worker": str(SELFTEST_WORKER), "threads": 1},
          {"name": "two", "worker": str(SELFTEST_WORKER), "threads": 2}]


@pytest.fixture(scope="module")
def drifted(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("drift"), options=["--no-survey"],
                      config={"stacks": STACKS})
    service.start()
    jobs = [service.post_job(workloads=WORKLOADS, stacks=[stack["name"]], runs=2, iterations=2)
            for stack in STACKS]
    # Only one of the stacks has these.
    jobs.append(service.post_job(workloads=["ctc_loss"], stacks=["old"], runs=2, iterations=1))
    for job in jobs:
        service.finish_job(job)
    yield service
    assert service.stop() == 0, service.log.read_text()[-3000:]


def environment_of(service, stack):
    [environment] = {run["environment"] for run in service.items("/v1/runs")
                     if run["stack"] == stack and run["environment"]}
    return environment


def digests(service, environment):
    """From the runs alone: {(workload, variant): (completed runs, digests)}."""
    with contextlib.closing(sqlite3.connect(f"file:{service.data}/reprod.db?mode=ro", uri=True)) as db:
        rows = db.execute(
            "SELECT k.workload, k.variant, r.id, r.digest, x.digest FROM run r"
            " JOIN case_key k ON k.number = r.case_key JOIN environment e ON e.number = r.environment"
            " LEFT JOIN run_digest x ON x.run = r.id WHERE e.id = ? AND r.outcome = 'completed'",
            (environment,)).fetchall()
    runs, seen = collections.defaultdict(set), collections.defaultdict(set)
    for workload, variant, run, first, other in rows:
        runs[workload, variant].add(run)
        seen[workload, variant] |= {first, other} - {None}
    return {case: (len(runs[case]), seen[case]) for case in runs}


def cases_of(drift):
    return {(case["workload"], case["variant"]): case for group in drift["groups"] for case in group["cases"]}


def drift_of(service, before, after):
    answer = service.get(f"/v1/drift?from={before}&to={after}")
    matches(answer, {"$ref": "#/components/schemas/DriftList"})
    [drift] = answer["items"]
    return drift


def exactly(service, old, new):
    """The drift from stack OLD to NEW, which names exactly the cases whose digests differ; these by kind."""
    before, after = environment_of(service, old), environment_of(service, new)
    drift = drift_of(service, before, after)
    was, now = digests(service, before), digests(service, after)
    comparable = {case for case in was.keys() & now.keys()
                  if len(was[case][1]) == len(now[case][1]) == 1 and min(was[case][0], now[case][0]) > 1}
    changed = {case for case in comparable if was[case][1] != now[case][1]}
    cases = cases_of(drift)
    assert {case for case, found in cases.items() if found["bits"] == "changed"} == changed
    assert {case for case, found in cases.items() if found["bits"] == "same"} == comparable - changed
    assert drift["counts"]["same_bits"] == len(comparable - changed)
    return drift, changed, comparable - changed


@pytest.mark.parametrize("old, new, title", [
    ("old", "new", "no env.OPENBLAS_CORETYPE → env.OPENBLAS_CORETYPE Planted"),
    ("one", "two", "threads 1 → 2"),
    ("two", "one", "threads 2 → 1"),
])
def test_exactly_the_cases_whose_digests_differ(drifted, old, new, title):
    drift, _, _ = exactly(drifted, old, new)
    assert drift["title"] == title
    was, now = (digests(drifted, environment_of(drifted, stack)) for stack in (old, new))
    cases = cases_of(drift)
    turned = {case for case in was.keys() & now.keys()
              if len(was[case][1]) == 1 < len(now[case][1]) and not cases[case]["is_control"]}
    assert {case for case, found in cases.items() if found["kind"] == "varies_now"} == turned


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("make") or "fma" not in CPU, reason="needs make, and a processor with FMA")
def test_two_builds_of_the_worker(tmp_path):
    """Two real stacks: the worker as it is built, and built so that the compiler may contract a product and a sum."""
    fused = tmp_path / "fused"
    built = subprocess.run(["make", f"-j{os.cpu_count()}", "CUDA=0", f"B={fused}", "CC=gcc",
                            "NUMERICS=-ffp-contract=fast -mfma", str(fused / "reprod-worker")],
                           cwd=ROOT, capture_output=True, text=True, env={**os.environ, "MAKEFLAGS": ""})
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    stacks = [{"name": "built", "worker": str(BUILD / "reprod-worker"), "threads": 2},
              {"name": "fused", "worker": str(fused / "reprod-worker"), "threads": 2}]
    service = Service(tmp_path / "service", options=["--no-survey"], config={"stacks": stacks}).start()
    for stack in stacks:
        job = service.finish_job(service.post_job(stacks=[stack["name"]], workloads=BUILDS, runs=2, iterations=1))
        assert job["state"] == "finished"
    drift, changed, same = exactly(service, "built", "fused")
    assert drift["title"].startswith("worker ") and changed and same, drift["headline"]
    # Contraction changes what multiplies and adds, and nothing of what only adds or compares.
    assert {"softmax_xent", "batchnorm_bwd"} & {case[0] for case in changed}
    assert ("reduce_sum", "ordered") in same and ("maxpool_bwd", "ordered") in same
    assert service.stop() == 0


def test_what_was_planted_is_named(drifted):
    drift = drift_of(drifted, environment_of(drifted, "old"), environment_of(drifted, "new"))
    kinds = {case[1]: found["kind"] for case, found in cases_of(drift).items() if case[0] == "selftest_planted"}
    assert kinds["planted"] == "bits_changed" and kinds["turning"] == "varies_now"
    assert kinds["breaking"] == "fails_now"
    # The control varies: it has no bits, and is compared by no digest.
    assert kinds["unordered"] in ("varies", "cost_changed")
    assert cases_of(drift)["selftest_planted", "unordered"]["bits"] is None
    same = cases_of(drift)["selftest_planted", "ordered"]
    assert same["bits"] == "same" and same["proven"]
    alone = cases_of(drift)["selftest_no_control", "ordered"]
    assert alone["bits"] == "same" and not alone["proven"]
    order = [group["kind"] for group in drift["groups"]]
    assert order[:3] == ["varies_now", "fails_now", "bits_changed"]
    assert "1 changed: selftest_planted planted" in drift["headline"]
    assert "1 vary now: selftest_planted turning" in drift["headline"]


def test_text_and_csv_say_the_same(drifted):
    path = f"from={environment_of(drifted, 'old')}&to={environment_of(drifted, 'new')}"
    text = drifted.get(f"/v1/drift.txt?{path}")
    assert text.startswith("no env.OPENBLAS_CORETYPE → env.OPENBLAS_CORETYPE Planted\n")
    assert "\nChanged bits (1)\n  selftest_planted (our models)\n    planted  small" in text
    table = list(csv.DictReader(io.StringIO(drifted.get(f"/v1/drift.csv?{path}"))))
    [drift] = drifted.get(f"/v1/drift?{path}")["items"]
    assert {(line["workload"], line["variant"]): line["kind"] for line in table} == \
        {case: found["kind"] for case, found in cases_of(drift).items()}


def test_what_cannot_be_told_says_what_to_run(start_service):
    service = start_service(worker=None, config={"stacks": STACKS[:2]})
    for stack, runs in ("old", 2), ("new", 1):
        service.finish_job(service.post_job(workloads=["selftest_planted"], variants=["ordered", "planted"],
                                            seeds=[1, 7], stacks=[stack], runs=runs, iterations=1))
    service.finish_job(service.post_job(workloads=["selftest_pass"], stacks=["old"], runs=2, iterations=1))
    before, after = environment_of(service, "old"), environment_of(service, "new")
    drift = drift_of(service, before, after)
    found = [case for group in drift["groups"] for case in group["cases"]]
    assert {case["kind"] for case in found} == {"cannot_be_told_yet"}
    assert {case["bits"] for case in found} == {None} and drift["counts"]["same_bits"] == 0
    assert all(case["to_run"]["stacks"] == ["new"] for case in found)
    assert len(drift["to_run"]) == 3  # a job for each workload and seed
    for job in drift["to_run"]:
        service.finish_job(service.post_job(**job))
    told = drift_of(service, before, after)
    assert told["counts"]["cannot_be_told_yet"] == 0 and told["to_run"] == []
    assert told["counts"]["bits_changed"] == 2 and told["counts"]["same_bits"] >= 2


def test_a_host_that_changed_nothing(drifted):
    [host] = drifted.get("/v1/hosts")["items"]
    answer = drifted.get(f"/v1/drift?host={host['name']}&since=2020-01-01T00:00:00Z")
    assert answer["items"] == [] and answer["host"] == host["name"]
    assert "Nothing of this host was measured before that time." in \
        drifted.get(f"/v1/drift.txt?host={host['name']}&since=2020-01-01T00:00:00Z")


def test_mistakes_are_explained(drifted):
    old = environment_of(drifted, "old")
    near = old[:-1] + ("0" if old[-1] != "0" else "1")
    [host] = drifted.get("/v1/hosts")["items"]
    for query, kind, words in (
            (f"from={old}", "invalid-parameter", "to: must be given"),
            (f"from={old}&to={old}", "invalid-parameter", "is the same environment"),
            (f"from={old}&to={near}", "unknown-environment", f"did you mean '{old}'?"),
            (f"from={old}&to=x", "unknown-environment", "to"),
            (f"from={old}&to={environment_of(drifted, 'new')[:8]}", "unknown-environment",
             f"did you mean '{environment_of(drifted, 'new')}'?"),
            (f"from={old}&to=", "unknown-environment", "32 hexadecimal digits"),
            ("host=nowhere", "invalid-parameter", "since"),
            (f"host={host['name']}x&since=2020-01-01T00:00:00Z", "invalid-parameter",
             f"did you mean '{host['name']}'?"),
            (f"host={host['name']}&since=2120-01-01T00:00:00Z", "invalid-parameter", "future"),
            (f"host={host['name']}&from={old}&since=2020-01-01T00:00:00Z", "invalid-parameter", "either"),
            (f"fron={old}&to={old}", "unknown-parameter", "from")):
        status, _, problem = drifted.request("GET", f"/v1/drift?{query}")
        assert status == 422 and problem["type"] == f"/problems/{kind}", (query, problem)
        assert words in str(problem), (query, problem)
