"""What contradicts the promise of a library is listed, and nothing else."""
from service import SELFTEST_WORKER, Service


def broken(service, query=""):
    return service.get(f"/v1/findings{query}")["items"]


def test_a_broken_claim_is_listed(tmp_path):
    service = Service(tmp_path, worker=SELFTEST_WORKER, options=["--no-survey"]).start()
    assert broken(service) == []
    job = service.post_job(workloads=["selftest_claims"], runs=3, iterations=2)
    service.finish_job(job)
    [found] = broken(service)
    assert (found["workload"], found["variant"]) == ("selftest_claims", "broken")
    assert found["finding"] == "claims deterministic, seen to vary"
    assert (found["runs"], found["iterations"]) == (3, 6) and found["distinct_digests"] > 1
    cell = service.get(found["href"])
    assert cell["verdict"] == "varies" and cell["id"] == found["cell"]
    assert cell["evidence"]["claimed_runs"] == cell["evidence"]["runs"] == 3
    cells = {run["cell"] for run in service.items(f"/v1/runs?job={job}")
             if run["variant"] == "warned"}
    [warned] = [service.get(f"/v1/cells/{cell}") for cell in cells]
    assert warned["verdict"] == "inconclusive" and warned["evidence"]["warned_runs"] == 3
    assert "calls non-deterministic" in warned["reason"]
    assert len(service.get(found["digests"])["items"]) == found["distinct_digests"]
    assert {run["claim"] for run in service.items(f"/v1/runs?cell={found['cell']}")} == {"deterministic"}

    job = service.post_job(workloads=["selftest_claims"], seeds=["2"], runs=2, iterations=1)
    service.finish_job(job)
    assert [each["seed"] for each in broken(service)] == ["2", "1"]  # newest first
    page = service.get("/v1/findings?limit=1")
    assert [each["seed"] for each in page["items"]] == ["2"]
    assert [each["seed"] for each in broken(service, f"?limit=1&cursor={page['next']}")] == ["1"]
    lines = service.get("/v1/findings.txt").splitlines()
    assert "claims deterministic, seen to vary" in lines[1] and len(lines) == 3
    assert service.stop() == 0
    code, text = service.fsck()
    assert code == 0, text
