"""The probes with Keras: what they name where two trainings part, in fit and in loops of one's own.

make check-keras runs this with each TensorFlow that make check-frameworks installed; make test does where
pytest's own interpreter has one."""
import importlib.util
import json
import os
import pathlib
import shlex
import subprocess
import sys
import textwrap
import types

import pytest

from service import BUILD, Service
from test_python_pytorch import PYTHON, compare, records_of

sys.path.insert(0, str(PYTHON))
import reprod_keras  # noqa: E402


def installed():
    """{name: (interpreter, folder)} of the versions to be tested."""
    cache = os.environ.get("KERAS_CACHE")
    found = {}
    for folder in sorted(pathlib.Path(cache).glob("tensorflow-*/lib")) if cache else []:
        [line] = [line for line in (folder.parent / "worker").read_text().splitlines() if line.startswith("exec ")]
        found[folder.parent.name] = shlex.split(line)[1], str(folder)
    if not found and importlib.util.find_spec("tensorflow") is not None:
        found["tensorflow"] = sys.executable, ""
    return found


@pytest.fixture(scope="module", params=sorted(installed()) or [None])
def tensorflow(request):
    if request.param is None:
        pytest.skip("TensorFlow is not installed: make check-keras runs this with what make check-frameworks"
                    " installs")
    return installed()[request.param]


def trace(tensorflow, tmp_path, code, name="trace", **more):
    """The path of the trace of a program by hand, and what it logged."""
    python, folder = tensorflow
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(code))
    done = subprocess.run([python, str(script)], capture_output=True, text=True, env={
        "PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONPATH": os.pathsep.join([str(PYTHON), folder]),
        "REPROD_DIGEST_LIBRARY": str(BUILD / "libreprod-digest.so"), "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2", "REPROD_TRACE": str(tmp_path / name), **more})
    assert done.returncode == 0, done.stderr[-3000:]
    return tmp_path / name, done.stderr


def events_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


PROGRAM = """
    import os
    import numpy
    import tensorflow as tf
    import reprod_keras
    import reprod_probe as probe

    keras = tf.keras
    how, odd = os.environ["HOW"], os.environ.get("ODD", "")
    tf.config.threading.set_intra_op_parallelism_threads(1)

    class Odd(keras.layers.Layer):
        '''From step 3 on it is a little off, if asked to be.'''

        def __init__(self):
            super().__init__()
            self.dense, self.calls = keras.layers.Dense(4), tf.Variable(0, trainable=False)

        def build(self, shape):
            self.dense.build(shape)
            self.built = True

        def call(self, x):
            y = self.dense(x)
            factor = tf.where(self.calls.assign_add(1) > 3, 1 + 2.0**-20, 1.0)
            return y * factor if odd == "layer" else y

    class OddOptimizer(keras.optimizers.SGD):
        count = None

        def apply_gradients(self, pairs, **more):
            if self.count is None:
                with tf.init_scope():
                    self.count = tf.Variable(0, trainable=False)
            factor = tf.where(self.count.assign_add(1) > 3, 1 + 2.0**-20, 1.0)
            return super().apply_gradients([(g * factor if v.shape == (5, 8) else g, v) for g, v in pairs], **more)

    def train():
        keras.utils.set_random_seed(probe.seed())
        model = keras.Sequential([keras.layers.Dense(8, activation="tanh"), Odd(),
                                  keras.layers.BatchNormalization(), keras.layers.Dropout(0.25),
                                  keras.layers.Dense(2, name="head")])
        model.build((None, 5))
        optimizer = (OddOptimizer if odd == "optimizer" else keras.optimizers.SGD)(0.05, momentum=0.9)
        source = numpy.random.RandomState(1)
        x, y = source.rand(48, 5).astype("f4"), source.rand(48, 2).astype("f4")
        if how == "fit":
            model.compile(optimizer, "mse")
            reprod_keras.monitor_keras(model)
            return model, model.fit(x, y, batch_size=8, shuffle=False, verbose=0).history["loss"][-1]
        reprod_keras.monitor_keras(model, optimizer)
        reprod_keras.monitor_keras(model, optimizer)  # again: nothing is recorded twice

        def step(x, y):
            with tf.GradientTape() as tape:
                scores = probe.monitor(model(x, training=True), "scores")
                loss = tf.reduce_mean((scores - y) ** 2)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        step = tf.function(step) if how == "graph" else step
        for at in range(0, 48, 8):
            loss = step(tf.constant(x[at:at + 8]), tf.constant(y[at:at + 8]))
        return model, float(loss)

    for _ in probe.iterations():
        model, loss = train()
        probe.finish(reprod_keras.weights(model), loss)
"""
LAYERS = ["dense/forward", "odd.dense/forward", "odd/forward", "batch_normalization/forward", "dropout/forward",
          "head/forward", "model/forward"]
VARIABLES = ["dense.kernel", "dense.bias", "odd.dense.kernel", "odd.dense.bias", "batch_normalization.gamma",
             "batch_normalization.beta", "head.kernel", "head.bias"]


