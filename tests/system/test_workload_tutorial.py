"""workloads/README.md keeps its word: its C blocks are one file that builds without touching
another, and what it shows is what the worker says."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build"))
README = (REPO / "workloads" / "README.md").read_text(encoding="utf-8")
LIMIT = 120  # seconds after which a test gives up


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def compile_worker(folder, source):
    """The worker of this build, and SOURCE as one workload more."""
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    flags = ["-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp",
             "-ffp-contract=off", "-fPIE", "-pie", f"-I{REPO}", "-include",
             "daemon/base/banned.h"]
    objects = [BUILD / "obj" / f"{path.relative_to(REPO)}.o"
               for pattern in ("*.c", "*/*.c")
               for path in sorted((REPO / "workloads").glob(pattern))
               if path.name != "vector_sum.c"]  # somebody followed the tutorial
    objects += [BUILD / f"obj/daemon/base/{name}.c.o" for name in ("nearest", "reference")]  # what the worker needs of it
    new = folder / "vector_sum.c"
    new.write_text(source, encoding="utf-8")
    subprocess.run([*compiler, *flags, new, *objects, "-o", folder / "worker", "-lm"],
                   check=True, timeout=LIMIT)
    return folder / "worker"


@pytest.fixture(scope="module", name="source")
def fixture_source():
    return "\n".join(blocks("c"))


@pytest.fixture(scope="module", name="worker")
def fixture_worker(tmp_path_factory, source):
    return compile_worker(tmp_path_factory.mktemp("tutorial"), source)


def check(worker, variant):
    done = subprocess.run([worker, "--check", "--workload", "vector_sum", "--variant",
                           variant], capture_output=True, timeout=LIMIT, check=False)
    return done.returncode, json.loads(done.stdout)


def run_digests(worker, variant):
    arguments = [worker, "--run", "--workload", "vector_sum", "--variant", variant,
                 "--iterations", "2"]
    out = subprocess.run(arguments, stdout=subprocess.PIPE, timeout=LIMIT, check=True,
                         env={**os.environ, "REPROD_RESULT_FD": "1"}).stdout
    events = [json.loads(line) for line in out.splitlines()]
    return [event["digest"] for event in events if event["event"] == "iteration"]


def test_both_variants_are_right(worker):
    for variant in ("unordered", "ordered"):
        status, result = check(worker, variant)
        assert status == 0 and result["ok"]


def test_the_digest_shown_is_the_digest_computed(worker):
    shown = re.findall(r'"digest":"([0-9a-f]{32})"', README)
    assert len(shown) == 8 and len(set(shown[:4])) == 4
    assert set(shown[4:]) == set(run_digests(worker, "ordered"))
    assert len({d for _ in range(5) for d in run_digests(worker, "unordered")}) >= 2


def test_the_mistakes_shown_are_found(tmp_path, source):
    begin = "sizeof(float));\n        for (int64_t v = 0"
    assert source.count(begin) == 1
    wrong = compile_worker(tmp_path, source.replace(begin, begin[:-1] + "1"))
    status, result = check(wrong, "ordered")
    assert status == 1 and not result["ok"]
    assert f'"failed":{result["outputs"][0]["failed"]},' in README

    unsaid = re.sub(r"\n *\.(control|weight_sum) = .*", "", source)
    defects = subprocess.run([compile_worker(tmp_path, unsaid), "--catalogue"],
                             capture_output=True, timeout=LIMIT, check=False, text=True)
    assert defects.returncode == 3
    for line in defects.stderr.splitlines():
        assert line in README
