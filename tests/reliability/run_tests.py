#!/usr/bin/env python3
"""Runs the tests of faults that a person would ask about, and keeps how many passed (results/tests.json)."""
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from results import FOLDER, ROOT, machine, write_result

FILES = {
    "test_health.py": "files removed, a full disk, damage, silent agents: said in /readyz, metrics and log, and over",
    "test_clock.py": "a clock that is set, before a start and during runs",
    "test_durability.py": "SIGKILL at random times",
    "test_faults.py": "SIGKILL and failing calls at chosen places",
    "test_signals.py": "signals",
}


def main():
    begun, found = machine("make reliability-tests"), []
    for name, says in FILES.items():
        with tempfile.NamedTemporaryFile(suffix=".xml") as file:
            # The long ones are campaigns with results of their own.
            ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-c", "tests/pytest.ini", "-p", "no:cacheprovider",
                            f"--junitxml={file.name}", "-m", "not long", f"tests/system/{name}"], cwd=ROOT, check=False)
            suite = xml.etree.ElementTree.parse(file.name).getroot().find("testsuite")
        count = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
        failed = count["failures"] + count["errors"] or int(ended.returncode != 0 or count["tests"] == 0)
        found.append({"file": f"tests/system/{name}", "says": says, "failed": failed, "skipped": count["skipped"],
                      "passed": count["tests"] - failed - count["skipped"]})
    write_result(FOLDER / "tests.json", {**begun, "files": found})
    return any(each["failed"] for each in found)


if __name__ == "__main__":
    sys.exit(main())
