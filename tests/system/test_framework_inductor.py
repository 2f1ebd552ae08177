"""The pack of Inductor: stand-ins answer for PyTorch, and PyTorch itself where it is installed."""
import collections
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

from service import ROOT

PACKS = ROOT / "workloads" / "frameworks"
sys.path[:0] = [str(PACKS), str(ROOT / "workloads" / "python"), str(ROOT / "tests" / "frameworks")]
import check_frameworks as check  # noqa: E402
import pack  # noqa: E402

CACHE = pathlib.Path(os.environ.get("FRAMEWORKS_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "reprod" / "frameworks")
CASE = ["--size", "small", "--dtype", "float32", "--seed", "1", "--iterations", "2", "--threads", "2",
        "--device", "cpu:here"]


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Compiler:
    """Stands for torch.compile: writes the function as a file where Inductor does, and computes with that."""

    def __init__(self, torch):
        self.torch, self.calls, self.folders = torch, 0, []
        self.error, self.eager, self.kernels, self.eager_after, self.again_after = None, False, 1, None, None

    def __call__(self, function, fullgraph):
        assert fullgraph
        generated = []

        def compiled(*inputs):
            self.calls += 1
            if not generated:
                if self.error is not None:
                    raise self.error
                folder = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
                self.folders.append(folder)
                (folder / "generated.py").write_text("def call(function, inputs):\n    return function(*inputs)\n")
                spec = importlib.util.spec_from_file_location("generated", folder / "generated.py")
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                generated.append(module)
                self.torch._inductor.metrics.generated_kernel_count += self.kernels
                self.torch._dynamo.utils.counters["stats"]["unique_graphs"] += 1
            if self.calls == self.again_after:
                self.torch._dynamo.utils.counters["stats"]["unique_graphs"] += 1
            if self.eager or (self.eager_after is not None and self.calls > self.eager_after):
                return function(*inputs)
            return generated[0].call(function, inputs)
        return compiled


@pytest.fixture
def torch(monkeypatch):
    name = types.SimpleNamespace
    stand_in = name(
        __version__="9.9.9", version=name(git_version="abc", cuda=None), __config__=name(show=lambda: "oneDNN v3.1"),
        utils=name(deterministic=None), backends=name(), threads=[], asked=[],
        autograd=name(set_multithreading_enabled=lambda on: Quiet()),
        _dynamo=name(utils=name(counters=collections.defaultdict(collections.Counter))),
        _inductor=name(metrics=name(generated_kernel_count=0), config=name(deterministic=False)))
    stand_in.set_num_threads = stand_in.threads.append
    stand_in.use_deterministic_algorithms = stand_in.asked.append
    stand_in.compile = Compiler(stand_in)
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/nonexistent")
    return stand_in


@pytest.fixture
def inductor(torch):
    spec = importlib.util.spec_from_file_location("pack_inductor", PACKS / "pack_inductor.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.PACK.framework = torch
    return module


def doubled(value):
    return 2 * value


def compiled(inductor):
    return inductor.forward(doubled, 21)


def refusal(call, *arguments):
    with pytest.raises(pack.Unsupported) as caught:
        call(*arguments)
    return str(caught.value)


# What computes

def test_what_was_generated_computes_and_its_folder_is_gone(inductor, torch):
    compute = compiled(inductor)
    [folder] = torch.compile.folders
    assert not folder.exists() and torch.compile.calls == 2
    assert [compute(), compute()] == [42, 42] and torch.compile.calls == 4
    compiled(inductor)
    assert torch.compile.folders[1] != folder and sys.getprofile() is None


def test_what_was_never_compiled_is_no_measurement(inductor, torch):
    torch.compile.eager = True
    assert refusal(compiled, inductor) == "what was computed is not what torch.compile had generated"
    torch.compile.kernels = 0
    torch._inductor.metrics.generated_kernel_count = 0
    assert refusal(compiled, inductor) == "torch.compile generated no code for it"


def test_a_torch_compile_that_is_switched_off_is_no_measurement(inductor, torch):
    torch.compile = lambda function, fullgraph: function
    assert refusal(compiled, inductor) == "torch.compile generated no code for it"


def test_counters_that_a_version_does_not_have(inductor, torch):
    del torch._dynamo.utils.counters
    torch.compile = lambda function, fullgraph: function
    assert refusal(compiled, inductor).startswith("PyTorch 9.9.9 has no torch._dynamo.utils.counters")


@pytest.mark.parametrize("later", [{"eager_after": 3}, {"again_after": 4}])
def test_each_output_is_of_what_was_generated_at_first(inductor, torch, later):
    vars(torch.compile).update(later)
    compute = compiled(inductor)
    assert compute() == 42
    assert refusal(compute) == "what was computed is not what torch.compile had generated"


def error(module, name, text, inner=None):
    kind = type(name, (RuntimeError,), {"__module__": module})
    raised = kind(text)
    if inner is not None:
        raised.inner_exception = inner
    return raised


NONE_FOUND = error("torch._inductor.exc", "InvalidCxxCompiler", "No working C++ compiler found in cxx: (None, 'g++')")


@pytest.mark.parametrize("raised, said", [
    (error("torch._dynamo.exc", "BackendCompilerFailed", "backend='inductor' raised:\nmore", NONE_FOUND),
     "InvalidCxxCompiler: No working C++ compiler found in cxx: (None, 'g++')"),
    (error("torch._inductor.exc", "CppCompileError", "C++ compile error\n\nCommand:\ng++ a.cpp\nOutput:\n"
           "a.cpp:1:10: fatal error: Python.h: No such file\ncompilation terminated."),
     "CppCompileError: C++ compile error; a.cpp:1:10: fatal error: Python.h: No such file"),
    (error("torch._dynamo.exc", "Unsupported", ""), "Unsupported: no reason given"),
    (RuntimeError("Dynamo is not supported on Python 3.12+"), "RuntimeError: Dynamo is not supported on Python 3.12+"),
    (RuntimeError("x does not have a deterministic implementation"),
     "RuntimeError: x does not have a deterministic implementation"),
])
def test_what_cannot_be_compiled_is_said_in_its_own_words(inductor, torch, raised, said):
    torch.compile.error = raised
    assert refusal(compiled, inductor) == said
    assert list(pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).parent.glob("reprod-inductor-*/generated.py")) == []


@pytest.mark.parametrize("raised", [
    ValueError("a defect of ours"), RuntimeError("out of memory"),
    error("torch._dynamo.exc", "BackendCompilerFailed", "backend='inductor' raised:", OSError(28, "No space left")),
    error("torch._dynamo.exc", "BackendCompilerFailed", "backend='inductor' raised:", MemoryError())])
def test_other_errors_are_no_refusals(inductor, torch, raised):
    torch.compile.error = raised
    with pytest.raises(type(raised)):
        compiled(inductor)
    assert not pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).exists()


# How it is switched

def variant(inductor, name):
    return {v.name: v for v in inductor.PACK.variants}[name]


def test_a_switch_that_a_version_does_not_know_is_unsupported(inductor, torch):
    switch = variant(inductor, "inductor_deterministic")
    assert refusal(inductor.PACK.switch, switch, 2) == (
        "TORCHINDUCTOR_DETERMINISTIC=1 was set, and PyTorch 9.9.9 is not in that mode")
    torch._inductor.config.deterministic = True
    inductor.PACK.switch(switch, 3)
    del torch._inductor.config.deterministic
    assert refusal(inductor.PACK.switch, switch, 2) == (
        "PyTorch 9.9.9 does not know TORCHINDUCTOR_DETERMINISTIC; it came with 2.10")
    assert torch.threads == [2, 3, 2] and torch.asked == []


def test_the_other_switches(inductor, torch):
    inductor.PACK.switch(variant(inductor, "default"), 2)
    assert torch.asked == []
    inductor.PACK.switch(variant(inductor, "deterministic"), 2)
    assert torch.asked == [True]


def test_a_mode_that_ends_with_the_first_graph_is_in_the_log(inductor, torch, monkeypatch, capsys):
    monkeypatch.setenv("TORCHINDUCTOR_DETERMINISTIC", "1")
    torch._inductor.config.deterministic = True
    compiled(inductor)
    assert capsys.readouterr().err == ""
    torch._inductor.config.deterministic = False
    compiled(inductor)
    assert capsys.readouterr().err == (
        "PyTorch 9.9.9 left the mode of TORCHINDUCTOR_DETERMINISTIC when it had compiled the first graph\n")


def test_each_backend_has_its_switches(inductor):
    PACK = inductor.PACK
    assert [(v.name, v.control, v.kind, PACK.promised(v), v.variables) for v in PACK.asked()] == [
        ("default", True, "race", None, {}),
        ("inductor_deterministic", False, None, None, {"TORCHINDUCTOR_DETERMINISTIC": "1"}),
        ("deterministic", False, None, "deterministic", {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"})]
    assert PACK.forks and PACK.parts == ()
    PACK.backend = "cuda"
    assert [(v.name, v.kind) for v in PACK.asked() if v.control] == [("default", "race"), ("max_autotune", "choice")]
    assert not PACK.forks and PACK.parts == ("triton",)
    assert PACK.prepare(None, 2) == {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def test_what_is_installed_is_pytorch(inductor):
    assert (inductor.PACK.requirement(), inductor.PACK.module) == ("torch", "torch")
    assert inductor.PACK.beside("2.2.0") == ["numpy<2"]


def test_a_version_without_torch_compile_has_no_operations(inductor, torch):
    operations = inductor.PACK.operations.values()
    assert all(map(inductor.PACK.has, operations)) and inductor.PACK.unmeasured() == []
    del torch.compile
    assert not any(map(inductor.PACK.has, operations))


# What a run says, and what is chosen before it

def test_the_compiler_is_of_the_environment(inductor, torch, tmp_path):
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\necho \"g++ (Own) 1.2 $1\"\necho more\n")
    program.chmod(0o755)
    assert "cxx" not in {name for name, fact in inductor.PACK.versions().items() if fact}
    torch._inductor.codecache = types.SimpleNamespace(cpp_compiler=lambda: str(program))
    facts = inductor.PACK.versions()
    assert (facts["cxx"], facts["pytorchinductor"], facts["torch_git"]) == ("g++ (Own) 1.2 --version", "9.9.9", "abc")

    def none():
        raise NONE_FOUND
    torch._inductor.cpp_builder = types.SimpleNamespace(get_cpp_compiler=none)
    assert inductor.PACK.versions()["cxx"] is None
    inductor.PACK.backend = "cuda"
    assert set(inductor.PACK.versions()) >= {"pytorchinductor", "torch_git"}
    assert "cxx" not in inductor.PACK.versions()


def test_a_forker_has_the_instructions_chosen(inductor, torch):
    assert list(inductor.PACK.later)[-1] == "torch._inductor.compile_fx"
    chosen = []

    def choose():
        chosen.append(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert os.path.isdir(chosen[-1])
        raise NONE_FOUND
    torch._inductor.cpu_vec_isa = types.SimpleNamespace(pick_vec_isa=choose)
    assert "torch._dynamo" in list(inductor.PACK.later)
    assert len(chosen) == 1 and not os.path.exists(chosen[0])


def test_it_is_measured_in_the_folder_of_pytorch(tmp_path):
    """What is installed once is asked by two packs."""
    folder = tmp_path / "pytorch-9.9"
    folder.mkdir()
    (folder / "worker").write_text("#!/bin/sh\nexec /bin/true -s -B w --pack p --packages l \"$@\"\n")
    (folder / "framework.json").write_text("{}")
    (tmp_path / "programs").mkdir()
    options = types.SimpleNamespace(cache=tmp_path, programs=tmp_path / "programs")
    entry = check.install("inductor", "9.9", options)
    assert entry["name"] == "inductor-9.9" and entry["worker"] == str(tmp_path / "programs" / "inductor-9.9")
    words = pathlib.Path(entry["worker"]).read_text()
    assert f"--pack {PACKS}/pack_inductor.py --packages {folder}/lib" in words
    assert check.install("pytorch", "9.9", options)["name"] == "pytorch-9.9"


# PyTorch itself

def real_worker(folder):
    """The worker of a PyTorch that make check-frameworks installed: it is too large to be fetched for this."""
    for found in sorted(CACHE.glob("pytorch-2.*/framework.json"), reverse=True):
        return check.own_worker(found.parent, "inductor", folder)
    pytest.skip(f"there is no PyTorch 2 in {CACHE}")


def run(worker, variant, path=os.environ["PATH"]):
    done = subprocess.run([str(worker), "--run", "--workload", "inductor_index_add", "--variant", variant, *CASE],
                          env={"PATH": path, "HOME": os.environ["HOME"], "REPROD_RESULT_FD": "1",
                               "REPROD_NONCE": "0" * 32}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_real_code_is_generated_and_computes(tmp_path):
    worker = real_worker(tmp_path)
    events = run(worker, "deterministic")
    if events[-1]["outcome"] == "unsupported" and "ompile" in events[-1]["cause"]:
        pytest.skip("this machine cannot compile: " + events[-1]["cause"])
    assert events[-1]["outcome"] == "completed"
    assert len({event["digest"] for event in events if event["event"] == "iteration"}) == 1


@pytest.mark.long
def test_a_machine_without_a_compiler_is_told_so(tmp_path):
    (tmp_path / "bin").mkdir()
    for name in "sh", "env":
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    events = run(real_worker(tmp_path), "default", str(tmp_path / "bin"))
    assert events[-1]["outcome"] == "unsupported" and "No working C++ compiler" in events[-1]["cause"]
