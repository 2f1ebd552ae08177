"""reprod completion: shells complete the commands and options that there are."""
import re
import shutil
import subprocess

import pytest

from service import BUILD


def reprod(*words):
    return subprocess.run([str(BUILD / "reprod"), *words], capture_output=True, text=True)


def usages():
    """{command: its options}"""
    lines = re.findall(r"^  reprod (\w+)(.*)$", reprod("help").stdout, re.M)
    return {name: set(re.findall(r"--[\w-]+", usage)) for name, usage in lines}


def completed(folder, *words):
    """What bash offers for the last of WORDS."""
    script = folder / "reprod.bash"
    script.write_text(reprod("completion", "bash").stdout)
    quoted = " ".join(f"'{word}'" for word in ("reprod", *words))
    code = f"source '{script}'; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _reprod; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-uc", code], capture_output=True, text=True, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_bash_completes_commands_options_and_paths(tmp_path):
    every = usages()
    assert len(every) > 10 and "--localise" in every["check"]
    assert completed(tmp_path, "") == set(every)
    assert completed(tmp_path, "ma") == {"matrix"}
    for name, options in every.items():
        assert completed(tmp_path, name, "--") == options | {"--help"}
    (tmp_path / "job.json").touch()
    assert completed(tmp_path, "check", "--job", "jo") == {"job.json"}
    assert completed(tmp_path, "check", "--runs", "") == set(), "it has a value that nobody knows"
    assert completed(tmp_path, "matrix", "--view", "") == set()
    assert completed(tmp_path, "check", "--local", "--co") == {"--config", "--cost-limit"}, "a flag has none"


def test_fish_has_every_option():
    lines = reprod("completion", "fish").stdout.splitlines()
    for name, options in usages().items():
        own = {line.split(" -l ")[1].split()[0] for line in lines if f"__fish_seen_subcommand_from {name}'" in line}
        assert {"--" + option for option in own} == options


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_read_it(tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(reprod("completion", shell).stdout)
    done = subprocess.run([shell, str(tmp_path / "script")], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [[], ["csh"], ["bash", "zsh"]])
def test_no_other_shell(words):
    done = reprod("completion", *words)
    assert (done.returncode, done.stdout) == (2, "") and "bash, zsh or fish" in done.stderr
