"""The trainings show what slide 44 of GTC S9911 shows: different sums of weights without the
fixes, equal ones with them, and the partial recipe that is not enough."""
import re

import pytest

from service import Service


@pytest.fixture(scope="module", name="service")
def fixture_service(tmp_path_factory):
    shared = Service(tmp_path_factory.mktemp("trainings"), options=["--no-survey"]).start()
    yield shared
    assert shared.stop() == 0


def trained(service, workload, variant, times):
    job = service.post_job(workloads=[workload], variants=[variant], runs=times, iterations=1)
    service.finish_job(job, 300)
    group, = service.get(f"/v1/jobs/{job}/digests")["groups"]
    text = service.request("GET", f"/v1/jobs/{job}/digests.txt")[2]
    lines = re.findall(r"^  (-?\d+\.\d+) +\| (\d+\.\d+)$", text, re.MULTILINE)
    assert lines == [(run["weight_sum"], run["loss"]) for run in group["runs"]]
    assert len(lines) == times and "FINAL LOSS\n" in text, "one iteration has no time"
    return lines


@pytest.mark.parametrize("workload", ["train_cnn", pytest.param("train_cnn_large", marks=pytest.mark.long)])
def test_slide_44(service, workload):
    # Five runs give five lines; once in some thousand pairs two agree, so there are three more.
    assert len(set(trained(service, workload, "unordered", 8))) >= 5
    ordered = trained(service, workload, "ordered", 2)
    assert ordered[0] == ordered[1]


@pytest.mark.parametrize("workload", ["train_cnn", pytest.param("train_cnn_large", marks=pytest.mark.long)])
def test_cudnn_alone_leaves_bias_add(service, workload):
    assert len(set(trained(service, workload, "tcd", 5))) > 1
