"""deploy/framework with wheels of a small framework, made here: no network is used."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from service import ROOT

SCRIPT = ROOT / "deploy" / "framework"
FIXTURES = ROOT / "tests" / "fixtures" / "frameworks"
PACK = FIXTURES / "pack_tiny.py"
sys.path.insert(0, str(FIXTURES))
import tiny  # noqa: E402


def deploy(into, *arguments, env=None, python=sys.executable):
    return subprocess.run([python, str(SCRIPT), "--into", str(into), *map(str, arguments)],
                          capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})})


def everything(folder):
    return sorted(folder.rglob("*")) if folder.exists() else []


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    tiny.wheel(folder, "1.0")
    tiny.wheel(folder, "1.1")
    tiny.wheel(folder, "2.0", more=tiny.SCALED)
    return folder


@pytest.fixture
def into(tmp_path):
    return tmp_path / "stacks"


def install(into, wheels, version, *arguments, **options):
    return deploy(into, "--pack", PACK, "--version", version, "--wheels", wheels, *arguments, **options)


def refuse(into, wheels, version, *arguments, **options):
    before = everything(into)
    done = install(into, wheels, version, *arguments, **options)
    assert done.returncode == 1 and done.stdout == "", done
    assert everything(into) == before
    return done.stderr.strip().splitlines()[-1].removeprefix("framework: ")


@pytest.mark.long
def test_versions_side_by_side(into, wheels, tmp_path):
    config = tmp_path / "reprod.json"
    for version, operations in ("1.0", 4), ("2.0", 5):
        done = install(into, wheels, version, "--config", config)
        assert done.returncode == 0, done.stderr
        name = f"tiny-{version}"
        assert json.loads(done.stdout) == {"name": name, "worker": str(into / name / "worker"),
                                           "probe_seconds": 60}
        sizes, said = done.stderr.splitlines()
        assert sizes.startswith(f"{name}: 1 package, 0 of 0 MiB to download, about 0 MiB on disk")
        assert said == (f"Tiny Frame {version}: {operations} operations; not measured, though"
                        " documented: tinyframe.later")
        facts = json.loads((into / name / "framework.json").read_text())
        [file] = facts["files"]
        assert file["name"] == "tinyframe" and len(file["sha256"]) == 64
    stacks = json.loads(config.read_text())["stacks"]
    assert [stack["name"] for stack in stacks if stack["name"] != "cuda"] == ["cpu", "tiny-1.0", "tiny-2.0"]
    assert sorted(os.listdir(into)) == ["tiny-1.0", "tiny-2.0"]
    done = deploy(into, "--pack", PACK, "--version", "1.0", "--remove", "--config", config)
    assert (done.returncode, done.stderr) == (0, "tiny-1.0: removed\n")
    stacks = json.loads(config.read_text())["stacks"]
    assert [stack["name"] for stack in stacks if stack["name"] != "cuda"] == ["cpu", "tiny-2.0"]
    assert os.listdir(into) == ["tiny-2.0"]


@pytest.mark.long
def test_the_worker_answers_whatever_is_set_for_python(into, wheels, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "json.py").write_text("raise SystemExit('not me')\n")
    assert install(into, wheels, "1.0").returncode == 0
    done = subprocess.run([str(into / "tiny-1.0" / "worker"), "--probe"], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "bad")})
    assert json.loads(done.stdout)["versions"]["tinyframe"] == "1.0", done.stderr


@pytest.mark.long
def test_nothing_is_overwritten(into, wheels, tmp_path):
    assert install(into, wheels, "1.0").returncode == 0
    assert "exists: remove it first, or give another --name" in refuse(into, wheels, "1.0")
    assert install(into, wheels, "1.0", "--name", "other").returncode == 0
    config = tmp_path / "reprod.json"
    config.write_text('{"stacks": [{"name": "tiny-1.1"}]}')
    assert "has a stack 'tiny-1.1' already" in refuse(into, wheels, "1.1", "--config", config)
    (into / "mine").mkdir()
    done = deploy(into, "--pack", PACK, "--remove", "--name", "mine")
    assert done.returncode == 1 and "was not made by this script: it stays" in done.stderr
    assert (into / "mine").is_dir()


@pytest.mark.parametrize("name", ["inductor", "jax", "numpy", "onnxruntime", "pytorch", "tensorflow"])
def test_every_pack_can_be_read(into, name):
    """Before its framework is there, with what it imports itself."""
    done = deploy(into, "--framework", name, "--version", "0.0", "--remove", env={"PYTHONPATH": ""})
    assert done.returncode == 1 and done.stderr == f"framework: there is no {name}-0.0 in {into}\n"


@pytest.mark.long
def test_the_nearest_that_exist(into, wheels):
    assert refuse(into, wheels, "1.2") == (
        "there is no tinyframe 1.2 for this Python: the nearest are 1.0, 1.1, 2.0")
    done = deploy(into, "--framework", "pytroch", "--version", "2.4.1")
    assert done.returncode == 1 and "no pack of 'pytroch': did you mean pytorch?" in done.stderr
    assert "There are: inductor, jax, numpy, onnxruntime, pytorch, tensorflow" in done.stderr
    done = deploy(into, "--framework", "torch", "--version", "2.4.1")
    assert "did you mean pytorch?" in done.stderr
    assert install(into, wheels, "1.0").returncode == 0
    done = deploy(into, "--pack", PACK, "--remove", "--version", "1.1")
    assert done.returncode == 1 and "there is no tiny-1.1" in done.stderr
    assert "there is tiny-1.0" in done.stderr


@pytest.mark.long
def test_a_registry_that_cannot_be_reached(into):
    done = deploy(into, "--framework", "numpy", "--version", "1.26.4", "--retries", "0", env={
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull})
    assert done.returncode == 75, done
    assert done.stderr.startswith("framework: the registry cannot be reached: http://127.0.0.1:9")
    assert everything(into) == []


@pytest.mark.long
def test_a_disk_that_is_too_small(into, wheels, tmp_path):
    """What is free is said by something that stands before the standard library's function."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(
        "import collections, shutil\n"
        "Usage = collections.namedtuple('Usage', 'total used free')\n"
        "shutil.disk_usage = lambda path: Usage(1, 1, 64 << 20)\n")
    said = refuse(into, wheels, "1.0", env={"PYTHONPATH": str(tmp_path / "site")})
    assert "MiB are needed, 64 MiB are free" in said


