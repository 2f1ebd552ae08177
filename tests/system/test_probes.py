"""Probes: the trace of a run says where it diverged from another, changes no bit of what is
computed, and cures no race."""
import base64
import json
import os
import pathlib
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "workloads" / "python"))
from reprod_probe import combine  # noqa: E402

WORKER = pathlib.Path(os.environ.get("REPROD_BUILD", REPO / "build")) / "reprod-worker"
NOTHING = 32 * "0"


def run(workload, variant, *options, iterations=2, threads=2):
    done = subprocess.run(
        [WORKER, "--run", "--workload", workload, "--variant", variant,
         "--iterations", str(iterations), "--threads", str(threads), *options],
        env={**os.environ, "REPROD_RESULT_FD": "1"}, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def trace(events):
    return [(e["i"], e["step"], *record) for e in events if e["event"] == "probes"
            for record in e["records"]]


def digests(events):
    return [e["digest"] for e in events if e["event"] == "iteration"]


# Variants without a race, and a place that each of them must have.
ORDERED = [
    ("attention_bwd", "ordered", "gradient/q"),
    ("batchnorm_bwd", "ordered", "input/backward"),
    ("checkpoint_resume", "ordered", "optimizer/velocity"),
    ("conv_autotune", "fixed", "algorithm/branches"),
    ("data_loader", "prng_per_item", "rng/parameters"),
    ("dropout", "seeded", "rng/state"),
    ("inference_autotune", "fixed", "layer3/forward"),
    ("gradient_gating", "ordered", "gradient/all"),
    ("softmax_xent", "ordered", "softmax/sums"),
    ("softmax_xent_sparse", "ordered", "loss/backward"),
    ("train_cnn", "ordered", "gradient/weights2"),
    ("train_rnn_ctc", "ordered", "hidden/forward"),
]


@pytest.mark.parametrize("workload, variant, place", ORDERED)
def test_probes_change_no_bit(workload, variant, place):
    recorded = run(workload, variant, "--probes", "1")
    assert digests(recorded) == digests(run(workload, variant))
    records = trace(recorded)
    assert place in {record[2] for record in records}
    assert records == trace(run(workload, variant, "--probes", "1", threads=1))
    # The iterations compute the same from the same.
    assert [r[1:] for r in records if r[0] == 0] == [r[1:] for r in records if r[0] == 1]


@pytest.mark.parametrize("workload, variable", [("train_cnn", "bias2"),
                                                ("train_rnn_ctc", "bias")])
def test_an_optimizer_reads_its_state(workload, variable):
    """Where only some steps are recorded, a state that differs does not begin to differ there."""
    records = {record[1:3]: record[3:]
               for record in trace(run(workload, "ordered", "--probes", "1", iterations=1))}
    for step in range(1, 4):
        state = records[step - 1, f"optimizer/{variable}"][1]
        gradient = records[step, f"gradient/{variable}"][1]
        assert records[step, f"optimizer/{variable}"][0] == combine([state, gradient])


def test_every_run_has_its_outputs():
    events = run("reduce_sum", "ordered", "--probes", "1", iterations=1)
    (i, step, place, _, out), = trace(events)
    assert (i, step) == (0, 0) and place.startswith("output/") and out != NOTHING
    assert not trace(run("reduce_sum", "ordered", "--probes", "0", iterations=1))


# Variants with a race, and the places where it may come in.
UNORDERED = [
    ("attention_bwd", "unordered", "gradient/q"),
    ("batchnorm_bwd", "unordered", "gradient/"),
    ("checkpoint_resume", "unordered", "gradient/weights"),
    ("conv_autotune", "autotune", "algorithm/branches"),
    ("data_loader", "unordered", "rng/parameters"),
    ("dropout", "unseeded", "rng/state"),
    ("gradient_gating", "unordered", "variable/all/after"),
    ("ring_allreduce", "unordered", "fusion/order"),
    ("softmax_xent", "unordered", ("softmax/sums", "loss")),  # another race, seldom alone
    ("train_cnn", "unordered", ("gradient/", "pool1/backward", "pool2/backward", "conv2/backward")),
    ("train_cnn", "tcd", "gradient/bias"),
    ("train_rnn_ctc", "unordered", "gradient/"),
]


@pytest.mark.parametrize("workload, variant, places", UNORDERED)
def test_probes_cure_no_race_and_find_it(workload, variant, places):
    first = trace(run(workload, variant, "--probes", "1", iterations=1))
    # On busy processors two runs of a race may agree two times in three; the first that does
    # not ends this.
    for _ in range(200):
        other = trace(run(workload, variant, "--probes", "1", iterations=1))
        assert [record[:3] for record in first] == [record[:3] for record in other]
        if other != first:
            break
    a, b = next((a, b) for a, b in zip(first, other) if a != b)
    assert a[2].startswith(places), a
    assert a[3] == b[3], "the inputs of the first difference agree"


def test_both_processes_of_a_resumed_training_are_recorded():
    straight = trace(run("checkpoint_resume", "ordered", "--probes", "1"))
    assert {record[:2] for record in straight} == {(i, step) for i in (0, 1) for step in range(4)}
    assert trace(run("checkpoint_resume", "resumed", "--probes", "1")) == straight
    for variant, place in (("no_rng", "rng/dropout"), ("no_data_loader", "data/position"),
                           ("no_optimizer", "optimizer/velocity/before"),
                           ("no_schedule", "optimizer/rate"),
                           ("no_scaler", "optimizer/scale")):
        other = trace(run("checkpoint_resume", variant, "--probes", "1", iterations=1))
        a, b = next((a, b) for a, b in zip(straight, other) if a != b)
        assert a[:4] == b[:4] == (0, 2, place, NOTHING)
    (_, step, place, _, _), = trace(run("checkpoint_resume", "resumed", "--capture",
                                        "1:3:gradient/weights"))
    assert (step, place) == (3, "gradient/weights")


def test_density_names_and_steps():
    every = trace(run("train_cnn", "ordered", "--probes", "1"))
    some = trace(run("train_cnn", "ordered", "--probes", "2", "--probe-names", "gradient/*",
                     "--probe-steps", "2-5"))
    assert some == [r for r in every if r[1] in (2, 4) and r[2].startswith("gradient/")]
    assert len(some) == 2 * 2 * 6


def test_capture():
    def tensors(*options):
        events = run("train_cnn", "ordered", "--capture", "1:3:gradient/weights2", *options)
        found = {}
        for e in (e for e in events if e["event"] == "tensor"):
            assert (e["i"], e["step"], e["place"]) == (1, 3, "gradient/weights2")
            assert e["captured_bytes"] == e["bytes_total"] == 4 * e["shape"][0]
            data = found.setdefault((e["role"], e["index"], e["name"]), bytearray())
            assert len(data) == e["offset"]
            data += base64.b64decode(e["data"])
            assert len(data) <= e["bytes_total"]
        return found, trace(events)

    found, records = tensors()
    assert list(found) == [("in", 0, "pooled1"), ("in", 1, "d_sum2"), ("out", 0, "weights2")]
    assert len(found["out", 0, "weights2"]) == 4 * 9 * 8 * 16
    assert len(found["in", 1, "d_sum2"]) > 32 * 1024, "more than one event"
    assert [record[:3] for record in records] == [(1, 3, "gradient/weights2")]
    again, all_records = tensors("--probes", "1")
    assert again == found
    assert records[0] in all_records and len(all_records) > 500
