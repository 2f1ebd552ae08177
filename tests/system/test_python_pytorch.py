"""The probes with PyTorch.  make check-pytorch installs it and runs this; make test does where
pytest's own interpreter has it."""
import base64
import importlib.util
import json
import os
import struct
import subprocess
import sys
import textwrap

import pytest

from service import BUILD, ROOT

PYTHON = ROOT / "workloads" / "python"
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PYTHON), "HOME": "/tmp",
               "REPROD_DIGEST_LIBRARY": str(BUILD / "libreprod-digest.so")}


@pytest.fixture(scope="module")
def python():
    """An interpreter that has PyTorch."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: make check-pytorch installs it and runs this")
    return sys.executable


def trace(python, tmp_path, code, name="trace", **more):
    """The events of a program by hand."""
    script = tmp_path / "program.py"
    script.write_text("import torch\nimport reprod_probe as probe\n" + textwrap.dedent(code))
    done = subprocess.run([python, str(script)], capture_output=True, text=True,
                          env={**ENVIRONMENT, "REPROD_TRACE": str(tmp_path / name), **more})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]


def records_of(events):
    return [(event["step"], *record) for event in events if event["event"] == "probes"
            for record in event["records"]]


def compare(*paths):
    done = subprocess.run([sys.executable, str(PYTHON / "reprod_compare.py"), "--json",
                           *map(str, paths)], capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert done.returncode == {"equal": 0, "different": 1, "not_comparable": 2}[report["verdict"]]
    return report


def test_tensors_are_read_as_they_are(python, tmp_path):
    trace(python, tmp_path, """
        import ctypes, struct
        def bytes_of(dtype, shape, data):
            return probe._leaf_of_bytes(dtype, shape, data).digest()

        for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8",
                     "bool", "int8", "int16", "complex64", "float8_e4m3fn", "float8_e5m2"):
            dtype, size = getattr(torch, name), probe.DTYPES[name][1]
            for shape in ((), (0,), (3,), (2, 0), (4, 5), (9000,)):
                count = torch.Size(shape).numel() * size
                raw = torch.randint(0, 2 if name == "bool" else 256, (count,), dtype=torch.uint8)
                data = bytes(raw.tolist())
                tensor = raw.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)
                assert probe.digest(tensor) == bytes_of(name, shape, data), (name, shape)
        x = torch.arange(12.0).reshape(3, 4)
        assert probe.digest(x.t()) == probe.digest(x.t().contiguous()) != probe.digest(x)
        assert probe.digest(x[:, ::2]) == probe.digest(x[:, ::2].clone())
        assert probe.digest(x.expand(2, 3, 4)) == probe.digest(x.expand(2, 3, 4).clone())
        z = torch.complex(x, x)
        assert probe.digest(z.conj()) == probe.digest(z.conj().resolve_conj()) != probe.digest(z)
        assert probe.digest(torch.nn.Parameter(x)) == probe.digest(x)
        assert probe.digest(torch.tensor([-0.0])) != probe.digest(torch.tensor([0.0]))
        assert list(dict(probe.flatten(x.to_sparse(), "s"))) == ["s/indices", "s/values"]
        assert len(list(probe.flatten(x.to_sparse_csr()))) == 3
        assert probe.exact_sum([x, torch.ones(2, dtype=torch.bfloat16)]) == struct.pack(">d", 68).hex()
        for unreadable in (torch.empty(2, device="meta"), torch.quantize_per_tensor(x, 1, 0, torch.qint8)):
            try:
                probe.digest(unreadable)
            except (TypeError, RuntimeError) as error:
                print(error)
            else:
                raise AssertionError(unreadable)
        probe.finish(x)
    """)


MODEL = """
    import os
    odd = lambda what: 1 + 2**-20 * (os.environ.get("ODD") == what)
    torch.set_num_threads(1)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.relu = torch.nn.Linear(4, 4), torch.nn.ReLU(inplace=True)
            self.norm, self.last = torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4)

        def forward(self, x, scale=None):
            y = self.relu(self.first(x)) + x
            y = y * odd("code")                      # code between modules
            y = self.last(self.norm(y))
            return {"out": y * odd("end"), "none": None}

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block, self.out = Block(), torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.out(self.block(x, scale=torch.ones(()))["out"])

    for _ in probe.iterations():
        probe.seed()
        data = torch.randn(3, 5, 4)
        model = probe.monitor_model(Model(), os.environ.get("NAME", ""))
        optimizer = torch.optim.Adam(model.parameters())
        probe.summarize_variables(model)
        for step, x in enumerate(data):
            probe.monitor(x, "data/x")
            with torch.no_grad():
                if step == 1:
                    model.out.weight.mul_(odd("update"))
            loss = model(x).square().mean()
            probe.monitor(loss, "loss")
            optimizer.zero_grad()
            (loss * odd("gradient")).backward()
            optimizer.step()
            probe.summarize_variables(optimizer)
            probe.summarize_variables(model, "after")
            probe.step()
        probe.finish(model, loss)