@pytest.mark.long
@pytest.mark.parametrize("more, message", [
    ({"says": "1.3.1"}, "tinyframe says that it is 1.3.1, and what is installed is 1.3 of its package"),
    ({"more": "raise ImportError('no library')"}, "tinyframe cannot be imported: ImportError: no library"),
    ({"more": "os.abort()"}, "its worker ended with signal 6"),
    ({"more": "os._exit(9)"}, "its worker ended with status 9"),
])
def test_what_does_not_work_is_not_registered(into, wheels, tmp_path, more, message):
    tiny.wheel(wheels, "1.3", **more)
    config = tmp_path / "reprod.json"
    done = install(into, wheels, "1.3", "--config", config)
    assert done.returncode == 1 and message in done.stderr.splitlines()[-1], done.stderr
    assert not config.exists() and not (into / "tiny-1.3").exists()
    assert os.listdir(into) == [".tiny-1.3.part"]  # what was downloaded


@pytest.mark.long
def test_a_wheel_that_changes_while_it_is_installed(into, wheels, tmp_path):
    """pip is wrapped: after the versions were chosen, the file is another one."""
    wrapper = tmp_path / "python"
    wrapper.write_text(f"#!/bin/sh\ncase \"$3\" in download) echo x >>{wheels}/tinyframe-1.0-py3-none-any.whl;;"
                       f" esac\nexec {sys.executable} \"$@\"\n")
    wrapper.chmod(0o755)
    done = install(into, wheels, "1.0", "--python", wrapper)
    assert done.returncode == 1, done
    assert "HASHES" in done.stderr or "is not what the index says" in done.stderr
    assert not (into / "tiny-1.0").exists()


