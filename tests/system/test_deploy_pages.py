"""deploy/README.md: the commands in its boxes lead from nothing to the first answer.  `ssh` and `podman` are stand-ins, which
run what they are told on this machine, under the name of the host that they were told."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from service import BUILD, ROOT, Service
from test_bundle import make
from prometheus import free_port

PAGE = (ROOT / "deploy" / "README.md").read_text()
PROGRAMS = [BUILD / name for name in ("reprod", "reprod-worker", "reprod-launch", "libreprod-digest.so")]
NAMED = subprocess.run(["unshare", "--map-root-user", "--uts", "true"], capture_output=True).returncode == 0 if shutil.which("unshare") else False
ELSEWHERE = """set -eu
mkdir -p "$HOSTS/$host"
cd "$HOSTS/$host"
exec unshare --map-root-user --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
"""
STUBS = {
    # As sshd does: the words, joined, are a command for the shell of the host.
    "ssh": '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do case $1 in -o) shift 2;; -T) shift;; *) exit 255;; esac; done\n'
           "host=$1; shift\n" + ELSEWHERE,
    "podman": '#!/bin/sh\n[ "$1" = run ] || exit 125; shift; host=none\n'
              'while [ "${1#-}" != "$1" ]; do case $1 in --hostname=*) host=${1#*=};; --rm|-i|--network=none|--device=*);; *) exit 125;; esac; shift; done\n'
              'shift\nset -- "$IMAGE/reprod" "$@"\n' + ELSEWHERE,
}
pytestmark = [pytest.mark.skipif(not shutil.which("curl") or not shutil.which("jq"), reason="needs curl and jq")]
needs_names = pytest.mark.skipif(not NAMED, reason="needs user namespaces, for other names of hosts")


def boxes(name):
    return "\n".join(re.findall(rf"^```sh {name}\n(.*?)^```$", PAGE, re.M | re.S))


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    version = (ROOT / "VERSION").read_text().strip()
    code, said = make(folder, PROGRAMS, "--version", version)
    assert code == 0, said
    [made] = folder.glob("*.tar.gz")
    return made


def run(folder, name, archive=None, **more):
    """(exit status, what the boxes NAME printed); what they started is ended."""
    port = free_port()
    for stub, text in STUBS.items():
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / stub).write_text(text)
        (folder / "bin" / stub).chmod(0o755)
    if archive:
        shutil.copy(archive, folder)
    # The survey of everything takes minutes, and is not what is tried.
    script = boxes(name).replace("127.0.0.1:7357", f"127.0.0.1:{port}").replace(
        "reprod serve", f"reprod serve --no-survey --listen 127.0.0.1:{port}")
    environment = {"REPROD_SERVER": f"http://127.0.0.1:{port}", "HOSTS": str(folder / "hosts"), "TMPDIR": str(folder), "DRIVER_VERSION_FILE": "/nowhere",
                   "IMAGE": str(folder / "reprod-0.1.0-linux-x86_64"), **os.environ,
                   "PATH": f"{folder}/bin:{os.environ['PATH']}", **more}
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    said = []
    try:
        for line in process.stdout:
            said.append(line)
        code = process.wait(300)
    finally:
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    return code, "".join(said)


def ended(folder):
    deadline = time.monotonic() + 120
    while str(folder) in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout:
        assert time.monotonic() < deadline, "something of it goes on"
        time.sleep(0.05)


def test_every_box_is_tried():
    assert set(re.findall(r"^```sh (\w+)$", PAGE, re.M)) == {"workstation", "ssh", "container", "preflight", "beside"}
    assert not re.findall(r"^```(?!sh \w+$|$).*", PAGE, re.M), "another kind of box"
    version = (ROOT / "VERSION").read_text().strip()
    assert set(re.findall(r"reprod-([\d.]+)-linux", PAGE)) == {version}


def test_every_link_leads_somewhere():
    for name in re.findall(r"`((?:kubernetes|prometheus|gate|slurm)/[\w.-]+|node-check|stack-from-wheel|framework)`", PAGE):
        assert (ROOT / "deploy" / name).exists(), name
    heads = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^## (.*)$", PAGE, re.M)}
    assert set(re.findall(r"\(#([\w-]+)\)", PAGE)) <= heads


@pytest.mark.long
def test_a_workstation(tmp_path, archive):
    code, said = run(tmp_path, "workstation", archive)
    assert code == 0, said
    line = next(json.loads(each) for each in said.splitlines() if each.startswith("{"))
    assert line["verdict"] == "unverified" and "exit status 2" in said, "one CPU has no equals"
    assert "equal       conv_wgrad ordered" in said and "is ready, reprod" in said
    assert "Measured" in next(tmp_path.glob("reprod-*/matrix.txt")).read_text()
    ended(tmp_path)


@needs_names
@pytest.mark.long
def test_ssh_only(tmp_path, archive):
    code, said = run(tmp_path, "ssh", archive)
    assert code == 0, said
    assert re.search(r"equal +conv_wgrad ordered .* on cpu:gpu-01", said) and re.search(r"equal +conv_wgrad ordered .* on cpu:gpu-02", said)
    assert "unverified" in said and "exit status 2" in said, "nothing was screened"
    assert "cpu:gpu-02 on gpu-02" in said
    ended(tmp_path)


@needs_names
@pytest.mark.long
def test_a_container(tmp_path, archive):
    code, said = run(tmp_path, "container", archive)
    assert code == 0, said
    assert re.search(r"equal +conv_wgrad ordered .* on cpu:container", said), said
    ended(tmp_path)


def test_beside_a_service_that_runs(tmp_path):
    """A baseline and a preflight, a scrape, a health check."""
    sys.path.insert(0, str(ROOT / "tests" / "fleets"))
    from fleet_sim import Fleet
    own = Service(tmp_path / "service", options=["--no-survey"], config=Fleet(tmp_path, hosts=1, devices=3).config())
    own.start()
    own.finish_job(own.post_job(workloads=["imagined"], runs=2))
    (tmp_path / "bin").mkdir()
    (tmp_path / "reprod.json").write_text((tmp_path / "service" / "config.json").read_text())
    (tmp_path / "bin" / "reprod").write_text(
        f'#!/bin/sh\n[ "$1" != preflight ] || set -- "$@" --config {tmp_path}/reprod.json --workload imagined\nexec {BUILD}/reprod "$@"\n')
    (tmp_path / "bin" / "reprod").chmod(0o755)
    shutil.copy(ROOT / "deploy" / "node-check", tmp_path)
    for name in "preflight", "beside":
        script = boxes(name).replace("127.0.0.1:7357", f"127.0.0.1:{own.port}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "REPROD_SERVER": f"127.0.0.1:{own.port}"})
        assert done.returncode == 0, done.stderr
        if name == "preflight":
            assert done.stdout.splitlines()[0] == "passed" and len(done.stdout.splitlines()) == 4, done.stdout
        else:
            assert done.stdout.startswith("reprod_ready 1\n") and "host-0" in done.stdout
    assert own.stop() == 0
