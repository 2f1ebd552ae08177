"""The README's console blocks work as printed, against a real service."""
import importlib.util
import json
import re
import shutil

import pytest

from service import ROOT, Service

spec = importlib.util.spec_from_file_location("make_readme", ROOT / "tests" / "make_readme.py")
make_readme = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_readme)


def shape(text):
    """What must be the same in two runs of a command: JSON keys, or words without figures."""
    try:
        value = json.loads(text)
    except ValueError:
        varying = r"[0-9A-HJKMNP-TV-Z]{26}|cpu:[\w.-]+|[-+]?[0-9a-f]*\d[0-9a-f.]*|results?|\W+"
        return [re.sub(varying, " ", line).split() for line in text.splitlines()]
    return sorted(value) if isinstance(value, dict) else type(value).__name__


def check_blocks(fence, address, environment):
    """How many commands there are; each works, and prints what stands below it but for figures."""
    seen = 0
    for _, block in make_readme.blocks((ROOT / "README.md").read_text(), fence):
        for command, printed in make_readme.commands(block):
            code, output = make_readme.run(command, address, environment)
            assert code == 0, (command, output)
            seen += 1
            if "127.0.0.1:7357/ |" in command:
                continue  # the matrix of the survey, which this service has not run
            if any(line.endswith("…") for line in printed):
                assert output.startswith(printed[0][:5]), command
            else:
                assert shape("\n".join(printed)) == shape(output), command
    return seen


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("jq") or not shutil.which("curl"), reason="needs curl and jq")
def test_commands_work_as_printed(tmp_path):
    stacks = [{"name": "cpu"}, {"name": "one-thread", "threads": 1}]
    service = Service(tmp_path, options=["--no-survey"], config={"stacks": stacks}).start()
    address, environment = f"127.0.0.1:{service.port}", {}
    seen = check_blocks("```console", address, environment)
    assert seen >= 6
    assert service.stop() == 0


@pytest.mark.skipif(not shutil.which("jq") or not shutil.which("curl"), reason="needs curl and jq")
def test_a_fleet_shows_what_is_printed():
    with make_readme.fleet() as address:
        assert check_blocks("```console fleet", address, {}) >= 5
