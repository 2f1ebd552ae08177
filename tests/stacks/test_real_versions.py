"""Real versions of cuDNN side by side, without a GPU: downloads some 1.5 GB (make check-stacks).

PIP_FIND_LINKS=FOLDER PIP_NO_INDEX=1 takes the wheels from a folder instead."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from service import BUILD, ROOT, Service  # noqa: E402

SCRIPT = ROOT / "deploy" / "stack-from-wheel"
WORKER = BUILD / "reprod-worker-cuda"
TRY = BUILD / "tests" / "try-libraries"
VERSIONS = {"8.9.7.29": ["--with-dependencies"], "9.12.0.46": []}


@pytest.fixture(scope="module")
def config():
    """A configuration with a stack a version, as the script wrote it.  2 GB: gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="reprod-stacks-") as folder:
        file = pathlib.Path(folder) / "reprod.json"
        for version, more in VERSIONS.items():
            subprocess.run([sys.executable, str(SCRIPT), "--worker", str(WORKER), "--into", folder,
                            "--config", str(file), "--version", version, *more], check=True)
        yield json.loads(file.read_text())


def short(version):
    return ".".join(version.split(".")[:3])


def test_versions_are_stacks_side_by_side(config, tmp_path):
    service = Service(tmp_path, options=["--no-survey"], config=config)
    service.start()
    try:
        stacks = {stack["name"]: stack for stack in service.get("/v1/stacks")["items"]}
    finally:
        assert service.stop() == 0
    print(json.dumps(stacks, indent=1))
    assert set(stacks) == {"cpu", "cuda"} | {f"cudnn-{short(version)}" for version in VERSIONS}
    for version in VERSIONS:
        stack = stacks[f"cudnn-{short(version)}"]
        assert stack["versions"]["cudnn"] == short(version) and stack["problems"] == {}
        assert stack["worker"] == stacks["cuda"]["worker"]
        assert bool(stack["devices"]) != bool(stack["cause"])
    assert stacks["cudnn-8.9.7"]["versions"]["cublas"].startswith("12 build ")


@pytest.mark.parametrize("version", list(VERSIONS))
def test_every_descriptor_is_made(config, version):
    [stack] = [s for s in config["stacks"] if s["name"] == f"cudnn-{short(version)}"]
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": stack["library_path"]}
    done = subprocess.run([str(TRY)], env=env, capture_output=True, text=True, timeout=300)
    print(done.stdout)
    lines = done.stdout.splitlines()
    assert lines[:6] == [f"cudnn: {short(version)}", "convolution: 8 32 14 14",
                         "tensor: 100352 bytes", "pooling: 8 16 7 7", "logits: 46400 bytes",
                         "ctc: ok"]
    assert lines[6] == "handle: ok" or "CUDNN_STATUS_NOT_INITIALIZED" in lines[6]
