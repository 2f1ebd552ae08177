"""workloads/python/reprod_probe.py: what programs that use it say, without any package."""
import base64
import ctypes
import json
import os
import subprocess
import sys
import textwrap
import types

import pytest

from service import BUILD, ROOT

PYTHON = ROOT / "workloads" / "python"
sys.path.insert(0, str(PYTHON))
import reprod_probe  # noqa: E402

ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PYTHON), "PYTHONHASHSEED": "0",
               "REPROD_DIGEST_LIBRARY": str(BUILD / "libreprod-digest.so")}
REQUEST = {"REPROD_WORKLOAD": "walk", "REPROD_VERSION": "3", "REPROD_VARIANT": "plain",
           "REPROD_SIZE": "small", "REPROD_DTYPE": "float64", "REPROD_SEED": "18446744073709551615",
           "REPROD_ITERATIONS": "2", "REPROD_DEVICE": "cpu:here", "REPROD_THREADS": "1"}

WALK = """
    import array, random
    import reprod_probe as probe

    for _ in probe.iterations(inputs={"table": array.array("d", range(5))}, algorithm="walk"):
        random.seed(probe.request().seed)
        weights = {"a": array.array("d", [0, 0]), "b": array.array("d", [1])}
        probe.summarize_variables(weights)
        for step in range(4):
            batch = probe.monitor([random.random(), random.random()], "data/batch")
            weights["a"][0] += batch[0]
            probe.monitor(weights["a"], "layer/forward", inputs=(batch, weights["b"]))
            weights["b"][0] *= weights["a"][0]
            probe.monitor({"b": weights["b"], "count": step}, "update")
            probe.step()
        probe.finish(weights, weights["a"][0])
"""


def run(tmp_path, code, request=REQUEST, ok=True, **more):
    """(the events, standard error) of a program that is started as the agent does it"""
    script = tmp_path / "walk.py"
    script.write_text(textwrap.dedent(code))
    read, write = os.pipe()
    process = subprocess.Popen([sys.executable, str(script)], pass_fds=[write],
                               stderr=subprocess.PIPE, text=True,
                               env={**ENVIRONMENT, "REPROD_RESULT_FD": str(write), **request, **more})
    os.close(write)
    with os.fdopen(read, "rb") as lines:
        raw = lines.read().splitlines()
    log = process.communicate()[1]
    assert (process.returncode == 0) == ok, log
    assert all(len(line) < 65536 for line in raw)
    return [json.loads(line) for line in raw], log


def records_of(events):
    return [(event["i"], event["step"], *record) for event in events
            if event["event"] == "probes" for record in event["records"]]


def test_settings_of_frameworks_are_of_the_environment_and_secrets_are_not(tmp_path):
    known = {"NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0", "VLLM_BATCH_INVARIANT": "1", "NCCL_ALGO": "^NVLS",
             "TORCHINDUCTOR_DETERMINISTIC": "1"}
    events, _ = run(tmp_path, WALK, **known, VLLM_API_KEY="secret", TORCHINDUCTOR_CACHE_DIR="/tmp/x")
    environment = events[0]["environment"]
    assert {name: environment.get("env." + name) for name in known} == known
    assert not {"env.VLLM_API_KEY", "env.TORCHINDUCTOR_CACHE_DIR"} & set(environment)


