"""Profile tables of the configuration: used like those that are built in, or refused."""
import copy
import json
import subprocess

import pytest

from service import BUILD, SELFTEST_WORKER

TABLE = {
    "table": "ours", "title": "Our frameworks", "source": "a wiki page",
    "recipes": [{"name": "TCD", "title": "set TF_CUDNN_DETERMINISTIC to 1"}],
    "columns": [{"id": "v1", "title": "version 1", "recipes": ["TCD"]}],
    "rows": [{"workload": "selftest_pass", "title": "A workload that can be made deterministic",
              "subject": "model",
              "cells": {"v1": {"model": {"none": "unordered", "TCD": "ordered"},
                               "documented": "TCD"}}}],
}


def edited(path, value):
    table = copy.deepcopy(TABLE)
    *keys, last = path
    place = table
    for key in keys:
        place = place[key]
    place[last] = value
    return table


def written(folder, *tables):
    paths = []
    for i, table in enumerate(tables):
        paths.append(folder / f"table{i}.json")
        paths[-1].write_text(table if isinstance(table, str) else json.dumps(table))
    return [str(path) for path in paths]


def refused(folder, profiles):
    """(exit status, last line of standard error) of a service that is to end by itself"""
    config = folder / "config.json"
    config.write_text(json.dumps({
        "stacks": [{"name": "cpu", "worker": str(SELFTEST_WORKER)}], "profiles": profiles}))
    ended = subprocess.run(
        [BUILD / "reprod", "serve", "--config", config, "--listen", "127.0.0.1:0", "--data",
         folder / "data", "--no-survey"], capture_output=True, text=True, timeout=120)
    return ended.returncode, ended.stderr.strip().splitlines()[-1]


@pytest.mark.flavour
def test_a_table_of_ones_own_is_derived_from_measurements(start_service, tmp_path):
    service = start_service(config={"profiles": written(tmp_path, TABLE)})
    service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3))
    assert [t["id"] for t in service.get("/v1/profiles")["items"]][-1] == "ours"
    row, = service.get("/v1/matrix?table=ours")["rows"]
    assert row["cells"][0]["code"] == "TCD" and row["cells"][0]["agrees"] is True


@pytest.mark.flavour
@pytest.mark.parametrize("path, value, says", [
    (("rows", 0, "workload"), "selftest_pss",
     "/rows/0/workload: no worker has a workload 'selftest_pss'; did you mean 'selftest_pass'?"),
    (("rows", 0, "cells", "v1", "model", "TCD"), "algo_99",
     "/rows/0/cells/v1/model/TCD: selftest_pass has no variant 'algo_99' of our models"),
    (("rows", 0, "cells", "v1", "model", "TCD"), "orderd",
     "/rows/0/cells/v1/model/TCD: selftest_pass has no variant 'orderd' of our models; did you mean 'ordered'?"),
    (("rows", 0, "cells", "v1", "model", "TDO"), "ordered",
     "/rows/0/cells/v1/model/TDO: not a recipe of this column"),
    (("rows", 0, "cells", "v1", "library"), {"none": "unordered", "TCD": "ordered"},
     "/rows/0/library: must name the library that this row is about"),
    (("rows", 0), {**TABLE["rows"][0], "library": "cuDNN", "cells": {"v1": {
        "library": {"none": "unordered", "TCD": "ordered"}}}},
     "/rows/0/cells/v1/library/none: selftest_pass has no variant 'unordered' of cuDNN"),
    (("rows", 0, "library"), "", "/rows/0/library: must be a text of 1 to 63 bytes"),
    (("rows", 0, "library"), "cu\nDNN", "/rows/0/library: has a control character (U+000A)"),
    (("columns", 0, "title"), "version\x1b[2J", "/columns/0/title: has a control character (U+001B)"),
    (("table",), "", "/table: must be a text that is not empty"),
    (("rows",), [{**TABLE["rows"][0], "workload": f"w{i}", "subject": "library", "library": f"L{i}"}
                 for i in range(13)], "/rows/12/library: more than 12 libraries and frameworks"),
    (("rows", 0, "subject"), "libary",
     "/rows/0/subject: must be model, library or framework; did you mean 'library'?"),
    (("rows", 0, "cells", "version 2"), {},
     "/rows/0/cells/version 2: this table has no column 'version 2'"),
    (("columns", 0, "recipes", 0), "TDX", "/columns/0/recipes/0: not a recipe of this table"),
    (("table",), "documents-2020", "/table: there is a table 'documents-2020' already"),
])
def test_what_is_unknown_is_refused_at_start(tmp_path, path, value, says):
    file, = written(tmp_path, edited(path, value))
    assert refused(tmp_path, [file]) == (2, f"reprod: {file}: {says}")


def test_files_that_cannot_be_read(tmp_path):
    missing = str(tmp_path / "nowhere.json")
    assert refused(tmp_path, [missing]) == (2, f"reprod: {missing}: No such file or directory")
    broken, = written(tmp_path, "{")
    code, line = refused(tmp_path, [broken])
    assert code == 2 and line.startswith(f"reprod: {broken}: line 1: ")
    listed, = written(tmp_path, "[]")
    assert refused(tmp_path, [listed]) == (2, f"reprod: {listed}: at the top: must be an object")
    assert refused(tmp_path, [7])[1].endswith("/profiles/0: must be the path of a file")
