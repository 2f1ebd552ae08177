"""oneDNN as a library under test: one digest for each number of threads; whether another number
has another one depends on the CPU.  Skipped where the library is not installed."""
import ctypes
import os
import subprocess

import pytest

from test_worker import BUILD, catalogue, check_protocol, digests, run, worker

WORKER = BUILD / "reprod-worker"
LIBRARY = os.environ.get("REPROD_ONEDNN", "libdnnl.so.2")
WORKLOADS = ["onednn_conv_wgrad", "onednn_matmul", "onednn_pool_bwd"]
THREADS = [1, 2, 3, 4]
PROCESSES = 5


def why_not_loaded():
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as error:
        return f"oneDNN cannot be loaded: {error}"
    return None


installed = pytest.mark.skipif(why_not_loaded() is not None, reason=str(why_not_loaded()))


def run_library(workload, library=LIBRARY, variant="library", **options):
    return run(workload, variant, binary=WORKER, env={"REPROD_ONEDNN": library}, **options)


def run_without(workload):
    ended = run(workload, "library", binary=WORKER, env={"REPROD_ONEDNN": ""})
    return check_protocol(ended, 3, "unsupported")


def test_the_catalogue_has_them():
    entries = {w["workload"]: w for w in catalogue(WORKER)}
    for name in WORKLOADS:
        assert [v["name"] for v in entries[name]["variants"]] == ["library"]
        assert entries[name]["variants"][0]["claim"] == "deterministic"
        assert "threads" in entries[name]["no_control"]


@installed
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_one_digest_for_a_number_of_threads(workload, threads):
    seen, environments = set(), set()
    for _ in range(PROCESSES):
        ended = run_library(workload, iterations=10, threads=threads)
        start, iterations, _ = check_protocol(ended, 10)
        assert start["environment"]["threads"] == threads
        assert iterations[0]["algorithm"] not in ("", "what oneDNN chooses")
        environments.add(tuple(sorted(start["environment"].items())))
        seen |= set(digests(ended))
    assert len(environments) == 1
    assert len(seen) == 1, f"{len(seen)} digests with {threads} threads"


@installed
def test_another_digest_for_another_number_of_threads():
    """Why the number of threads belongs to the environment (slide 5)."""
    distinct = {w: len({digests(run_library(w, iterations=1, threads=n))[0] for n in THREADS})
                for w in WORKLOADS}
    assert max(distinct.values()) > 1, distinct


@installed
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_right_with_every_number_of_threads(workload, threads):
    ended = worker("--check", "--workload", workload, "--threads", threads, binary=WORKER,
                   env={"REPROD_ONEDNN": LIBRARY})
    assert ended.status == 0, ended.stdout


@installed
def test_every_run_of_the_stack_is_in_its_environment():
    """Also one of another workload, and one that ends early; else one stack would be two
    environments, and what fails would count in the wrong one."""
    start = run_library("onednn_matmul").events[0]
    other = run_library("bias_add_bwd", variant="ordered").events[0]
    assert start["environment"] == other["environment"]
    version = start["environment"]["onednn"]
    assert [int(part) for part in version.split(".")][0] == 2
    assert any("libdnnl" in library["path"] for library in start["libraries"])
    probe = worker("--probe", binary=WORKER, env={"REPROD_ONEDNN": LIBRARY})
    assert f'"onednn":"{version}"' in probe.stdout


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_stack_that_names_no_library(workload):
    start, _, end = run_without(workload)
    assert end["cause"] == "this stack names no oneDNN library: REPROD_ONEDNN is not set"
    assert "onednn" not in start["environment"]


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("library", ["libdnnl.so.0", "/nonexistent/libdnnl.so.2"])
def test_a_library_that_is_not_there(workload, library):
    ended = run_library(workload, library=library)
    start, _, end = check_protocol(ended, 3, "unsupported")
    assert end["cause"].startswith(f"{library} is not installed: ")
    assert "onednn" not in start["environment"]


def test_a_library_that_is_another():
    ended = run_library("onednn_matmul", library="libc.so.6")
    _, _, end = check_protocol(ended, 3, "unsupported")
    assert end["cause"] == "libc.so.6 has no dnnl_version: it is not oneDNN"


def test_a_version_whose_interface_differs(tmp_path):
    """oneDNN 3.x, as far as the loader looks: a library with a version."""
    source, library = tmp_path / "three.c", tmp_path / "libdnnl.so.3"
    source.write_text("""
        static const struct { int major, minor, patch; const char *hash; unsigned c, g; }
            version = { 3, 1, 0, "", 2, 0 };
        const void *dnnl_version(void) { return &version; }
    """)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    ended = run_library("onednn_matmul", library=str(library))
    start, _, end = check_protocol(ended, 3, "unsupported")
    assert end["cause"].endswith(
        "is oneDNN 3.1.0; the workloads speak the C interface of oneDNN 2.x")
    assert start["environment"]["onednn"] == "3.1.0"


@installed
def test_a_stack_with_another_number_of_threads(start_service):
    """Through the service: each number of threads is an environment, whether or not the bits differ on this CPU."""
    environments = set()
    for threads in (2, 3):
        stack = {"name": "onednn", "worker": str(WORKER), "threads": threads,
                 "env": {"REPROD_ONEDNN": LIBRARY}}
        service = start_service(worker=None, config={"stacks": [stack]})
        job = service.post_job(workloads=["onednn_matmul"], runs=3, iterations=2)
        assert service.finish_job(job, seconds=120)["state"] == "finished"
        runs = service.items("/v1/runs?workload=onednn_matmul")
        assert [one["outcome"] for one in runs] == ["completed"] * 3
        environments |= {one["environment"] for one in runs}
        assert digests(run_library("onednn_matmul", threads=threads))[0] in {one["digest"] for one in runs}
        [environment] = service.items("/v1/environments")
        assert f"{threads} threads" in environment["title"] and "oneDNN 2." in environment["title"]
        assert service.get("/v1/stacks")["items"][0]["versions"]["onednn"].startswith("2.")
    assert len(environments) == 2
