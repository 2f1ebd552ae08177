"""A stack whose worker could not say what it is: told, not taken for a typing error, and used
once it can, without anybody starting anything again."""
import json
import os
import pathlib
import shutil
import subprocess

from service import BUILD, ROOT, SELFTEST_WORKER


def flawed(folder):
    """A worker that cannot say what it is until the file `well` is there."""
    worker, well = folder / "worker", folder / "well"
    worker.write_text(f'#!/bin/sh\ncase "$1" in --probe|--catalogue) [ -e {well} ] || {{ echo "no driver" >&2; exit 3; }};; '
                      f'esac\nexec {SELFTEST_WORKER} "$@"\n')
    worker.chmod(0o755)
    return worker, well


def condition(service):
    body = service.request("GET", "/readyz")[2]
    return {each["name"]: each["cause"] for each in body["conditions"]}.get("hosts", "")


def test_a_stack_recovers_by_itself(start_service, tmp_path):
    worker, well = flawed(tmp_path)
    service = start_service(worker=None, config={"stacks": [
        {"name": "cpu", "worker": str(BUILD / "reprod-worker")},
        {"name": "flawed", "worker": str(worker)}]})
    words = "stack flawed is not usable, and is asked again: --probe: exit status 3: no driver"
    assert words in condition(service)
    [host] = service.get("/v1/hosts")["items"]
    assert words in host["cause"] and host["online"]
    assert "stack 'flawed' is not usable" in service.log.read_text()
    assert 'reprod_condition{name="hosts"} 1' in service.get("/metrics")

    for request in ({"workloads": ["selftest_pass"]}, {"stacks": ["flawed"]}):
        status, headers, body = service.request("POST", "/v1/jobs", {**request, "runs": 2})
        assert status == 503 and headers["Retry-After"], body
        assert "stack flawed of host" in body["detail"] and "no driver" in body["detail"], body
        assert "there is no" in body["detail"]
    # What is wrong in another way, or is there, is answered as ever.
    status, _, body = service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"], "runs": -1})
    assert status == 422, body
    service.finish_job(service.post_job(workloads=["reduce_sum"], variants=["ordered"], runs=2))

    well.write_text("")
    service.wait(lambda: condition(service) == "", "the stack")
    assert 'reprod_condition{name="hosts"} 0' in service.get("/metrics")
    assert service.get("/v1/hosts")["items"][0]["cause"] is None
    service.finish_job(service.post_job(workloads=["selftest_pass"], stacks=["flawed"], runs=2))
    log = service.log.read_text()
    assert log.count("stack 'flawed' is not usable") == 1 and log.count("stack 'flawed' is usable again") == 1
    assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_psss"]})[0] == 422


def test_the_only_stack_recovers(start_service, tmp_path):
    """External workloads follow it: they run on its devices."""
    worker, well = flawed(tmp_path)
    (tmp_path / "service0" / "answers" / "state").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "fixtures" / "external" / "answers.py", tmp_path / "service0" / "answers")
    service = start_service(worker=worker, ready=False, config={"workloads": [
        {"command": ["python3", "answers.py"], "directory": "answers", "subject": "framework", "name": "answers",
         "subject_name": "own", "variants": [{"name": "unordered", "control": True}, {"name": "honest"}]}]})
    service.wait(lambda: "no driver" in json.dumps(service.request("GET", "/readyz")[2]), "the fault")
    status, _, body = service.request("GET", "/readyz")
    assert status == 503 and "no device is online" in json.dumps(body), body
    assert service.request("POST", "/v1/jobs", {"workloads": ["selftest_pass"]})[0] == 503
    well.write_text("")
    service.wait(lambda: service.request("GET", "/readyz")[0] == 200, "recovery")
    for name in ("selftest_pass", "answers"):
        job = service.finish_job(service.post_job(workloads=[name], runs=2))
        assert job["state"] == "finished" and job["progress"]["runs_done"] >= 4, job
        assert all(run["outcome"] == "completed" for run in service.items(f"/v1/runs?job={job['id']}"))


def shell(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_who_survived_sigkill_is_not_asked_again(start_service, tmp_path):
    """It would leave one more each time.  Another stack shows that such are asked at all."""
    spared, asked, shim = tmp_path / "spared", tmp_path / "asked", tmp_path / "spared.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, pathlib.Path(__file__).with_name("spared.c")],
                   check=True)
    stuck = shell(tmp_path / "stuck", f'echo "stuck $1" >> {asked}\n[ "$1" = --probe ] || exit 3\n'
                  f"trap '' TERM\necho $$ > {spared}.new; mv {spared}.new {spared}\nexec sleep 1000")
    failing = shell(tmp_path / "failing", f'echo "failing $1" >> {asked}\nexit 3')
    service = start_service(worker=None, env={
        "LD_PRELOAD": str(shim), "SPARED": str(spared),
        "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}, config={"stacks": [
            {"name": "cpu", "worker": str(BUILD / "reprod-worker")},
            {"name": "stuck", "worker": stuck, "probe_seconds": 1},
            {"name": "failing", "worker": failing}]})

    def count(name):
        return asked.read_text().splitlines().count(f"{name} --probe")
    assert "stack 'stuck' is not usable: --probe: stuck" in service.log.read_text()
    before, others = count("stuck"), count("failing")
    service.wait(lambda: count("failing") >= others + 3, "others that are asked again")
    assert count("stuck") == before == 1
    assert os.path.exists(f"/proc/{spared.read_text().strip()}")
    service.finish_job(service.post_job(workloads=["reduce_sum"], variants=["ordered"], runs=2))
