"""What the documents refer to is carried by some workload, with the version they give."""
import collections
import json
import os
import pathlib
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))

# The lists of the README of mid-2020.  Two ids are corrected: its commits end with the mark
# of a footnote, and the number of transformers is not that of the link behind it.
ISSUES = ["tensorflow issue %d" % number for number in (
    2652, 2732, 13932, 16889, 18096, 22398, 29101, 38151, 38185, 38197, 40514)]
ISSUES += ["keras issue 12800", "tensorpack issue 902", "transformers issue 5063"]
MERGED = {
    "TF 1.14": ["PR 24747", "PR 25269", "PR 25796", "commit c27909ea", "PR 29667", "PR 31389"],
    "TF 2.1": ["PR 31465", "PR 33483", "PR 34887", "PR 35006"],
    "TF 2.2": ["PR 33803", "PR 33900", "PR 34951", "commit e31955d9", "commit 8b7a3db0",
               "PR 38509"],
    "TF 2.3": ["PR 37377"],
    "TF 2.4": ["PR 39243"],             # open in 2020
    "TF 2.6": ["commit 9e096deb"],      # merged in 2.3, with a bug
    None: ["PR 32979", "PR 38089"],     # closed
}
OTHERS = {"pytorch PR 33795": "PyTorch 1.5", "horovod PR 1130": "Horovod 0.21"}


@pytest.fixture(scope="module", name="carried")
def fixture_carried():
    """id -> the versions that workloads give for it"""
    out = subprocess.run([BUILD / "reprod-worker", "--catalogue"], check=True,
                         capture_output=True, timeout=120).stdout
    found = collections.defaultdict(set)
    for line in out.splitlines():
        workload = json.loads(line)
        assert workload["references"], workload["workload"]
        for reference in workload["references"]:
            found[reference["id"]].add(reference["solved"])
    return found


@pytest.mark.parametrize("issue", ISSUES)
def test_issues(carried, issue):
    assert issue in carried


@pytest.mark.parametrize("identifier, version", [
    (f"tensorflow {name}", version) for version, names in MERGED.items() for name in names
] + list(OTHERS.items()))
def test_versions(carried, identifier, version):
    assert carried[identifier] and all(
        (said or "").split(",")[0] == (version or "") for said in carried[identifier])


def test_they_are_shown(start_service):
    service = start_service(worker=BUILD / "reprod-worker")
    workload, = service.get("/v1/workloads/bias_add_bwd")["items"]
    assert {"id": "tensorflow PR 31465", "solved": "TF 2.1",
            "title": "deterministic bias_add gradient by TF_DETERMINISTIC_OPS"} in workload["references"]
    text = service.request("GET", "/v1/workloads/bias_add_bwd.txt")[2]
    assert "\n  tensorflow PR 31465 (TF 2.1)\n" in text and "unordered (control: race)" in text
    assert service.request("GET", "/v1/workloads/bias_add.txt")[0] == 404
