"""The example in deploy/gate with PyTorch: a commit that makes its training non-deterministic does not pass, the place is
named, the fix passes, and a control that cannot vary does not let anything pass.  make check-pytorch installs PyTorch
and runs this."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from service import BUILD, ROOT

EXAMPLE = ROOT / "deploy" / "gate"
PYTHON = ROOT / "workloads" / "python"
SWITCH = "    torch.use_deterministic_algorithms("


def command_of(name):
    """What the file for a CI system runs."""
    [line] = [line for line in (EXAMPLE / name).read_text().splitlines() if "reprod check" in line]
    return line[line.index("reprod check"):]


def git(folder, *words, **more):
    return subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words],
                          capture_output=True, text=True, **more)


@pytest.fixture
def project(tmp_path):
    """A repository with the example, whose main branch is good."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: make check-pytorch installs it and runs this")
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE, folder)
    for name in "reprod_probe.py", "reprod_compare.py", "reprod_pytest.py":
        shutil.copy(PYTHON / name, folder)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / ".gitignore").write_text(".venv\n__pycache__\nreprod.xml\n")
    git(folder, "init", "--quiet", "-b", "main")
    commit(folder, "good")
    shutil.copy(EXAMPLE / "pre-merge-commit", folder / ".git" / "hooks")
    return folder


def commit(folder, name):
    git(folder, "add", "-A")
    assert git(folder, "commit", "--quiet", "-m", name).returncode == 0


def edit(folder, old, new):
    text = (folder / "train.py").read_text()
    assert text.count(old) == 1
    (folder / "train.py").write_text(text.replace(old, new))


def environment():
    return {**os.environ, "PATH": f"{BUILD}{os.pathsep}{os.environ['PATH']}",
            "REPROD_DIGEST_LIBRARY": str(BUILD / "libreprod-digest.so")}


def check(folder):
    done = subprocess.run(command_of("github-actions.yml"), shell=True, cwd=folder, capture_output=True, text=True,
                          env=environment())
    return done.returncode, done.stdout + done.stderr


def test_the_files_for_ci_systems_run_the_same():
    assert command_of("github-actions.yml") == command_of("gitlab-ci.yml")
    assert command_of("github-actions.yml").startswith(command_of("pre-merge-commit"))


def test_a_commit_that_makes_the_training_vary_is_refused_at_its_place(project):
    git(project, "checkout", "--quiet", "-b", "faster")
    edit(project, SWITCH, "    # " + SWITCH.strip())
    commit(project, "faster")
    code, said = check(project)
    assert code == 1 and re.search(r"^different   train deterministic .*wrote something else is 'grid/forward' at step 0", said), said
    assert "'grid/forward'" in (project / "reprod.xml").read_text()
    git(project, "checkout", "--quiet", "main")
    merged = git(project, "merge", "--no-ff", "--no-edit", "faster", env=environment())
    assert merged.returncode != 0 and "different   train deterministic" in merged.stdout + merged.stderr
    assert git(project, "log", "--format=%s", "main").stdout == "good\n", "the hook let no merge be made"
    git(project, "merge", "--abort")
    git(project, "checkout", "--quiet", "faster")
    edit(project, "    # " + SWITCH.strip(), SWITCH)
    commit(project, "the fix")
    code, said = check(project)
    assert code == 0 and said.startswith("equal       train deterministic "), said


def test_a_control_that_cannot_vary_lets_nothing_pass(project):
    edit(project, "torch.set_num_threads(2)", "torch.set_num_threads(1)")
    code, said = check(project)
    assert code == 2 and "the control did not vary in 3 runs" in said, said


def test_the_same_as_a_test_of_pytest(project):
    def run():
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "--reprod"], cwd=project, capture_output=True, text=True,
                              env=environment())
    done = run()
    assert done.returncode == 0 and "equal in 3 runs; its control varied in " in done.stdout, done.stdout
    edit(project, SWITCH, "    # " + SWITCH.strip())
    done = run()
    assert done.returncode == 1 and "its bits differ: at 'grid/forward', step 0" in done.stdout, done.stdout