def test_a_run_says_all_that_the_protocol_asks_for(tmp_path):
    events, log = run(tmp_path, WALK)
    assert [e["event"] for e in events] == ["start", "iteration", "iteration", "end"] and not log
    start, first, second, end = events
    for name, value in {"v": 1, "workload": "walk", "version": 3, "variant": "plain",
                        "size": "small", "dtype": "float64", "seed": "18446744073709551615",
                        "iterations": 2, "threads": 1, "backend": "cpu", "claim": None,
                        "algorithm": "walk"}.items():
        assert start[name] == value, name
    assert start["device"] == end["device"] == "cpu:" + os.uname().nodename
    environment = start["environment"]
    assert {"backend", "model", "worker_build", "python", "libc", "threads"} <= set(environment)
    assert environment["env.PYTHONHASHSEED"] == "0"
    assert all(isinstance(value, (str, int)) for value in environment.values())
    libc = [lib for lib in start["libraries"] if "libc.so" in lib["path"] or "libc-" in lib["path"]]
    assert libc and int(libc[0]["build_id"], 16) > 0
    digest = reprod_probe.digest
    import array
    assert start["input_digest"] == end["input_digest"] == reprod_probe.combine(
        [digest(array.array("d", range(5)))])
    assert first["digest"] == second["digest"] and first["weight_sum"] == second["weight_sum"]
    assert [first["i"], second["i"]] == [0, 1] and 0 < first["ms"] < 60000
    assert end["outcome"] == "completed" and end["cause"] is None and end["iterations"] == 2
    assert end["elements"] == 4 and end["bytes_hashed"] == 64


@pytest.mark.parametrize("cudnn, driver, found", [
    (91900, "580.65.06", {"cuda_runtime": "13.0", "cudnn": "91900", "driver": "580.65.06"}),
    (None, None, {"cuda_runtime": "13.0"}),
])
def test_what_is_unknown_of_a_gpu_is_absent(cudnn, driver, found, monkeypatch):
    """With a made-up torch."""
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "GPU"),
        version=types.SimpleNamespace(cuda="13.0"),
        backends=types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: cudnn)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(reprod_probe, "_first_line",
                        lambda path, start="": driver or "" if "nvidia" in path else "x")
    facts = reprod_probe._environment(types.SimpleNamespace(backend="cuda"), 1, "build")
    assert facts["model"] == "GPU"
    assert {name: facts[name] for name in ("cuda_runtime", "cudnn", "driver") if name in facts} == found


def test_equal_weights_with_another_loss_are_another_result(tmp_path):
    events, _ = run(tmp_path, """
        import reprod_probe as probe
        for i in probe.iterations():
            probe.finish([1.5], float(i))
    """, REPROD_ITERATIONS="2")
    assert events[1]["weight_sum"] == events[2]["weight_sum"] and events[1]["digest"] != events[2]["digest"]


def test_results_are_the_digests_of_the_c_instruments(tmp_path):
    events, _ = run(tmp_path, """
        import array
        import reprod_probe as probe
        for _ in probe.iterations():
            probe.finish([array.array("f", [1.5, -0.0]), array.array("f", [2.5])], 0.25)
    """, REPROD_ITERATIONS="1")
    lib = ctypes.CDLL(str(BUILD / "libreprod-instruments.so"))
    from test_instruments import Digest
    lib.digest_tensor.restype = lib.digest_combine.restype = Digest
    parts = (Digest * 3)()
    import struct
    for i, values in enumerate(([1.5, -0.0], [2.5])):
        data, shape = struct.pack(f"={len(values)}f", *values), (ctypes.c_int64 * 1)(len(values))
        parts[i] = lib.digest_tensor(data, 0, ctypes.c_size_t(4), 1, shape, 1)
    parts[2] = lib.digest_tensor(struct.pack("=d", 0.25), 1, ctypes.c_size_t(8), 0, None, 1)
    whole = lib.digest_combine(parts, 3)
    assert events[1]["digest"] == f"{whole.hi:016x}{whole.lo:016x}"
    assert events[1]["weight_sum"] == struct.pack(">d", 4).hex()
    assert events[1]["loss"] == struct.pack(">d", 0.25).hex()


