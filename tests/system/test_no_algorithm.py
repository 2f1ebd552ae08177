"""A size that a variant cannot do: unsupported, with the reason, and not a failure."""
from service import Service

CAUSE = ("No algorithm worked!  The only deterministic one needs a multiple of 16 input channels")


def test_one_algorithm_is_not_enough(tmp_path):
    service = Service(tmp_path, options=["--no-survey"]).start()
    service.get("/v1/workloads")
    job = service.post_job(workloads=["conv_autotune"], sizes=["narrow"], iterations=1, runs=2,
                           variants=["single", "fixed"])
    service.finish_job(job)
    runs = {run["variant"]: run for run in service.items(f"/v1/runs?job={job}")}
    assert (runs["single"]["outcome"], runs["single"]["cause"]) == ("unsupported", CAUSE)
    assert runs["fixed"]["outcome"] == "completed"
    cell, other = (service.get(f"/v1/cells/{runs[name]['cell']}") for name in ("single", "fixed"))
    assert (cell["verdict"], cell["last_cause"]) == ("unsupported", CAUSE)
    assert CAUSE in service.get(f"/v1/cells/{cell['id']}.txt")
    assert other["verdict"] == "inconclusive" and other["last_cause"] is None
    assert service.stop() == 0
