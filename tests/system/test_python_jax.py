"""The probes in programs of JAX: arrays, and places inside compiled functions."""
import importlib.util

import pytest

from test_python_probe import records_of, run

PROGRAM = """
    import jax, jax.numpy as jnp
    import reprod_probe as probe

    @jax.jit
    def loss_of(w, x):
        hidden = probe.monitor(jnp.tanh(x @ w["a"]), "hidden")
        out = probe.monitor({"y": hidden @ w["b"]}, "out")["y"]
        return probe.monitor((out ** 2).mean(), "loss")

    for _ in probe.iterations():
        w = {"a": jnp.ones((3, 4)), "b": jnp.ones((4, 2))}
        for step in range(2):
            x = probe.monitor(jnp.arange(6.0).reshape(2, 3) + step, "data/x")
            loss, gradients = jax.value_and_grad(loss_of)(w, x)
            probe.monitor(gradients, "gradient")
            w = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, w, gradients)
            probe.step()
        probe.finish(w, loss)

    half = jnp.arange(5, dtype=jnp.bfloat16)
    assert probe.leaf_of(half).dtype == "bfloat16" and probe.leaf_of(half[2]).shape == ()
    assert probe.digest(half) == probe._leaf_of_bytes(
        "bfloat16", (5,), bytes.fromhex("0000803f004040408040")).digest()
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None,
                    reason="JAX is not installed: make check-pytorch installs it and runs this")
def test_places_inside_compiled_functions(tmp_path):
    events, _ = run(tmp_path, PROGRAM, REPROD_PROBES="1")
    records = records_of(events)
    assert [r[2] for r in records if r[:2] == (1, 1)] == [
        "data/x", "hidden", "out/y", "loss", "gradient/loss", "gradient/out/y", "gradient/hidden",
        "gradient/a", "gradient/b"]
    first, second = ([r[1:] for r in records if r[0] == i] for i in (0, 1))
    assert first == second
    plain, _ = run(tmp_path, PROGRAM)
    assert [e["digest"] for e in plain if e["event"] == "iteration"] == \
        [e["digest"] for e in events if e["event"] == "iteration"]
    assert events[0]["environment"]["jax"]
