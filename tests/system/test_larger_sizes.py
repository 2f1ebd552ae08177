"""Surveys on a GPU whose kernels are too short for a cost: the next size follows by itself, where it fits.
The GPU is the simulated one, and so is its clock: times follow from the memory that was allocated."""
import pytest

from service import SIMULATOR

LONG = "checkpoint_resume"  # 0.2 ms in small, 1.8 ms in medium
SHORT = "uninitialized_read"  # 0.4 ms in medium, and its next size does not fit
CASE = {"workloads": [LONG, SHORT], "variants": ["unordered", "ordered", "uncleared", "cleared"], "survey": True}
ONE = {"workloads": [SHORT], "survey": True}

pytestmark = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


@pytest.fixture
def gpu(start_service):
    def start(gib=8):
        env = {"REPROD_CUDASIM_GIB": str(gib), "REPROD_CUDASIM_NS_PER_KIB": "100", "REPROD_CUDASIM_SEED": "3"}
        return start_service(worker=None, options=["--no-survey"], config={
            "background": {"budget_percent": 0},
            "stacks": [{"name": "sim", "worker": str(SIMULATOR), "env": env}]})
    return start


def jobs(service):
    """Oldest first."""
    return list(reversed(service.items("/v1/jobs")))


def settle(service, count):
    service.wait(lambda: len(jobs(service)) >= count and
                 all(job["state"] in ("finished", "cancelled") for job in jobs(service)), f"{count} jobs")
    return jobs(service)


def sizes_of(service, job):
    runs = service.items(f"/v1/runs?job={job['id']}")
    assert {run["outcome"] for run in runs} == {"completed"}, runs
    return {(run["workload"], run["size"]) for run in runs}


def fact(service, workload, variant):
    facts = service.get("/v1/matrix")["variants"]
    return next(f for f in facts if (f["workload"], f["variant"]) == (workload, variant))


@pytest.mark.long
def test_the_next_size_follows_a_survey(gpu):
    service = gpu()
    service.finish_job(service.post_job(**CASE))
    first, medium = settle(service, 2)
    assert sizes_of(service, first) == {(LONG, "small"), (SHORT, "small")}
    assert sizes_of(service, medium) == {(LONG, "medium"), (SHORT, "medium")}
    assert {run["variant"] for run in service.items(f"/v1/runs?job={medium['id']}")} == set(CASE["variants"])
    assert medium["priority"] == "background" and medium["survey"]
    cost = fact(service, LONG, "ordered")["cost"]
    assert cost["size"] == "medium" and cost["against"] == "unordered" and cost["median"] > 0.5
    short = fact(service, SHORT, "cleared")
    assert short["cost"] is None and short["cost_note"]
    # What follows a survey does so at once: the job after another survey shows that nothing followed the last.
    service.finish_job(service.post_job(**ONE))
    service.finish_job(service.post_job(**ONE))
    assert len(settle(service, 4)) == 4
    service.kill()
    service.start()
    service.finish_job(service.post_job(**ONE))
    assert len(settle(service, 5)) == 5


@pytest.mark.long
def test_a_restart_loses_nothing(gpu):
    service = gpu()
    service.finish_job(service.post_job(**ONE))
    service.kill()
    service.start()
    assert len(settle(service, 2)) == 2


def test_what_does_not_fit_is_left_out(gpu):
    service = gpu(gib=1)
    service.finish_job(service.post_job(**ONE))
    service.finish_job(service.post_job(**ONE))
    assert len(settle(service, 2)) == 2


@pytest.mark.long
def test_what_is_cancelled_stays_so(gpu):
    service = gpu()
    service.finish_job(service.post_job(**CASE))
    service.wait(lambda: len(jobs(service)) >= 2, "the larger size")
    service.request("DELETE", f"/v1/jobs/{jobs(service)[1]['id']}")
    settle(service, 2)
    service.kill()
    service.start()
    service.finish_job(service.post_job(workloads=[SHORT], variants=["cleared"], runs=1, iterations=2))
    assert len(jobs(service)) == 3


@pytest.mark.long
def test_a_survey_that_is_cancelled_takes_nothing_from_another(gpu):
    service = gpu()
    first, second = service.post_job(**ONE), service.post_job(**ONE)
    service.request("DELETE", f"/v1/jobs/{second}")
    service.finish_job(first)
    assert [job["state"] for job in settle(service, 3)] == ["finished", "cancelled", "finished"]
    third, fourth = service.post_job(**ONE), service.post_job(**ONE)
    service.finish_job(third)
    service.request("DELETE", f"/v1/jobs/{fourth}")
    service.finish_job(service.post_job(**ONE))
    assert len(settle(service, 6)) == 6  # it was measured already


def test_an_ordinary_job_is_followed_by_none(gpu):
    service = gpu()
    service.finish_job(service.post_job(workloads=[SHORT], runs=5))
    service.finish_job(service.post_job(workloads=[SHORT], runs=5))
    assert len(jobs(service)) == 2
