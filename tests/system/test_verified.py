"""What the service says of each CUDA variant: verified on a GPU, when, or not at all; and, as a level of
its own below that, what its PTX showed on a CPU."""
import json

import pytest

from service import BUILD, ROOT, Service
from test_api import matches

SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"
STACKS = [{"name": "cpu"}, {"name": "sim", "worker": str(SIMULATOR)}]

needs_simulator = pytest.mark.skipif(not SIMULATOR.exists(), reason="this flavour has no simulator")


# Later than any committed report.
OLDER, NEWER = "2999-11-01T10:00:00.000Z", "2999-11-22T10:00:00.000Z"


def committed():
    """{(workload, variant): (version, date)} of what the reports judged that are built in."""
    found = {}
    for path in sorted((ROOT / "tests" / "gpu" / "results").glob("*.json")):
        said = json.loads(path.read_text())
        for record in said["variants"]:
            key = (record["workload"], record["variant"])
            if record["outcome"] not in ("not_run", "unsupported") and said["date"] > found.get(key, (0, ""))[1]:
                found[key] = (record["version"], said["date"])
    return found


def report(*variants, date=NEWER, rehearsal=False):
    return {"v": 1, "rehearsal": rehearsal, "date": date, "gpu": "NVIDIA H200", "driver": "580.1",
            "worker_build": "abc", "variants": [
                {"workload": workload, "version": version, "variant": variant, "outcome": outcome}
                for workload, version, variant, outcome in variants]}


def write(folder, *reports):
    paths = []
    for number, content in enumerate(reports):
        paths.append(str(folder / f"report{number}.json"))
        (folder / f"report{number}.json").write_text(json.dumps(content))
    return paths


def verified(service, workload):
    [cuda] = [item for item in service.get(f"/v1/workloads/{workload}")["items"]
              if item["backend"] == "cuda"]
    return {variant["name"]: variant["verified"] for variant in cuda["variants"]}


@needs_simulator
def test_what_no_report_judged_is_unverified(start_service):
    service, judged = start_service(worker=None, config={"stacks": STACKS}), committed()
    executed = {(each["workload"], each["variant"]): (each["version"], each["outcome"])
                for each in json.loads((ROOT / "tests" / "ptx" / "results.json").read_text())["variants"]}
    assert executed
    for item in service.get("/v1/workloads")["items"]:
        if item["backend"] == "cuda":
            for variant in item["variants"]:
                said, wanted = variant["verified"], judged.get((item["workload"], variant["name"]))
                assert (said and (said["version"], said["date"])) == wanted, (item["workload"], variant)
                ptx, wanted = variant["ptx_on_cpu"], executed.get((item["workload"], variant["name"]))
                assert (ptx and (ptx["version"], ptx["outcome"])) == wanted, (item["workload"], variant)
            unjudged = [variant for variant in item["variants"] if (item["workload"], variant["name"]) not in judged]
            passed = sum(executed.get((item["workload"], variant["name"]), (0, ""))[1] == "passed"
                         for variant in unjudged)
            said = [f"of these {passed} passed as nvcc's PTX on a CPU, no GPU"] if passed else []
            if unjudged == item["variants"]:
                assert item["verification"] == ["unverified", *said]
            else:
                assert not unjudged or item["verification"][-1 - len(said):] == ["others unverified", *said]
        else:
            assert not any("verified" in variant or "ptx_on_cpu" in variant for variant in item["variants"])
            assert item["verification"] is None
    header, *lines = service.get("/v1/workloads.txt").splitlines()
    assert "GPU" in header
    assert not any("unverified" in line for line in lines if line.strip() and " cuda " not in line)


@needs_simulator
def test_reports_verify_the_version_that_ran(start_service, tmp_path):
    old = report(("bias_add_bwd", 1, "ordered", "failed"), ("reduce_sum", 1, "matmul", "passed"),
                 date=OLDER)
    new = report(("bias_add_bwd", 1, "ordered", "passed"), ("bias_add_bwd", 99, "patched", "passed"),
                 ("reduce_sum", 1, "matmul", "not_run"))
    service = start_service(worker=None, config={"stacks": STACKS,
                                                 "gpu_reports": write(tmp_path, new, old)})
    found = verified(service, "bias_add_bwd")
    assert (found["unordered"] or {}).get("date") == committed().get(("bias_add_bwd", "unordered"), (0, None))[1]
    assert found["ordered"] == {"date": NEWER, "gpu": "NVIDIA H200",
                                "driver": "580.1", "worker_build": "abc", "version": 1,
                                "outcome": "passed"}
    assert found["patched"]["outcome"] == "outdated" and found["patched"]["version"] == 99
    assert verified(service, "reduce_sum")["matmul"]["date"] == OLDER
    assert "ordered passed 2999-11-22, patched outdated 2999-11-22" in service.get("/v1/workloads.txt")
    schemas = service.get("/openapi.json")["components"]["schemas"]
    for variant in found.values():
        if variant:
            matches(variant, schemas["Verified"])
    [cuda] = [item for item in service.get("/v1/workloads/bias_add_bwd")["items"] if item["backend"] == "cuda"]
    for variant in cuda["variants"]:
        matches(variant["ptx_on_cpu"], schemas["PtxOnCpu"])


@pytest.mark.parametrize("content, message", [
    (report(rehearsal=True), "is a rehearsal, which verifies nothing"),
    (report(("bias_add_bwd", 1, "ordered", "splendid")), "/variants/0/outcome: must be passed, failed"),
    ({"v": 1}, "/rehearsal: is missing"),
])
def test_a_report_that_is_none_is_refused(tmp_path, content, message):
    service = Service(tmp_path / "service", config={"gpu_reports": write(tmp_path, content)})
    with pytest.raises(AssertionError):
        service.start(ready=False)
    assert service.refused == 2
    assert message in service.log.read_text()
