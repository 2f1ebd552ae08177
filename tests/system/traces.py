"""Runs with planted traces (tests/fixtures/trace_worker.py), for the tests of what is made of
them."""
from service import ROOT, Service

WORKER = ROOT / "tests" / "fixtures" / "trace_worker.py"


def trace_service(folder, **arguments):
    """Not started.  Of each workload, the first run in its life is A, the others are B."""
    folder.mkdir(parents=True, exist_ok=True)
    return Service(folder, options=["--no-survey"], **arguments, config={"stacks": [
        {"name": "traces", "worker": str(WORKER), "env": {"TRACE_FOLDER": str(folder)}}]})


def run_pair(service, workload, iterations=1):
    """A and B, as /v1/runs/{id} has them.  Every iteration records the same."""
    job = service.post_job(workloads=[workload], runs=2, iterations=iterations)
    service.finish_job(job)
    b, a = service.items(f"/v1/runs?job={job}")
    return service.get(f"/v1/runs/{a['id']}"), service.get(f"/v1/runs/{b['id']}")