@pytest.mark.parametrize("how", ["fit", "graph", "eager"])
def test_every_layer_gradient_and_step_is_recorded_in_the_programs_order(tensorflow, tmp_path, how):
    path, _ = trace(tensorflow, tmp_path, PROGRAM, HOW=how, REPROD_ITERATIONS="2")
    events = events_of(path)
    records = [(event["i"], event["step"], record[0]) for event in events if event["event"] == "probes"
               for record in event["records"]]
    places = [place for i, step, place in records if (i, step) == (0, 1)]
    seen = [place for place in places if not place.startswith(("variable/", "optimizer/"))]
    backward = [place.replace("forward", "backward") for place in reversed(LAYERS)]
    backward[4:6] = ["odd/backward", "odd.dense/backward"]
    loss = {"fit": ["loss"], "graph": ["scores", "gradient/scores"], "eager": ["scores"]}[how]
    assert seen == ["model/input/0", *LAYERS, *loss, *backward, *["gradient/" + name for name in VARIABLES]]
    after = [place for place in places if place.startswith("variable/")]
    moving = ["batch_normalization.moving_mean", "batch_normalization.moving_variance"]
    # Keras 2 counts the layer's own tf.Variable as a weight.
    assert set(after) - {"variable/odd.Variable/after"} == {f"variable/{name}/after" for name in VARIABLES + moving}
    assert len(after) == len(set(after))
    assert len([place for place in places if place.startswith("optimizer/")]) >= len(VARIABLES)
    assert {step for _, step, _ in records} == set(range(6))
    # Keras names the layers of a second model differently; places are the same.
    assert [record[1:] for record in records if record[0] == 0] == [record[1:] for record in records if record[0] == 1]
    again, _ = trace(tensorflow, tmp_path, PROGRAM, "again", HOW=how, REPROD_ITERATIONS="2")
    assert compare(path, again)["verdict"] == "equal"


@pytest.mark.parametrize("how", ["fit", "graph", "eager"])
@pytest.mark.parametrize("odd, place", [("layer", "odd/forward"), ("optimizer", "variable/dense.kernel/after")])
def test_the_layer_and_the_step_where_two_trainings_part_are_named(tensorflow, tmp_path, how, odd, place):
    paths = [trace(tensorflow, tmp_path, PROGRAM, f"trace{what}", HOW=how, ODD=what)[0] for what in ("", odd)]
    report = compare(*paths)
    assert report["root_cause"]["place"] == place and report["root_cause"]["step"] == 3
    assert report["root_cause"] == report["first_difference"] and report["pair"]["structure"] is None


def test_the_service_localises_layer_and_step(tensorflow, tmp_path):
    """A layer that is off by what no seed gives."""
    python, folder = tensorflow
    code = PROGRAM.replace("1 + 2.0**-20, 1.0)\n            return y", "1 + int.from_bytes(os.urandom(1), 'big') *"
                           " 2.0**-20, 1.0)\n            return y")
    assert code != PROGRAM
    (tmp_path / "program.py").write_text(textwrap.dedent(code))
    workload = {"name": "keras", "command": [python, str(tmp_path / "program.py")], "subject": "framework",
                "subject_name": "Keras", "environment": {
                    "PYTHONPATH": os.pathsep.join([str(PYTHON), folder]), "HOW": "fit", "CUDA_VISIBLE_DEVICES": "-1",
                    "TF_CPP_MIN_LOG_LEVEL": "2"},
                "variants": [{"name": "odd", "control": True, "kind": "entropy", "environment": {"ODD": "layer"}},
                             {"name": "even"}]}
    service = Service(tmp_path, options=["--no-survey"], config={"workloads": [workload]}).start()
    try:
        job = service.post_job(workloads=["keras"], variants=["odd"], localise=True, runs=2, runs_max=10, iterations=1)
        service.finish_job(job, 900)
        found = service.get(f"/v1/jobs/{job}/localisation")
        assert (found["state"], found["place"], found["step"]) == ("localised", "odd/forward", 3), found
        assert found["difference"]["tensors"][0]["signature"]["differ"]
    finally:
        assert service.stop() == 0


def test_other_dropout_is_named(tensorflow, tmp_path):
    code = PROGRAM.replace("set_random_seed(probe.seed())", "set_random_seed(int(os.environ['DRAW']))").replace(
        "model.build((None, 5))", "model.build((None, 5)); [w.assign(tf.ones(w.shape) / 8) for w in model.trainable_weights]")
    paths = [trace(tensorflow, tmp_path, code, f"trace{draw}", HOW="graph", DRAW=draw)[0] for draw in "12"]
    assert compare(*paths)["root_cause"]["place"] == "dropout/forward"