@pytest.mark.long
def test_an_install_that_was_interrupted_goes_on(into, wheels, tmp_path):
    """Killed at its second download; then only that is fetched, and nothing was half there before."""
    tiny.wheel(wheels, "1.0", needs=["tinybeside"])
    tiny.wheel(wheels, "0.1", name="tinybeside", files={"tinybeside.py": b"x = 1\n"})
    log, wrapper = tmp_path / "log", tmp_path / "python"
    wrapper.write_text(f"""#!/bin/sh
case "$3" in
download)
    echo download >>{log}
    if [ "$(wc -l <{log})" = 2 ]; then kill -KILL $PPID; exit 1; fi;;
esac
exec {sys.executable} "$@"
""")
    wrapper.chmod(0o755)
    config = tmp_path / "reprod.json"
    done = install(into, wheels, "1.0", "--config", config, "--python", wrapper)
    assert done.returncode == -signal.SIGKILL
    assert os.listdir(into) == [".tiny-1.0.part"] and not config.exists()
    assert len(list((into / ".tiny-1.0.part" / "wheels").iterdir())) == 1
    done = install(into, wheels, "1.0", "--config", config, "--python", wrapper)
    assert done.returncode == 0, done.stderr
    assert log.read_text().count("download") == 3
    assert os.listdir(into) == ["tiny-1.0"] and "tiny-1.0" in config.read_text()
    assert (into / "tiny-1.0" / "lib" / "tinybeside.py").exists()


@pytest.mark.long
def test_what_was_killed_while_it_unpacked_is_cleared_away(into, wheels, tmp_path):
    wrapper = tmp_path / "python"
    wrapper.write_text(f"#!/bin/sh\ncase \"$4\" in --quiet) kill -KILL $PPID; exit 1;; esac\nexec {sys.executable} \"$@\"\n")
    wrapper.chmod(0o755)
    for again in ["--version", "1.0", "--wheels", wheels], ["--remove", "--name", "tiny-1.0"]:
        assert install(into, wheels, "1.0", "--python", wrapper).returncode == -signal.SIGKILL
        assert len(os.listdir(into)) == 2, "what was downloaded, and the draft"
        done = deploy(into, "--pack", PACK, *again)
        assert done.returncode == 0, done.stderr
        assert os.listdir(into) == (["tiny-1.0"] if "--version" in again else [])
        if "--version" in again:
            assert deploy(into, "--pack", PACK, "--remove", "--version", "1.0").returncode == 0


def test_a_disk_that_is_full_while_pip_unpacks_is_named(into, wheels, tmp_path):
    """pip says of it "ERROR: Exception:", and the cause in the last line of a traceback."""
    wrapper = tmp_path / "python"
    wrapper.write_text(f"#!/bin/sh\ncase \"$4\" in --quiet) printf 'ERROR: Exception:\\nTraceback:\\n  x\\nOSError: [Errno 28] No"
                       f" space left on device\\n' >&2; exit 2;; esac\nexec {sys.executable} \"$@\"\n")
    wrapper.chmod(0o755)
    done = install(into, wheels, "1.0", "--python", wrapper)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1, "framework: pip install: OSError: [Errno 28] No space left on device")
    assert os.listdir(into) == [".tiny-1.0.part"]


@pytest.mark.long
def test_an_interpreter_that_has_it_already(into, wheels, tmp_path):
    import venv
    venv.create(tmp_path / "own", with_pip=False)
    python = tmp_path / "own" / "bin" / "python"
    lib = next(pathlib.Path(tmp_path / "own" / "lib").glob("python*")) / "site-packages"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--find-links",
                    str(wheels), "--target", str(lib), "tinyframe==2.0"], check=True,
                   stderr=subprocess.DEVNULL)
    config = tmp_path / "reprod.json"
    done = deploy(into, "--pack", PACK, "--interpreter", python, "--config", config)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "tiny-2.0"
    assert sorted(os.listdir(into / "tiny-2.0")) == ["framework.json", "worker"]
    assert str(python) in (into / "tiny-2.0" / "worker").read_text()
    done = deploy(into, "--pack", PACK, "--interpreter", python, "--version", "1.0")
    assert done.returncode == 1 and "Tiny Frame 2.0 instead of 1.0" in done.stderr
    done = deploy(into, "--pack", PACK, "--interpreter", sys.executable)
    assert done.returncode == 1 and "No module named 'tinyframe'" in done.stderr
    assert os.listdir(into) == ["tiny-2.0"]


