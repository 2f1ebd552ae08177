"""make scale, in its short form: what must hold however fast it is."""
import json
import subprocess
import sys

import pytest

from service import BUILD, ROOT


@pytest.mark.long
def test_each_result_is_stored_once(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "tests/scale/scale.py", "--short", "--hosts", "40", "--runs", "3",
                           "--result", tmp_path / "scale.json"], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "REPROD_BUILD": str(BUILD)})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    result = json.loads((tmp_path / "scale.json").read_text())
    assert result["failures"] == [] and result["devices"] == 320
    assert result["found"]["accounts"]["runs_stored"] > 3 * 320
    assert set(result["found"]["idle"]["latencies"]["paths"]) > {"/metrics", "/v1/matrix"}