def test_what_is_requested_is_recorded_and_captured(tensorflow, tmp_path):
    path, _ = trace(tensorflow, tmp_path, PROGRAM, HOW="fit", REPROD_PROBES="1", REPROD_PROBE_NAMES="head/*",
                    REPROD_PROBE_STEPS="2-3", REPROD_CAPTURE="0:2:head/forward")
    events = events_of(path)
    assert {record[:2] for record in records_of(events)} == {
        (step, place) for step in (2, 3) for place in ("head/forward", "head/backward")}
    tensors = {(event["role"], event["name"]): event["shape"] for event in events if event["event"] == "tensor"}
    assert tensors == {("in", "0"): [8, 4], ("out", ""): [8, 2]}


def test_without_probes_nothing_is_changed(tensorflow, tmp_path):
    code = """
        import tensorflow as tf
        import reprod_keras
        import reprod_probe as probe
        model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        model.build((None, 3))
        model.compile("sgd", "mse")
        before = [model.layers[0].call.__func__, model.compute_loss.__func__, model.jit_compile]
        assert reprod_keras.monitor_keras(model) is model
        assert before == [model.layers[0].call.__func__, model.compute_loss.__func__, model.jit_compile]
        probe.finish(reprod_keras.weights(model))
    """
    trace(tensorflow, tmp_path, code, REPROD_TRACE="")
    trace(tensorflow, tmp_path, code, REPROD_TRACE=str(tmp_path / "none"), REPROD_PROBES="0")


def test_attention_recurrent_layers_and_mixed_precision(tensorflow, tmp_path):
    """What a compiled loop calls is not recorded by itself; sparse gradients are, in parts."""
    path, _ = trace(tensorflow, tmp_path, """
        import tensorflow as tf
        import reprod_keras
        import reprod_probe as probe
        keras, layers = tf.keras, tf.keras.layers
        keras.utils.set_random_seed(1)
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
        words = keras.Input((6,), dtype="int64")
        rows = layers.Embedding(11, 8)(words)
        rows = layers.LayerNormalization()(layers.Add()([rows, layers.MultiHeadAttention(2, 4)(rows, rows)]))
        rows = layers.SimpleRNN(5, return_sequences=True)(rows)
        rows = layers.Bidirectional(layers.GRU(4, dtype="float32"), dtype="float32")(rows)
        model = keras.Model(words, layers.Dense(3, dtype="float32")(rows))
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        reprod_keras.monitor_keras(model)
        x = tf.reshape(tf.range(96) % 11, (16, 6))
        model.fit(x, tf.range(16) % 3, batch_size=4, shuffle=False, verbose=0)
        probe.finish(reprod_keras.weights(model))
    """)
    places = [record[1] for record in records_of(events_of(path)) if record[0] == 3]
    assert {"embedding/forward", "multi_head_attention.query/forward", "multi_head_attention/backward",
            "bidirectional.forward_gru/forward", "simple_rnn/backward", "model/forward", "loss",
            "gradient/simple_rnn.simple_rnn_cell.recurrent_kernel", "gradient/embedding.embeddings/values",
            "gradient/embedding.embeddings/indices", "variable/dense.kernel/after"} <= set(places)
    assert len(places) == len(set(places)), "a loop's calls are recorded"


# Without any TensorFlow

def layer(name, *parts, kind="Dense", weights=()):
    made = type(kind, (), {"_flatten_layers": lambda self, **_: list(parts)})()
    made.name, made.weights = name, list(weights)
    return made


def test_places_do_not_depend_on_what_was_made_before():
    one, two, shared = (types.SimpleNamespace(name=name) for name in ("dense_7/kernel:0", "bias", "bias"))
    inner = layer("dense_7", weights=[one, two])
    model = layer("sequential_4", inner, layer("dense_8"), layer("mine"), layer("conv2d", kind="Conv2D"),
                  layer("tf.math.add_3", kind="TFOpLambda"), layer("x", inner, kind="InputLayer"), inner,
                  kind="Sequential", weights=[one, two, shared])
    found = list(reprod_keras.layers_of(model, ""))
    assert [path for path, _ in found] == ["model", "dense", "dense_1", "mine", "conv2d", "tf.math.add"]
    assert reprod_keras.names_of(found) == {id(one): "dense.kernel", id(two): "dense.bias", id(shared): "model.bias"}
    assert reprod_keras.snake("MultiHeadAttention") == "multi_head_attention"
    assert reprod_keras.snake("GRUCell") == "gru_cell" and reprod_keras.snake("MaxPooling2D") == "max_pooling2d"


def test_two_variables_of_one_name_are_two():
    variables = [types.SimpleNamespace(name="kernel") for _ in range(3)]
    names = reprod_keras.names_of([("model", layer("model", weights=variables))])
    assert sorted(names.values()) == ["model.kernel", "model.kernel'", "model.kernel''"]


def test_without_a_run_a_model_stays_as_it_is(monkeypatch):
    monkeypatch.delenv("REPROD_RESULT_FD", raising=False)
    monkeypatch.delenv("REPROD_TRACE", raising=False)
    model = object()
    assert reprod_keras.monitor_keras(model) is model