def test_records_say_what_places_read(tmp_path):
    events, _ = run(tmp_path, WALK, REPROD_PROBES="1")
    records = records_of(events)
    assert [r[2] for r in records[:6]] == [
        "variable/a/before", "variable/b/before", "data/batch", "layer/forward", "update/b",
        "update/count"]
    assert len(records) == 2 * (2 + 4 * 4)
    assert [r[:2] for r in records[:18:4]] == [(0, 0), (0, 0), (0, 1), (0, 2), (0, 3)]
    per_iteration = [[r[1:] for r in records if r[0] == i] for i in (0, 1)]
    assert per_iteration[0] == per_iteration[1]
    zeros = [r[2] for r in records[:18] if r[3] == reprod_probe.NOTHING]
    assert zeros == ["variable/a/before", "variable/b/before"] + 4 * ["data/batch"]
    # What is not said is everything before: each such place reads something else.
    unknown = [r[3] for r in records[:18] if r[2].startswith("update/")]
    assert len(unknown) == 8 and len(set(unknown)) == 4


def test_unknown_inputs_carry_every_difference(tmp_path):
    """One place differs once, unseen by its neighbours: no place behind it has equal inputs."""
    code = """
        import os
        import reprod_probe as probe
        for _ in probe.iterations():
            for step in range(3):
                for place in "abc":
                    probe.monitor(int(os.environ["BAD"] == place + str(step)), place)
                probe.step()
            probe.finish(1)
    """
    same, odd = (records_of(run(tmp_path, code, REPROD_PROBES="1", REPROD_ITERATIONS="1",
                                BAD=bad)[0]) for bad in ("", "b1"))
    roots = [a[1:3] for a, b in zip(same, odd) if a[3] == b[3] and a[4] != b[4]]
    assert roots == [(1, "b")]
    assert [a[3] == b[3] for a, b in zip(same, odd)] == 5 * [True] + 4 * [False]


@pytest.mark.parametrize("request_, places", [
    ({"REPROD_PROBES": "2"}, {(s, p) for s in (0, 2) for p in ("data/batch", "layer/forward",
                                                               "update/b", "update/count")}),
    ({"REPROD_PROBES": "1", "REPROD_PROBE_NAMES": "*a*a*/b*"}, {(s, "data/batch") for s in range(4)}
     | {(0, "variable/a/before"), (0, "variable/b/before")}),
    ({"REPROD_PROBES": "1", "REPROD_PROBE_NAMES": "layer/*", "REPROD_PROBE_STEPS": "1-2"},
     {(1, "layer/forward"), (2, "layer/forward")}),
    ({"REPROD_PROBES": "0"}, set()),
    ({}, set()),
])
def test_density_names_and_steps(tmp_path, request_, places):
    records = records_of(run(tmp_path, WALK, **request_)[0])
    got = {(r[1], r[2]) for r in records}
    assert got - {(0, "variable/a/before"), (0, "variable/b/before")} == \
        places - {(0, "variable/a/before"), (0, "variable/b/before")}


def captured(events):
    found = {}
    for event in events:
        if event["event"] == "tensor":
            assert (event["i"], event["step"]) == (1, 2)
            key = event["place"], event["role"], event["index"], event["dtype"], *event["shape"]
            data = base64.b64decode(event["data"])
            assert event["offset"] == len(found.get(key, b"")) and len(data) <= 32768
            found[key] = found.get(key, b"") + data
            assert event["captured_bytes"] <= event["bytes_total"]
    return found


def test_a_captured_place_brings_its_tensors(tmp_path):
    whole, _ = run(tmp_path, WALK, REPROD_PROBES="1")
    events, _ = run(tmp_path, WALK, REPROD_CAPTURE="1:2:layer/forward")
    found = captured(events)
    assert list(found) == [("layer/forward", "in", 0, "float64", 2),
                           ("layer/forward", "in", 1, "float64", 1),
                           ("layer/forward", "out", 0, "float64", 2)]
    [record] = records_of(events)
    assert record in records_of(whole)
    out = reprod_probe._leaf_of_bytes("float64", (2,), found["layer/forward", "out", 0, "float64", 2])
    assert out.digest() == record[4]


