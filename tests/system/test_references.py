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


# What the README of mid-2020 says of their states.
OPEN = {"tensorflow issue 16889", "tensorflow issue 18096", "tensorflow issue 29101",
        "tensorflow issue 38151", "tensorflow issue 38185", "tensorflow issue 38197",
        "tensorflow issue 40514", "tensorflow PR 39243", "transformers issue 5063", "horovod PR 1130"}
CLOSED = {"tensorflow PR 32979", "tensorflow PR 38089"}
NOTES = (29667, 31389, 32979, 33483, 34887, 35006, 38509)  # change nothing but a release note


@pytest.fixture(scope="module", name="references")
def fixture_references():
    """id -> the references of that id"""
    out = subprocess.run([BUILD / "reprod-worker", "--catalogue"], check=True,
                         capture_output=True, timeout=120).stdout
    found = collections.defaultdict(list)
    for line in out.splitlines():
        workload = json.loads(line)
        assert workload["references"], workload["workload"]
        for reference in workload["references"]:
            found[reference["id"]].append(reference)
    return found


@pytest.fixture(scope="module", name="carried")
def fixture_carried(references):
    """id -> the versions that workloads give for it"""
    return {name: {each["solved"] for each in many} for name, many in references.items()}


def test_one_document_is_the_same_everywhere(references):
    for name, many in references.items():
        assert len({(each["kind"], each["url"], each["state"]) for each in many}) == 1, name


def test_states_and_kinds_of_the_lists(references):
    listed = [*ISSUES, *OTHERS, *(f"tensorflow {name}" for names in MERGED.values() for name in names)]
    for name in listed:
        what = "issue" if " issue " in name else "commit" if " commit " in name else "pull request"
        before = ("open" if name in OPEN else "closed" if name in CLOSED or what == "issue" else "merged")
        if name in {f"tensorflow PR {number}" for number in NOTES}:
            what = "release note"
        each = references[name][0]
        assert (each["kind"], each["state"].split(",")[0]) == (what, f"{before} 2020-06"), name
    assert references["tensorflow PR 39243"][0]["state"] == "open 2020-06, merged 2023-07"


def test_addresses(references):
    for name, (each, *_) in references.items():
        kind, _, number = name.rpartition(" ")
        part = {"issue": "issues", "PR": "pull", "commit": "commit"}.get(kind.rpartition(" ")[2])
        if part:
            assert f"/{part}/{number}" in each["url"], name
        if part == "commit":
            assert len(each["url"].rpartition("/")[2]) == 40, name


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
    assert {"kind": "pull request", "id": "tensorflow PR 31465", "solved": "TF 2.1",
            "title": "deterministic bias_add gradient by TF_DETERMINISTIC_OPS", "state": "merged 2020-06",
            "url": "https://github.com/tensorflow/tensorflow/pull/31465"} in workload["references"]
    text = service.request("GET", "/v1/workloads/bias_add_bwd.txt")[2]
    assert "\n  tensorflow PR 31465: pull request, merged 2020-06, solved: TF 2.1\n" in text
    assert "\n    https://github.com/tensorflow/tensorflow/pull/31465\n" in text and "unordered (control: race)" in text
    assert service.request("GET", "/v1/workloads/bias_add.txt")[0] == 404