"""


def test_a_model_is_seen_from_its_hooks(python, tmp_path):
    records = records_of(trace(python, tmp_path, MODEL))
    names = [r[1] for r in records if r[0] == 1]
    variables = ["block.first.weight", "block.first.bias", "block.norm.weight", "block.norm.bias",
                 "block.norm.running_mean", "block.norm.running_var",
                 "block.norm.num_batches_tracked", "block.last.weight", "block.last.bias",
                 "out.weight", "out.bias"]
    forward = ["data/x", "block/input/scale", "block.first/forward", "block.relu/forward",
               "block.norm/input/0", "block.norm/forward", "block.last/forward",
               "block/forward/out", "out/forward", "model/forward", "loss"]
    assert names[:len(forward)] == forward
    assert sorted(name for name in names if name.startswith("variable/")) == sorted(
        f"variable/{name}/after" for name in variables)
    gradients = [name for name in names if name.startswith("gradient/") or "/backward" in name]
    assert gradients[0] == "gradient/loss" and set(gradients[1:3]) == {"model/backward",
                                                                      "out/backward"}
    assert {"block/backward/out", "block.last/backward", "block.first/backward"} < set(gradients)
    assert {f"gradient/{name}" for name in variables if "running" not in name
            and "tracked" not in name} <= set(gradients)
    assert len(gradients) == len(set(gradients))
    assert "optimizer/0/exp_avg" in names
    assert [r[1] for r in records if r[0] == 0][:11] == [f"variable/{n}/before" for n in variables]


# What is odd: the place that must be named, or what differs first where no place can be.
ODD = {"code": ("block.norm/input/0", 0), "end": ("block/forward/out", 0),
       "gradient": ("gradient/loss", 0), "update": (None, "out/forward", 1)}


def test_the_place_where_a_difference_comes_in(python, tmp_path):
    trace(python, tmp_path, MODEL, "even")
    trace(python, tmp_path, MODEL, "again")
    assert compare(tmp_path / "even", tmp_path / "again")["verdict"] == "equal"
    for odd, (place, *rest) in ODD.items():
        trace(python, tmp_path, MODEL, odd, ODD=odd)
        report = compare(tmp_path / "even", tmp_path / odd)
        found, first = report["root_cause"], report["first_difference"]
        if place:
            assert (found["place"], found["step"]) == (place, *rest), odd
            assert found == first and report["other_roots"] == [], odd
        else:
            # The variables changed where nobody looked, so what reads them is no cause.
            assert found is None and (first["place"], first["step"]) == tuple(rest), odd


def test_what_a_module_overwrites_is_captured_as_it_was_read(python, tmp_path):
    events = trace(python, tmp_path, """
        for _ in probe.iterations():
            model = probe.monitor_model(torch.nn.ReLU(inplace=True), "relu")
            probe.finish(model(torch.tensor([-1.0, 2.0])))
    """, REPROD_CAPTURE="0:0:relu/forward")
    found = {event["role"]: struct.unpack("<2f", base64.b64decode(event["data"]))
             for event in events if event["event"] == "tensor"}
    assert found == {"in": (-1.0, 2.0), "out": (0.0, 2.0)}


def test_parts_of_a_gradient_have_names_that_are_allowed(python, tmp_path):
    events = trace(python, tmp_path, """
        for _ in probe.iterations():
            table = torch.nn.Embedding(4, 2, sparse=True)
            model = probe.monitor_model(table, 110 * "e")
            model(torch.tensor([1, 1])).sum().backward()
            probe.finish(1)
    """)
    parts = [place for _, place, _, _ in records_of(events) if place.startswith("gradient/")]
    assert len(set(parts)) == 2 and max(len(place) for place in parts) <= 128


def test_names_filter_before_anything_is_read(python, tmp_path):
    events = trace(python, tmp_path, MODEL, NAME="net", REPROD_PROBE_NAMES="net.block.l*",
                   REPROD_PROBE_STEPS="1-1")
    assert [r[:2] for r in records_of(events)] == [(1, "net.block.last/forward"),
                                                   (1, "net.block.last/backward")]


def test_calls_that_fail_and_calls_within_calls(python, tmp_path):
    """Hooks survive exceptions, shared modules and recomputation (which may stop early)."""
    records = records_of(trace(python, tmp_path, """
        from torch.utils.checkpoint import checkpoint
        class Fails(torch.nn.Module):
            def forward(self, x):
                raise ValueError
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fails, self.shared = Fails(), torch.nn.Linear(2, 2)
            def forward(self, x):
                try:
                    self.fails(x)
                except ValueError:
                    pass
                return self.shared(self.shared(x)).sum() + checkpoint(self.shared, x, use_reentrant=False).sum()
        model = probe.monitor_model(Model())
        for _ in range(2):
            model(torch.ones(1, 2)).backward()
            w = probe.monitor(model.shared.weight, "weight")
            probe.step()
        w.sum().backward()
        x = torch.ones(2, requires_grad=True)
        (probe.monitor([x, {"y": x * 2}], "list")[1]["y"] ** 2).sum().backward()
        probe.finish(model)
    """))
    names = [r[1] for r in records if r[0] == 1]
    assert names.count("shared/forward") in (3, 4) and names.count("model/forward") == 1
    assert names.count("gradient/shared.weight") == 1 and not any("fails/f" in n for n in names)
    last = [r[1] for r in records if r[0] == 2]
    assert last == ["gradient/shared.weight", "gradient/weight", "list/0", "list/1/y",
                    "gradient/list/1/y", "gradient/list/0"]


def test_models_are_copied_saved_and_used_without_gradients(python, tmp_path):
    records = records_of(trace(python, tmp_path, """
        import copy, io
        model = probe.monitor_model(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
        x = torch.ones(1, 2)
        model(x)
        probe.step()
        copied = copy.deepcopy(model)
        with torch.no_grad():
            copied[0].weight += 1
        copied(x)
        probe.step()
        file = io.BytesIO()
        torch.save(model, file)
        torch.load(io.BytesIO(file.getvalue()), weights_only=False)(x)
        probe.step()
        with torch.inference_mode():
            model(torch.ones(1, 2))
        probe.finish(model)
    """))
    places = ["model/input/0", "0/forward", "1/forward", "model/forward"]
    assert [r[1] for r in records if r[0] == 0] == places
    assert [r[1] for r in records if r[0] == 1] == places[1:]  # x was recorded, as it is
    first, second = ({r[1]: r[2:] for r in records if r[0] == step} for step in (0, 1))
    assert first["0/forward"][0] != second["0/forward"][0]  # the copy's own variables
    assert [r[1] for r in records if r[0] == 2] == []
    assert [r[1] for r in records if r[0] == 3] == places
    assert {r[1]: r[2:] for r in records if r[0] == 3}["1/forward"] == first["1/forward"]


GPU = """
    # What a program with a GPU would call, counted.
    waits, capturing = [], [False]
    torch.cuda.is_initialized = lambda: True
    torch.cuda.synchronize = lambda: waits.append(1)
    torch.cuda.is_current_stream_capturing = lambda: capturing[0]
"""


def test_a_device_is_waited_for_only_where_something_is_recorded(python, tmp_path):
    code = GPU + """
    import os
    model = probe.monitor_model(torch.nn.Linear(2, 2))
    for step in range(3):
        x = probe.monitor(torch.ones(1, 2), "data/x")
        probe.monitor(model(x).sum(), "loss", inputs=x).backward()
        probe.monitor_rng()
        probe.summarize_variables(model, "after")
        probe.step()
    probe.finish(model)
    open(os.environ["WAITS"], "w").write(str(len(waits)))
    """
    waited = {}
    for name, more in {"off": {"REPROD_PROBES": "0"}, "names": {"REPROD_PROBE_NAMES": "none"},
                       "step": {"REPROD_PROBE_STEPS": "1-1"}, "on": {}}.items():
        trace(python, tmp_path, code, WAITS=str(tmp_path / "waits"), **more)
        waited[name] = int((tmp_path / "waits").read_text())
    assert waited["off"] == waited["names"] == 1  # finish() reads the results
    assert waited["off"] < waited["step"] < waited["on"]


def test_nothing_is_read_while_a_graph_is_captured(python, tmp_path):
    """The capture would be ended by it."""
    events = trace(python, tmp_path, GPU + """
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)
        def forward(self, x):
            capturing[0] = "inner" in self.captured
            y = self.inner(x)
            capturing[0] = False
            return y
    model = probe.monitor_model(Model())
    model.captured = "inner"
    model(torch.ones(1, 2))
    probe.step()
    model.captured = ""
    probe.monitor(torch.ones(1), "before")
    before, capturing[0] = len(waits), True
    x = probe.monitor(torch.ones(1, 2, requires_grad=True), "x")
    probe.monitor(model.inner(x).sum(), "loss").backward()
    assert len(waits) == before
    capturing[0] = False
    probe.monitor(torch.ones(1), "behind")
    probe.finish(model)
    """)
    assert [r[:2] for r in records_of(events)] == [
        (0, "model/input/0"), (0, "model/forward"), (1, "before"), (1, "behind")]


def test_what_has_no_bytes_stops_no_model(python, tmp_path):
    """Parameters that are elsewhere, or not made yet; results must be there."""
    events = trace(python, tmp_path, """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.lazy, self.away = torch.nn.LazyLinear(2), torch.nn.Linear(2, 2, device="meta")
            def forward(self, x):
                return self.lazy(x)
        model = probe.monitor_model(Model())
        probe.summarize_variables(model)
        model(torch.ones(1, 3)).sum().backward()
        for call, words in ((lambda: probe.finish(model), "finish: weights/away.weight: "),
                            (lambda: probe.monitor([1, model.away.weight], "x"), "x/1: ")):
            try:
                call()
            except TypeError as error:
                assert str(error).startswith(words + "reprod_probe cannot read a "), error
                assert " of dtype float32 on meta: " in str(error), error
            else:
                raise AssertionError(words)
        probe.finish(model.lazy)
    """)
    places = [r[1] for r in records_of(events)]
    assert {"lazy/forward", "model/forward"} <= set(places)
    assert not any("away" in place for place in places)


def test_the_run_says_what_pytorch_it_was(python, tmp_path):
    events = trace(python, tmp_path, "torch.ones(1)\nprobe.start()\nprobe.finish(torch.ones(1))",
                   REPROD_THREADS="2")
    environment = events[0]["environment"]
    assert environment["torch"] and environment["threads"] == events[0]["threads"] == 2
    assert any("libtorch_cpu.so" in library["path"] for library in events[0]["libraries"])


def test_probes_change_no_bit(python, tmp_path):
    """The same training with and without, and with other engines: one result."""
    results = set()
    for more in ({}, {"REPROD_PROBES": "0"}, {"REPROD_DIGEST": "python"}):
        events = trace(python, tmp_path, MODEL, **more)
        results |= {(e["digest"], e["weight_sum"], e["loss"]) for e in events
                    if e["event"] == "iteration"}
    assert len(results) == 1