def test_what_a_captured_place_reads_is_known_without_other_records(tmp_path):
    """It reads everything before it, which is digested although it is not recorded."""
    whole, _ = run(tmp_path, WALK, REPROD_PROBES="1")
    events, _ = run(tmp_path, WALK, REPROD_CAPTURE="1:2:update/count")
    [record] = records_of(events)
    assert record in records_of(whole) and record[3] != reprod_probe.NOTHING


def test_large_tensors_are_cut(tmp_path):
    """What is written always finds room."""
    events, _ = run(tmp_path, """
        import reprod_probe as probe
        for i in probe.iterations():
            for step in range(3):
                big, none = bytearray(5 << 20), bytearray()
                probe.monitor(big, "big", inputs=[none] + [big] * 4 + [none] * 200)
                probe.step()
            probe.finish(1)
    """, REPROD_CAPTURE="1:2:big")
    sizes = [len(data) for data in captured(events).values()]
    assert sizes == [0] + [4 << 20] * 3 + [0] * 123 + [4 << 20]


def test_lines_and_records_are_bounded(tmp_path):
    events, _ = run(tmp_path, """
        import reprod_probe as probe
        probe.RECORDS_MAX = 2500  # the real bound takes half a minute
        for i in probe.iterations():
            for n in range(1000):
                probe.monitor(n, "\\n\\u202e" + "\\N{SNOWMAN}" * 60 + str(n))
            for n in range(2000):
                probe.monitor(n, "n")
            probe.finish(1)
    """, REPROD_PROBES="1", REPROD_ITERATIONS="1")
    records = records_of(events)
    assert len(records) == 2500 and events[-1]["probes_dropped"] == 500
    assert reprod_probe.RECORDS_MAX == 262144
    assert events[-1]["outcome"] == "completed"
    names = {record[2] for record in records}
    assert len(names) == 1001
    assert all(len(name.encode()) <= 128 and name.isprintable() for name in names)


# --- by hand, and what goes wrong -------------------------------------------------------------


def test_by_hand_it_writes_a_file(tmp_path):
    script = tmp_path / "by_hand.py"
    script.write_text(textwrap.dedent(WALK))
    subprocess.run([sys.executable, str(script)], check=True,
                   env={**ENVIRONMENT, "REPROD_TRACE": str(tmp_path / "trace")})
    events = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    assert events[0]["workload"] == "by_hand" and events[-1]["outcome"] == "completed"
    assert len(records_of(events)) == 18