@pytest.mark.long
def test_a_second_pack_of_what_is_installed(into, wheels, tmp_path):
    """Nothing is installed again: only a worker is made, of the same files."""
    tiny.wheel(wheels, "2.0")
    assert install(into, wheels, "2.0").returncode == 0
    other = tmp_path / "pack_other.py"
    other.write_text(PACK.read_text().replace('= "tiny", ', '= "other", '))
    done = deploy(into, "--pack", other, "--installed", into / "tiny-2.0")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "other-2.0"
    assert sorted(os.listdir(into / "other-2.0")) == ["framework.json", "worker"]
    facts = json.loads((into / "other-2.0" / "framework.json").read_text())
    assert (facts["framework"], facts["packages"]) == ("other", str(into / "tiny-2.0" / "lib"))
    done = deploy(into, "--pack", other, "--installed", into / "tiny-2.0", "--version", "1.0", "--name", "x")
    assert done.returncode == 1 and "Tiny Frame 2.0 instead of 1.0" in done.stderr
    for folder in into / "other-1.0", tmp_path:
        done = deploy(into, "--pack", other, "--installed", folder)
        assert done.returncode == 1 and f"{folder} is no stack that this script installed" in done.stderr
    assert sorted(os.listdir(into)) == ["other-2.0", "tiny-2.0"]


@pytest.mark.long
def test_a_stack_for_gpus(into, wheels, tmp_path):
    """It is installed where there is none, too, and beside that for the CPU."""
    tiny.wheel(wheels, "3.0", cuda="12.0")
    config = tmp_path / "reprod.json"
    done = install(into, wheels, "3.0", "--backend", "cuda", "--config", config)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "tiny-3.0-cuda"
    assert ' --backend cuda "$@"' in (into / "tiny-3.0-cuda" / "worker").read_text()
    assert json.loads((into / "tiny-3.0-cuda" / "framework.json").read_text())["backend"] == "cuda"
    assert "tiny-3.0-cuda" in config.read_text()
    assert install(into, wheels, "3.0").returncode == 0
    assert "--backend" not in (into / "tiny-3.0" / "worker").read_text()
    done = deploy(into, "--pack", PACK, "--version", "3.0", "--backend", "cuda", "--remove", "--config", config)
    assert (done.returncode, os.listdir(into)) == (0, ["tiny-3.0"])


@pytest.mark.long
def test_what_has_no_gpus_is_not_installed_for_them(into, wheels):
    done = deploy(into, "--framework", "numpy", "--version", "2.4.6", "--backend", "cuda")
    assert done.returncode == 1 and done.stderr == "framework: NumPy has no backend cuda, only cpu\n"
    done = install(into, wheels, "1.0", "--backend", "cuda")
    assert done.returncode == 1 and "Tiny Frame 1.0 was built without CUDA" in done.stderr
    assert os.listdir(into) == [".tiny-1.0-cuda.part"]  # what was downloaded


@pytest.mark.parametrize("arguments, message", [
    ([], "give --framework or --pack"),
    (["--framework", "numpy"], "give the --version"),
    (["--framework", "numpy", "--version", "1.0", "--wheels", "/nonexistent"], "not a folder"),
    (["--framework", "numpy", "--version", "1.0", "--python", "nonexistent"], "not a program"),
])
def test_arguments_that_are_wrong(into, arguments, message):
    done = deploy(into, *arguments)
    assert done.returncode == 2 and message in done.stderr
    assert not into.exists()
