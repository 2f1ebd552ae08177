"""The examples with PyTorch: the one whose places are found, and the trainings for a GPU, where
there is one.  make check-pytorch installs PyTorch and runs this."""
import json
import struct
import subprocess

import pytest

from test_python_pytorch import ENVIRONMENT, PYTHON, compare, python, records_of  # noqa: F401

EXAMPLE = PYTHON / "examples" / "voxels_pytorch.py"
TRAIN = PYTHON / "examples" / "train_pytorch.py"


def example(python, tmp_path, variant, count):
    path = tmp_path / f"{variant}{count}"
    subprocess.run([python, str(EXAMPLE)], check=True, env={
        **ENVIRONMENT, "REPROD_VARIANT": variant, "REPROD_TRACE": str(path), "REPROD_THREADS": "2"})
    return path


@pytest.mark.parametrize("variant, place", [("index_put", "voxels/forward"),
                                            ("indexing", "gradient/kinds.table")])
def test_the_example_names_its_place(python, tmp_path, variant, place):
    """Two threads race; runs are added until two of them part."""
    paths = [example(python, tmp_path, variant, 0)]
    for count in range(1, 8):
        paths.append(example(python, tmp_path, variant, count))
        report = compare(*paths)
        if report["verdict"] == "different":
            break
    assert report["verdict"] == "different", "eight runs agree"
    print(f"{variant}: {report['pairs_parted']} of {report['pairs']} pairs of"
          f" {report['traces']} runs parted, at {report['root_cause']}")
    assert report["root_cause"]["place"] == place
    assert report["root_cause"] == report["first_difference"]
    assert report["pair"]["structure"] is None


def test_the_deterministic_mode_cures_both(python, tmp_path):
    paths = [example(python, tmp_path, "deterministic", count) for count in range(3)]
    report = compare(*paths)
    assert report["verdict"] == "equal" and report["records"] > 300


def table(python, tmp_path, *options, **more):
    path = tmp_path / "table.json"
    done = subprocess.run([python, str(TRAIN), "--table", "--json", str(path), "--threads", "2",
                           *options], capture_output=True, text=True, env={**ENVIRONMENT, **more})
    return done, json.loads(path.read_text()) if path.exists() else None


def test_the_table_of_trainings(python, tmp_path):
    """On the CPU: what the operations of `scatter` do to each other with two threads, and that
    a training without a control that varied is not called reproducible."""
    done, report = table(python, tmp_path, "--device", "cpu", "--trainings", "scatter,ctc",
                         "--runs", "3")
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    scatter, ctc = report["trainings"]["scatter"], report["trainings"]["ctc"]
    assert [scatter[v]["verdict"] for v in ("default", "cudnn_deterministic")] == ["varies"] * 2
    cured = scatter["deterministic_algorithms"]
    assert (cured["verdict"], cured["distinct_digests"]) == ("reproducible", 1)
    assert "78 % (95 %)" in cured["reason"]
    assert {found["verdict"] for found in ctc.values()} == {"inconclusive"}
    run = cured["runs"][0]
    assert run["flags"]["deterministic_algorithms"] is True
    assert run["flags"]["cublas_workspace_config"] == ":4096:8"
    assert run["weights_device"] == "cpu" and len(run["losses_bits"]) == 6
    assert struct.unpack(">d", bytes.fromhex(run["weight_sum_bits"]))[0] == float(run["weight_sum"])
    flags = scatter["cudnn_deterministic"]["runs"][0]["flags"]
    assert flags["cudnn_deterministic"] and not flags["cudnn_benchmark"]
    assert flags["cublas_workspace_config"] is None
    assert report["facts"]["device"] == "cpu" and report["facts"]["gpu"] is None
    assert "SUM OF WEIGHTS" in done.stdout and "scatter, default: varies" in done.stdout


def test_a_table_of_processes_that_fail(python, tmp_path):
    """What has no result is never compared, and where there is no GPU nothing else computes."""
    done, report = table(python, tmp_path, "--device", "cpu", "--trainings", "ctc", "--runs", "2",
                         "--timeout", "0.01")
    assert done.returncode == 1 and "no end after 0.01 seconds" in done.stdout
    assert {found["verdict"] for found in report["trainings"]["ctc"].values()} == {"failing"}
    done, _ = table(python, tmp_path, "--device", "cuda", "--runs", "1", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 77 and "finds no GPU" in done.stderr
    done, _ = table(python, tmp_path, "--trainings", "resnet,scater")
    assert done.returncode == 2 and "'scater' is none of resnet, scatter" in done.stderr


def test_a_training_through_the_protocol(python, tmp_path):
    """All four, recorded, so that every operation of theirs meets the probes."""
    for training in ("resnet", "scatter", "upsample", "ctc"):
        path = tmp_path / training
        subprocess.run([python, str(TRAIN), "--training", training, "--device", "cpu",
                        "--steps", "2"], check=True, env={
            **ENVIRONMENT, "REPROD_VARIANT": "deterministic_algorithms", "REPROD_THREADS": "2",
            "REPROD_TRACE": str(path), "OMP_WAIT_POLICY": "passive"})
        events = [json.loads(line) for line in path.read_text().splitlines()]
        assert events[0]["algorithm"].startswith("PyTorch: deterministic_algorithms")
        assert events[0]["claim"] == "deterministic" and events[-1]["outcome"] == "completed"
        places = {record[1] for record in records_of(events)}
        assert {"model/forward", "loss"} <= places, training
        assert any(place.startswith("gradient/") for place in places), training
    done = subprocess.run([python, str(TRAIN), "--device", "cpu"], capture_output=True, text=True,
                          env={**ENVIRONMENT, "REPROD_VARIANT": "cudnn"})
    assert done.returncode == 1 and "there is no variant 'cudnn'" in done.stderr
