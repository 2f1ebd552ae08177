"""The short form of make check-frameworks: the smallest real wheels, from the package registry, once."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from service import BUILD, ROOT

CACHE = pathlib.Path(os.environ.get("FRAMEWORKS_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "reprod" / "frameworks")
UNREACHABLE = 75


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    file = tmp_path_factory.mktemp("real") / "found.json"
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "frameworks" / "check_frameworks.py"), "--short",
                           "--cache", str(CACHE), "--json", str(file)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    print(done.stdout)
    if done.returncode == UNREACHABLE:
        pytest.skip("no real framework is tested: " + done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout[-3000:]
    return {item["framework"]: item for item in json.loads(file.read_text())["frameworks"]}


@pytest.mark.long
def test_real_operations_are_measured_and_nothing_is_green_for_nothing(found):
    """On a CPU nothing of these is known to vary: where it does not, nothing is reproducible."""
    assert set(found) == {"numpy", "onnxruntime"}
    for framework, item in found.items():
        [version] = item["versions"]
        assert version["facts"][framework] == version["stack"].rpartition("-")[2]
        assert len(version["cells"]) >= 3 * (2 if framework == "numpy" else 3)
        for name, cell in version["cells"].items():
            assert cell["challenge"] == "passed", name
            control = version["cells"][name.partition("/")[0] + "/default"]
            assert cell["verdict"] != "reproducible" or control["verdict"] == "varies", (name, cell)


@pytest.mark.long
def test_inputs_are_those_of_c_with_a_real_numpy(found):
    lib = next(CACHE.glob("numpy-*/lib"))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", "-c", str(ROOT / "tests" / "pytest.ini"),
                           "-p", "no:cacheprovider", "-k", "numpy",
                           str(ROOT / "tests" / "system" / "test_framework_inputs.py")],
                          env={**os.environ, "PYTHONPATH": str(lib), "REPROD_BUILD": str(BUILD)},
                          capture_output=True, text=True)
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout[-2000:]


FALLBACK = """
import sys
sys.path[:0] = [%r, %r]
import numpy, pack, pack_onnxruntime
PACK = pack_onnxruntime.PACK
PACK.load()
PACK.backend = "cuda"
PACK.switch(PACK.asked()[0], 2)
x = {"a": numpy.ones((4, 4), "f4"), "b": numpy.ones((4, 4), "f4")}
try:
    PACK.session("MatMul", x)
except Exception as error:
    print(PACK.explains(error), error)
try:
    PACK.check_build()
except pack.Refused as error:
    print(error)
"""


@pytest.mark.long
def test_a_real_onnxruntime_without_cuda_does_not_go_on_with_the_cpu(found):
    """By itself it warns, and computes there."""
    lib = next(CACHE.glob("onnxruntime-*/lib"))
    script = FALLBACK % (str(ROOT / "workloads" / "frameworks"), str(lib))
    done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True)
    assert "True [ONNXRuntimeError]" in done.stdout and "fallback to CPU EP" in done.stdout, done
    assert done.stdout.endswith("was built without CUDA\n")