def test_without_anybody_to_tell_nothing_happens(tmp_path):
    script = tmp_path / "alone.py"
    script.write_text(textwrap.dedent(WALK) + textwrap.dedent("""
        value = object()
        assert probe.monitor(value, "x") is value
        probe.step(); probe.finish(object()); probe.monitor_rng()
        import sys
        assert "numpy" not in sys.modules and "torch" not in sys.modules
    """))
    done = subprocess.run([sys.executable, str(script)], env=ENVIRONMENT, capture_output=True,
                          text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [p.name for p in tmp_path.iterdir()] == ["alone.py"]


@pytest.mark.parametrize("code, cause", [
    ("probe.finish(1)\nprobe.finish(1)\nprobe.finish(1)", None),  # after the end: nobody to tell
    ("probe.finish(1)", "1 of 2 iterations were finished"),
    ("pass", "0 of 2 iterations were finished"),
    ("probe.monitor(1, 'x')\nraise SystemExit(0)", "0 of 2 iterations were finished"),
])
def test_a_run_that_does_not_end_has_no_end(tmp_path, code, cause):
    events, log = run(tmp_path, "import reprod_probe as probe\nprobe.start()\n" + code)
    assert (events[-1]["event"] == "end") == (cause is None)
    assert cause is None or cause in log


@pytest.mark.parametrize("code, cause", [
    ("probe.monitor(object(), 'x')", "TypeError: x: reprod_probe cannot read a object"),
    ("probe.finish('text')", "TypeError: reprod_probe cannot sum values of dtype bytes"),
    ("probe.start(inputs=object())", "TypeError: reprod_probe cannot read a object"),
])
def test_what_cannot_be_read_is_an_error(tmp_path, code, cause):
    events, log = run(tmp_path, "import reprod_probe as probe\n" + code, ok=False,
                      REPROD_PROBES="1")
    assert cause in log and "end" not in [event["event"] for event in events]


@pytest.mark.parametrize("variable, value, cause", [
    ("REPROD_ITERATIONS", "ten", "REPROD_ITERATIONS is 'ten', not a number"),
    ("REPROD_PROBE_STEPS", "5", "REPROD_PROBE_STEPS is '5', not A-B"),
    ("REPROD_CAPTURE", "loss", "REPROD_CAPTURE is 'loss', not ITERATION:STEP:PLACE"),
    ("REPROD_RESULT_FD", "77", "REPROD_RESULT_FD is 77, which is not open here"),
])
def test_a_wrong_request_is_refused(tmp_path, variable, value, cause):
    events, log = run(tmp_path, WALK, ok=False, **{variable: value})
    assert cause in log and events == []


def test_unsupported_has_its_cause(tmp_path):
    events, _ = run(tmp_path, """
        import reprod_probe as probe
        probe.start()
        probe.unsupported("needs two of them")
    """)
    assert events[-1]["outcome"] == "unsupported" and events[-1]["cause"] == "needs two of them"
    assert events[-1]["elements"] == events[-1]["iterations"] == 0


def test_inputs_that_change_show(tmp_path):
    events, _ = run(tmp_path, """
        import array
        import reprod_probe as probe
        x = array.array("d", [1, 2])
        for _ in probe.iterations(inputs=x):
            x[0] += 1
            probe.finish(x)
    """)
    assert events[0]["input_digest"] != events[-1]["input_digest"]


def test_child_processes_are_silent(tmp_path):
    """What they inherit is neither written twice nor seen as their own."""
    events, _ = run(tmp_path, """
        import multiprocessing, subprocess, sys
        import reprod_probe as probe

        def work(n):
            probe.monitor(n, "child")
            probe.step()
            return n

        probe.start()
        probe.monitor(1, "parent")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(work, range(4))
        subprocess.run([sys.executable, "-c", "import os; os.write(%d, b'noise')"
                        % int(__import__("os").environ["REPROD_RESULT_FD"])], close_fds=False,
                       stderr=subprocess.DEVNULL)
        probe.finish(1)
        probe.finish(1)
    """, REPROD_PROBES="1")
    assert [record[2] for record in records_of(events)] == ["parent"]
    assert [e["event"] for e in events] == ["start", "probes", "iteration", "iteration", "end"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_child_processes_that_begin_anew_are_silent(tmp_path, method):
    """They import the program again, and find what the parent was asked for."""
    script = tmp_path / "walk.py"
    script.write_text(textwrap.dedent("""
        import multiprocessing
        import reprod_probe as probe

        def work(n):
            probe.monitor(n, "child")
            probe.step()
            return n

        if __name__ == "__main__":
            probe.start()
            probe.monitor(1, "parent")
            with multiprocessing.get_context("%s").Pool(1) as pool:
                assert pool.map(work, range(2)) == [0, 1]
            probe.finish(1)
    """ % method))
    subprocess.run([sys.executable, str(script)], check=True,
                   env={**ENVIRONMENT, "REPROD_TRACE": str(tmp_path / "trace")})
    events = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    assert [e["event"] for e in events] == ["start", "probes", "iteration", "end"]
    assert [record[2] for record in records_of(events)] == ["parent"]


def test_the_build_is_what_the_program_is_made_of(tmp_path):
    code = "import reprod_probe as probe, part\nprobe.start()\nprobe.finish(1)\nprobe.finish(1)\n"

    def build(text, code=code):
        (tmp_path / "part.py").write_text(text)
        return run(tmp_path, code)[0][0]["environment"]["worker_build"]

    first = build("x = 1")
    assert build("x = 2") != first == build("x = 1") != build("x = 1", code + "# more")
